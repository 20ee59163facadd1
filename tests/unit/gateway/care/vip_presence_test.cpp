// SPDX-License-Identifier: Apache-2.0
// The wanted VIPs of each twin, from Services compiled by the real compiler, and how a simulated Linux is
// brought to that state.
#include "control/gateway/care/vip_presence.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "desired_builder.hpp"

namespace penstock::gateway {
namespace vip_presence_test {

using namespace std::chrono_literals;

std::vector<IpAddr> ips(const std::vector<std::string>& texts) {
    std::vector<IpAddr> out;
    for (const auto& text : texts) {
        out.push_back(ip(text));
    }
    return out;
}

drivers::InterfaceAddress on_twin(const std::string& text) {
    return drivers::InterfaceAddress::parse(text).value();
}

route::LocalAddress at(uint8_t port, const std::string& address) {
    return {NicPortId{port}, ip(address), static_cast<uint8_t>(ip(address).bits())};
}

// As with policy Local if all endpoints are on other nodes.
model::Service elsewhere(const std::string& name, std::vector<model::Frontend> frontends) {
    auto out = service(name, std::move(frontends), {});
    out.sets[0].source = lb::SourceMode::Keep;
    out.sets[0].when_empty = lb::EmptyAction::DropNoLocal;
    return out;
}

std::vector<IpAddr> shown(std::vector<model::Service> services, bool withdraw_empty = false) {
    Compiler compiler;
    const auto all = desired(std::move(services));
    std::vector<model::ServiceKey> keys;
    for (const auto& [name, one] : all) {
        keys.push_back(name);
    }
    const std::vector<model::PortAddress> own{{"pen0", ip("192.0.2.1"), 24, true}};
    compiler.run({all, {}, own}, keys);
    return vips_to_show(*compiler.compiled()->table, withdraw_empty);
}

TEST(VipPresence, AddressesOfLoadBalancersAndExternalIpsAreShown_LB018) {
    auto cluster_ip = external("192.0.2.96", 80);
    cluster_ip.cls = lb::FrontendClass::ClusterIp;
    auto vips = shown(
        {service("web",
                 {load_balancer("192.0.2.80", 80), external("192.0.2.81", 80), cluster_ip, node_port(30080)},
                 {"10.0.0.1"}),
         service("web6", {external("2001:db8::80", 80)}, {"fd00::1"})});
    auto expected = ips({"192.0.2.80", "192.0.2.81", "2001:db8::80"});
    std::ranges::sort(expected);
    EXPECT_EQ(vips, expected);
}

TEST(VipPresence, ASharedVipStaysWhileAnyServiceHasIt_LB018) {
    const auto web = service("web", {external("192.0.2.80", 80)}, {"10.0.0.1"});
    const auto dns = service("dns", {external("192.0.2.80", 53)}, {"10.0.0.2"});
    EXPECT_EQ(shown({web, dns}), ips({"192.0.2.80"}));
    EXPECT_EQ(shown({dns}), ips({"192.0.2.80"}));
    EXPECT_EQ(shown({}), ips({}));
}

TEST(VipPresence, WithoutALocalEndpointOnAnyPortTheVipIsLeftToAnotherGateway_LB018) {
    EXPECT_EQ(shown({elsewhere("web", {external("192.0.2.80", 80)})}), ips({}));
    EXPECT_EQ(shown({elsewhere("web", {external("192.0.2.80", 80)}),
                     service("dns", {external("192.0.2.80", 53)}, {"10.0.0.2"})}),
              ips({"192.0.2.80"}))
        << "a sharer has endpoints";
    // Another port has no endpoints anywhere: the gateway with the first port's endpoint rejects its clients
    // as well.
    EXPECT_EQ(shown({elsewhere("web", {external("192.0.2.80", 80)}),
                     service("dns", {external("192.0.2.80", 53)}, {})}),
              ips({}));
}

TEST(VipPresence, WithNoEndpointAnywhereTheVipStaysForTheReject_LB018) {
    const auto empty = service("web", {external("192.0.2.80", 80)}, {});
    EXPECT_EQ(shown({empty}), ips({"192.0.2.80"}));
    EXPECT_EQ(shown({empty}, true), ips({})) << "--withdraw-empty";
    EXPECT_EQ(shown({empty, service("dns", {external("192.0.2.80", 53)}, {"10.0.0.2"})}, true),
              ips({"192.0.2.80"}));
}

TEST(VipPresence, AVipIsOnTheTwinWhoseSubnetItIsIn_LB018) {
    const TwinSubnets twins{{on_twin("192.0.2.1/24"), on_twin("2001:db8::1/64")},
                            {on_twin("192.0.2.129/25")},
                            {on_twin("192.0.2.130/25")}};
    EXPECT_EQ(
        place_vips(ips({"192.0.2.80", "192.0.2.180", "2001:db8::80", "203.0.113.1", "2001:db8:1::80"}), twins,
                   {}),
        (std::vector<route::LocalAddress>{at(0, "192.0.2.80"), at(0, "2001:db8::80"), at(1, "192.0.2.180")}))
        << "the longest subnet, of equal ones the first; what is outside is left alone";
    EXPECT_TRUE(
        place_vips(ips({"192.0.2.80"}), {{}, {on_twin("192.0.2.80/32")}}, std::vector{at(1, "192.0.2.80")})
            .empty())
        << "the host's own address is not assigned again";
    const std::vector<route::LocalAddress> by_hand{{NicPortId{2}, ip("192.0.2.80"), 24}};
    EXPECT_TRUE(place_vips(ips({"192.0.2.80"}), twins, by_hand).empty())
        << "put there by the operator, on whatever twin";
}

TEST(VipPresence, ATwinHasAtMostThatManyVipsAndKeepsThoseItHas_LB018) {
    std::vector<route::LocalAddress> placed{at(0, "192.0.2.1"), at(0, "192.0.2.2"), at(0, "192.0.2.3"),
                                            at(1, "192.0.2.200")};
    const std::vector present{at(0, "192.0.2.2"), at(0, "192.0.2.3")};
    EXPECT_EQ(limit_vips(placed, present, 2), std::vector{at(0, "192.0.2.1")}) << "the new one is refused";
    EXPECT_EQ(placed, (std::vector{at(0, "192.0.2.2"), at(0, "192.0.2.3"), at(1, "192.0.2.200")}));
    EXPECT_TRUE(limit_vips(placed, {}, 2).empty());
    EXPECT_EQ(placed.size(), 3U);
}

// A simulated Linux; its mirror is updated at once.
struct FakeLinux {
    drivers::MirroredState mirror;
    std::vector<IpAddr> announced;
    int attempts = 0;
    std::optional<Error> refuses;
    MacAddr mac_said;

