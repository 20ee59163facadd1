// SPDX-License-Identifier: Apache-2.0
// TCP beyond the plain handshake, old and forged segments on a live connection, and the parts of a segment
// that the gateway must not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <tuple>
#include <vector>

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/wire.hpp"

#include "tests/protocols/one_endpoint.hpp"
#include "tests/support/frame_diff.hpp"
#include "tests/support/prng.hpp"

namespace penstock::test {
namespace tcp_test {

using stats::Counter;
using Bytes = std::vector<uint8_t>;

constexpr uint32_t kManyWorkers = 4;

// Each packet arrives on a randomly chosen queue.
class Tcp : public ThroughOneEndpoint {
 protected:
    TestService web = service_on_both(Protocol::Tcp, 80, 9376, source);
    Prng prng;
    uint16_t port = 0;  // as the endpoint sees it

    void SetUp() override { gateway.publish({web}); }

    [[nodiscard]] PacketBuilder client(const char* flags) const {
        return ends.from_client().tcp(40000, 80, flags);
    }
    [[nodiscard]] PacketBuilder at_client(const char* flags) const {
        return ends.to_client().tcp(80, 40000, flags);
    }
    [[nodiscard]] PacketBuilder endpoint(const char* flags) const {
        return from_endpoint().tcp(9376, port, flags);
    }
    [[nodiscard]] PacketBuilder at_endpoint(const char* flags) const {
        return to_endpoint().tcp(port, 9376, flags);
    }
    Outcome send(const Bytes& frame, NicPortId from) {
        return gateway.send(frame, from, {static_cast<uint8_t>(prng.below(workers))});
    }
    // A segment of the client or the endpoint leaves, changed by nothing except translation.
    void passes_to_endpoint(const PacketBuilder& sent, const PacketBuilder& expected) {
        const Outcome outcome = send(sent.build(), kUp);
        ASSERT_EQ(outcome.verdict, Verdict::Transmit)
            << to_string(outcome.verdict) << ' ' << text_of(outcome.reason).counter;
        EXPECT_TRUE(same_frame(outcome.frame, expected.build()));
    }
    void passes_to_client(const PacketBuilder& sent, const PacketBuilder& expected) {
        const Outcome outcome = send(sent.build(), kCluster);
        ASSERT_EQ(outcome.verdict, Verdict::Transmit)
            << to_string(outcome.verdict) << ' ' << text_of(outcome.reason).counter;
        EXPECT_TRUE(same_frame(outcome.frame, expected.build()));
    }
    void client_says(const char* flags) { passes_to_endpoint(client(flags), at_endpoint(flags)); }
    void endpoint_says(const char* flags) { passes_to_client(endpoint(flags), at_client(flags)); }
    void dropped(const PacketBuilder& sent, NicPortId from, DropReason reason) {
        const Outcome outcome = send(sent.build(), from);
        EXPECT_EQ(outcome.verdict, Verdict::Drop) << to_string(outcome.verdict);
        EXPECT_EQ(text_of(outcome.reason).counter, text_of(reason).counter);
    }
    void begin() {
        const Outcome syn = send(client("S").build(), kUp);
        ASSERT_EQ(syn.verdict, Verdict::Transmit);
        packet::Parsed parsed;
        ASSERT_TRUE(packet::parse(syn.frame, parsed).has_value());
        port = parsed.key.source_port;
    }
    void establish() {
        begin();
        endpoint_says("SA");
        client_says("A");
        ASSERT_EQ(open(), 1);
    }
    // The endpoint's open flows, as least connection counts them.
    int64_t open() {
        int64_t sum = 0;
        const BackendId id = gateway.backend_of(web, 11, ends.family);
        for (uint32_t w = 0; w < workers; ++w) {
            sum += static_cast<int64_t>(gateway.worker(w).counters.backends[id.value].open.read());
        }
        return sum;
    }
    // State of the only connection.
    conn::TcpState state() {
        for (uint32_t w = 0; w < workers; ++w) {
            const conn::Table& table = gateway.worker(w).connections;
            for (uint32_t unit = 0; unit < table.high_water(); ++unit) {
                if (table.is_live(unit)) {
                    return table.at({unit}).tcp_state();
                }
            }
        }
        ADD_FAILURE() << "there is no connection";
        return conn::TcpState::Closed;
    }
    void wait_s(uint64_t seconds) {
        gateway.advance_seconds(seconds);
        gateway.age();
    }
};
INSTANTIATE_TEST_SUITE_P(All, Tcp,
                         testing::Combine(testing::Values(1, 2, kManyWorkers),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep)));

// After a RST its sender stops: a client that has reset a connection acknowledges nothing, and an endpoint
// that has sends nothing. If the client acknowledges data that the endpoint has sent after a RST, neither has
// reset the connection.
TEST_P(Tcp, AConnectionThatLivesComesBackBehindAForgedRst_NAT006) {
    establish();
    for (const char* rst : {"R", "RA"}) {
        client_says(rst);
        EXPECT_EQ(open(), 0);
        endpoint_says("A");
        EXPECT_EQ(open(), 0) << "what the endpoint had under way shows nothing of the client";
        client_says("PA");
        EXPECT_EQ(open(), 1);

        client_says(rst);
        client_says("A");
        EXPECT_EQ(open(), 0) << "anybody can send this, too";
        endpoint_says("PA");
        client_says("A");
        EXPECT_EQ(open(), 1);

        endpoint_says(rst);
        EXPECT_EQ(open(), 0);
        client_says("A");
        EXPECT_EQ(open(), 0);
        endpoint_says("PA");
        EXPECT_EQ(open(), 0);
        client_says("A");
        EXPECT_EQ(open(), 1);
    }
    wait_s(3'600);
    client_says("PA");
    endpoint_says("A");
    EXPECT_EQ(gateway.count(Counter::NewConnections), 1u) << "it was the same connection all the time";
    client_says("FA");
    endpoint_says("FA");
    EXPECT_EQ(open(), 0);
    wait_s(130);
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(open(), 0);
}

TEST_P(Tcp, AForgedRstAloneDoesNotEndASilentConnectionForTwoMinutes_NAT006_NAT008) {
    establish();
    client_says("R");
    wait_s(119);
    client_says("PA");
    endpoint_says("A");
    client_says("PA");
    EXPECT_EQ(open(), 1);
    endpoint_says("R");
    wait_s(119);
    ASSERT_EQ(gateway.connections(), 1u);
    wait_s(7);
    wait_s(7);
    EXPECT_EQ(gateway.connections(), 0u) << "neither side has answered a probe";
    EXPECT_EQ(open(), 0);
}

// A RST is as easily forged during a handshake as later, and a handshake lasts as long as its slowest link.
TEST_P(Tcp, AForgedRstDoesNotEndAHandshake_NAT006) {
    const auto goes_on = [&] {
        client_says("A");
        client_says("PA");
        endpoint_says("A");
        endpoint_says("PA");
        EXPECT_EQ(open(), 1);
        wait_s(3'600);
        client_says("PA");
        endpoint_says("RA");
        client_says("R");
        wait_s(15);
        EXPECT_EQ(gateway.connections(), 0u);
    };
    for (const char* rst : {"R", "RA"}) {
        begin();
        endpoint_says("SA");
        client_says(rst);
        EXPECT_EQ(open(), 0);
        wait_s(30);  // the endpoint retransmits its SYN+ACK late
        goes_on();

        begin();
        endpoint_says("SA");
        client_says(rst);
        client_says("S");  // the client has not received it
        endpoint_says("SA");
        EXPECT_EQ(open(), 1);
        goes_on();

        begin();
        endpoint_says("SA");
        endpoint_says(rst);
        EXPECT_EQ(open(), 0);
        wait_s(30);
        endpoint_says("SA");
        EXPECT_EQ(open(), 1);
        goes_on();

        // The client's ACK has overtaken the endpoint's next segment.
        begin();
        endpoint_says("SA");
        endpoint_says(rst);
        client_says("A");
        client_says("PA");
        endpoint_says("A");
        EXPECT_EQ(open(), 1);
        endpoint_says("PA");
        goes_on();
    }
    EXPECT_EQ(gateway.count(Counter::NewConnections), 8u);
}

// A sender that does not see the endpoint's SYN+ACK can only guess its number. None of its segments in the
// client's name keeps a connection longer than a half-open one, and the client's own ACK establishes it at
// once.
TEST_P(Tcp, OnlyAnAckOfTheSynAckEstablishes_NAT006_NAT008) {
    using enum conn::TcpState;
    constexpr uint32_t kClients = 0xffff'fffe, kEndpoints = 0x7000'0000, kCookie = 0x1234'5678;
    constexpr uint32_t kNext = kEndpoints + 1, kForged = kEndpoints + 3'000;
    enum class From : uint8_t { Client, Endpoint };
    using enum From;
    struct Sent {
        From from;
        const char* flags;
        uint32_t seq, ack;
        conn::TcpState after;
        std::string payload = "";
        bool has_wrong_checksum = false;
    };
    const Sent syn_ack{Endpoint, "SA", kEndpoints, kClients + 1, SynReceived};
    const Sent other_syn_ack{Endpoint, "SA", kCookie, kClients + 1, SynReceived};
    const auto ack = [](uint32_t number, conn::TcpState after) {
        return Sent{Client, "A", kClients + 1, number, after};
    };
    const struct {
        const char* name;
        std::vector<Sent> packets;
    } cases[] = {
        {"an ACK", {syn_ack, ack(kNext, Established)}},
        {"with data", {syn_ack, {Client, "PA", kClients + 1, kNext, Established, "GET /"}}},
        {"with a FIN", {syn_ack, {Client, "FPA", kClients + 1, kNext, FinForward, "GET /"}}},
        {"data, as the ACK was lost before the gateway",
         {syn_ack, {Client, "PA", kClients + 1, kNext, Established, "GET /"}}},
        {"a forged ACK", {syn_ack, ack(kForged, SynReceived)}},
        {"ahead by one, behind by one, none",
         {syn_ack, ack(kNext + 1, SynReceived), ack(kNext - 1, SynReceived), ack(0, SynReceived)}},
        {"a forged ACK that the endpoint drops",
         {syn_ack, {Client, "A", kClients + 1, kForged, SynReceived, "", true}}},
        {"a forged FIN", {syn_ack, {Client, "FA", kClients + 1, kForged, SynReceived}}},
        {"forged data, and another SYN, which the endpoint challenges",
         {syn_ack,
          {Client, "PA", kClients + 1, kForged, SynReceived, "GET /"},
          {Client, "S", kForged, 0, SynReceived},
          {Endpoint, "A", kNext, kClients + 1, SynReceived},
          ack(kForged, SynReceived)}},
        {"a forged ACK, then the client's", {syn_ack, ack(kForged, SynReceived), ack(kNext, Established)}},
        {"a forged ACK, the endpoint's RST, the client's ACK",
         {syn_ack,
          ack(kForged, SynReceived),
          {Endpoint, "R", kForged, 0, RstReverse},
          ack(kNext, Established)}},
        {"a RST and an ACK in the client's name",
         {syn_ack,
          {Client, "R", kClients + 1, 0, RstForward},
          ack(kForged, RstForward),
          {Client, "FA", kClients + 1, kForged, RstForward}}},
        {"and then the client's own",
         {syn_ack, {Client, "R", kForged, 0, RstForward}, ack(kNext, Established)}},
        {"the SYN+ACK again",
         {syn_ack,
          syn_ack,
          ack(kNext, Established),
          {Endpoint, "SA", kEndpoints, kClients + 1, Established}}},
        {"the client's ACK was lost behind the gateway",
         {syn_ack,
          ack(kNext, Established),
          {Endpoint, "SA", kEndpoints, kClients + 1, Established},
          ack(kNext, Established)}},
        {"SYN cookies: the first number", {syn_ack, other_syn_ack, ack(kNext, Established)}},
        {"SYN cookies: the second one", {syn_ack, other_syn_ack, ack(kCookie + 1, Established)}},
        {"SYN cookies, one of them late", {other_syn_ack, syn_ack, other_syn_ack, ack(kNext, Established)}},
        {"SYN cookies and a forged ACK", {syn_ack, other_syn_ack, ack(kForged, SynReceived)}},
        {"fast open: an answer within the SYN+ACK, of which the client has received the SYN",
         {{Endpoint, "SA", kEndpoints, kClients + 5, SynReceived, "220 ready"}, ack(kNext, Established)}},
        {"fast open: all of it",
         {{Endpoint, "SA", kEndpoints, kClients + 5, SynReceived, "220 ready"}, ack(kNext + 9, Established)}},
        {"fast open: more than all of it",
         {{Endpoint, "SA", kEndpoints, kClients + 5, SynReceived, "220 ready"},
          ack(kNext + 10, SynReceived)}},
        {"fast open: an answer behind the SYN+ACK, the first ACK was lost",
         {syn_ack,
          {Endpoint, "PA", kNext, kClients + 5, SynReceived, "220 ready"},
          ack(kNext + 9, Established)}},
        {"simultaneous open",
         {{Endpoint, "S", kEndpoints, 0, SynReceived},
          {Client, "SA", kClients, kNext, Established},
          {Endpoint, "SA", kEndpoints, kClients + 1, Established},
          {Client, "SA", kClients, kNext, Established}}},
        {"simultaneous open in the client's name",
         {{Endpoint, "S", kEndpoints, 0, SynReceived}, {Client, "SA", kClients, kForged, SynReceived}}},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.name);
        begin();
        for (const Sent& sent : c.packets) {
            const auto numbered = [&](PacketBuilder packet) {
                packet.seq(sent.seq).ack(sent.ack).payload(sent.payload);
                return sent.has_wrong_checksum ? packet.l4_checksum(0x1234) : packet;
            };
            if (sent.has_wrong_checksum) {
                EXPECT_EQ(send(numbered(client(sent.flags)).build(), kUp).verdict, Verdict::Transmit)
                    << "its receiver drops it";
            } else if (sent.from == Client) {
                passes_to_endpoint(numbered(client(sent.flags)), numbered(at_endpoint(sent.flags)));
            } else {
                passes_to_client(numbered(endpoint(sent.flags)), numbered(at_client(sent.flags)));
            }
            EXPECT_EQ(conn::to_string(state()), conn::to_string(sent.after))
                << sent.flags << ' ' << sent.seq << ' ' << sent.ack;
            EXPECT_EQ(open(), conn::is_open(sent.after) ? 1 : 0);
        }
        const conn::TcpState last = c.packets.back().after;
        wait_s(59);
        EXPECT_EQ(gateway.connections(), 1u);
        wait_s(5);
        EXPECT_EQ(gateway.connections(), last == SynReceived ? 0u : 1u);
        wait_s(120);
        EXPECT_EQ(gateway.connections(), last == Established ? 1u : 0u);
        wait_s(86'400);
        EXPECT_EQ(gateway.connections(), 0u);
        EXPECT_EQ(open(), 0);
    }
}

// Forged segments do not keep a half-open connection. Its idle timeout ends as without them.
TEST_P(Tcp, ForgedAcksDoNotKeepAHalfOpenConnection_NAT008) {
    begin();
    endpoint_says("SA");
    for (int waited_s = 0; waited_s < 63; waited_s += 21) {
        wait_s(21);
        if (gateway.connections() > 0) {
            passes_to_endpoint(client("A").ack(77), at_endpoint("A").ack(77));
        }
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

// An attacker that has the tuple of a connection that was really reset cannot revive it.
TEST_P(Tcp, AForgedAckDoesNotReviveAConnectionThatWasReset_NAT006) {
    establish();
    endpoint_says("A");
    client_says("R");
    // The endpoint's data in flight, and its answers to forged SYNs.
    passes_to_client(endpoint("PA").seq(5'000).payload("data"), at_client("PA").seq(5'000).payload("data"));
    client_says("S");
    passes_to_client(endpoint("A").seq(5'004), at_client("A").seq(5'004));
    for (const uint32_t guess : {0U, 1U, 4'999U, 5'005U, 0x8000'0000U}) {
        passes_to_endpoint(client("A").ack(guess), at_endpoint("A").ack(guess));
        passes_to_endpoint(client("FA").ack(guess), at_endpoint("FA").ack(guess));
        EXPECT_EQ(open(), 0) << guess;
        EXPECT_EQ(state(), conn::TcpState::RstForward) << guess;
    }
    passes_to_endpoint(client("A").ack(5'004), at_endpoint("A").ack(5'004));
    EXPECT_EQ(open(), 1) << "or this test shows nothing";
}

// A port scanner resets answered connections. No segment follows, and the entry expires.
TEST_P(Tcp, AHandshakeThatIsResetGoesInSilence_NAT006_NAT008) {
    for (const bool by_client : {true, false}) {
        begin();
        endpoint_says("SA");
        by_client ? client_says("R") : endpoint_says("R");
        EXPECT_EQ(open(), 0);
        wait_s(119);
        EXPECT_EQ(gateway.connections(), 1u);
        wait_s(7);  // probed once, and a second time
        wait_s(7);
        EXPECT_EQ(gateway.connections(), 0u);
        EXPECT_EQ(open(), 0);
    }
}

// An off-path attacker that has the tuple can send both, in sequence or not.
TEST_P(Tcp, AForgedRstAndAForgedSynDoNotReplaceAConnectionThatLives_NAT006) {
    establish();
    client_says("R");
    client_says("S");
    endpoint_says("A");  // its challenge ACK (RFC 5961, 4)
    client_says("PA");
    endpoint_says("PA");
    EXPECT_EQ(gateway.count(Counter::NewConnections), 1u);
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(open(), 1);
}

// RFC 5961, 4: the client has restarted, the endpoint has not.
TEST_P(Tcp, ASynOnALivingTupleIsChallengedAndThenServed_NAT006) {
    establish();
    client_says("S");
    endpoint_says("A");
    client_says("R");
    client_says("S");
    endpoint_says("SA");
    client_says("A");
    EXPECT_EQ(open(), 1);
    wait_s(3'600);
    client_says("PA");
}

TEST_P(Tcp, ATupleWhoseEndpointRefusesIsServedAnew_NAT006) {
    establish();
    endpoint_says("R");
    client_says("S");
    endpoint_says("RA");
    EXPECT_EQ(send(client("S").build(), kUp).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.count(Counter::NewConnections), 2u) << "scheduled anew";
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(open(), 1);
}

// An unreachable endpoint refuses nothing. Its client's SYNs must not keep the entry that leads to it.
TEST_P(Tcp, ATupleWhoseEndpointIsSilentIsServedAnew_NAT006_NAT008) {
    establish();
    client_says("R");
    for (uint32_t waited_s = 0; waited_s < 130; waited_s += 26) {
        client_says("S");
        wait_s(30);
    }
    wait_s(7);  // after the second probe
    EXPECT_EQ(send(client("S").build(), kUp).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.count(Counter::NewConnections), 2u) << "scheduled anew";
}

TEST_P(Tcp, ARstDoesNotShortenTimeWait_NAT006_NAT008) {
    establish();
    client_says("FA");
    endpoint_says("FA");
    client_says("A");
    client_says("R");
    endpoint_says("R");
    wait_s(100);
    endpoint_says("FA");  // retransmitted, because the client's ACK was lost
    EXPECT_EQ(gateway.connections(), 1u);
}

// Sequence numbers are the end hosts' matter: a segment of a connection is translated with any number.
// Neither a stray retransmission nor an answer to it therefore shows an endpoint's own address, and the
// receiving host challenges it (RFC 5961).
TEST_P(Tcp, SegmentsFarOutsideTheWindowLeaveFromTheVip_NAT006) {
    establish();
    for (const uint32_t seq : {0u, 1u, 0x7fff'ffffu, 0x8000'0000u, 0xffff'ffffu}) {
        passes_to_client(endpoint("PA").seq(seq).ack(~seq).payload("late"),
                         at_client("PA").seq(seq).ack(~seq).payload("late"));
        passes_to_endpoint(client("PA").seq(seq).ack(~seq).payload("late"),
                           at_endpoint("PA").seq(seq).ack(~seq).payload("late"));
    }
    EXPECT_EQ(open(), 1);
}

TEST_P(Tcp, WhatNoStackSendsInAStateIsDropped_NAT006) {
    begin();
    dropped(client("A"), kUp, DropReason::InvalidTcpFlags);
    dropped(endpoint("FA"), kCluster, DropReason::InvalidTcpFlags);
    endpoint_says("SA");
    client_says("A");
    dropped(endpoint("S"), kCluster, DropReason::InvalidTcpFlags);
    for (const char* flags : {"", "F", "SF", "SR", "RF", "SFRPAU", "FPU", "P"}) {
        dropped(client(flags), kUp, DropReason::InvalidTcpFlags);
        dropped(endpoint(flags), kCluster, DropReason::InvalidTcpFlags);
    }
    client_says("PA");
    EXPECT_EQ(open(), 1);
}

// RFC 9293, 3.5, figure 8: through a gateway only if the client's SYN has opened the flow.
TEST_P(Tcp, SimultaneousOpenPasses_NAT001) {
    begin();
    endpoint_says("S");
    client_says("SA");
    endpoint_says("SA");
    client_says("A");
    endpoint_says("PA");
    EXPECT_EQ(open(), 1);
    wait_s(3'600);
    EXPECT_EQ(gateway.connections(), 1u) << "established";
}

TEST_P(Tcp, DataInTheSynPasses_NAT001) {
    const Bytes cookie{34, 10, 1, 2, 3, 4, 5, 6, 7, 8};  // TCP Fast Open (RFC 7413, 4.1.1)
    const std::string query(900, 'q');
    const Outcome syn = send(client("S").seq(0xffff'fff0).tcp_options(cookie).payload(query).build(), kUp);
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(syn.frame, parsed).has_value());
    port = parsed.key.source_port;
    EXPECT_TRUE(
        same_frame(syn.frame, at_endpoint("S").seq(0xffff'fff0).tcp_options(cookie).payload(query).build()));
    endpoint_says("SA");
    passes_to_client(endpoint("PA").payload("answer"),
                     at_client("PA").payload("answer"));  // before the client's ACK
    passes_to_endpoint(client("A").payload("more"), at_endpoint("A").payload("more"));
    EXPECT_EQ(open(), 1);
}

// RFC 3168: the bits of the IP header and the flags pass in both directions, in the handshake and after it.
TEST_P(Tcp, CongestionNotificationPasses_NAT001) {
    constexpr uint8_t kEct0 = 2, kEct1 = 1, kCe = 3, kDscp = 0xb8;
    const Outcome syn = send(client("SEC").tos(kDscp).build(), kUp);
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(syn.frame, parsed).has_value());
    port = parsed.key.source_port;
    EXPECT_TRUE(same_frame(syn.frame, at_endpoint("SEC").tos(kDscp).build()));
    passes_to_client(endpoint("SAE"), at_client("SAE"));
    for (const uint8_t tos : {kEct0, kEct1, kCe, uint8_t{kDscp | kCe}}) {
        passes_to_endpoint(client("A").tos(tos), at_endpoint("A").tos(tos));
        passes_to_client(endpoint("AE").tos(tos), at_client("AE").tos(tos));
        passes_to_endpoint(client("AC").tos(tos), at_endpoint("AC").tos(tos));
    }
}

// Writes `field` at `offset` of the TCP header, and corrects the checksum.
Bytes with_tcp_bytes(Bytes frame, IpFamily family, size_t offset, std::initializer_list<uint8_t> field) {
    const size_t tcp_at = 14 + (family == IpFamily::V4 ? 20 : 40);
    std::ranges::copy(field, frame.begin() + static_cast<std::ptrdiff_t>(tcp_at + offset));
    const uint16_t sum = reference_l4_checksum(frame);
    frame[tcp_at + offsetof(packet::TcpHeader, checksum)] = static_cast<uint8_t>(sum >> 8);
    frame[tcp_at + offsetof(packet::TcpHeader, checksum) + 1] = static_cast<uint8_t>(sum);
    return frame;
}

TEST_P(Tcp, UrgentPointersAndReservedBitsPassUntouched_NAT001) {
    establish();
    const auto as_it_came = [&](const PacketBuilder& sent, const PacketBuilder& expected, NicPortId from,
                                size_t offset, std::initializer_list<uint8_t> field) {
        const Outcome outcome = send(with_tcp_bytes(sent.build(), ends.family, offset, field), from);
        ASSERT_EQ(outcome.verdict, Verdict::Transmit);
        EXPECT_TRUE(same_frame(outcome.frame, with_tcp_bytes(expected.build(), ends.family, offset, field)));
    };
    constexpr size_t kUrgent = offsetof(packet::TcpHeader, urgent),
                     kReserved = offsetof(packet::TcpHeader, words_and_reserved);
    as_it_came(client("PAU").payload("urgent"), at_endpoint("PAU").payload("urgent"), kUp, kUrgent,
               {0x12, 0x34});
    as_it_came(endpoint("PA").payload("stale"), at_client("PA").payload("stale"), kCluster, kUrgent,
               {0xff, 0xff});
    as_it_came(client("A"), at_endpoint("A"), kUp, kReserved, {0x5f});  // AccECN's bit among them
    as_it_came(endpoint("A"), at_client("A"), kCluster, kReserved, {0x51});
}

TEST_P(Tcp, ZeroWindowsAndTheirProbesPass_NAT001) {
    establish();
    passes_to_client(endpoint("A").seq(100).ack(500).window(0), at_client("A").seq(100).ack(500).window(0));
    for (int probe = 0; probe < 5; ++probe) {
        wait_s(60);
        passes_to_endpoint(client("A").seq(499).ack(100).payload("x"),
                           at_endpoint("A").seq(499).ack(100).payload("x"));
        passes_to_client(endpoint("A").seq(100).ack(500).window(0),
                         at_client("A").seq(100).ack(500).window(0));
    }
    passes_to_client(endpoint("A").seq(100).ack(500).window(65'535),
                     at_client("A").seq(100).ack(500).window(65'535));
}

TEST_P(Tcp, SequenceNumbersWrap_NAT001) {
    establish();
    const std::string data(1'000, 'd');
    for (uint32_t seq = 0xffff'f000; seq != 0xffff'f000 + 10 * 1'000; seq += 1'000) {
        passes_to_endpoint(client("PA").seq(seq).ack(~seq).payload(data),
                           at_endpoint("PA").seq(seq).ack(~seq).payload(data));
        passes_to_client(endpoint("A").seq(~seq).ack(seq + 1'000), at_client("A").seq(~seq).ack(seq + 1'000));
    }
}

// The endpoint and the client verify checksums; the gateway must not correct one. It adds the difference of
// its changes, so a checksum that was wrong by d stays wrong by d.
TEST_P(Tcp, AWrongChecksumLeavesWrongByAsMuch_NAT001) {
    establish();
    const auto difference = [](const Bytes& frame, size_t sum_at) {
        const uint32_t carried = static_cast<uint32_t>(frame[sum_at] << 8 | frame[sum_at + 1]);
        return (carried + 0xffff - reference_l4_checksum(frame)) % 0xffff;
    };
    const size_t sum_at =
        14 + (ends.family == IpFamily::V4 ? 20 : 40) + offsetof(packet::TcpHeader, checksum);
    for (int round = 0; round < 200; ++round) {
        const auto wrong = static_cast<uint16_t>(prng.next());
        const Bytes to_endpoint = client("PA").payload("data").l4_checksum(wrong).build();
        const Bytes to_client = endpoint("PA").payload("data").l4_checksum(wrong).build();
        const Outcome forward = send(to_endpoint, kUp), reverse = send(to_client, kCluster);
        ASSERT_EQ(forward.verdict, Verdict::Transmit);
        ASSERT_EQ(reverse.verdict, Verdict::Transmit);
        EXPECT_EQ(difference(forward.frame, sum_at), difference(to_endpoint, sum_at)) << wrong;
        EXPECT_EQ(difference(reverse.frame, sum_at), difference(to_client, sum_at)) << wrong;
    }
}

// REJ-005: no packet of an unknown connection reaches an endpoint. The answers are counted and limited.
TEST_P(Tcp, MidStreamSegmentsAreAnsweredByRstsUpToTheLimit_REJ003_REJ005) {
    VirtualGateway limited(VirtualGateway::Options{.rejects_per_second = 1, .rejects_burst = 3});
    limited.publish({web});
    uint32_t answered = 0;
    for (const char* flags : {"A", "PA", "FA", "SA", "A", "PA"}) {
        const Outcome outcome =
            limited.send(ends.from_client().tcp(41'000, 80, flags).seq(7).ack(0x1234'5678).build());
        if (outcome.verdict == Verdict::Transmit) {
            ++answered;
            PacketBuilder rst = ends.to_client();
            ends.family == IpFamily::V4 ? rst.id(0).dont_fragment().ttl(64) : rst.hop_limit(64);
            EXPECT_TRUE(same_frame(outcome.frame,
                                   rst.tcp(80, 41'000, "R").seq(0x1234'5678).ack(0).window(0).build()));
        } else {
            EXPECT_EQ(text_of(outcome.reason).counter, text_of(DropReason::RejectLimited).counter);
        }
    }
    EXPECT_EQ(answered, 3u);
    EXPECT_EQ(limited.send(ends.from_client().tcp(41'000, 80, "R").build()).reason,
              DropReason::RejectNotAllowed);
    EXPECT_EQ(limited.connections(), 0u);
}

// The exception of REJ-005: after the failure of the first gateway. The next gateway has other secrets, and
// no state. A hash scheduler chooses the same endpoint on every gateway, and an endpoint that sees the
// client's own address recognises the connection.
TEST_P(Tcp, MidStreamIsPickedUpWhereEveryGatewayChoosesAlike_REJ005) {
    constexpr uint32_t kClients = 10;
    web.backends = {11, 12, 13, 14, 15};
    const auto queue = [&] { return WorkerId{static_cast<uint8_t>(prng.below(workers))}; };
    for (const lb::SchedulerKind scheduler : lb::kSchedulerKinds) {
        const std::string name(lb::to_string(scheduler));
        web.scheduler = scheduler;
        const bool is_hash =
            scheduler == lb::SchedulerKind::SourceHash || scheduler == lb::SchedulerKind::Maglev;
        VirtualGateway first(VirtualGateway::Options{.workers = workers});
        first.publish({web});
        for (const bool is_asked_for : {false, true}) {
            VirtualGateway next(VirtualGateway::Options{.workers = workers, .secrets_from = 7});
            next.set_packets({.picks_up_midstream = is_asked_for});
            next.publish({web});
            const bool is_picked_up = is_asked_for && is_hash && !translated;
            for (uint16_t n = 0; n < kClients; ++n) {
                const auto client_port = static_cast<uint16_t>(40'000 + n);
                const Outcome syn =
                    first.send(ends.from_client().tcp(client_port, 80, "S").build(), kUp, queue());
                const Outcome data = next.send(
                    ends.from_client().tcp(client_port, 80, "PA").payload("GET /").build(), kUp, queue());
                ASSERT_EQ(data.verdict, Verdict::Transmit) << name;
                if (!is_picked_up) {
                    EXPECT_EQ(data.egress, kUp) << name << ": a RST";
                    continue;
                }
                packet::Parsed opened, picked_up;
                ASSERT_TRUE(packet::parse(syn.frame, opened).has_value() &&
                            packet::parse(data.frame, picked_up).has_value());
                EXPECT_EQ(picked_up.key, opened.key) << name;
                const uint8_t host = picked_up.key.destination.bytes()[15];
                EXPECT_TRUE(same_frame(
                    data.frame,
                    ends.to_backend_from_client(host).tcp(client_port, 9376, "PA").payload("GET /").build()));
                const auto answer =
                    ends.from_backend_to_client(host).tcp(9376, client_port, "PA").payload("200 OK").build();
                EXPECT_TRUE(
                    same_frame(next.send(answer, kCluster, queue()).frame,
                               ends.to_client().tcp(80, client_port, "PA").payload("200 OK").build()));
            }
            EXPECT_EQ(next.count(Counter::Rejected), is_picked_up ? 0u : kClients) << name;
            next.advance_seconds(3'600);
            next.age();
            EXPECT_EQ(next.connections(), is_picked_up ? kClients : 0u) << name << ": established";
        }
    }
}

// Only an ACK is picked up, of a client that may open flows, for a Service with an endpoint. The connection
// is half open until that endpoint sends, and the endpoint resets unknown connections.
TEST_P(Tcp, OnlyASegmentInTheMiddleIsPickedUp_REJ005) {
    web.scheduler = lb::SchedulerKind::Maglev;
    gateway.set_packets({.picks_up_midstream = true});
    gateway.publish({web});
    const NicPortId onward = translated ? kUp : kCluster;  // picked up, or RST
    for (const char* flags : {"FA", "FPA", "SA"}) {
        EXPECT_EQ(send(client(flags).build(), kUp).egress, kUp) << flags << ": a RST";
    }
    dropped(client("R"), kUp, DropReason::RejectNotAllowed);
    dropped(client(""), kUp, DropReason::InvalidTcpFlags);
    PacketBuilder last_hop = client("A");
    family == IpFamily::V4 ? last_hop.ttl(1) : last_hop.hop_limit(1);
    EXPECT_EQ(send(last_hop.build(), kUp).egress, kUp);
    EXPECT_EQ(gateway.count(Counter::IcmpErrorsSent), translated ? 0u : 1u);

    TestService guarded = web;
    guarded.source_ranges = {{*Prefix::parse("192.0.2.0/24"), *Prefix::parse("2001:db8:99::/48")}};
    gateway.publish({guarded});
    dropped(client("A"), kUp, DropReason::SourceNotAllowed);
    TestService empty = web;
    empty.backends = {};
    gateway.publish({empty});
    EXPECT_EQ(send(client("A").build(), kUp).egress, kUp) << "a RST";
    EXPECT_EQ(gateway.connections(), 0u);

    gateway.publish({web});
    EXPECT_EQ(send(client("A").build(), kUp).egress, onward);
    EXPECT_EQ(send(client("PA").build(), kUp).egress, onward);
    EXPECT_EQ(gateway.count(Counter::NewConnections), translated ? 0u : 1u);
    if (!translated) {
        EXPECT_EQ(state(), conn::TcpState::PickedUp);
        EXPECT_EQ(open(), 1);
        wait_s(70);
        EXPECT_EQ(gateway.connections(), 0u) << "nobody has answered";
        EXPECT_EQ(open(), 0);
        EXPECT_EQ(send(client("A").build(), kUp).egress, onward);
        EXPECT_EQ(send(ends.from_backend_to_client(11).tcp(9376, 40'000, "R").build(), kCluster).egress, kUp);
        EXPECT_EQ(open(), 0) << "the endpoint does not know it";
    }
}

// A sender that does not see the handshake can have its connection picked up before it is over, and make the
// endpoint send an ACK. The connection is therefore established only if the ACK numbers agree: the client's
// first one is the endpoint's next sequence number, or a later one acknowledges the endpoint's data since
// then.
TEST_P(Tcp, APickedUpConnectionIsEstablishedWhenItsNumbersAgree_REJ005) {
    if (translated) {
        return;  // nothing is picked up
    }
    web.scheduler = lb::SchedulerKind::Maglev;
    gateway.set_packets({.picks_up_midstream = true});
    gateway.publish({web});
    const auto client_sends = [&](const char* flags, uint32_t ack) {
        return send(client(flags).seq(77).ack(ack).build(), kUp).egress;
    };
    const auto endpoint_sends = [&](uint32_t seq, const std::string& payload = "") {
        return send(ends.from_backend_to_client(11)
                        .tcp(9376, 40'000, "A")
                        .seq(seq)
                        .ack(77)
                        .payload(payload)
                        .build(),
                    kCluster)
            .egress;
    };
    const auto end = [&] {
        send(ends.from_backend_to_client(11).tcp(9376, 40'000, "R").build(), kCluster);
        send(client("R").build(), kUp);
        wait_s(15);
        ASSERT_EQ(gateway.connections(), 0u);
    };
    // No data is in flight.
    EXPECT_EQ(client_sends("PA", 1'000), kCluster);
    EXPECT_EQ(state(), conn::TcpState::PickedUp);
    EXPECT_EQ(endpoint_sends(1'000), kUp);
    EXPECT_EQ(state(), conn::TcpState::Established);
    EXPECT_EQ(open(), 1);
    end();
    // In the middle of a transfer.
    EXPECT_EQ(client_sends("A", 1'000), kCluster);
    EXPECT_EQ(endpoint_sends(9'000, "more"), kUp);
    EXPECT_EQ(state(), conn::TcpState::SynReceived);
    EXPECT_EQ(client_sends("A", 2'000), kCluster);
    EXPECT_EQ(state(), conn::TcpState::SynReceived);
    EXPECT_EQ(client_sends("A", 9'004), kCluster);
    EXPECT_EQ(state(), conn::TcpState::Established);
    end();
    // A forged sender.
    EXPECT_EQ(client_sends("A", 1'000), kCluster);
    for (int challenge = 0; challenge < 3; ++challenge) {
        EXPECT_EQ(send(client("S").build(), kUp).egress, kCluster);
        EXPECT_EQ(endpoint_sends(5'000), kUp);
        EXPECT_EQ(client_sends("A", 1'000), kCluster);
        EXPECT_EQ(state(), conn::TcpState::SynReceived) << "challenge " << challenge;
    }
    wait_s(62);
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(open(), 0);
}

// AFF-006: a client with an affinity entry here keeps its endpoint; another one gets the endpoint of its
// address's hash, and keeps it.
TEST_P(Tcp, APickedUpConnectionFollowsItsClientsAffinity_REJ005_AFF006) {
    if (translated) {
        return;
    }
    web.scheduler = lb::SchedulerKind::Maglev;
    web.affinity_timeout_s = 100;
    gateway.set_packets({.picks_up_midstream = true});
    gateway.publish({web});
    ASSERT_EQ(send(client("S").build(), kUp).verdict, Verdict::Transmit);
    web.backends = {12, 13, 14, 15, 16, 11};
    gateway.publish({web});
    for (uint16_t n = 0; n < 10; ++n) {
        const auto client_port = static_cast<uint16_t>(41'000 + n);
        EXPECT_TRUE(same_frame(send(ends.from_client().tcp(client_port, 80, "A").build(), kUp).frame,
                               ends.to_backend_from_client(11).tcp(client_port, 9376, "A").build()));
    }
    EXPECT_EQ(gateway.count(Counter::AffinityHits), 10u);
}

// One client socket on two frontends of one endpoint, and an endpoint that is its own client. A new flow
// there is translated; a mid-stream one cannot be.
TEST_P(Tcp, WhatCouldNotKeepItsSourceIsNotPickedUp_REJ005) {
    web.scheduler = lb::SchedulerKind::SourceHash;
    TestService other = web;
    other.name = "other";
    other.frontends = {{ends.vip, 8080}};
    gateway.set_packets({.picks_up_midstream = true});
    gateway.publish({web, other});
    EXPECT_EQ(send(client("A").build(), kUp).egress, translated ? kUp : kCluster);
    EXPECT_EQ(send(ends.from_client().tcp(40'000, 8080, "A").build(), kUp).egress, kUp) << "a RST";
    const auto own =
        ends.ip(Ends::from_cluster(11), backend_address(11, family), ends.vip, 64).tcp(5'000, 80, "A");
    const Outcome answer = send(own.build(), kCluster);
    EXPECT_TRUE(answer.verdict == Verdict::Transmit && answer.egress == kCluster) << "a RST";
    EXPECT_EQ(gateway.connections(), translated ? 0u : 1u);
    EXPECT_EQ(gateway.count(Counter::Rejected), translated ? 3u : 2u);
}

// An endpoint's late segments of a removed flow. If endpoints see client addresses, Linux would forward these
// segments unchanged, and the client would get an answer from an unknown address.
TEST_P(Tcp, AnEndpointsPacketsOfNoFlowNeverLeaveWithItsOwnAddress_NAT006) {
    const auto to_client = [&](const char* flags) {
        return ends.from_backend_to_client(11).tcp(9376, 40'000, flags);
    };
    const auto to_gateway = [&](const char* flags) { return ends.from_backend(11).tcp(9376, 40'000, flags); };
    for (const char* flags : {"A", "PA", "FA", "SA", "R", "RA", ""}) {
        // If sources are translated, an endpoint sees no client addresses, so its packets to other hosts are
        // its own traffic.
        const Outcome outcome = send(to_client(flags).build(), kCluster);
        EXPECT_EQ(outcome.verdict, translated ? Verdict::Punt : Verdict::Drop) << flags;
        EXPECT_TRUE(translated || outcome.reason == DropReason::StrayReply)
            << text_of(outcome.reason).counter;
        EXPECT_EQ(send(to_gateway(flags).build(), kCluster).verdict, Verdict::Punt)
            << "the host's own address, the host's own business";
    }
    EXPECT_EQ(send(to_client("S").build(), kCluster).verdict, Verdict::Punt)
        << "a connection that the endpoint begins";
    const auto other_port = ends.from_backend_to_client(11).tcp(9377, 40'000, "A").build();
    EXPECT_EQ(send(other_port, kCluster).verdict, Verdict::Punt) << "no endpoint's port";
    const auto other_protocol = ends.from_backend_to_client(11).udp(9376, 40'000).build();
    EXPECT_EQ(send(other_protocol, kCluster).verdict, Verdict::Punt) << "no endpoint's protocol";

    // The endpoint is removed while its last segments are in flight.
    TestService without = web;
    without.backends = {12};
    gateway.publish({without});
    EXPECT_EQ(send(to_client("FA").build(), kCluster).verdict, translated ? Verdict::Punt : Verdict::Drop);
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST_P(Tcp, LateDatagramsOfAnEndpointNeverLeaveWithItsOwnAddress_NAT006) {
    const TestService dns = service_on_both(Protocol::Udp, 53, 5353, source);
    gateway.publish({dns});
    const auto answer = [&](uint16_t to) {
        return ends.from_backend_to_client(11).udp(5353, to).payload("late").build();
    };
    if (translated) {
        EXPECT_EQ(send(answer(5'000), kCluster).verdict, Verdict::Punt);
        return;
    }
    ASSERT_EQ(send(ends.from_client().udp(5'000, 53).payload("query").build(), kUp).verdict,
              Verdict::Transmit);
    EXPECT_EQ(send(answer(5'000), kCluster).verdict, Verdict::Transmit);
    dropped(ends.from_backend_to_client(11).udp(5353, 5'001), kCluster, DropReason::StrayReply);
    wait_s(200);
    dropped(ends.from_backend_to_client(11).udp(5353, 5'000), kCluster, DropReason::StrayReply);
}

}  // namespace tcp_test
}  // namespace penstock::test
