// SPDX-License-Identifier: Apache-2.0
// Latency histogram with fixed buckets, as Prometheus expects. Adding a value is cheap enough for any thread.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace penstock::sync {

struct LatencyHistogram {
    // Upper bounds in seconds. The target for a change is under 20 ms to the last worker, so the buckets are
    // densest there. The last ones distinguish a full state at scale (10 s) from a gateway that hangs.
    static constexpr std::array<double, 15> kBounds{0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05,
                                                    0.1,   0.25,  0.5,   1,    2.5,   10,   30};

    std::array<uint64_t, kBounds.size() + 1> counts{};  // the last one: above every bound
    double sum_s = 0;

    void observe(std::chrono::nanoseconds took) noexcept {
        const double seconds = std::chrono::duration<double>(took).count();
        const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
        ++counts[static_cast<size_t>(bucket)];
        sum_s += seconds;
    }
    bool operator==(const LatencyHistogram&) const = default;
};

}  // namespace penstock::sync