    FakeLinux() { mirror.ports.push_back({.id = NicPortId{0}, .mac = MacAddr{{2, 0, 0, 0, 0, 1}}}); }

    VipPresenceOptions options() {
        return {.twins = {{on_twin("192.0.2.1/24")}},
                .withdraw_empty = false,
                .add = [this](const route::LocalAddress& vip) -> Result<bool> {
                    ++attempts;
                    if (refuses) {
                        return std::unexpected(*refuses);
                    }
                    if (std::ranges::count(mirror.vips, vip) != 0) {
                        return false;
                    }
                    mirror.vips.push_back(vip);
                    std::ranges::sort(mirror.vips, {}, &route::LocalAddress::address);
                    return true;
                },
                .remove = [this](const route::LocalAddress& vip) -> Status {
                    ++attempts;
                    if (refuses) {
                        return std::unexpected(*refuses);
                    }
                    std::erase(mirror.vips, vip);
                    return {};
                },
                .announce =
                    [this](const route::LocalAddress& vip, const MacAddr& mac) {
                        announced.push_back(vip.address);
                        mac_said = mac;
                    }};
    }
};

class VipPresenceAtWork : public testing::Test {
 protected:
    void serve(const std::vector<std::string>& vips) {
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
        presence_.set(*compiler.compiled()->table);
    }
    void work(bool drained = false) { presence_.work(linux_.mirror, drained ? "drained" : "", now_); }

