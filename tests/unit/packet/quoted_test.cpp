// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/quoted.hpp"

#include <gtest/gtest.h>

#include <expected>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace quoted_test {

using Bytes = std::vector<uint8_t>;
using test::eth;
using test::PacketBuilder;

const FlowKey kSent4{IpAddr::v4(192, 0, 2, 1), IpAddr::v4(10, 1, 2, 3), 40'000, 9376, Protocol::Tcp, {}};
const FlowKey kSent6{*IpAddr::parse("2001:db8::1"), *IpAddr::parse("fd00::7"), 40'000, 53, Protocol::Udp, {}};

PacketBuilder sent4() {
    return eth().ipv4("192.0.2.1", "10.1.2.3");
}
PacketBuilder sent6() {
    return eth().ipv6("2001:db8::1", "fd00::7");
}
// Without the Ethernet header, and no more than `most` bytes.
Bytes ip_of(const PacketBuilder& builder, size_t most = 10'000) {
    const Bytes frame = builder.build();
    return {frame.begin() + 14,
            frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), 14 + most))};
}
Bytes changed(Bytes bytes, size_t at, uint8_t value) {
    bytes.at(at) = value;
    return bytes;
}

using Key = std::expected<FlowKey, DropReason>;
const std::unexpected<DropReason> kCut{DropReason::BadIcmp};
const std::unexpected<DropReason> kNoFlow{DropReason::IcmpUnknownFlow};

