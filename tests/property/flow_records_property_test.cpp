// SPDX-License-Identifier: Apache-2.0
// Random histories of connections: each begin has exactly one end, and the packets and bytes of all
// connections are those of their Services.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/support/fragment_cutter.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace flow_records_property_test {

using packet::FlowKey;
using pipeline::FlowRecord;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");

struct Pair {
    FlowRecord begin;
    uint32_t ends = 0;
};
using Lives = std::map<std::pair<uint8_t, uint32_t>, Pair>;  // by worker and life

class FlowHistory : public testing::Test {
 protected:
    std::vector<TestService> draw_services() {
        std::vector<TestService> services;
        L4Port port = 80;
        for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
            for (const lb::SourceMode source : {lb::SourceMode::Translate, lb::SourceMode::Keep}) {
                TestService& service = services.emplace_back();
                service.name = std::string(to_string(protocol)) + to_string(source);
                service.protocol = protocol;
                service.frontends = {{kVip, port}, {kVip6, port}};
                service.backends = {11, 12, 13};
                service.source = source;
                if (source == lb::SourceMode::Translate && random_.one_in(3)) {
                    service.endpoints_of = random_.one_in(2) ? IpFamily::V4 : IpFamily::V6;
                }
                ++port;
            }
        }
        return services;
    }
    void draw_settings(std::vector<TestService>& services) {
        for (TestService& service : services) {
            service.flow_records = random_.one_in(2)   ? lb::FlowRecords::Default
                                   : random_.one_in(2) ? lb::FlowRecords::On
                                                       : lb::FlowRecords::Off;
        }
    }

    static PacketBuilder framed(const FlowKey& key, NicPortId port) {
        PacketBuilder builder = eth();
        builder.from_mac((port == kUp ? kClientMac : backend_mac(key.source.bytes()[15])).to_string())
            .to_mac((port == kUp ? kUpMac : kClusterMac).to_string());
        return key.source.is_v4() ? builder.ipv4(key.source.to_string(), key.destination.to_string())
                                  : builder.ipv6(key.source.to_string(), key.destination.to_string());
    }
    std::vector<uint8_t> frame_of(const FlowKey& key, NicPortId port, bool opens) {
        PacketBuilder builder = framed(key, port);
        const std::string data(random_.below(40), 'x');
        switch (key.protocol) {
            case Protocol::Tcp: {
                static constexpr const char* kFlags[] = {"A", "SA", "PA", "FA", "R", "S"};
                return builder
                    .tcp(key.source_port, key.destination_port, opens ? "S" : kFlags[random_.below(6)])
                    .seq(static_cast<uint32_t>(random_.below(3) + 1'000))
                    .ack(static_cast<uint32_t>(random_.below(3) + 1'000))
                    .payload(data)
                    .build();
            }
            case Protocol::Udp:
                return builder.udp(key.source_port, key.destination_port).payload(data).build();
            case Protocol::Sctp:
                if (opens) {
                    return builder.sctp(key.source_port, key.destination_port, 0).sctp_init(7).build();
                }
                return builder.sctp(key.source_port, key.destination_port, random_.one_in(2) ? 7 : 9)
                    .chunk(static_cast<uint8_t>(random_.below(16)), {1, 2, 3, 4})
                    .build();
        }
        return {};
    }
    void send(VirtualGateway& gateway, const std::vector<uint8_t>& frame, NicPortId port) {
        const WorkerId receiver{static_cast<uint8_t>(random_.below(gateway.options().workers))};
        const Outcome outcome = gateway.send(frame, port, receiver);
        packet::Parsed parsed;
        if (outcome.verdict == Verdict::Transmit && packet::parse(outcome.frame, parsed) && port == kUp) {
            replies_.push_back(parsed.key.reversed());
        }
    }
    void act(VirtualGateway& gateway, const std::vector<TestService>& services) {
        const TestService& service = services[random_.below(services.size())];
        const auto& [vip, vip_port] = service.frontends[random_.below(2)];
        const auto host = static_cast<uint8_t>(random_.between(2, 5));
        const FlowKey forward{
            vip.is_v4() ? IpAddr::v4(198, 51, 100, host) : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, 1, host}),
            vip,
            static_cast<L4Port>(random_.between(1'024, 1'030)),
            vip_port,
            service.protocol,
            {}};
        if (!replies_.empty() && random_.one_in(2)) {
            return send(gateway, frame_of(replies_[random_.below(replies_.size())], kCluster, false),
                        kCluster);
        }
        std::vector<uint8_t> frame = frame_of(forward, kUp, random_.one_in(3));
        if (service.protocol == Protocol::Udp && random_.one_in(4)) {
            frame = framed(forward, kUp)
                        .udp(forward.source_port, forward.destination_port)
                        .payload(std::string(120, 'y'))
                        .build();
            for (const std::vector<uint8_t>& piece : cut(frame, ++fragmented_, 64)) {
                send(gateway, piece, kUp);
            }
            return;
        }
        send(gateway, frame, kUp);
    }
    static void expire_all(VirtualGateway& gateway) {
        for (int times = 0; times < 4; ++times) {
            gateway.advance_seconds(100'000);
            gateway.age();
            gateway.take_own_segments();
        }
        ASSERT_EQ(gateway.connections(), 0U);
    }
    // Pairs begins and ends; calls `on_end` for each end.
    template <typename OnEnd>
    static void pair(VirtualGateway& gateway, Lives& lives, const OnEnd& on_end) {
        for (const FlowRecord& record : gateway.take_flow_records()) {
            const std::pair life{record.worker.value, record.life};
            if (record.event == FlowRecord::Event::Begin) {
                ASSERT_TRUE(lives.emplace(life, Pair{record, 0}).second) << record.forward.to_string();
                continue;
            }
            on_end(record);
            const auto known = lives.find(life);
            if (known == lives.end()) {
                ASSERT_TRUE(record.is_adopted) << record.forward.to_string();
                continue;
            }
            const FlowRecord& begin = known->second.begin;
            ASSERT_EQ(++known->second.ends, 1U);
            ASSERT_EQ(record.forward, begin.forward);
            ASSERT_EQ(record.reverse, begin.reverse);
            ASSERT_EQ(record.started, begin.started);
            ASSERT_EQ(record.service, begin.service);
            ASSERT_GE(record.last, record.started);
            ASSERT_GE(record.at, record.last);
            ASSERT_GE(record.passed[0].packets, 1U);
        }
    }

    Prng random_;
    std::vector<FlowKey> replies_;
    uint32_t fragmented_ = 0;
};

TEST_F(FlowHistory, EachBeginHasOneEndAndCountsAreThoseOfTheService) {
    uint64_t pairs = 0, packets = 0;
    for (int round = 0; round < 25; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        replies_.clear();
        VirtualGateway::Options options;
        options.workers = static_cast<uint32_t>(random_.between(1, 4));
        options.connections = random_.one_in(2) ? 16 : 600;  // with evictions, or without
        options.services = 16;
        options.flow_records = {.by_default = true};
        VirtualGateway gateway(options);
        std::vector<TestService> services = draw_services();
        gateway.publish(services);
        Lives lives;
        std::map<uint32_t, std::array<pipeline::FlowCount, 2>> sums;
        const auto add = [&](const FlowRecord& record) {
            ASSERT_FALSE(record.is_adopted);
            for (size_t way = 0; way < 2; ++way) {
                sums[record.service.value][way].packets += record.passed[way].packets;
                sums[record.service.value][way].bytes += record.passed[way].bytes;
            }
        };
        for (int steps = 0; steps < 600; ++steps) {
            act(gateway, services);
            if (random_.one_in(30)) {
                gateway.advance_seconds(random_.below(100));
                gateway.age();
            }
            if (random_.one_in(100)) {
                const TestService& service = services[random_.below(services.size())];
                gateway.order(
                    {.backend = gateway.backend_of(service, 11, service.endpoints_of.value_or(IpFamily::V4)),
                     .frontend = {},
                     .frontend_port = 0});
                gateway.work_off_orders();
            }
            gateway.take_own_segments();
        }
        ASSERT_NO_FATAL_FAILURE(expire_all(gateway));
        ASSERT_NO_FATAL_FAILURE(pair(gateway, lives, add));
        for (const auto& [life, known] : lives) {
            ASSERT_EQ(known.ends, 1U) << known.begin.forward.to_string();
        }
        for (uint32_t service = 0; service < services.size(); ++service) {
            std::array<pipeline::FlowCount, 2> counted{};
            for (uint32_t w = 0; w < options.workers; ++w) {
                for (size_t way = 0; way < 2; ++way) {
                    const auto& passed = gateway.worker(w).counters.services[service].passed[way];
                    counted[way].packets += passed.packets.read();
                    counted[way].bytes += passed.bytes.read();
                }
            }
            ASSERT_EQ(sums[service], counted) << services[service].name;
            packets += counted[0].packets + counted[1].packets;
        }
        EXPECT_EQ(lives.size(), gateway.count(stats::Counter::NewConnections));
        EXPECT_EQ(gateway.flow_records_lost(), 0U);
        pairs += lives.size();
    }
    EXPECT_GT(pairs, 1'000U);
    EXPECT_GT(packets, 5'000U);
}

// Settings and sampling decide when a connection begins, and nothing later changes that.
TEST_F(FlowHistory, ChangesOfSettingsSeparateNoBeginFromItsEnd) {
    uint64_t pairs = 0, unrecorded = 0;
    for (int round = 0; round < 15; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        replies_.clear();
        VirtualGateway::Options options;
        options.workers = static_cast<uint32_t>(random_.between(1, 3));
        options.connections = random_.one_in(2) ? 16 : 600;
        options.services = 16;
        options.flow_records = {.by_default = random_.one_in(2),
                                .one_in = static_cast<uint32_t>(random_.between(1, 3))};
        VirtualGateway gateway(options);
        std::vector<TestService> services = draw_services();
        Lives lives;
        for (int steps = 0; steps < 400; ++steps) {
            if (steps % 50 == 0) {
                draw_settings(services);
                gateway.publish(services);
            }
            act(gateway, services);
            gateway.take_own_segments();
        }
        ASSERT_NO_FATAL_FAILURE(expire_all(gateway));
        ASSERT_NO_FATAL_FAILURE(pair(gateway, lives, [](const FlowRecord&) {}));
        for (const auto& [life, known] : lives) {
            ASSERT_EQ(known.ends, 1U) << known.begin.forward.to_string();
        }
        pairs += lives.size();
        unrecorded += gateway.count(stats::Counter::NewConnections) - lives.size();
    }
    EXPECT_GT(pairs, 200U);
    EXPECT_GT(unrecorded, 200U);
}

// The next process writes the ends of the connections that it adopts.
TEST_F(FlowHistory, AdoptedConnectionsHaveTheirEnd) {
    for (int round = 0; round < 10; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        replies_.clear();
        VirtualGateway::Options options;
        options.workers = static_cast<uint32_t>(random_.between(1, 3));
        options.services = 16;
        options.owner_key = HashKey{random_.next(), random_.next()};
        options.flow_records = {.by_default = true, .one_in = static_cast<uint32_t>(random_.between(1, 2))};
        VirtualGateway former(options);
        const std::vector<TestService> services = draw_services();
        former.publish(services);
        for (int steps = 0; steps < 200; ++steps) {
            act(former, services);
            former.advance_milliseconds(random_.below(100));
            former.take_own_segments();
        }
        std::map<std::string, TscTime> open;  // without an end, by their tuples
        for (const FlowRecord& record : former.take_flow_records()) {
            record.event == FlowRecord::Event::Begin
                ? (void)(open[record.forward.to_string()] = record.started)
                : (void)open.erase(record.forward.to_string());
        }
        options.workers = static_cast<uint32_t>(random_.between(1, 3));
        VirtualGateway heir(options);
        heir.publish(services);
        heir.adopt(former.left_to(heir), former);
        EXPECT_TRUE(heir.take_flow_records().empty());
        ASSERT_NO_FATAL_FAILURE(expire_all(heir));
        for (const FlowRecord& record : heir.take_flow_records()) {
            ASSERT_EQ(record.event, FlowRecord::Event::End);
            EXPECT_TRUE(record.is_adopted);
            const auto begun = open.find(record.forward.to_string());
            ASSERT_NE(begun, open.end()) << record.forward.to_string();
            // The entry has the time of its opening to 1/16 s.
            const auto exact = static_cast<double>(begun->second.value);
            EXPECT_NEAR(static_cast<double>(record.started.value), exact, 0.15e9);
            open.erase(begun);
        }
        EXPECT_TRUE(open.empty()) << open.begin()->first;
    }
}

}  // namespace flow_records_property_test
}  // namespace penstock::test
