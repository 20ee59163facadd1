// SPDX-License-Identifier: Apache-2.0
// The rules for the gateway's outcomes, for any input. The judge has no model of the flows. It has the
// addresses of all hosts (world.hpp) and reads the arriving and the leaving frame (sight.hpp). It checks the
// gateway's tables against the packets that pass (flows.hpp) and against each other.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/fuzz/pipeline/flows.hpp"
#include "tests/fuzz/pipeline/sight.hpp"
#include "tests/fuzz/pipeline/world.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::fuzz {

// A frame and how it arrived.
struct Arrived {
    Frame frame;
    NicPortId port;
    bool from_host = false;
};

// Key: addresses and id of a datagram's fragments, and whether Linux sent them. Value: addresses, protocol
// and id with which its first fragments have left.
using FirstFragments = std::map<std::tuple<IpAddr, IpAddr, uint32_t, bool>,
                                std::set<std::tuple<IpAddr, IpAddr, uint8_t, uint32_t>>>;

// The gateway's answer limit, counted independently: a burst and a rate per second, for each worker.
class AnswerBudget {
 public:
    AnswerBudget(uint32_t per_second, uint32_t burst) : per_second_(per_second), burst_(burst * kThousand) {
        left_.fill(burst_);
    }
    void pass_milliseconds(uint64_t ms) {
        for (uint64_t& left : left_) {
            left = std::min(burst_, left + per_second_ * ms);
        }
    }
    // False if the limit is exceeded.
    [[nodiscard]] bool spend(WorkerId worker) {
        uint64_t& left = left_.at(worker.value);
        const bool has_one = left >= kThousand;
        left -= has_one ? kThousand : 0;
        return has_one;
    }

 private:
    static constexpr uint64_t kThousand = 1000;
    // burst_ and left_ are in thousandths, the amount that one millisecond adds, so nothing is ever rounded.
    uint64_t per_second_, burst_;
    std::array<uint64_t, kWorkersMost> left_{};
};

struct Case;

class Judge {
 public:
    Judge(test::VirtualGateway& gateway, uint32_t workers)
        : gateway_(gateway), workers_(workers), flows_(gateway, workers) {}

    // Aborts the program, with both frames as scapy lines, if `outcome` is not a permitted result of
    // `arrived`.
    void judge(const Arrived& arrived, const test::Outcome& outcome, const Rules& rules);
    void pass_milliseconds(uint64_t ms) {
        refusals_.pass_milliseconds(ms);
        echoes_.pass_milliseconds(ms);
        for (auto& [who, budget] : errors_) {
            budget.pass_milliseconds(ms);
        }
    }
    // Does the same for the gateway's tables: each entry is counted once for its Service and its backend,
    // waiting fragments are present, answers are counted as answers, and all limits hold.
    void audit() const;

 private:
    void judge_untagged(const Arrived& arrived, const test::Outcome& outcome, const Rules& rules);
    void count(const Case& the);
    // The budget that limits this answer.
    AnswerBudget& budget_of(const Case& the);
    void judge_openings(const Case& the);
    [[nodiscard]] bool has_spoken(const IpAddr& address) const {
        return std::ranges::find(spoke_, address) != spoke_.end();
    }

    test::VirtualGateway& gateway_;
    uint32_t workers_;
    Flows flows_;
    std::vector<IpAddr> spoke_;  // source addresses of packets from the wire or from the host
    FirstFragments first_fragments_;
    AnswerBudget refusals_{kAnswersPerSecond, kAnswersBurst}, echoes_{kAnswersPerSecond, kAnswersBurst};
    // By kind of error (whether it is a "too big") and destination network.
    std::map<std::pair<bool, std::array<uint8_t, 16>>, AnswerBudget> errors_;
    uint64_t answered_ = 0, errors_passed_ = 0, opened_ = 0;
};

}  // namespace penstock::fuzz
