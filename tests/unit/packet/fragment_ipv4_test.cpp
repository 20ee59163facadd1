// SPDX-License-Identifier: Apache-2.0
// Fragmentation of IPv4 packets: the fragments byte by byte, and that their reassembly gives the packet.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "dataplane/packet/fragment_ipv4.hpp"
#include "dataplane/packet/wire.hpp"
#include "tests/support/cut_frames.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace fragment_ipv4_test {

using test::eth;
using test::Prng;
using test::same_frame;

constexpr size_t kL3 = sizeof(EthernetHeader);

// Whole frames, as they would be sent.
std::vector<std::vector<uint8_t>> cut(const std::vector<uint8_t>& frame, uint16_t mtu) {
    return test::cut_frames<Ipv4Fragments>(frame, kL3, mtu).value_or(std::vector<std::vector<uint8_t>>());
}

std::vector<uint8_t> counting(size_t bytes) {
    std::vector<uint8_t> made(bytes);
    for (size_t i = 0; i < bytes; ++i) {
        made[i] = static_cast<uint8_t>(i * 7 + i / 256);
    }
    return made;
}
std::vector<uint8_t> slice(const std::vector<uint8_t>& bytes, size_t from, size_t to) {
    return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
            bytes.begin() + static_cast<std::ptrdiff_t>(to)};
}
test::PacketBuilder packet() {
    return eth().ipv4("192.0.2.1", "198.51.100.2").ttl(61).tos(0x28).id(0x1234).ip_protocol(17);
}

TEST(Ipv4Fragments, AreTheHeaderWithAPieceEach_ICMP004) {
    const std::vector<uint8_t> payload = counting(3000);
    const auto frames = cut(packet().payload(payload).build(), 1400);
    ASSERT_EQ(frames.size(), 3u);
    // 1400 - 20 is 1380, of which 1376 are whole units of eight.
    EXPECT_TRUE(same_frame(frames[0], packet().more_fragments().payload(slice(payload, 0, 1376)).build()));
    EXPECT_TRUE(same_frame(
        frames[1],
        packet().more_fragments().fragment_offset(172).payload(slice(payload, 1376, 2752)).build()));
    EXPECT_TRUE(
        same_frame(frames[2], packet().fragment_offset(344).payload(slice(payload, 2752, 3000)).build()));
}

// RFC 791, 3.1: an option with the highest bit set is copied into every fragment; any other is in the first
// one only.
TEST(Ipv4Fragments, CarryTheOptionsThatAreForAllOfThem_ICMP004) {
    const std::vector<uint8_t> payload = counting(1000);
    const std::vector<uint8_t> timestamp{68, 8, 5, 0, 0, 0, 0, 0}, security{130, 3, 9},
        router_alert{148, 4, 0, 0};
    std::vector<uint8_t> options = timestamp;
    options.push_back(1);
    options.insert(options.end(), security.begin(), security.end());
    options.insert(options.end(), router_alert.begin(), router_alert.end());  // 16 bytes
    std::vector<uint8_t> copied = security;
    copied.insert(copied.end(), router_alert.begin(), router_alert.end());  // 7, padded to 8
    const auto frames = cut(packet().options(options).payload(payload).build(), 576);
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_TRUE(same_frame(
        frames[0], packet().options(options).more_fragments().payload(slice(payload, 0, 536)).build()));
    EXPECT_TRUE(same_frame(
        frames[1], packet().options(copied).fragment_offset(67).payload(slice(payload, 536, 1000)).build()));
}

TEST(Ipv4Fragments, LeaveBrokenOptionsInTheFirstOne_ICMP004) {
    const std::vector<uint8_t> payload = counting(800);
    for (const std::vector<uint8_t>& broken :
         {std::vector<uint8_t>{148, 9, 0, 0}, {148, 1, 0, 0}, {148, 0, 0, 0}, {1, 1, 1, 148}}) {
        const auto frames = cut(packet().options(broken).payload(payload).build(), 576);
        ASSERT_EQ(frames.size(), 2u);
        EXPECT_TRUE(
            same_frame(frames[1], packet().fragment_offset(69).payload(slice(payload, 552, 800)).build()));
    }
}

