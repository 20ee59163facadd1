// SPDX-License-Identifier: Apache-2.0
// Levels, drain and notices of the announcement of VIPs, with a simulated Linux.
#include "control/gateway/care/vip_announcer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "control/shares/plan_text.hpp"
#include "desired_builder.hpp"

namespace penstock::gateway {
namespace vip_announcer_test {

using namespace std::chrono_literals;
using drivers::VipRoute;
using drivers::VipRouteChange;
using drivers::VipRouteOutcome;

class VipAnnouncerTest : public testing::Test {
 protected:
    VipAnnouncerOptions with_routes() {
        return {.routes = VipRouteOptions{.twins = {{}},
                                          .twin_names = {"up"},
                                          .withdraw_empty = false,
                                          .read = [this]() -> Result<std::vector<VipRoute>> {
                                              return std::vector<VipRoute>(routes_.begin(), routes_.end());
                                          },
                                          .apply =
                                              [this](std::span<const VipRouteChange> changes) {
                                                  for (const VipRouteChange& change : changes) {
                                                      change.kind == VipRouteChange::Kind::Remove
                                                          ? void(routes_.erase(change.route))
                                                          : void(routes_.insert(change.route));
                                                  }
                                                  return std::vector(changes.size(), VipRouteOutcome::Done);
                                              },
                                          .remove_neighbours = [](auto) {}},
                .stands_by = false,
                .vip_packets = [this](const Compiled&) { return packets_; },
                .open_flows = [this] { return flows_; }};
    }
    static std::shared_ptr<const Compiled> compiled(const std::vector<std::string>& vips) {
        std::vector<model::Service> services;
        for (const auto& vip : vips) {
            services.push_back(service("web-" + vip, {external(vip, 80)}, {"10.0.0.1"}));
        }
        Compiler compiler;
        const auto all = desired(std::move(services));
        std::vector<model::ServiceKey> keys;
        for (const auto& [name, one] : all) {
            keys.push_back(name);
        }
        compiler.run({all, {}, {}}, keys);
        return compiler.compiled();
    }
    // In addition, workers that answer at once for VIPs in 203.0.113.0/24.
    VipAnnouncerOptions with_arp() {
        VipAnnouncerOptions options = with_routes();
        options.routes->twins = {{drivers::InterfaceAddress::parse("203.0.113.254/24").value()}};
        options.responder = VipResponderOptions{
            .answer_for =
                [this](std::shared_ptr<const route::LinkVips> vips) { answered_ = std::move(vips); },
            .answered = [this] { return answered_; },
            .announce = [this](const route::LocalAddress&, const MacAddr&) { ++announced_; }};
        mirror_->ports = {{NicPortId{0}, MacAddr{{2, 0, 0, 0, 0, 1}}, 1500, true}};
        return options;
    }
    size_t answered() const { return answered_ == nullptr ? 0 : answered_->all().size(); }
    // In addition, a plan of two shares: of 203.0.113.1, with a SNAT address, and of 203.0.113.2.
    VipAnnouncerOptions with_shares() {
        VipAnnouncerOptions options = with_arp();
        options.on_link_shares = [this](const LinkShares& facts) { facts_.push_back(facts); };
        shares_ = std::make_shared<const GatewayShares>(
            shares::parse_plan("version 1\ngateway a\ngateway b\nshares 2\n"
                               "share 0 vips=203.0.113.1 primary=a heir=b snat=203.0.113.9\n"
                               "share 1 vips=203.0.113.2 primary=b heir=a\nend\n")
                .value(),
            "a");
        return options;
    }
    // A round after a second, with that many packets in it.
    void round(VipAnnouncer& announcer, uint64_t packets = 0, const std::string& withheld = "") {
        now_ += 1s;
        packets_ += packets;
        while (announcer.work({mirror_, ports_, drained_, withheld, shares_, 0, held_, has_configuration_},
                              now_) == now_) {
        }
    }
    uint32_t metric() const { return routes_.empty() ? 0 : routes_.begin()->metric; }

