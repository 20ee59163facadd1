// SPDX-License-Identifier: Apache-2.0
#include "control/kube/lease/leader_elector.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "control/kube/json/json_fields.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"
#include "tests/unit/kube/fake_transport.hpp"

namespace penstock::kube {
namespace leader_elector_test {

using namespace std::chrono_literals;
using test::FakeTransport;
using Time = LeaderElector::Time;

constexpr WallTime kWall{1'700'000'000s};
const ObjectName kLease{"penstock-system", "penstock-sync"};
const std::string kTarget = "/apis/coordination.k8s.io/v1/namespaces/penstock-system/leases/penstock-sync";

std::string lease_json(const std::string& holder, int version, int transitions = 0,
                       const std::string& renewed = "2023-11-14T22:13:20.000000Z") {
    return R"({"metadata":{"resourceVersion":")" + std::to_string(version) +
           R"("},"spec":{"holderIdentity":")" + holder +
           R"(","leaseDurationSeconds":15,"leaseTransitions":)" + std::to_string(transitions) +
           R"(,"renewTime":")" + renewed + R"(","strategy":"OldestEmulationVersion"}})";
}

class LeaderElectorTest : public testing::Test {
 protected:
    void step(std::chrono::milliseconds later = 0ms) {
        now_ += later;
        elector_.advance(now_, kWall + std::chrono::duration_cast<std::chrono::seconds>(now_ - Time{}));
    }
    // Time passes until the elector has work to do.
    void to_next_wake() {
        const auto due = elector_.next_wake();
        ASSERT_TRUE(due);
        now_ = std::max(now_, *due);
        step();
    }
    [[nodiscard]] bool leads() const { return elector_.is_leader(now_); }
    // The Lease is free and this process takes it.
    void take() {
        step();
        transport_.answer(200, lease_json("", 1));
        step();
        transport_.answer(200, lease_json("me", 2, 1));
        step();
        ASSERT_TRUE(leads());
    }

    FakeTransport transport_;
    WriteLimiter limiter_;
    Time now_{1h};
    LeaderElector elector_{{.lease = kLease, .identity = "me"}, transport_, limiter_, [] { return 0.0; }};
};

TEST_F(LeaderElectorTest, CreatesAnAbsentLease_LEASE001) {
    step();
    ASSERT_EQ(transport_.started.size(), 1u);
    EXPECT_EQ(transport_.started[0].method, "GET");
    EXPECT_EQ(transport_.started[0].target, kTarget);
    transport_.answer(404, R"({"kind":"Status","code":404})");
    step();
    ASSERT_EQ(transport_.started.size(), 2u);
    const Request& create = transport_.started[1];
    EXPECT_EQ(create.method, "POST");
    EXPECT_EQ(create.target, "/apis/coordination.k8s.io/v1/namespaces/penstock-system/leases");
    EXPECT_EQ(create.body,
              R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"penstock-sync",)"
              R"("namespace":"penstock-system"},"spec":{"holderIdentity":"me","leaseDurationSeconds":15,)"
              R"("renewTime":"2023-11-14T23:13:20.000000Z","acquireTime":"2023-11-14T23:13:20.000000Z",)"
              R"("leaseTransitions":0}})");
    EXPECT_FALSE(leads());
    transport_.answer(201, lease_json("me", 1));
    step();
    EXPECT_TRUE(leads());
    EXPECT_EQ(elector_.term(), 1u);
}

TEST_F(LeaderElectorTest, WaitsUntilTheRecordWasUnchangedForItsDuration_LEASE002) {
    step();
    transport_.answer(200, lease_json("other", 7, 3));
    step();
    for (int second = 0; second < 14; second += 2) {
        EXPECT_TRUE(transport_.open.empty());
        now_ += 2s;
        step();
        ASSERT_EQ(transport_.open.size(), 1u) << "a follower reads every two seconds";
        transport_.answer(200, lease_json("other", 7, 3));
        step();
        EXPECT_FALSE(leads());
    }
    now_ += 2s;
    step();
    transport_.answer(200, lease_json("other", 7, 3));
    step();
    ASSERT_EQ(transport_.started.back().method, "PATCH");
    EXPECT_EQ(transport_.started.back().content_type, "application/merge-patch+json");
    const std::string body = transport_.started.back().body;
    EXPECT_NE(body.find(R"("metadata":{"resourceVersion":"7"})"), std::string::npos) << body;
    EXPECT_NE(body.find(R"("leaseTransitions":4)"), std::string::npos) << body;
    EXPECT_EQ(body.find("strategy"), std::string::npos)
        << "other fields of spec are preserved: not mentioned";
    transport_.answer(200, lease_json("me", 8, 4));
    step();
    EXPECT_TRUE(leads());
}

TEST_F(LeaderElectorTest, ARenewedRecordIsNotTakenOver_LEASE002) {
    for (int round = 0; round < 30; ++round) {
        to_next_wake();
        transport_.answer(
            200, lease_json("other", round, 3, "2023-11-14T22:13:" + std::to_string(20 + round) + "Z"));
        step();
        ASSERT_TRUE(transport_.open.empty()) << "round " << round;
        ASSERT_FALSE(leads());
    }
}

