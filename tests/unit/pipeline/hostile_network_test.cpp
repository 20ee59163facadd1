// SPDX-License-Identifier: Apache-2.0
// Attacks by a sender that may send any frame at any rate. Each test is one attack and the property that must
// still hold.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace hostile_network_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

PacketBuilder from_client() {
    return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
}
PacketBuilder segment(const char* flags) {
    return from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40'000, 80, flags);
}
PacketBuilder syn_of(uint32_t n) {
    return from_client()
        .ipv4("198.51." + std::to_string(n / 60'000) + ".1", "80.11.12.10")
        .tcp(static_cast<uint16_t>(1 + n % 60'000), 80, "S");
}
std::vector<uint8_t> from_backend(const packet::FlowKey& inside, const char* flags) {
    return eth()
        .from_mac(backend_mac(11).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, flags)
        .build();
}
packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}
TestService web() {
    return {.frontends = {{kVip, 80}}, .backends = {11}};
}

// A packet that arrives together with the one that opened its flow is looked up by new_flow, behind the stage
// that checks such packets. An unchecked TTL of 0 would leave as 255, and a ring of gateways would forward it
// forever.
TEST(OneBurst, WhatFollowsAFirstPacketIsCheckedAsEver_ICMP006) {
    for (const uint8_t ttl : {uint8_t{0}, uint8_t{1}}) {
        VirtualGateway gateway;
        gateway.publish({web()});
        const auto outcomes =
            gateway.send_burst({segment("S").build(), segment("S").ttl(ttl).build(), segment("S").build()});
        EXPECT_EQ(outcomes[0].verdict, Verdict::Transmit);
        EXPECT_EQ(outcomes[1].verdict, Verdict::Transmit);
        EXPECT_EQ(outcomes[1].egress, kUp) << "its sender is told";
        EXPECT_EQ(outcomes[2].verdict, Verdict::Transmit);
    }
}

// A client may reuse a closed tuple at once, in one burst or in three. It gets the same SNAT port again,
// because the backend may still have the old connection in TIME-WAIT (ADR 0009).
TEST(OneBurst, AClosedTupleOpensAgainOnce) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const packet::FlowKey before = key_of(gateway.send(segment("S").build()).frame);
    gateway.send(from_backend(before, "RA"), kCluster);
    const auto outcomes = gateway.send_burst(
        {segment("SF").build(), segment("S").build(), segment("S").build(), segment("A").build()});
    EXPECT_EQ(outcomes[0].reason, DropReason::InvalidTcpFlags);
    EXPECT_EQ(outcomes[1].verdict, Verdict::Transmit);
    EXPECT_EQ(outcomes[2].verdict, Verdict::Transmit);
    EXPECT_EQ(outcomes[3].verdict, Verdict::Transmit);
    for (const size_t syn : {1, 2}) {
        EXPECT_EQ(key_of(outcomes[syn].frame), before);
    }
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 1u);
    EXPECT_EQ(gateway.count(stats::Counter::NewConnections), 2u);
}

// The last packets of a connection may share a burst with the SYN that ends it. They belong to the old
// connection, and leave.
TEST(OneBurst, TheLastPacketsOfAConnectionLeaveBeforeItEnds) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const packet::FlowKey inside = key_of(gateway.send(segment("S").build()).frame);
    gateway.send(from_backend(inside, "SA"), kCluster);
    gateway.send(segment("A").build());
    gateway.send(from_backend(inside, "FA"), kCluster);
    gateway.send(segment("FA").build());
    const auto outcomes =
        gateway.send_burst({segment("A").build(), segment("S").build(), segment("R").build()});
    for (const auto& outcome : outcomes) {
        EXPECT_EQ(outcome.verdict, Verdict::Transmit) << text_of(outcome.reason).counter;
    }
    EXPECT_EQ(key_of(outcomes[0].frame), inside);
    EXPECT_EQ(key_of(outcomes[1].frame), inside) << "the new connection has the old one's port";
    EXPECT_EQ(gateway.count(stats::Counter::NewConnections), 2u);
}

// If the old port is not available, because another flow to the new backend holds it, the search continues as
// for any flow.
TEST(OneBurst, AnotherFlowsPortIsNotTakenAgain) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {1024, 1025}});
    gateway.publish({web()});
    const packet::FlowKey before = key_of(gateway.send(segment("S").build()).frame);
    gateway.send(from_backend(before, "RA"), kCluster);
    // The rotation moves to another backend, where a second client already has the same port.
    TestService moved = web();
    moved.backends = {12};
    gateway.publish({moved});
    std::vector<L4Port> taken;
    for (uint32_t n = 0; n < 2; ++n) {
        const Outcome other = gateway.send(syn_of(n).build());
        taken.push_back(key_of(other.frame).source_port);
        if (taken.back() == before.source_port) {
            break;
        }
    }
    ASSERT_EQ(taken.back(), before.source_port);
    gateway.establish_all();
    const Outcome again = gateway.send(segment("S").build());
    if (taken.size() == 2) {
        EXPECT_EQ(again.reason, DropReason::SnatPortsExhausted);
    } else {
        ASSERT_EQ(again.verdict, Verdict::Transmit);
        EXPECT_NE(key_of(again.frame).source_port, before.source_port);
        EXPECT_EQ(key_of(again.frame).destination, backend_address(12));
    }
}

