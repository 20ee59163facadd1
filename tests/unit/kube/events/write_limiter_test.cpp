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

// --status-qps: a burst of two seconds, then the rate. The common rate follows, so that two other writes a
// second remain.
TEST(WriteLimiter, TheStatusRateIsThatOfTheOption_APISYNC020) {
    for (const uint32_t rate : {1U, 8U, 50U, kStatusRateMax}) {
        WriteLimiter limiter(rate);
        EXPECT_EQ(limiter.status_per_s(), rate);
        EXPECT_EQ(writes_between(limiter, WriteLane::Status, kStart, kStart + 1ms), 2 * rate);
        EXPECT_EQ(writes_between(limiter, WriteLane::Status, kStart + 1ms, kStart + 10'001ms), 10 * rate);
        EXPECT_GE(writes_between(limiter, WriteLane::Ordinary, kStart + 10'200ms, kStart + 10'201ms), 20U)
            << "rate " << rate;
    }
}

TEST(WriteLimiter, AHighStatusRateIsNoRateForEvents_APISYNC020) {
    WriteLimiter limiter(kStatusRateMax);
    EXPECT_EQ(writes_between(limiter, WriteLane::Ordinary, kStart, kStart + 1ms), 20U);
    EXPECT_EQ(writes_between(limiter, WriteLane::Ordinary, kStart + 1ms, kStart + 10'001ms), 100U);
    EXPECT_EQ(writes_between(limiter, WriteLane::Status, kStart + 10'200ms, kStart + 10'201ms),
              2 * kStatusRateMax)
        << "Events take nothing from the status";
}

TEST(WriteLimiter, ALowStatusRateLeavesTheRestToEvents_APISYNC020) {
    WriteLimiter limiter(1);
    uint32_t written = 0;
    for (Time now = kStart; now < kStart + 60s; now += 10ms) {
        written += writes_between(limiter, WriteLane::Status, now, now + 1ms) +
                   writes_between(limiter, WriteLane::Ordinary, now, now + 1ms);
    }
    EXPECT_NEAR(written, 20 + 60 * 10, 12) << "of all lanes: 10 a second and a burst of 20";
}

}  // namespace write_limiter_test
}  // namespace penstock::kube
