// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/engine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace penstock::bfd {
namespace engine_test {

constexpr TscRate kRate{1'000'000'000};
constexpr TscTime ms(uint64_t n) {
    return {n * 1'000'000};
}

class BfdEngine : public ::testing::Test {
 protected:
    static Terms terms(uint32_t discriminator, const char* peer = "192.0.2.2") {
        return {.discriminator = discriminator,
                .local = *IpAddr::parse("192.0.2.1"),
                .peer = *IpAddr::parse(peer),
                .egress = NicPortId{0}};
    }
    static ControlPacket from_peer(State state, uint32_t your, uint32_t mine = 99) {
        return {.state = state,
                .detect_multiplier = 3,
                .my_discriminator = mine,
                .your_discriminator = your,
                .desired_min_tx_us = 50'000,
                .required_min_rx_us = 50'000};
    }
    static Origin origin(const char* peer = "192.0.2.2") {
        return {.source = *IpAddr::parse(peer),
                .destination = *IpAddr::parse("192.0.2.1"),
                .port = NicPortId{0},
                .ttl = 255};
    }
    void put(const Terms& terms, const Status& former = {}) {
        ASSERT_TRUE(engine.order({.kind = Order::Kind::Put, .terms = terms, .former = former}));
    }
    // One run of worker 0 at this time, with rounds of the workers in `moving` before it.
    void run(uint64_t at, std::vector<size_t> moving = {0, 1}) {
        for (const size_t worker : moving) {
            workers[worker][stats::Counter::Polls].add(1);
        }
        engine.run(ms(at), [&](const Terms& of, const ControlPacket& packet) {
            sent.emplace_back(of.discriminator, packet);
            return can_send;
        });
    }
    void bring_up(uint32_t discriminator, const char* peer = "192.0.2.2") {
        run(0);
        ASSERT_TRUE(engine.receive(from_peer(State::Init, discriminator), origin(peer), ms(0)));
        auto final = from_peer(State::Up, discriminator);
        final.final = true;
        ASSERT_TRUE(engine.receive(final, origin(peer), ms(0)));
        run(0);
        sent.clear();
    }
    std::vector<Change> changes() {
        std::vector<Change> all;
        while (const auto change = engine.take_change()) {
            all.push_back(*change);
        }
        return all;
    }

    std::array<stats::WorkerCounters, 2> workers;
    std::array<const stats::WorkerCounters*, 2> rows{&workers[0], &workers[1]};
    Engine engine{kRate, 1, rows};
    bool can_send = true;
    std::vector<std::pair<uint32_t, ControlPacket>> sent;
};

TEST_F(BfdEngine, RunsASessionFromItsOrder) {
    put(terms(7));
    run(0);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].first, 7U);
    EXPECT_EQ(changes().size(), 1U);
    ASSERT_NE(engine.counts(7), nullptr);
    EXPECT_EQ(engine.counts(7)->sent.read(), 1U);
    EXPECT_EQ(engine.counts(7)->sent_bytes.read(), 24U);
    EXPECT_EQ(engine.counts(8), nullptr);
    EXPECT_EQ(engine.counts(0), nullptr);
}

TEST_F(BfdEngine, ReportsEachChangeOnce) {
    put(terms(7));
    bring_up(7);
    const auto all = changes();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back().status.state, State::Up);
    EXPECT_EQ(all.back().status.remote_discriminator, 99U);
    ASSERT_TRUE(engine.receive(from_peer(State::Up, 7), origin(), ms(10)));
    run(10);
    EXPECT_TRUE(changes().empty());
    run(300);
    const auto down = changes();
    ASSERT_EQ(down.size(), 1U);
    EXPECT_EQ(down[0].discriminator, 7U);
    EXPECT_EQ(down[0].status.state, State::Down);
    EXPECT_EQ(down[0].status.diagnostic, Diagnostic::DetectionTimeExpired);
}