// If the table is full, all SNAT ports are taken as well. A new flow must still replace a half-open one.
TEST(SynFlood, FlowsStillOpenWhenTheTableIsFullOfTranslatedOnes) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 256});
    gateway.publish({web()});
    const Outcome first = gateway.send(segment("S").build());
    const packet::FlowKey inside = key_of(first.frame);
    gateway.send(from_backend(inside, "SA"), kCluster);
    gateway.send(segment("A").build());
    for (uint32_t n = 0; n < 5'000; ++n) {
        gateway.advance_milliseconds(1);
        ASSERT_EQ(gateway.send(syn_of(n).build()).verdict, Verdict::Transmit) << n;
    }
    EXPECT_EQ(gateway.connections(), 256u);
    EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 256u);
    EXPECT_EQ(gateway.send(segment("A").build()).verdict, Verdict::Transmit)
        << "the established flow is untouched";
    EXPECT_EQ(key_of(gateway.send(from_backend(inside, "A"), kCluster).frame).destination, kClient);
}

// A connection closed by both sides is kept for two minutes because of late segments. These connections must
// not limit the capacity: 262,144 of them are 2,184 short connections a second.
TEST(FullTable, FinishedConnectionsMakeRoom) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 64});
    gateway.publish({web()});
    for (uint32_t n = 0; n < 500; ++n) {
        gateway.advance_milliseconds(1);
        const Outcome opened = gateway.send(syn_of(n).build());
        ASSERT_EQ(opened.verdict, Verdict::Transmit) << n << " " << text_of(opened.reason).counter;
        const packet::FlowKey inside = key_of(opened.frame);
        const auto client = [&](const char* flags) {
            return from_client()
                .ipv4("198.51.0.1", "80.11.12.10")
                .tcp(static_cast<uint16_t>(1 + n), 80, flags)
                .build();
        };
        gateway.send(from_backend(inside, "SA"), kCluster);
        gateway.send(client("A"));
        gateway.send(client("FA"));
        gateway.send(from_backend(inside, "FA"), kCluster);
    }
    EXPECT_EQ(gateway.connections(), 64u);
}

