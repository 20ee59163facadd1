// SPDX-License-Identifier: Apache-2.0
// Fragmentation of IPv6 packets that arrived as IPv4: the fragments byte by byte, and that their reassembly
// gives the packet.
#include <gtest/gtest.h>

#include <vector>

#include "dataplane/packet/fragment_ipv6.hpp"
#include "dataplane/packet/wire.hpp"
#include "tests/support/cut_frames.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::packet {
namespace fragment_ipv6_test {

using test::eth;
using test::Prng;
using test::same_frame;

constexpr size_t kL3 = sizeof(EthernetHeader);
constexpr size_t kHeaders = sizeof(Ipv6Header) + sizeof(Ipv6ExtensionHeader);

// Whole frames, as they would be sent.
std::vector<std::vector<uint8_t>> cut(const std::vector<uint8_t>& frame, uint16_t mtu) {
    return test::cut_frames<Ipv6Fragments>(frame, kL3, mtu).value_or(std::vector<std::vector<uint8_t>>());
}
std::vector<uint8_t> slice(const std::vector<uint8_t>& bytes, size_t from, size_t to) {
    return {bytes.begin() + static_cast<std::ptrdiff_t>(from),
            bytes.begin() + static_cast<std::ptrdiff_t>(to)};
}
test::PacketBuilder packet() {
    return eth().ipv6("2001:db8::1", "2001:db8:1::2").hop_limit(61).tos(0x28).ip_protocol(17);
}

TEST(Ipv6Fragments, AreTheHeadersWithAPieceEach_ANN32) {
    const std::vector<uint8_t> payload = Prng(1).bytes(3000);
    const auto frames = cut(packet().fragment(0, false).payload(payload).build(), 1400);
    ASSERT_EQ(frames.size(), 3u);
    // 1400 - 48 is 1352, which is 169 units of eight.
    EXPECT_TRUE(same_frame(frames[0], packet().fragment(0, true).payload(slice(payload, 0, 1352)).build()));
    EXPECT_TRUE(
        same_frame(frames[1], packet().fragment(169, true).payload(slice(payload, 1352, 2704)).build()));
    EXPECT_TRUE(
        same_frame(frames[2], packet().fragment(338, false).payload(slice(payload, 2704, 3000)).build()));
}

TEST(Ipv6Fragments, OfAFragmentKeepItsPlace_ANN32_NAT007) {
    const std::vector<uint8_t> payload = Prng(2).bytes(1440);
    const auto middle = cut(packet().fragment(100, true).payload(payload).build(), 1280);
    ASSERT_EQ(middle.size(), 2u);
    EXPECT_TRUE(same_frame(middle[0], packet().fragment(100, true).payload(slice(payload, 0, 1232)).build()));
    EXPECT_TRUE(
        same_frame(middle[1], packet().fragment(254, true).payload(slice(payload, 1232, 1440)).build()));
    const auto last = cut(packet().fragment(100, false).payload(payload).build(), 1280);
    ASSERT_EQ(last.size(), 2u);
    EXPECT_TRUE(
        same_frame(last[1], packet().fragment(254, false).payload(slice(payload, 1232, 1440)).build()));
}

TEST(Ipv6Fragments, AreNotMadeWhereTheyMayNotOrCannotBe_ANN32) {
    const std::vector<uint8_t> payload = Prng(3).bytes(2000);
    EXPECT_TRUE(cut(packet().payload(payload).build(), 1400).empty()) << "its sender has not cut it";
    EXPECT_TRUE(cut(packet().hop_by_hop().fragment(0, false).payload(payload).build(), 1400).empty())
        << "not as conversion makes it";
    EXPECT_TRUE(cut(packet().fragment(0, false).payload(payload).build(), 55).empty())
        << "no room for eight bytes";
    EXPECT_TRUE(cut(packet().fragment(0, false).payload(payload).build(), 56).empty()) << "250 of them";
    EXPECT_EQ(cut(packet().fragment(0, false).payload(slice(payload, 0, 512)).build(), 56).size(),
              kFragmentsMax);
    EXPECT_TRUE(cut(packet().fragment(0, false).payload(slice(payload, 0, 513)).build(), 56).empty());
    EXPECT_TRUE(cut(packet().fragment(8190, false).payload(payload).build(), 1400).empty())
        << "behind the longest datagram";
}

// For any packet and MTU: each fragment fits, all but the last carry whole units, and their reassembly gives
// the packet.
TEST(Ipv6Fragments, AreThePacketAgain_ANN32) {
    Prng prng(20260101);
    for (unsigned round = 0; round < 1000; ++round) {
        const std::vector<uint8_t> payload = prng.bytes(prng.below(6000) + 1);
        const std::vector<uint8_t> frame = packet().fragment(0, false).payload(payload).build();
        const auto mtu = static_cast<uint16_t>(1280 + prng.below(1000));
        std::vector<uint8_t> together;
        const auto frames = cut(frame, mtu);
        ASSERT_FALSE(frames.empty());
        for (size_t number = 0; number < frames.size(); ++number) {
            const auto header = load<Ipv6Header>(frames[number].data() + kL3);
            const auto fragment = load<Ipv6ExtensionHeader>(frames[number].data() + kL3 + sizeof header);
            ASSERT_LE(frames[number].size() - kL3, mtu);
            ASSERT_EQ(header.payload_length.host() + sizeof header, frames[number].size() - kL3);
            ASSERT_EQ(size_t{fragment.rest.host()} & Ipv6ExtensionHeader::kOffsetMask, together.size());
            ASSERT_EQ((fragment.rest.host() & Ipv6ExtensionHeader::kMoreFragments) != 0,
                      number + 1 < frames.size());
            together.insert(together.end(), frames[number].begin() + kL3 + kHeaders, frames[number].end());
        }
        ASSERT_EQ(together, payload) << "round " << round << ", MTU " << mtu;
    }
}

}  // namespace fragment_ipv6_test
}  // namespace penstock::packet
