// SPDX-License-Identifier: Apache-2.0
// Records of the begin and the end of connections: their tuples, counts and reasons, which connections have
// them, and a full queue.
#include "dataplane/pipeline/flow_records.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/unit/pipeline/web_service.hpp"

namespace penstock::test {
namespace flow_records_test {

using pipeline::FlowEnd;
using pipeline::FlowRecord;

packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}
size_t ip_bytes(const std::vector<uint8_t>& frame) {
    return frame.size() - 14;
}
PacketBuilder from_client(const IpAddr& to = kVip) {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("198.51.100.7", to.to_string());
}
PacketBuilder reply_to(const std::vector<uint8_t>& inside) {
    const packet::FlowKey key = key_of(inside);
    return eth()
        .from_mac(backend_mac(key.destination.bytes()[15]).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(key.destination.to_string(), key.source.to_string());
}
TestService dns() {
    return {.name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 53}}, .backends = {11}};
}

VirtualGateway::Options with_records(pipeline::FlowSelection selection = {.by_default = true}) {
    VirtualGateway::Options options;
    options.flow_records = selection;
    return options;
}

class FlowRecords : public testing::Test {
 protected:
    explicit FlowRecords() : gateway(with_records()) { gateway.publish({web(), dns()}); }

    // Opens a TCP connection; `open` then has its SYN as the backend gets it.
    void open_tcp(L4Port port) {
        const std::vector<uint8_t> syn = from_client().tcp(port, 80, "S").seq(100).build();
        open = gateway.send(syn);
        ASSERT_EQ(open.verdict, Verdict::Transmit);
        forward_bytes += ip_bytes(syn);
    }
    void to_backend(L4Port port, const char* flags, uint32_t seq, uint32_t ack,
                    const std::string& data = "") {
        const std::vector<uint8_t> frame =
            from_client().tcp(port, 80, flags).seq(seq).ack(ack).payload(data).build();
        ASSERT_EQ(gateway.send(frame).verdict, Verdict::Transmit) << flags;
        forward_bytes += ip_bytes(frame);
    }
    void to_client(const char* flags, uint32_t seq, uint32_t ack, const std::string& data = "") {
        const packet::FlowKey inside = key_of(open.frame);
        const std::vector<uint8_t> frame = reply_to(open.frame)
                                               .tcp(inside.destination_port, inside.source_port, flags)
                                               .seq(seq)
                                               .ack(ack)
                                               .payload(data)
                                               .build();
        ASSERT_EQ(gateway.send(frame, kCluster).verdict, Verdict::Transmit) << flags;
        reverse_bytes += ip_bytes(frame);
    }
    void shake_hands(L4Port port) {
        open_tcp(port);
        to_client("SA", 500, 101);
        to_backend(port, "A", 101, 501);
    }
    void expire() {
        for (int times = 0; times < 4; ++times) {
            gateway.advance_seconds(100'000);
            gateway.age();
            gateway.take_own_segments();
        }
    }

    VirtualGateway gateway;
    Outcome open;
    size_t forward_bytes = 0, reverse_bytes = 0;
};

TEST_F(FlowRecords, BeginAndEndOfATcpConnectionHaveItsTuplesAndCounts_ANN11) {
    shake_hands(4000);
    to_backend(4000, "PA", 101, 501, "request");
    to_client("PA", 501, 108, "the response");
    gateway.advance_milliseconds(250);
    to_client("FA", 513, 108);
    to_backend(4000, "FA", 108, 514);
    to_client("A", 514, 109);
    expire();
    const std::vector<FlowRecord> records = gateway.take_flow_records();
    ASSERT_EQ(records.size(), 2U);
    const FlowRecord& begin = records[0];
    const FlowRecord& end = records[1];
    EXPECT_EQ(begin.event, FlowRecord::Event::Begin);
    EXPECT_EQ(begin.forward.to_string(), "TCP 198.51.100.7:4000 -> 80.11.12.10:80");
    EXPECT_EQ(begin.reverse, key_of(open.frame).reversed());
    EXPECT_EQ(begin.passed[0], (pipeline::FlowCount{1, 40}));
    EXPECT_EQ(begin.passed[1], pipeline::FlowCount{});
    EXPECT_EQ(begin.at, begin.started);
    EXPECT_FALSE(begin.is_adopted);

    EXPECT_EQ(end.event, FlowRecord::Event::End);
    EXPECT_EQ(end.end, FlowEnd::Closed);
    EXPECT_EQ(end.forward, begin.forward);
    EXPECT_EQ(end.reverse, begin.reverse);
    EXPECT_EQ(end.service, begin.service);
    EXPECT_EQ(end.backend, begin.backend);
    EXPECT_EQ(end.life, begin.life);
    EXPECT_EQ(end.started, begin.started);
    EXPECT_EQ(ticks_between(end.started, end.last), TscRate{}.milliseconds(250));
    EXPECT_EQ(end.passed[0], (pipeline::FlowCount{4, forward_bytes}));
    EXPECT_EQ(end.passed[1], (pipeline::FlowCount{4, reverse_bytes}));
}

TEST_F(FlowRecords, TheReasonOfAnEndIsWhatEndedTheConnection) {
    shake_hands(4001);  // idle
    open_tcp(4002);     // unanswered
    shake_hands(4003);
    to_client("R", 501, 0);
    gateway.send(from_client().udp(4004, 53).build());  // unanswered
    open = gateway.send(from_client().udp(4005, 53).build());
    const packet::FlowKey inside = key_of(open.frame);
    gateway.send(reply_to(open.frame).udp(inside.destination_port, inside.source_port).build(), kCluster);
    expire();
    std::map<std::string, FlowEnd> ends;
    for (const FlowRecord& record : gateway.take_flow_records()) {
        if (record.event == FlowRecord::Event::End) {
            ends.emplace(std::to_string(record.forward.source_port), record.end);
        }
    }
    const std::map<std::string, FlowEnd> expected{{"4001", FlowEnd::Idle},
                                                  {"4002", FlowEnd::Unanswered},
                                                  {"4003", FlowEnd::Reset},
                                                  {"4004", FlowEnd::Unanswered},
                                                  {"4005", FlowEnd::Idle}};
    EXPECT_EQ(ends, expected);
}

TEST_F(FlowRecords, AnOrderEndsIts) {
    gateway.send(from_client().udp(4000, 53).build());
    gateway.order({.backend = gateway.backend_of(dns(), 11), .frontend = {}, .frontend_port = 0});
    gateway.work_off_orders();
    const std::vector<FlowRecord> records = gateway.take_flow_records();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[1].end, FlowEnd::Ended);
}

