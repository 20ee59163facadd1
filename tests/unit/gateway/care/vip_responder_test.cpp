// SPDX-License-Identifier: Apache-2.0
// Which VIPs workers answer for on which link, and when these are announced there.
#include "control/gateway/care/vip_responder.hpp"

#include <gtest/gtest.h>

#include "desired_builder.hpp"

namespace penstock::gateway {
namespace vip_responder_test {

using namespace std::chrono_literals;
using route::LinkVip;
using Shown = ServedVip::Shown;

drivers::InterfaceAddress subnet(const char* text) {
    return drivers::InterfaceAddress::parse(text).value();
}

class LinkPlan : public testing::Test {
 protected:
    // The port of a VIP, or why it has none.
    std::string plan(const char* vip, Shown shown = Shown::Yes) {
        const std::vector<ServedVip> served{{ip(vip), shown}};
        const auto planned = plan_link_vips({served, twins_, ports_, mirror_});
        EXPECT_EQ(planned.size(), 1U);
        const PlannedVip& only = planned.front();
        EXPECT_EQ(only.port.is_set(), only.reason.empty()) << only.reason;
        return only.port.is_set() ? "port " + std::to_string(only.port.value) : only.reason;
    }
    TwinSubnets twins_{{subnet("192.0.2.1/24"), subnet("2001:db8::1/64")},
                       {subnet("192.0.2.129/25"), subnet("10.0.0.1/8")},
                       {subnet("192.0.2.2/24")}};
    std::vector<PortState> ports_{
        {NicPortId{0}, "a", true, false}, {NicPortId{1}, "b", true, false}, {NicPortId{2}, "c", true, false}};
    drivers::MirroredState mirror_;
};

TEST_F(LinkPlan, AVipIsAnsweredOnTheLinkOfItsLongestSubnet_PRESENCE006) {
    EXPECT_EQ(plan("192.0.2.80"), "port 0") << "of equal subnets the first";
    EXPECT_EQ(plan("192.0.2.200"), "port 1") << "the longest";
    EXPECT_EQ(plan("2001:db8::80"), "port 0");
    EXPECT_EQ(plan("10.9.9.9"), "port 1");
    EXPECT_EQ(plan("203.0.113.80"), "outside the subnets of all twins");
    EXPECT_EQ(plan("2001:db8:1::80"), "outside the subnets of all twins");
}

TEST_F(LinkPlan, AVipMovesToAnotherPortOfItsSubnetOnly_PRESENCE004) {
    ports_[0].is_up = false;
    EXPECT_EQ(plan("192.0.2.80"), "port 2");
    ports_[2].is_removed = true;
    EXPECT_EQ(plan("192.0.2.80"), "the port of its subnet is down or removed");
    ports_[0].is_up = true;
    EXPECT_EQ(plan("192.0.2.80"), "port 0");
    ports_[1].is_up = false;
    EXPECT_EQ(plan("192.0.2.200"), "the port of its subnet is down or removed")
        << "hosts of the longer subnet are not on the links of the shorter one";
}

TEST_F(LinkPlan, AVipThatOthersServeOrTheHostHasIsNotAnswered_LB018) {
    EXPECT_EQ(plan("192.0.2.80", Shown::Elsewhere), "all endpoints are on other nodes");
    EXPECT_EQ(plan("192.0.2.80", Shown::Empty), "no endpoint is usable");
    mirror_.addresses = {{NicPortId{2}, ip("192.0.2.80"), 32}, {NicPortId{0}, ip("192.0.2.1"), 24}};
    EXPECT_EQ(plan("192.0.2.80"), kVipOfHost);
}

class Responder : public testing::Test {
 protected:
    Responder() { mirror_.ports = {{NicPortId{0}, kMac, 1500, true}, {NicPortId{1}, kOtherMac, 1500, true}}; }
    VipResponder make() {
        return VipResponder({.answer_for =
                                 [this](std::shared_ptr<const route::LinkVips> vips) {
                                     asked_ = std::move(vips);
                                     ++times_asked_;
                                 },
                             .answered = [this] { return answered_; },
                             .announce = [this](const route::LocalAddress& vip,
                                                const MacAddr& mac) { announced_.emplace_back(vip, mac); }});
    }
    void round(VipResponder& responder) { responder.work(mirror_, now_); }
    // Every worker has what was asked for.
    void workers_follow() { answered_ = asked_; }

