// SPDX-License-Identifier: Apache-2.0
// StatusWriter against a model of an API server with optimistic concurrency: random failures, lost responses,
// other writers, changes of leadership. The requests that arrive are checked one by one, and finally the
// server has the desired status.
#include <gtest/gtest.h>

#include <array>

#include "control/log/log.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/kube/status_fixture.hpp"

namespace penstock::kube {
namespace status_model_test {

using namespace std::chrono_literals;
using penstock::test::Prng;
using test::address;
using test::allocated;
using test::programmed;

constexpr const char* kForeignCondition = "example.com/Ready";

class RandomRun : private test::StatusWriterFixture {
 public:
    explicit RandomRun(Prng& prng) : prng_(prng) {}

    void run(int steps) {
        for (const char* name : {"a", "b", "c"}) {
            create(name);
        }
        for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
            const size_t before = started();
            random_step();
            if (!is_leader) {
                EXPECT_EQ(started(), before) << "a follower started a request";
                EXPECT_TRUE(open().empty());
            }
        }
        finish();
    }

    // How often the rare paths ran, over all runs.
    struct Seen {
        uint64_t foreign = 0;
        uint64_t cleared = 0;
        WriteCounts counts;
    };
    void add_to(Seen& seen) const {
        const WriteCounts counts = writer.counts();
        seen.counts.written += counts.written;
        seen.counts.conflicts += counts.conflicts;
        seen.counts.failed += counts.failed;
        seen.counts.cancelled += counts.cancelled;
        seen.foreign += foreign_;
        seen.cleared += cleared_;
    }

 private:
    std::string any_name() { return std::string(1, static_cast<char>('a' + prng_.below(3))); }

    void random_step() {
        const std::string name = any_name();
        switch (prng_.below(10)) {
            case 0:
                desired_[name] = random_status();
                writer.set(id(name), *desired_[name]);
                break;
            case 1:
                if (prng_.one_in(3)) {
                    desired_[name].reset();
                    writer.clear(id(name));
                }
                break;
            case 2:
            case 3:
                deliver(name);
                break;
            case 4:
                act_as_other_writer(name);
                break;
            case 5:
                if (prng_.one_in(5)) {
                    is_leader = !is_leader;
                }
                break;
            case 6:
            case 7:
                if (!open().empty()) {
                    answer_any(server_answers());
                }
                break;
            default:
                now += std::chrono::milliseconds(prng_.below(3000));
                break;
        }
        advance();
    }

    ServiceStatus random_status() {
        ServiceStatus status;
        if (prng_.one_in(4)) {
            status.conditions = {allocated("False")};
            return status;
        }
        for (uint64_t count = prng_.between(1, 2); count > 0; --count) {
            status.ingress.push_back(address("203.0.113." + std::to_string(count * 10 + prng_.below(2)),
                                             prng_.one_in(3) ? "Proxy" : "VIP"));
        }
        status.conditions = {allocated()};
        if (prng_.one_in(2)) {
            status.conditions.push_back(programmed(prng_.one_in(2) ? "True" : "False"));
        }
        return status;
    }

    void act_as_other_writer(const std::string& name) {
        test::ModelService& model = server.at(name);
        ++model.version;
        switch (prng_.below(5)) {
            case 0:
                model.put({kForeignCondition, "True", "Ready", std::to_string(prng_.below(10))});
                break;
            case 1:
                model.conditions.erase(kForeignCondition);
                break;
            case 2:  // takes the Service over
                model.conditions.erase(std::string(kAllocatedCondition));
                model.ingress = {address("198.51.100." + std::to_string(prng_.below(10)), "")};
                break;
            case 3:  // releases its own ingress, or reverts ours
                model.ingress.clear();
                break;
            default:  // changes something else
                break;
        }
    }

    enum class Answer : uint8_t { Normal, Lost, Unreadable, NotExecuted, Refused, Throttled };
    Answer server_answers() {
        constexpr std::array kRare = {Answer::Lost, Answer::Unreadable, Answer::NotExecuted, Answer::Refused,
                                      Answer::Throttled};
        return prng_.one_in(2) ? Answer::Normal : kRare.at(prng_.below(kRare.size()));
    }

    static bool is_foreign(const test::ModelService& model) {
        const ServiceVersion current = model.decoded();
        return !has_marker(*current.object) && !model.ingress.empty() &&
               model.ingress[0].ip.starts_with("198.51.100.");
    }

