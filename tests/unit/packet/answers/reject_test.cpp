// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/answers/reject.hpp"

#include <gtest/gtest.h>

#include "dataplane/packet/parse.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace reject_test {

using test::eth;
using test::PacketBuilder;
using test::same_frame;

constexpr size_t kTailroom = 64;

PacketBuilder to_vip() {
    return eth().ipv4("192.0.2.1", "80.11.12.10");
}
// The common part of every answer to to_vip().
PacketBuilder answer() {
    return eth()
        .from_mac("02:00:00:00:00:02")
        .to_mac("02:00:00:00:00:01")
        .ipv4("80.11.12.10", "192.0.2.1")
        .id(0)
        .dont_fragment()
        .ttl(64);
}

struct Rejected {
    AnswerResult result;
    std::vector<uint8_t> frame;  // of the answer's length, or the whole buffer if there was no answer
};

Rejected reject(const PacketBuilder& packet, size_t tailroom = kTailroom) {
    std::vector<uint8_t> buffer = packet.build();
    const size_t frame_bytes = buffer.size();
    Parsed parsed;
    EXPECT_TRUE(parse(buffer, parsed)) << packet.to_scapy();
    buffer.resize(frame_bytes + tailroom, 0xee);
    const AnswerResult result = make_reject(buffer, frame_bytes, parsed);
    if (result) {
        EXPECT_LE(*result, buffer.size());
        buffer.resize(*result);
    }
    return {result, buffer};
}

std::vector<uint8_t> ip_bytes(const PacketBuilder& packet, size_t count) {
    const std::vector<uint8_t> frame = packet.build();
    return {frame.begin() + 14, frame.begin() + static_cast<ptrdiff_t>(std::min(frame.size(), 14 + count))};
}

TEST(Reset, AnswersSegmentsAsRfc9293Says_REJ002) {
    struct Case {
        const char* name;
        PacketBuilder segment;
        const char* flags;
        uint32_t seq, ack;
    };
    const Case cases[] = {
        {"SYN", to_vip().tcp(40000, 80, "S").seq(1000), "RA", 0, 1001},
        {"SYN with ECN", to_vip().tcp(40000, 80, "SEC").seq(1000), "RA", 0, 1001},
        {"SYN with data", to_vip().tcp(40000, 80, "S").seq(1000).payload("12345"), "RA", 0, 1006},
        {"SYN at the end of sequence space", to_vip().tcp(40000, 80, "S").seq(0xffffffff), "RA", 0, 0},
        {"SYN behind padding", to_vip().tcp(40000, 80, "S").seq(1000).pad_to(60), "RA", 0, 1001},
        {"SYN and ACK", to_vip().tcp(40000, 80, "SA").seq(1000).ack(77), "R", 77, 0},
        {"ACK", to_vip().tcp(40000, 80, "A").seq(1000).ack(0x80000000), "R", 0x80000000, 0},
        {"data", to_vip().tcp(40000, 80, "PA").seq(1000).ack(5).payload("12345"), "R", 5, 0},
        {"FIN and ACK", to_vip().tcp(40000, 80, "FA").seq(1000).ack(5), "R", 5, 0},
        {"FIN alone", to_vip().tcp(40000, 80, "F").seq(1000).payload("12"), "RA", 0, 1003},
        {"no flags", to_vip().tcp(40000, 80, "").seq(1000).payload("12"), "RA", 0, 1002},
        {"behind IP and TCP options",
         to_vip().options({1, 1, 1}).tcp(40000, 80, "S").tcp_options({2, 4, 5, 0xb4}).seq(9), "RA", 0, 10},
    };
    for (const Case& c : cases) {
        const Rejected rejected = reject(c.segment);
        ASSERT_TRUE(rejected.result.has_value()) << c.name;
        const auto expected = answer().tcp(80, 40000, c.flags).seq(c.seq).ack(c.ack).window(0).build();
        EXPECT_TRUE(same_frame(rejected.frame, expected)) << c.name << ": " << c.segment.to_scapy();
    }
}

TEST(Reset, NeedsNoTailroom) {
    EXPECT_TRUE(reject(to_vip().tcp(40000, 80, "S"), 0).result.has_value());
}

TEST(Unreachable, QuotesTheDatagram_REJ002) {
    const PacketBuilder query = to_vip().ttl(7).udp(5353, 53).payload("who?");
    const Rejected rejected = reject(query);
    ASSERT_TRUE(rejected.result.has_value());
    EXPECT_TRUE(
        same_frame(rejected.frame, answer().tos(0xc0).icmp(3, 3).payload(ip_bytes(query, 1500)).build()));
}

TEST(Unreachable, AnswersADatagramWithoutChecksum) {
    const PacketBuilder query = to_vip().udp(5353, 53).l4_checksum(0).payload("who?");
    const Rejected rejected = reject(query);
    ASSERT_TRUE(rejected.result.has_value());
    EXPECT_TRUE(
        same_frame(rejected.frame, answer().tos(0xc0).icmp(3, 3).payload(ip_bytes(query, 1500)).build()));
}

