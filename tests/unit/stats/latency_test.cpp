// SPDX-License-Identifier: Apache-2.0
#include "dataplane/stats/latency.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::stats {
namespace latency_test {

TEST(LatencyBounds, AreAscendingAndExactAtEachRate) {
    EXPECT_TRUE(std::ranges::is_sorted(kLatencyBoundsUs));
    for (const uint64_t hz : {1'000'000'000U, 2'299'999'000U}) {
        const LatencyBounds bounds = latency_bounds(TscRate{hz});
        for (size_t i = 0; i < bounds.size(); ++i) {
            EXPECT_NEAR(static_cast<double>(bounds[i]),
                        static_cast<double>(kLatencyBoundsUs[i]) * static_cast<double>(hz) / 1e6, 1.0)
                << kLatencyBoundsUs[i];
        }
    }
}

// Prometheus: a bucket has the values less than or equal to its bound.
TEST(LatencyHistogram, ABoundBelongsToItsBucket) {
    const LatencyBounds bounds = latency_bounds(TscRate{});
    uint64_t sum = 0;
    LatencyHistogram histogram;
    for (size_t i = 0; i < bounds.size(); ++i) {
        histogram.add({bounds[i]}, bounds);
        EXPECT_EQ(histogram.buckets[i].read(), i == 0 ? 1U : 2U) << i;
        histogram.add({bounds[i] + 1}, bounds);
        EXPECT_EQ(histogram.buckets[i + 1].read(), 1U) << i;
        sum += 2 * bounds[i] + 1;
    }
    EXPECT_EQ(histogram.ticks.read(), sum);
    histogram.add({0}, bounds);
    EXPECT_EQ(histogram.buckets[0].read(), 2U);
}

}  // namespace latency_test
}  // namespace penstock::stats
