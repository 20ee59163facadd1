// SPDX-License-Identifier: Apache-2.0
// Conversion of ICMP errors to the other family, compared with errors built anew. Sections are RFC 7915's.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "dataplane/packet/other_family.hpp"
#include "dataplane/packet/quoted.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/other_family.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace other_family_icmp_test {

using test::Bytes;
using test::eth;
using test::MovableBuffer;
using test::PacketBuilder;
using test::same_frame;

constexpr uint16_t kNextId = 0x5eed;

// A client over IPv6 has sent `client6()`, which was converted to `sent4()`, and a router over IPv4 sends an
// error: `error4()` becomes `told6()`.
PacketBuilder sent4() {
    return eth().ipv4("10.0.0.5", "10.0.0.7").ttl(12).id(0x1234);
}
PacketBuilder client6() {
    return eth().ipv6("2001:db8::1", "2001:db8:a::80").hop_limit(12);
}
PacketBuilder error4(uint8_t type, uint8_t code, uint32_t rest = 0) {
    return eth().ipv4("10.9.9.9", "10.0.0.5").ttl(60).tos(0xc0).icmp(type, code, rest);
}
PacketBuilder told6(uint8_t type, uint8_t code, uint32_t rest = 0) {
    return eth().ipv6("2001:db8:a::80", "2001:db8::1").hop_limit(59).tos(0xc0).icmp(type, code, rest);
}
// The same in the opposite direction.
PacketBuilder sent6() {
    return eth().ipv6("fd00::5", "fd00::7").hop_limit(12);
}
PacketBuilder client4() {
    return eth().ipv4("192.0.2.1", "80.11.12.10").ttl(12).id(0);
}
PacketBuilder error6(uint8_t type, uint8_t code, uint32_t rest = 0) {
    return eth().ipv6("fd00::9", "fd00::5").hop_limit(60).tos(0xc0).icmp(type, code, rest);
}
PacketBuilder told4(uint8_t type, uint8_t code, uint32_t rest = 0) {
    return eth().ipv4("80.11.12.10", "192.0.2.1").ttl(59).tos(0xc0).id(kNextId).icmp(type, code, rest);
}

ErrorFamilyRewrite rewrite_of(IpFamily from, const FlowKey& quoted) {
    const bool is_v4 = from == IpFamily::V4;
    const Rewrite back{.source = *IpAddr::parse(is_v4 ? "2001:db8::1" : "192.0.2.1"),
                       .destination = *IpAddr::parse(is_v4 ? "2001:db8:a::80" : "80.11.12.10"),
                       .source_port = 40'000,
                       .destination_port = 443};
    return {.source = back.destination,
            .destination = back.source,
            .quoted_source = back.source,
            .quoted_destination = back.destination,
            .quoted_source_port = Be16::from_host(back.source_port),
            .quoted_destination_port = Be16::from_host(back.destination_port),
            .quoted_l4 = translation_deltas(quoted, back).l4};
}

// Without the Ethernet header, and no more than `most` bytes.
Bytes ip_of(const PacketBuilder& builder, size_t most = 0xffff) {
    const Bytes frame = builder.build();
    return {frame.begin() + 14,
            frame.begin() + static_cast<std::ptrdiff_t>(std::min(frame.size(), 14 + most))};
}
Bytes joined(Bytes front, const Bytes& back) {
    front.insert(front.end(), back.begin(), back.end());
    return front;
}

using Result = std::expected<Bytes, DropReason>;
const Result kNotTranslated = std::unexpected(DropReason::IcmpNotTranslated);

Result converted(const Bytes& frame, uint16_t headroom = 128) {
    Parsed parsed;
    PENSTOCK_CHECK(parse(frame, parsed).has_value() && icmp_role(frame, parsed) == IcmpRole::Error);
    const auto quote = quoted_packet(frame, parsed);
    PENSTOCK_CHECK(quote.has_value());
    MovableBuffer buffer(frame, headroom);
    const auto result =
        error_to_other_family(buffer.frame, parsed, *quote, rewrite_of(parsed.family, quote->key), kNextId);
    if (!result) {
        EXPECT_TRUE(buffer.is_untouched());
        return std::unexpected(result.error());
    }
    EXPECT_TRUE(buffer.is_sound());
    return buffer.content();
}