    const MacAddr kMac{{2, 0, 0, 0, 0, 1}}, kOtherMac{{2, 0, 0, 0, 0, 2}};
    const LinkVip kVip{ip("192.0.2.80"), NicPortId{0}}, kVip6{ip("2001:db8::80"), NicPortId{1}};
    drivers::MirroredState mirror_;
    std::shared_ptr<const route::LinkVips> asked_, answered_;
    int times_asked_ = 0;
    std::vector<std::pair<route::LocalAddress, MacAddr>> announced_;
    VipResponder::Clock::time_point now_{1h};
};

TEST_F(Responder, AnnouncesAVipWhenEveryWorkerAnswersForIt_PRESENCE001_PRESENCE004) {
    VipResponder responder = make();
    responder.want({kVip6, kVip});
    round(responder);
    ASSERT_NE(asked_, nullptr);
    EXPECT_TRUE(asked_->find(NicPortId{0}, kVip.address) && asked_->find(NicPortId{1}, kVip6.address));
    round(responder);
    EXPECT_EQ(times_asked_, 1);
    EXPECT_TRUE(announced_.empty() && responder.present().empty()) << "workers do not answer yet";
    EXPECT_FALSE(responder.next());
    workers_follow();
    round(responder);
    EXPECT_EQ(responder.present(), (std::vector{kVip, kVip6})) << "sorted by address";
    ASSERT_EQ(announced_.size(), 2U);
    for (const auto& [vip, mac] : announced_) {
        EXPECT_EQ(mac, vip.port.value == 0 ? kMac : kOtherMac) << "of the port's own link";
    }
    for (int i = 0; i < 200; ++i) {
        now_ += 10ms;
        round(responder);
    }
    EXPECT_EQ(announced_.size(), 6U) << "after 0.1 and 1 s";
}

TEST_F(Responder, AVipThatIsNotWantedAnyMoreIsSilentAtOnce_PRESENCE006) {
    VipResponder responder = make();
    responder.want({kVip, kVip6});
    round(responder);
    workers_follow();
    round(responder);
    announced_.clear();
    responder.want({kVip6});
    now_ += 100ms;
    round(responder);
    EXPECT_EQ(responder.present(), std::vector{kVip6}) << "before the workers have changed";
    EXPECT_FALSE(asked_->find(NicPortId{0}, kVip.address));
    ASSERT_EQ(announced_.size(), 1U);
    EXPECT_EQ(announced_[0].first.address, kVip6.address);
    responder.want({});
    round(responder);
    EXPECT_EQ(asked_, nullptr) << "workers do not read queries at all";
    EXPECT_FALSE(responder.next());
    responder.want({kVip});
    round(responder);
    workers_follow();
    responder.withdraw();
    EXPECT_EQ(asked_, nullptr);
    EXPECT_TRUE(responder.present().empty());
}

TEST_F(Responder, AVipThatReturnsOrMovesIsAnnouncedAnew_PRESENCE004) {
    VipResponder responder = make();
    responder.want({kVip});
    round(responder);
    workers_follow();
    round(responder);
    now_ += 30s;
    round(responder);
    announced_.clear();
    const LinkVip moved{kVip.address, NicPortId{1}};
    responder.want({moved});
    round(responder);
    workers_follow();
    now_ += AnnouncementSchedule::kBatchEvery;
    round(responder);
    ASSERT_EQ(announced_.size(), 1U);
    EXPECT_EQ(announced_[0].first.port, NicPortId{1});
    EXPECT_EQ(announced_[0].second, kOtherMac);
}

TEST_F(Responder, ManyVipsAreAnnouncedAtALimitedRate_PRESENCE004) {
    VipResponder responder = make();
    std::vector<LinkVip> many;
    for (uint32_t i = 0; i < 10'000; ++i) {
        many.push_back({IpAddr::v4(Be32::from_host(0x0a00'0000 + i)), NicPortId{0}});
    }
    responder.want(many);
    round(responder);
    workers_follow();
    const auto start = now_;
    size_t most = 0;
    std::set<IpAddr> heard;
    while (heard.size() < many.size()) {
        announced_.clear();
        round(responder);
        most = std::max(most, announced_.size());
        for (const auto& [vip, mac] : announced_) {
            heard.insert(vip.address);
        }
        ASSERT_LT(now_ - start, 10s);
        now_ = std::max(now_ + 1ms, *responder.next());
    }
    EXPECT_LE(most, AnnouncementSchedule::kBatch);
    EXPECT_GE(now_ - start, 2s);
    EXPECT_LE(now_ - start, 3s) << "each VIP once, before any is repeated";
}

TEST_F(Responder, MarksTheViewsOfTheVipsThatAreAnswered_PRESENCE006) {
    VipResponder responder = make();
    responder.want({kVip});
    round(responder);
    workers_follow();
    round(responder);
    std::vector<VipView> views{{.address = kVip.address, .metric = 100}, {.address = kVip6.address}};
    responder.mark(views);
    EXPECT_TRUE(views[0].is_answered && views[0].is_present);
    EXPECT_EQ(views[0].port, NicPortId{0});
    EXPECT_FALSE(views[1].is_answered || views[1].is_present);
}

}  // namespace vip_responder_test
}  // namespace penstock::gateway
