#include "dataplane/packet/quoted.hpp"

#include <gtest/gtest.h>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace {

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
    return {frame.begin() + 14, frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), 14 + most))};
}
Bytes changed(Bytes bytes, size_t at, uint8_t value) {
    bytes.at(at) = value;
    return bytes;
}

TEST(Quoted, TellsTheFlowThatAnErrorIsAbout) {
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
        std::optional<FlowKey> expected;
    } cases[] = {
        {"unreachable, the whole packet", error4(3, tcp).build(), kSent4},
        {"eight bytes behind the header", error4(3, ip_of(sent4().tcp(40'000, 9376, "A"), 28)).build(), kSent4},
        {"four would do", error4(11, ip_of(sent4().tcp(40'000, 9376, "A"), 24)).build(), kSent4},
        {"three do not", error4(11, ip_of(sent4().tcp(40'000, 9376, "A"), 23)).build(), {}},
        {"nothing quoted", error4(3, {}).build(), {}},
        {"half an IP header", error4(3, ip_of(sent4().tcp(40'000, 9376, "A"), 12)).build(), {}},
        {"with IP options", error4(12, ip_of(sent4().options({1, 1, 1, 1}).tcp(40'000, 9376, "A"), 32)).build(), kSent4},
        {"a header shorter than the least", error4(3, changed(tcp, 0, 0x44)).build(), {}},
        {"a header longer than what is there", error4(3, changed(ip_of(sent4().tcp(40'000, 9376, "A"), 40), 0, 0x4f)).build(), {}},
        {"IPv6 in an error of IPv4", error4(3, udp6).build(), {}},
        {"a later fragment has no ports", error4(3, ip_of(sent4().ip_protocol(6).fragment_offset(10).payload("twelve bytes"))).build(), {}},
        {"a first fragment has", error4(11, ip_of(sent4().more_fragments().tcp(40'000, 9376, "A"))).build(), kSent4},
        {"another protocol", error4(3, ip_of(sent4().ip_protocol(47).payload("eight by"))).build(), {}},
        {"an echo request is no error", error4(8, tcp).build(), {}},
        {"over IPv6", error6(1, udp6).build(), kSent6},
        {"too big", error6(2, udp6).build(), kSent6},
        {"behind extension headers", error6(3, ip_of(sent6().hop_by_hop().destination_options(2).udp(40'000, 53))).build(), kSent6},
        {"a first fragment over IPv6", error6(3, ip_of(sent6().fragment(0, true).udp(40'000, 53))).build(), kSent6},
        {"a later one", error6(3, ip_of(sent6().fragment(8, false).ip_protocol(17).payload("eight by"))).build(), {}},
        {"cut inside an extension header", error6(3, ip_of(sent6().destination_options(2).udp(40'000, 53), 50)).build(), {}},
        {"cut before the ports", error6(3, ip_of(sent6().udp(40'000, 53), 43)).build(), {}},
        {"an echo reply is no error", error6(129, udp6).build(), {}},
        {"IPv4 in an error of IPv6", error6(1, tcp).build(), {}},
        {"no ICMP at all", eth().ipv4("10.9.9.9", "192.0.2.1").ip_protocol(47).payload(tcp).build(), {}},
        {"ICMPv6 over IPv4", eth().ipv4("10.9.9.9", "192.0.2.1").ip_protocol(58).payload(Bytes(100, 1)).build(), {}},
        {"an ICMP header cut short", eth().ipv4("10.9.9.9", "192.0.2.1").ip_protocol(1).payload({3, 0, 0, 0}).build(), {}},
    };
    for (const auto& c : cases) {
        Parsed parsed;
        ASSERT_TRUE(parse(c.frame, parsed).has_value()) << c.name;
        ASSERT_EQ(parsed.kind, PacketKind::Ip) << c.name;
        const auto quoted = quoted_flow(c.frame, parsed);
        EXPECT_EQ(quoted, c.expected) << c.name << ": " << (quoted ? quoted->to_string() : "none");
    }
}

// Padding behind a short IP packet is no part of what it quotes.
TEST(Quoted, ReadsNothingBehindTheIpPacket) {
    Bytes frame = eth().ipv4("10.9.9.9", "192.0.2.1").icmp(3, 0).payload(ip_of(sent4().tcp(40'000, 9376, "A"), 20)).build();
    frame.insert(frame.end(), 40, 0x11);
    Parsed parsed;
    ASSERT_TRUE(parse(frame, parsed).has_value());
    EXPECT_EQ(quoted_flow(frame, parsed), std::nullopt);
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

}  // namespace
}  // namespace penstock::packet
