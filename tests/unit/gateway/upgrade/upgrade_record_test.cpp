// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/upgrade_record.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "control/gateway/upgrade/step_names.hpp"

namespace penstock::gateway {
namespace upgrade_record_test {

using std::chrono::milliseconds;

class UpgradeRecordTest : public testing::Test {
 protected:
    UpgradeRecord::Clock::time_point at(int ms) const { return begin_ + milliseconds(ms); }
    // A process reports steps.
    void report(const std::vector<std::pair<std::string, int>>& steps, const std::string& version = "") {
        v1::UpgradeNote note;
        note.set_version(version);
        for (const auto& [name, ms] : steps) {
            v1::UpgradeStep& step = *note.add_steps();
            step.set_name(name);
            step.set_at_us(monotonic_us(at(ms)));
        }
        record_.add(note);
    }

    const UpgradeRecord::Clock::time_point begin_{std::chrono::hours(7)};
    UpgradeRecord record_;
};

TEST_F(UpgradeRecordTest, HasStepsOfBothProcessesInTheOrderOfTimeAndThePauseBetweenThem) {
    record_.begin("/usr/bin/penstockd", "unix:", begin_);
    record_.add_step(step::kSuccessorStarted, at(2));
    report({{step::kPrepared, 300}}, "1.2.3");
    // The successor's report may arrive first.
    report({{step::kTookOver, 352}, {step::kForwards, 362}});
    report({{step::kWorkersStopped, 350}, {step::kHandedOver, 351}});
    EXPECT_EQ(record_.note().record().state(), v1::Upgrade::STATE_RUNNING);
    record_.succeed(at(400));
    const v1::UpgradeNote note = record_.note();
    EXPECT_EQ(note.since_us(), monotonic_us(at(400)));
    const v1::Upgrade& upgrade = note.record();
    EXPECT_EQ(upgrade.number(), 1U);
    EXPECT_EQ(upgrade.state(), v1::Upgrade::STATE_DONE);
    EXPECT_EQ(upgrade.version(), "1.2.3");
    EXPECT_EQ(upgrade.pause_us(), 12'000U);
    std::string steps;
    for (const v1::UpgradeStep& each : upgrade.steps()) {
        steps += each.name() + " " + std::to_string(each.at_us()) + "; ";
    }
    EXPECT_EQ(steps,
              "successor started 2000; prepared 300000; workers stopped 350000; handed over 351000; "
              "taken over 352000; forwards 362000; ");
    EXPECT_EQ(record_.summary(),
              "upgrade 1 of /usr/bin/penstockd is done, the pause was 12.0 ms; ms since its request: "
              "successor started 2.0, prepared 300.0, workers stopped 350.0, handed over 351.0, "
              "taken over 352.0, forwards 362.0");
}

TEST_F(UpgradeRecordTest, PauseBeginsWithTheEndOfAFormerProcessThatHasNotHandedOver) {
    record_.begin("/b", "SIGUSR2", begin_);
    record_.add_step(step::kFormerEnded, at(100));
    report({{step::kForwards, 130}});
    record_.succeed(at(131));
    EXPECT_EQ(record_.note().record().pause_us(), 30'000U);
}

TEST_F(UpgradeRecordTest, PauseBeginsWithTheOrderToAFormerProcessThatWasKilled) {
    record_.begin("/b", "SIGUSR2", begin_);
    record_.add_step(step::kAskedToHandOver, at(90));
    record_.add_step(step::kFormerEnded, at(5'090));
    report({{step::kForwards, 5'130}});
    record_.succeed(at(5'131));
    EXPECT_EQ(record_.note().record().pause_us(), 5'040'000U);
}

TEST_F(UpgradeRecordTest, FailureHasItsReasonsAndTheEndOfTheLogAsText) {
    record_.begin("/b", "SIGUSR2", begin_);
    record_.note_trouble("one");
    record_.note_trouble("two");
    record_.fail({"cannot start: x", "\xff\x1b[31m"}, at(5));
    const v1::Upgrade upgrade = record_.note().record();
    EXPECT_EQ(upgrade.why(), "one; two");
    ASSERT_EQ(upgrade.last_lines_size(), 2);
    EXPECT_EQ(upgrade.last_lines(1), "??[31m");
    EXPECT_EQ(upgrade.failed(), 1U);
    EXPECT_EQ(upgrade.pause_us(), 0U);
}

TEST_F(UpgradeRecordTest, CountsUpgradesAndStartsEachAnew) {
    record_.begin("/b", "SIGUSR2", begin_);
    record_.note_trouble("one");
    record_.fail({"line"}, at(5));
    record_.begin("/c", "SIGUSR2", at(10));
    record_.add_step(step::kSuccessorStarted, at(11));
    record_.succeed(at(20));
    const v1::Upgrade upgrade = record_.note().record();
    EXPECT_EQ(upgrade.number(), 2U);
    EXPECT_EQ(upgrade.done(), 1U);
    EXPECT_EQ(upgrade.failed(), 1U);
    EXPECT_EQ(upgrade.why(), "");
    EXPECT_EQ(upgrade.last_lines_size(), 0);
    ASSERT_EQ(upgrade.steps_size(), 1);
    EXPECT_EQ(upgrade.steps(0).at_us(), 1'000U);
}

TEST_F(UpgradeRecordTest, IgnoresReportsOutsideAnUpgrade) {
    report({{step::kForwards, 1}}, "1");
    record_.note_trouble("a gateway that has just started");
    EXPECT_EQ(record_.note().record().number(), 0U);
    EXPECT_EQ(record_.note().record().steps_size(), 0);
    EXPECT_EQ(record_.note().record().version(), "");
}

TEST(UpgradeProgress, SuccessorForwardsWhenItReportsThatStep) {
    v1::UpgradeNote note;
    EXPECT_EQ(progress_of(note), UpgradeSteps::Event::Progress) << "a part of a step";
    note.add_steps()->set_name(step::kPortsStarted);
    EXPECT_EQ(progress_of(note), UpgradeSteps::Event::Progress);
    note.add_steps()->set_name(step::kForwards);
    EXPECT_EQ(progress_of(note), UpgradeSteps::Event::Launched);
}

}  // namespace upgrade_record_test
}  // namespace penstock::gateway
