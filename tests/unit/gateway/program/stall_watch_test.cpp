// SPDX-License-Identifier: Apache-2.0
// Detection of stalled loops, with a clock that is an argument.
#include "control/gateway/program/stall_watch.hpp"

#include <gtest/gtest.h>

namespace penstock::gateway {
namespace stall_watch_test {

using namespace std::chrono_literals;

class StallWatchTest : public testing::Test {
 protected:
    static constexpr auto kLook = 200ms;

    // The changes found by the next check: "worker stalled in receiving", "worker goes round".
    std::vector<std::string> look() {
        now_ += kLook;
        std::vector<std::string> out;
        for (const auto& change : watch_.look(now_, readings_)) {
            silence_ = change.silence;
            out.push_back(watch_.loops()[change.loop].name +
                          (change.has_stalled ? " stalled in " + change.stage : " goes round"));
        }
        return out;
    }
    void both_go_round() {
        ++readings_[0].rounds;
        ++readings_[1].rounds;
    }

    StallWatch watch_{
        {{.name = "worker", .limit = 1s, .forwards = true}, {.name = "compiler", .limit = 10s}}};
    std::vector<LoopReading> readings_{{.rounds = 1, .stage = "receiving"},
                                       {.rounds = 1, .stage = "thinking"}};
    StallWatch::Time now_{1h};
    std::chrono::milliseconds silence_{};
};

using Changes = std::vector<std::string>;

TEST_F(StallWatchTest, ALoopThatGoesRoundHasNotStalled) {
    for (int i = 0; i < 100; ++i) {
        both_go_round();
        EXPECT_EQ(look(), Changes{});
    }
    EXPECT_TRUE(watch_.stalled().empty());
}

TEST_F(StallWatchTest, AStallIsFoundAtItsLimitOnceAndEndsWithTheNextRound) {
    look();
    for (int i = 0; i < 4; ++i) {
        ++readings_[1].rounds;
        EXPECT_EQ(look(), Changes{}) << "0.8 s and less";
    }
    ++readings_[1].rounds;
    EXPECT_EQ(look(), Changes{"worker stalled in receiving"});
    EXPECT_EQ(silence_, 1s);
    for (int i = 0; i < 20; ++i) {
        ++readings_[1].rounds;
        EXPECT_EQ(look(), Changes{}) << "reported once";
    }
    ASSERT_EQ(watch_.stalled().size(), 1U);
    EXPECT_EQ(watch_.stalled()[0].loop, 0U);
    EXPECT_EQ(watch_.stalled()[0].stage, "receiving");
    both_go_round();
    EXPECT_EQ(look(), Changes{"worker goes round"});
    EXPECT_EQ(silence_, 5'200ms);
    EXPECT_TRUE(watch_.stalled().empty());
}

TEST_F(StallWatchTest, EachLoopHasItsOwnLimit) {
    look();
    for (int i = 0; i < 49; ++i) {
        ++readings_[0].rounds;
        EXPECT_EQ(look(), Changes{});
    }
    ++readings_[0].rounds;
    EXPECT_EQ(look(), Changes{"compiler stalled in thinking"});
}

TEST_F(StallWatchTest, ALoopThatRestsNeedsNoRounds) {
    readings_[1].is_resting = true;
    for (int i = 0; i < 100; ++i) {
        ++readings_[0].rounds;
        EXPECT_EQ(look(), Changes{});
    }
    readings_[1].is_resting = false;  // work has arrived: the limit counts from here
    for (int i = 0; i < 49; ++i) {
        ++readings_[0].rounds;
        EXPECT_EQ(look(), Changes{});
    }
    ++readings_[0].rounds;
    EXPECT_EQ(look(), Changes{"compiler stalled in thinking"});
}

// As after SIGSTOP, or in a paused virtual machine: neither the loops nor this watch could run.
TEST_F(StallWatchTest, APauseOfTheWholeProcessIsNoStall) {
    look();
    now_ += 1h;
    EXPECT_EQ(look(), Changes{}) << "one look after the pause";
    both_go_round();
    EXPECT_EQ(look(), Changes{});
}

}  // namespace stall_watch_test
}  // namespace penstock::gateway
