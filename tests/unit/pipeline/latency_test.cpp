// SPDX-License-Identifier: Apache-2.0
// Connect and first-byte times of TCP connections: when each begins and ends, and what ends it unmeasured.
#include "dataplane/pipeline/latency.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/copies/store.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/pipeline/counted_stages.hpp"
#include "tests/unit/pipeline/web_service.hpp"

namespace penstock::test {
namespace latency_test {

constexpr uint64_t kMs = 1'000'000;  // ticks: one is 1 ns

packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}
TestService dns() {
    return {.name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 53}}, .backends = {11}};
}
VirtualGateway::Options measured(uint32_t workers = 1) {
    VirtualGateway::Options options;
    options.latencies = true;
    options.workers = workers;
    return options;
}

// A histogram as the number of its values and their sum in milliseconds. The error of a value is below 8 ns.
struct Sum {
    uint64_t values = 0;
    double ms = 0;
};
Sum sum_of(const stats::LatencyHistogram& histogram) {
    Sum sum{.ms = static_cast<double>(histogram.ticks.read()) / kMs};
    for (const stats::Tally& bucket : histogram.buckets) {
        sum.values += bucket.read();
    }
    return sum;
}

// From the endpoint. `inside`: the tuple of the packet that it received.
std::vector<uint8_t> answer_to(const packet::FlowKey& inside, const char* flags, uint32_t seq,
                               const std::string& data = "") {
    return eth()
        .from_mac(backend_mac(11).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, flags)
        .seq(seq)
        .ack(101)
        .payload(data)
        .build();
}

class Latency : public testing::Test {
 protected:
    explicit Latency(const VirtualGateway::Options& options = measured()) : gateway(options) {
        gateway.publish({web(), dns()});
    }

    void syn(L4Port port = 4000) {
        open = gateway.send(client(port, "S").seq(100).build());
        ASSERT_EQ(open.verdict, Verdict::Transmit);
    }
    void to_endpoint(const char* flags, uint32_t ack, const std::string& data = "", L4Port port = 4000) {
        ASSERT_EQ(gateway.send(client(port, flags).seq(101).ack(ack).payload(data).build()).verdict,
                  Verdict::Transmit)
            << flags;
    }
    void to_client(const char* flags, const std::string& data = "") {
        const uint32_t seq = std::string(flags).find('S') == std::string::npos ? 501 : 500;
        ASSERT_EQ(gateway.send(answer_to(key_of(open.frame), flags, seq, data), kCluster).verdict,
                  Verdict::Transmit)
            << flags;
    }
    // SYN, SYN-ACK after 1 ms, ACK after 20 ms more.
    void shake_hands() {
        syn();
        gateway.advance_milliseconds(1);
        to_client("SA");
        gateway.advance_milliseconds(20);
        to_endpoint("A", 501);
    }
    static PacketBuilder client(L4Port port, const char* flags) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("198.51.100.7", kVip.to_string())
            .tcp(port, 80, flags);
    }
    // Of service 0, which is web, and its backend. Both have the same values.
    void expect(stats::LatencyHistogram stats::LatencyCounters::* which, uint64_t values, double ms) {
        const pipeline::LatencyMeter& meter = *gateway.worker(0).latency;
        const BackendId backend = gateway.backend_of(web(), 11);
        for (const stats::LatencyCounters* row : {&meter.services[0], &meter.backends[backend.value]}) {
            const Sum sum = sum_of(row->*which);
            EXPECT_EQ(sum.values, values);
            EXPECT_NEAR(sum.ms, ms, 1e-4);
        }
    }
    void expect_connects(uint64_t values, double ms) { expect(&stats::LatencyCounters::connect, values, ms); }
    void expect_first_bytes(uint64_t values, double ms) {
        expect(&stats::LatencyCounters::first_byte, values, ms);
    }

    VirtualGateway gateway;
    Outcome open;
};

TEST_F(Latency, ConnectTime_IsFromTheSynToTheSynAck) {
    syn();
    gateway.advance_milliseconds(3);
    expect_connects(0, 0);
    to_client("SA");
    expect_connects(1, 3);
    // (2.5 ms, 5 ms]
    EXPECT_EQ(gateway.worker(0).latency->services[0].connect.buckets[5].read(), 1U);
    expect_first_bytes(0, 0);
}

