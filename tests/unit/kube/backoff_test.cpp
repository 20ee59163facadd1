// SPDX-License-Identifier: Apache-2.0
#include "control/kube/backoff.hpp"

#include <gtest/gtest.h>

#include <set>

namespace penstock::kube {
namespace backoff_test {

using namespace std::chrono_literals;
using Time = Backoff::Time;

constexpr Time kStart{1h};

// The wait times of `count` failures, each right after the previous wait.
std::vector<std::chrono::milliseconds> waits(Backoff& backoff, int count) {
    std::vector<std::chrono::milliseconds> waited;
    Time now = kStart;
    for (int failure = 0; failure < count; ++failure) {
        const Time next = backoff.after_failure(now);
        waited.push_back(std::chrono::round<std::chrono::milliseconds>(next - now));
        now = next;
    }
    return waited;
}

TEST(Backoff, DoublesFrom800MillisecondsTo30Seconds_APISYNC012) {
    Backoff backoff([] { return 0.0; });
    EXPECT_EQ(waits(backoff, 8), (std::vector<std::chrono::milliseconds>{800ms, 1600ms, 3200ms, 6400ms,
                                                                         12800ms, 25600ms, 30s, 30s}));
}

TEST(Backoff, MultipliesEachWaitByUpToTwo_APISYNC012) {
    Backoff backoff([] { return 0.5; });
    EXPECT_EQ(waits(backoff, 3), (std::vector<std::chrono::milliseconds>{1200ms, 2400ms, 4800ms}));
    Backoff longest([] { return 0.999999; });
    EXPECT_EQ(waits(longest, 7).back(), 60s);
}

TEST(Backoff, AHundredGatewaysRestartingTogetherSpreadOut_APISYNC012) {
    std::set<Time> first_tries;
    for (int gateway = 0; gateway < 100; ++gateway) {
        Backoff backoff(system_random());
        const Time next = backoff.after_failure(kStart);
        EXPECT_GE(next, kStart + 800ms);
        EXPECT_LT(next, kStart + 1600ms);
        first_tries.insert(next);
    }
    EXPECT_GT(first_tries.size(), 90U);
}

TEST(Backoff, BeginsAnewAfter120SecondsWithoutAFailure_APISYNC012) {
    Backoff backoff([] { return 0.0; });
    EXPECT_TRUE(backoff.is_rested(kStart));
    Time now = backoff.after_failure(kStart);
    now = backoff.after_failure(now);
    EXPECT_FALSE(backoff.is_rested(now + 120s - 1ns));
    EXPECT_EQ(backoff.after_failure(now + 119s) - (now + 119s), 3200ms);
    now = now + 119s + 3200ms;
    EXPECT_TRUE(backoff.is_rested(now + 120s));
    EXPECT_EQ(backoff.after_failure(now + 120s) - (now + 120s), 800ms);
}

TEST(Backoff, RetryAfterIsALowerBoundThatIsSpreadToo_APISYNC012) {
    Backoff backoff([] { return 0.25; });
    EXPECT_EQ(backoff.after_failure(kStart, 8s), kStart + 10s);
    EXPECT_EQ(backoff.after_failure(kStart, 1s), kStart + 2s) << "1.6 s is more than what was asked for";
    EXPECT_EQ(backoff.after_failure(kStart, 24h), kStart + 750s) << "no server switches us off for a day";
}

}  // namespace backoff_test
}  // namespace penstock::kube
