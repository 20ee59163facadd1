// SPDX-License-Identifier: Apache-2.0
// Frames in, frames out, through the real stages: the frames that a client, a backend and an operator see on
// the wire. The expected frames are built by packet_builder, which computes its checksums without any code of
// dataplane/packet.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace forwarding_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

TestService web() {
    return {.frontends = {{kVip, 80}}, .backends = {11, 12, 13}};
}
TestService dns() {
    return {.name = "dns",
            .protocol = Protocol::Udp,
            .frontends = {{kVip, 53}},
            .backends = {11, 12},
            .backend_port = 5353};
}

PacketBuilder from_client() {
    return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
}
PacketBuilder from_backend(uint8_t host) {
    return eth().from_mac(backend_mac(host).to_string()).to_mac(kClusterMac.to_string());
}
PacketBuilder to_client() {
    return eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string());
}
PacketBuilder to_backend(uint8_t host) {
    return eth().from_mac(kClusterMac.to_string()).to_mac(backend_mac(host).to_string());
}

// Values that the gateway chooses, so that the test reads them from a frame.
packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed.key;
}
uint8_t host_of(const IpAddr& backend) {
    return backend.bytes()[15];
}

TEST(FullNat, TranslatesBothWaysAndBackToTheVip_ETP001_NAT001_NAT002_SVC009) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const Outcome syn = gateway.send(
        from_client().ipv4("10.80.1.2", "80.11.12.10").ttl(63).tcp(40000, 80, "S").seq(7).build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    EXPECT_EQ(syn.egress, kCluster);
    const packet::FlowKey out = key_of(syn.frame);
    EXPECT_EQ(out.source, kClusterAddress) << "a gateway address that routes to the endpoint";
    EXPECT_GE(out.source_port, 1024);
    const uint8_t host = host_of(out.destination);
    EXPECT_TRUE(same_frame(syn.frame, to_backend(host)
                                          .ipv4("10.80.2.1", out.destination.to_string())
                                          .ttl(62)
                                          .tcp(out.source_port, 9376, "S")
                                          .seq(7)
                                          .build()));

    const Outcome syn_ack = gateway.send(from_backend(host)
                                             .ipv4(out.destination.to_string(), "10.80.2.1")
                                             .tcp(9376, out.source_port, "SA")
                                             .seq(90)
                                             .ack(8)
                                             .build(),
                                         kCluster);
    ASSERT_EQ(syn_ack.verdict, Verdict::Transmit);
    EXPECT_EQ(syn_ack.egress, kUp);
    EXPECT_TRUE(same_frame(
        syn_ack.frame,
        to_client().ipv4("80.11.12.10", "10.80.1.2").ttl(63).tcp(80, 40000, "SA").seq(90).ack(8).build()));
    EXPECT_EQ(gateway.connections(), 1u);
    const stats::ServiceCounters& counters = gateway.service_counters(0, "web");
    EXPECT_EQ(counters.new_flows.read(), 1u);
    EXPECT_EQ(counters.forward().packets.read(), 1u);
    EXPECT_EQ(counters.reverse().packets.read(), 1u);
    EXPECT_EQ(counters.forward().bytes.read(), 40u);
}