TEST_F(FlowRecords, AReopenedTupleEndsOneConnectionAndBeginsAnother) {
    shake_hands(4000);
    to_client("FA", 501, 101);
    to_backend(4000, "FA", 101, 502);
    (void)gateway.take_flow_records();
    open_tcp(4000);
    const std::vector<FlowRecord> records = gateway.take_flow_records();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].event, FlowRecord::Event::End);
    EXPECT_EQ(records[0].end, FlowEnd::Closed);  // by its FINs, before the new SYN
    EXPECT_EQ(records[1].event, FlowRecord::Event::Begin);
    EXPECT_NE(records[1].life, records[0].life);
    EXPECT_EQ(records[1].passed[0].packets, 1U);
}

TEST_F(FlowRecords, AFullTableEvicts) {
    VirtualGateway::Options options = with_records();
    options.connections = 64;
    VirtualGateway small(options);
    small.publish({web()});
    for (uint32_t n = 0; n < 200; ++n) {
        ASSERT_EQ(small.send(syn(n).build()).verdict, Verdict::Transmit);
    }
    std::map<FlowRecord::Event, uint64_t> records;
    for (const FlowRecord& record : small.take_flow_records()) {
        ++records[record.event];
        if (record.event == FlowRecord::Event::End) {
            EXPECT_EQ(record.end, FlowEnd::Evicted);
        }
    }
    EXPECT_EQ(records[FlowRecord::Event::Begin], 200U);
    EXPECT_EQ(records[FlowRecord::Event::End], 200 - small.connections());
}

TEST_F(FlowRecords, FragmentsCountForTheirConnection) {
    const std::vector<uint8_t> whole = from_client().udp(4000, 53).payload(std::string(100, 'x')).build();
    size_t bytes = 0;
    for (const std::vector<uint8_t>& piece : cut(whole, 7, 48)) {
        ASSERT_EQ(gateway.send(piece).verdict, Verdict::Transmit);
        bytes += ip_bytes(piece);
    }
    expire();
    const std::vector<FlowRecord> records = gateway.take_flow_records();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[1].passed[0], (pipeline::FlowCount{3, bytes}));
}

