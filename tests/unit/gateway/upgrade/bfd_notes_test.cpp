// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/upgrade/bfd_notes.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace penstock::gateway {
namespace bfd_notes_test {

using bfd::SessionBook;

NicPortId port_of(const std::string& twin) {
    return twin == "up0" ? NicPortId{3} : NicPortId{};
}

SessionBook::Kept session() {
    SessionBook::Kept kept{.terms = {.discriminator = 7,
                                     .local = *IpAddr::parse("192.0.2.1"),
                                     .peer = *IpAddr::parse("192.0.2.2"),
                                     .egress = NicPortId{3},
                                     .is_passive = true,
                                     .is_shut_down = false,
                                     .control_plane_independent = true,
                                     .ttl_min = 254,
                                     .detect_multiplier = 5,
                                     .desired_min_tx_us = 10,
                                     .required_min_rx_us = 20},
                           .status = {},
                           .twin = "up0"};
    kept.status.state = bfd::State::Up;
    kept.status.diagnostic = bfd::Diagnostic::PathDown;
    kept.status.remote_discriminator = 99;
    kept.status.remote = {.state = bfd::State::Up,
                          .detect_multiplier = 4,
                          .my_discriminator = 99,
                          .your_discriminator = 7,
                          .desired_min_tx_us = 30,
                          .required_min_rx_us = 40};
    return kept;
}

TEST(BfdNotes, KeepASession) {
    const std::vector<SessionBook::Kept> one{session()};
    const v1::HandedBfd note = proto_of(one, 2);
    EXPECT_EQ(note.protocol_version(), 2U);
    const auto read = kept_of(note, port_of);
    ASSERT_EQ(read.size(), 1U);
    EXPECT_EQ(read[0].terms, one[0].terms);
    EXPECT_EQ(read[0].status, one[0].status);
    EXPECT_EQ(read[0].twin, "up0");
}

TEST(BfdNotes, KeepAMultihopSessionWithoutItsPeersPackets) {
    std::vector<SessionBook::Kept> one{session()};
    one[0].terms.egress = {};
    one[0].twin = "";
    one[0].status = {};
    const auto read = kept_of(proto_of(one, 1), port_of);
    ASSERT_EQ(read.size(), 1U);
    EXPECT_TRUE(read[0].terms.is_multihop());
    EXPECT_EQ(read[0].status, bfd::Status{});
}

TEST(BfdNotes, LeaveOutWhatASuccessorCannotContinue) {
    const std::vector<std::function<void(v1::HandedBfdSession&)>> damages{
        [](auto& s) { s.set_twin("gone0"); },        [](auto& s) { s.set_discriminator(0); },
        [](auto& s) { s.set_local("192.0.2"); },     [](auto& s) { s.set_peer(""); },
        [](auto& s) { s.set_peer("2001:db8::1"); },  [](auto& s) { s.set_ttl_min(256); },
        [](auto& s) { s.set_detect_multiplier(0); }, [](auto& s) { s.set_detect_multiplier(256); },
        [](auto& s) { s.set_min_tx_us(0); },         [](auto& s) { s.set_state(4); }};
    for (size_t i = 0; i < damages.size(); ++i) {
        const std::vector<SessionBook::Kept> two{session(), session()};
        v1::HandedBfd note = proto_of(two, 1);
        damages[i](*note.mutable_sessions(0));
        EXPECT_EQ(kept_of(note, port_of).size(), 1U) << "damage " << i;
    }
    const std::vector<SessionBook::Kept> one{session()};
    v1::HandedBfd cut = proto_of(one, 1);
    cut.mutable_sessions(0)->set_last_received("cut");
    EXPECT_EQ(kept_of(cut, port_of).at(0).status, bfd::Status{}) << "it begins anew";
}

}  // namespace bfd_notes_test
}  // namespace penstock::gateway