TEST(FullNat, AFlowOfAShareHasAnAddressOfTheShareAndItsReplyFindsIt_NAT002) {
    const IpAddr shared = IpAddr::v4(198, 51, 200, 3);
    for (const nat::PortPart part : {nat::PortPart::Primary, nat::PortPart::Heir}) {
        VirtualGateway gateway(
            {.workers = 3, .more_snat = {{.address = shared, .egress = {}, .group = 4, .part = part}}});
        TestService in_share = web();
        in_share.snat_group = 4;
        in_share.node_ports = {30'080};
        gateway.publish({in_share, dns()});
        for (uint16_t client_port = 40'000; client_port < 40'100; ++client_port) {
            const Outcome syn = gateway.send(
                from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(client_port, 80, "S").build());
            ASSERT_EQ(syn.verdict, Verdict::Transmit);
            const packet::FlowKey out = key_of(syn.frame);
            EXPECT_EQ(out.source, shared);
            EXPECT_EQ(out.source_port % 8 == 7, part == nat::PortPart::Heir) << out.source_port;
            const Outcome reply = gateway.send(from_backend(host_of(out.destination))
                                                   .ipv4(out.destination.to_string(), shared.to_string())
                                                   .tcp(9376, out.source_port, "SA")
                                                   .ack(1)
                                                   .build(),
                                               kCluster);
            ASSERT_EQ(reply.verdict, Verdict::Transmit);
            EXPECT_EQ(key_of(reply.frame).destination_port, client_port);
        }
        const Outcome node_port =
            gateway.send(from_client().ipv4("10.80.1.2", "10.80.1.1").tcp(40'000, 30'080, "S").build());
        EXPECT_EQ(key_of(node_port.frame).source, kClusterAddress) << "a NodePort belongs to no share";
        const Outcome other =
            gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").udp(40'000, 53).build());
        EXPECT_EQ(key_of(other.frame).source, kClusterAddress);
        // As to another SNAT address: a packet of no flow is Linux's, and one from it is forged.
        EXPECT_EQ(
            gateway
                .send(from_backend(11).ipv4("10.80.2.11", shared.to_string()).tcp(9376, 1'024, "SA").build(),
                      kCluster)
                .verdict,
            Verdict::Punt);
        EXPECT_EQ(
            gateway.send(from_client().ipv4(shared.to_string(), "80.11.12.10").tcp(1'024, 80, "S").build())
                .reason,
            DropReason::MartianSource);
    }
}

TEST(KeptSource, LeavesTheClientsAddressAndPort_ETP002_NAT003) {
    VirtualGateway gateway;
    TestService local = web();
    local.source = lb::SourceMode::Keep;
    gateway.publish({local});
    const Outcome syn =
        gateway.send(from_client().ipv4("198.51.100.7", "80.11.12.10").tcp(40000, 80, "S").build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    const uint8_t host = host_of(key_of(syn.frame).destination);
    EXPECT_TRUE(same_frame(syn.frame, to_backend(host)
                                          .ipv4("198.51.100.7", backend_address(host).to_string())
                                          .ttl(63)
                                          .tcp(40000, 9376, "S")
                                          .build()));
    const Outcome answer = gateway.send(from_backend(host)
                                            .ipv4(backend_address(host).to_string(), "198.51.100.7")
                                            .tcp(9376, 40000, "SA")
                                            .build(),
                                        kCluster);
    ASSERT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(
        answer.frame, to_client().ipv4("80.11.12.10", "198.51.100.7").ttl(63).tcp(80, 40000, "SA").build()));
}

TEST(Udp, KeepsAnAbsentChecksumAbsent_NAT001) {
    VirtualGateway gateway;
    gateway.publish({dns()});
    const Outcome query = gateway.send(
        from_client().ipv4("10.80.1.2", "80.11.12.10").udp(5000, 53).payload("query").l4_checksum(0).build());
    ASSERT_EQ(query.verdict, Verdict::Transmit);
    const packet::FlowKey out = key_of(query.frame);
    EXPECT_TRUE(same_frame(query.frame, to_backend(host_of(out.destination))
                                            .ipv4("10.80.2.1", out.destination.to_string())
                                            .ttl(63)
                                            .udp(out.source_port, 5353)
                                            .payload("query")
                                            .l4_checksum(0)
                                            .build()));
}

// SVC-008: the protocol is part of every lookup.
TEST(Frontends, TcpAndUdpOfOneNumberAreDifferent_SVC008_XIP007) {
    VirtualGateway gateway;
    TestService tcp = web();
    tcp.frontends = {{kVip, 53}};
    TestService udp = dns();
    udp.backends = {21};
    gateway.publish({tcp, udp});
    EXPECT_NE(
        key_of(gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(1, 53, "S").build()).frame)
            .destination,
        backend_address(21));
    EXPECT_EQ(key_of(gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").udp(1, 53).build()).frame)
                  .destination,
              backend_address(21));
    gateway.publish({tcp});
    EXPECT_EQ(gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").udp(2, 53).build()).reason,
              DropReason::VipPortClosed);
    EXPECT_EQ(gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(2, 53, "S").build()).verdict,
              Verdict::Transmit);
}

TEST(Scheduling, RoundRobinIsExactOnOneWorker_SCHED002) {
    VirtualGateway gateway;
    gateway.publish({web()});
    std::map<uint8_t, int> share;
    for (uint16_t i = 0; i < 300; ++i) {
        const Outcome syn = gateway.send(from_client()
                                             .ipv4("10.80.1.2", "80.11.12.10")
                                             .tcp(static_cast<uint16_t>(1000 + i), 80, "S")
                                             .build());
        ++share[host_of(key_of(syn.frame).destination)];
    }
    EXPECT_EQ(share, (std::map<uint8_t, int>{{11, 100}, {12, 100}, {13, 100}}));
}

// DRAIN-001, GEN-007: a flow stays with its endpoint after any change of the set; new flows use the new set
// only.
TEST(Flows, OutliveTheirBackendsRemovalAndTheirFrontends_DRAIN001) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const auto segment = [&](const char* flags) {
        return gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40000, 80, flags).build());
    };
    const packet::FlowKey first = key_of(segment("S").frame);
    const uint8_t host = host_of(first.destination);
    gateway.send(from_backend(host)
                     .ipv4(first.destination.to_string(), "10.80.2.1")
                     .tcp(9376, first.source_port, "SA")
                     .build(),
                 kCluster);
    TestService without = web();
    std::erase(without.backends, host);
    gateway.publish({without});
    EXPECT_EQ(key_of(segment("A").frame), first);
    gateway.publish({});
    EXPECT_EQ(key_of(segment("A").frame), first);
    const Outcome answer = gateway.send(from_backend(host)
                                            .ipv4(first.destination.to_string(), "10.80.2.1")
                                            .tcp(9376, first.source_port, "A")
                                            .build(),
                                        kCluster);
    EXPECT_TRUE(same_frame(answer.frame,
                           to_client().ipv4("80.11.12.10", "10.80.1.2").ttl(63).tcp(80, 40000, "A").build()));
}

