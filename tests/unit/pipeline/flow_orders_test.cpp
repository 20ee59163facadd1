// SPDX-License-Identifier: Apache-2.0
// Flows that are ended by orders of the control thread, and flows that stay although everything around them
// changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/pipeline/aging.hpp"
#include "dataplane/pipeline/flow_orders.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace flow_orders_test {

using stats::Counter;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip2 = IpAddr::v4(80, 11, 12, 11);

packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}
std::vector<uint8_t> datagram(L4Port from, const IpAddr& to = kVip) {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("10.80.1.2", to.to_string())
        .udp(from, 53)
        .build();
}
std::vector<uint8_t> reply_to(const std::vector<uint8_t>& inside) {
    const packet::FlowKey key = key_of(inside);
    return eth()
        .from_mac(backend_mac(key.destination.bytes()[15]).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(key.destination.to_string(), key.source.to_string())
        .udp(key.destination_port, key.source_port)
        .build();
}
TestService dns(std::vector<uint8_t> backends) {
    return {.name = "dns",
            .protocol = Protocol::Udp,
            .frontends = {{kVip, 53}, {kVip2, 53}},
            .backends = std::move(backends)};
}
uint8_t host_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.verdict, Verdict::Transmit);
    return key_of(outcome.frame).destination.bytes()[15];
}

class FlowOrders : public testing::TestWithParam<uint32_t> {
 protected:
    Outcome send(const std::vector<uint8_t>& frame, NicPortId port = kUp) {
        return gateway.send(frame, port, {static_cast<uint8_t>(prng.below(GetParam()))});
    }
    // In one publication: the endpoint is no longer offered, and its flows are to end.
    void remove_backend(const TestService& left, uint8_t gone) {
        gateway.publish({left});
        gateway.order({.backend = gateway.backend_of(left, gone), .frontend = {}, .frontend_port = 0});
    }
    [[nodiscard]] uint64_t ports_in_use() {
        uint64_t sum = 0;
        for (uint32_t w = 0; w < GetParam(); ++w) {
            sum += gateway.worker(w).snat_ports.in_use();
        }
        return sum;
    }
    [[nodiscard]] uint64_t level_of_service(const std::string& name) {
        uint64_t sum = 0;
        for (uint32_t w = 0; w < GetParam(); ++w) {
            sum += gateway.service_counters(w, name).connections.read();
        }
        return sum;
    }

