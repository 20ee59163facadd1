// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/fragment.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/fragment_cutter.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace fragment_test {

using test::eth;
using test::PacketBuilder;

Parsed parsed_of(const std::vector<uint8_t>& frame) {
    Parsed parsed;
    EXPECT_TRUE(parse(frame, parsed).has_value());
    EXPECT_EQ(parsed.kind, PacketKind::Fragment);
    EXPECT_TRUE(parsed.is_fragment);
    return parsed;
}
PacketBuilder ip4() {
    return eth().ipv4("192.0.2.1", "80.11.12.10");
}
PacketBuilder ip6() {
    return eth().ipv6("2001:db8::1", "2001:db8:80::10");
}

TEST(FragmentRange, IsWhatTheHeadersSay_NAT007) {
    const struct {
        std::string name;
        PacketBuilder packet;
        FragmentRange place;
    } cases[] = {
        {"first", ip4().more_fragments().udp(1, 2).payload("12345678"), {0, 16, false}},
        {"middle",
         ip4().more_fragments().fragment_offset(3).ip_protocol(17).payload("12345678"),
         {24, 32, false}},
        {"last of one byte", ip4().fragment_offset(3).ip_protocol(17).payload("1"), {24, 25, true}},
        {"behind options",
         ip4().options({1, 1, 1, 1}).fragment_offset(3).ip_protocol(17).payload("1"),
         {24, 25, true}},
        {"the last byte that a datagram can have",
         ip4().fragment_offset(8189).ip_protocol(17).payload("123"),
         {65'512, 65'515, true}},
        {"padding is not of it",
         ip4().fragment_offset(3).ip_protocol(17).payload("1").pad_to(60),
         {24, 25, true}},
        {"IPv6 first", ip6().fragment(0, true).udp(1, 2).payload("12345678"), {0, 16, false}},
        {"IPv6 last", ip6().fragment(5, false).ip_protocol(17).payload("1234"), {40, 44, true}},
        {"IPv6 behind hop-by-hop options",
         ip6().hop_by_hop().fragment(5, false).ip_protocol(17).payload("1234"),
         {40, 44, true}},
        {"IPv6's last byte",
         ip6().fragment(8191, false).ip_protocol(17).payload("1234567"),
         {65'528, 65'535, true}},
    };
    for (const auto& c : cases) {
        const std::vector<uint8_t> frame = c.packet.build();
        const auto place = fragment_range(frame, parsed_of(frame));
        ASSERT_TRUE(place.has_value()) << c.name;
        EXPECT_EQ(*place, c.place) << c.name << ": " << place->begin << " .. " << place->end;
    }
}

TEST(FragmentRange, NamesWhatNoSenderMakes_NAT007) {
    const struct {
        std::string name;
        PacketBuilder packet;
        DropReason reason;
    } cases[] = {
        {"nothing in it", ip4().fragment_offset(3).ip_protocol(17), DropReason::BadFragment},
        {"nothing in the first", ip4().more_fragments().ip_protocol(17), DropReason::BadFragment},
        {"no whole unit, and not the last",
         ip4().more_fragments().fragment_offset(3).ip_protocol(17).payload("1234567"),
         DropReason::BadFragment},
        {"beyond 65,535 with its header", ip4().fragment_offset(8189).ip_protocol(17).payload("1234"),
         DropReason::BadFragment},
        {"beyond it with options",
         ip4().options({1, 1, 1, 1}).fragment_offset(8189).ip_protocol(17).payload("123"),
         DropReason::BadFragment},
        {"the ping of death", ip4().fragment_offset(8191).ip_protocol(1).payload("1234567890"),
         DropReason::BadFragment},
        {"over the flags of TCP", ip4().fragment_offset(1).ip_protocol(6).payload("12345678"),
         DropReason::FragmentTooSmall},
        {"over the urgent pointer", ip4().fragment_offset(2).ip_protocol(6).payload("12345678"),
         DropReason::FragmentTooSmall},
        {"IPv6: nothing in it", ip6().fragment(3, false).ip_protocol(17), DropReason::BadFragment},
        {"IPv6: no whole unit", ip6().fragment(3, true).ip_protocol(17).payload("1234567"),
         DropReason::BadFragment},
        {"IPv6: beyond 65,535", ip6().fragment(8191, false).ip_protocol(17).payload("12345678"),
         DropReason::BadFragment},
        {"IPv6: beyond it with other headers",
         ip6().hop_by_hop().fragment(8191, false).ip_protocol(17).payload("1"), DropReason::BadFragment},
        {"IPv6: over the flags of TCP", ip6().fragment(1, true).ip_protocol(6).payload("12345678"),
         DropReason::FragmentTooSmall},
    };
    for (const auto& c : cases) {
        const std::vector<uint8_t> frame = c.packet.build();
        const auto place = fragment_range(frame, parsed_of(frame));
        ASSERT_FALSE(place.has_value()) << c.name;
        EXPECT_EQ(text_of(place.error()).counter, text_of(c.reason).counter) << c.name;
    }
    const std::vector<uint8_t> behind_tcp = ip4().fragment_offset(3).ip_protocol(6).payload("1").build();
    EXPECT_TRUE(fragment_range(behind_tcp, parsed_of(behind_tcp)).has_value()) << "24 bytes are a TCP header";
}