TEST_F(BfdEngine, TakesAPacketOnlyFromThePeerOfItsSession) {
    put(terms(7));
    run(0);
    const ControlPacket packet = from_peer(State::Down, 0);
    auto other = origin("192.0.2.3");
    EXPECT_FALSE(engine.receive(packet, other, ms(1))) << "another sender";
    other = origin();
    other.destination = *IpAddr::parse("192.0.2.9");
    EXPECT_FALSE(engine.receive(packet, other, ms(1))) << "another address of the gateway";
    other = origin();
    other.port = NicPortId{1};
    EXPECT_FALSE(engine.receive(packet, other, ms(1))) << "another link";
    other = origin();
    other.is_multihop = true;
    EXPECT_FALSE(engine.receive(packet, other, ms(1))) << "another kind of session";
    other = origin();
    other.ttl = 254;
    EXPECT_FALSE(engine.receive(packet, other, ms(1))) << "RFC 5881, 5";
    EXPECT_FALSE(engine.receive(from_peer(State::Up, 8), origin(), ms(1))) << "another discriminator";
    EXPECT_EQ(engine.counts(7)->received.read(), 0U);
    EXPECT_TRUE(engine.receive(packet, origin(), ms(1)));
    EXPECT_EQ(engine.counts(7)->received.read(), 1U);
}

TEST_F(BfdEngine, AMultihopSessionAcceptsTheHopsThatItIsToldOf) {
    Terms multihop = terms(7);
    multihop.egress = {};
    multihop.ttl_min = 250;
    put(multihop);
    run(0);
    auto from = origin();
    from.is_multihop = true;
    from.port = NicPortId{3};
    from.ttl = 249;
    EXPECT_FALSE(engine.receive(from_peer(State::Down, 0), from, ms(1)));
    from.ttl = 250;
    EXPECT_TRUE(engine.receive(from_peer(State::Down, 0), from, ms(1)));
}

TEST_F(BfdEngine, WorkersHandOverOnlyWhatCanBeOfASession) {
    Origin from = origin();
    EXPECT_TRUE(engine.may_be_of_session(from));
    from.ttl = 254;
    EXPECT_FALSE(engine.may_be_of_session(from)) << "it has passed a router";
    from.is_multihop = true;
    EXPECT_FALSE(engine.may_be_of_session(from)) << "there is no such session";
    Terms multihop = terms(7);
    multihop.egress = {};
    put(multihop);
    run(0);
    EXPECT_TRUE(engine.may_be_of_session(from));
    ASSERT_TRUE(engine.order({.kind = Order::Kind::Remove, .terms = multihop, .former = {}}));
    run(5);
    EXPECT_FALSE(engine.may_be_of_session(from));
}

