// SPDX-License-Identifier: Apache-2.0
#include "control/kube/events/write_limiter.hpp"

#include <gtest/gtest.h>

namespace penstock::kube {
namespace write_limiter_test {

using namespace std::chrono_literals;
using Time = WriteLimiter::Time;

constexpr Time kStart{1h};

uint32_t writes_between(WriteLimiter& limiter, WriteLane lane, Time from, Time to) {
    uint32_t written = 0;
    for (Time now = from; now < to; now += 1ms) {
        while (limiter.take(lane, now)) {
            ++written;
        }
    }
    return written;
}

TEST(WriteLimiter, AnEventStormIsTwentyAndThenTenASecond_APISYNC020) {
    WriteLimiter limiter;
    EXPECT_EQ(writes_between(limiter, WriteLane::Ordinary, kStart, kStart + 1ms), 20U);
    EXPECT_EQ(writes_between(limiter, WriteLane::Ordinary, kStart + 1ms, kStart + 10'001ms), 100U);
}

TEST(WriteLimiter, ABurstIsSavedUpOnlyOnce_APISYNC020) {
    WriteLimiter limiter;
    EXPECT_TRUE(limiter.take(WriteLane::Ordinary, kStart));
    EXPECT_EQ(writes_between(limiter, WriteLane::Ordinary, kStart + 1h, kStart + 1h + 1ms), 20U);
}

TEST(WriteLimiter, ALeaseNeverWaitsBehindEvents_APISYNC020) {
    WriteLimiter limiter;
    for (Time now = kStart; now < kStart + 60s; now += 2s) {
        writes_between(limiter, WriteLane::Ordinary, now, now + 1999ms);
        EXPECT_FALSE(limiter.take(WriteLane::Ordinary, now + 1999ms)) << "the storm has used up everything";
        EXPECT_TRUE(limiter.take(WriteLane::Lease, now + 1999ms));
    }
}

TEST(WriteLimiter, EventsPayForWhatALeaseOverdrew_APISYNC020) {
    WriteLimiter limiter;
    const uint32_t first = writes_between(limiter, WriteLane::Ordinary, kStart, kStart + 1ms);
    for (int lease = 0; lease < 5; ++lease) {
        EXPECT_TRUE(limiter.take(WriteLane::Lease, kStart + 1ms));
    }
    EXPECT_EQ(first + 5 + writes_between(limiter, WriteLane::Ordinary, kStart + 1ms, kStart + 10'001ms),
              20U + 100U);
}

TEST(WriteLimiter, AWildLeaseWriterIsBounded_APISYNC020) {
    WriteLimiter limiter;
    EXPECT_EQ(writes_between(limiter, WriteLane::Lease, kStart, kStart + 1ms),
              20U + WriteLimiter::kLeaseOverdraft);
}

TEST(WriteLimiter, SaysWhenTheNextOneMayGo_APISYNC020) {
    WriteLimiter limiter;
    EXPECT_LE(limiter.next_at(WriteLane::Ordinary), kStart);
    writes_between(limiter, WriteLane::Ordinary, kStart, kStart + 1ms);
    const Time next = limiter.next_at(WriteLane::Ordinary);
    EXPECT_FALSE(limiter.take(WriteLane::Ordinary, next - 1ns));
    EXPECT_LE(limiter.next_at(WriteLane::Lease), kStart);
    EXPECT_TRUE(limiter.take(WriteLane::Ordinary, next));
}

}  // namespace write_limiter_test
}  // namespace penstock::kube
