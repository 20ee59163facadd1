// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/session.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::bfd {
namespace session_test {

constexpr TscRate kRate{1'000'000'000};
constexpr TscTime ms(uint64_t n) {
    return {n * 1'000'000};
}

Terms terms(uint32_t discriminator = 7) {
    return {.discriminator = discriminator,
            .local = *IpAddr::parse("192.0.2.1"),
            .peer = *IpAddr::parse("192.0.2.2"),
            .egress = NicPortId{0}};
}

ControlPacket from_peer(State state, uint32_t your = 7) {
    return {.state = state,
            .detect_multiplier = 3,
            .my_discriminator = 99,
            .your_discriminator = your,
            .desired_min_tx_us = 50'000,
            .required_min_rx_us = 50'000};
}

// A session that is up at 0 ms, after its poll.
Session up() {
    Session session(terms(), kRate, 1, ms(0));
    (void)session.next(ms(0));
    session.receive(from_peer(State::Init), ms(0));
    (void)session.next(ms(0));
    auto final = from_peer(State::Up);
    final.final = true;
    session.receive(final, ms(0));
    EXPECT_EQ(session.status().state, State::Up);
    return session;
}

TEST(BfdSession, BeginsDownAndSendsOnceASecond_RFC5880) {
    Session session(terms(), kRate, 1, ms(0));
    ASSERT_TRUE(session.is_due(ms(0)));
    const ControlPacket first = session.next(ms(0));
    EXPECT_EQ(first.state, State::Down);
    EXPECT_EQ(first.my_discriminator, 7U);
    EXPECT_EQ(first.your_discriminator, 0U);
    EXPECT_EQ(first.desired_min_tx_us, 1'000'000U) << "6.8.3";
    EXPECT_EQ(first.required_min_rx_us, 50'000U);
    EXPECT_FALSE(session.is_due(ms(740)));
    EXPECT_TRUE(session.is_due(ms(1'000)));
}

TEST(BfdSession, ChangesItsStateAsTheRfcLists_RFC5880) {
    const struct {
        State own, peer, then;
    } cases[] = {
        {State::Down, State::AdminDown, State::Down}, {State::Down, State::Down, State::Init},
        {State::Down, State::Init, State::Up},        {State::Down, State::Up, State::Down},
        {State::Init, State::AdminDown, State::Down}, {State::Init, State::Down, State::Init},
        {State::Init, State::Init, State::Up},        {State::Init, State::Up, State::Up},
        {State::Up, State::AdminDown, State::Down},   {State::Up, State::Down, State::Down},
        {State::Up, State::Init, State::Up},          {State::Up, State::Up, State::Up},
    };
    for (const auto& c : cases) {
        Session session(terms(), kRate, 1, ms(0));
        if (c.own != State::Down) {
            session.receive(from_peer(c.own == State::Init ? State::Down : State::Init), ms(1));
        }
        ASSERT_EQ(session.status().state, c.own);
        session.receive(from_peer(c.peer), ms(2));
        EXPECT_EQ(session.status().state, c.then) << text_of(c.own) << " and the peer " << text_of(c.peer);
        if (c.own == State::Up && c.then == State::Down) {
            EXPECT_EQ(session.status().diagnostic, Diagnostic::NeighbourSignaledDown);
        }
    }
}

TEST(BfdSession, TellsThePeerOfAChangeAtOnce) {
    Session session(terms(), kRate, 1, ms(0));
    (void)session.next(ms(0));
    EXPECT_FALSE(session.is_due(ms(10)));
    session.receive(from_peer(State::Down, 0), ms(10));
    ASSERT_TRUE(session.is_due(ms(10)));
    const ControlPacket packet = session.next(ms(10));
    EXPECT_EQ(packet.state, State::Init);
    EXPECT_EQ(packet.your_discriminator, 99U);
}

TEST(BfdSession, SendsByTheLongerOfBothIntervalsWithJitter_RFC5880) {
    Session session = up();
    auto slow = from_peer(State::Up);
    slow.required_min_rx_us = 200'000;
    session.receive(slow, ms(0));
    EXPECT_EQ(session.transmit_interval_us(), 200'000U);
    uint64_t last = 0, shortest = ~0ULL, longest = 0;
    (void)session.next(ms(0));
    for (uint64_t now = 1; now < 60'000; ++now) {
        if (now % 100 == 0) {
            session.receive(slow, ms(now));
        }
        if (session.is_due(ms(now))) {
            (void)session.next(ms(now));
            shortest = std::min(shortest, now - last);
            longest = std::max(longest, now - last);
            last = now;
        }
    }
    EXPECT_GE(shortest, 150U);
    EXPECT_LE(shortest, 160U);
    EXPECT_GE(longest, 190U);
    EXPECT_LE(longest, 201U);
}

TEST(BfdSession, IsDownWhenThePeerIsSilentForItsDetectionTime_RFC5880) {
    Session session = up();
    session.receive(from_peer(State::Up), ms(1'000));
    EXPECT_EQ(session.detection_time_us(), 150'000U);
    session.look(ms(1'149));
    EXPECT_EQ(session.status().state, State::Up);
    session.look(ms(1'150));
    EXPECT_EQ(session.status().state, State::Down);
    EXPECT_EQ(session.status().diagnostic, Diagnostic::DetectionTimeExpired);
    EXPECT_EQ(session.status().remote_discriminator, 0U) << "6.8.1";
    ASSERT_TRUE(session.is_due(ms(1'150)));
    const ControlPacket packet = session.next(ms(1'150));
    EXPECT_EQ(packet.diagnostic, Diagnostic::DetectionTimeExpired);
    EXPECT_EQ(packet.your_discriminator, 0U);
}

TEST(BfdSession, DetectsByThePeersMultiplierAndTheLongerInterval_RFC5880) {
    Session session = up();
    auto packet = from_peer(State::Up);
    packet.detect_multiplier = 5;
    packet.desired_min_tx_us = 300'000;
    session.receive(packet, ms(0));
    EXPECT_EQ(session.detection_time_us(), 1'500'000U);
}

TEST(BfdSession, PollsWhenItComesUp_RFC5880) {
    Session session(terms(), kRate, 1, ms(0));
    session.receive(from_peer(State::Init), ms(0));
    ASSERT_EQ(session.status().state, State::Up);
    EXPECT_TRUE(session.next(ms(0)).poll);
    EXPECT_TRUE(session.next(ms(60)).poll) << "until the peer answers";
    auto final = from_peer(State::Up);
    final.final = true;
    session.receive(final, ms(70));
    EXPECT_FALSE(session.next(ms(120)).poll);
}

TEST(BfdSession, AnswersAPollAtOnce_RFC5880) {
    Session session = up();
    (void)session.next(ms(0));
    auto poll = from_peer(State::Up);
    poll.poll = true;
    session.receive(poll, ms(5));
    EXPECT_EQ(session.wakes_at(), TscTime{});
    ASSERT_TRUE(session.is_due(ms(5)));
    const ControlPacket answer = session.next(ms(5));
    EXPECT_TRUE(answer.final);
    EXPECT_FALSE(answer.poll) << "never both, 6.8.7";
    EXPECT_FALSE(session.is_due(ms(6))) << "one answer";
}

TEST(BfdSession, AgreesOnNewIntervalsBeforeItUsesThem_RFC5880) {
    Session session = up();
    session.receive(from_peer(State::Up), ms(0));
    Terms changed = terms();
    changed.desired_min_tx_us = 300'000;
    changed.required_min_rx_us = 20'000;
    session.change(changed, ms(10));
    EXPECT_EQ(session.transmit_interval_us(), 50'000U) << "a longer one waits for the peer";
    EXPECT_EQ(session.detection_time_us(), 150'000U) << "a shorter one waits for the peer";
    const ControlPacket poll = session.next(ms(10));
    EXPECT_TRUE(poll.poll);
    EXPECT_EQ(poll.desired_min_tx_us, 300'000U);
    EXPECT_EQ(poll.required_min_rx_us, 20'000U);
    auto final = from_peer(State::Up);
    final.final = true;
    final.desired_min_tx_us = 20'000;
    session.receive(final, ms(20));
    EXPECT_EQ(session.transmit_interval_us(), 300'000U);
    EXPECT_EQ(session.detection_time_us(), 60'000U);
}

TEST(BfdSession, APassiveOneWaitsForThePeer_RFC5880) {
    Terms passive = terms();
    passive.is_passive = true;
    Session session(passive, kRate, 1, ms(0));
    EXPECT_FALSE(session.is_due(ms(5'000)));
    session.receive(from_peer(State::Down, 0), ms(5'000));
    EXPECT_TRUE(session.is_due(ms(5'000)));
}

TEST(BfdSession, SendsNothingPeriodicToAPeerThatRefusesIt_RFC5880) {
    Session session = up();
    auto packet = from_peer(State::Up);
    packet.required_min_rx_us = 0;
    session.receive(packet, ms(0));
    EXPECT_FALSE(session.is_due(ms(140)));
    packet.poll = true;
    session.receive(packet, ms(140));
    EXPECT_TRUE(session.is_due(ms(140))) << "the answer to a poll is not periodic";
}

TEST(BfdSession, IsShutDownAndBeginsAgain) {
    Session session = up();
    Terms down = terms();
    down.is_shut_down = true;
    session.change(down, ms(10));
    EXPECT_EQ(session.status().state, State::AdminDown);
    ASSERT_TRUE(session.is_due(ms(10)));
    EXPECT_EQ(session.next(ms(10)).diagnostic, Diagnostic::AdministrativelyDown);
    session.receive(from_peer(State::Init), ms(20));
    EXPECT_EQ(session.status().state, State::AdminDown);
    session.change(terms(), ms(30));
    EXPECT_EQ(session.status().state, State::Down);
}

TEST(BfdSession, ContinuesWithTheStatusOfAFormerProcess) {
    Session former = up();
    former.receive(from_peer(State::Up), ms(500));
    Session session(terms(), kRate, 2, ms(600));
    session.resume(former.status(), ms(600));
    EXPECT_EQ(session.status().state, State::Up);
    ASSERT_TRUE(session.is_due(ms(600)));
    const ControlPacket packet = session.next(ms(600));
    EXPECT_EQ(packet.state, State::Up);
    EXPECT_EQ(packet.your_discriminator, 99U);
    session.look(ms(749));
    EXPECT_EQ(session.status().state, State::Up);
    session.look(ms(750));
    EXPECT_EQ(session.status().state, State::Down) << "the peer must be heard within its detection time";
}

}  // namespace session_test
}  // namespace penstock::bfd