TEST_F(BfdEngine, SendsNothingWhileAWorkerMakesNoRounds) {
    put(terms(7));
    bring_up(7);
    // Packets of the peer keep the session up from this end.
    const auto pass = [&](uint64_t from, uint64_t to, const std::vector<size_t>& moving) {
        sent.clear();
        for (uint64_t now = from; now < to; now += 5) {
            ASSERT_TRUE(engine.receive(from_peer(State::Up, 7), origin(), ms(now)));
            run(now, moving);
        }
    };
    pass(5, 500, {0, 1});
    EXPECT_GE(sent.size(), 9U);
    pass(500, 605, {0});
    EXPECT_LE(sent.size(), 3U) << "for two intervals";
    EXPECT_GE(sent.size(), 1U);
    pass(605, 2'000, {0});
    EXPECT_EQ(sent.size(), 0U);
    EXPECT_GT(engine.counts(7)->withheld.read(), 20U);
    pass(2'000, 2'500, {0, 1});
    EXPECT_GE(sent.size(), 8U) << "it goes on";
}

TEST_F(BfdEngine, SendsNothingWhileThePacketsAreWithheld) {
    put(terms(7));
    bring_up(7);
    engine.withhold(true);
    EXPECT_TRUE(engine.is_withheld());
    for (uint64_t now = 5; now < 1'000; now += 5) {
        ASSERT_TRUE(engine.receive(from_peer(State::Up, 7), origin(), ms(now)));
        run(now);
    }
    EXPECT_TRUE(sent.empty());
    auto poll = from_peer(State::Up, 7);
    poll.poll = true;
    ASSERT_TRUE(engine.receive(poll, origin(), ms(1'000)));
    run(1'000);
    EXPECT_TRUE(sent.empty()) << "also no answer to a poll";
    engine.withhold(false);
    run(1'060);
    EXPECT_EQ(sent.size(), 1U);
}

TEST_F(BfdEngine, CountsPacketsThatCannotBeSent) {
    can_send = false;
    put(terms(7));
    run(0);
    EXPECT_EQ(engine.counts(7)->sent.read(), 0U);
    EXPECT_EQ(engine.counts(7)->unsendable.read(), 1U);
    run(10);
    EXPECT_EQ(engine.counts(7)->unsendable.read(), 1U) << "the next attempt is after the interval";
}

TEST_F(BfdEngine, ASessionKeepsItsStateUnderAnotherDiscriminator) {
    put(terms(7));
    bring_up(7);
    (void)changes();
    put(terms(8));
    run(10);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].first, 8U);
    EXPECT_EQ(sent[0].second.state, State::Up);
    const auto all = changes();
    ASSERT_EQ(all.size(), 1U) << "the routing daemon, which has restarted, learns the state";
    EXPECT_EQ(all[0].discriminator, 8U);
    EXPECT_EQ(all[0].status.state, State::Up);
    EXPECT_EQ(engine.counts(7), nullptr);
}

TEST_F(BfdEngine, EndsASessionByItsOrder) {
    put(terms(7));
    put(terms(8, "192.0.2.3"));
    run(0);
    sent.clear();
    ASSERT_TRUE(engine.order({.kind = Order::Kind::Remove, .terms = terms(7), .former = {}}));
    run(5);
    ASSERT_EQ(sent.size(), 1U) << "the peer need not wait for its detection time";
    EXPECT_EQ(sent[0].first, 7U);
    EXPECT_EQ(sent[0].second.state, State::AdminDown);
    EXPECT_EQ(engine.counts(7), nullptr);
    EXPECT_FALSE(engine.receive(from_peer(State::Down, 0), origin(), ms(6)));
    EXPECT_NE(engine.counts(8), nullptr);
}

TEST_F(BfdEngine, ANameOfAnotherSessionBeginsAnew) {
    put(terms(7));
    bring_up(7);
    ASSERT_TRUE(engine.order({.kind = Order::Kind::Remove, .terms = terms(7), .former = {}}));
    put(terms(7, "192.0.2.3"));
    run(10);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].second.state, State::Down);
    EXPECT_EQ(sent[0].second.your_discriminator, 0U) << "not that of the former peer";
    EXPECT_EQ(engine.counts(7)->received.read(), 0U);
    EXPECT_FALSE(engine.receive(from_peer(State::Down, 0), origin(), ms(11)));
    EXPECT_TRUE(engine.receive(from_peer(State::Down, 0), origin("192.0.2.3"), ms(11)));
}

TEST_F(BfdEngine, BeginsWithTheStatusOfAFormerProcess) {
    Status former;
    former.state = State::Up;
    former.remote_discriminator = 99;
    former.remote = from_peer(State::Up, 7);
    put(terms(7), former);
    run(0);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].second.state, State::Up);
    const auto all = changes();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].status.state, State::Up);
}

TEST_F(BfdEngine, HasRoomForItsLimitAndIgnoresMore) {
    for (uint32_t n = 1; n <= limits::kBfdSessionsMax + 1; ++n) {
        const IpAddr peer = IpAddr::v4(Be32::from_host(0xc0000200 + n));
        Terms one = terms(n);
        one.peer = peer;
        put(one);
    }
    run(0);
    EXPECT_EQ(sent.size(), limits::kBfdSessionsMax);
    EXPECT_EQ(engine.counts(limits::kBfdSessionsMax + 1), nullptr);
}

TEST_F(BfdEngine, SleepsUntilSomethingIsDue) {
    put(terms(7));
    run(0);
    EXPECT_FALSE(engine.is_due(ms(1)));
    EXPECT_TRUE(engine.is_due(ms(2))) << "orders are read every 2 ms";
    auto poll = from_peer(State::Down, 0);
    poll.poll = true;
    run(2);
    ASSERT_TRUE(engine.receive(poll, origin(), ms(2)));
    EXPECT_TRUE(engine.is_due(ms(2)));
}

}  // namespace engine_test
}  // namespace penstock::bfd
