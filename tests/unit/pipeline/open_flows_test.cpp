// SPDX-License-Identifier: Apache-2.0
// The counts used by lc, wlc, sed, nq and p2c, compared with the content of the tables, and the resulting
// choices.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "dataplane/conn/tcp_state.hpp"
#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace open_flows_test {

using packet::FlowKey;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

TestService web(lb::SchedulerKind scheduler, std::vector<uint8_t> backends = {11, 12, 13}) {
    return {.frontends = {{kVip, 80}}, .backends = std::move(backends), .scheduler = scheduler};
}
TestService dns(std::vector<uint8_t> backends) {
    return {
        .name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 53}}, .backends = std::move(backends)};
}

FlowKey key_of(std::vector<uint8_t> frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}

std::vector<uint8_t> from_client(uint32_t client, std::string_view flags) {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("198.51.100." + std::to_string(1 + client % 200), "80.11.12.10")
        .tcp(static_cast<uint16_t>(1'024 + client), 80, flags)
        .build();
}
std::vector<uint8_t> query(uint32_t client) {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("198.51.100." + std::to_string(1 + client % 200), "80.11.12.10")
        .udp(static_cast<uint16_t>(1'024 + client), 53)
        .build();
}
// `inside`: the client's packet as it left.
std::vector<uint8_t> from_backend(const FlowKey& inside, std::string_view flags) {
    return eth()
        .to_mac(kClusterMac.to_string())
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, flags)
        .build();
}

using Counts = std::map<uint32_t, int64_t>;

// Open flows by backend, from the content of the tables.
Counts in_tables(VirtualGateway& gateway, uint32_t workers) {
    Counts open;
    for (uint32_t w = 0; w < workers; ++w) {
        const conn::Table& table = gateway.worker(w).connections;
        for (uint32_t unit = 0; unit < table.high_water(); ++unit) {
            conn::Connection connection;
            if (table.read(unit, connection)) {
                open[connection.backend.value] +=
                    !connection.is_tcp() || conn::is_open(connection.tcp_state()) ? 1 : 0;
            }
        }
    }
    std::erase_if(open, [](const auto& entry) { return entry.second == 0; });
    return open;
}
// The same as seen by the schedulers.
Counts in_counters(VirtualGateway& gateway) {
    Counts open;
    for (uint32_t backend = 0; backend < 64; ++backend) {
        if (const auto flows = gateway.worker(0).schedulers.open_flows({backend}); flows != 0) {
            open[backend] = static_cast<int64_t>(flows);
        }
    }
    return open;
}

// Any sequence of events of flows: opened, answered, closed by either side, reset, reopened, timed out,
// evicted from a full table, dropped without a free port; while endpoints and schedulers change.
TEST(OpenFlows, CountersEqualTheTables_SCHED003) {
    constexpr uint32_t kWorkers = 3;
    constexpr uint32_t kClients = 400;
    Prng random;
    // Small enough to fill up, and with few enough ports to run out.
    VirtualGateway gateway(VirtualGateway::Options{
        .workers = kWorkers, .flow_stays_on_queue = true, .connections = 64, .snat_ports = {1'024, 1'215}});
    gateway.publish({web(lb::SchedulerKind::LeastConnection), dns({11, 12})});
    std::map<uint32_t, FlowKey> inside;
    for (int step = 0; step < 12'000; ++step) {
        const auto client = static_cast<uint32_t>(random.below(kClients));
        const WorkerId receiver{static_cast<uint8_t>(client % kWorkers)};
        const auto send = [&](const std::vector<uint8_t>& frame, NicPortId port) {
            return gateway.send(frame, port, receiver);
        };
        switch (random.below(12)) {
            case 0:
            case 1:
            case 2: {
                const Outcome outcome = send(from_client(client, "S"), kUp);
                if (outcome.verdict == Verdict::Transmit) {
                    inside[client] = key_of(outcome.frame);
                }
                break;
            }
            case 3:
                (void)send(from_client(client, "A"), kUp);
                break;
            case 4:
                (void)send(from_client(client, "FA"), kUp);
                break;
            case 5:
                (void)send(from_client(client, random.one_in(2) ? "R" : "FS"), kUp);
                break;
            case 6:
                (void)send(query(client), kUp);
                break;
            case 7:
            case 8:
            case 9:
                if (const auto known = inside.find(client); known != inside.end()) {
                    constexpr const char* kFlags[] = {"SA", "A", "FA", "FA", "R"};
                    (void)send(from_backend(known->second, kFlags[random.below(5)]), kCluster);
                }
                break;
            case 10: {
                // A burst: several are scheduled before the first is in the table.
                std::vector<std::vector<uint8_t>> frames;
                for (uint32_t i = 0; i < 12; ++i) {
                    frames.push_back(from_client(
                        static_cast<uint32_t>(random.below(kClients)) / kWorkers * kWorkers, "S"));
                }
                (void)gateway.send_burst(frames, kUp, {0});
                break;
            }
            default:
                if (random.one_in(4)) {
                    gateway.advance_seconds(random.between(1, random.one_in(20) ? 4'000 : 100));
                    gateway.age();
                }
                if (random.one_in(8)) {  // an order ends an endpoint's flows: UDP is erased, TCP is reset
                    gateway.order({.backend = {static_cast<uint32_t>(random.below(10))}, .frontend = {}});
                    gateway.work_off_orders();
                }
                if (random.one_in(4)) {
                    const lb::SchedulerKind kind =
                        lb::kSchedulerKinds[random.below(lb::kSchedulerKinds.size())];
                    std::vector<uint8_t> backends = {11, 12, 13, 14, 15};
                    backends.resize(random.between(1, 5));
                    gateway.publish({web(kind, backends), dns(backends)});
                }
        }
        if (step % 8 == 0) {
            ASSERT_EQ(in_counters(gateway), in_tables(gateway, kWorkers)) << "after " << step << " steps";
        }
    }
    // A connection behind a FIN or RST is probed twice before it ends, once each time that it is due.
    for (int due = 0; due < 3; ++due) {
        gateway.advance_seconds(200'000);
        gateway.age();
    }
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(in_counters(gateway), Counts{});
    EXPECT_GT(gateway.count(stats::Counter::EvictedConnections), 0u) << "the table was never full";
}

// The entry stays for its TIME-WAIT, but no longer counts.
TEST(OpenFlows, AClosedOneLeavesTheCountWithItsLastPacket_SCHED003) {
    VirtualGateway gateway;
    gateway.publish({web(lb::SchedulerKind::LeastConnection, {11})});
    const FlowKey inside = key_of(gateway.send(from_client(1, "S")).frame);
    EXPECT_EQ(in_counters(gateway), (Counts{{0, 1}})) << "half-open counts";
    (void)gateway.send(from_backend(inside, "SA"), kCluster);
    (void)gateway.send(from_client(1, "A"));
    (void)gateway.send(from_client(1, "FA"));
    EXPECT_EQ(in_counters(gateway), (Counts{{0, 1}})) << "half-closed counts";
    EXPECT_EQ(gateway.send(from_backend(inside, "FA"), kCluster).verdict, Verdict::Transmit);
    EXPECT_EQ(in_counters(gateway), Counts{});
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.send(from_client(1, "R")).verdict, Verdict::Transmit);
    EXPECT_EQ(in_counters(gateway), Counts{}) << "subtracted once";
    (void)gateway.send(from_client(2, "S"));
    EXPECT_EQ(gateway.send(from_client(2, "R")).verdict, Verdict::Transmit);
    EXPECT_EQ(in_counters(gateway), (Counts{{0, 1}}))
        << "the client's RST before any answer ends nothing (tcp_state.hpp)";
}

// 60 SYNs in one burst: each counts for those behind it, although none is in the table yet.
TEST(OpenFlows, LeastConnectionSpreadsABurst_SCHED003) {
    for (const lb::SchedulerKind kind :
         {lb::SchedulerKind::LeastConnection, lb::SchedulerKind::WeightedLeastConnection,
          lb::SchedulerKind::ShortestExpectedDelay, lb::SchedulerKind::NeverQueue}) {
        VirtualGateway gateway;
        gateway.publish({web(kind)});
        std::vector<std::vector<uint8_t>> frames;
        for (uint32_t client = 0; client < 60; ++client) {
            frames.push_back(from_client(client, "S"));
        }
        (void)gateway.send_burst(frames);
        EXPECT_EQ(in_counters(gateway), (Counts{{0, 20}, {1, 20}, {2, 20}})) << lb::to_string(kind);
    }
}

// Flows of other workers count as well.
TEST(OpenFlows, AllWorkersCount_SCHED003) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = 2, .flow_stays_on_queue = true});
    gateway.publish({web(lb::SchedulerKind::LeastConnection, {11, 12})});
    (void)gateway.send(from_client(1, "S"), kUp, {0});
    EXPECT_EQ(key_of(gateway.send(from_client(2, "S"), kUp, {1}).frame).destination, backend_address(12));
    EXPECT_EQ(key_of(gateway.send(from_client(3, "S"), kUp, {1}).frame).destination, backend_address(11))
        << "a tie";
    EXPECT_EQ(key_of(gateway.send(from_client(4, "S"), kUp, {0}).frame).destination, backend_address(12));
}

// A Service changes its scheduler while flows are open: they stay, and the new scheduler counts them.
TEST(Schedulers, SwitchUnderOpenFlows_SCHED001_SCHED003) {
    VirtualGateway gateway;
    gateway.publish({web(lb::SchedulerKind::RoundRobin, {11})});
    std::map<uint32_t, FlowKey> inside;
    for (uint32_t client = 0; client < 6; ++client) {
        inside[client] = key_of(gateway.send(from_client(client, "S")).frame);
        (void)gateway.send(from_backend(inside[client], "SA"), kCluster);
    }
    for (const lb::SchedulerKind kind : lb::kSchedulerKinds) {
        gateway.publish({web(kind, {11, 12})});
        for (const auto& [client, key] : inside) {
            EXPECT_EQ(key_of(gateway.send(from_client(client, "A")).frame), key) << lb::to_string(kind);
        }
    }
    gateway.publish({web(lb::SchedulerKind::LeastConnection, {11, 12})});
    for (uint32_t client = 100; client < 106; ++client) {
        EXPECT_EQ(key_of(gateway.send(from_client(client, "S")).frame).destination, backend_address(12))
            << "six flows behind";
    }
}

}  // namespace open_flows_test
}  // namespace penstock::test
