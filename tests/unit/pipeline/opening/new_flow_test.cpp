// SPDX-License-Identifier: Apache-2.0
// New flows when the SNAT ports or the connection table are full.
#include "dataplane/pipeline/opening/new_flow.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"
#include "tests/unit/pipeline/web_service.hpp"

namespace penstock::test {
namespace new_flow_test {

// NAT-002: if every port towards an endpoint is taken, new flows are dropped under their reason, and live
// tuples are never reused.
TEST(SnatPorts, ExhaustionIsNamedAndSurvived_NAT002) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {2000, 2099}});
    gateway.publish({web()});
    for (uint32_t n = 0; n < 100; ++n) {
        ASSERT_EQ(gateway.send(syn(n).build()).verdict, Verdict::Transmit) << n;
    }
    gateway.establish_all();
    const Outcome over = gateway.send(syn(100).build());
    EXPECT_EQ(over.verdict, Verdict::Drop);
    EXPECT_EQ(over.reason, DropReason::SnatPortsExhausted);
    EXPECT_EQ(gateway.service_counters(0, "web").dropped.read(), 1u);
    EXPECT_EQ(gateway.send(syn(5).build()).verdict, Verdict::Transmit) << "those that live go on";
    TestService two = web();
    two.backends = {11, 12};
    gateway.publish({two});
    uint32_t served = 0;
    for (uint32_t n = 200; n < 240; ++n) {
        served += gateway.send(syn(n).build()).verdict == Verdict::Transmit ? 1 : 0;
    }
    EXPECT_EQ(served, 20u) << "another endpoint has all its ports; rr sends it every second flow";
    gateway.advance_seconds(86'402);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(gateway.send(syn(300).build()).verdict, Verdict::Transmit) << "ports come back";
}

// The host's own ephemeral range and declared NodePorts are left to Linux on an address that both use.
TEST(SnatPorts, LeaveTheHostItsOwn) {
    VirtualGateway gateway(
        VirtualGateway::Options{.snat_ports = {32'700, 32'800}, .snat_shared_with_host = true});
    TestService service = web();
    service.node_ports = {32'710};
    gateway.publish({service});
    std::set<L4Port> taken;
    for (uint32_t n = 0; n < 200; ++n) {
        const Outcome outcome = gateway.send(syn(n).build());
        if (outcome.verdict == Verdict::Transmit) {
            packet::Parsed parsed;
            ASSERT_TRUE(packet::parse(outcome.frame, parsed).has_value());
            taken.insert(parsed.key.source_port);
        }
    }
    std::set<L4Port> expected;
    for (L4Port port = 32'700; port < 32'768; ++port) {
        if (port != 32'710) {
            expected.insert(port);
        }
    }
    EXPECT_EQ(taken, expected);
}

// A full table evicts half-open flows first and never an established one.
TEST(ConnectionTable, UnderAFloodHalfOpenFlowsGoFirst) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 256});
    TestService service = web();
    service.source = lb::SourceMode::Keep;
    gateway.publish({service});
    const auto established = [&](const char* flags) {
        return gateway.send(eth()
                                .from_mac(kClientMac.to_string())
                                .to_mac(kUpMac.to_string())
                                .ipv4("10.80.1.2", "80.11.12.10")
                                .tcp(5555, 80, flags)
                                .build());
    };
    established("S");
    gateway.send(eth()
                     .from_mac(backend_mac(11).to_string())
                     .to_mac(kClusterMac.to_string())
                     .ipv4("10.80.2.11", "10.80.1.2")
                     .tcp(9376, 5555, "SA")
                     .build(),
                 kCluster);
    established("A");
    for (uint32_t n = 0; n < 5'000; ++n) {
        gateway.advance_milliseconds(1);
        gateway.send(syn(n).build());
    }
    EXPECT_LE(gateway.connections(), 256u);
    EXPECT_GT(gateway.count(stats::Counter::EvictedConnections), 4'000u);
    EXPECT_EQ(established("A").verdict, Verdict::Transmit);
}

