// SPDX-License-Identifier: Apache-2.0
#include "control/bfd/frr_messages.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bfd/frr_bytes.hpp"

namespace penstock::bfd {
namespace frr_messages_test {

Result<std::optional<FrrMessage>> read(const std::vector<uint8_t>& bytes) {
    FrrReader reader;
    reader.append(bytes);
    return reader.next();
}

SessionRequest session_in(const std::vector<uint8_t>& bytes) {
    const auto message = read(bytes);
    EXPECT_TRUE(message && *message && std::holds_alternative<SessionRequest>(**message));
    return message && *message ? std::get<SessionRequest>(**message) : SessionRequest{};
}

TEST(FrrMessages, ReadsASession) {
    EXPECT_EQ(session_in(frr_bytes({})), (SessionRequest{.discriminator = 7,
                                                         .local = *IpAddr::parse("192.0.2.1"),
                                                         .peer = *IpAddr::parse("192.0.2.2"),
                                                         .min_tx_us = 50'000,
                                                         .min_rx_us = 60'000,
                                                         .ttl_min = 255,
                                                         .detect_multiplier = 3,
                                                         .interface = "up0"}));
    EXPECT_TRUE(session_in(frr_bytes({}, true)).removes);
}

TEST(FrrMessages, ReadsEachFlag) {
    EXPECT_TRUE(session_in(frr_bytes({.flags = 1})).is_multihop);
    EXPECT_TRUE(session_in(frr_bytes({.flags = 4})).control_plane_independent);
    EXPECT_TRUE(session_in(frr_bytes({.flags = 32})).is_passive);
    EXPECT_TRUE(session_in(frr_bytes({.flags = 64})).is_shut_down);
    const SessionRequest v6 = session_in(frr_bytes({.flags = 16}));
    EXPECT_EQ(v6.peer, *IpAddr::parse("c000:202::"));
    EXPECT_FALSE(v6.is_multihop || v6.is_passive || v6.is_shut_down);
}

TEST(FrrMessages, ReadsVersion2) {
    auto bytes = frr_bytes({.version = 2});
    EXPECT_FALSE(session_in(bytes).is_other_kind);
    EXPECT_EQ(session_in(bytes).interface, "up0");
    bytes[8 + 132] = 1;
    EXPECT_TRUE(session_in(bytes).is_other_kind) << "seamless BFD";
    bytes[8 + 132] = 0;
    bytes[8 + 133] = 1;
    EXPECT_TRUE(session_in(bytes).is_other_kind) << "SRv6";
}

TEST(FrrMessages, AnInterfaceNameMayFillItsField) {
    const std::string name(64, 'x');
    EXPECT_EQ(session_in(frr_bytes({.interface = name})).interface, name);
}

TEST(FrrMessages, ReadsMessagesFromPieces) {
    std::vector<uint8_t> all = frr_bytes({});
    const auto second = frr_bytes({.discriminator = 8});
    all.insert(all.end(), second.begin(), second.end());
    for (size_t piece = 1; piece <= all.size(); piece += 13) {
        FrrReader reader;
        std::vector<uint32_t> found;
        for (size_t at = 0; at < all.size(); at += piece) {
            reader.append(ByteView(all).subspan(at, std::min(piece, all.size() - at)));
            for (auto message = reader.next(); message && *message; message = reader.next()) {
                found.push_back(std::get<SessionRequest>(**message).discriminator);
            }
        }
        EXPECT_EQ(found, (std::vector<uint32_t>{7, 8})) << "pieces of " << piece;
        EXPECT_TRUE(reader.is_empty());
    }
}

TEST(FrrMessages, SkipsWhatIsForBfddAlone) {
    auto bytes = frr_message(1, 1, 0, 16);
    for (const uint16_t other : {uint16_t{4}, uint16_t{6}, uint16_t{99}}) {
        const auto more = frr_message(1, other, 0, 40);
        bytes.insert(bytes.end(), more.begin(), more.end());
    }
    const auto last = frr_bytes({});
    bytes.insert(bytes.end(), last.begin(), last.end());
    EXPECT_EQ(session_in(bytes).discriminator, 7U);
}

TEST(FrrMessages, RefusesWhatItCannotContinue) {
    auto bytes = frr_bytes({});
    bytes[0] = 3;
    EXPECT_EQ(read(bytes).error().what, "version 3 of the protocol; 1 and 2 are supported");
    bytes[0] = 0;
    EXPECT_FALSE(read(bytes));
    EXPECT_FALSE(read(frr_message(1, 2, 0, 131))) << "a session is longer";
    EXPECT_FALSE(read(frr_message(1, 0, 0, 15))) << "an echo request is longer";
    EXPECT_FALSE(read(frr_message(1, 5, 0, 3))) << "a request for counters is longer";
    EXPECT_FALSE(read(frr_message(1, 2, 0, 1'017))) << "no message is as long";
    auto none = frr_message(1, 9, 0, 0);
    put16(none, 6, 7);
    EXPECT_FALSE(read(none)) << "shorter than its header";
}

TEST(FrrMessages, WritesAChangeOfState) {
    Status status{.state = State::Up,
                  .diagnostic = Diagnostic::None,
                  .remote_discriminator = 0x01020304,
                  .remote = {.state = State::Up,
                             .diagnostic = Diagnostic::NeighbourSignaledDown,
                             .control_plane_independent = true,
                             .detect_multiplier = 5,
                             .my_discriminator = 0x01020304,
                             .desired_min_tx_us = 0x11,
                             .required_min_rx_us = 0x22,
                             .required_min_echo_rx_us = 0x33}};
    EXPECT_EQ(state_change(1, 7, status),
              (std::vector<uint8_t>{1, 0, 0, 4, 0, 0,    0, 36, 0, 0,    0, 7, 1, 2,    3, 4, 0, 0,
                                    0, 1, 0, 0, 0, 0x11, 0, 0,  0, 0x22, 0, 0, 0, 0x33, 3, 3, 5, 0}));
}

TEST(FrrMessages, WritesAnswers) {
    auto echo = frr_message(2, 0, 9, 16);
    for (size_t i = 0; i < 8; ++i) {
        echo[8 + i] = static_cast<uint8_t>(i + 1);
    }
    const auto request = read(echo);
    ASSERT_TRUE(request && *request);
    EXPECT_EQ(
        echo_reply(2, std::get<EchoRequest>(**request), 0x0a),
        (std::vector<uint8_t>{2, 0, 0, 1, 0, 0, 0, 24, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 10}));

    auto asked = frr_message(1, 5, 0x0102, 4);
    put32(asked, 8, 7);
    const auto counters_request = read(asked);
    ASSERT_TRUE(counters_request && *counters_request);
    const auto answer = counters(1, std::get<CountersRequest>(**counters_request),
                                 {.received_bytes = 1, .received = 2, .sent_bytes = 3, .sent = 4});
    ASSERT_EQ(answer.size(), 80U) << "the structure of C";
    EXPECT_EQ((std::vector<uint8_t>(answer.begin(), answer.begin() + 12)),
              (std::vector<uint8_t>{1, 0, 0, 6, 1, 2, 0, 80, 0, 0, 0, 7}));
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(answer[8 + 8 + 8 * i + 7], i + 1);
    }
}

}  // namespace frr_messages_test
}  // namespace penstock::bfd
