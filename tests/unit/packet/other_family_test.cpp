// SPDX-License-Identifier: Apache-2.0
// Conversion of packets and fragments to the other family, compared with packets built anew. Sections are RFC
// 7915's.
#include "dataplane/packet/other_family.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/frame_diff.hpp"
#include "tests/support/other_family.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace other_family_test {

using test::Bytes;
using test::eth;
using test::MovableBuffer;
using test::PacketBuilder;
using test::parsed_of;
using test::same_frame;

constexpr uint8_t kUdp = 17;
constexpr uint16_t kNextId = 0x5eed;

// The packets that a client of each family sends, and the packets that leave for an endpoint of the other
// family.
PacketBuilder from4() {
    return eth().ipv4("192.0.2.1", "80.11.12.10").ttl(64).id(0x1234);
}
PacketBuilder to6() {
    return eth().ipv6("fd00::5", "fd00::7").hop_limit(63);
}
PacketBuilder from6() {
    return eth().ipv6("2001:db8::1", "2001:db8:a::80").hop_limit(64);
}
PacketBuilder to4() {
    return eth().ipv4("10.0.0.5", "10.0.0.7").ttl(63).id(kNextId);
}

FamilyRewrite rewrite_of(const Parsed& parsed) {
    const bool is_v4 = parsed.family == IpFamily::V4;
    const Rewrite rewrite{.source = *IpAddr::parse(is_v4 ? "fd00::5" : "10.0.0.5"),
                          .destination = *IpAddr::parse(is_v4 ? "fd00::7" : "10.0.0.7"),
                          .source_port = 5'000,
                          .destination_port = 8'080};
    return test::family_rewrite(parsed.key, rewrite);
}

using Result = std::expected<Bytes, DropReason>;

Result converted(const Bytes& frame, bool needs_cut = false, uint16_t headroom = 128) {
    const Parsed parsed = parsed_of(frame);
    MovableBuffer buffer(frame, headroom);
    const uint16_t bytes = bytes_in_other_family(parsed);
    if (const Converted result =
            to_other_family(buffer.frame, parsed, rewrite_of(parsed), kNextId, needs_cut);
        !result) {
        EXPECT_TRUE(buffer.is_untouched());
        return std::unexpected(result.error());
    }
    EXPECT_TRUE(buffer.is_sound());
    EXPECT_EQ(buffer.frame.length - sizeof(EthernetHeader),
              bytes + (needs_cut && !parsed.is_fragment ? 8U : 0U));
    return buffer.content();
}

struct Case {
    const char* name;
    Bytes frame;
    Bytes expected;
    bool needs_cut = false;
};
void expect_converted(std::span<const Case> cases) {
    for (const Case& c : cases) {
        const Result result = converted(c.frame, c.needs_cut);
        ASSERT_TRUE(result.has_value()) << c.name << ": " << text_of(result.error()).counter;
        EXPECT_TRUE(same_frame(*result, c.expected)) << c.name;
    }
}

Bytes with_byte(Bytes frame, size_t at, uint8_t value) {
    frame.at(at) = value;
    return frame;
}
// The id in the builder's fragment header, 0x1234, is the low half of a datagram's id.
Bytes with_high_id(Bytes frame, size_t fragment_header_at) {
    return with_byte(std::move(frame), fragment_header_at + 4, 0xab);
}

TEST(OtherFamily, Ipv4PacketsBecomeIpv6_RFC7915_4_1) {
    const Bytes text(999, 'x');  // an odd length
    const Case cases[] = {
        {"TCP", from4().dont_fragment().tcp(40'000, 443, "PA").seq(7).payload("hello").build(),
         to6().tcp(5'000, 8'080, "PA").seq(7).payload("hello").build()},
        {"UDP of an odd length", from4().udp(40'000, 443).payload(text).build(),
         to6().udp(5'000, 8'080).payload(text).build()},
        {"an empty datagram", from4().udp(40'000, 443).build(), to6().udp(5'000, 8'080).build()},
        {"SCTP", from4().sctp(40'000, 443, 0).sctp_init(77).build(),
         to6().sctp(5'000, 8'080, 0).sctp_init(77).build()},
        {"SCTP without a sum", from4().sctp(40'000, 443, 9).chunk(0, text).sctp_checksum(0).build(),
         to6().sctp(5'000, 8'080, 9).chunk(0, text).sctp_checksum(0).build()},
        {"type of service is the traffic class", from4().tos(0xb9).tcp(40'000, 443).build(),
         to6().tos(0xb9).tcp(5'000, 8'080).build()},
        {"the last hop but one", from4().ttl(2).tcp(40'000, 443).build(),
         to6().hop_limit(1).tcp(5'000, 8'080).build()},
        {"many hops", from4().ttl(255).tcp(40'000, 443).build(),
         to6().hop_limit(254).tcp(5'000, 8'080).build()},
        {"options are left out", from4().options({1, 1, 1, 1}).tcp(40'000, 443).payload("p").build(),
         to6().tcp(5'000, 8'080).payload("p").build()},
        {"more of them than IPv6's header is longer",
         from4().options(Bytes(40, 1)).udp(40'000, 443).payload("p").build(),
         to6().udp(5'000, 8'080).payload("p").build()},
        {"just as many", from4().options(Bytes(20, 1)).udp(40'000, 443).payload("p").build(),
         to6().udp(5'000, 8'080).payload("p").build()},
        {"padding is cut off", from4().udp(40'000, 443).payload("p").pad_to(60).build(),
         to6().udp(5'000, 8'080).payload("p").build()},
        {"bytes behind the datagram stay", from4().udp(40'000, 443).payload("payload").udp_length(10).build(),
         to6().udp(5'000, 8'080).payload("payload").udp_length(10).build()},
        {"a packet that is to be cut has a fragment header", from4().udp(40'000, 443).payload(text).build(),
         to6().fragment(0, false).udp(5'000, 8'080).payload(text).build(), true},
    };
    expect_converted(cases);
}

TEST(OtherFamily, Ipv4FragmentsBecomeIpv6_RFC7915_4_1) {
    const Bytes text(160, 'x'), whole_units(156, 'x');  // behind a TCP header
    const Case cases[] = {
        {"the first one of UDP", from4().more_fragments().udp(40'000, 443).payload(text).build(),
         to6().fragment(0, true).udp(5'000, 8'080).payload(text).build()},
        {"the first one of TCP", from4().more_fragments().tcp(40'000, 443).payload(whole_units).build(),
         to6().fragment(0, true).tcp(5'000, 8'080).payload(whole_units).build()},
        {"one in the middle",
         from4().more_fragments().fragment_offset(21).ip_protocol(kUdp).payload(text).build(),
         to6().fragment(21, true).ip_protocol(kUdp).payload(text).build()},
        {"the last one, of an odd length",
         from4().fragment_offset(0x1ff0).ip_protocol(kUdp).payload("odd").pad_to(60).build(),
         to6().fragment(0x1ff0, false).ip_protocol(kUdp).payload("odd").build()},
        {"with options",
         from4().options({1, 1, 1, 1}).fragment_offset(21).ip_protocol(kUdp).payload(text).build(),
         to6().fragment(21, false).ip_protocol(kUdp).payload(text).build()},
        {"with DF",
         from4().dont_fragment().more_fragments().fragment_offset(21).ip_protocol(kUdp).payload(text).build(),
         to6().fragment(21, true).ip_protocol(kUdp).payload(text).build()},
        {"that is to be cut", from4().fragment_offset(21).ip_protocol(kUdp).payload(text).build(),
         to6().fragment(21, false).ip_protocol(kUdp).payload(text).build(), true},
    };
    expect_converted(cases);
}

TEST(OtherFamily, Ipv6PacketsBecomeIpv4_RFC7915_5_1) {
    const Bytes text(999, 'x');
    const Bytes longest_cut(1260 - 20 - 8, 'x'), shortest_whole(1260 - 20 - 8 + 1, 'x');
    const Case cases[] = {
        {"TCP", from6().tcp(40'000, 443, "PA").seq(7).payload("hello").build(),
         to4().tcp(5'000, 8'080, "PA").seq(7).payload("hello").build()},
        {"UDP of an odd length", from6().udp(40'000, 443).payload(text).build(),
         to4().udp(5'000, 8'080).payload(text).build()},
        {"SCTP", from6().sctp(40'000, 443, 0).sctp_init(77).build(),
         to4().sctp(5'000, 8'080, 0).sctp_init(77).build()},
        {"traffic class is the type of service, the flow label is no more",
         from6().tos(0xb9).flow_label(0xfffff).tcp(40'000, 443).build(),
         to4().tos(0xb9).tcp(5'000, 8'080).build()},
        {"1,260 bytes may be cut", from6().udp(40'000, 443).payload(longest_cut).build(),
         to4().udp(5'000, 8'080).payload(longest_cut).build()},
        {"one more may not", from6().udp(40'000, 443).payload(shortest_whole).build(),
         to4().id(0).dont_fragment().udp(5'000, 8'080).payload(shortest_whole).build()},
        {"the last hop but one", from6().hop_limit(2).tcp(40'000, 443).build(),
         to4().ttl(1).tcp(5'000, 8'080).build()},
        {"extension headers are left out",
         from6().hop_by_hop().routing(4, 0).destination_options(2).tcp(40'000, 443).payload("p").build(),
         to4().tcp(5'000, 8'080).payload("p").build()},
        {"padding is cut off", from6().udp(40'000, 443).pad_to(70).build(), to4().udp(5'000, 8'080).build()},
        {"bytes behind the datagram stay", from6().udp(40'000, 443).payload("payload").udp_length(10).build(),
         to4().udp(5'000, 8'080).payload("payload").udp_length(10).build()},
        {"a whole packet with a fragment header keeps its number",
         with_high_id(from6().hop_by_hop().fragment(0, false).udp(40'000, 443).payload("p").build(),
                      14 + 40 + 8),
         to4().id(0x1234).udp(5'000, 8'080).payload("p").build()},
        {"and may be cut", from6().fragment(0, false).udp(40'000, 443).payload(shortest_whole).build(),
         to4().id(0x1234).udp(5'000, 8'080).payload(shortest_whole).build()},
        {"options behind it are left out",
         from6().fragment(0, false).destination_options().udp(40'000, 443).payload("p").build(),
         to4().id(0x1234).udp(5'000, 8'080).payload("p").build()},
    };
    expect_converted(cases);
}

TEST(OtherFamily, Ipv6FragmentsBecomeIpv4_RFC7915_5_1_1) {
    const Bytes text(160, 'x'), whole_units(156, 'x');  // behind a TCP header
    const Case cases[] = {
        {"the first one",
         with_high_id(from6().fragment(0, true).udp(40'000, 443).payload(text).build(), 14 + 40),
         to4().id(0x1234).more_fragments().udp(5'000, 8'080).payload(text).build()},
        {"behind hop-by-hop options",
         from6().hop_by_hop().fragment(0, true).tcp(40'000, 443).payload(whole_units).build(),
         to4().id(0x1234).more_fragments().tcp(5'000, 8'080).payload(whole_units).build()},
        {"one in the middle", from6().fragment(21, true).ip_protocol(kUdp).payload(text).build(),
         to4().id(0x1234).more_fragments().fragment_offset(21).ip_protocol(kUdp).payload(text).build()},
        {"behind a fragment header of its own",
         from6().fragment(0, false).fragment(21, true).ip_protocol(kUdp).payload(text).build(),
         to4().id(0x1234).more_fragments().fragment_offset(21).ip_protocol(kUdp).payload(text).build()},
        {"the last one", from6().fragment(21, false).ip_protocol(kUdp).payload("odd").pad_to(90).build(),
         to4().id(0x1234).fragment_offset(21).ip_protocol(kUdp).payload("odd").build()},
        {"one that ends where the longest datagram of IPv4 does",
         from6().fragment((65'515 - 3) / 8, false).ip_protocol(kUdp).payload("odd").build(),
         to4().id(0x1234).fragment_offset((65'515 - 3) / 8).ip_protocol(kUdp).payload("odd").build()},
    };
    expect_converted(cases);
}

// The bytes of RFC 791 and RFC 8200, written by hand.
TEST(OtherFamily, HeadersAreAsTheRfcsDrawThem_RFC7915_4_1_5_1) {
    const Bytes eight(8, 0xaa);
    const Result six = converted(
        from4().tos(0x0f).more_fragments().fragment_offset(0x1001).ip_protocol(kUdp).payload(eight).build());
    ASSERT_TRUE(six.has_value());
    // clang-format off
    const Bytes expected6{
        0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, 0x86, 0xdd,  // Ethernet
        0x60, 0xf0, 0x00, 0x00,                                      // version, traffic class, flow label
        0x00, 0x10, 44, 63,                                          // payload length, next header, hop limit
        0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,           // source
        0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7,           // destination
        17, 0, 0x80, 0x09, 0, 0, 0x12, 0x34,                         // next header, offset and more, id
        0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa};
    // clang-format on
    EXPECT_TRUE(same_frame(*six, expected6));

    const Result four =
        converted(from6().tos(0x0f).fragment(0x1001, true).ip_protocol(kUdp).payload(eight).build());
    ASSERT_TRUE(four.has_value());
    // 450f + 001c + 1234 + 3001 + 3f11 + 0a00 + 0005 + 0a00 + 0007 = da7d; the complement is 2582.
    // clang-format off
    const Bytes expected4{
        0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00,  // Ethernet
        0x45, 0x0f, 0x00, 0x1c,                                      // version and length, TOS, total length
        0x12, 0x34, 0x30, 0x01,                                      // id, more fragments and offset
        63, 17, 0x25, 0x82,                                          // time to live, protocol, checksum
        10, 0, 0, 5, 10, 0, 0, 7,                                    // source, destination
        0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa};
    // clang-format on
    EXPECT_TRUE(same_frame(*four, expected4));
}

TEST(OtherFamily, AWrongChecksumStaysWrongByAsMuch) {
    for (const uint16_t wrong_by : {uint16_t{1}, uint16_t{0x0100}, uint16_t{0x7fff}}) {
        for (const PacketBuilder& before : {from4(), from6()}) {
            for (const bool is_udp : {false, true}) {
                PacketBuilder packet = before;
                is_udp ? packet.udp(40'000, 443) : packet.tcp(40'000, 443);
                const Bytes right = packet.payload("data").build();
                const uint16_t sum =
                    static_cast<uint16_t>((test::reference_l4_checksum(right) + wrong_by) % 0xffff);
                const Result result = converted(packet.l4_checksum(sum).build());
                ASSERT_TRUE(result.has_value());
                const size_t l4_at = (*result)[12] == 0x86 ? 54 : 34;
                const size_t sum_at = l4_at + (is_udp ? 6 : 16);
                const auto left = static_cast<uint16_t>((*result)[sum_at] << 8 | (*result)[sum_at + 1]);
                EXPECT_EQ((uint32_t{test::reference_l4_checksum(*result)} + wrong_by) % 0xffff,
                          left % 0xffff);
            }
        }
    }
}

TEST(OtherFamily, UdpWithoutAChecksumGetsOne_RFC7915_4_5) {
    const Bytes text(999, 'x');
    const Case cases[] = {
        {"whole", from4().udp(40'000, 443).l4_checksum(0).payload(text).build(),
         to6().udp(5'000, 8'080).payload(text).build()},
        {"empty", from4().udp(40'000, 443).l4_checksum(0).build(), to6().udp(5'000, 8'080).build()},
        {"over the datagram alone",
         from4().udp(40'000, 443).l4_checksum(0).payload("payload").udp_length(11).build(),
         to6().udp(5'000, 8'080).payload("payload").udp_length(11).build()},
        {"with options", from4().options({1, 1, 1, 1}).udp(40'000, 443).l4_checksum(0).payload(text).build(),
         to6().udp(5'000, 8'080).payload(text).build()},
        {"that is to be cut", from4().udp(40'000, 443).l4_checksum(0).payload(text).build(),
         to6().fragment(0, false).udp(5'000, 8'080).payload(text).build(), true},
    };
    expect_converted(cases);
    const Result first =
        converted(from4().more_fragments().udp(40'000, 443).l4_checksum(0).payload(Bytes(16, 'x')).build());
    EXPECT_EQ(first, Result(std::unexpected(DropReason::NoUdpChecksum)));
    // A later fragment is not examined: its first fragment is dropped here, so the datagram is never
    // reassembled.
    EXPECT_TRUE(
        converted(from4().fragment_offset(3).ip_protocol(kUdp).payload(Bytes(16, 0)).build()).has_value());
}

// A datagram with a computed checksum of 0 is sent with 0xffff: IPv6 has no "none sent".
TEST(OtherFamily, AUdpChecksumOfZeroIsSpelledOnes_RFC7915_4_5) {
    const auto with_word = [](uint16_t word) {
        return Bytes{static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word)};
    };
    const Bytes open = to6().udp(5'000, 8'080).payload(with_word(0)).build();
    const auto sum = test::reference_l4_checksum(open);  // the value of the missing checksum
    const Bytes closed = to6().udp(5'000, 8'080).payload(with_word(sum)).l4_checksum(0xffff).build();
    for (const bool has_sum : {false, true}) {
        PacketBuilder sent = from4().udp(40'000, 443).payload(with_word(sum));
        if (!has_sum) {
            sent.l4_checksum(0);
        }
        const Result result = converted(sent.build());
        ASSERT_TRUE(result.has_value());
        EXPECT_TRUE(same_frame(*result, closed)) << has_sum;
    }
}

TEST(OtherFamily, WhatIpv4HasNoRoomForIsRefused_RFC7915_5_1_1) {
    const struct {
        const char* name;
        Bytes frame;
    } cases[] = {
        {"options behind the fragment header of a first one",
         from6().fragment(0, true).destination_options().udp(1, 2).build()},
        {"of a later one", from6().fragment(8, true).ip_protocol(60).payload(Bytes(16, 0)).build()},
        {"an authentication header", from6().fragment(8, true).ip_protocol(51).payload(Bytes(16, 0)).build()},
        {"an end that counts no header",
         from6().fragment((65'515 - 3) / 8, false).ip_protocol(kUdp).payload("even").build()},
    };
    for (const auto& c : cases) {
        EXPECT_EQ(converted(c.frame), Result(std::unexpected(DropReason::BadExtensionHeader))) << c.name;
    }
}

TEST(OtherFamily, WithoutHeadroomAFrameStaysAsItWas) {
    const struct {
        const char* name;
        Bytes frame;
        uint16_t needed;
        bool needs_cut = false;
    } cases[] = {
        {"whole", from4().tcp(40'000, 443).payload("p").build(), 20},
        {"a fragment", from4().fragment_offset(21).ip_protocol(kUdp).payload("p").build(), 28},
        {"with four bytes of options", from4().options({1, 1, 1, 1}).tcp(40'000, 443).build(), 16},
        {"with twenty", from4().options(Bytes(20, 1)).tcp(40'000, 443).build(), 0},
        {"to be cut", from4().udp(40'000, 443).build(), 28, true},
        {"without a checksum", from4().udp(40'000, 443).l4_checksum(0).build(), 20},
        {"becoming shorter", from6().tcp(40'000, 443).build(), 0},
    };
    for (const auto& c : cases) {
        EXPECT_TRUE(converted(c.frame, c.needs_cut, c.needed).has_value()) << c.name;
        if (c.needed > 0) {
            EXPECT_EQ(converted(c.frame, c.needs_cut, static_cast<uint16_t>(c.needed - 1)),
                      Result(std::unexpected(DropReason::NoBuffer)))
                << c.name;
        }
    }
}

TEST(OtherFamily, WhatNoFrameCouldHoldIsTooBig) {
    constexpr size_t kHeaders4 = 14 + 20 + 8;
    const Bytes longest(0xffff - 20 - kHeaders4, 'x');
    const Bytes fits = from4().udp(40'000, 443).payload(longest).build();
    const Result result = converted(fits);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->size(), 0xffffU);
    EXPECT_EQ(converted(fits, true), Result(std::unexpected(DropReason::PacketTooBig)));
    Bytes more = longest;
    more.push_back('x');
    EXPECT_EQ(converted(from4().udp(40'000, 443).payload(more).build()),
              Result(std::unexpected(DropReason::PacketTooBig)));
    more.resize(0xffff - kHeaders4);
    const Bytes longest_frame = from4().udp(40'000, 443).payload(more).build();
    EXPECT_EQ(bytes_in_other_family(parsed_of(longest_frame)), 0xffff);  // 65,541
    EXPECT_EQ(converted(longest_frame), Result(std::unexpected(DropReason::PacketTooBig)));
    // In the opposite direction there is always room.
    more.resize(0xffff - kHeaders4 - 20);
    EXPECT_TRUE(converted(from6().udp(40'000, 443).payload(more).build()).has_value());
}

TEST(OtherFamily, TellsWhatMayBeCut) {
    const auto may = [](const PacketBuilder& packet) {
        const Bytes frame = packet.build();
        return may_be_cut(frame, parsed_of(frame));
    };
    EXPECT_TRUE(may(from4().udp(1, 2)));
    EXPECT_TRUE(may(from4().more_fragments().udp(1, 2)));
    EXPECT_FALSE(may(from4().dont_fragment().udp(1, 2)));
    EXPECT_FALSE(may(from6().udp(1, 2)));
    EXPECT_FALSE(may(from6().fragment(0, true).udp(1, 2)));
}

// There and back with a flow's two deltas: the packet is unchanged except for two hops, the id of a whole
// packet, and the flow label.
TEST(OtherFamily, ThereAndBackIsWhatItWas) {
    test::Prng prng;
    const FlowKey forward{
        IpAddr::v4(192, 0, 2, 1), IpAddr::v4(80, 11, 12, 10), 40'000, 443, Protocol::Tcp, {}};
    const Rewrite there{*IpAddr::parse("fd00::5"), *IpAddr::parse("fd00::7"), 5'000, 8'080};
    const Rewrite back{forward.source, forward.destination, forward.source_port, forward.destination_port};
    const FoldedDelta delta = translation_deltas(forward, there).l4;
    for (int i = 0; i < 2'000; ++i) {
        Bytes payload(prng.between(0, 1'400));
        for (uint8_t& byte : payload) {
            byte = prng.one_in(3) ? uint8_t{0} : prng.byte();
        }
        const auto sent = [&](uint8_t ttl, bool is_tcp) {
            PacketBuilder packet = eth().ipv4("192.0.2.1", "80.11.12.10").ttl(ttl).id(kNextId).tos(0x2e);
            is_tcp ? packet.tcp(40'000, 443).payload(payload) : packet.udp(40'000, 443).payload(payload);
            if (20 + (is_tcp ? 20 : 8) + payload.size() > 1260) {
                packet.id(0).dont_fragment();
            }
            return packet.build();
        };
        const bool is_tcp = prng.one_in(2);
        const Bytes frame = sent(64, is_tcp);
        MovableBuffer buffer(frame, 20);
        const auto convert = [&](const Rewrite& rewrite, FoldedDelta l4) {
            FamilyRewrite to{rewrite.source,
                             rewrite.destination,
                             Be16::from_host(rewrite.source_port),
                             Be16::from_host(rewrite.destination_port),
                             l4,
                             is_tcp ? Protocol::Tcp : Protocol::Udp};
            ASSERT_TRUE(to_other_family(buffer.frame, parsed_of(buffer.content()), to, kNextId).has_value());
            ASSERT_TRUE(buffer.is_sound());
        };
        convert(there, delta);
        convert(back, delta.inverse());
        ASSERT_TRUE(same_frame(buffer.content(), sent(62, is_tcp)));
        ASSERT_EQ(buffer.frame.headroom, 20);
    }
}

// Each delta is computed from a connection's two tuples, in either order of the families, and reverts the
// other's change.
TEST(OtherFamily, DeltasOfAddressesOfTwoFamiliesAreEachOthersInverse) {
    const IpAddr four[] = {IpAddr::v4(192, 0, 2, 1), IpAddr::v4(1, 0, 0, 0), IpAddr::v4(126, 255, 255, 255)};
    const IpAddr six[] = {*IpAddr::parse("2001:db8::1"),
                          *IpAddr::parse("fd00::"),
                          *IpAddr::parse("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
                          *IpAddr::parse("::ffff:ffff:0:1:0:1"),
                          *IpAddr::parse("::1:ffff:102:304"),
                          *IpAddr::parse("2001:db8::ffff:102:304")};
    for (const IpAddr& a : four) {
        for (const IpAddr& b : six) {
            const FlowKey key4{a, IpAddr::v4(10, 0, 0, 7), 40'000, 443, Protocol::Tcp, {}};
            const FlowKey key6{b, *IpAddr::parse("fd00::7"), 5'000, 8'080, Protocol::Tcp, {}};
            const TranslationDeltas there = translation_deltas(key4, {b, key6.destination, 5'000, 8'080});
            const TranslationDeltas back = translation_deltas(key6, {a, key4.destination, 40'000, 443});
            EXPECT_EQ(there.l4.inverse(), back.l4) << a.to_string() << " and " << b.to_string();
            EXPECT_EQ(there.ip, FoldedDelta());
            EXPECT_EQ(back.ip, FoldedDelta());
            const Be16 sum4 = ChecksumSum()
                                  .add_pseudo_header(key4.source, key4.destination, 6, 20)
                                  .add(Be16::from_host(40'000))
                                  .add(Be16::from_host(443))
                                  .checksum();
            const Be16 sum6 = ChecksumSum()
                                  .add_pseudo_header(key6.source, key6.destination, 6, 20)
                                  .add(Be16::from_host(5'000))
                                  .add(Be16::from_host(8'080))
                                  .checksum();
            EXPECT_EQ(there.l4.applied_to(sum4), sum6) << a.to_string() << " and " << b.to_string();
        }
    }
}

}  // namespace other_family_test
}  // namespace penstock::packet