    Prng prng;
    VirtualGateway gateway{VirtualGateway::Options{.workers = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Workers, FlowOrders, testing::Values(1u, 2u));

// A client that keeps its port and never pauses would keep a flow to a dead endpoint forever: it never
// becomes idle.
TEST_P(FlowOrders, TheNextDatagramGetsALiveEndpoint_UDP001) {
    gateway.publish({dns({11})});
    std::vector<std::vector<uint8_t>> clients;
    for (L4Port port = 1000; port < 1200; ++port) {
        clients.push_back(datagram(port));
        ASSERT_EQ(host_of(send(clients.back())), 11);
    }
    remove_backend(dns({12}), 11);
    for (const auto& client : clients) {
        EXPECT_EQ(host_of(send(client)), 11)
            << "nothing has been worked on yet, which is what the order is for";
    }
    gateway.work_off_orders();
    EXPECT_EQ(gateway.orders_done(), 1u);
    EXPECT_EQ(gateway.count(Counter::EndedConnections), 200u);
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(ports_in_use(), 0u);
    EXPECT_EQ(level_of_service("dns"), 0u);
    for (const auto& client : clients) {
        EXPECT_EQ(host_of(send(client)), 12);
    }
    EXPECT_EQ(gateway.connections(), 200u);
}

// An endpoint is an address and a port: the flows of another Service's endpoint on the same address stay, as
// do those of the other endpoints.
TEST_P(FlowOrders, OthersFlowsStay_UDP001) {
    TestService other = dns({11});
    other.name = "other";
    other.frontends = {{IpAddr::v4(80, 11, 12, 99), 53}};
    gateway.publish({dns({11, 12}), other});
    std::set<std::string> to_gone, to_others;
    std::vector<std::pair<std::vector<uint8_t>, uint8_t>> kept;
    for (L4Port port = 1000; port < 1100; ++port) {
        const uint8_t host = host_of(send(datagram(port)));
        if (host == 12) {
            kept.emplace_back(datagram(port), host);
        }
        const auto to_other = datagram(port, IpAddr::v4(80, 11, 12, 99));
        kept.emplace_back(to_other, host_of(send(to_other)));
    }
    const uint64_t opened = gateway.count(Counter::NewConnections);
    gateway.publish({dns({12}), other});
    gateway.order({.backend = gateway.backend_of(dns({}), 11), .frontend = {}, .frontend_port = 0});
    gateway.work_off_orders();
    for (const auto& [frame, host] : kept) {
        EXPECT_EQ(host_of(send(frame)), host);
    }
    EXPECT_EQ(gateway.count(Counter::NewConnections), opened) << "none of those was opened anew";
    EXPECT_EQ(gateway.connections(), kept.size());
}

TEST_P(FlowOrders, WithoutEndpointsTheNextDatagramIsRefusedAndLeavesNothing_UDP002_UDP003) {
    gateway.publish({dns({11})});
    ASSERT_EQ(host_of(send(datagram(1000))), 11);
    remove_backend(dns({}), 11);
    gateway.work_off_orders();
    for (int i = 0; i < 3; ++i) {
        const Outcome refused = send(datagram(1000));
        ASSERT_EQ(refused.verdict, Verdict::Transmit);
        EXPECT_EQ(refused.egress, kUp);
        EXPECT_EQ(refused.frame[23], 1) << "ICMP";
        EXPECT_EQ(refused.frame[34], 3) << "unreachable";
        EXPECT_EQ(gateway.connections(), 0u);
    }
    EXPECT_EQ(gateway.count(Counter::Rejected), 3u);
    TestService drops = dns({});
    drops.when_empty = lb::EmptyAction::Drop;
    gateway.publish({drops});
    EXPECT_EQ(send(datagram(1000)).verdict, Verdict::Drop);
    EXPECT_EQ(gateway.connections(), 0u);
    gateway.publish({dns({13})});
    EXPECT_EQ(host_of(send(datagram(1000))), 13) << "the very next packet is served";
}

// Whatever else changes, a flow stays where it is unless an order ends it.
TEST_P(FlowOrders, ChangesThatAreNoOrderMoveNoUdpFlow_UDP004_UDP005_DRAIN002) {
    gateway.publish({dns({11, 12, 13})});
    std::vector<std::pair<std::vector<uint8_t>, uint8_t>> flows;
    for (L4Port port = 1000; port < 1060; ++port) {
        flows.emplace_back(datagram(port), host_of(send(datagram(port))));
    }
    const auto expect_unmoved = [&](const char* after) {
        gateway.work_off_orders();
        for (const auto& [frame, host] : flows) {
            EXPECT_EQ(host_of(send(frame)), host) << after;
        }
    };
    gateway.publish({dns({11, 12, 13})});
    expect_unmoved("the same again (a restarted control plane, a relist)");
    gateway.publish({dns({11, 12, 13, 14, 15})});
    expect_unmoved("two endpoints more");
    gateway.publish({dns({12})});
    expect_unmoved(
        "two endpoints take no new flows any more: terminating but serving, or another node's under Local");
    TestService switched = dns({11, 13});
    switched.scheduler = lb::SchedulerKind::Maglev;
    gateway.publish({switched});
    expect_unmoved("another scheduler");
    switched.source = lb::SourceMode::Keep;
    gateway.publish({switched});
    expect_unmoved("Cluster became Local");
    EXPECT_EQ(gateway.count(Counter::NewConnections), flows.size());
    EXPECT_EQ(gateway.count(Counter::EndedConnections), 0u);
}

// The same for TCP, established: scale-up, reorder, readiness, policy, scheduler (DRAIN-001); terminating and
// serving, and back (DRAIN-002); not ready (DRAIN-003). New flows follow each change at once.
TEST_P(FlowOrders, ATcpFlowStaysWithItsEndpoint_DRAIN001_DRAIN002_DRAIN003) {
    const auto web = [](std::vector<uint8_t> backends) {
        return TestService{.frontends = {{kVip, 80}}, .backends = std::move(backends)};
    };
    const auto segment = [](L4Port port, const char* flags) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("10.80.1.2", "80.11.12.10")
            .tcp(port, 80, flags)
            .build();
    };
    gateway.publish({web({11, 12})});
    std::vector<std::pair<L4Port, packet::FlowKey>> flows;
    for (L4Port port = 1000; port < 1040; ++port) {
        const packet::FlowKey inside = key_of(send(segment(port, "S")).frame);
        const auto answer = eth()
                                .from_mac(backend_mac(inside.destination.bytes()[15]).to_string())
                                .to_mac(kClusterMac.to_string())
                                .ipv4(inside.destination.to_string(), inside.source.to_string())
                                .tcp(inside.destination_port, inside.source_port, "SA")
                                .build();
        ASSERT_EQ(send(answer, kCluster).verdict, Verdict::Transmit);
        flows.emplace_back(port, inside);
    }
    L4Port next_port = 2000;
    const auto expect_unmoved = [&](const char* after, std::set<uint8_t> offered) {
        gateway.work_off_orders();
        for (const auto& [port, inside] : flows) {
            EXPECT_EQ(key_of(send(segment(port, "A")).frame), inside) << after;
        }
        for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE(offered.contains(host_of(send(segment(next_port++, "S"))))) << after;
        }
    };
    TestService changed = web({11, 12});
    gateway.publish({web({9 + 4, 12, 11, 14})});
    expect_unmoved("scaled up, in another order", {11, 12, 13, 14});
    gateway.publish({web({12})});
    expect_unmoved("11 is terminating but serving, or not ready", {12});
    gateway.publish({web({11, 12})});
    expect_unmoved("and is back", {11, 12});
    changed.scheduler = lb::SchedulerKind::Maglev;
    changed.source = lb::SourceMode::Keep;
    gateway.publish({changed});
    expect_unmoved("another scheduler and policy", {11, 12});
    gateway.publish({web({13})});
    expect_unmoved("both are gone, and are to be kept until they close", {13});
}

