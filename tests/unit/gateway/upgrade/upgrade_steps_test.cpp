// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/upgrade_steps.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::gateway {
namespace upgrade_steps_test {

using Step = UpgradeSteps::Step;
using Event = UpgradeSteps::Event;
using Order = UpgradeSteps::Order;
using Orders = std::vector<Order>;

class UpgradeStepsTest : public testing::Test {
 protected:
    Orders take(Event event) {
        const auto result = steps_.take(event, now_);
        is_error_ = result.is_error;
        return result.orders;
    }
    // Leads to `step` of an upgrade in which nothing fails.
    void reach(Step step) {
        if (step != Step::Idle) {
            take(Event::Requested);
        }
        if (step == Step::HandingOver || step == Step::TakingOver) {
            take(Event::Prepared);
        }
        if (step == Step::TakingOver) {
            take(Event::HandedOver);
        }
        ASSERT_EQ(steps_.step(), step);
    }
    Orders take_deadline() {
        now_ = *steps_.deadline();
        return steps_.take_time(now_).orders;
    }

    UpgradeSteps::Clock::time_point now_{std::chrono::hours(1)};
    UpgradeSteps steps_;
    bool is_error_ = false;
};

TEST_F(UpgradeStepsTest, ReplacesAProcessByItsSuccessor) {
    EXPECT_EQ(take(Event::Requested), Orders{Order::StartSuccessor});
    EXPECT_EQ(take(Event::Prepared), Orders{Order::SendHandOver});
    EXPECT_EQ(take(Event::HandedOver), Orders{Order::SendTakeOver});
    EXPECT_EQ(take(Event::FormerEnded), Orders{}) << "it releases its memory after it has handed over";
    EXPECT_EQ(take(Event::Forwards), Orders{Order::SuccessorIsCurrent});
    EXPECT_EQ(steps_.step(), Step::Idle);
    EXPECT_FALSE(steps_.deadline());
    EXPECT_EQ(take(Event::Requested), Orders{Order::StartSuccessor}) << "again";
}

TEST_F(UpgradeStepsTest, RefusesASecondUpgrade) {
    for (const Step step : {Step::Preparing, Step::HandingOver, Step::TakingOver}) {
        steps_ = UpgradeSteps();
        reach(step);
        EXPECT_EQ(take(Event::Requested), Orders{});
        EXPECT_TRUE(is_error_);
        EXPECT_EQ(steps_.step(), step);
    }
}

TEST_F(UpgradeStepsTest, EndsWithItsProcessOutsideAnUpgrade) {
    EXPECT_EQ(take(Event::FormerEnded), Orders{Order::End});
}

TEST_F(UpgradeStepsTest, FormerProcessContinuesIfTheSuccessorDoesNotStart) {
    reach(Step::Preparing);
    EXPECT_EQ(take(Event::SuccessorEnded), Orders{});
    EXPECT_TRUE(is_error_);
    EXPECT_EQ(steps_.step(), Step::Idle);
    EXPECT_EQ(take(Event::FormerEnded), Orders{Order::End});
}

TEST_F(UpgradeStepsTest, SuccessorThatIsNotPreparedInTimeIsKilled) {
    reach(Step::Preparing);
    EXPECT_EQ(steps_.take_time(now_).orders, Orders{}) << "before the deadline";
    EXPECT_EQ(take_deadline(), Orders{Order::KillSuccessor});
    EXPECT_FALSE(steps_.deadline()) << "it is killed once";
    EXPECT_EQ(take(Event::SuccessorEnded), Orders{});
    EXPECT_EQ(steps_.step(), Step::Idle);
}

TEST_F(UpgradeStepsTest, SuccessorThatPreparesIsWaitedForWhileItMakesSteps) {
    reach(Step::Preparing);
    now_ += std::chrono::seconds(50);
    EXPECT_EQ(take(Event::Progress), Orders{});
    EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kPrepareMax);
    EXPECT_EQ(take_deadline(), Orders{Order::KillSuccessor});
    EXPECT_EQ(take(Event::Progress), Orders{}) << "sent before it was killed";
    EXPECT_FALSE(steps_.deadline());
}

TEST_F(UpgradeStepsTest, SuccessorTakesOverWhenTheFormerProcessIsKilledBefore) {
    reach(Step::Preparing);
    EXPECT_EQ(take(Event::FormerEnded), Orders{Order::SendTakeOver});
    EXPECT_EQ(take(Event::Prepared), Orders{});
    EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kTakeOverMax);
    EXPECT_EQ(take(Event::Forwards), Orders{Order::SuccessorIsCurrent});
}

TEST_F(UpgradeStepsTest, SuccessorThatPreparesKeepsItsLimitWhenTheFormerProcessIsKilled) {
    reach(Step::Preparing);
    take(Event::FormerEnded);
    now_ += std::chrono::seconds(20);
    take(Event::Progress);
    EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kPrepareMax);
    take(Event::Prepared);
    EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kTakeOverMax);
    take(Event::Progress);
    EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kTakeOverMax);
}

TEST_F(UpgradeStepsTest, SuccessorTakesOverWhenTheFormerProcessIsKilledWhileItHandsOver) {
    reach(Step::HandingOver);
    EXPECT_EQ(take(Event::FormerEnded), Orders{Order::SendTakeOver});
    EXPECT_EQ(take(Event::Forwards), Orders{Order::SuccessorIsCurrent});
}

