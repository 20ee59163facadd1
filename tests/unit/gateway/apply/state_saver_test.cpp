// SPDX-License-Identifier: Apache-2.0
// Saves of the state file that fail and are repeated.
#include "control/gateway/apply/state_saver.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace penstock::gateway {
namespace state_saver_test {

TEST(StateSaver, RepeatsAfterPausesThatDoubleUpToABound) {
    using std::chrono::milliseconds;
    EXPECT_EQ(StateSaver::pause_after(1), milliseconds(500));
    EXPECT_EQ(StateSaver::pause_after(3), milliseconds(2'000));
    EXPECT_EQ(StateSaver::pause_after(7), StateSaver::kRetryMax);
    EXPECT_EQ(StateSaver::pause_after(UINT64_MAX), StateSaver::kRetryMax);
}

TEST(StateSaver, RestsInProportionToWhatAWriteTakesUpToABound) {
    using std::chrono::milliseconds;
    EXPECT_EQ(StateSaver::rest_after(milliseconds(2)), milliseconds(18));
    EXPECT_EQ(StateSaver::rest_after(milliseconds(600)), milliseconds(5'400));
    EXPECT_EQ(StateSaver::rest_after(std::chrono::hours(1)), StateSaver::kRestMax);
}

}  // namespace state_saver_test
}  // namespace penstock::gateway
