// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/stop_drain.hpp"

#include <gtest/gtest.h>

namespace penstock::gateway {
namespace stop_drain_test {

using namespace std::chrono_literals;
constexpr StopDrain::Clock::time_point kNow{1h};

TEST(StopDrain, WithoutTheOptionASignalStopsAtOnce_PRESENCE003) {
    StopDrain stop(0s);
    EXPECT_EQ(stop.take_signal(kNow), StopDrain::Answer::StopNow);
    EXPECT_FALSE(stop.deadline());
}

TEST(StopDrain, TheFirstSignalDrainsAndTheSecondStops_PRESENCE003) {
    StopDrain stop(30s);
    EXPECT_FALSE(stop.is_over(kNow, DrainStep::Done)) << "drained by an operator, and no signal yet";
    EXPECT_EQ(stop.take_signal(kNow), StopDrain::Answer::DrainFirst);
    EXPECT_EQ(stop.deadline(), kNow + 30s);
    for (const DrainStep step : {DrainStep::Serving, DrainStep::Depreferred, DrainStep::Withdrawn}) {
        EXPECT_FALSE(stop.is_over(kNow + 29s, step)) << to_string(step);
        EXPECT_TRUE(stop.is_over(kNow + 30s, step)) << to_string(step);
    }
    EXPECT_TRUE(stop.is_over(kNow + 1s, DrainStep::Done));
    EXPECT_EQ(stop.take_signal(kNow + 5s), StopDrain::Answer::StopNow);
}

}  // namespace stop_drain_test
}  // namespace penstock::gateway
