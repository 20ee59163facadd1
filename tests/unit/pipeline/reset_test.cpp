// SPDX-License-Identifier: Apache-2.0
// TCP connections ended by an order: both sides must get a RST that their stacks accept (DRAIN-005), although
// the gateway has tracked no sequence numbers. The sides here are models of the RFCs; tests/e2e uses Linux.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "dataplane/packet/answers/reset.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/tcp_peer.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace reset_test {

using conn::TcpState;
using packet::FlowKey;
using packet::TcpFlags;
using stats::Counter;

struct Setting {
    const char* name;
    IpFamily family;
    lb::SourceMode source;
    uint32_t workers;
};

// The sender of a frame is derived from its port.
std::vector<uint8_t> on_the_wire(std::vector<uint8_t> frame, NicPortId port) {
    packet::set_ethernet(frame, port == kUp ? kClientMac : backend_mac(11),
                         port == kUp ? kUpMac : kClusterMac);
    return frame;
}

class Reset : public testing::TestWithParam<Setting> {
 protected:
    static constexpr L4Port kClientPort = 40'000;

    void SetUp() override { gateway.publish({web}); }

    [[nodiscard]] std::vector<uint8_t> bare(const FlowKey& key, TcpFlags flags, uint32_t seq = 0,
                                            uint32_t ack = 0) const {
        std::vector<uint8_t> frame(packet::kBareSegmentBytesMax);
        frame.resize(packet::build_segment(frame, key, {seq, ack}, flags));
        return on_the_wire(frame, key.source == client ? kUp : kCluster);
    }
    Outcome send(const std::vector<uint8_t>& frame, NicPortId port) {
        return gateway.send(on_the_wire(frame, port), port,
                            {static_cast<uint8_t>(prng.below(GetParam().workers))});
    }
    // Opens a connection up to a state. Returns the backend's key: from the backend.
    FlowKey open(TcpState state) {
        packet::Parsed parsed;
        EXPECT_TRUE(packet::parse(send(bare(outside(), {TcpFlags::kSyn}), kUp).frame, parsed).has_value());
        const FlowKey inside = parsed.key.reversed();
        const auto pass = [&](const FlowKey& key, uint8_t flags) {
            const uint32_t seq =
                (flags & TcpFlags::kSyn) != 0 ? 0xffff'ffff : 0;  // so that ACK numbers of 0 agree with it
            EXPECT_EQ(send(bare(key, {flags}, seq), key == inside ? kCluster : kUp).verdict,
                      Verdict::Transmit);
        };
        if (state == TcpState::SynSent) {
            return inside;
        }
        pass(inside, TcpFlags::kSyn | TcpFlags::kAck);
        if (state == TcpState::SynReceived) {
            return inside;
        }
        pass(outside(), TcpFlags::kAck);
        if (state == TcpState::FinForward || state == TcpState::TimeWait) {
            pass(outside(), TcpFlags::kFin | TcpFlags::kAck);
        }
        pass(inside, TcpFlags::kAck);
        if (state == TcpState::FinReverse || state == TcpState::TimeWait) {
            pass(inside, TcpFlags::kFin | TcpFlags::kAck);
        }
        if (state == TcpState::RstForward) {
            pass(outside(), TcpFlags::kRst);
        }
        if (state == TcpState::RstReverse) {
            pass(inside, TcpFlags::kRst);
        }
        return inside;
    }
    [[nodiscard]] FlowKey outside() const { return {client, vip, kClientPort, 80, Protocol::Tcp, {}}; }
    void order_end() {
        gateway.order(
            {.backend = gateway.backend_of(web, 11, GetParam().family), .frontend = {}, .frontend_port = 0});
    }
    // Delivers the segments originated by workers, and the answers of the two sides, until no more are sent.
    // `loses`: frames that never arrive, by number.
    void exchange(TcpPeer& client_side, TcpPeer& backend_side, std::vector<uint32_t> loses = {}) {
        uint32_t number = 0;
        std::deque<Outcome> under_way;
        const auto take_own = [&] {
            for (Outcome& own : gateway.take_own_segments()) {
                under_way.push_back(std::move(own));
            }
        };
        take_own();
        for (; !under_way.empty(); take_own()) {
            const Outcome next = under_way.front();
            under_way.pop_front();
            if (next.verdict != Verdict::Transmit || std::ranges::find(loses, number++) != loses.end()) {
                continue;
            }
            ASSERT_LT(number, 100u) << "it goes on for ever";
            const auto answer = (next.egress == kUp ? client_side : backend_side).receive(next.frame);
            if (answer) {
                under_way.push_back(send(*answer, next.egress));
            }
        }
    }