// DRAIN-007: the frontend is gone, its Service has another. UDP here; TCP is covered by reset_test.
TEST_P(FlowOrders, OfAFrontendLeaveTheOtherFrontendsFlows_DRAIN007) {
    gateway.publish({dns({11})});
    for (L4Port port = 1000; port < 1050; ++port) {
        ASSERT_EQ(host_of(send(datagram(port, kVip))), 11);
        ASSERT_EQ(host_of(send(datagram(port, kVip2))), 11);
    }
    gateway.order({.backend = gateway.backend_of(dns({}), 11), .frontend = kVip, .frontend_port = 54});
    gateway.work_off_orders();
    EXPECT_EQ(gateway.connections(), 100u) << "another port of the address is another frontend";
    gateway.order({.backend = gateway.backend_of(dns({}), 11), .frontend = kVip, .frontend_port = 53});
    gateway.work_off_orders();
    EXPECT_EQ(gateway.connections(), 50u);
    const uint64_t opened = gateway.count(Counter::NewConnections);
    for (L4Port port = 1000; port < 1050; ++port) {
        send(datagram(port, kVip2));
    }
    EXPECT_EQ(gateway.count(Counter::NewConnections), opened);
}

// An order is one event. Later snapshots may still hold it, because another worker has not finished it or
// control has not checked yet. It then ends no flow that was opened since.
TEST_P(FlowOrders, AreDoneOnce_UDP005) {
    gateway.publish({dns({11})});
    ASSERT_EQ(host_of(send(datagram(1000))), 11);
    remove_backend(dns({}), 11);
    gateway.work_off_orders();
    gateway.publish({dns({11})});
    ASSERT_EQ(host_of(send(datagram(1000))), 11) << "the endpoint has come back";
    gateway.publish({dns({11})});
    gateway.work_off_orders();
    EXPECT_EQ(gateway.orders_done(), 1u);
    EXPECT_EQ(gateway.count(Counter::EndedConnections), 1u);
    EXPECT_EQ(gateway.connections(), 1u);
}

