// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/tsc_measure.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace penstock {
namespace tsc_measure_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kHz = 2'445'420'000;  // DPDK reports 2.45 GHz
constexpr uint64_t kBegin = 77'000'000'000;
const TscMeasure kMeasure({kBegin, seconds(500)}, TscRate{2'450'000'000});

TscMeasure::Reading after(std::chrono::nanoseconds passed) {
    return {
        kBegin + static_cast<uint64_t>(static_cast<double>(kHz) * 1e-9 * static_cast<double>(passed.count())),
        seconds(500) + passed};
}

TEST(TscMeasure, ADayIsADayAlthoughTheNominalFrequencyIsRounded) {
    EXPECT_NEAR(static_cast<double>(kMeasure.milliseconds({kHz * 86'400}, after(hours(25)))), 86'400'000, 10);
    EXPECT_NEAR(static_cast<double>(kMeasure.milliseconds({kHz * 86'400}, after(seconds(2)))), 86'400'000, 10)
        << "a connection of a former process";
}

TEST(TscMeasure, TheFirstSecondHasTheNominalFrequency) {
    EXPECT_EQ(kMeasure.milliseconds({2'450'000'000}, after(milliseconds(999))), 1'000);
    EXPECT_EQ(kMeasure.milliseconds({2'450'000'000}, after(milliseconds(1'001))), 1'001);
}

TEST(TscMeasure, ACounterThatWasSetBackIsNotMeasured) {
    EXPECT_EQ(kMeasure.milliseconds({2'450'000'000}, {kBegin, seconds(900)}), 1'000);
    EXPECT_EQ(kMeasure.milliseconds({2'450'000'000}, {5, seconds(900)}), 1'000);
}

}  // namespace tsc_measure_test
}  // namespace penstock