    Prng prng;
    IpAddr client = GetParam().family == IpFamily::V4 ? kClient : kClient6;
    IpAddr vip = GetParam().family == IpFamily::V4
                     ? IpAddr::v4(80, 11, 12, 10)
                     : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10});
    TestService web{.frontends = {{vip, 80}}, .backends = {11}, .source = GetParam().source};
    VirtualGateway gateway{VirtualGateway::Options{.workers = GetParam().workers}};
};
INSTANTIATE_TEST_SUITE_P(Ways, Reset,
                         testing::Values(Setting{"v4", IpFamily::V4, lb::SourceMode::Translate, 1},
                                         Setting{"v4Kept", IpFamily::V4, lb::SourceMode::Keep, 2},
                                         Setting{"v6", IpFamily::V6, lb::SourceMode::Translate, 2},
                                         Setting{"v6Kept", IpFamily::V6, lb::SourceMode::Keep, 1}),
                         [](const auto& info) { return std::string(info.param.name); });

// Idle connections in every state known to both sides, for all positions of their sequence numbers.
TEST_P(Reset, BothSidesOfAnIdleConnectionAreReset_DRAIN005) {
    for (const TcpState state : {TcpState::SynReceived, TcpState::Established, TcpState::FinForward,
                                 TcpState::FinReverse, TcpState::RstForward, TcpState::RstReverse}) {
        const FlowKey inside = open(state);
        const auto at_client = static_cast<uint32_t>(prng.next()),
                   at_backend = static_cast<uint32_t>(prng.next());
        TcpPeer client_side(outside(), at_client, at_backend), backend_side(inside, at_backend, at_client);
        order_end();
        gateway.work_off_orders();
        exchange(client_side, backend_side);
        gateway.advance_seconds(
            3);  // about one probe in 65,536 is acceptable by chance and is repeated with another number
        gateway.age();
        exchange(client_side, backend_side);
        EXPECT_TRUE(client_side.is_reset()) << to_string(state);
        EXPECT_TRUE(backend_side.is_reset()) << to_string(state);
        gateway.advance_seconds(15);
        gateway.age();
        EXPECT_EQ(gateway.connections(), 0u) << to_string(state);
    }
}

// Neither side's numbers include the probe's, so that both answer it.
struct Numbers {
    uint32_t client, backend;
};
Numbers any_numbers(Prng& prng) {
    const auto any = [&] { return static_cast<uint32_t>(0x1000'0000 + prng.below(0x6000'0000)); };
    return {any(), any()};
}

// A FIN or a RST in the name of a side that has not sent it, followed by silence: the connection continues,
// however long both programs are idle. An attacker with two addresses and a port can forge it blindly.
TEST_P(Reset, AForgedEndDoesNotOutliveTheSilenceOfALivingConnection_NAT006) {
    for (const TcpState state :
         {TcpState::FinForward, TcpState::FinReverse, TcpState::RstForward, TcpState::RstReverse}) {
        const FlowKey inside = open(state);
        const Numbers at = any_numbers(prng);
        TcpPeer client_side(outside(), at.client, at.backend), backend_side(inside, at.backend, at.client);
        const uint64_t probes = gateway.count(Counter::LivenessProbes);
        for (int second = 0; second < 1'000; ++second) {
            gateway.advance_seconds(1);
            gateway.age();
            exchange(client_side, backend_side);
        }
        ASSERT_EQ(gateway.connections(), 1u) << to_string(state);
        EXPECT_LE(gateway.count(Counter::LivenessProbes) - probes, 4u)
            << to_string(state) << ": once it has shown that it lives it is left alone";
        const Outcome next = send(client_side.send("PA", 1), kUp);
        ASSERT_EQ(next.verdict, Verdict::Transmit) << to_string(state);
        EXPECT_EQ(next.egress, kCluster) << to_string(state);
        ASSERT_TRUE(backend_side.receive(next.frame).has_value())
            << to_string(state) << ": its receiver takes it";
        const stats::BackendCounters& counted =
            gateway.worker(next.worker.value)
                .counters.backends[gateway.backend_of(web, 11, GetParam().family).value];
        EXPECT_EQ(counted.open.read(), 1u) << to_string(state);
        gateway.advance_seconds(conn::Timeouts().tcp_established_s + 10);
        gateway.age();
        ASSERT_EQ(gateway.connections(), 0u) << to_string(state) << ": its own limit holds";
    }
}