TEST(FirstFragment, BecomesAFlowsPacket_NAT007) {
    for (const bool v6 : {false, true}) {
        const auto whole = [&](bool tcp) {
            PacketBuilder ip = v6 ? ip6() : ip4();
            return (tcp ? ip.tcp(40000, 80, "PA").tcp_options({1, 1, 1, 1}) : ip.udp(5000, 53))
                .payload(std::string(100, 'x'))
                .build();
        };
        for (const bool tcp : {false, true}) {
            Parsed expected;
            ASSERT_TRUE(parse(whole(tcp), expected).has_value());
            const std::vector<uint8_t> frame = test::cut(whole(tcp), 7, 48)[0];
            Parsed parsed = parsed_of(frame);
            ASSERT_TRUE(read_first_fragment(frame, parsed).has_value());
            const uint16_t header = v6 ? 8 : 0;  // the fragment header
            expected.is_fragment = true;
            expected.l4_offset = static_cast<uint16_t>(expected.l4_offset + header);
            expected.payload_offset = static_cast<uint16_t>(expected.payload_offset + header);
            expected.l3_length = static_cast<uint16_t>(frame.size() - 14);
            EXPECT_EQ(parsed, expected) << v6 << tcp;
        }
    }
}

TEST(FirstFragment, OfOtherProtocolsStaysAFragment_NAT007) {
    const std::vector<uint8_t> frame =
        test::cut(ip4().icmp(8, 0).payload(std::string(100, 'x')).build(), 7, 48)[0];
    Parsed parsed = parsed_of(frame);
    EXPECT_TRUE(read_first_fragment(frame, parsed).has_value());
    EXPECT_EQ(parsed.kind, PacketKind::Fragment);
}

TEST(LaterFragment, IsTranslatedByAddressesAlone_NAT007_NAT001) {
    for (const bool v6 : {false, true}) {
        const auto fragment = [&](const char* from, const char* to, uint8_t ttl) {
            return v6 ? eth()
                            .ipv6(from, to)
                            .hop_limit(ttl)
                            .fragment(3, false)
                            .ip_protocol(17)
                            .payload("abc")
                            .build()
                      : eth()
                            .ipv4(from, to)
                            .ttl(ttl)
                            .fragment_offset(3)
                            .ip_protocol(17)
                            .payload("abc")
                            .build();
        };
        std::vector<uint8_t> frame =
            v6 ? fragment("2001:db8::1", "2001:db8:80::10", 9) : fragment("192.0.2.1", "80.11.12.10", 9);
        const Parsed parsed = parsed_of(frame);
        const IpAddr source = *IpAddr::parse(v6 ? "2001:db8:1::1" : "10.80.2.1"),
                     destination = *IpAddr::parse(v6 ? "2001:db8:2::b" : "10.80.2.11");
        const TranslationDeltas deltas = translation_deltas(parsed.key, {source, destination, 0, 0});
        if (v6) {
            translate_fragment(frame.data(), parsed, source.bytes(), destination.bytes(), deltas.ip);
        } else {
            translate_fragment(frame.data(), parsed, source.v4_wire(), destination.v4_wire(), deltas.ip);
        }
        EXPECT_TRUE(test::same_frame(
            frame, fragment(source.to_string().c_str(), destination.to_string().c_str(), 8)));
    }
}

}  // namespace fragment_test
}  // namespace penstock::packet