struct Case {
    const char* name;
    Bytes frame;
    Bytes expected;
};
void expect_converted(std::span<const Case> cases) {
    for (const Case& c : cases) {
        const Result result = converted(c.frame);
        ASSERT_TRUE(result.has_value()) << c.name << ": " << text_of(result.error()).counter;
        EXPECT_TRUE(same_frame(*result, c.expected)) << c.name;
    }
}

struct Words {
    uint8_t type, code;
    uint32_t rest = 0;
};
struct Row {
    Words from, to;
};

TEST(OtherFamilyIcmp, Icmpv4SaysInIcmpv6_RFC7915_4_2) {
    const Row rows[] = {
        {{3, 0}, {1, 0}},
        {{3, 1}, {1, 0}},              // net, host unreachable: no route
        {{3, 2}, {4, 1, 6}},           // protocol unreachable: unrecognized next header, at the next header
        {{3, 3}, {1, 4}},              // port unreachable
        {{3, 4, 1400}, {2, 0, 1420}},  // fragmentation needed: too big
        {{3, 5}, {1, 0}},              // source route failed
        {{3, 6}, {1, 0}},
        {{3, 7}, {1, 0}},
        {{3, 8}, {1, 0}},  // unknown, isolated
        {{3, 9}, {1, 1}},
        {{3, 10}, {1, 1}},  // prohibited
        {{3, 11}, {1, 0}},
        {{3, 12}, {1, 0}},  // not for this type of service
        {{3, 13}, {1, 1}},
        {{3, 15}, {1, 1}},  // prohibited, precedence cutoff
        {{11, 0}, {3, 0}},
        {{11, 1}, {3, 1}},  // time exceeded
        // Parameter problem, Figure 3: the first and the last byte of each row, by pointer and by bad length.
        {{12, 0, 0U << 24}, {4, 0, 0}},
        {{12, 0, 1U << 24}, {4, 0, 1}},
        {{12, 0, 2U << 24}, {4, 0, 4}},
        {{12, 0, 3U << 24}, {4, 0, 4}},
        {{12, 0, 8U << 24}, {4, 0, 7}},
        {{12, 0, 9U << 24}, {4, 0, 6}},
        {{12, 0, 12U << 24}, {4, 0, 8}},
        {{12, 0, 15U << 24}, {4, 0, 8}},
        {{12, 0, 16U << 24}, {4, 0, 24}},
        {{12, 0, 19U << 24}, {4, 0, 24}},
        {{12, 2, 0U << 24}, {4, 0, 0}},
        {{12, 2, 3U << 24}, {4, 0, 4}},
    };
    std::set<std::pair<unsigned, unsigned>> told;
    for (const Row& row : rows) {
        const Result result = converted(error4(row.from.type, row.from.code, row.from.rest)
                                            .payload(ip_of(sent4().tcp(5'000, 8'080)))
                                            .build());
        ASSERT_TRUE(result.has_value()) << int{row.from.type} << '/' << int{row.from.code};
        EXPECT_TRUE(same_frame(
            *result,
            told6(row.to.type, row.to.code, row.to.rest).payload(ip_of(client6().tcp(40'000, 443))).build()))
            << int{row.from.type} << '/' << int{row.from.code};
        told.insert({row.from.type, row.from.code});
    }
    const auto refused = [](uint8_t type, uint8_t code, uint32_t rest) {
        return converted(error4(type, code, rest).payload(ip_of(sent4().tcp(5'000, 8'080))).build()) ==
               kNotTranslated;
    };
    for (unsigned code = 0; code < 256; ++code) {
        EXPECT_EQ(refused(3, static_cast<uint8_t>(code), 0), !told.contains({3, code})) << code;
        EXPECT_EQ(refused(12, static_cast<uint8_t>(code), 0), !told.contains({12, code})) << code;
        EXPECT_FALSE(refused(11, static_cast<uint8_t>(code), 0)) << code;  // "The Code is unchanged"
    }
    for (const uint32_t pointer : {4U, 5U, 6U, 7U, 10U, 11U, 20U, 255U}) {
        EXPECT_TRUE(refused(12, 0, pointer << 24)) << pointer;
        EXPECT_TRUE(refused(12, 2, pointer << 24)) << pointer;
    }
}

TEST(OtherFamilyIcmp, Icmpv6SaysInIcmpv4_RFC7915_5_2) {
    const Row rows[] = {
        {{1, 0}, {3, 1}},              // no route: host unreachable
        {{1, 1}, {3, 10}},             // prohibited: host prohibited
        {{1, 2}, {3, 1}},              // beyond the source's scope
        {{1, 3}, {3, 1}},              // address unreachable
        {{1, 4}, {3, 3}},              // port unreachable
        {{2, 0, 1400}, {3, 4, 1380}},  // too big
        {{3, 0}, {11, 0}},             // time exceeded
        {{3, 1}, {11, 1}},
        {{4, 1, 6}, {3, 2}},   // unrecognized next header: protocol unreachable
        {{4, 1, 40}, {3, 2}},  // in an extension header as well
        // Parameter problem, Figure 6.
        {{4, 0, 0}, {12, 0, 0U << 24}},
        {{4, 0, 1}, {12, 0, 1U << 24}},
        {{4, 0, 4}, {12, 0, 2U << 24}},
        {{4, 0, 5}, {12, 0, 2U << 24}},
        {{4, 0, 6}, {12, 0, 9U << 24}},
        {{4, 0, 7}, {12, 0, 8U << 24}},
        {{4, 0, 8}, {12, 0, 12U << 24}},
        {{4, 0, 23}, {12, 0, 12U << 24}},
        {{4, 0, 24}, {12, 0, 16U << 24}},
        {{4, 0, 39}, {12, 0, 16U << 24}},
    };
    std::set<std::pair<unsigned, unsigned>> told;
    for (const Row& row : rows) {
        const Result result = converted(error6(row.from.type, row.from.code, row.from.rest)
                                            .payload(ip_of(sent6().udp(5'000, 8'080)))
                                            .build());
        ASSERT_TRUE(result.has_value()) << int{row.from.type} << '/' << int{row.from.code};
        EXPECT_TRUE(same_frame(
            *result,
            told4(row.to.type, row.to.code, row.to.rest).payload(ip_of(client4().udp(40'000, 443))).build()))
            << int{row.from.type} << '/' << int{row.from.code};
        told.insert({row.from.type, row.from.code});
    }
    const auto refused = [](uint8_t type, uint8_t code, uint32_t rest) {
        return converted(error6(type, code, rest).payload(ip_of(sent6().udp(5'000, 8'080))).build()) ==
               kNotTranslated;
    };
    for (unsigned code = 0; code < 256; ++code) {
        EXPECT_EQ(refused(1, static_cast<uint8_t>(code), 0), !told.contains({1, code})) << code;
        EXPECT_EQ(refused(4, static_cast<uint8_t>(code), 0), !told.contains({4, code})) << code;
        EXPECT_FALSE(refused(2, static_cast<uint8_t>(code), 1400)) << code;
        EXPECT_FALSE(refused(3, static_cast<uint8_t>(code), 0)) << code;
    }
    for (const uint32_t pointer : {2U, 3U, 40U, 255U, 0x0100'0000U, 0xffff'ffffU}) {
        EXPECT_TRUE(refused(4, 0, pointer)) << pointer;
    }
}

// 4.2: plus 20, never below IPv6's minimum MTU. Without an MTU: the next plateau of RFC 1191.
TEST(OtherFamilyIcmp, MtusGrowByWhatTheHeaderDoes_RFC7915_4_2) {
    const struct {
        uint32_t told, packet_bytes, expected;
    } cases[] = {
        {1480, 1500, 1500},       {1400, 1500, 1420},  {1260, 1500, 1280}, {1259, 1500, 1280},
        {576, 1500, 1280},        {68, 1500, 1280},    {1, 1500, 1280},    {8980, 9000, 9000},
        {65'535, 60'000, 65'555}, {0, 1500, 1512},     {0, 1493, 1512},    {0, 1492, 1280},
        {0, 1300, 1280},          {0, 576, 1280},      {0, 2002, 1512},    {0, 2003, 2022},
        {0, 9000, 8186},          {0, 65'535, 32'020}, {0, 20, 1280},      {0x0000'0578, 1500, 1420},
    };
    for (const auto& c : cases) {
        const auto bytes = static_cast<uint16_t>(c.packet_bytes);
        const Bytes quoted = ip_of(sent4().ip_total_length(bytes).tcp(5'000, 8'080), 28);
        const Result result = converted(error4(3, 4, c.told).payload(quoted).build());
        ASSERT_TRUE(result.has_value());
        ASSERT_EQ((*result)[54], 2);
        EXPECT_EQ(load<Be32>(result->data() + 58).host(), c.expected) << c.told << " of " << c.packet_bytes;
    }
}

// 5.2: minus 20, or minus 28 if the packet has a fragment header that it does not have over IPv4.
TEST(OtherFamilyIcmp, MtusShrinkByWhatTheHeaderDoes_RFC7915_5_2) {
    const struct {
        uint32_t told, expected, expected_of_fragment;
    } cases[] = {
        {1500, 1480, 1472},
        {1280, 1260, 1252},
        {9000, 8980, 8972},
        {65'555, 65'535, 65'527},
        {65'556, 65'535, 65'528},
        {0xffff'ffff, 65'535, 65'535},
        {100, 80, 72},
        {88, 68, 68},
        {20, 68, 68},
        {0, 68, 68},
    };
    for (const auto& c : cases) {
        for (const bool is_fragment : {false, true}) {
            PacketBuilder packet = sent6();
            if (is_fragment) {
                packet.fragment(0, true);
            }
            const Result result = converted(
                error6(2, 0, c.told).payload(ip_of(packet.udp(5'000, 8'080).payload(Bytes(1000)))).build());
            ASSERT_TRUE(result.has_value());
            EXPECT_EQ(load<Be32>(result->data() + 38).host(),
                      is_fragment ? c.expected_of_fragment : c.expected)
                << c.told;
        }
    }
}

TEST(OtherFamilyIcmp, QuotedPacketsOfIpv4BecomeIpv6_RFC7915_4_3) {
    const Bytes text(333, 'x');
    const auto error = [](const Bytes& quoted) { return error4(11, 0).payload(quoted).build(); };
    const auto told = [](const Bytes& quoted) { return told6(3, 0).payload(quoted).build(); };
    const Case cases[] = {
        {"UDP, whole", error(ip_of(sent4().udp(5'000, 8'080).payload(text))),
         told(ip_of(client6().udp(40'000, 443).payload(text)))},
        {"TCP cut to eight bytes, of the length that it had",
         error(ip_of(sent4().tcp(5'000, 8'080).payload(text), 28)),
         told(ip_of(client6().tcp(40'000, 443).payload(text), 48))},
        {"cut behind the ports", error(ip_of(sent4().tcp(5'000, 8'080).payload(text), 24)),
         told(ip_of(client6().tcp(40'000, 443).payload(text), 44))},
        {"cut inside TCP's sum",
         error(ip_of(sent4().tcp(5'000, 8'080).seq(9).payload(text).l4_checksum(0x1111), 37)),
         told(ip_of(client6().tcp(40'000, 443).seq(9).payload(text).l4_checksum(0x1111), 57))},
        {"of an odd length", error(ip_of(sent4().udp(5'000, 8'080).payload(text), 39)),
         told(ip_of(client6().udp(40'000, 443).payload(text), 59))},
        {"UDP without a sum stays without",
         error(ip_of(sent4().udp(5'000, 8'080).payload(text).l4_checksum(0))),
         told(ip_of(client6().udp(40'000, 443).payload(text).l4_checksum(0)))},
        {"SCTP, whole", error(ip_of(sent4().sctp(5'000, 8'080, 3).chunk(0, text))),
         told(ip_of(client6().sctp(40'000, 443, 3).chunk(0, text)))},
        {"SCTP cut behind its sum", error(ip_of(sent4().sctp(5'000, 8'080, 3).chunk(0, text), 32)),
         told(ip_of(client6().sctp(40'000, 443, 3).chunk(0, text), 52))},
        {"SCTP cut to eight bytes", error(ip_of(sent4().sctp(5'000, 8'080, 3).chunk(0, text), 28)),
         told(ip_of(client6().sctp(40'000, 443, 3).chunk(0, text), 48))},
        {"SCTP without a sum", error(ip_of(sent4().sctp(5'000, 8'080, 3).chunk(0, text).sctp_checksum(0))),
         told(ip_of(client6().sctp(40'000, 443, 3).chunk(0, text).sctp_checksum(0)))},
        {"options are left out",
         error(ip_of(sent4().options(Bytes(40, 1)).udp(5'000, 8'080).payload(text), 68)),
         told(ip_of(client6().udp(40'000, 443).payload(text), 48))},
        {"type of service", error(ip_of(sent4().tos(0x2e).dont_fragment().tcp(5'000, 8'080))),
         told(ip_of(client6().tos(0x2e).tcp(40'000, 443)))},
        {"a first fragment has a fragment header",
         error(ip_of(sent4().more_fragments().udp(5'000, 8'080).payload(text), 28)),
         told(ip_of(client6().fragment(0, true).udp(40'000, 443).payload(text), 56))},
        {"a length that is less than the header's",
         error(ip_of(sent4().ip_total_length(5).tcp(5'000, 8'080), 28)),
         told(ip_of(client6().payload_length(0).tcp(40'000, 443), 48))},
        {"the longest", error(ip_of(sent4().more_fragments().ip_total_length(65'535).tcp(5'000, 8'080), 28)),
         told(ip_of(client6().payload_length(65'523).fragment(0, true).tcp(40'000, 443), 56))},
    };
    expect_converted(cases);
}

TEST(OtherFamilyIcmp, QuotedPacketsOfIpv6BecomeIpv4_RFC7915_5_3) {
    const Bytes text(333, 'x'), most_cut(1260 - 28, 'x'), least_whole(1260 - 28 + 1, 'x');
    const auto error = [](const Bytes& quoted) { return error6(3, 0).payload(quoted).build(); };
    const auto told = [](const Bytes& quoted) { return told4(11, 0).payload(quoted).build(); };
    const Case cases[] = {
        {"UDP, whole", error(ip_of(sent6().udp(5'000, 8'080).payload(text))),
         told(ip_of(client4().udp(40'000, 443).payload(text)))},
        {"TCP cut to eight bytes, of the length that it had",
         error(ip_of(sent6().tcp(5'000, 8'080).payload(text), 48)),
         told(ip_of(client4().tcp(40'000, 443).payload(text), 28))},
        {"cut behind the ports", error(ip_of(sent6().tcp(5'000, 8'080).payload(text), 44)),
         told(ip_of(client4().tcp(40'000, 443).payload(text), 24))},
        {"SCTP cut behind its sum", error(ip_of(sent6().sctp(5'000, 8'080, 3).chunk(0, text), 52)),
         told(ip_of(client4().sctp(40'000, 443, 3).chunk(0, text), 32))},
        {"SCTP behind options",
         error(ip_of(sent6().destination_options().sctp(5'000, 8'080, 3).chunk(0, text), 60)),
         told(ip_of(client4().sctp(40'000, 443, 3).chunk(0, text), 32))},
        {"extension headers are left out",
         error(ip_of(
             sent6().hop_by_hop().routing(4, 0).destination_options(2).udp(5'000, 8'080).payload(text))),
         told(ip_of(client4().udp(40'000, 443).payload(text)))},
        {"traffic class, and no flow label",
         error(ip_of(sent6().tos(0x2e).flow_label(0xfffff).tcp(5'000, 8'080))),
         told(ip_of(client4().tos(0x2e).tcp(40'000, 443)))},
        {"a first fragment", error(ip_of(sent6().fragment(0, true).udp(5'000, 8'080).payload(text))),
         told(ip_of(client4().id(0x1234).more_fragments().udp(40'000, 443).payload(text)))},
        {"a whole packet with a fragment header",
         error(ip_of(sent6().hop_by_hop().fragment(0, false).udp(5'000, 8'080).payload(text))),
         told(ip_of(client4().id(0x1234).udp(40'000, 443).payload(text)))},
        {"one that may be cut", error(ip_of(sent6().udp(5'000, 8'080).payload(most_cut), 48)),
         told(ip_of(client4().udp(40'000, 443).payload(most_cut), 28))},
        {"one that may not", error(ip_of(sent6().udp(5'000, 8'080).payload(least_whole), 48)),
         told(ip_of(client4().dont_fragment().udp(40'000, 443).payload(least_whole), 28))},
        {"no length, as of a jumbogram", error(ip_of(sent6().payload_length(0).tcp(5'000, 8'080), 48)),
         told(ip_of(client4().ip_total_length(20).tcp(40'000, 443), 28))},
        {"longer than IPv4 can tell", error(ip_of(sent6().payload_length(65'520).tcp(5'000, 8'080), 48)),
         told(ip_of(client4().dont_fragment().ip_total_length(65'535).tcp(40'000, 443), 28))},
    };
    expect_converted(cases);
}

TEST(OtherFamilyIcmp, ErrorsAreAsLongAsTheirFamilyHasThem) {
    // 576 bytes over IPv4, including headers of 20, 8 and 20 bytes; 1,280 over IPv6, including headers of 40,
    // 8 and 40 bytes.
    for (const size_t l4_bytes : {size_t{527}, size_t{528}, size_t{529}, size_t{1184}}) {
        const Bytes payload(l4_bytes - 8, 'x');
        const Result result =
            converted(error6(1, 4).payload(ip_of(sent6().udp(5'000, 8'080).payload(payload))).build());
        ASSERT_TRUE(result.has_value());
        EXPECT_TRUE(same_frame(
            *result, told4(3, 3).payload(ip_of(client4().udp(40'000, 443).payload(payload), 548)).build()))
            << l4_bytes;
    }
    for (const size_t l4_bytes : {size_t{1191}, size_t{1192}, size_t{1193}, size_t{1400}}) {
        const Bytes payload(l4_bytes - 8, 'x');
        const Result result =
            converted(error4(3, 3).payload(ip_of(sent4().udp(5'000, 8'080).payload(payload))).build());
        ASSERT_TRUE(result.has_value());
        EXPECT_TRUE(same_frame(
            *result, told6(1, 4).payload(ip_of(client6().udp(40'000, 443).payload(payload), 1232)).build()))
            << l4_bytes;
    }
    const Bytes payload(1400, 'x');
    const Result of_fragment = converted(
        error4(3, 3).payload(ip_of(sent4().more_fragments().udp(5'000, 8'080).payload(payload))).build());
    ASSERT_TRUE(of_fragment.has_value());
    EXPECT_EQ(of_fragment->size(), 14U + 1280U);
}

// RFC 4884: a length field in words of 4 bytes behind the checksum over IPv4, in words of 8 bytes over IPv6,
// and extensions behind that length of the packet.
TEST(OtherFamilyIcmp, ExtensionsAreLeftOut_RFC4884) {
    const Bytes extension{0x20, 0, 0x8a, 0x3f, 0,    8,
                          1,    1, 0x12, 0x34, 0x51, 0xff};  // one object, a label stack
    const Bytes text(200, 'x'), zeros(64, 0);
    const auto quote4 = ip_of(sent4().udp(5'000, 8'080).payload(text), 128);
    const auto quote6 = ip_of(sent6().udp(5'000, 8'080).payload(text), 128);
    const auto in6 = ip_of(client6().udp(40'000, 443).payload(text), 148);
    const auto in4 = ip_of(client4().udp(40'000, 443).payload(text), 108);
    const Case cases[] = {
        {"unreachable", error4(3, 1, 32U << 16).payload(joined(quote4, extension)).build(),
         told6(1, 0).payload(in6).build()},
        {"time exceeded", error4(11, 0, 32U << 16).payload(joined(quote4, extension)).build(),
         told6(3, 0).payload(in6).build()},
        {"parameter problem", error4(12, 0, 8U << 24 | 32U << 16).payload(joined(quote4, extension)).build(),
         told6(4, 0, 7).payload(in6).build()},
        {"too big, with an MTU", error4(3, 4, 32U << 16 | 1400).payload(joined(quote4, extension)).build(),
         told6(2, 0, 1420).payload(in6).build()},
        {"a length and no extensions", error4(3, 1, 32U << 16).payload(quote4).build(),
         told6(1, 0).payload(in6).build()},
        {"a length beyond the end", error4(3, 1, 255U << 16).payload(quote4).build(),
         told6(1, 0).payload(in6).build()},
        {"a length that would leave no ports", error4(3, 1, 5U << 16).payload(quote4).build(),
         told6(1, 0).payload(in6).build()},
        {"IPv6's unreachable", error6(1, 0, 16U << 24).payload(joined(quote6, extension)).build(),
         told4(3, 1).payload(in4).build()},
        {"IPv6's time exceeded", error6(3, 0, 16U << 24).payload(joined(quote6, extension)).build(),
         told4(11, 0).payload(in4).build()},
        {"IPv6's too big has no such field", error6(2, 0, 0x0500).payload(quote6).build(),
         told4(3, 4, 0x0500 - 20).payload(in4).build()},
    };
    expect_converted(cases);
}

TEST(OtherFamilyIcmp, ItsOwnHeaderIsTranslatedAsAnyPacketsIs_RFC7915_4_1_5_1) {
    const Bytes quote4 = ip_of(sent4().tcp(5'000, 8'080)), quote6 = ip_of(sent6().tcp(5'000, 8'080));
    const Bytes in6 = ip_of(client6().tcp(40'000, 443)), in4 = ip_of(client4().tcp(40'000, 443));
    const Case cases[] = {
        {"options", error4(3, 3).options({1, 1, 1, 1}).payload(quote4).build(),
         told6(1, 4).payload(in6).build()},
        {"padding", error4(3, 3).payload(quote4).pad_to(200).build(), told6(1, 4).payload(in6).build()},
        {"extension headers", error6(1, 4).hop_by_hop().destination_options(1).payload(quote6).build(),
         told4(3, 3).payload(in4).build()},
        {"a fragment header", error6(1, 4).fragment(0, false).payload(quote6).build(),
         told4(3, 3).id(0x1234).payload(in4).build()},
        {"the last hop but one", error6(1, 4).hop_limit(2).payload(quote6).build(),
         told4(3, 3).ttl(1).payload(in4).build()},
    };
    expect_converted(cases);
}

TEST(OtherFamilyIcmp, WithoutHeadroomAnErrorStaysAsItWas) {
    const struct {
        const char* name;
        Bytes frame;
        uint16_t needed;
    } cases[] = {
        {"two headers", error4(3, 3).payload(ip_of(sent4().tcp(5'000, 8'080))).build(), 40},
        {"a fragment header too",
         error4(3, 3).payload(ip_of(sent4().more_fragments().tcp(5'000, 8'080))).build(), 48},
        {"options give room",
         error4(3, 3).options({1, 1, 1, 1}).payload(ip_of(sent4().tcp(5'000, 8'080))).build(), 36},
        {"becoming shorter", error6(1, 4).payload(ip_of(sent6().tcp(5'000, 8'080))).build(), 0},
    };
    for (const auto& c : cases) {
        EXPECT_TRUE(converted(c.frame, c.needed).has_value()) << c.name;
        if (c.needed > 0) {
            EXPECT_EQ(converted(c.frame, static_cast<uint16_t>(c.needed - 1)),
                      Result(std::unexpected(DropReason::NoBuffer)))
                << c.name;
        }
    }
}

}  // namespace other_family_icmp_test
}  // namespace penstock::packet