// A genuine one ends the connection as usual, whatever sockets the other side's program keeps open.
TEST_P(Reset, ATrueEndIsNotDelayedByWhatTheOtherSideKeepsOpen_NAT008) {
    enum class Side { Alive, Forgotten, Silent };
    const auto become = [](TcpPeer& peer, Side side) {
        side == Side::Forgotten ? peer.forget() : side == Side::Silent ? peer.fall_silent() : void();
    };
    for (const TcpState state :
         {TcpState::FinForward, TcpState::FinReverse, TcpState::RstForward, TcpState::RstReverse}) {
        const bool is_clients = state == TcpState::FinForward || state == TcpState::RstForward;
        for (const auto& [own, other] : {std::pair{Side::Forgotten, Side::Alive},
                                         {Side::Silent, Side::Alive},
                                         {Side::Silent, Side::Silent},
                                         {Side::Forgotten, Side::Forgotten},
                                         {Side::Forgotten, Side::Silent}}) {
            const FlowKey inside = open(state);
            const Numbers at = any_numbers(prng);
            TcpPeer client_side(outside(), at.client, at.backend),
                backend_side(inside, at.backend, at.client);
            become(is_clients ? client_side : backend_side, own);
            become(is_clients ? backend_side : client_side, other);
            int seconds = 0;
            for (; gateway.connections() > 0 && seconds < 1'000; ++seconds) {
                gateway.advance_seconds(1);
                gateway.age();
                exchange(client_side, backend_side);
            }
            EXPECT_GE(seconds, 110) << to_string(state);
            EXPECT_LE(seconds, 150) << to_string(state) << ", " << static_cast<int>(own)
                                    << static_cast<int>(other);
        }
    }
}