    // Any of the open requests is answered.
    void answer_any(Answer answer) {
        std::swap(open().front(), open().at(prng_.below(open().size())));
        const Request request = open().front().request;
        test::ModelService& model = server.at(name_in(request));
        if (answer == Answer::NotExecuted) {
            return transport.fake.fail(TransportError::Kind::Timeout, "timeout");
        }
        if (answer == Answer::Refused) {
            constexpr std::array kStatus = {401, 409, 500, 503};
            return transport.fake.answer(kStatus.at(prng_.below(kStatus.size())));
        }
        if (answer == Answer::Throttled) {
            return transport.fake.answer(429, "{}", 2s);
        }
        const int status = execute(model, request.body);
        if (answer == Answer::Lost) {
            return transport.fake.fail(TransportError::Kind::Broken, "reset");
        }
        transport.fake.answer(status, answer == Answer::Unreadable ? "<html>"
                                      : status == 200              ? model.text()
                                                                   : "{}");
    }

    // Executes a PATCH and checks it.
    static int execute(test::ModelService& model, const std::string& body) {
        const test::ModelService before = model;
        const int status = model.apply(body);
        if (status == 200) {
            EXPECT_FALSE(is_same_status(before.status(), model.status())) << "a needless write: " << body;
            if (is_foreign(before)) {
                EXPECT_EQ(model.ingress, before.ingress) << body;
                EXPECT_FALSE(has_marker(*model.decoded().object)) << body;
            }
            const auto condition = before.conditions.find(kForeignCondition);
            const auto after = model.conditions.find(kForeignCondition);
            EXPECT_EQ(condition == before.conditions.end(), after == model.conditions.end());
            if (condition != before.conditions.end() && after != model.conditions.end()) {
                EXPECT_EQ(condition->second, after->second);
            }
        }
        return status;
    }

    // The server works, the watch is up to date and this process leads.
    void finish() {
        is_leader = true;
        for (int round = 0; round < 1000 && !testing::Test::HasFailure(); ++round) {
            for (const auto& [name, model] : server) {
                deliver(name);
            }
            advance();
            while (!open().empty()) {
                answer_any(Answer::Normal);
                advance();
            }
            if (!writer.next_wake()) {
                break;
            }
            advance_to_wake(2min);
        }
        EXPECT_EQ(writer.counts().pending, 0u);
        const size_t before = started();
        for (const auto& [name, model] : server) {
            deliver(name);
        }
        advance(1h);
        EXPECT_EQ(started(), before) << "it is not at rest";
        uint64_t foreign = 0;
        for (const auto& [name, model] : server) {
            SCOPED_TRACE(name + ": " + model.text());
            foreign += check_final(name, model) ? 1 : 0;
        }
        EXPECT_EQ(writer.foreign(), foreign);
        foreign_ += foreign;
    }
    // True if the Service is left alone as foreign.
    bool check_final(const std::string& name, const test::ModelService& model) {
        const auto found = desired_.find(name);
        if (found == desired_.end()) {
            return false;
        }
        const ServiceStatus desired = found->second.value_or(ServiceStatus{});
        cleared_ += found->second ? 0 : 1;
        if (is_foreign(model)) {
            // Conditions beside foreign ingress are written unless they would be its marker.
            if (desired.ingress.empty()) {
                EXPECT_TRUE(is_same_status({.ingress = model.ingress, .conditions = desired.conditions},
                                           model.status()));
            }
            return !desired.ingress.empty();
        }
        EXPECT_TRUE(is_same_status(desired, model.status()));
        return false;
    }

    Prng& prng_;
    std::map<std::string, std::optional<ServiceStatus>> desired_;  // nullopt: cleared
    uint64_t foreign_ = 0;
    uint64_t cleared_ = 0;
};

TEST(StatusModel, TheServerFinallyHasTheDesiredStatus_STATUS001_STATUS002_STATUS003_STATUS004_LB013) {
    const penstock::test::LogCapture log("kube");
    Prng prng;
    RandomRun::Seen seen;
    for (int run = 0; run < 300 && !HasFailure(); ++run) {
        SCOPED_TRACE(run);
        RandomRun random(prng);
        random.run(200);
        random.add_to(seen);
    }
    // Each path was taken, so the assertions above mean something.
    EXPECT_GT(seen.counts.written, 1000u);
    EXPECT_GT(seen.counts.conflicts, 100u);
    EXPECT_GT(seen.counts.failed, 100u);
    EXPECT_GT(seen.counts.cancelled, 10u);
    EXPECT_GT(seen.foreign, 10u);
    EXPECT_GT(seen.cleared, 10u);
}

}  // namespace status_model_test
}  // namespace penstock::kube
