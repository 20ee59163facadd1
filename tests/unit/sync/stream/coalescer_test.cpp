// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/coalescer.hpp"

#include <gtest/gtest.h>

namespace penstock::sync {
namespace coalescer_test {

using namespace std::chrono_literals;
using Time = Coalescer::Time;

constexpr Time kStart{1h};

TEST(Coalescer, ASingleChangeAfterQuietGoesAsSoonAsItHasSettled_GEN008) {
    Coalescer coalescer(50ms);
    EXPECT_FALSE(coalescer.due());
    coalescer.on_change(kStart);
    EXPECT_EQ(coalescer.due(), kStart + kSettle);
    EXPECT_EQ(coalescer.oldest(), kStart);
    coalescer.on_taken(kStart + kSettle);
    EXPECT_FALSE(coalescer.due());
    coalescer.on_change(kStart + 10s);
    EXPECT_EQ(coalescer.due(), kStart + 10s + kSettle) << "the window of the last one is long over";
}

TEST(Coalescer, ChangesThatFollowCloselyAreTakenTogether_GEN008) {
    Coalescer coalescer(50ms);
    coalescer.on_change(kStart);
    coalescer.on_change(kStart + 2ms);
    EXPECT_EQ(coalescer.due(), kStart + 2ms + kSettle);
    for (auto at = 4ms; at < 20ms; at += 2ms) {
        coalescer.on_change(kStart + at);
    }
    EXPECT_EQ(coalescer.due(), kStart + kSettleMax) << "patience ends";
    EXPECT_EQ(coalescer.oldest(), kStart);
}

TEST(Coalescer, AStormIsTakenOnceInAWindow_GEN008) {
    Coalescer coalescer(50ms);
    int taken = 0;
    for (auto at = 0ms; at < 1s; at += 1ms) {
        coalescer.on_change(kStart + at);
        if (*coalescer.due() <= kStart + at) {
            coalescer.on_taken(kStart + at);
            ++taken;
        }
    }
    EXPECT_GE(taken, 19);
    EXPECT_LE(taken, 21);
}

TEST(Coalescer, ACompleteChangeAfterQuietGoesAtOnce_GEN008) {
    Coalescer coalescer(50ms);
    coalescer.on_change(kStart, Extent::Complete);
    EXPECT_EQ(coalescer.due(), kStart);
    coalescer.on_taken(kStart);
    coalescer.on_change(kStart + 1ms);
    EXPECT_EQ(coalescer.due(), kStart + 1ms + kSettle) << "as if the first one had not been there";
    coalescer.on_taken(kStart + 1ms + kSettle);
    coalescer.on_change(kStart + 10ms, Extent::Complete);
    EXPECT_EQ(coalescer.due(), kStart + 1ms + kSettle + 50ms) << "one batch in a window is early";
}

TEST(Coalescer, AnOpenChangeMakesTheWholeBatchSettle_GEN008) {
    Coalescer coalescer(50ms);
    coalescer.on_change(kStart);
    coalescer.on_change(kStart + 1ms, Extent::Complete);
    EXPECT_EQ(coalescer.due(), kStart + 1ms + kSettle);
    coalescer.on_taken(kStart + 1ms + kSettle);
    EXPECT_FALSE(coalescer.due());
    coalescer.on_change(kStart + 1s, Extent::Complete);
    EXPECT_EQ(coalescer.due(), kStart + 1s) << "the next batch is a new one";
}

TEST(Coalescer, AStormOfCompleteChangesIsTakenOnceInAWindowButForTheFirst_GEN008) {
    Coalescer coalescer(50ms);
    int taken = 0;
    for (auto at = 0ms; at < 1s; at += 1ms) {
        coalescer.on_change(kStart + at, Extent::Complete);
        if (*coalescer.due() <= kStart + at) {
            coalescer.on_taken(kStart + at);
            ++taken;
        }
    }
    EXPECT_GE(taken, 20);
    EXPECT_LE(taken, 22);
}

TEST(Coalescer, WithoutAWindowNothingIsHeldBack) {
    Coalescer coalescer(0ms);
    coalescer.on_change(kStart);
    EXPECT_EQ(coalescer.due(), kStart);
    coalescer.on_taken(kStart);
    coalescer.on_change(kStart);
    EXPECT_EQ(coalescer.due(), kStart);
}

}  // namespace coalescer_test
}  // namespace penstock::sync
