// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/time.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace time_test {

TEST(TscTimeline, GoesOnWhereReadingsBeginAnew) {
    struct Step {
        uint64_t reading;
        uint64_t time;
    };
    TscTimeline timeline;
    for (const Step& step : std::vector<Step>{{1'000, 1'000},
                                              {1'000, 1'000},
                                              {5'000, 5'000},
                                              {4'999, 5'000},  // from another CPU, one tick behind
                                              {5'100, 5'101},
                                              {7, 5'101},  // restored on another host
                                              {107, 5'201},
                                              {0, 5'201},
                                              {1'000'000, 1'005'201}}) {
        EXPECT_EQ(timeline.shown(step.reading), timeline.shown(step.reading)) << "asking leaves no trace";
        EXPECT_EQ(timeline.at(step.reading).value, step.time) << step.reading;
        EXPECT_EQ(timeline.shown(step.reading).value, step.time) << step.reading;
    }
}

}  // namespace time_test
}  // namespace penstock