TEST(Hairpin, IsTranslatedWhateverThePolicy_NAT005) {
    VirtualGateway gateway;
    TestService local = web();
    local.source = lb::SourceMode::Keep;
    local.backends = {11};
    gateway.publish({local});
    const Outcome syn = gateway.send(
        from_backend(11).ipv4("10.80.2.11", "80.11.12.10").tcp(40000, 80, "S").build(), kCluster);
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    const packet::FlowKey out = key_of(syn.frame);
    EXPECT_EQ(out.source, kClusterAddress);
    const Outcome answer = gateway.send(
        from_backend(11).ipv4("10.80.2.11", "10.80.2.1").tcp(9376, out.source_port, "SA").build(), kCluster);
    EXPECT_TRUE(same_frame(
        answer.frame, to_backend(11).ipv4("80.11.12.10", "10.80.2.11").ttl(63).tcp(80, 40000, "SA").build()));
}

// One client socket, two frontends, one endpoint, source kept: without translation both flows would have one
// reverse tuple.
TEST(KeptSource, OneSocketThroughTwoFrontendsStaysTwoFlows) {
    VirtualGateway gateway;
    TestService local = web();
    local.source = lb::SourceMode::Keep;
    local.backends = {11};
    local.frontends = {{kVip, 80}, {IpAddr::v4(80, 11, 12, 11), 80}};
    gateway.publish({local});
    const Outcome one =
        gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40000, 80, "S").build());
    const Outcome two =
        gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.11").tcp(40000, 80, "S").build());
    ASSERT_EQ(two.verdict, Verdict::Transmit);
    EXPECT_NE(key_of(one.frame), key_of(two.frame));
    const packet::FlowKey out = key_of(two.frame);
    const Outcome answer = gateway.send(
        from_backend(11).ipv4("10.80.2.11", out.source.to_string()).tcp(9376, out.source_port, "SA").build(),
        kCluster);
    EXPECT_TRUE(same_frame(
        answer.frame, to_client().ipv4("80.11.12.11", "10.80.1.2").ttl(63).tcp(80, 40000, "SA").build()));
}

