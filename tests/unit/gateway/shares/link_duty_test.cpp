// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/link_duty.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace penstock::gateway {
namespace link_duty_test {

using namespace std::chrono_literals;

const IpAddr kVip = IpAddr::v4(192, 0, 2, 1);
constexpr NicPortId kPort{0};

const MacAddr kMac{{2, 0, 0, 0, 0, 1}}, kMacOfOther{{2, 0, 0, 0, 0, 2}}, kStranger{{2, 0, 0, 0, 0, 3}};

// The heir of share 0, or with plan_of("a") its primary.
class LinkDutyTest : public testing::Test {
 protected:
    static std::shared_ptr<const GatewayShares> plan_of(const std::string& name, uint64_t version = 1) {
        return std::make_shared<const GatewayShares>(
            shares::Plan{.version = version,
                         .gateways = {{.name = "a"}, {.name = "b"}},
                         .shares = {{.vips = {}, .primary = "a", .heir = "b"}}},
            name);
    }
    LinkDuty::Options options() {
        return {.peer_of =
                    [this](const std::string& gateway) {
                        EXPECT_NE(gateway, plan_->gateway_name());
                        return peer_;
                    },
                .returning = [] { return uint64_t{0}; },
                .lose = [this](uint64_t shares) { lost_ |= shares; },
                .on_held = [this](HeldShares held) { held_.push_back(held.held); },
                .probe =
                    [this](const route::LinkVip& vip) {
                        probes_.push_back(vip);
                        return true;
                    },
                .receive =
                    [this](const std::function<void(NicPortId, const IpAddr&, const MacAddr&)>& take) {
                        if (claimed_by_) {
                            take(kPort, kVip, *claimed_by_);
                        }
                    },
                .macs = {kMac},
                .former_held = former_held_,
                .former_plan = former_plan_};
    }
    LinkShares facts(uint64_t answered = 0) const {
        return {
            .shares = plan_, .able = 1, .whole = 1, .answered = answered, .targets = {{0, {kVip, kPort}}}};
    }
    void reports(uint64_t ready, uint64_t held, uint64_t version = 1) {
        peer_.is_reporting = true;
        peer_.report = {
            .plan_version = version, .able = 1, .ready = ready, .held = held, .macs = {kMacOfOther}};
    }
    void work(LinkDuty& duty, int rounds = 1) {
        for (; rounds > 0; --rounds) {
            now_ += LinkDuty::kRound;
            duty.work(now_);
        }
    }