// A source address to which every host of the link listens: neither our answers nor replies may be sent to it
// (RFC 1812, 5.3.5.2; RFC 2644).
TEST(SpoofedBroadcastSource, IsNeverSentTo) {
    VirtualGateway gateway;
    TestService empty = web();
    empty.name = "empty";
    empty.frontends = {{kVip, 81}};
    empty.backends = {};
    gateway.publish({web(), empty});
    gateway.set_rejects_closed_vip_ports(true);
    for (const L4Port port : {L4Port{80}, L4Port{81}, L4Port{82}}) {
        const Outcome outcome =
            gateway.send(from_client().ipv4("10.80.1.255", "80.11.12.10").tcp(40'000, port, "S").build());
        EXPECT_EQ(outcome.verdict, Verdict::Drop) << port;
        EXPECT_EQ(outcome.reason, DropReason::MartianSource) << port;
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

// The gateway's own address as a source: the host has not sent the request, but would get the answers
// (host_path_test.cpp).
TEST(SpoofedOwnSource, IsNeverAnswered_ETP006) {
    VirtualGateway gateway;
    TestService empty = web();
    empty.name = "empty";
    empty.frontends = {{kVip, 81}, {v6_on_link(9, 10), 81}};
    empty.backends = {};
    gateway.publish({web(), empty});
    const auto expect_drop = [](const Outcome& outcome, const IpAddr& own) {
        EXPECT_EQ(outcome.verdict, Verdict::Drop) << own.to_string();
        EXPECT_EQ(outcome.reason, DropReason::MartianSource) << own.to_string();
    };
    for (const IpAddr& own : {kUpAddress, kClusterAddress}) {
        expect_drop(
            gateway.send(from_client().ipv4(own.to_string(), "80.11.12.10").tcp(40'000, 81, "S").build()),
            own);
        expect_drop(
            gateway.send(from_client().ipv4(own.to_string(), "80.11.12.10").tcp(40'000, 80, "S").build()),
            own);
    }
    for (const IpAddr& own : {kUpAddress6, kClusterAddress6}) {
        expect_drop(gateway.send(from_client()
                                     .ipv6(own.to_string(), v6_on_link(9, 10).to_string())
                                     .tcp(40'000, 81, "S")
                                     .build()),
                    own);
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

// Two frontends that answered each other would never stop: DNS answers a malformed datagram with another
// malformed one.
TEST(SpoofedOwnSource, IsNoFrontends_NAT003) {
    for (const lb::SourceMode source : {lb::SourceMode::Translate, lb::SourceMode::Keep}) {
        VirtualGateway gateway;
        TestService dns = web();
        dns.name = "dns";
        dns.protocol = Protocol::Udp;
        dns.frontends = {{kVip, 53}, {v6_on_link(9, 10), 53}};
        dns.source = source;
        TestService other = dns;
        other.name = "other";
        other.frontends = {{IpAddr::v4(80, 11, 12, 11), 54}, {v6_on_link(9, 11), 54}};
        gateway.publish({web(), dns, other});
        const auto forged = [&](const Outcome& outcome) {
            EXPECT_EQ(outcome.verdict, Verdict::Drop);
            EXPECT_EQ(text_of(outcome.reason).counter, "martian_source");
        };
        for (const auto& [port, link] :
             {std::pair{kUp, from_client()}, {kCluster, from_client().to_mac(kClusterMac.to_string())}}) {
            forged(gateway.send(PacketBuilder(link).ipv4("80.11.12.11", "80.11.12.10").udp(54, 53).build(),
                                port));
            forged(gateway.send(PacketBuilder(link)
                                    .ipv6(v6_on_link(9, 11).to_string(), v6_on_link(9, 10).to_string())
                                    .udp(54, 53)
                                    .build(),
                                port));
            forged(gateway.send(
                PacketBuilder(link).ipv4("80.11.12.10", "80.11.12.11").tcp(80, 1, "S").build(), port));
        }
        EXPECT_EQ(gateway.connections(), 0u);
        // An external IP may be a host's own address, which is a client from any other port (XIP-003). An
        // endpoint may also be its own client.
        EXPECT_EQ(
            gateway.send(from_client().ipv4("80.11.12.11", "80.11.12.10").udp(40'000, 53).build()).egress,
            kCluster);
        const auto hairpin = eth().from_mac(backend_mac(11).to_string()).to_mac(kClusterMac.to_string());
        EXPECT_EQ(gateway
                      .send(PacketBuilder(hairpin).ipv4("10.80.2.11", "80.11.12.10").udp(9376, 53).build(),
                            kCluster)
                      .egress,
                  kCluster);
        EXPECT_EQ(gateway.connections(), 2u);
    }
}

// An address configured for source translation belongs to no other host, although the gateway host does not
// have it.
TEST(SpoofedOwnSource, IsNoSnatAddress_NAT003_ICMP007) {
    const IpAddr named = IpAddr::v4(192, 0, 2, 77), named6 = v6_on_link(7, 77);
    VirtualGateway gateway(VirtualGateway::Options{.more_snat = {{named, {}, false}, {named6, {}, false}}});
    TestService dns = web();
    dns.name = "dns";
    dns.protocol = Protocol::Udp;
    dns.frontends = {{kVip, 53}, {v6_on_link(9, 10), 53}};
    TestService kept = dns;
    kept.name = "kept";
    kept.frontends = {{kVip, 54}};
    kept.source = lb::SourceMode::Keep;
    gateway.publish({web(), dns, kept});
    gateway.set_rejects_closed_vip_ports(true);
    const auto from_named = [&] { return from_client().ipv4(named.to_string(), "80.11.12.10"); };
    for (const auto& frame :
         {from_named().tcp(2'000, 80, "S").build(), from_named().udp(2'000, 53).build(),
          from_named().udp(2'000, 54).build(), from_named().udp(2'000, 99).build(),
          from_named().icmp(8, 0).build(),
          from_client().ipv6(named6.to_string(), v6_on_link(9, 10).to_string()).udp(2'000, 53).build()}) {
        const Outcome outcome = gateway.send(frame);
        EXPECT_EQ(outcome.verdict, Verdict::Drop);
        EXPECT_EQ(text_of(outcome.reason).counter, "martian_source");
    }
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(gateway.send(segment("S").build()).verdict, Verdict::Transmit);
}

// One Service keeps the source, and another one translates it for the same endpoint. A spoofed SNAT address
// as a client of the first Service would take the tuples needed by flows of the second one: a thousand
// packets a minute against all its new clients.
TEST(SpoofedOwnSource, TakesNoSnatPortsFromOthers_NAT003) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {1024, 1087}});
    TestService kept = web();
    kept.name = "kept";
    kept.frontends = {{kVip, 81}};
    kept.source = lb::SourceMode::Keep;
    gateway.publish({web(), kept});
    for (uint16_t port = 1024; port <= 1087; ++port) {
        const Outcome forged = gateway.send(
            from_client().ipv4(kClusterAddress.to_string(), "80.11.12.10").tcp(port, 81, "S").build());
        EXPECT_EQ(forged.verdict, Verdict::Drop);
        EXPECT_EQ(forged.reason, DropReason::MartianSource);
    }
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(gateway.send(segment("S").build()).verdict, Verdict::Transmit);
}

}  // namespace hostile_network_test
}  // namespace penstock::test
