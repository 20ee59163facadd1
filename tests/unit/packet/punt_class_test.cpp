// SPDX-License-Identifier: Apache-2.0
// The class of packets punted to Linux.
#include "dataplane/packet/punt_class.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/vlan_tags.hpp"

namespace penstock::packet {
namespace punt_class_test {

using test::eth;
using test::PacketBuilder;
using test::vlan::kProvider7;
using test::vlan::kVlan5;
using test::vlan::tagged;

PacketBuilder v4(uint8_t ttl = 64, const char* to = "10.0.0.1") {
    return eth().ipv4("192.0.2.1", to).ttl(ttl);
}
PacketBuilder v6(uint8_t hop_limit = 64, const char* to = "2001:db8::1", const char* from = "2001:db8:9::2") {
    return eth().ipv6(from, to).hop_limit(hop_limit);
}

struct Row {
    std::string name;
    PuntClass expected;
    std::vector<uint8_t> frame;
};

PuntClass class_of(const std::vector<uint8_t>& frame) {
    Parsed parsed;
    EXPECT_TRUE(parse(frame, parsed).has_value()) << test::to_scapy(frame);
    return punt_class_of(frame, parsed);
}

std::vector<Row> rows() {
    using enum PuntClass;
    const std::vector<uint8_t> bytes(46, 7);
    return {
        {"ARP", Link, eth().to_mac("ff:ff:ff:ff:ff:ff").ether_type(0x0806).payload(bytes).build()},
        {"LACP", Link, eth().to_mac("01:80:c2:00:00:02").ether_type(0x8809).payload(bytes).build()},
        {"neighbour solicitation", Link, v6(255).icmp(135, 0).build()},
        {"neighbour advertisement to a group", Link, v6(255, "ff02::1", "fe80::5").icmp(136, 0).build()},
        {"router advertisement", Link, v6(255, "ff02::1", "fe80::5").icmp(134, 0).build()},
        {"neighbour solicitation from beyond a router", Other, v6(254).icmp(135, 0).build()},
        {"MLD report", Routing, v6(1, "ff02::16", "fe80::5").hop_by_hop().icmp(143, 0).build()},
        {"echo request", Other, v6(255).icmp(128, 0).build()},
        {"echo request with hop-by-hop options", Other,
         v6(255, "ff02::1", "fe80::5").hop_by_hop().icmp(128, 0).build()},
        {"ICMP", Other, v4(255).icmp(8, 0).build()},

        {"BGP to the gateway", Routing, v4().tcp(40'000, 179, "S").build()},
        {"BGP from a peer that the gateway called", Routing, v6().tcp(179, 40'000, "SA").build()},
        {"BGP between link-local addresses", Routing,
         v6(1, "fe80::1", "fe80::5").tcp(40'000, 179, "A").build()},
        {"SSH", Other, v4(255).tcp(40'000, 22, "S").build()},
        {"UDP to BGP's port", Other, v4(255).udp(40'000, 179).build()},

        {"BFD of one hop", Link, v4(255).udp(49'152, 3784).build()},
        {"BFD of one hop from beyond a router", Other, v4(254).udp(49'152, 3784).build()},
        {"BFD of one hop between link-local addresses", Link,
         v6(255, "fe80::1", "fe80::5").udp(49'152, 3784).build()},
        {"BFD echo that the neighbour returned", Link, v4(254).udp(49'152, 3785).build()},
        {"BFD echo from afar", Other, v4(253).udp(49'152, 3785).build()},
        {"BFD of several hops", Routing, v6(60).udp(49'152, 4784).build()},
        {"BFD's port as a source", Other, v4(255).udp(3784, 40'000).build()},

        {"OSPF", Routing, v4(1, "224.0.0.5").ip_protocol(89).payload(bytes).build()},
        {"OSPFv3", Routing, v6(1, "ff02::5", "fe80::5").ip_protocol(89).payload(bytes).build()},
        {"VRRP", Link, v4(255, "224.0.0.18").ip_protocol(112).payload(bytes).build()},
        {"VRRP from beyond a router", Other, v4(254, "224.0.0.18").ip_protocol(112).payload(bytes).build()},
        {"IGMP", Routing, v4(1, "224.0.0.22").ip_protocol(2).payload(bytes).build()},
        {"DHCP offer", Routing, v4(64, "255.255.255.255").udp(67, 68).build()},
        {"mDNS", Other, v4(255, "224.0.0.251").udp(5353, 5353).build()},
        {"datagram", Other, v4(255).udp(5000, 9).build()},
        {"later fragment", Other, v4(255).ip_protocol(17).fragment_offset(8).payload(bytes).build()},
        {"fragment of OSPF", Routing,
         v4(1).ip_protocol(89).more_fragments().payload(std::vector<uint8_t>(48, 7)).build()},
    };
}

TEST(PuntClass, FollowsTheProtocol) {
    for (const Row& row : rows()) {
        EXPECT_EQ(class_of(row.frame), row.expected) << row.name;
    }
}

// Linux has VLAN interfaces on twins.
TEST(PuntClass, LooksBehindTags) {
    for (const Row& row : rows()) {
        EXPECT_EQ(class_of(tagged(row.frame, {kVlan5})), row.expected) << row.name;
        EXPECT_EQ(class_of(tagged(row.frame, {kProvider7, kVlan5})), row.expected) << row.name;
        EXPECT_EQ(class_of(tagged(row.frame, {kProvider7, kVlan5, kVlan5})), PuntClass::Other) << row.name;
    }
}

// A truncated frame has a class, and no byte beyond its end is read.
TEST(PuntClass, TakesWhatIsCut) {
    for (const Row& row : rows()) {
        for (size_t length = 14; length <= row.frame.size(); ++length) {
            const std::vector<uint8_t> cut(row.frame.begin(),
                                           row.frame.begin() + static_cast<std::ptrdiff_t>(length));
            Parsed parsed;
            if (parse(cut, parsed)) {
                EXPECT_LT(static_cast<size_t>(punt_class_of(cut, parsed)), kPuntClasses) << row.name;
            }
        }
    }
}

}  // namespace punt_class_test
}  // namespace penstock::packet
