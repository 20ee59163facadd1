// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/route_table.hpp"

#include <gtest/gtest.h>

namespace penstock::route {
namespace route_table_test {

IpAddr ip(const char* text) {
    return IpAddr::parse(text).value();
}
Prefix prefix(const char* text) {
    return Prefix::parse(text).value();
}
constexpr NicPortId kP0{0};
constexpr NicPortId kP1{1};

Neighbour neighbour(uint32_t id, NicPortId port, const char* address,
                    NeighbourState state = NeighbourState::Reachable) {
    return {.id = {id},
            .port = port,
            .address = ip(address),
            .mac = {{2, 0, 0, 0, 0, static_cast<uint8_t>(id)}},
            .state = state};
}

// "p0 10.0.0.1 #3": port, next hop, neighbour's id; "none" without a route.
std::string told(const RouteTable& table, const char* destination) {
    const std::optional<NextHop> hop = table.next_hop(ip(destination));
    if (!hop) {
        return "none";
    }
    return "p" + std::to_string(hop->egress.value) + " " + hop->address.to_string() +
           (hop->neighbour == nullptr ? "" : " #" + std::to_string(hop->neighbour->id.value));
}

TEST(RouteTable, AnEmptyOneHasNoRoute) {
    EXPECT_EQ(told(RouteTable(), "192.0.2.1"), "none");
    EXPECT_EQ(told(RouteTable(), "2001:db8::1"), "none");
}

struct LookupCase {
    const char* name;
    const char* destination;
    const char* expected;
};

TEST(RouteTable, TheLongestPrefixWins) {
    const auto table = RouteTable::build(
        {{prefix("0.0.0.0/0"), kP0, ip("192.0.2.254")},
         {prefix("192.0.2.0/24"), kP0, std::nullopt},
         {prefix("10.0.0.0/8"), kP1, ip("10.9.0.1")},
         {prefix("10.9.0.0/16"), kP1, std::nullopt},
         {prefix("10.9.7.0/24"), kP0, ip("192.0.2.7")},
         {prefix("10.9.0.9/32"), kP0, ip("192.0.2.9")},
         {prefix("255.255.255.0/24"), kP1, ip("10.9.0.2")},
         {prefix("2001:db8::/32"), kP0, std::nullopt},
         {prefix("2001:db8:1::/48"), kP1, ip("fe80::1")},
         {prefix("ffff::/16"), kP1, ip("fe80::2")}},
        {neighbour(1, kP0, "192.0.2.254"), neighbour(2, kP1, "10.9.0.1"), neighbour(3, kP1, "10.9.0.5"),
         neighbour(4, kP1, "fe80::1"), neighbour(5, kP0, "2001:db8::5"), neighbour(6, kP0, "10.9.0.6"),
         neighbour(7, kP1, "10.9.7.7"), neighbour(8, kP1, "fe80::2")},
        {}, {});
    const LookupCase cases[] = {
        {"default", "8.8.8.8", "p0 192.0.2.254 #1"},
        {"first address of all", "0.0.0.0", "p0 192.0.2.254 #1"},
        {"the gateway itself is on the link", "192.0.2.254", "p0 192.0.2.254 #1"},
        {"on the link, not asked yet", "192.0.2.1", "p0 192.0.2.1"},
        {"by router", "10.1.2.3", "p1 10.9.0.1 #2"},
        {"behind the longer prefix", "10.10.0.0", "p1 10.9.0.1 #2"},
        {"on the link, known", "10.9.0.5", "p1 10.9.0.5 #3"},
        {"beside the known one", "10.9.0.4", "p1 10.9.0.4"},
        {"a neighbour on another port does not count", "10.9.0.6", "p1 10.9.0.6"},
        {"a neighbour under a router's prefix does not count", "10.9.7.7", "p0 192.0.2.7"},
        {"host route", "10.9.0.9", "p0 192.0.2.9"},
        {"last address of all", "255.255.255.255", "p1 10.9.0.2"},
        {"IPv6 on the link", "2001:db8::5", "p0 2001:db8::5 #5"},
        {"IPv6 by router", "2001:db8:1::5", "p1 fe80::1 #4"},
        {"IPv6, the last address of all", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "p1 fe80::2 #8"},
        {"IPv6 has no default here", "2001:db9::", "none"},
    };
    for (const LookupCase& c : cases) {
        EXPECT_EQ(told(*table, c.destination), c.expected) << c.name;
    }
}

// A packet to a pod behind a bridge of the gateway host must not leave by a twin's default route.
TEST(RouteTable, ARouteElsewhereHidesShorterPrefixes) {
    const auto table = RouteTable::build({{prefix("0.0.0.0/0"), kP0, ip("192.0.2.254")},
                                          {prefix("10.244.1.0/24"), {}, std::nullopt},
                                          {prefix("10.244.1.7/32"), kP1, std::nullopt}},
                                         {}, {}, {});
    EXPECT_EQ(told(*table, "10.244.1.9"), "none");
    EXPECT_EQ(told(*table, "10.244.1.7"), "p1 10.244.1.7");
    EXPECT_EQ(told(*table, "10.244.2.1"), "p0 192.0.2.254");
}

// Linux lists a broadcast address as a neighbour with the Ethernet broadcast address once any process on the
// host has sent to it (NUD_NOARP). If a flow could use it, a spoofed source would direct the answer to a
// packet to a whole link.
TEST(RouteTable, SendsNothingToEverybodyOnALink) {
    const auto table = RouteTable::build({{prefix("0.0.0.0/0"), kP0, ip("192.0.2.254")},
                                          {prefix("192.0.2.0/24"), kP0, std::nullopt},
                                          {prefix("10.9.0.0/31"), kP1, std::nullopt}},
                                         {neighbour(1, kP0, "192.0.2.255"), neighbour(2, kP0, "192.0.2.253")},
                                         {{kP0, ip("192.0.2.1"), 24}, {kP1, ip("10.9.0.0"), 31}}, {});
    EXPECT_EQ(told(*table, "192.0.2.255"), "none");
    EXPECT_EQ(told(*table, "192.0.2.254"), "p0 192.0.2.254");
    EXPECT_EQ(told(*table, "192.0.2.253"), "p0 192.0.2.253 #2");
    EXPECT_EQ(told(*table, "192.0.3.0"), "p0 192.0.2.254");
    EXPECT_EQ(told(*table, "10.9.0.1"), "p1 10.9.0.1") << "a /31 has no broadcast (RFC 3021)";
}

TEST(RouteTable, EqualPrefixesAreSettledByMetricThenPort) {
    const Route costly{prefix("10.0.0.0/8"), kP0, ip("192.0.2.1"), 200};
    const Route cheap{prefix("10.0.0.0/8"), kP1, ip("192.0.2.2"), 100};
    const Route cheap_on_p0{prefix("10.0.0.0/8"), kP0, ip("192.0.2.3"), 100};
    EXPECT_EQ(told(*RouteTable::build({costly, cheap}, {}, {}, {}), "10.0.0.1"), "p1 192.0.2.2");
    EXPECT_EQ(told(*RouteTable::build({cheap, costly}, {}, {}, {}), "10.0.0.1"), "p1 192.0.2.2");
    EXPECT_EQ(told(*RouteTable::build({cheap, cheap_on_p0, costly}, {}, {}, {}), "10.0.0.1"), "p0 192.0.2.3");
}

// IPv4 through an IPv6 router (RFC 8950), as routing daemons do on unnumbered links.
TEST(RouteTable, AGatewayMayBeOfTheOtherFamily) {
    const auto table = RouteTable::build({{prefix("0.0.0.0/0"), kP0, ip("fe80::1")}},
                                         {neighbour(1, kP0, "fe80::1")}, {}, {});
    EXPECT_EQ(told(*table, "8.8.8.8"), "p0 fe80::1 #1");
}

// Forwarding reads only the Hop: checks each of its fields, through a router and on the link, usable and not.
TEST(RouteTable, AHopHoldsTheWholeDeparture) {
    const std::vector<Route> routes{{prefix("0.0.0.0/0"), kP0, ip("192.0.2.254")},
                                    {prefix("10.9.0.0/16"), kP1, std::nullopt}};
    const std::vector<EgressPort> ports{{.id = kP0, .mac = {{2, 0, 0, 0, 1, 0}}, .mtu = 1500},
                                        {.id = kP1, .mac = {{2, 0, 0, 0, 1, 1}}, .mtu = 9000}};
    const auto table = RouteTable::build(
        routes,
        {neighbour(7, kP0, "192.0.2.254"), neighbour(8, kP1, "10.9.0.8", NeighbourState::Stale),
         neighbour(9, kP1, "10.9.0.9", NeighbourState::Failed)},
        {}, ports);

    const Hop* by_router = table->hop(ip("8.8.8.8"));
    ASSERT_NE(by_router, nullptr);
    EXPECT_EQ(by_router->egress, kP0);
    EXPECT_EQ(by_router->ethernet_addresses, (std::array<uint8_t, 12>{2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 1, 0}));
    EXPECT_EQ(by_router->mtu, 1500);
    EXPECT_EQ(by_router->neighbour.value, 7u);
    EXPECT_TRUE(by_router->is_usable);
    EXPECT_EQ(by_router->next_hop_of(ip("8.8.8.8")), ip("192.0.2.254"));
    EXPECT_EQ(table->hop(ip("8.8.8.8").v4_wire()), by_router) << "both spellings of an IPv4 address";

    const Hop* on_link = table->hop(ip("10.9.0.8"));
    ASSERT_NE(on_link, nullptr);
    EXPECT_EQ(on_link->ethernet_addresses, (std::array<uint8_t, 12>{2, 0, 0, 0, 0, 8, 2, 0, 0, 0, 1, 1}));
    EXPECT_EQ(on_link->mtu, 9000);
    EXPECT_TRUE(on_link->is_usable) << "a stale neighbour is used while Linux confirms it";

    const Hop* failed = table->hop(ip("10.9.0.9"));
    ASSERT_NE(failed, nullptr);
    EXPECT_FALSE(failed->is_usable);
    EXPECT_EQ(failed->next_hop_of(ip("10.9.0.9")), ip("10.9.0.9"));

    const Hop* unknown = table->hop(ip("10.9.0.10"));
    ASSERT_NE(unknown, nullptr);
    EXPECT_FALSE(unknown->is_usable);
    EXPECT_FALSE(unknown->neighbour.is_set());
    EXPECT_EQ(unknown->next_hop_of(ip("10.9.0.10")), ip("10.9.0.10"))
        << "the destination itself is to be resolved";

    EXPECT_EQ(table->hop(ip("2001:db8::1")), nullptr);
}

// If the port's own address is unknown, there is no source to write: the packet waits instead of leaving with
// zeros.
TEST(RouteTable, AHopThroughAnUnknownPortIsNotUsable) {
    const auto table = RouteTable::build({{prefix("0.0.0.0/0"), kP0, ip("192.0.2.254")}},
                                         {neighbour(7, kP0, "192.0.2.254")}, {}, {});
    EXPECT_FALSE(table->hop(ip("8.8.8.8"))->is_usable);
}

TEST(RouteTable, TellsWhatIsKnownOfANextHop) {
    const auto table = RouteTable::build(
        {}, {neighbour(2, kP1, "10.0.0.1", NeighbourState::Failed), neighbour(1, kP0, "10.0.0.1")}, {}, {});
    EXPECT_EQ(table->neighbour(kP0, ip("10.0.0.1"))->id.value, 1u);
    EXPECT_EQ(table->neighbour(kP1, ip("10.0.0.1"))->id.value, 2u);
    EXPECT_FALSE(table->neighbour(kP1, ip("10.0.0.1"))->is_usable());
    EXPECT_EQ(table->neighbour(kP0, ip("10.0.0.2")), nullptr);
    EXPECT_EQ(table->neighbour(NicPortId{2}, ip("10.0.0.1")), nullptr);
}

TEST(RouteTable, KnowsWhatIsTheHosts_XIP003) {
    const auto table = RouteTable::build({}, {},
                                         {{kP0, ip("192.0.2.1"), 24},
                                          {kP1, ip("10.9.0.1"), 16},
                                          {kP1, ip("172.16.0.0"), 31},
                                          {kP1, ip("80.11.12.10"), 32},
                                          {kP0, ip("2001:db8::1"), 64}},
                                         {});
    for (const char* local : {"192.0.2.1", "192.0.2.255", "10.9.0.1", "10.9.255.255", "172.16.0.0",
                              "80.11.12.10", "255.255.255.255", "224.0.0.5", "2001:db8::1", "ff02::1"}) {
        EXPECT_TRUE(table->is_local(ip(local))) << local;
    }
    for (const char* other : {"192.0.2.2", "192.0.2.0", "10.9.0.255", "172.16.0.1", "80.11.12.11",
                              "2001:db8::2", "2001:db8::ffff:ffff:ffff:ffff", "255.255.255.254"}) {
        EXPECT_FALSE(table->is_local(ip(other))) << other;
        EXPECT_FALSE(table->is_host_address(ip(other))) << other;
    }
    for (const char* own : {"192.0.2.1", "10.9.0.1", "172.16.0.0", "80.11.12.10", "2001:db8::1"}) {
        EXPECT_TRUE(table->is_host_address(ip(own))) << own;
    }
    for (const char* group : {"192.0.2.255", "10.9.255.255", "255.255.255.255", "224.0.0.5", "ff02::1"}) {
        EXPECT_FALSE(table->is_host_address(ip(group))) << group;
    }
}

TEST(RouteTable, AVipForTheLinksSakeIsNotTheHosts_LB018) {
    const auto table = RouteTable::build(
        {}, {}, {{kP0, ip("192.0.2.1"), 24}}, {},
        {{kP0, ip("192.0.2.80"), 32}, {kP0, ip("192.0.2.9"), 32}, {kP0, ip("2001:db8::80"), 128}});
    for (const char* vip : {"192.0.2.80", "192.0.2.9", "2001:db8::80"}) {
        EXPECT_TRUE(table->is_present_vip(ip(vip))) << vip;
        EXPECT_FALSE(table->is_local(ip(vip))) << vip;
    }
    EXPECT_FALSE(table->is_present_vip(ip("192.0.2.1")));
    EXPECT_FALSE(table->is_present_vip(ip("192.0.2.10")));
}

TEST(RouteTable, KnowsItsPorts) {
    const auto table = RouteTable::build({}, {}, {}, {{.id = kP1, .mtu = 9000}, {.id = kP0, .mtu = 1500}});
    EXPECT_EQ(table->port(kP1)->mtu, 9000);
    EXPECT_EQ(table->port(kP0)->mtu, 1500);
    EXPECT_EQ(table->port(NicPortId{2}), nullptr);
}

}  // namespace route_table_test
}  // namespace penstock::route