    std::shared_ptr<const GatewayShares> plan_ = plan_of("b");
    LinkHolder::Time now_{1h};
    LinkHolder::Peer peer_;
    uint64_t lost_ = 0, former_held_ = 0, former_plan_ = 0;
    std::vector<uint64_t> held_;
    std::vector<route::LinkVip> probes_;
    std::optional<MacAddr> claimed_by_;
};

TEST_F(LinkDutyTest, ALostPrimaryIsProbedForAndThenReplaced_PRESENCE006) {
    LinkDuty duty(options());
    duty.set(facts());
    reports(1, 1);
    work(duty, 4);
    EXPECT_EQ(held_, std::vector<uint64_t>{0}) << "once, for the plan";
    EXPECT_TRUE(probes_.empty());
    EXPECT_EQ(duty.report(),
              (HolderReport{.plan_version = 1, .able = 1, .ready = 1, .held = 0, .macs = {kMac}}));
    peer_.is_reporting = false;
    peer_.silent_since = now_;
    peer_.bfd = LinkHolder::Peer::Bfd::Down;
    claimed_by_ = kMacOfOther;
    work(duty, 20);
    EXPECT_EQ(duty.held(), 0u) << "it answers";
    EXPECT_FALSE(probes_.empty());
    claimed_by_ = kStranger;
    work(duty, 50);
    EXPECT_EQ(held_, (std::vector<uint64_t>{0, 1})) << "a claim of any other host is none";
    EXPECT_EQ(duty.report().held, 1u);
    claimed_by_ = kMacOfOther;
    work(duty);
    EXPECT_EQ(duty.held(), 0u);
}

TEST_F(LinkDutyTest, AnyClaimCountsUntilTheOtherGatewayIsKnown_PRESENCE006) {
    LinkDuty duty(options());
    duty.set(facts());
    peer_.bfd = LinkHolder::Peer::Bfd::Down;
    claimed_by_ = kStranger;
    work(duty, 100);
    EXPECT_EQ(duty.held(), 0u);
    claimed_by_.reset();
    work(duty, 50);
    EXPECT_EQ(duty.held(), 1u);
}

TEST_F(LinkDutyTest, AReportByAnotherPlanIsNone_PRESENCE006) {
    LinkDuty duty(options());
    duty.set(facts());
    reports(0, 0, 2);
    work(duty);
    EXPECT_EQ(duty.held(), 0u);
    EXPECT_FALSE(probes_.empty()) << "the primary is silent";
    reports(0, 0);
    work(duty);
    EXPECT_EQ(duty.held(), 1u);
}

TEST_F(LinkDutyTest, APrimaryWithAnotherPlanThatDoesNotAnswerIsReplaced_PRESENCE006) {
    LinkDuty duty(options());
    duty.set(facts());
    for (int round = 0; round < 160 && duty.held() == 0; ++round) {
        reports(0, 0, 2);
        peer_.silent_since = now_;  // of its last message
        work(duty);
    }
    EXPECT_EQ(duty.held(), 1u);
}

TEST_F(LinkDutyTest, AShareThatANewPlanChangesIsProbedFirst_PRESENCE006) {
    plan_ = plan_of("a");
    LinkDuty duty(options());
    reports(1, 0);
    duty.set(facts());
    work(duty);
    peer_.is_reporting = false;
    shares::Plan changed = plan_of("a", 2)->plan();
    plan_ = std::make_shared<const GatewayShares>(changed, "a");
    duty.set(facts());
    work(duty);
    EXPECT_EQ(held_.back(), 1u) << "the same share";
    changed.version = 3;
    changed.shares[0].vips = {Prefix::host(kVip)};
    plan_ = std::make_shared<const GatewayShares>(changed, "a");
    duty.set(facts());
    work(duty);
    EXPECT_EQ(held_.back(), 0u);
    work(duty, 20);
    EXPECT_EQ(held_.back(), 1u);
}

TEST_F(LinkDutyTest, AShareCountsAsHeldUntilNoWorkerAnswers_PRESENCE006) {
    former_held_ = former_plan_ = 1;
    LinkDuty duty(options());
    EXPECT_EQ(duty.report().held, 1u) << "of the former process";
    work(duty);
    EXPECT_TRUE(held_.empty()) << "not before the caretaker has reported";
    reports(0, 0);
    duty.set(facts(1));
    work(duty);
    EXPECT_EQ(held_, std::vector<uint64_t>{1});
    reports(1, 0);
    work(duty);
    EXPECT_EQ(held_, (std::vector<uint64_t>{1, 0})) << "the primary is ready";
    EXPECT_EQ(duty.report().held, 1u);
    duty.set(facts(0));
    EXPECT_EQ(duty.report().held, 0u);
}

TEST_F(LinkDutyTest, WhatAFormerProcessHeldCountsByItsPlanOnly_PRESENCE006) {
    plan_ = plan_of("a", 2);
    former_held_ = 1;
    for (const uint64_t version : {1, 2}) {
        former_plan_ = version;
        held_.clear();
        LinkDuty duty(options());
        duty.set(facts());
        work(duty);
        EXPECT_EQ(held_, std::vector<uint64_t>{version == 2 ? 1u : 0u}) << "plan " << version;
    }
}

TEST_F(LinkDutyTest, APrimaryLosesWhatItsHeirHasTakenOver_PRESENCE006) {
    plan_ = plan_of("a");
    LinkDuty duty(options());
    reports(1, 0);
    duty.set(facts());
    work(duty);
    EXPECT_EQ(held_, std::vector<uint64_t>{1});
    EXPECT_EQ(lost_, 0u);
    reports(1, 1);
    work(duty);
    EXPECT_EQ(held_, (std::vector<uint64_t>{1, 0}));
    EXPECT_EQ(lost_, 1u);
}

TEST_F(LinkDutyTest, TheThreadMakesRoundsUntilItIsStopped_PRESENCE006) {
    LinkDuty duty(options());
    duty.set(facts());
    duty.start();
    while (duty.rounds() < 3) {
        std::this_thread::sleep_for(1ms);
    }
    duty.stop();
    const uint64_t rounds = duty.rounds();
    std::this_thread::sleep_for(2 * LinkDuty::kRound);
    EXPECT_EQ(duty.rounds(), rounds);
}

}  // namespace link_duty_test
}  // namespace penstock::gateway
