// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/parse_any.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/packet/exact_parse.hpp"

namespace penstock::packet {
namespace parse_ipv6_test {

using test::eth;
using test::PacketBuilder;
using test_kit::expect_drop;
using test_kit::parse_exactly;

constexpr const char *kClient = "2001:db8::1", *kVip = "2001:db8:80::10";

PacketBuilder ip() {
    return eth().ipv6(kClient, kVip);
}
PacketBuilder between(const char* source, const char* destination) {
    return eth().ipv6(source, destination).tcp(1, 2);
}

TEST(ParseIpv6, TcpSyn) {
    Parsed out;
    const auto frame = ip().hop_limit(63)
                           .tos(0xb8)
                           .flow_label(0xabcde)
                           .tcp(40000, 80, "SE")
                           .tcp_options({2, 4, 5, 0xa0})
                           .payload("hi");
    ASSERT_TRUE(parse_exactly(PacketBuilder(frame).pad_to(120).build(), out));
    EXPECT_EQ(out.kind, PacketKind::Flow);
    EXPECT_EQ(out.family, IpFamily::V6);
    EXPECT_EQ(out.key.to_string(), "TCP [2001:db8::1]:40000 -> [2001:db8:80::10]:80");
    EXPECT_EQ(out.ip_protocol, 6);
    EXPECT_EQ(out.ttl, 63);
    EXPECT_EQ(out.tcp_flags.bits, TcpFlags::kSyn | TcpFlags::kEce);
    EXPECT_EQ(out.l3_offset, 14);
    EXPECT_EQ(out.l4_offset, 54);
    EXPECT_EQ(out.payload_offset, 78);
    EXPECT_EQ(out.l3_length, 40 + 24 + 2);
    EXPECT_FALSE(out.destination_is_multicast_mac);
}

TEST(ParseIpv6, UdpBehindEveryExtensionHeaderThatIsWalked) {
    Parsed out;
    const auto frame = ip().hop_by_hop()
                           .destination_options()
                           .routing(0, 0)
                           .fragment(0, false)
                           .destination_options(3)
                           .udp(5353, 53)
                           .payload("x")
                           .build();
    ASSERT_TRUE(parse_exactly(frame, out)) << test::to_scapy(frame);
    EXPECT_EQ(out.kind, PacketKind::Flow);
    EXPECT_EQ(out.key.to_string(), "UDP [2001:db8::1]:5353 -> [2001:db8:80::10]:53");
    EXPECT_EQ(out.l4_offset, 54 + 4 * 8 + 32);
    EXPECT_EQ(out.payload_offset, out.l4_offset + 8);
    EXPECT_EQ(out.l3_length, frame.size() - 14);
}

PacketBuilder with_options(unsigned count) {
    PacketBuilder packet = ip();
    for (unsigned i = 0; i < count; ++i) {
        packet.destination_options();
    }
    return packet;
}

struct KindCase {
    const char* name;
    PacketBuilder packet;
    PacketKind kind;
    uint8_t protocol;
};

TEST(ParseIpv6, Kinds) {
    const KindCase cases[] = {
        {"ICMPv6 echo", ip().icmp(128, 0).payload("ping"), PacketKind::Ip, 58},
        {"SCTP", ip().destination_options().sctp(1, 2, 7).chunk(3), PacketKind::Flow, 132},
        {"no next header", ip().ip_protocol(59), PacketKind::Ip, 59},
        {"AH is not looked behind", ip().ip_protocol(51).payload("0123456789ab"), PacketKind::Ip, 51},
        {"ESP", ip().destination_options().ip_protocol(50).payload("0123456789ab"), PacketKind::Ip, 50},
        {"first fragment", ip().fragment(0, true).udp(1, 2).payload("12345678"), PacketKind::Fragment, 17},
        {"later fragment", ip().fragment(2, true).ip_protocol(6).payload("12345678"), PacketKind::Fragment,
         6},
        {"last fragment", ip().hop_by_hop().fragment(3, false).ip_protocol(58).payload("1"),
         PacketKind::Fragment, 58},
        {"an atomic fragment is a whole packet (RFC 6946)", ip().fragment(0, false).tcp(1, 2),
         PacketKind::Flow, 6},
        {"as many extension headers as are walked", with_options(kExtensionHeadersMax).tcp(1, 2),
         PacketKind::Flow, 6},
        {"router alert to all MLD routers", eth().ipv6("fe80::1", "ff02::16").hop_by_hop().icmp(143, 0),
         PacketKind::Ip, 0},
        {"duplicate address detection", eth().ipv6("::", "ff02::1:ff00:1").icmp(135, 0), PacketKind::Ip, 58},
        {"neighbour solicitation to one host", eth().ipv6("fe80::1", kVip).icmp(135, 0), PacketKind::Ip, 58},
        {"multicast", between(kClient, "ff02::fb"), PacketKind::Ip, 6},
        {"a broken transport header to multicast is the host's",
         eth().ipv6(kClient, "ff02::fb").udp(0, 0).udp_length(3), PacketKind::Ip, 17},
        {"to a link-local address", between(kClient, "fe80::2"), PacketKind::Ip, 6},
        {"from a link-local address, which is not forwarded", between("febf::1", kVip), PacketKind::Ip, 6},
        {"beyond the link-local block", between("fec0::1", kVip), PacketKind::Flow, 6},
        {"unique local addresses", between("fd00::1", "fc00::2"), PacketKind::Flow, 6},
        {"destination unspecified", between(kClient, "::"), PacketKind::Ip, 6},
        {"destination loopback", between(kClient, "::1"), PacketKind::Ip, 6},
        {"an address of ::/8 that is nothing special", between("::2", "64:ff9b::1"), PacketKind::Flow, 6},
        {"a routing header with nowhere left to go", ip().routing(0, 0).tcp(1, 2), PacketKind::Flow, 6},
        {"a segment left of another type: Linux decides", ip().routing(4, 1).tcp(1, 2), PacketKind::Ip, 43},
        {"UDP shorter than its IP packet", ip().udp(1, 2).udp_length(9).payload("long"), PacketKind::Flow,
         17},
        {"hop limit 0 is for a later stage to refuse", ip().hop_limit(0).tcp(1, 2), PacketKind::Flow, 6},
    };
    for (const KindCase& c : cases) {
        Parsed out;
        const ParseResult result = parse_exactly(c.packet.build(), out);
        EXPECT_TRUE(result.has_value()) << c.name << ": " << c.packet.to_scapy();
        EXPECT_EQ(out.kind, c.kind) << c.name << ": " << c.packet.to_scapy();
        EXPECT_EQ(out.ip_protocol, c.protocol) << c.name;
        EXPECT_EQ(out.family, IpFamily::V6) << c.name;
    }
}

TEST(ParseIpv6, FragmentsHaveAddressesAndProtocolButNoPorts) {
    Parsed out;
    ASSERT_TRUE(parse_exactly(ip().fragment(0, true).udp(7, 9).payload("12345678").build(), out));
    EXPECT_EQ(out.key.to_string(), "UDP [2001:db8::1]:0 -> [2001:db8:80::10]:0");
}

TEST(ParseIpv6, Drops) {
    const struct {
        const char* name;
        PacketBuilder packet;
        DropReason reason;
    } cases[] = {
        {"length beyond the frame", ip().payload_length(100).tcp(1, 2), DropReason::FrameShorterThanIp},
        {"IPv4 in an IPv6 frame", eth().ether_type(0x86dd).payload(std::vector<uint8_t>(40, 0x45)),
         DropReason::BadIpHeader},
        {"a jumbogram says 0", ip().hop_by_hop().payload_length(0).tcp(1, 2), DropReason::BadExtensionHeader},
        {"TCP of length 0", ip().payload_length(0).tcp(1, 2), DropReason::BadL4Header},
        {"TCP cut by the length", ip().payload_length(19).tcp(1, 2), DropReason::BadL4Header},
        {"UDP cut by the length", ip().payload_length(7).udp(1, 2), DropReason::BadL4Header},
        {"UDP length beyond the packet", ip().udp(1, 2).udp_length(9), DropReason::BadL4Header},
        {"UDP length below its header", ip().udp(1, 2).udp_length(7), DropReason::BadL4Header},
        {"UDP length 0, a jumbogram's", ip().udp(1, 2).udp_length(0), DropReason::BadL4Header},
        {"port 0", ip().tcp(0, 2), DropReason::BadL4Header},
        {"port 0 behind options", ip().hop_by_hop().udp(1, 0), DropReason::BadL4Header},
        {"UDP without checksum", ip().udp(1, 2).l4_checksum(0), DropReason::NoUdpChecksum},
        {"UDP without checksum behind options", ip().hop_by_hop().udp(1, 2).l4_checksum(0),
         DropReason::NoUdpChecksum},
        {"source loopback", between("::1", kVip), DropReason::MartianSource},
        {"source multicast", between("ff02::1", kVip), DropReason::MartianSource},
        {"source unspecified to one host", between("::", kVip), DropReason::MartianSource},
        {"land", between(kVip, kVip), DropReason::MartianSource},
        {"source mapped", between("::ffff:192.0.2.1", kVip), DropReason::MappedAddress},
        {"destination mapped", between(kClient, "::ffff:80.11.12.10"), DropReason::MappedAddress},
        {"one extension header too many", with_options(kExtensionHeadersMax + 1).tcp(1, 2),
         DropReason::BadExtensionHeader},
        {"hop-by-hop options in second place", ip().destination_options().hop_by_hop().tcp(1, 2),
         DropReason::BadExtensionHeader},
        {"an extension header longer than the packet",
         ip().extension(60, {9, 0, 0, 0, 0, 0, 0}).tcp(1, 2).l4_checksum(1), DropReason::BadExtensionHeader},
        {"an extension header of less than 8 bytes", ip().extension(60, {0, 1}).ip_protocol(59),
         DropReason::BadExtensionHeader},
        {"a fragment header of less than 8 bytes", ip().extension(44, {0, 0, 0}).ip_protocol(59),
         DropReason::BadExtensionHeader},
        {"routing header of type 0", ip().routing(0, 1).tcp(1, 2), DropReason::SourceRouted},
    };
    for (const auto& c : cases) {
        expect_drop(c.name, c.packet, c.reason);
    }
}

// A mapped address must not appear in a key, where it would be equal to an IPv4 address.
TEST(ParseIpv6, LeavesNoMappedAddressBehind) {
    Parsed out;
    ASSERT_FALSE(parse_exactly(between("::ffff:192.0.2.1", "::ffff:80.11.12.10").build(), out).has_value());
    EXPECT_EQ(out.key, FlowKey{});
}

TEST(ParseIpv6, EveryTruncation) {
    for (const PacketBuilder& packet :
         {ip().tcp(40000, 80, "PA").payload("payload"), ip().hop_by_hop().fragment(0, false).udp(1, 2),
          ip().icmp(128, 0).payload("ping"), ip().fragment(0, true).udp(1, 2).payload("12345678")}) {
        const std::vector<uint8_t> frame = packet.build();
        for (size_t length = 0; length < frame.size(); ++length) {
            Parsed out;
            const ParseResult result = parse_exactly(ByteView(frame).first(length), out);
            ASSERT_FALSE(result.has_value()) << length << " bytes of " << packet.to_scapy();
            EXPECT_EQ(
                text_of(result.error()).counter,
                text_of(length < 54 ? DropReason::FrameTooShort : DropReason::FrameShorterThanIp).counter)
                << length << " bytes of " << packet.to_scapy();
        }
    }
}

// The fast path for common packets against all rules, on packets that are common except for at most one byte.
TEST(Parse, TheStraightWayAgreesWithTheRules) {
    const PacketBuilder packets[] = {
        eth().ipv4("192.0.2.1", "80.11.12.10").tcp(40000, 80, "PA").payload("hello"),
        eth().ipv4("192.0.2.1", "80.11.12.10").udp(40000, 80).payload("hello"),
        eth().ipv4("192.0.2.1", "80.11.12.10").udp(40000, 80),
        ip().tcp(40000, 80, "PA").payload("hello"),
        ip().udp(40000, 80).payload("hello"),
    };
    test::Prng random;
    for (const PacketBuilder& packet : packets) {
        const std::vector<uint8_t> frame = packet.build();
        for (size_t at = 0; at < frame.size(); ++at) {
            for (unsigned value = 0; value <= 0xff; ++value) {
                std::vector<uint8_t> damaged = frame;
                damaged[at] = static_cast<uint8_t>(value);
                damaged.resize(frame.size() - (random.one_in(16) ? random.below(frame.size()) : 0));
                for (const IpChecksum trust : {IpChecksum::Verify, IpChecksum::KnownGood}) {
                    Parsed straight, by_rules;
                    const ParseResult result = parse(damaged, straight, trust);
                    ASSERT_EQ(result, parse_any(damaged, by_rules, trust)) << test::to_scapy(damaged);
                    if (result) {
                        ASSERT_EQ(straight, by_rules) << test::to_scapy(damaged);
                    }
                }
            }
        }
    }
}

}  // namespace parse_ipv6_test
}  // namespace penstock::packet
