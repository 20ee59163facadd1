// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/frame.hpp"

#include <gtest/gtest.h>

#include <array>

#include "dataplane/packet/parse.hpp"

namespace penstock::bfd {
namespace frame_test {

using packet::IpChecksum;
using packet::Parsed;

struct Family {
    const char* local;
    const char* peer;
};

class BfdFrame : public ::testing::TestWithParam<Family> {
 protected:
    [[nodiscard]] Terms terms(bool multihop) const {
        return {.discriminator = 7,
                .local = *IpAddr::parse(GetParam().local),
                .peer = *IpAddr::parse(GetParam().peer),
                .egress = multihop ? NicPortId{} : NicPortId{2}};
    }
    void build(const Terms& terms) {
        length = build_frame(frame, terms, packet);
        frame[0] = 2;  // some Ethernet addresses
        frame[6] = 4;
        ASSERT_TRUE(packet::parse(bytes(), parsed, IpChecksum::Verify));
    }
    [[nodiscard]] ByteView bytes() const { return ByteView(frame).first(length); }

    std::array<uint8_t, kFrameBytesMax> frame{};
    uint16_t length = 0;
    Parsed parsed;
    const ControlPacket packet{.state = State::Up,
                               .detect_multiplier = 3,
                               .my_discriminator = 7,
                               .your_discriminator = 9,
                               .desired_min_tx_us = 50'000,
                               .required_min_rx_us = 50'000};
};

TEST_P(BfdFrame, IsReadAsItWasBuilt_RFC5881_RFC5883) {
    for (const bool multihop : {false, true}) {
        build(terms(multihop));
        const auto received = read_frame(bytes(), parsed, NicPortId{3});
        ASSERT_TRUE(received);
        EXPECT_EQ(received->packet, packet);
        EXPECT_EQ(received->origin.source, terms(multihop).local);
        EXPECT_EQ(received->origin.destination, terms(multihop).peer);
        EXPECT_EQ(received->origin.port, NicPortId{3});
        EXPECT_EQ(received->origin.ttl, 255);
        EXPECT_EQ(received->origin.is_multihop, multihop);
    }
}

TEST_P(BfdFrame, EveryDamageIsFound) {
    build(terms(false));
    const size_t udp_at = parsed.l4_offset;
    for (size_t at = udp_at; at < length; ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            frame[at] ^= static_cast<uint8_t>(1U << bit);
            EXPECT_FALSE(read_frame(bytes(), parsed, NicPortId{0})) << "byte " << at << " bit " << bit;
            frame[at] ^= static_cast<uint8_t>(1U << bit);
        }
    }
    for (uint16_t cut = 1; cut <= length - udp_at; ++cut) {
        EXPECT_FALSE(read_frame(bytes().first(static_cast<size_t>(length - cut)), parsed, NicPortId{0}))
            << "cut by " << cut;
    }
    EXPECT_TRUE(read_frame(bytes(), parsed, NicPortId{0}));
}

INSTANTIATE_TEST_SUITE_P(
    Families, BfdFrame,
    ::testing::Values(Family{"192.0.2.1", "192.0.2.2"}, Family{"2001:db8::1", "2001:db8::2"},
                      Family{"fe80::1", "fe80::2"}),
    [](const auto& info) {
        return std::string(info.index == 0 ? "V4" : info.index == 1 ? "V6" : "LinkLocal");
    });

}  // namespace frame_test
}  // namespace penstock::bfd
