// SPDX-License-Identifier: Apache-2.0
// The frequency of the TSC, measured against the system's monotonic clock. DPDK rounds its own estimate to
// 10 MHz if the processor does not report the frequency, as in most virtual machines: up to 0.2 %, which are
// minutes in the age of a connection of a day. Timeouts may be wrong by that, points of time not.
#pragma once

#include <chrono>
#include <cstdint>

#include "dataplane/base/time.hpp"

namespace penstock {

class TscMeasure {
 public:
    // Both clocks, read at the same moment.
    struct Reading {
        uint64_t ticks = 0;
        std::chrono::nanoseconds monotonic{0};
    };

    TscMeasure(Reading begin, TscRate nominal) noexcept : begin_(begin), nominal_(nominal) {}

    // Milliseconds that `ticks` take. By the nominal frequency in the first second, when the clocks' readings
    // are too close to one another, and if the TSC was set back.
    [[nodiscard]] int64_t milliseconds(TscTicks ticks, Reading now) const noexcept {
        const auto passed = now.monotonic - begin_.monotonic;
        if (now.ticks <= begin_.ticks || passed < std::chrono::seconds(1)) {
            return static_cast<int64_t>(nominal_.to_milliseconds(ticks));
        }
        const double ns_each =
            static_cast<double>(passed.count()) / static_cast<double>(now.ticks - begin_.ticks);
        return static_cast<int64_t>(static_cast<double>(ticks.value) * ns_each / 1e6);
    }

 private:
    Reading begin_;
    TscRate nominal_;
};

}  // namespace penstock