TEST_F(UpgradeStepsTest, FormerProcessThatDoesNotHandOverInTimeIsKilled) {
    reach(Step::HandingOver);
    EXPECT_EQ(take_deadline(), Orders{Order::KillFormer});
    EXPECT_EQ(take(Event::FormerEnded), Orders{Order::SendTakeOver});
}

TEST_F(UpgradeStepsTest, FormerBinaryStartsAgainIfTheSuccessorEndsWhileThePortsAreClosed) {
    for (const Event stopped : {Event::HandedOver, Event::FormerEnded}) {
        steps_ = UpgradeSteps();
        reach(Step::HandingOver);
        EXPECT_EQ(take(Event::SuccessorEnded), Orders{});
        EXPECT_TRUE(is_error_);
        EXPECT_EQ(take(stopped), Orders{Order::StartFormerBinary});
        EXPECT_EQ(steps_.step(), Step::Idle);
    }
}

TEST_F(UpgradeStepsTest, FormerProcessThatDoesNotStopIsKilledBeforeItsBinaryStartsAgain) {
    reach(Step::HandingOver);
    take(Event::SuccessorEnded);
    EXPECT_EQ(take_deadline(), Orders{Order::KillFormer});
    EXPECT_EQ(take(Event::FormerEnded), Orders{Order::StartFormerBinary});
}

TEST_F(UpgradeStepsTest, FormerBinaryStartsAgainIfTheSuccessorDoesNotForward) {
    reach(Step::TakingOver);
    EXPECT_EQ(*steps_.deadline(), now_ + std::chrono::seconds(5));
    EXPECT_EQ(take_deadline(), Orders{Order::KillSuccessor});
    EXPECT_EQ(take(Event::SuccessorEnded), Orders{Order::StartFormerBinary});
    EXPECT_TRUE(is_error_);
    EXPECT_EQ(take(Event::FormerEnded), Orders{Order::End});
}

// As long as it makes steps: a card may take seconds to start.
TEST_F(UpgradeStepsTest, SuccessorIsWaitedForWhileItMakesSteps) {
    reach(Step::TakingOver);
    for (int port = 0; port < 8; ++port) {
        now_ += std::chrono::seconds(4);
        EXPECT_EQ(steps_.take_time(now_).orders, Orders{}) << port;
        EXPECT_EQ(take(Event::Progress), Orders{});
        EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kTakeOverMax);
    }
    EXPECT_EQ(take_deadline(), Orders{Order::KillSuccessor});
    EXPECT_EQ(take(Event::Progress), Orders{}) << "sent before it was killed";
    EXPECT_FALSE(steps_.deadline());
    EXPECT_EQ(take(Event::SuccessorEnded), Orders{Order::StartFormerBinary});
}

// The pause is over then, and the start of the API takes long on a busy machine.
TEST_F(UpgradeStepsTest, SuccessorThatForwardsGetsMoreTimeToServeItsApi) {
    reach(Step::TakingOver);
    now_ += std::chrono::seconds(4);
    EXPECT_EQ(take(Event::Launched), Orders{});
    EXPECT_EQ(steps_.step(), Step::TakingOver);
    EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kServeMax);
    now_ += std::chrono::seconds(20);
    EXPECT_EQ(steps_.take_time(now_).orders, Orders{});
    EXPECT_EQ(take(Event::Progress), Orders{}) << "twins are served";
    EXPECT_GT(*steps_.deadline(), now_ + UpgradeSteps::kTakeOverMax) << "the limit stays";
    EXPECT_EQ(take(Event::Forwards), Orders{Order::SuccessorIsCurrent});
    EXPECT_FALSE(steps_.deadline());
}

TEST_F(UpgradeStepsTest, FormerBinaryStartsAgainIfTheSuccessorDoesNotServeItsApi) {
    reach(Step::TakingOver);
    take(Event::Launched);
    now_ = *steps_.deadline();
    const auto late = steps_.take_time(now_);
    EXPECT_EQ(late.orders, Orders{Order::KillSuccessor});
    EXPECT_EQ(late.remark, "upgrade: the successor did not serve its API in time");
    EXPECT_EQ(take(Event::SuccessorEnded), Orders{Order::StartFormerBinary});
    // The next one has the first limit again.
    reach(Step::TakingOver);
    EXPECT_EQ(*steps_.deadline(), now_ + UpgradeSteps::kTakeOverMax);
    now_ = *steps_.deadline();
    EXPECT_EQ(steps_.take_time(now_).remark, "upgrade: the successor did not forward in time");
}

TEST_F(UpgradeStepsTest, WorkersOfARestoredProcessChangeNoLimit) {
    for (const Step step : {Step::Idle, Step::HandingOver}) {
        steps_ = UpgradeSteps();
        reach(step);
        const auto deadline = steps_.deadline();
        EXPECT_EQ(take(Event::Progress), Orders{});
        EXPECT_EQ(take(Event::Launched), Orders{});
        EXPECT_EQ(steps_.deadline(), deadline);
        EXPECT_EQ(steps_.step(), step);
    }
}

}  // namespace upgrade_steps_test
}  // namespace penstock::gateway
