// SPDX-License-Identifier: Apache-2.0
// The SNAT addresses of shares at one of three gateways.
#include "control/gateway/shares/share_snat.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace share_snat_test {

shares::Plan plan() {
    return {.version = 1,
            .gateways = {{"edge-1"}, {"edge-2"}, {"edge-3"}},
            .shares = {{{net("192.0.2.0/25")}, "edge-1", "edge-2", {ip("198.51.100.1"), ip("2001:db8::1")}},
                       {{net("192.0.2.128/25")}, "edge-2", "edge-1"},
                       {{net("203.0.113.0/24")}, "edge-3", "edge-2", {ip("198.51.100.0")}}}};
}

TEST(ShareSnat, TheRoleDeterminesThePorts) {
    using nat::PortPart;
    const struct {
        const char* gateway;
        std::vector<PortPart> parts;
        std::vector<IpAddr> announced;
        std::vector<int> groups;  // of a VIP of each share
    } cases[] = {
        {"edge-1",
         {PortPart::Primary, PortPart::Primary, PortPart::None},
         {ip("198.51.100.1"), ip("2001:db8::1")},
         {1, 0, 0}},
        {"edge-2",
         {PortPart::Heir, PortPart::Heir, PortPart::Heir},
         {ip("198.51.100.0"), ip("198.51.100.1"), ip("2001:db8::1")},
         {1, 0, 3}},
        {"edge-3", {PortPart::None, PortPart::None, PortPart::Primary}, {ip("198.51.100.0")}, {0, 0, 3}},
        {"edge-4", {PortPart::None, PortPart::None, PortPart::None}, {}, {0, 0, 0}},
    };
    for (const auto& c : cases) {
        const GatewayShares shares(plan(), c.gateway);
        const auto addresses = snat_of_shares(&shares);
        ASSERT_EQ(addresses.size(), 3U) << c.gateway;
        for (size_t i = 0; i < addresses.size(); ++i) {
            EXPECT_EQ(addresses[i].part, c.parts[i]) << c.gateway << i;
            EXPECT_EQ(addresses[i].group - 1, i < 2 ? 0 : 2);
        }
        EXPECT_EQ(announced_snat(shares), c.announced) << c.gateway;
        EXPECT_EQ(snat_group_of(&shares, ip("192.0.2.1")), c.groups[0]) << c.gateway;
        EXPECT_EQ(snat_group_of(&shares, ip("192.0.2.200")), c.groups[1]) << c.gateway;
        EXPECT_EQ(snat_group_of(&shares, ip("203.0.113.9")), c.groups[2]) << c.gateway;
    }
    EXPECT_TRUE(snat_of_shares(nullptr).empty());
    EXPECT_EQ(snat_group_of(nullptr, ip("192.0.2.1")), 0);
}

TEST(ShareSnat, APlanNeedsRoomBesideTheGatewaysOwnAddresses) {
    EXPECT_EQ(snat_obstacle(plan(), {}, 2), "");
    EXPECT_EQ(
        snat_obstacle(plan(), {ip("198.51.100.9"), ip("2001:db8::1")}, 2),
        "SNAT address 2001:db8::1 of share 0 is a --snat-address of this gateway: it would use ports of "
        "other gateways");
    shares::Plan large = plan();
    for (int i = 0; i < 57; ++i) {
        large.shares[1].snat.push_back(ip("2001:db8:1::" + std::to_string(i + 1)));
    }
    EXPECT_EQ(snat_obstacle(large, {}, 2), "") << "60 addresses, and two of each family";
    EXPECT_EQ(
        snat_obstacle(large, {}, 3),
        "60 SNAT addresses of shares, and room for 58: a gateway has at most 64, of which 6 are its own "
        "(--snat-address, otherwise one of each family and NicPort)");
    EXPECT_EQ(snat_obstacle(large, {ip("198.51.100.9")}, 3), "") << "one of IPv4, three of IPv6";
    EXPECT_NE(snat_obstacle(large, {ip("198.51.100.8"), ip("198.51.100.9")}, 3), "");
}

}  // namespace share_snat_test
}  // namespace penstock::gateway