TEST_F(Latency, ConnectTime_BeginsWithTheFirstSyn) {
    syn();
    gateway.advance_milliseconds(1'000);
    to_endpoint("S", 0);
    gateway.advance_milliseconds(2);
    to_client("SA");
    expect_connects(1, 1'002);
}

TEST_F(Latency, ConnectTime_ARetransmittedSynAckCountsOnce) {
    syn();
    gateway.advance_milliseconds(3);
    to_client("SA");
    gateway.advance_milliseconds(1'000);
    to_client("SA");
    expect_connects(1, 3);
}

// A challenge ACK of a former connection on the tuple is no answer to the SYN.
TEST_F(Latency, ConnectTime_AnAckOfTheEndpointIsNoSynAck) {
    syn();
    gateway.advance_milliseconds(3);
    to_client("A");
    expect_connects(0, 0);
}

TEST_F(Latency, FirstByte_IsFromTheFirstRequestToTheFirstResponse) {
    shake_hands();
    gateway.advance_milliseconds(500);
    to_endpoint("PA", 501, "request");
    gateway.advance_milliseconds(4);
    to_endpoint("PA", 501, "request");  // retransmitted
    gateway.advance_milliseconds(3);
    to_client("A");
    expect_first_bytes(0, 0);
    to_client("PA", "response");
    expect_first_bytes(1, 7);
    gateway.advance_milliseconds(9);
    to_endpoint("PA", 509, "second request");
    gateway.advance_milliseconds(9);
    to_client("PA", "second response");
    expect_first_bytes(1, 7);
    expect_connects(1, 1);
}

TEST_F(Latency, FirstByte_ARequestWithTheAckOfTheHandshakeBeginsIt) {
    syn();
    to_client("SA");
    gateway.advance_milliseconds(20);
    to_endpoint("PA", 501, "request");
    gateway.advance_milliseconds(7);
    to_client("PA", "response");
    expect_first_bytes(1, 7);
}

// As in SMTP, SSH and MySQL.
TEST_F(Latency, FirstByte_OfAnEndpointThatSpeaksFirst_IsFromTheEndOfTheHandshake) {
    shake_hands();
    gateway.advance_milliseconds(4);
    to_endpoint("A", 501);  // a keepalive
    gateway.advance_milliseconds(2);
    to_client("PA", "220 ready");
    expect_first_bytes(1, 6);
}

TEST_F(Latency, FirstByte_BeforeTheEndOfTheHandshake_IsFromTheSynAck) {
    syn();
    gateway.advance_milliseconds(1);
    to_client("SA");
    gateway.advance_milliseconds(2);
    to_client("PA", "220 ready");
    expect_first_bytes(1, 2);
}

// A sender that sees none of the endpoint's segments cannot begin the measurement.
TEST_F(Latency, FirstByte_AnUnverifiedAckDoesNotBeginIt) {
    syn();
    to_client("SA");
    gateway.advance_milliseconds(5);
    to_endpoint("PA", 77'777, "forged");
    gateway.advance_milliseconds(5);
    to_endpoint("A", 501);
    gateway.advance_milliseconds(4);
    to_client("PA", "response");
    expect_first_bytes(1, 4);
}

TEST_F(Latency, FirstByte_WithAFinCounts_AFinAloneDoesNot) {
    shake_hands();
    gateway.advance_milliseconds(2);
    to_client("FA", "bye");
    expect_first_bytes(1, 2);

    syn(4001);
    to_client("SA");
    to_endpoint("A", 501, "", 4001);
    to_client("FA");
    to_client("A", "behind the FIN");
    expect_first_bytes(1, 2);
}

TEST_F(Latency, FirstByte_InTheSynAckIsNotMeasured) {
    syn();
    gateway.advance_milliseconds(3);
    to_client("SA", "early");
    to_endpoint("A", 506);
    gateway.advance_milliseconds(3);
    to_client("PA", "more");
    expect_connects(1, 3);
    expect_first_bytes(0, 0);
}

TEST_F(Latency, ARefusedConnectionIsNotMeasured_TheNextOneOnItsTupleIs) {
    syn();
    gateway.advance_milliseconds(3);
    to_client("RA");
    gateway.advance_milliseconds(100);
    syn();
    gateway.advance_milliseconds(2);
    to_client("SA");
    expect_connects(1, 2);
}

TEST_F(Latency, AResetEndsTheMeasurement) {
    shake_hands();
    to_endpoint("PA", 501, "request");
    to_endpoint("R", 501);
    gateway.advance_milliseconds(2);
    to_client("PA", "response");
    expect_first_bytes(0, 0);
}

// The place of a connection in the table is used again.
TEST_F(Latency, AnUnansweredConnectionLeavesNothingToTheNext) {
    const auto expire = [&] {
        for (int times = 0; times < 4; ++times) {
            gateway.advance_seconds(100'000);
            gateway.age();
        }
        ASSERT_EQ(gateway.connections(), 0U);
    };
    syn();
    expire();
    const std::vector<uint8_t> query = eth()
                                           .from_mac(kClientMac.to_string())
                                           .to_mac(kUpMac.to_string())
                                           .ipv4("198.51.100.7", kVip.to_string())
                                           .udp(4000, 53)
                                           .build();
    ASSERT_EQ(gateway.send(query).verdict, Verdict::Transmit);
    const pipeline::LatencyMeter& meter = *gateway.worker(0).latency;
    for (const pipeline::LatencyWait wait : meter.waits) {
        EXPECT_TRUE(wait.is_none());
    }
    expire();
    syn();
    gateway.advance_milliseconds(3);
    to_client("SA");
    expect_connects(1, 3);
}

TEST_F(Latency, SynsOfOneBurstBeginOneMeasurement) {
    const std::vector<uint8_t> frame = client(4000, "S").seq(100).build();
    const std::vector<Outcome> outcomes = gateway.send_burst({frame, frame});
    open = outcomes[0];
    gateway.advance_milliseconds(3);
    to_client("SA");
    expect_connects(1, 3);
}

TEST_F(Latency, AReopenedTupleIsMeasuredAnew) {
    shake_hands();
    to_client("FA");
    to_endpoint("FA", 502);
    gateway.advance_milliseconds(500);
    syn();
    gateway.advance_milliseconds(4);
    to_client("SA");
    expect_connects(2, 5);
}

TEST_F(Latency, AFullTableGivesPlacesWithoutTheirWaits) {
    VirtualGateway::Options options = measured();
    options.connections = 64;
    VirtualGateway small(options);
    small.publish({web()});
    for (uint32_t n = 0; n < 200; ++n) {
        ASSERT_EQ(small.send(test::syn(n).build()).verdict, Verdict::Transmit);
        small.advance_milliseconds(1);
    }
    const pipeline::WorkerContext& context = small.worker(0);
    const TscTime now = context.now;
    uint64_t waiting = 0;
    for (uint32_t unit = 0; unit < context.connections.capacity(); ++unit) {
        if (context.connections.is_live(unit)) {
            ++waiting;
            const pipeline::LatencyWait wait = context.latency->waits[unit];
            ASSERT_EQ(wait.phase(), pipeline::LatencyWait::Phase::Connect);
            // Evicted in the order of their age, more or less: no wait is of one of the first SYNs.
            EXPECT_LT(ticks_between(wait.since(), now).value, 190 * kMs) << unit;
        }
    }
    EXPECT_EQ(waiting, small.connections());
}

TEST_F(Latency, TheOwnerMeasures_WhicheverWorkerReceives) {
    constexpr uint32_t kWorkers = 4;
    VirtualGateway several(measured(kWorkers));
    several.publish({web()});
    uint64_t handoffs = 0;
    for (uint32_t n = 0; n < 32; ++n) {
        const Outcome opened = several.send(test::syn(n).build(), kUp, {static_cast<uint8_t>(n % kWorkers)});
        ASSERT_EQ(opened.verdict, Verdict::Transmit);
        handoffs += opened.handoffs;
        several.advance_milliseconds(2);
        const packet::FlowKey inside = key_of(opened.frame);
        const Outcome answered =
            several.send(eth()
                             .from_mac(backend_mac(11).to_string())
                             .to_mac(kClusterMac.to_string())
                             .ipv4(inside.destination.to_string(), inside.source.to_string())
                             .tcp(inside.destination_port, inside.source_port, "SA")
                             .seq(500)
                             .ack(1)
                             .build(),
                         kCluster, {static_cast<uint8_t>(n / kWorkers % kWorkers)});
        ASSERT_EQ(answered.verdict, Verdict::Transmit);
        handoffs += answered.handoffs;
    }
    EXPECT_GT(handoffs, 0U);
    Sum all;
    for (uint32_t w = 0; w < kWorkers; ++w) {
        const Sum sum = sum_of(several.worker(w).latency->services[0].connect);
        all.values += sum.values;
        all.ms += sum.ms;
    }
    EXPECT_EQ(all.values, 32U);
    EXPECT_NEAR(all.ms, 64, 1e-3);
}

// The successor of a process does not know when the SYN came.
TEST_F(Latency, AdoptedConnectionsAreNotMeasured) {
    syn();
    VirtualGateway::Options options = measured();
    options.owner_key = gateway.owner_key();
    VirtualGateway heir(options);
    heir.publish({web(), dns()});
    ASSERT_EQ(heir.adopt(gateway.left_to(heir), gateway).all_adopted(), 1U);
    const packet::FlowKey inside = key_of(open.frame);
    const auto from_endpoint = [&](const char* flags, uint32_t seq, const std::string& data) {
        return heir.send(answer_to(inside, flags, seq, data), kCluster).verdict;
    };
    ASSERT_EQ(from_endpoint("SA", 500, ""), Verdict::Transmit);
    ASSERT_EQ(heir.send(client(4000, "A").seq(101).ack(501).build()).verdict, Verdict::Transmit);
    ASSERT_EQ(from_endpoint("PA", 501, "response"), Verdict::Transmit);
    const stats::LatencyCounters& row = heir.worker(0).latency->services[0];
    EXPECT_EQ(sum_of(row.connect).values, 0U);
    EXPECT_EQ(sum_of(row.first_byte).values, 0U);
}

// In the place of a connection that was waiting for its endpoint.
TEST_F(Latency, ConnectionsThatWereTakenOverAreNotMeasured) {
    syn();
    pipeline::WorkerContext& ctx = gateway.worker(0);
    const auto store = *copies::Store::create(16, HashKey::random());
    ASSERT_TRUE(store->put(ctx.connections.connection({0})).is_set());
    pipeline::close_connection(ctx, {0}, pipeline::Removal::Expired);
    ctx.copies = store.get();
    const packet::FlowKey inside = key_of(open.frame);
    ASSERT_EQ(gateway.send(answer_to(inside, "SA", 500, ""), kCluster).verdict, Verdict::Transmit);
    ASSERT_EQ(gateway.count(stats::Counter::ConnectionsTakenOver), 1U);
    EXPECT_EQ(sum_of(ctx.latency->services[0].connect).values, 0U);
}

class LatencyWithFlowRecords : public Latency {
 protected:
    LatencyWithFlowRecords()
        : Latency([] {
              VirtualGateway::Options options = measured();
              options.flow_records = pipeline::FlowSelection{.by_default = true};
              return options;
          }()) {}
};

TEST_F(LatencyWithFlowRecords, BothCount) {
    shake_hands();
    to_client("RA");
    for (int times = 0; times < 4; ++times) {
        gateway.advance_seconds(100'000);
        gateway.age();
    }
    expect_connects(1, 1);
    const std::vector<pipeline::FlowRecord> records = gateway.take_flow_records();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[1].passed[0].packets, 2U);
    EXPECT_EQ(records[1].passed[1].packets, 2U);
}

// Off costs nothing, because the worker runs the functions that have no trace of it.
TEST(LatencyOff, RunsThePlainStages) {
    VirtualGateway gateway;
    gateway.publish({web()});
    EXPECT_EQ(gateway.worker(0).latency, nullptr);
    EXPECT_EQ(pipeline::stages_of(gateway.worker(0)), &pipeline::run_stages);
    VirtualGateway on(measured());
    EXPECT_NE(pipeline::stages_of(on.worker(0)), &pipeline::run_stages);
}

}  // namespace latency_test
}  // namespace penstock::test