TEST(Ipv4Fragments, OfAFragmentKeepItsPlace_ICMP004_NAT007) {
    const std::vector<uint8_t> payload = counting(1200);
    const auto middle = cut(packet().more_fragments().fragment_offset(100).payload(payload).build(), 1000);
    ASSERT_EQ(middle.size(), 2u);
    EXPECT_TRUE(same_frame(
        middle[0], packet().more_fragments().fragment_offset(100).payload(slice(payload, 0, 976)).build()));
    EXPECT_TRUE(same_frame(
        middle[1],
        packet().more_fragments().fragment_offset(222).payload(slice(payload, 976, 1200)).build()));
    const auto last = cut(packet().fragment_offset(100).payload(payload).build(), 1000);
    ASSERT_EQ(last.size(), 2u);
    EXPECT_TRUE(
        same_frame(last[1], packet().fragment_offset(222).payload(slice(payload, 976, 1200)).build()));
}

TEST(Ipv4Fragments, AreNotMadeWhereTheyMayNotOrCannotBe_ICMP004) {
    EXPECT_TRUE(cut(packet().dont_fragment().payload(counting(2000)).build(), 1400).empty());
    EXPECT_TRUE(cut(packet().payload(counting(2000)).build(), 27).empty()) << "no room for eight bytes";
    EXPECT_TRUE(cut(packet().payload(counting(2000)).build(), 28).empty()) << "250 of them";
    EXPECT_EQ(cut(packet().payload(counting(512)).build(), 28).size(), kFragmentsMax);
    EXPECT_TRUE(cut(packet().payload(counting(513)).build(), 28).empty());
    EXPECT_TRUE(cut(packet().fragment_offset(8190).payload(counting(2000)).build(), 1400).empty())
        << "behind the longest datagram";
}

// For any packet and MTU: each fragment fits, all but the last carry whole units, and their reassembly gives
// the packet.
TEST(Ipv4Fragments, AreThePacketAgain_ICMP004) {
    Prng prng(20260101);
    for (unsigned round = 0; round < 3000; ++round) {
        const auto payload_bytes = static_cast<size_t>(prng.below(6000) + 1);
        const std::vector<uint8_t> payload = counting(payload_bytes);
        std::vector<uint8_t> options;
        while (prng.one_in(2) && options.size() < 36) {
            options.insert(options.end(), {prng.byte(), 4, prng.byte(), prng.byte()});
        }
        const std::vector<uint8_t> frame = packet().options(options).payload(payload).build();
        const auto mtu = static_cast<uint16_t>(68 + prng.below(1500));
        if (frame.size() - kL3 <= mtu) {
            continue;
        }
        const auto frames = cut(frame, mtu);
        if (frames.empty()) {
            ASSERT_GE(payload_bytes / (mtu - 60), kFragmentsMax / 2) << "only too many is a reason";
            continue;
        }
        std::vector<uint8_t> together;
        for (size_t number = 0; number < frames.size(); ++number) {
            const auto header = load<Ipv4Header>(frames[number].data() + kL3);
            ASSERT_LE(frames[number].size() - kL3, mtu);
            ASSERT_EQ(header.total_length.host(), frames[number].size() - kL3);
            ASSERT_EQ(test::reference_checksum(ByteView(frames[number]).subspan(kL3, header.header_bytes())),
                      0)
                << round;
            ASSERT_EQ((header.flags_and_offset.host() & Ipv4Header::kOffsetMask) * 8u, together.size());
            ASSERT_EQ((header.flags_and_offset.host() & Ipv4Header::kMoreFragments) != 0,
                      number + 1 < frames.size());
            together.insert(together.end(), frames[number].begin() + kL3 + header.header_bytes(),
                            frames[number].end());
        }
        ASSERT_EQ(together, payload) << "round " << round << ", MTU " << mtu;
    }
}

}  // namespace fragment_ipv4_test
}  // namespace penstock::packet