// A datagram's checksum covers only the datagram, which may end before its IP packet does.
TEST(Unreachable, SumsNothingBehindTheDatagram) {
    const PacketBuilder query = to_vip().udp(5353, 53).payload("who? and a trailer").udp_length(8 + 4);
    const Rejected rejected = reject(query);
    ASSERT_TRUE(rejected.result.has_value());
    EXPECT_TRUE(
        same_frame(rejected.frame, answer().tos(0xc0).icmp(3, 3).payload(ip_bytes(query, 1500)).build()));
}

TEST(Unreachable, QuotesNoPadding) {
    const PacketBuilder query = to_vip().udp(5353, 53).payload("?");
    const Rejected rejected = reject(PacketBuilder(query).pad_to(60));
    ASSERT_TRUE(rejected.result.has_value());
    EXPECT_TRUE(
        same_frame(rejected.frame, answer().tos(0xc0).icmp(3, 3).payload(ip_bytes(query, 1500)).build()));
}

// RFC 1812, 4.3.2.3: as much as fits into 576 bytes, 28 of which are the gateway's own headers.
TEST(Unreachable, LengthsAroundTheLongestQuote) {
    for (const size_t ip_total : {547U, 548U, 549U, 1500U}) {
        const PacketBuilder query = to_vip().udp(5353, 53).payload(std::vector<uint8_t>(ip_total - 28, 'x'));
        const Rejected rejected = reject(query);
        ASSERT_TRUE(rejected.result.has_value());
        EXPECT_EQ(*rejected.result, 14 + std::min<size_t>(576, ip_total + 28));
        EXPECT_TRUE(
            same_frame(rejected.frame, answer().tos(0xc0).icmp(3, 3).payload(ip_bytes(query, 548)).build()));
    }
}

TEST(Unreachable, ShortensTheQuoteToTheBuffer) {
    const PacketBuilder query = to_vip().udp(5353, 53).payload("0123456789");
    const Rejected rejected = reject(query, 20);  // 28 bytes of headers leave no room for 8 of the 38
    ASSERT_TRUE(rejected.result.has_value());
    EXPECT_TRUE(
        same_frame(rejected.frame, answer().tos(0xc0).icmp(3, 3).payload(ip_bytes(query, 30)).build()));
    // The quote must contain the IP header and 8 bytes (RFC 792): 28 bytes, plus 28 for the new headers.
    EXPECT_TRUE(reject(to_vip().udp(5353, 53), 28).result.has_value());
    const Rejected too_tight = reject(to_vip().udp(5353, 53), 27);
    ASSERT_FALSE(too_tight.result.has_value());
    EXPECT_EQ(too_tight.result.error(), DropReason::RejectNotAllowed);
}

TEST(Reject, NeverAnswers_REJ002) {
    struct Case {
        const char* name;
        PacketBuilder packet;
        DropReason reason;
    };
    const Case cases[] = {
        {"a RST", to_vip().tcp(40000, 80, "R"), DropReason::RejectNotAllowed},
        {"a RST with ACK", to_vip().tcp(40000, 80, "RA").ack(1), DropReason::RejectNotAllowed},
        {"a RST with SYN", to_vip().tcp(40000, 80, "SR"), DropReason::RejectNotAllowed},
        {"a frame to all", to_vip().to_mac("ff:ff:ff:ff:ff:ff").udp(1, 2), DropReason::RejectNotAllowed},
        {"a frame to a group", to_vip().to_mac("01:00:5e:00:00:01").tcp(1, 2, "S"),
         DropReason::RejectNotAllowed},
        {"a frame from a group", to_vip().from_mac("03:00:00:00:00:01").udp(1, 2),
         DropReason::RejectNotAllowed},
        {"a first fragment", to_vip().more_fragments().udp(1, 2).payload("12345678"),
         DropReason::RejectNotAllowed},
        {"a packet to multicast", eth().ipv4("192.0.2.1", "224.0.0.5").udp(1, 2),
         DropReason::RejectNotAllowed},
        {"an ICMP packet", to_vip().icmp(8, 0), DropReason::RejectNotAllowed},
        {"a bad TCP checksum", to_vip().tcp(40000, 80, "S").l4_checksum(0x1234), DropReason::BadL4Checksum},
        {"a bad UDP checksum", to_vip().udp(5353, 53).l4_checksum(0x1234), DropReason::BadL4Checksum},
        {"a TCP checksum of zero, which says nothing special", to_vip().tcp(40000, 80, "S").l4_checksum(0),
         DropReason::BadL4Checksum},
    };
    for (const Case& c : cases) {
        const Rejected rejected = reject(c.packet);
        ASSERT_FALSE(rejected.result.has_value()) << c.name;
        EXPECT_EQ(text_of(rejected.result.error()).counter, text_of(c.reason).counter) << c.name;
        std::vector<uint8_t> untouched = c.packet.build();
        untouched.resize(untouched.size() + kTailroom, 0xee);
        EXPECT_TRUE(same_frame(rejected.frame, untouched)) << c.name;
    }
}