TEST_F(LeaderElectorTest, AConflictIsNoTakeoverInThatRound_LEASE003) {
    step();
    transport_.answer(200, lease_json("", 1));
    step();
    transport_.answer(409, R"({"kind":"Status","code":409})");
    step();
    EXPECT_FALSE(leads());
    EXPECT_TRUE(transport_.open.empty()) << "the next round reads";
    to_next_wake();
    EXPECT_EQ(transport_.started.back().method, "GET");
}

TEST_F(LeaderElectorTest, RenewsEveryTwoSecondsAndLeadsTenSecondsAfterTheStartOfARenewal_LEASE002_LEASE004) {
    take();
    const Time claimed = now_;
    now_ += 2s;
    step();
    ASSERT_EQ(transport_.started.back().method, "PATCH");
    const Time renewed = now_;
    now_ += 1s;
    transport_.answer(200, lease_json("me", 3, 1));
    step();
    EXPECT_TRUE(elector_.is_leader(renewed + 10s - 1ms)) << "counted from the start of the renewal";
    EXPECT_FALSE(elector_.is_leader(renewed + 10s));
    EXPECT_GT(renewed, claimed);
}

TEST_F(LeaderElectorTest, WithoutTheServerLeadershipEndsAfterTenSeconds_LEASE004) {
    take();
    const Time since = now_;
    while (now_ < since + 10s) {
        EXPECT_TRUE(leads());
        to_next_wake();
        if (!transport_.open.empty()) {
            transport_.fail(TransportError::Kind::Timeout, "no response");
            step();
        }
    }
    EXPECT_FALSE(leads());
    const auto log = elector_.take_log();
    EXPECT_TRUE(std::ranges::any_of(log, [](const LogLine& line) {
        return line.text.find("could not be renewed for 10 s") != std::string::npos;
    }));
    EXPECT_EQ(elector_.status().lost, 1u);
}

TEST_F(LeaderElectorTest, ALostResponseIsNoLostLeadership_LEASE003) {
    take();
    to_next_wake();
    transport_.fail(TransportError::Kind::Broken, "reset");  // the renewal arrived
    step();
    to_next_wake();
    EXPECT_EQ(transport_.started.back().method, "GET");
    transport_.answer(200, lease_json("me", 3, 1, "2023-11-14T22:13:22Z"));
    step();
    EXPECT_EQ(transport_.started.back().method, "PATCH") << "renewed at once";
    transport_.answer(200, lease_json("me", 4, 1, "2023-11-14T22:13:24Z"));
    step();
    EXPECT_TRUE(leads());
    EXPECT_EQ(elector_.term(), 1u);
}

TEST_F(LeaderElectorTest, AnotherHolderEndsLeadershipAtOnce_LEASE004) {
    take();
    to_next_wake();
    transport_.answer(409, "{}");
    step();
    to_next_wake();
    transport_.answer(200, lease_json("other", 9, 2));
    step();
    EXPECT_FALSE(leads());
}

TEST_F(LeaderElectorTest, ADeletedLeaseEndsLeadershipAtOnce_LEASE004) {
    take();
    to_next_wake();
    ASSERT_EQ(transport_.started.back().method, "PATCH");
    transport_.answer(404, R"({"kind":"Status","code":404})");
    step();
    EXPECT_FALSE(leads()) << "another process may create the Lease first";
    EXPECT_EQ(elector_.status().lost, 1u);
    ASSERT_EQ(transport_.started.back().method, "POST");
    transport_.answer(201, lease_json("me", 1));
    step();
    EXPECT_TRUE(leads());
    EXPECT_EQ(elector_.term(), 2u);
}

TEST_F(LeaderElectorTest, ReleasesTheLeaseAtShutdown_LEASE003) {
    take();
    elector_.release();
    EXPECT_FALSE(leads());
    step();
    const Request& release = transport_.started.back();
    EXPECT_EQ(release.method, "PATCH");
    EXPECT_NE(release.body.find(R"("holderIdentity":"")"), std::string::npos) << release.body;
    EXPECT_FALSE(elector_.is_released());
    transport_.answer(200, lease_json("", 3, 1));
    step();
    EXPECT_TRUE(elector_.is_released());
    EXPECT_FALSE(elector_.next_wake());
}

TEST_F(LeaderElectorTest, TransitionsAreThoseOfTheLease_LEASE001) {
    step();
    EXPECT_EQ(elector_.status().transitions, 0u);
    transport_.answer(200, lease_json("other", 1, 7));
    step();
    EXPECT_EQ(elector_.status().transitions, 7u) << "also those before this process started";
}