// What a Service requests has precedence over the gateway's default.
TEST_F(FlowRecords, AServiceIsSelectedByItsSettingOrTheDefault_ANN11) {
    for (const bool by_default : {false, true}) {
        VirtualGateway some(with_records({.by_default = by_default}));
        std::vector<TestService> services;
        for (const auto& [port, requested] :
             {std::pair<L4Port, lb::FlowRecords>{80, lb::FlowRecords::Default},
              {81, lb::FlowRecords::On},
              {82, lb::FlowRecords::Off}}) {
            TestService& service = services.emplace_back(web());
            service.name = "web" + std::to_string(port);
            service.frontends = {{kVip, port}};
            service.flow_records = requested;
        }
        some.publish(services);
        for (const L4Port port : {L4Port{80}, L4Port{81}, L4Port{82}}) {
            ASSERT_EQ(some.send(from_client().tcp(4000, port, "S").build()).verdict, Verdict::Transmit);
        }
        std::set<L4Port> recorded;
        for (const FlowRecord& record : some.take_flow_records()) {
            recorded.insert(record.forward.destination_port);
        }
        EXPECT_EQ(recorded, (by_default ? std::set<L4Port>{80, 81} : std::set<L4Port>{81}));
    }
}

// The setting at the begin decides about the end.
TEST_F(FlowRecords, AChangedSettingAppliesToNewConnections_ANN11) {
    ASSERT_EQ(gateway.send(from_client().udp(4000, 53).build()).verdict, Verdict::Transmit);
    TestService off = dns();
    off.flow_records = lb::FlowRecords::Off;
    gateway.publish({web(), off});
    ASSERT_EQ(gateway.send(from_client().udp(4001, 53).build()).verdict, Verdict::Transmit);
    gateway.publish({web(), dns()});
    expire();
    const std::vector<FlowRecord> records = gateway.take_flow_records();
    ASSERT_EQ(records.size(), 2U);
    for (const FlowRecord& record : records) {
        EXPECT_EQ(record.forward.source_port, 4000);
    }
}

TEST_F(FlowRecords, SamplingDependsOnTheTupleAndTheKeyOnly) {
    const KeyedMix mix(HashKey{1, 2}), other(HashKey{3, 4});
    const pipeline::FlowSelection selection{.by_default = true, .one_in = 10};
    uint64_t selected = 0, differently = 0;
    for (uint32_t n = 0; n < 20'000; ++n) {
        const packet::FlowKey key{.source = IpAddr::v4(198, 51, 100, 7),
                                  .destination = kVip,
                                  .source_port = static_cast<L4Port>(1'024 + n),
                                  .destination_port = 80,
                                  .protocol = Protocol::Tcp};
        const bool is_selected = selection.has(lb::FlowRecords::Default, key, mix);
        EXPECT_EQ(selection.has(lb::FlowRecords::On, key, mix), is_selected);
        EXPECT_FALSE(selection.has(lb::FlowRecords::Off, key, mix));
        selected += is_selected ? 1 : 0;
        differently += selection.has(lb::FlowRecords::Default, key, other) != is_selected ? 1 : 0;
    }
    // Binomial: 2,000, with a standard deviation of 42.
    EXPECT_NEAR(static_cast<double>(selected), 2'000, 250);
    EXPECT_GT(differently, 1'000U);
}

// A sample must not be the flows of one worker.
TEST_F(FlowRecords, SampledConnectionsBelongToAllWorkers) {
    VirtualGateway::Options options = with_records({.by_default = true, .one_in = 4});
    options.workers = 4;
    VirtualGateway sampled(options);
    sampled.publish({web()});
    for (uint32_t n = 0; n < 2'000; ++n) {
        ASSERT_EQ(sampled.send(syn(n).build()).verdict, Verdict::Transmit);
    }
    std::map<uint8_t, uint64_t> by_worker;
    for (const FlowRecord& record : sampled.take_flow_records()) {
        ++by_worker[record.worker.value];
    }
    ASSERT_EQ(by_worker.size(), 4U);
    for (const auto& [worker, records] : by_worker) {
        EXPECT_GT(records, 60U) << int{worker};  // 125 expected
    }
}

// The worker goes on. Records that were queued stay valid.
TEST_F(FlowRecords, AFullQueueLosesTheNewestAndCountsThem) {
    uint64_t opened = 0;
    while (opened * 2 < limits::kFlowRecordsWaiting + 4'000) {
        for (uint32_t n = 0; n < 2'000; ++n, ++opened) {
            const auto frame = from_client().udp(static_cast<uint16_t>(1'024 + n), 53).build();
            ASSERT_EQ(gateway.send(frame).verdict, Verdict::Transmit);
        }
        expire();
    }
    const std::vector<FlowRecord> records = gateway.take_flow_records();
    EXPECT_EQ(records.size(), limits::kFlowRecordsWaiting);
    EXPECT_EQ(gateway.flow_records_lost(), 2 * opened - limits::kFlowRecordsWaiting);
    // There is room again.
    ASSERT_EQ(gateway.send(from_client().udp(60'000, 53).build()).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.take_flow_records().size(), 1U);
}

}  // namespace flow_records_test
}  // namespace penstock::test
