// SPDX-License-Identifier: Apache-2.0
#include "perf/micro/copy_book_holds.hpp"

#include <time.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/gateway/shares/copy_book.hpp"
#include "control/shares/plan_text.hpp"
#include "perf/harness/report.hpp"
#include "perf/micro/connections.hpp"

namespace penstock::perf {
namespace {

using gateway::CopyBook;

constexpr uint32_t kRuns = 5;

// Of this thread. Compilers beside the benchmark do not lengthen it.
double processor_ms() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

std::shared_ptr<const gateway::GatewayShares> plan_with(const std::string& other, int version) {
    return std::make_shared<const gateway::GatewayShares>(
        shares::parse_plan("version " + std::to_string(version) + "\ngateway edge-1\ngateway " + other +
                           "\nshares 16\nend\n")
            .value(),
        "edge-1");
}

class Run {
 public:
    explicit Run(uint32_t connections)
        : connections_(connections),
          store_(*copies::Store::create(connections + connections / 8, {1, 2})),
          book_(*store_) {
        follow(kOther, 1);
        const auto begin = [&] { book_.begin_stream(kOther); };
        begin();
        pass("records", 1);
        time("begin_stream", begin);
        pass("repeated", 2);
        in_portions("end_pass", [&](uint32_t& from) { return book_.end_pass(kOther, from); });
        held_after_pass_ = book_.counts(kOther).held;
        sweep();
        std::vector<std::byte> out;
        in_portions("give_back", [&](uint32_t& from) {
            out.clear();
            return book_.give_back(kOther, from, kTime, CoarseClock(TscRate{2'000'000'000}), out);
        });
        follow("edge-3", 2);
        follow(kOther, 3);
        pass("records", 1);
        take_all();
        pass("taken", 1);
        time("begin_taken", begin);
    }

    // By operation.
    [[nodiscard]] const std::map<std::string, double>& longest_ms() const { return longest_ms_; }
    // Must be half of the connections: the second pass does not repeat the others.
    [[nodiscard]] uint64_t held_after_pass() const { return held_after_pass_; }

 private:
    static constexpr const char* kOther = "edge-2";
    static constexpr CoarseTime kTime{100'000};

    template <typename Call>
    void time(const std::string& operation, Call&& call) {
        double& longest = longest_ms_[operation];
        const double begin = processor_ms();
        call();
        longest = std::max(longest, processor_ms() - begin);
    }

    template <typename Portion>
    void in_portions(const std::string& operation, Portion&& portion) {
        uint32_t from = 0;
        for (bool has_more = true; has_more;) {
            time(operation, [&] { has_more = portion(from); });
        }
    }

    void follow(const std::string& other, int version) {
        const auto plan = plan_with(other, version);
        time("plan", [&] { book_.set_plan(plan); });
        in_portions("plan", [&](uint32_t& from) { return book_.review(from); });
    }

    // Each `step`th connection; each pass in other slots, as from another process.
    void pass(const std::string& operation, uint32_t step) {
        ++passes_;
        std::vector<copies::Record> batch;
        for (uint32_t number = 0; number < connections_; number += step) {
            copies::Record& record = batch.emplace_back();
            record.kind = copies::Record::Kind::Held;
            record.slot = number + passes_;
            record.connection.forward = flow_key(number, conn::Direction::Forward);
            record.connection.reverse = flow_key(number, conn::Direction::Reverse);
            record.connection.opened_at = record.connection.last_seen = {kTime.value - 1000};
            record.connection.state = static_cast<uint8_t>(conn::TcpState::Established);
            if (batch.size() == CopyBook::kRecordsAtOnce || number + step >= connections_) {
                time(operation, [&] { book_.apply(kOther, batch); });
                batch.clear();
            }
        }
    }

    void sweep() {
        for (uint32_t at = 0; at < store_->slots(); at += CopyBook::kPortion) {
            time("sweep", [&] {
                book_.sweep(CopyBook::kPortion,
                            {.now = kTime,
                             .limit_of = [](const conn::Connection&) { return 1'000'000; },
                             .lives = [](const conn::Connection&) { return true; }});
            });
        }
    }

    // Workers take all copies over. Their connections at the other gateway then wait for the end of these.
    void take_all() {
        store_->for_each(
            [&](copies::Store::Slot slot) { store_->mark_taken(*store_->find(store_->at(slot).forward)); });
    }

    const uint32_t connections_;
    const std::unique_ptr<copies::Store> store_;
    CopyBook book_;
    uint32_t passes_ = 0;
    uint64_t held_after_pass_ = 0;
    std::map<std::string, double> longest_ms_;
};

}  // namespace

void measure_holds(const Options& options, uint32_t connections) {
    // A connection that waits for a taken copy takes more than a copy.
    if (!fits_memory("shares.hold", connections, size_t{connections} * 400)) {
        return;
    }
    std::map<std::string, std::vector<double>> longest_ms;
    uint64_t held = 0;
    for (uint32_t number = 0; number < (options.quick ? 1 : kRuns); ++number) {
        const Run run(connections);
        held = run.held_after_pass();
        for (const auto& [operation, longest] : run.longest_ms()) {
            longest_ms[operation].push_back(longest);
        }
    }
    for (auto& [operation, runs] : longest_ms) {
        std::ranges::sort(runs);
        const std::string name = "shares.hold." + operation + size_suffix(connections);
        print_value(name + ".min", runs.front(), "ms");
        print_value(name + ".median", runs[runs.size() / 2], "ms");
    }
    print_remark(std::to_string(held) + " of " + std::to_string(connections) +
                 " copies held after a pass that has repeated half of them");
}

}  // namespace penstock::perf
