// SPDX-License-Identifier: Apache-2.0
// Compares A and B on a shared machine: short windows of each in turn (ABAB...), so that a disturbance
// affects both, and the minimum of each, because a disturbance only increases the result. Gates are ratios of
// minima; median and spread show how reliable they are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "perf/harness/cycles.hpp"

namespace penstock::perf {

// The sum over the timed bursts of one window. The time between bursts is excluded, and so is a burst during
// which another thread had the processor.
class BurstClock {
 public:
    // No operation measured here takes a tenth of this, and the scheduler's shortest slice is a multiple of
    // it for a whole burst.
    static constexpr uint64_t kPreemptedPerOperation = 20'000;

    // `cycles` between cycles_begin() and cycles_end().
    void add(uint64_t cycles, uint64_t operations) noexcept {
        if (cycles > operations * kPreemptedPerOperation) {
            return;
        }
        cycles_ += cycles > empty_span_cycles() ? cycles - empty_span_cycles() : 1;
        operations_ += operations;
    }
    // A sum that was measured by other clocks.
    void add_all(uint64_t cycles, uint64_t operations) noexcept {
        cycles_ += cycles;
        operations_ += operations;
    }
    [[nodiscard]] uint64_t cycles() const noexcept { return cycles_; }
    [[nodiscard]] uint64_t operations() const noexcept { return operations_; }
    [[nodiscard]] double per_operation() const noexcept {
        return operations_ == 0 ? 0 : static_cast<double>(cycles_) / static_cast<double>(operations_);
    }

 private:
    uint64_t cycles_ = 0;
    uint64_t operations_ = 0;
};

// One side of the comparison. `window` runs bursts until their cycles reach `budget_cycles` and returns its
// clock.
struct Side {
    std::string name;
    std::function<BurstClock(uint64_t budget_cycles)> window;
};

// Cycles per operation over all windows of one side.
struct Summary {
    double min = 0;
    double median = 0;
    double spread = 0;  // (median - min) / min
};

struct WindowPlan {
    uint32_t windows = 7;
    uint32_t window_ms = 30;
    // If the spread of any side exceeds this, the windows are run once more, and all of them count.
    double spread_max = 0.15;
};

// Starts with one unmeasured window of each side. Prints `NAME.min`, `.median` and `.spread` of each.
std::vector<Summary> interleave(std::span<const Side> sides, const WindowPlan& plan);

}  // namespace penstock::perf