TEST(Quoted, TellsTheFlowThatAnErrorIsAbout_ICMP005) {
    const auto error4 = [](uint8_t type, Bytes quoted) {
        return eth().ipv4("10.9.9.9", "192.0.2.1").icmp(type, 0).payload(std::move(quoted));
    };
    const auto error6 = [](uint8_t type, Bytes quoted) {
        return eth().ipv6("fd00::9", "2001:db8::1").icmp(type, 0).payload(std::move(quoted));
    };
    const Bytes tcp = ip_of(sent4().tcp(40'000, 9376, "A"));
    const Bytes udp6 = ip_of(sent6().udp(40'000, 53).payload("question"));
    const struct {
        const char* name;
        Bytes frame;
        Key expected;
    } cases[] = {
        {"unreachable, the whole packet", error4(3, tcp).build(), kSent4},
        {"eight bytes behind the header", error4(3, ip_of(sent4().tcp(40'000, 9376, "A"), 28)).build(),
         kSent4},
        {"four would do", error4(11, ip_of(sent4().tcp(40'000, 9376, "A"), 24)).build(), kSent4},
        {"three do not", error4(11, ip_of(sent4().tcp(40'000, 9376, "A"), 23)).build(), kCut},
        {"nothing quoted", error4(3, {}).build(), kCut},
        {"half an IP header", error4(3, ip_of(sent4().tcp(40'000, 9376, "A"), 12)).build(), kCut},
        {"with IP options",
         error4(12, ip_of(sent4().options({1, 1, 1, 1}).tcp(40'000, 9376, "A"), 32)).build(), kSent4},
        {"a header shorter than the least", error4(3, changed(tcp, 0, 0x44)).build(), kCut},
        {"a header longer than what is there",
         error4(3, changed(ip_of(sent4().tcp(40'000, 9376, "A"), 40), 0, 0x4f)).build(), kCut},
        {"IPv6 in an error of IPv4", error4(3, udp6).build(), kCut},
        {"a later fragment has no ports",
         error4(3, ip_of(sent4().ip_protocol(6).fragment_offset(10).payload("twelve bytes"))).build(), kCut},
        {"a first fragment has", error4(11, ip_of(sent4().more_fragments().tcp(40'000, 9376, "A"))).build(),
         kSent4},
        {"another protocol", error4(3, ip_of(sent4().ip_protocol(47).payload("eight by"))).build(), kNoFlow},
        {"over IPv6", error6(1, udp6).build(), kSent6},
        {"too big", error6(2, udp6).build(), kSent6},
        {"behind extension headers",
         error6(3, ip_of(sent6().hop_by_hop().destination_options(2).udp(40'000, 53))).build(), kSent6},
        {"a first fragment over IPv6", error6(3, ip_of(sent6().fragment(0, true).udp(40'000, 53))).build(),
         kSent6},
        {"a later one",
         error6(3, ip_of(sent6().fragment(8, false).ip_protocol(17).payload("eight by"))).build(), kCut},
        {"cut inside an extension header",
         error6(3, ip_of(sent6().destination_options(2).udp(40'000, 53), 50)).build(), kCut},
        {"cut before the ports", error6(3, ip_of(sent6().udp(40'000, 53), 43)).build(), kCut},
        {"IPv4 in an error of IPv6", error6(1, tcp).build(), kCut},
    };
    for (const auto& c : cases) {
        Parsed parsed;
        ASSERT_TRUE(parse(c.frame, parsed).has_value()) << c.name;
        ASSERT_EQ(parsed.kind, PacketKind::Ip) << c.name;
        ASSERT_EQ(icmp_role(c.frame, parsed), IcmpRole::Error) << c.name;
        const auto quote = quoted_packet(c.frame, parsed);
        EXPECT_EQ(quote ? Key(quote->key) : Key(std::unexpected(quote.error())), c.expected)
            << c.name << ": " << (quote ? quote->key.to_string() : "none");
    }
}

// ICMP-001 names the types that are forwarded; RFC 6633 and RFC 1812, 5.2.7.2 those that are not.
TEST(Quoted, TellsErrorsFromTheRestOfIcmp_ICMP001_ICMP007) {
    const auto role4 = [](uint8_t type) {
        const Bytes frame = eth().ipv4("10.9.9.9", "192.0.2.1").icmp(type, 0).build();
        Parsed parsed;
        EXPECT_TRUE(parse(frame, parsed).has_value());
        return icmp_role(frame, parsed);
    };
    const auto role6 = [](uint8_t type) {
        const Bytes frame = eth().ipv6("fd00::9", "2001:db8::1").hop_by_hop().icmp(type, 0).build();
        Parsed parsed;
        EXPECT_TRUE(parse(frame, parsed).has_value());
        return icmp_role(frame, parsed);
    };
    for (uint32_t type = 0; type < 256; ++type) {
        const auto expected4 = type == 3 || type == 11 || type == 12 ? IcmpRole::Error
                               : type == 8                           ? IcmpRole::EchoRequest
                                                                     : IcmpRole::Other;
        const auto expected6 = type >= 1 && type <= 4 ? IcmpRole::Error
                               : type == 128          ? IcmpRole::EchoRequest
                                                      : IcmpRole::Other;
        EXPECT_EQ(role4(static_cast<uint8_t>(type)), expected4) << type;
        EXPECT_EQ(role6(static_cast<uint8_t>(type)), expected6) << type;
    }
    const struct {
        const char* name;
        Bytes frame;
        IcmpRole expected;
    } cases[] = {
        {"no ICMP at all", eth().ipv4("10.9.9.9", "192.0.2.1").ip_protocol(47).payload(Bytes(100, 3)).build(),
         IcmpRole::None},
        {"ICMPv6 over IPv4",
         eth().ipv4("10.9.9.9", "192.0.2.1").ip_protocol(58).payload(Bytes(100, 1)).build(), IcmpRole::None},
        {"ICMP over IPv6", eth().ipv6("fd00::9", "2001:db8::1").ip_protocol(1).payload(Bytes(100, 3)).build(),
         IcmpRole::None},
        {"a header cut short",
         eth().ipv4("10.9.9.9", "192.0.2.1").ip_protocol(1).payload(Bytes{3, 0, 0, 0, 0, 0, 0}).build(),
         IcmpRole::Cut},
        {"nothing at all", eth().ipv4("10.9.9.9", "192.0.2.1").ip_protocol(1).build(), IcmpRole::Cut},
    };
    for (const auto& c : cases) {
        Parsed parsed;
        ASSERT_TRUE(parse(c.frame, parsed).has_value()) << c.name;
        EXPECT_EQ(icmp_role(c.frame, parsed), c.expected) << c.name;
    }
}

// Ethernet padding behind a short IP packet is not part of the quote.
TEST(Quoted, ReadsNothingBehindTheIpPacket) {
    Bytes frame = eth()
                      .ipv4("10.9.9.9", "192.0.2.1")
                      .icmp(3, 0)
                      .payload(ip_of(sent4().tcp(40'000, 9376, "A"), 20))
                      .build();
    frame.insert(frame.end(), 40, 0x11);
    Parsed parsed;
    ASSERT_TRUE(parse(frame, parsed).has_value());
    const std::expected<Quote, DropReason> cut = kCut;
    EXPECT_EQ(quoted_packet(frame, parsed), cut);
}

TEST(Quoted, TellsTheDatagramOfAFragment) {
    for (const uint16_t id : {uint16_t{0}, uint16_t{0x1234}, uint16_t{0xffff}}) {
        const Bytes frame = sent4().id(id).ip_protocol(17).more_fragments().payload("eight by").build();
        Parsed parsed;
        ASSERT_TRUE(parse(frame, parsed).has_value());
        EXPECT_EQ(datagram_id(frame, parsed), id);
    }
    Bytes frame = sent6().hop_by_hop().fragment(8, true).ip_protocol(17).payload("eight by").build();
    const uint8_t number[] = {0xde, 0xad, 0xbe, 0xef};
    std::ranges::copy(number, frame.begin() + 14 + 40 + 8 + 4);
    Parsed parsed;
    ASSERT_TRUE(parse(frame, parsed).has_value());
    EXPECT_EQ(datagram_id(frame, parsed), 0xdeadbeefU);
}

}  // namespace quoted_test
}  // namespace penstock::packet