    std::shared_ptr<const GatewayShares> shares_;
    HeldShares held_;
    bool has_configuration_ = true;
    std::vector<LinkShares> facts_;
    std::set<VipRoute> routes_;
    std::shared_ptr<const route::LinkVips> answered_;
    int announced_ = 0;
    uint64_t packets_ = 0;
    uint64_t flows_ = 0;
    bool drained_ = false;
    std::vector<PortState> ports_{{NicPortId{0}, "up", true, false}};
    std::shared_ptr<drivers::MirroredState> mirror_ = std::make_shared<drivers::MirroredState>();
    VipAnnouncer::Clock::time_point now_{1h};
};

TEST_F(VipAnnouncerTest, NothingIsAnnouncedBeforeAConfigurationIsInForce_PRESENCE001) {
    VipAnnouncer announcer(with_routes(), false);
    routes_ = {{ip("203.0.113.1"), NicPortId{0}, 100}};  // of an earlier process
    round(announcer);
    EXPECT_TRUE(routes_.empty());
    announcer.set(compiled({"203.0.113.1"}));
    round(announcer);
    EXPECT_EQ(metric(), 100U);
    EXPECT_EQ(announcer.report()->vips.at(0).metric, 100U);
}

TEST_F(VipAnnouncerTest, AStandbyGatewayHasItsOwnMetric_PRESENCE002) {
    auto options = with_routes();
    options.stands_by = true;
    VipAnnouncer announcer(std::move(options), false);
    announcer.set(compiled({"203.0.113.1"}));
    round(announcer);
    EXPECT_EQ(metric(), 200U);
    drained_ = true;
    round(announcer);
    EXPECT_EQ(metric(), 900U);
}

TEST_F(VipAnnouncerTest, ADrainGoesThroughItsStepsAndUndrainServes_PRESENCE003) {
    VipAnnouncer announcer(with_routes(), false);
    announcer.set(compiled({"203.0.113.1"}));
    flows_ = 1;
    for (int i = 0; i < 3; ++i) {
        round(announcer, 1'000);
    }
    drained_ = true;
    round(announcer, 1'000);
    EXPECT_EQ(metric(), 900U);
    EXPECT_EQ(announcer.report()->drain, DrainStep::Depreferred);
    EXPECT_TRUE(announcer.report()->depreferred_until);
    drained_ = false;
    round(announcer, 1'000);
    EXPECT_EQ(metric(), 100U) << "undrain at step depreferred";
    round(announcer, 1'000);
    drained_ = true;
    round(announcer);
    round(announcer);
    EXPECT_TRUE(routes_.empty()) << "the traffic has moved away";
    EXPECT_EQ(announcer.report()->drain, DrainStep::Withdrawn);
    EXPECT_EQ(announcer.report()->vips.at(0).reason, "the gateway is drained");
    drained_ = false;
    round(announcer);
    EXPECT_EQ(metric(), 100U) << "undrain at step withdrawn";
    drained_ = true;
    flows_ = 0;
    for (int i = 0; i < 12; ++i) {
        round(announcer);
    }
    EXPECT_EQ(announcer.report()->drain, DrainStep::Done);
    drained_ = false;
    round(announcer);
    EXPECT_EQ(metric(), 100U) << "undrain at step done";
    EXPECT_EQ(announcer.report()->drain, DrainStep::Serving);
}

TEST_F(VipAnnouncerTest, ADrainedGatewayStartsWithoutRoutes_PRESENCE003) {
    VipAnnouncer announcer(with_routes(), true);
    drained_ = true;
    announcer.set(compiled({"203.0.113.1"}));
    round(announcer);
    EXPECT_TRUE(routes_.empty());
}

TEST_F(VipAnnouncerTest, WithheldVipsLoseTheirRoutesWithTheReason_PRESENCE005) {
    VipAnnouncer announcer(with_routes(), false);
    announcer.set(compiled({"203.0.113.1"}));
    round(announcer);
    round(announcer, 0, "a thread that forwards has stopped");
    EXPECT_TRUE(routes_.empty());
    EXPECT_EQ(announcer.report()->vips.at(0).reason, "a thread that forwards has stopped");
    round(announcer);
    EXPECT_EQ(metric(), 100U);
    announcer.withdraw(*mirror_);
    EXPECT_TRUE(routes_.empty());
}

TEST_F(VipAnnouncerTest, AForeignRouteIsANoticeOfItsServices_PRESENCE002) {
    VipAnnouncer announcer(with_routes(), false);
    announcer.set(compiled({"203.0.113.1", "203.0.113.2"}));
    mirror_->routes = {{Prefix::parse("203.0.113.2/32").value(), NicPortId{0}, {}, 20, 0}};
    round(announcer);
    ASSERT_EQ(announcer.notices().size(), 1U);
    EXPECT_EQ(announcer.notices()[0].key.name, "web-203.0.113.2");
    EXPECT_EQ(announcer.notices()[0].notice.reason, "VIPRouteConflict");
    mirror_ = std::make_shared<drivers::MirroredState>();
    round(announcer);
    EXPECT_TRUE(announcer.notices().empty());
}

TEST_F(VipAnnouncerTest, WithArpAVipOfTheLinkHasBothARouteAndAnAnswer_PRESENCE006) {
    VipAnnouncer announcer(with_arp(), false);
    round(announcer);
    EXPECT_EQ(answered(), 0U) << "no configuration is in force";
    announcer.set(compiled({"203.0.113.1", "198.51.100.1"}));
    round(announcer);
    EXPECT_EQ(answered(), 1U) << "the other one is outside the subnets";
    EXPECT_EQ(routes_.size(), 2U);
    EXPECT_EQ(announced_, 1);
    const auto report = announcer.report();
    EXPECT_EQ(report->mode, VipPresenceMode::Arp);
    ASSERT_EQ(report->vips.size(), 2U);
    for (const VipView& vip : report->vips) {
        EXPECT_EQ(vip.is_answered, vip.address == ip("203.0.113.1"));
        EXPECT_EQ(vip.metric, 100U);
    }
    ports_[0].is_up = false;
    round(announcer);
    EXPECT_EQ(answered(), 0U) << "the link is lost";
    ports_[0].is_up = true;
    round(announcer);
    EXPECT_EQ(answered(), 1U);
    announcer.withdraw(*mirror_);
    EXPECT_EQ(answered(), 0U);
}

TEST_F(VipAnnouncerTest, OnlyAGatewayThatServesAnswersOnTheLink_PRESENCE006_PRESENCE003) {
    VipAnnouncer announcer(with_arp(), false);
    announcer.set(compiled({"203.0.113.1"}));
    flows_ = 1;
    for (int i = 0; i < 3; ++i) {
        round(announcer, 1'000);
    }
    EXPECT_EQ(answered(), 1U);
    drained_ = true;
    round(announcer, 1'000);
    EXPECT_EQ(metric(), 900U);
    EXPECT_EQ(answered(), 0U) << "from the first step of a drain";
    drained_ = false;
    const int before = announced_;
    round(announcer, 1'000);
    EXPECT_EQ(answered(), 1U);
    EXPECT_EQ(announced_, before + 1) << "hosts of the link return at once";
    round(announcer, 0, "a thread that forwards has stopped");
    EXPECT_EQ(answered(), 0U);
    auto options = with_arp();
    options.stands_by = true;
    VipAnnouncer standby(std::move(options), false);
    answered_ = nullptr;
    standby.set(compiled({"203.0.113.1"}));
    round(standby);
    EXPECT_EQ(metric(), 200U);
    EXPECT_EQ(answered(), 0U) << "stand-by";
}

TEST_F(VipAnnouncerTest, WorkersAnswerForVipsBeyondTheLimitOfAddresses_LB018_PRESENCE006) {
    std::vector<std::string> vips;
    for (size_t i = 0; i < kVipAddressesMax + 2; ++i) {
        vips.push_back("10.9." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
    }
    size_t added = 0;
    VipAnnouncerOptions options{.addresses = VipPresenceOptions{
                                    .twins = {{drivers::InterfaceAddress::parse("10.9.255.1/16").value()}},
                                    .withdraw_empty = false,
                                    .add = [&added](const route::LocalAddress&) -> Result<bool> {
                                        ++added;
                                        return true;
                                    },
                                    .remove = [](const route::LocalAddress&) -> Status { return {}; },
                                    .announce = [](const route::LocalAddress&, const MacAddr&) {}},
                                .responder = with_arp().responder};
    VipAnnouncer announcer(std::move(options), false);
    announcer.set(compiled(vips));
    static_cast<void>(announcer.work({mirror_, ports_, false, ""}, now_));
    EXPECT_EQ(added, kVipAddressesMax);
    EXPECT_EQ(answered(), 2U);
    ASSERT_EQ(announcer.notices().size(), 2U);
    EXPECT_EQ(announcer.notices()[0].notice.reason, "VIPLimitReached");
    EXPECT_NE(announcer.notices()[0].notice.message.find("--vip-presence arp"), std::string::npos);
}

TEST_F(VipAnnouncerTest, OfSharesOnlyThoseHeldAreAnsweredFor_PRESENCE006) {
    VipAnnouncer announcer(with_shares(), false);
    announcer.set(compiled({"203.0.113.1", "203.0.113.2"}));
    has_configuration_ = false;
    round(announcer);
    EXPECT_EQ(facts_.back().able, 0U) << "only an empty configuration is in force";
    has_configuration_ = true;
    round(announcer);
    EXPECT_EQ(answered(), 0U) << "nothing is held yet";
    EXPECT_EQ(facts_.back().able & facts_.back().whole & 0b11, 0b11U);
    EXPECT_EQ(facts_.back().targets, (std::vector<LinkTarget>{{0, {ip("203.0.113.9"), NicPortId{0}, true}},
                                                              {1, {ip("203.0.113.2"), NicPortId{0}}}}));
    held_ = {shares_, 0b01};
    round(announcer);
    ASSERT_EQ(answered(), 2U);
    EXPECT_NE(answered_->find(NicPortId{0}, ip("203.0.113.1")), nullptr);
    EXPECT_TRUE(answered_->find(NicPortId{0}, ip("203.0.113.9"))->is_snat);
    EXPECT_EQ(facts_.back().answered, 0b01U);
    held_.held = 0b10;
    round(announcer);
    EXPECT_EQ(answered(), 1U);
    EXPECT_EQ(facts_.back().answered, 0b10U);
    ports_[0].is_up = false;
    round(announcer);
    EXPECT_EQ(facts_.back().able & 0b11, 0b11U);
    EXPECT_EQ(facts_.back().whole & 0b11, 0U) << "their link is down";
    EXPECT_EQ(facts_.back().answered, 0U);
    ports_[0].is_up = true;
    drained_ = true;
    round(announcer);
    EXPECT_EQ(facts_.back().able, 0U) << "the other gateway holds them";
    EXPECT_EQ(answered(), 0U);
}

// The workers get their snapshot after a compilation, which may take long.
TEST_F(VipAnnouncerTest, AShareIsAnsweredForUntilEveryWorkerHasEnded_PRESENCE006) {
    std::shared_ptr<const route::LinkVips> in_force;
    VipAnnouncerOptions options = with_shares();
    options.responder->answered = [&] { return in_force; };
    VipAnnouncer announcer(std::move(options), false);
    announcer.set(compiled({"203.0.113.1", "203.0.113.2"}));
    held_ = {shares_, 0b01};
    round(announcer);
    EXPECT_EQ(facts_.back().answered, 0b01U) << "a worker may be the first";
    in_force = answered_;
    round(announcer);
    held_.held = 0b10;
    round(announcer);
    EXPECT_EQ(facts_.back().answered, 0b11U) << "the former snapshot is in force";
    in_force = answered_;
    round(announcer);
    EXPECT_EQ(facts_.back().answered, 0b10U);
}

}  // namespace vip_announcer_test
}  // namespace penstock::gateway
