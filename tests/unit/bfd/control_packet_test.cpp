// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/control_packet.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace penstock::bfd {
namespace control_packet_test {

// A packet of FRR 8.4, state Up, with 50 ms x 3.
const std::vector<uint8_t> kUp{0x20, 0xc0, 0x03, 0x18, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
                               0x00, 0x00, 0xc3, 0x50, 0x00, 0x00, 0xc3, 0x50, 0x00, 0x00, 0x00, 0x00};

TEST(ControlPacket, HasTheFieldsOfTheRfc_RFC5880) {
    const auto packet = parse(kUp);
    ASSERT_TRUE(packet);
    EXPECT_EQ(*packet, (ControlPacket{.state = State::Up,
                                      .detect_multiplier = 3,
                                      .my_discriminator = 0x12345678,
                                      .your_discriminator = 0x9abcdef0,
                                      .desired_min_tx_us = 50'000,
                                      .required_min_rx_us = 50'000}));
    const auto bytes = wire_of(*packet);
    EXPECT_EQ(std::vector(bytes.begin(), bytes.end()), kUp);
}

TEST(ControlPacket, KeepsEachField) {
    const ControlPacket packet{.state = State::Init,
                               .diagnostic = Diagnostic::NeighbourSignaledDown,
                               .poll = true,
                               .final = false,
                               .control_plane_independent = true,
                               .demand = true,
                               .detect_multiplier = 200,
                               .my_discriminator = 1,
                               .your_discriminator = 2,
                               .desired_min_tx_us = 3,
                               .required_min_rx_us = 4,
                               .required_min_echo_rx_us = 5};
    EXPECT_EQ(parse(wire_of(packet)), packet);
    ControlPacket final = packet;
    final.poll = false;
    final.final = true;
    EXPECT_EQ(parse(wire_of(final)), final);
}

TEST(ControlPacket, IsRefusedByEachCheckOfTheRfc_RFC5880) {
    const struct {
        const char* name;
        size_t at;
        uint8_t value;
    } cases[] = {
        {"version 0", 0, 0x00},       {"version 2", 0, 0x40},           {"length below 24", 3, 23},
        {"longer than it is", 3, 25}, {"detection multiplier 0", 2, 0}, {"multipoint", 1, 0xc1},
        {"authentication", 1, 0xc4},
    };
    for (const auto& c : cases) {
        auto bytes = kUp;
        bytes[c.at] = c.value;
        EXPECT_FALSE(parse(bytes)) << c.name;
    }
    auto cut = kUp;
    cut.pop_back();
    EXPECT_FALSE(parse(cut)) << "cut";
    auto anonymous = kUp;
    std::fill_n(anonymous.begin() + 4, 4, uint8_t{0});
    EXPECT_FALSE(parse(anonymous)) << "no discriminator";
}

TEST(ControlPacket, NamesItsReceiverUnlessItIsDown_RFC5880) {
    for (const State state : {State::AdminDown, State::Down, State::Init, State::Up}) {
        const bool may = state == State::AdminDown || state == State::Down;
        const ControlPacket packet{.state = state, .detect_multiplier = 3, .my_discriminator = 1};
        EXPECT_EQ(parse(wire_of(packet)).has_value(), may) << text_of(state);
    }
}

TEST(ControlPacket, HasTexts) {
    EXPECT_EQ(text_of(State::AdminDown), "admin-down");
    EXPECT_EQ(text_of(State::Up), "up");
    EXPECT_EQ(text_of(Diagnostic::None), "");
    EXPECT_EQ(text_of(Diagnostic::DetectionTimeExpired), "detection time expired");
    EXPECT_EQ(text_of(static_cast<Diagnostic>(31)), "unknown");
}

}  // namespace control_packet_test
}  // namespace penstock::bfd
