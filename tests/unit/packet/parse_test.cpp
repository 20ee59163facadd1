// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/parse.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/packet_builder.hpp"
#include "tests/unit/packet/exact_parse.hpp"

namespace penstock::packet {
namespace parse_test {

using test::eth;
using test::PacketBuilder;
using test_kit::expect_drop;
using test_kit::parse_exactly;

PacketBuilder ip() {
    return eth().ipv4("192.0.2.1", "80.11.12.10");
}

TEST(Parse, TcpSyn) {
    Parsed out;
    const auto frame =
        ip().ttl(63).tcp(40000, 80, "SE").tcp_options({2, 4, 5, 0xb4}).payload("hi").pad_to(80).build();
    ASSERT_TRUE(parse_exactly(frame, out));
    EXPECT_EQ(out.kind, PacketKind::Flow);
    EXPECT_EQ(out.key.to_string(), "TCP 192.0.2.1:40000 -> 80.11.12.10:80");
    EXPECT_EQ(out.ip_protocol, 6);
    EXPECT_EQ(out.ttl, 63);
    EXPECT_EQ(out.tcp_flags.bits, TcpFlags::kSyn | TcpFlags::kEce);
    EXPECT_EQ(out.l3_offset, 14);
    EXPECT_EQ(out.l4_offset, 34);
    EXPECT_EQ(out.payload_offset, 58);
    EXPECT_EQ(out.l3_length, 46);
    EXPECT_FALSE(out.destination_is_multicast_mac);
}

TEST(Parse, UdpBehindIpOptions) {
    Parsed out;
    ASSERT_TRUE(parse_exactly(
        ip().options({0x94, 4, 0, 0, 1, 1, 1}).udp(5353, 53).payload("x").to_mac("ff:ff:ff:ff:ff:ff").build(),
        out));
    EXPECT_EQ(out.kind, PacketKind::Flow);
    EXPECT_EQ(out.key.to_string(), "UDP 192.0.2.1:5353 -> 80.11.12.10:53");
    EXPECT_EQ(out.tcp_flags.bits, 0);
    EXPECT_EQ(out.l4_offset, 42);
    EXPECT_EQ(out.payload_offset, 50);
    EXPECT_TRUE(out.destination_is_multicast_mac);
}

TEST(Parse, LeavesNothingOfAnEarlierPacket) {
    Parsed out;
    ASSERT_TRUE(parse_exactly(ip().tcp(1, 2, "S").build(), out));
    ASSERT_TRUE(parse_exactly(eth().ether_type(0x0806).payload("arp").build(), out));
    EXPECT_EQ(out.kind, PacketKind::Other);
    EXPECT_EQ(out.key, FlowKey{});
    EXPECT_EQ(out.tcp_flags.bits, 0);
}

struct KindCase {
    const char* name;
    PacketBuilder packet;
    PacketKind kind;
};

TEST(Parse, Kinds) {
    const KindCase cases[] = {
        {"ARP", eth().ether_type(0x0806).payload("\1"), PacketKind::Other},
        {"VLAN", eth().ether_type(0x8100).payload("\1\2\3\4"), PacketKind::Other},
        {"LLDP", eth().ether_type(0x88cc), PacketKind::Other},
        {"a length instead of a type, as STP has", eth().ether_type(38).payload("BPDU"), PacketKind::Other},
        {"ICMP echo", ip().icmp(8, 0).payload("ping"), PacketKind::Ip},
        {"SCTP", ip().sctp(1, 2, 7).chunk(0, {1}), PacketKind::Flow},
        {"SCTP that nobody is to look at", eth().ipv4("192.0.2.1", "224.0.0.5").ip_protocol(132).payload("0"),
         PacketKind::Ip},
        {"a protocol without a payload", ip().ip_protocol(89), PacketKind::Ip},
        {"first fragment", ip().more_fragments().udp(1, 2).payload("12345678"), PacketKind::Fragment},
        {"later fragment", ip().more_fragments().fragment_offset(2).ip_protocol(17).payload("12345678"),
         PacketKind::Fragment},
        {"last fragment, shorter than a header", ip().fragment_offset(3).ip_protocol(6).payload("1"),
         PacketKind::Fragment},
        {"fragment of an ICMP packet", ip().fragment_offset(3).ip_protocol(1).payload("1"),
         PacketKind::Fragment},
        {"DF alone is no fragment", ip().dont_fragment().udp(1, 2), PacketKind::Flow},
        {"multicast", eth().ipv4("192.0.2.1", "224.0.0.5").udp(1, 2), PacketKind::Ip},
        {"limited broadcast", eth().ipv4("192.0.2.1", "255.255.255.255").udp(1, 2), PacketKind::Ip},
        {"DHCP discover", eth().ipv4("0.0.0.0", "255.255.255.255").udp(68, 67), PacketKind::Ip},
        {"IGMP of a host without an address", eth().ipv4("0.0.0.0", "224.0.0.22").ip_protocol(2),
         PacketKind::Ip},
        {"reserved destination", eth().ipv4("192.0.2.1", "240.0.0.1").tcp(1, 2), PacketKind::Ip},
        {"destination unspecified", eth().ipv4("192.0.2.1", "0.0.0.0").tcp(1, 2), PacketKind::Ip},
        {"destination loopback", eth().ipv4("192.0.2.1", "127.0.0.1").tcp(1, 2), PacketKind::Ip},
        {"a broken transport header to multicast is the host's",
         eth().ipv4("192.0.2.1", "224.0.0.5").udp(0, 0).udp_length(3), PacketKind::Ip},
        {"TCP without flags", ip().tcp(1, 2, ""), PacketKind::Flow},
        {"UDP shorter than its IP packet", ip().udp(1, 2).udp_length(9).payload("long"), PacketKind::Flow},
        {"UDP without payload", ip().udp(1, 2), PacketKind::Flow},
        {"a private source is no martian", eth().ipv4("10.0.0.1", "80.11.12.10").tcp(1, 2), PacketKind::Flow},
        {"TTL 0 is for a later stage to refuse", ip().ttl(0).tcp(1, 2), PacketKind::Flow},
    };
    for (const KindCase& c : cases) {
        Parsed out;
        const ParseResult result = parse_exactly(c.packet.build(), out);
        EXPECT_TRUE(result.has_value()) << c.name << ": " << c.packet.to_scapy();
        EXPECT_EQ(out.kind, c.kind) << c.name << ": " << c.packet.to_scapy();
    }
}

TEST(Parse, FragmentsHaveAddressesAndProtocolButNoPorts) {
    Parsed out;
    ASSERT_TRUE(parse_exactly(ip().more_fragments().udp(7, 9).payload("12345678").build(), out));
    EXPECT_EQ(out.key.to_string(), "UDP 192.0.2.1:0 -> 80.11.12.10:0");
    ASSERT_TRUE(parse_exactly(ip().fragment_offset(1).ip_protocol(132).payload("1").build(), out));
    EXPECT_EQ(out.key.protocol, Protocol::Sctp);
}

struct DropCase {
    const char* name;
    PacketBuilder packet;
    DropReason reason;
};

std::vector<uint8_t> words(size_t count) {
    return std::vector<uint8_t>(count * 4, 1);
}

TEST(Parse, Drops) {
    const DropCase cases[] = {
        {"IP length beyond the frame", ip().ip_total_length(100).tcp(1, 2), DropReason::FrameShorterThanIp},
        {"IP length below its header", ip().ip_total_length(19).tcp(1, 2), DropReason::BadIpHeader},
        {"IP length 0, as segmentation offload leaves it", ip().ip_total_length(0).tcp(1, 2),
         DropReason::BadIpHeader},
        {"IP length below header with options", ip().options(words(2)).ip_total_length(27).tcp(1, 2),
         DropReason::BadIpHeader},
        {"IP checksum", ip().ip_checksum(0x1234).tcp(1, 2), DropReason::BadIpChecksum},
        {"TCP cut by the IP length", ip().ip_total_length(39).tcp(1, 2), DropReason::BadL4Header},
        {"UDP cut by the IP length", ip().ip_total_length(27).udp(1, 2), DropReason::BadL4Header},
        {"no transport at all", ip().ip_protocol(6), DropReason::BadL4Header},
        {"TCP header longer than the packet", ip().ip_total_length(43).tcp(1, 2).tcp_options(words(1)),
         DropReason::BadL4Header},
        {"UDP length below its header", ip().udp(1, 2).udp_length(7), DropReason::BadL4Header},
        {"UDP length beyond the IP packet", ip().udp(1, 2).udp_length(9), DropReason::BadL4Header},
        {"TCP source port 0", ip().tcp(0, 2), DropReason::BadL4Header},
        {"TCP destination port 0", ip().tcp(1, 0), DropReason::BadL4Header},
        {"UDP source port 0", ip().udp(0, 2), DropReason::BadL4Header},
        {"UDP destination port 0", ip().udp(1, 0), DropReason::BadL4Header},
        {"source loopback", eth().ipv4("127.0.0.1", "80.11.12.10").tcp(1, 2), DropReason::MartianSource},
        {"source multicast", eth().ipv4("224.1.2.3", "80.11.12.10").udp(1, 2), DropReason::MartianSource},
        {"source limited broadcast", eth().ipv4("255.255.255.255", "80.11.12.10").udp(1, 2),
         DropReason::MartianSource},
        {"source reserved", eth().ipv4("240.0.0.1", "80.11.12.10").udp(1, 2), DropReason::MartianSource},
        {"source unspecified to one host", eth().ipv4("0.0.0.0", "80.11.12.10").udp(68, 67),
         DropReason::MartianSource},
        {"nowhere to nowhere", eth().ipv4("0.0.0.0", "0.0.0.0").udp(1, 2), DropReason::MartianSource},
        {"land: source is destination", eth().ipv4("80.11.12.10", "80.11.12.10").tcp(1, 2),
         DropReason::MartianSource},
        {"a fragment of a martian", eth().ipv4("127.0.0.1", "80.11.12.10").fragment_offset(1).ip_protocol(17),
         DropReason::MartianSource},
    };
    for (const DropCase& c : cases) {
        expect_drop(c.name, c.packet, c.reason);
    }
}

// Fields that the builder cannot falsify, by their byte in the frame.
TEST(Parse, DropsOnHeaderBytes) {
    struct Case {
        const char* name;
        size_t at;
        uint8_t value;
        DropReason reason;
    };
    const Case cases[] = {
        {"IP version 6 in an IPv4 frame", 14, 0x65, DropReason::BadIpHeader},
        {"IP header of 4 words", 14, 0x44, DropReason::BadIpHeader},
        {"IP header of 15 words, longer than the packet", 14, 0x4f, DropReason::BadIpHeader},
        {"TCP header of 4 words", 34 + 12, 0x40, DropReason::BadL4Header},
        {"TCP header of 6 words in 20 bytes", 34 + 12, 0x60, DropReason::BadL4Header},
    };
    for (const Case& c : cases) {
        auto frame = ip().tcp(1, 2).build();
        frame[c.at] = c.value;
        Parsed out;
        const ParseResult result = parse_exactly(frame, out, IpChecksum::KnownGood);
        ASSERT_FALSE(result.has_value()) << c.name;
        EXPECT_EQ(text_of(result.error()).counter, text_of(c.reason).counter) << c.name;
    }
}

TEST(Parse, TrustsTheNicAboutTheIpChecksum) {
    Parsed out;
    EXPECT_TRUE(parse_exactly(ip().ip_checksum(0x1234).tcp(1, 2).build(), out, IpChecksum::KnownGood));
    EXPECT_EQ(out.kind, PacketKind::Flow);
}

// Every prefix of a valid frame: a truncated frame never parses as IP, its drop reason names the truncation,
// and no byte beyond the end is read.
TEST(Parse, EveryTruncation) {
    const PacketBuilder packets[] = {
        ip().tcp(40000, 80, "PA").tcp_options({1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}).payload("payload"),
        ip().options(words(10)).udp(40000, 53).payload("payload"),
        ip().icmp(8, 0).payload("ping"),
        ip().more_fragments().udp(1, 2).payload("12345678"),
    };
    for (const PacketBuilder& packet : packets) {
        const std::vector<uint8_t> frame = packet.build();
        const size_t ip_header_end = 14 + size_t{frame[14] & 0x0fU} * 4;
        for (size_t length = 0; length < frame.size(); ++length) {
            Parsed out;
            const ParseResult result = parse_exactly(ByteView(frame).first(length), out);
            ASSERT_FALSE(result.has_value()) << length << " bytes of " << packet.to_scapy();
            EXPECT_EQ(
                text_of(result.error()).counter,
                text_of(length < ip_header_end ? DropReason::FrameTooShort : DropReason::FrameShorterThanIp)
                    .counter)
                << length << " bytes of " << packet.to_scapy();
        }
        Parsed out;
        EXPECT_TRUE(parse_exactly(frame, out)) << packet.to_scapy();
    }
}

}  // namespace parse_test
}  // namespace penstock::packet
