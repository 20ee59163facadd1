// What may leave the gateway, and what may not, whatever came in. The judge keeps no model of the flows: it knows who is who (world.hpp),
// sees the frame that came and the frame that leaves (sight.hpp), and holds the gateway's books against what passes (flows.hpp) and against
// each other.
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

// How a frame came in.
struct Arrived {
    Frame frame;
    NicPortId port;
    bool from_host = false;
};

// By the addresses and id of fragments, and whether Linux sent them: the addresses, the protocol and the id that first ones have left with.
using FirstFragments = std::map<std::tuple<IpAddr, IpAddr, uint32_t, bool>,
                                std::set<std::tuple<IpAddr, IpAddr, uint8_t, uint32_t>>>;

// How often the gateway may answer, counted anew: so many at once, so many a second, each worker for itself.
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
    // False: it was one too many.
    [[nodiscard]] bool spend(WorkerId worker) {
        uint64_t& left = left_.at(worker.value);
        const bool has_one = left >= kThousand;
        left -= has_one ? kThousand : 0;
        return has_one;
    }

 private:
    static constexpr uint64_t kThousand = 1000;
    uint64_t per_second_,
        burst_;  // burst_ and left_ in thousandths, which one millisecond gives: no sum is ever rounded
    std::array<uint64_t, kWorkersMost> left_{};
};

struct Case;

class Judge {
 public:
    Judge(test::VirtualGateway& gateway, uint32_t workers)
        : gateway_(gateway), workers_(workers), flows_(gateway, workers) {}

    // Stops the program, with both frames as scapy lines, where `outcome` is none that may follow from `arrived`.
    void judge(const Arrived& arrived, const test::Outcome& outcome, const Rules& rules);
    void pass_milliseconds(uint64_t ms) {
        refusals_.pass_milliseconds(ms);
        echoes_.pass_milliseconds(ms);
        for (auto& [who, budget] : errors_) {
            budget.pass_milliseconds(ms);
        }
    }
    // The same of the books: each entry of the tables is counted once with its Service and its backend, fragments that wait are there,
    // answers are counted as answers, and all bounds hold.
    void audit() const;

 private:
    void judge_untagged(const Arrived& arrived, const test::Outcome& outcome, const Rules& rules);
    void count(const Case& the);
    // What the answer that leaves is counted against.
    AnswerBudget& budget_of(const Case& the);
    void judge_openings(const Case& the);
    [[nodiscard]] bool has_spoken(const IpAddr& address) const {
        return std::ranges::find(spoke_, address) != spoke_.end();
    }

    test::VirtualGateway& gateway_;
    uint32_t workers_;
    Flows flows_;
    std::vector<IpAddr> spoke_;  // sources of what came from the wire or from the host
    FirstFragments first_fragments_;
    AnswerBudget refusals_{kAnswersPerSecond, kAnswersBurst}, echoes_{kAnswersPerSecond, kAnswersBurst};
    // By sort of error (whether it is a "too big") and the network that it goes to.
    std::map<std::pair<bool, std::array<uint8_t, 16>>, AnswerBudget> errors_;
    uint64_t answered_ = 0, errors_passed_ = 0, opened_ = 0;
};

}  // namespace penstock::fuzz