TEST(Flows, TwoFirstPacketsInOneBurstAreOneFlow) {
    VirtualGateway gateway;
    gateway.publish({dns()});
    const std::vector<uint8_t> query =
        from_client().ipv4("10.80.1.2", "80.11.12.10").udp(5000, 53).payload("q").build();
    const std::vector<Outcome> both = gateway.send_burst({query, query});
    EXPECT_EQ(both[0].frame, both[1].frame);
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.service_counters(0, "dns").forward().packets.read(), 2u);
    EXPECT_EQ(gateway.service_counters(0, "dns").new_flows.read(), 1u);
}

TEST(Tcp, ANewSynOnAFinishedTupleOpensANewFlow) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const auto client = [&](const char* flags) {
        return gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40000, 80, flags).build());
    };
    const packet::FlowKey first = key_of(client("S").frame);
    const auto backend = [&](const char* flags) {
        return gateway.send(from_backend(host_of(first.destination))
                                .ipv4(first.destination.to_string(), "10.80.2.1")
                                .tcp(9376, first.source_port, flags)
                                .build(),
                            kCluster);
    };
    backend("SA");
    client("A");
    client("FA");
    backend("FA");
    client("A");
    const Outcome again = client("S");
    ASSERT_EQ(again.verdict, Verdict::Transmit);
    EXPECT_NE(key_of(again.frame), first)
        << "another backend or another port: the endpoint may still be in TIME-WAIT";
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.service_counters(0, "web").new_flows.read(), 2u);
}

struct IdleCase {
    const char* name;
    Protocol protocol;
    std::vector<std::pair<bool, const char*>> packets;  // (from the client, flags)
    uint64_t limit_s;
    uint64_t between_s = 0;
};

TEST(IdleTimeouts, FollowTheState_NAT008) {
    const IdleCase cases[] = {
        {"TCP half-open", Protocol::Tcp, {{true, "S"}}, 60},
        {"TCP half-open, answered", Protocol::Tcp, {{true, "S"}, {false, "SA"}}, 60},
        {"TCP established", Protocol::Tcp, {{true, "S"}, {false, "SA"}, {true, "A"}}, 86'400},
        {"TCP closing",
         Protocol::Tcp,
         {{true, "S"}, {false, "SA"}, {true, "A"}, {true, "FA"}, {false, "FA"}},
         120},
        {"UDP one way", Protocol::Udp, {{true, ""}}, 30},
        {"UDP answered", Protocol::Udp, {{true, ""}, {false, ""}}, 30},
        {"UDP answered, and it lasts", Protocol::Udp, {{true, ""}, {false, ""}, {true, ""}}, 120, 2},
    };
    for (const IdleCase& c : cases) {
        VirtualGateway gateway;
        TestService service = c.protocol == Protocol::Tcp ? web() : dns();
        gateway.publish({service});
        const L4Port port = service.frontends[0].second;
        packet::FlowKey out;
        for (const auto& [from_the_client, flags] : c.packets) {
            gateway.advance_seconds(c.between_s);
            if (from_the_client) {
                PacketBuilder packet = from_client().ipv4("10.80.1.2", "80.11.12.10");
                c.protocol == Protocol::Tcp ? packet.tcp(40000, port, flags) : packet.udp(40000, port);
                out = key_of(gateway.send(packet.build()).frame);
            } else {
                PacketBuilder packet =
                    from_backend(host_of(out.destination)).ipv4(out.destination.to_string(), "10.80.2.1");
                c.protocol == Protocol::Tcp ? packet.tcp(out.destination_port, out.source_port, flags)
                                            : packet.udp(out.destination_port, out.source_port);
                gateway.send(packet.build(), kCluster);
            }
        }
        gateway.advance_seconds(c.limit_s - 1);
        gateway.age();
        EXPECT_EQ(gateway.connections(), 1u) << c.name << ": gone too early";
        gateway.advance_seconds(3);  // the limit, the second by which last-seen may lag, and one more
        gateway.age();
        EXPECT_EQ(gateway.connections(), 0u) << c.name << ": still there";
        EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 0u)
            << c.name << ": its SNAT port was not given back";
        EXPECT_EQ(gateway.service_counters(0, service.name).connections.read(), 0u) << c.name;
    }
}

}  // namespace forwarding_test
}  // namespace penstock::test