TEST_F(LeaderElectorTest, AMissingRightIsReportedOnceAndTriedAgain_LEASE004) {
    for (int round = 0; round < 3; ++round) {
        to_next_wake();
        const Time asked = now_;
        transport_.answer(403, R"({"kind":"Status","reason":"Forbidden","message":"no t0ken-of-this-test"})");
        step();
        EXPECT_GE(*elector_.next_wake(), asked + 10s);
    }
    EXPECT_EQ(elector_.take_log().size(), 1u);
    EXPECT_EQ(elector_.status().failures, 3u);
}

TEST(Lease, RefusesOtherTexts) {
    JsonTree tree;
    for (const char* text : {"", "[]", "{}", R"({"metadata":{"resourceVersion":7}})",
                             R"({"metadata":{"resourceVersion":"7"},"spec":{"holderIdentity":3}})"}) {
        EXPECT_FALSE(parse_lease(tree, text)) << text;
    }
    const auto odd = parse_lease(
        tree,
        R"({"metadata":{"resourceVersion":"7"},"spec":{"leaseDurationSeconds":-4,"leaseTransitions":99999999999}})");
    ASSERT_TRUE(odd);
    EXPECT_EQ(odd->record.duration, 1s);
    EXPECT_EQ(odd->record.transitions, 2'147'483'647);
}

// An API server with one Lease and optimistic concurrency. Requests and responses arrive late, or never.
class ModelServer {
 public:
    std::string respond(const Request& request, int& status) {
        if (request.method == "POST") {
            status = version_ == 0 ? 201 : 409;
        } else if (version_ == 0) {
            status = 404;
        } else if (request.method == "PATCH") {
            status = request.body.find("\"resourceVersion\":\"" + std::to_string(version_) + "\"") ==
                             std::string::npos
                         ? 409
                         : 200;
        } else {
            status = 200;
        }
        if ((status == 200 || status == 201) && request.method != "GET") {
            ++version_;
            JsonTree tree;
            static_cast<void>(tree.parse(request.body));
            FaultList faults;
            const JsonFields spec = JsonFields(tree, 0, faults).mapping("spec");
            holder_ = spec.text("holderIdentity");
            renewed_ = spec.text("renewTime");
        }
        return lease_json(holder_, version_, 0, renewed_);
    }

 private:
    int version_ = 0;
    std::string holder_, renewed_;
};

// Electors with clocks of their own, which are frozen at random, on a network that delays and loses.
TEST(LeaderElectorProperty, AtMostOneLeads_LEASE002_LEASE004) {
    const uint64_t seed = penstock::test::seed();
    for (uint64_t run = 0; run < 40; ++run) {
        penstock::test::Prng random(seed + run);
        struct Process {
            FakeTransport transport;
            WriteLimiter limiter;
            std::unique_ptr<LeaderElector> elector;
            Time frozen_until{};
        };
        struct Message {
            Time at;
            size_t process;
            FakeTransport::Open request;
        };
        ModelServer server;
        std::deque<Process> processes(3);
        for (size_t i = 0; i < processes.size(); ++i) {
            processes[i].elector = std::make_unique<LeaderElector>(
                LeaderElector::Settings{.lease = kLease, .identity = "p" + std::to_string(i)},
                processes[i].transport, processes[i].limiter, [] { return 0.5; });
        }
        std::vector<Message> under_way;
        uint64_t seen_leading = 0;
        for (Time now{1h}; now < Time{1h} + 15min; now += 100ms) {
            for (size_t i = 0; i < processes.size(); ++i) {
                Process& process = processes[i];
                if (now < process.frozen_until) {
                    continue;
                }
                if (random.one_in(600)) {
                    process.frozen_until = now + std::chrono::seconds(random.below(40));
                    continue;
                }
                process.elector->advance(
                    now, kWall + std::chrono::duration_cast<std::chrono::seconds>(now - Time{}));
                for (const auto& open : process.transport.open) {
                    under_way.push_back({now + std::chrono::milliseconds(random.below(2'500)), i, open});
                }
                process.transport.open.clear();
            }
            // Each request reaches the server once; one in ten responses is lost, which ends as a timeout.
            for (size_t at = 0; at < under_way.size();) {
                if (under_way[at].at > now) {
                    ++at;
                    continue;
                }
                const Message message = under_way[at];
                under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(at));
                int status = 0;
                const std::string body = server.respond(message.request.request, status);
                ResponseHandler& handler = *message.request.handler;
                if (random.one_in(10)) {
                    handler.on_end(TransportError{TransportError::Kind::Timeout, "no response"});
                } else {
                    handler.on_head({.status = status, .retry_after = {}, .content_type = {}});
                    handler.on_body(body);
                    handler.on_end(std::nullopt);
                }
            }
            // Frozen processes count too: they continue with what they believe.
            const auto leading = std::ranges::count_if(
                processes, [now](const Process& process) { return process.elector->is_leader(now); });
            ASSERT_LE(leading, 1) << "seed " << seed + run;
            seen_leading += static_cast<uint64_t>(leading);
        }
        EXPECT_GT(seen_leading, 3'000u) << "seed " << seed + run << ": a leader most of the time";
    }
}

}  // namespace leader_elector_test
}  // namespace penstock::kube
