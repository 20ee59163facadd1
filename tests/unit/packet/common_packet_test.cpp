// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/common_packet.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "tests/support/packet_builder.hpp"
#include "tests/unit/packet/exact_parse.hpp"

namespace penstock::packet {
namespace common_packet_test {

using test::eth;
using test::PacketBuilder;
using test_kit::parse_exactly;

PacketBuilder ip4() {
    return eth().ipv4("192.0.2.1", "80.11.12.10");
}
PacketBuilder ip6() {
    return eth().ipv6("2001:db8::1", "2001:db8:80::10");
}

// Reads from a buffer that is exactly as long as the frame, into a Parsed with other content.
Parsed read_again(ByteView frame) {
    const auto copy = std::make_unique<uint8_t[]>(frame.size());
    std::ranges::copy(frame, copy.get());
    Parsed out;
    std::memset(static_cast<void*>(&out), 0xee, sizeof out);
    read_common(copy.get(), out);
    return out;
}

TEST(CommonPacket, IsReadAgainAsItWasParsed) {
    const PacketBuilder packets[] = {
        ip4().ttl(63).tcp(40000, 80, "SE").tcp_options({2, 4, 5, 0xb4}).payload("hi").pad_to(80),
        ip4().tcp(1, 65535, "A"),
        ip4().udp(5353, 53).payload("x"),
        ip4().udp(1, 2),
        ip4().dont_fragment().ttl(0).udp(1, 2).pad_to(60),
        ip6().tcp(40000, 80, "PA").tcp_options({1, 1, 1, 1}).payload("payload"),
        ip6().hop_limit(255).udp(5353, 53).payload("x"),
        // not by the parser's fast path, because the first byte of the address may be of a special one
        eth().ipv6("fe00::1", "2001:db8:80::10").udp(7, 9).payload("x"),
    };
    for (const PacketBuilder& packet : packets) {
        const auto frame = packet.build();
        Parsed parsed;
        ASSERT_TRUE(parse_exactly(frame, parsed)) << packet.to_scapy();
        ASSERT_TRUE(is_common(parsed)) << packet.to_scapy();
        EXPECT_EQ(read_again(frame), parsed) << packet.to_scapy();
    }
}

TEST(CommonPacket, OthersAreParsedAgain) {
    const struct {
        const char* name;
        PacketBuilder packet;
    } cases[] = {
        {"IPv4 options", ip4().options({0x94, 4, 0, 0}).udp(5353, 53)},
        {"an extension header", ip6().hop_by_hop().udp(5353, 53).payload("x")},
        {"SCTP", ip4().sctp(1, 2, 7).chunk(0, {1})},
        {"SCTP over IPv6", ip6().sctp(1, 2, 7).chunk(0, {1})},
        {"a fragment", ip4().more_fragments().udp(1, 2).payload("12345678")},
        {"ICMP", ip4().icmp(8, 0).payload("ping")},
        {"ARP", eth().ether_type(0x0806).payload("arp")},
        {"a multicast frame", ip4().udp(5353, 53).to_mac("ff:ff:ff:ff:ff:ff")},
    };
    for (const auto& c : cases) {
        Parsed parsed;
        ASSERT_TRUE(parse_exactly(c.packet.build(), parsed)) << c.name;
        EXPECT_FALSE(is_common(parsed)) << c.name;
    }
    // A first fragment becomes a flow's packet, and its lengths still cover more than itself.
    Parsed parsed;
    ASSERT_TRUE(parse_exactly(ip4().udp(1, 2).build(), parsed));
    parsed.is_fragment = true;
    EXPECT_FALSE(is_common(parsed));
}

}  // namespace common_packet_test
}  // namespace penstock::packet