// A SYN and an ACK that are sent without knowledge of the endpoint's SYN+ACK leave half-open connections. A
// table full of them serves new clients and keeps connections that were opened before. A minute later it is
// empty of the others.
TEST(ConnectionTable, FullOfForgedHandshakesServesNewFlows_NAT006_NAT008) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 256});
    TestService service = web();
    service.source = lb::SourceMode::Keep;
    gateway.publish({service});
    const auto client = [](uint32_t n, const char* flags) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("198.51.100.1", "80.11.12.10")
            .tcp(static_cast<uint16_t>(1'000 + n), 80, flags);
    };
    const auto endpoint = [](uint32_t n, const char* flags) {
        return eth()
            .from_mac(backend_mac(11).to_string())
            .to_mac(kClusterMac.to_string())
            .ipv4("10.80.2.11", "198.51.100.1")
            .tcp(9376, static_cast<uint16_t>(1'000 + n), flags);
    };
    constexpr uint32_t kTrue = 8;
    for (uint32_t n = 0; n < 1'000; ++n) {
        gateway.advance_milliseconds(1);
        ASSERT_EQ(gateway.send(client(n, "S").build()).verdict, Verdict::Transmit) << n;
        ASSERT_EQ(gateway.send(endpoint(n, "SA").seq(n).build(), kCluster).verdict, Verdict::Transmit) << n;
        ASSERT_EQ(gateway.send(client(n, "A").ack(n < kTrue ? n + 1 : 77'000).build()).verdict,
                  Verdict::Transmit)
            << n;
    }
    EXPECT_EQ(gateway.connections(), 256u);
    gateway.advance_seconds(63);
    gateway.age();
    EXPECT_EQ(gateway.connections(), kTrue);
    gateway.advance_seconds(80'000);
    gateway.age();
    EXPECT_EQ(gateway.connections(), kTrue);
    for (uint32_t n = 0; n < kTrue; ++n) {
        EXPECT_EQ(gateway.send(endpoint(n, "PA").payload("banner").build(), kCluster).verdict,
                  Verdict::Transmit)
            << n;
    }
}

// UDP requests, each from another client port, that an endpoint answers.
class FullOfAnsweredFlows : public testing::Test {
 protected:
    FullOfAnsweredFlows() {
        gateway.publish({TestService{.name = "dns",
                                     .protocol = Protocol::Udp,
                                     .frontends = {{kVip, 53}},
                                     .backends = {11},
                                     .source = lb::SourceMode::Keep}});
    }
    Outcome ask(uint16_t client_port) {
        const Outcome asked = gateway.send(eth()
                                               .from_mac(kClientMac.to_string())
                                               .to_mac(kUpMac.to_string())
                                               .ipv4("10.80.1.2", "80.11.12.10")
                                               .udp(client_port, 53)
                                               .build());
        gateway.send(eth()
                         .from_mac(backend_mac(11).to_string())
                         .to_mac(kClusterMac.to_string())
                         .ipv4("10.80.2.11", "10.80.1.2")
                         .udp(9376, client_port)
                         .build(),
                     kCluster);
        return asked;
    }
    // As many as there is room for, the same ones each time.
    void ask_all() {
        for (uint16_t n = 1; n <= kRoom; ++n) {
            ASSERT_EQ(ask(n).verdict, Verdict::Transmit) << n;
        }
    }
    static constexpr uint16_t kRoom = 64;
    VirtualGateway gateway{VirtualGateway::Options{.connections = kRoom}};
};

// Any host can send requests with another host's address, and they are answered.
TEST_F(FullOfAnsweredFlows, ServesNewOnes_NAT008) {
    for (uint16_t n = 1; n <= 1'000; ++n) {
        gateway.advance_milliseconds(1);
        ASSERT_EQ(ask(n).verdict, Verdict::Transmit) << n;
    }
    EXPECT_EQ(gateway.connections(), kRoom);
    EXPECT_EQ(gateway.count(stats::Counter::EvictedConnections), 1'000u - kRoom);
}

TEST_F(FullOfAnsweredFlows, RefusesByNameWhereTheyLast) {
    ask_all();
    gateway.advance_seconds(2);
    ask_all();
    const Outcome refused = ask(kRoom + 1);
    EXPECT_EQ(refused.verdict, Verdict::Drop);
    EXPECT_EQ(refused.reason, DropReason::ConnectionTableFull);
    EXPECT_EQ(gateway.connections(), kRoom);
    EXPECT_EQ(gateway.count(stats::Counter::EvictedConnections), 0u);
}

}  // namespace new_flow_test
}  // namespace penstock::test