    FakeLinux linux_;
    VipPresence presence_{linux_.options()};
    VipPresence::Clock::time_point now_{};
};

TEST_F(VipPresenceAtWork, TheDifferenceIsWorkedOffAndWhatIsNewAnnouncedOnce_LB018) {
    serve({"192.0.2.80", "192.0.2.81", "203.0.113.1"});
    work();
    work();
    EXPECT_EQ(linux_.mirror.vips, (std::vector{at(0, "192.0.2.80"), at(0, "192.0.2.81")}));
    EXPECT_EQ(linux_.announced, ips({"192.0.2.80", "192.0.2.81"}));
    EXPECT_EQ(linux_.mac_said, (MacAddr{{2, 0, 0, 0, 0, 1}}));
    EXPECT_EQ(linux_.attempts, 2) << "what is as it shall be is left alone";
    serve({"192.0.2.81"});
    work();
    EXPECT_EQ(linux_.mirror.vips, (std::vector{at(0, "192.0.2.81")}));
    // Removed manually.
    linux_.mirror.vips.clear();
    work();
    EXPECT_EQ(linux_.mirror.vips, (std::vector{at(0, "192.0.2.81")}));
}

TEST_F(VipPresenceAtWork, AVipIsAnnouncedAgainUntilItIsWithdrawn_PRESENCE004) {
    serve({"192.0.2.80"});
    work();
    EXPECT_EQ(presence_.next(), now_ + 100ms);
    for (const auto later : {100ms, 900ms, 60'000ms}) {
        now_ += later;
        work();
    }
    EXPECT_EQ(linux_.announced.size(), 4U);
    serve({});
    work();
    EXPECT_FALSE(presence_.next());
}

TEST_F(VipPresenceAtWork, DrainWithdrawsAllAndUndrainBringsThemBack_DRAIN006_LB018) {
    serve({"192.0.2.80", "192.0.2.81"});
    work();
    work(true);
    EXPECT_TRUE(linux_.mirror.vips.empty());
    work(false);
    EXPECT_EQ(linux_.mirror.vips.size(), 2U);
    const drivers::MirroredState there = linux_.mirror;
    presence_.withdraw(there);
    EXPECT_TRUE(linux_.mirror.vips.empty());
}

TEST_F(VipPresenceAtWork, WhatTheOperatorPutThereIsNeverRemoved_LB018) {
    linux_.mirror.addresses = {at(0, "192.0.2.80"), at(0, "192.0.2.99")};
    serve({"192.0.2.80"});
    work();
    serve({});
    work();
    work(true);
    EXPECT_EQ(linux_.attempts, 0);
    EXPECT_EQ(linux_.mirror.addresses.size(), 2U);
}

TEST_F(VipPresenceAtWork, AFailureIsTriedAgainAfterAWhile_LB018) {
    linux_.refuses = Error{Errc::Unavailable, "no buffer"};
    serve({"192.0.2.80"});
    work();
    now_ += VipPresence::kRetry - 1s;
    work();
    EXPECT_EQ(linux_.attempts, 1);
    linux_.refuses.reset();
    now_ += 1s;
    work();
    EXPECT_EQ(linux_.mirror.vips.size(), 1U);
}

TEST_F(VipPresenceAtWork, AKernelThatCannotIsAskedOnce_LB018) {
    linux_.refuses = Error{Errc::Unsupported, "no marks"};
    serve({"192.0.2.80", "192.0.2.81"});
    work();
    now_ += 10 * VipPresence::kRetry;
    work();
    EXPECT_EQ(linux_.attempts, 1);
    EXPECT_EQ(presence_.refused().size(), 2U) << "workers answer for them";
    serve({});
    work();
    EXPECT_TRUE(presence_.refused().empty());
}

}  // namespace vip_presence_test
}  // namespace penstock::gateway