PacketBuilder to_vip6() {
    return eth().ipv6("2001:db8::1", "2001:db8:80::10").hop_by_hop().flow_label(7);
}
PacketBuilder answer6() {
    return eth()
        .from_mac("02:00:00:00:00:02")
        .to_mac("02:00:00:00:00:01")
        .ipv6("2001:db8:80::10", "2001:db8::1")
        .hop_limit(64);
}

TEST(Reset, OverIpv6_REJ002) {
    const Rejected syn = reject(to_vip6().tcp(40000, 80, "S").seq(1000).payload("12345").pad_to(120), 0);
    ASSERT_TRUE(syn.result.has_value());
    EXPECT_TRUE(same_frame(syn.frame, answer6().tcp(80, 40000, "RA").seq(0).ack(1006).window(0).build()));
    const Rejected ack = reject(eth().ipv6("2001:db8::1", "2001:db8:80::10").tcp(40000, 80, "A").ack(77), 0);
    ASSERT_TRUE(ack.result.has_value());
    EXPECT_TRUE(same_frame(ack.frame, answer6().tcp(80, 40000, "R").seq(77).ack(0).window(0).build()));
}

TEST(Unreachable, OverIpv6QuotesTheWholeDatagramWithItsExtensionHeaders_REJ002) {
    const PacketBuilder query = to_vip6().hop_limit(7).udp(5353, 53).payload("who?");
    const Rejected rejected = reject(PacketBuilder(query).pad_to(100));
    ASSERT_TRUE(rejected.result.has_value());
    EXPECT_TRUE(
        same_frame(rejected.frame, answer6().tos(0xc0).icmp(1, 4).payload(ip_bytes(query, 1500)).build()));
}

// RFC 4443, 2.4 c: as much as fits into the smallest IPv6 MTU, 48 bytes of which are the gateway's own
// headers.
TEST(Unreachable, LengthsAroundTheLongestQuoteOverIpv6) {
    for (const size_t ip_total : {1231U, 1232U, 1233U, 1500U}) {
        const PacketBuilder query = eth()
                                        .ipv6("2001:db8::1", "2001:db8:80::10")
                                        .udp(5353, 53)
                                        .payload(std::vector<uint8_t>(ip_total - 48, 'x'));
        const Rejected rejected = reject(query);
        ASSERT_TRUE(rejected.result.has_value());
        EXPECT_EQ(*rejected.result, 14 + std::min<size_t>(1280, ip_total + 48));
        EXPECT_TRUE(same_frame(rejected.frame,
                               answer6().tos(0xc0).icmp(1, 4).payload(ip_bytes(query, 1232)).build()));
    }
}

// The quote must contain all headers and 8 bytes behind them; extension headers can exceed the maximum size
// of an error.
TEST(Unreachable, OverIpv6NeedsRoomForAllHeaders) {
    const auto query = [](uint8_t units) {
        return eth().ipv6("2001:db8::1", "2001:db8:80::10").destination_options(units).udp(5353, 53);
    };
    EXPECT_TRUE(reject(query(147)).result.has_value());  // 40 + 1184 + 8 = 1232
    const Rejected too_long = reject(query(148));
    ASSERT_FALSE(too_long.result.has_value());
    EXPECT_EQ(too_long.result.error(), DropReason::RejectNotAllowed);
}

TEST(Reject, NeverAnswersOverIpv6_REJ002) {
    for (const PacketBuilder& packet :
         {to_vip6().tcp(40000, 80, "R"), to_vip6().to_mac("33:33:00:00:00:01").udp(1, 2),
          to_vip6().icmp(128, 0), to_vip6().fragment(0, true).udp(1, 2).payload("12345678")}) {
        const Rejected rejected = reject(packet);
        ASSERT_FALSE(rejected.result.has_value()) << packet.to_scapy();
        EXPECT_EQ(rejected.result.error(), DropReason::RejectNotAllowed);
    }
    EXPECT_EQ(reject(to_vip6().tcp(40000, 80, "S").l4_checksum(0x1234)).result.error(),
              DropReason::BadL4Checksum);
    EXPECT_EQ(reject(to_vip6().udp(5353, 53).l4_checksum(0x1234)).result.error(), DropReason::BadL4Checksum);
}

// One flipped bit anywhere under the checksum: no answer, or the packet is no longer a flow.
TEST(Reject, SeesEveryFlippedBit) {
    for (const PacketBuilder& packet :
         {to_vip().tcp(40000, 80, "S").payload("odd"), to_vip().udp(40000, 53).payload("odd")}) {
        const std::vector<uint8_t> frame = packet.build();
        for (size_t bit = 34 * 8; bit < frame.size() * 8; ++bit) {
            std::vector<uint8_t> damaged = frame;
            damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
            Parsed parsed;
            if (!parse(damaged, parsed)) {
                continue;
            }
            const size_t frame_bytes = damaged.size();
            damaged.resize(frame_bytes + kTailroom);
            EXPECT_FALSE(make_reject(damaged, frame_bytes, parsed).has_value())
                << "bit " << bit << " of " << packet.to_scapy();
        }
    }
}

}  // namespace reject_test
}  // namespace penstock::packet
