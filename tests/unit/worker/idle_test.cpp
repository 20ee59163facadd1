// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/idle.hpp"

#include <gtest/gtest.h>

namespace penstock::worker {
namespace idle_test {

constexpr TscRate kRate{1'000'000'000};  // a tick is a nanosecond
constexpr uint64_t kUs = 1'000;
constexpr TscTime kStart{1'000'000'000};

// Empty rounds of `round_ns`, for `for_ns`; each requested sleep lasts as long as requested.
struct Silence {
    uint64_t slept_ns = 0, sleeps = 0, shortest_ns = ~uint64_t{0}, longest_ns = 0;
    uint64_t polled_first_ns = 0;  // before the first sleep
};
Silence keep_silent(IdleWatch& watch, TscTime& now, uint64_t for_ns, uint64_t round_ns = 100) {
    Silence seen;
    const TscTime begin = now;
    while (ticks_between(begin, now).value < for_ns) {
        now = now + TscTicks{round_ns};
        const uint64_t length = watch.after_round(false, now).value;
        if (length > 0) {
            if (seen.sleeps++ == 0) {
                seen.polled_first_ns = ticks_between(begin, now).value;
            }
            seen.slept_ns += length;
            seen.shortest_ns = std::min(seen.shortest_ns, length);
            seen.longest_ns = std::max(seen.longest_ns, length);
            now = now + TscTicks{length};
        }
    }
    return seen;
}

TEST(Idle, PollingNeverSleeps) {
    IdleWatch watch(IdleMode::Poll, kRate, true);
    TscTime now = kStart;
    EXPECT_EQ(keep_silent(watch, now, 10'000 * kUs).sleeps, 0u);
}

TEST(Idle, TrafficWithoutGapsNeverSleeps) {
    IdleWatch watch(IdleMode::Adaptive, kRate, false);
    TscTime now = kStart;
    for (int i = 0; i < 100'000; ++i) {
        now = now + TscTicks{10 * kUs};
        EXPECT_EQ(watch.after_round(true, now).value, 0u);
    }
    // A packet every 0.1 ms, with 1,000 empty rounds between.
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(keep_silent(watch, now, 100 * kUs).sleeps, 0u);
        watch.after_round(true, now);
    }
}

TEST(Idle, SilenceIsSleptThroughInGrowingSteps) {
    IdleWatch watch(IdleMode::Adaptive, kRate, false);
    TscTime now = kStart;
    const Silence seen = keep_silent(watch, now, 100'000 * kUs);
    EXPECT_GE(seen.polled_first_ns, IdleWatch::kShortestUs * IdleWatch::kPartOfSilence * kUs);
    EXPECT_GE(seen.shortest_ns, IdleWatch::kShortestUs * kUs);
    EXPECT_EQ(seen.longest_ns, IdleWatch::kLongestUs * kUs);
    EXPECT_GT(seen.slept_ns, 98'000 * kUs);  // all but the first 0.16 ms, and a round for each sleep
}

TEST(Idle, NoSleepIsLongerThanItsPartOfTheSilence) {
    for (const bool interrupted : {false, true}) {
        IdleWatch watch(IdleMode::Adaptive, kRate, interrupted);
        TscTime now = kStart;
        TscTime silent_since = kStart;
        uint64_t longest = 0;
        for (int i = 0; i < 100'000; ++i) {
            now = now + TscTicks{100};
            if (i == 0) {
                silent_since = now;
            }
            const uint64_t length = watch.after_round(false, now).value;
            EXPECT_LE(length * IdleWatch::kPartOfSilence, ticks_between(silent_since, now).value);
            longest = std::max(longest, length);
            now = now + TscTicks{length};
        }
        EXPECT_EQ(longest, (interrupted ? IdleWatch::kLongestInterruptedUs : IdleWatch::kLongestUs) * kUs);
    }
}

// A packet resets the watch to its initial state, whatever its current state.
TEST(Idle, PacketEndsTheSilence) {
    IdleWatch watch(IdleMode::Adaptive, kRate, false);
    TscTime now = kStart;
    keep_silent(watch, now, 50'000 * kUs);
    watch.after_round(true, now);
    const Silence again = keep_silent(watch, now, 50'000 * kUs);
    EXPECT_GE(again.polled_first_ns, IdleWatch::kShortestUs * IdleWatch::kPartOfSilence * kUs);
}

// A worker that lost its CPU for 4 ms between two rounds has not been idle for 4 ms.
TEST(Idle, AbsenceIsNoSilence) {
    IdleWatch watch(IdleMode::Adaptive, kRate, false);
    TscTime now = kStart;
    watch.after_round(true, now);
    for (uint32_t round = 0; round < IdleWatch::kEmptyRounds; ++round) {
        now = now + TscTicks{4'000 * kUs};
        EXPECT_EQ(watch.after_round(false, now).value, 0u) << round;
    }
    now = now + TscTicks{4'000 * kUs};
    EXPECT_EQ(watch.after_round(false, now).value, IdleWatch::kLongestUs * kUs);
}

// The figures hold in ticks of any clock.
TEST(Idle, RateOfTheClockDoesNotMatter) {
    constexpr TscRate kFast{3'700'000'000};
    IdleWatch watch(IdleMode::Adaptive, kFast, false);
    uint64_t longest = 0;
    TscTime now = kStart;
    for (int i = 0; i < 100'000; ++i) {
        now = now + TscTicks{370};
        longest = std::max(longest, watch.after_round(false, now).value);
    }
    EXPECT_EQ(longest, IdleWatch::kLongestUs * kFast.hz / 1'000'000);
}

}  // namespace idle_test
}  // namespace penstock::worker