// In full transfer some of the data is lost, or in flight when the order comes. The data sent by one side is
// not the data received by the other, so a RST with the sender's number is not at the position expected by
// the receiver.
TEST_P(Reset, BothSidesAreResetInMidTransfer_DRAIN005) {
    for (int round = 0; round < 50; ++round) {
        const FlowKey inside = open(TcpState::Established);
        const auto at_client = static_cast<uint32_t>(prng.next()),
                   at_backend = static_cast<uint32_t>(prng.next());
        const auto lost_up = static_cast<uint32_t>(prng.below(30'000)),
                   lost_down = static_cast<uint32_t>(prng.below(30'000));
        TcpPeer client_side(outside(), at_client + lost_up, at_backend),
            backend_side(inside, at_backend + lost_down, at_client);
        order_end();
        gateway.work_off_orders();
        const bool upload = prng.one_in(2);
        std::vector<uint32_t> loses;  // of the first frames: probes, and the RSTs made from their answers
        for (uint32_t n = 0; n < 4; ++n) {
            if (prng.one_in(3)) {
                loses.push_back(n);
            }
        }
        exchange(client_side, backend_side, loses);
        // A side with data continues to send it.
        for (int i = 0; i < 3; ++i) {
            TcpPeer& sender = upload ? client_side : backend_side;
            if (!sender.is_reset()) {
                const Outcome answered = send(sender.send("A", 1'000), upload ? kUp : kCluster);
                ASSERT_EQ(answered.verdict, Verdict::Transmit);
                EXPECT_EQ(answered.egress, upload ? kUp : kCluster)
                    << "data of an ended connection goes nowhere";
                EXPECT_FALSE(sender.receive(answered.frame).has_value());
                exchange(client_side, backend_side);
            }
        }
        gateway.advance_seconds(3);
        gateway.age();
        exchange(client_side, backend_side);
        EXPECT_TRUE(client_side.is_reset());
        EXPECT_TRUE(backend_side.is_reset());
        gateway.advance_seconds(15);
        gateway.age();
    }
}

// A first probe that is acceptable by chance gets no answer. The second probe, by the sweep, is half the
// number range away.
TEST_P(Reset, AProbeThatIsInPlaceByChanceIsRepeatedElsewhere_DRAIN005) {
    const FlowKey inside = open(TcpState::Established);
    TcpPeer client_side(outside(), 0xffff'fff0, 0xffff'ff00),
        backend_side(inside, 0xffff'ff00, 0xffff'fff0);  // both windows include 0
    order_end();
    gateway.work_off_orders();
    std::vector<Outcome> probes = gateway.take_own_segments();
    ASSERT_EQ(probes.size(), 2u);
    for (const Outcome& probe : probes) {
        EXPECT_FALSE((probe.egress == kUp ? client_side : backend_side).receive(probe.frame).has_value())
            << "or this test shows nothing";
    }
    gateway.advance_seconds(1);
    gateway.age();
    exchange(client_side, backend_side);
    EXPECT_TRUE(client_side.is_reset());
    EXPECT_TRUE(backend_side.is_reset());
}

// A probe to one side is enough: its answer gives the other side's position too, or one near it. Here some of
// the client's data never arrived.
TEST_P(Reset, TheOtherSideNeedsNoProbe_DRAIN005) {
    for (const uint32_t lost : {0U, 3'000U}) {
        const FlowKey inside = open(TcpState::Established);
        TcpPeer client_side(outside(), 1'000'000 + lost, 2'000'000'000),
            backend_side(inside, 2'000'000'000, 1'000'000);
        order_end();
        gateway.work_off_orders();
        for (const Outcome& probe : gateway.take_own_segments()) {
            if (probe.egress == kUp) {
                const auto answer = client_side.receive(probe.frame);
                ASSERT_TRUE(answer.has_value());
                const Outcome rst = send(*answer, kUp);
                EXPECT_FALSE(client_side.receive(rst.frame).has_value());
            }
        }
        EXPECT_TRUE(client_side.is_reset());
        exchange(client_side, backend_side);
        EXPECT_TRUE(backend_side.is_reset()) << lost;
        gateway.advance_seconds(15);
        gateway.age();
    }
}

// The client has not been answered: its retransmitted SYN opens a flow to a working endpoint instead of being
// refused.
TEST_P(Reset, AnUnansweredSynMayGoElsewhere_DRAIN004) {
    open(TcpState::SynSent);
    web.backends = {12};
    gateway.publish({web});
    order_end();
    gateway.work_off_orders();
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_TRUE(gateway.take_own_segments().empty());
    const Outcome again = send(bare(outside(), {TcpFlags::kSyn}), kUp);
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(again.frame, parsed).has_value());
    EXPECT_EQ(parsed.key.destination, backend_address(12, GetParam().family));
}

// A client whose connection is already gone may reuse its port at once.
TEST_P(Reset, ASynOpensANewConnection_DRAIN004) {
    const FlowKey before = open(TcpState::Established);
    web.backends = {12};
    gateway.publish({web});
    order_end();
    gateway.work_off_orders();
    const Outcome syn = send(bare(outside(), {TcpFlags::kSyn}), kUp);
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(syn.frame, parsed).has_value());
    EXPECT_EQ(parsed.key.destination, backend_address(12, GetParam().family));
    EXPECT_EQ(gateway.connections(), 1u);
    const Outcome stray = send(bare(before, {TcpFlags::kAck}, 1, 2), kCluster);
    EXPECT_NE(stray.egress, kUp) << "the old backend's segments are nobody's";
}

// Both sides have closed it: its tuple rests as usual (ADR 0009).
TEST_P(Reset, AFinishedConnectionIsLeftAlone) {
    open(TcpState::TimeWait);
    order_end();
    gateway.work_off_orders();
    EXPECT_TRUE(gateway.take_own_segments().empty());
    EXPECT_EQ(gateway.count(Counter::EndedConnections), 0u);
    EXPECT_EQ(gateway.connections(), 1u);
}

// It was closed by a RST that may have been forged: both sides may still have it, so they are probed.
TEST_P(Reset, AConnectionThatARstHasClosedIsResetAllTheSame_DRAIN005) {
    const FlowKey inside = open(TcpState::SynSent);
    ASSERT_EQ(send(bare(inside, {TcpFlags::kRst | TcpFlags::kAck}, 0, 1), kCluster).verdict,
              Verdict::Transmit);
    conn::Connection closed;
    bool is_found = false;
    for (uint32_t w = 0; w < GetParam().workers; ++w) {
        const conn::Table& table = gateway.worker(w).connections;
        for (uint32_t unit = 0; unit < table.high_water() && !is_found; ++unit) {
            is_found = table.read(unit, closed);
        }
    }
    ASSERT_TRUE(is_found);
    ASSERT_EQ(closed.tcp_state(), TcpState::Closed);
    order_end();
    gateway.work_off_orders();
    EXPECT_EQ(gateway.take_own_segments().size(), 2u) << "a probe for each side";
    EXPECT_EQ(gateway.count(Counter::EndedConnections), 1u);
}

// Neither a RST nor a segment with a wrong checksum is ever answered.
TEST_P(Reset, AnswersOnlyWhatMayBeAnswered_REJ002) {
    const FlowKey inside = open(TcpState::Established);
    order_end();
    gateway.work_off_orders();
    gateway.take_own_segments();
    const Outcome rst = send(bare(inside, {TcpFlags::kRst}, 7), kCluster);
    EXPECT_EQ(rst.verdict, Verdict::Transmit);
    EXPECT_EQ(rst.egress, kUp) << "the other side may be waiting for it";
    EXPECT_TRUE(gateway.take_own_segments().empty());
    std::vector<uint8_t> forged = bare(outside(), {TcpFlags::kAck}, 7, 8);
    forged.back() ^= 0xff;
    EXPECT_EQ(send(forged, kUp).reason, DropReason::BadL4Checksum);
    EXPECT_TRUE(gateway.take_own_segments().empty());
}

// The next hop is unresolved when the order comes. It is requested from Linux once for all flows there,
// nothing is held, and the sweep tries again.
TEST_P(Reset, AnUnresolvedNextHopIsAskedForAndProbedLater) {
    const FlowKey inside = open(TcpState::Established);
    gateway.set_unresolved({11});
    order_end();
    gateway.work_off_orders();
    EXPECT_EQ(gateway.take_own_segments().size(), 1u) << "the client's";
    uint32_t asked = 0;
    for (uint32_t w = 0; w < GetParam().workers; ++w) {
        while (const auto request = gateway.worker(w).resolve->pop()) {
            EXPECT_EQ(request->address, inside.source);
            ++asked;
        }
    }
    EXPECT_EQ(asked, 1u);
    gateway.set_unresolved({});
    gateway.advance_seconds(5);
    gateway.age();
    TcpPeer client_side(outside(), 10, 20), backend_side(inside, 20, 10);
    exchange(client_side, backend_side);
    EXPECT_TRUE(client_side.is_reset());
    EXPECT_TRUE(backend_side.is_reset());
}

TEST(ResetLimits, ProbesAndAnswersAreBoundedAndTheOrderIsFinishedAllTheSame) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 8'192});
    const TestService web{.frontends = {{IpAddr::v4(80, 11, 12, 10), 80}}, .backends = {11}};
    gateway.publish({web});
    constexpr uint32_t kFlows = 3 * limits::kResetFlowsBurst;
    std::vector<FlowKey> inside;
    for (uint32_t n = 0; n < kFlows; ++n) {
        const auto builder = [&](const char* flags) {
            return eth()
                .from_mac(kClientMac.to_string())
                .to_mac(kUpMac.to_string())
                .ipv4("10.80.1.2", "80.11.12.10")
                .tcp(static_cast<uint16_t>(1'000 + n), 80, flags)
                .build();
        };
        packet::Parsed parsed;
        ASSERT_TRUE(packet::parse(gateway.send(builder("S")).frame, parsed).has_value());
        inside.push_back(parsed.key.reversed());
        gateway.send(on_the_wire(eth()
                                     .ipv4(inside[n].source.to_string(), inside[n].destination.to_string())
                                     .tcp(inside[n].source_port, inside[n].destination_port, "SA")
                                     .build(),
                                 kCluster),
                     kCluster);
    }
    gateway.order({.backend = gateway.backend_of(web, 11), .frontend = {}, .frontend_port = 0});
    gateway.work_off_orders();
    EXPECT_EQ(gateway.take_own_segments().size(), 2 * limits::kResetFlowsBurst);
    EXPECT_EQ(gateway.orders_done(), 0u);
    for (int ms = 0; ms < 1'000 && gateway.orders_done() == 0; ++ms) {
        gateway.advance_milliseconds(1);
        gateway.work_off_orders();
        EXPECT_LE(gateway.take_own_segments().size(), 2 * (limits::kResetFlowsPerSecond / 1'000 + 1));
    }
    EXPECT_EQ(gateway.orders_done(), 1u);
    EXPECT_EQ(gateway.count(Counter::EndedConnections), kFlows);
    EXPECT_EQ(gateway.count(Counter::ResetProbes), 2 * kFlows);

    // All of them at once, repeatedly, as from senders that ignore RSTs.
    uint64_t answered = 0, limited = 0;
    for (uint32_t n = 0; n < 4 * limits::kResetAnswersBurst; ++n) {
        const FlowKey& key = inside[n % kFlows];
        const Outcome outcome =
            gateway.send(on_the_wire(eth()
                                         .ipv4(key.source.to_string(), key.destination.to_string())
                                         .tcp(key.source_port, key.destination_port, "A")
                                         .build(),
                                     kCluster),
                         kCluster);
        answered += outcome.verdict == Verdict::Transmit ? 1 : 0;
        limited += outcome.verdict == Verdict::Drop && outcome.reason == DropReason::ResetLimited ? 1 : 0;
    }
    EXPECT_EQ(answered, limits::kResetAnswersBurst);
    EXPECT_EQ(limited, 3 * limits::kResetAnswersBurst);
}

}  // namespace reset_test
}  // namespace penstock::test