// A flow that opens while its backend's order is being processed (the endpoint has returned) is not ended.
TEST_P(FlowOrders, LeaveWhatOpensMeanwhile) {
    gateway.publish({dns({11})});
    for (L4Port port = 1000; port < 1000 + 4 * limits::kFlowOrderSlice * GetParam(); ++port) {
        send(datagram(port));
    }
    remove_backend(dns({11}), 11);
    for (uint32_t w = 0; w < GetParam(); ++w) {
        gateway.worker(w).begin_round(&gateway.snapshot(), {2'000'000'000'000});
        EXPECT_EQ(pipeline::work_off_flow_orders(gateway.worker(w)), limits::kFlowOrderSlice);
    }
    std::vector<std::vector<uint8_t>> newcomers;
    for (L4Port port = 30'000; port < 30'100; ++port) {
        newcomers.push_back(datagram(port));
        send(newcomers.back());
    }
    const uint64_t opened = gateway.count(Counter::NewConnections);
    gateway.work_off_orders();
    EXPECT_EQ(gateway.connections(), newcomers.size());
    for (const auto& frame : newcomers) {
        EXPECT_EQ(host_of(send(frame)), 11);
    }
    EXPECT_EQ(gateway.count(Counter::NewConnections), opened);
}

// However much work there is, a round visits no more than a slice, including orders for backends without
// flows. Flows that end by themselves between two slices do not disturb the walk.
TEST_P(FlowOrders, AreWorkedOffInBoundedSlices) {
    gateway.publish({dns({11})});
    std::vector<std::vector<uint8_t>> answered;
    for (L4Port port = 1000; port < 2000; ++port) {
        const Outcome first = send(datagram(port));
        if (port % 2 == 0) {
            send(reply_to(first.frame), kCluster);
        }
    }
    gateway.advance_seconds(3);
    for (L4Port port = 1000; port < 2000; port += 2) {
        send(datagram(port));  // long-lived: times out after 120 s, the others after 30 s
    }
    gateway.publish({dns({12})});
    for (uint8_t host = 100; host < 200; ++host) {
        gateway.order({.backend = gateway.backend_of(dns({}), host), .frontend = {}, .frontend_port = 0});
    }
    gateway.order({.backend = gateway.backend_of(dns({}), 11), .frontend = {}, .frontend_port = 0});
    uint64_t slices = 0;
    gateway.advance_seconds(35);
    for (uint32_t w = 0; w < GetParam(); ++w) {
        pipeline::WorkerContext& worker = gateway.worker(w);
        const uint32_t before = worker.connections.size();
        worker.begin_round(&gateway.snapshot(), {1'038'000'000'000});
        for (uint32_t looked_at = 1; looked_at > 0; ++slices) {
            looked_at = pipeline::work_off_flow_orders(worker);
            EXPECT_LE(looked_at, limits::kFlowOrderSlice);
            pipeline::age_connections(worker, 40);
        }
        EXPECT_GT(before, 0u);
        EXPECT_FALSE(worker.flow_orders.is_waiting);
    }
    EXPECT_GE(slices * limits::kFlowOrderSlice, 100u + 500u);
    EXPECT_EQ(gateway.orders_done(), 101u);
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(ports_in_use(), 0u);
    EXPECT_EQ(level_of_service("dns"), 0u);
}

// Control removes orders that all workers have finished; the numbers continue. A gateway that starts later
// than its numbering has no orders to catch up with.
TEST_P(FlowOrders, AreNumberedOverSnapshots) {
    config::Snapshot snapshot = gateway.snapshot();
    auto later = std::make_shared<conn::FlowOrders>();
    later->first = 42;
    later->orders = {{.backend = {7}, .frontend = {}, .frontend_port = 0}};
    snapshot.flow_orders = later;
    for (uint32_t w = 0; w < GetParam(); ++w) {
        gateway.worker(w).begin_round(&snapshot, {1'000'000'000'001});
        pipeline::work_off_flow_orders(gateway.worker(w));
    }
    EXPECT_EQ(gateway.orders_done(), 42u);
}

// ANN-03 through the whole path: an established flow has the idle time of its Service, either direction
// restarts it, and it applies to flows that were open before the Service set it.
TEST_P(FlowOrders, IdleTimeIsTheServicesOwn_NAT008) {
    gateway.publish({dns({11})});
    const Outcome first = send(datagram(1000));
    send(reply_to(first.frame), kCluster);
    gateway.set_idle_limit(dns({}), 300);
    gateway.advance_seconds(290);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 1u) << "beyond the default of 120 s";
    send(reply_to(first.frame), kCluster);
    gateway.advance_seconds(290);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 1u) << "the reply started it anew";
    gateway.set_idle_limit(dns({}), 60);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
}

}  // namespace flow_orders_test
}  // namespace penstock::test
