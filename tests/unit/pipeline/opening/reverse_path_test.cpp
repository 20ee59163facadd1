// SPDX-License-Identifier: Apache-2.0
// New flows with a source that belongs behind another port (RFC 3704): the packets that --reverse-path drops,
// and those that it must not drop.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "dataplane/pipeline/opening/admit.hpp"
#include "dataplane/pipeline/opening/reverse_path.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace reverse_path_test {

using config::ReversePath;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");

// 10.80.2.13 and fd00:80:2::d are hosts behind the cluster port: `inside`. Far clients are behind the
// uplink's default route.
struct Sources {
    IpAddr vip, inside, far;
    IpFamily family;
};
const Sources kSources[] = {{kVip, IpAddr::v4(10, 80, 2, 13), IpAddr::v4(198, 51, 100, 7), IpFamily::V4},
                            {kVip6, v6_on_link(2, 13), *IpAddr::parse("2001:db8:1::7"), IpFamily::V6}};

TestService service(Protocol protocol, L4Port port) {
    return {.name = std::string(to_string(protocol)) + std::to_string(port),
            .protocol = protocol,
            .frontends = {{kVip, port}, {kVip6, port}},
            .backends = {11}};
}

// As it arrives by `port`.
PacketBuilder packet_of(const IpAddr& source, const IpAddr& destination, NicPortId port) {
    PacketBuilder frame = port == kUp
                              ? eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string())
                              : eth().from_mac(backend_mac(13).to_string()).to_mac(kClusterMac.to_string());
    return source.is_v4() ? frame.ipv4(source.to_string(), destination.to_string())
                          : frame.ipv6(source.to_string(), destination.to_string());
}
std::vector<uint8_t> syn(const IpAddr& source, const IpAddr& destination, NicPortId port) {
    return packet_of(source, destination, port).tcp(40'000, 80, "S").build();
}
config::PacketPolicy policy_of(ReversePath up, ReversePath cluster) {
    config::PacketPolicy policy;
    policy.reverse_path[kUp.value] = up;
    policy.reverse_path[kCluster.value] = cluster;
    return policy;
}

TEST(ReversePath, EachModeDropsWhatItShould) {
    using enum ReversePath;
    struct Case {
        ReversePath mode;
        bool inside_by_uplink, far_by_cluster;  // whether it passes
    };
    for (const Sources& from : kSources) {
        for (const Case& c :
             {Case{Feasible, false, true}, {Strict, false, false}, {Loose, true, true}, {Off, true, true}}) {
            VirtualGateway gateway;
            gateway.publish({service(Protocol::Tcp, 80)});
            gateway.set_packets(policy_of(c.mode, c.mode));
            const auto passes = [&](const IpAddr& source, NicPortId port) {
                const Outcome outcome = gateway.send(syn(source, from.vip, port), port);
                EXPECT_TRUE(outcome.verdict == Verdict::Transmit || outcome.reason == DropReason::ReversePath)
                    << text_of(outcome.reason).counter;
                return outcome.verdict == Verdict::Transmit;
            };
            const std::string name = std::string(config::to_string(c.mode)) + " " + from.inside.to_string();
            EXPECT_EQ(passes(from.inside, kUp), c.inside_by_uplink) << name;
            EXPECT_EQ(passes(from.far, kCluster), c.far_by_cluster) << name;
            EXPECT_TRUE(passes(from.inside, kCluster)) << name;
            EXPECT_TRUE(passes(from.far, kUp)) << name;
        }
    }
}

TEST(ReversePath, IsThePolicyOfTheArrivalPort) {
    VirtualGateway gateway;
    gateway.publish({service(Protocol::Tcp, 80)});
    gateway.set_packets(policy_of(ReversePath::Off, ReversePath::Strict));
    EXPECT_EQ(gateway.send(syn(kSources[0].inside, kVip, kUp), kUp).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(syn(kSources[0].far, kVip, kCluster), kCluster).reason, DropReason::ReversePath);
}

// A source without a route could not be answered.
TEST(ReversePath, ASourceNeedsARoute) {
    for (const ReversePath mode : {ReversePath::Feasible, ReversePath::Strict, ReversePath::Loose}) {
        VirtualGateway gateway;
        gateway.publish({service(Protocol::Tcp, 80)});
        gateway.set_packets(policy_of(mode, mode));
        gateway.remove_routes();
        EXPECT_EQ(gateway.send(syn(kClient, kVip, kUp)).reason, DropReason::ReversePath)
            << config::to_string(mode);
    }
}

// Both ends answer any datagram: one with a spoofed source would loop between them forever.
TEST(ReversePath, OneSpoofedDatagramStartsNoLoop) {
    for (const Sources& from : kSources) {
        VirtualGateway gateway;
        TestService echo = service(Protocol::Udp, 7777);
        gateway.publish({echo});
        const Outcome spoofed =
            gateway.send(packet_of(from.inside, from.vip, kUp).udp(7777, 7777).payload("ping").build(), kUp);
        EXPECT_EQ(spoofed.verdict, Verdict::Drop);
        EXPECT_EQ(spoofed.reason, DropReason::ReversePath);
        EXPECT_EQ(gateway.connections(), 0u);
    }
}

// The gateway must not answer inside hosts for packets from outside: RST, port unreachable, time exceeded,
// echo reply.
TEST(ReversePath, SpoofedInsideSourcesAreNotAnswered_REJ005_ICMP007) {
    for (const Sources& from : kSources) {
        VirtualGateway gateway;
        TestService empty = service(Protocol::Udp, 53);
        empty.backends = {};
        gateway.publish({service(Protocol::Tcp, 80), empty});
        gateway.set_rejects_closed_vip_ports(true);
        const uint8_t request = from.family == IpFamily::V4 ? 8 : 128;
        const auto spoofed = [&] { return packet_of(from.inside, from.vip, kUp); };
        const auto expiring = [&] {
            return from.family == IpFamily::V4 ? spoofed().ttl(1) : spoofed().hop_limit(1);
        };
        for (const auto& frame :
             {spoofed().tcp(40'000, 80, "A").build(), spoofed().udp(40'000, 53).build(),
              spoofed().tcp(40'000, 81, "S").build(), expiring().tcp(40'000, 80, "S").build(),
              spoofed().icmp(request, 0).payload("12345678").build()}) {
            const Outcome outcome = gateway.send(frame, kUp);
            EXPECT_EQ(outcome.verdict, Verdict::Drop) << to_scapy(frame);
            EXPECT_EQ(outcome.reason, DropReason::ReversePath) << to_scapy(frame);
        }
        EXPECT_EQ(
            gateway
                .send(packet_of(from.inside, from.vip, kCluster).icmp(request, 0).payload("12345678").build(),
                      kCluster)
                .verdict,
            Verdict::Transmit)
            << "by its own port it is answered";
    }
}

// IPv6 neighbours ping a VIP on their link from link-local addresses, which have no route.
TEST(ReversePath, LinkLocalSourcesPingAPresentVip) {
    VirtualGateway gateway;
    gateway.publish({service(Protocol::Tcp, 80)});
    gateway.set_packets(policy_of(ReversePath::Strict, ReversePath::Strict));
    gateway.set_present_vips({kVip6});
    for (const NicPortId port : {kUp, kCluster}) {
        const auto ping =
            packet_of(*IpAddr::parse("fe80::2"), kVip6, port).icmp(128, 0).payload("12345678").build();
        EXPECT_EQ(gateway.send(ping, port).verdict, Verdict::Punt) << int{port.value};
    }
}

// Packets that open no flow of a Service are not checked: the host has its own rp_filter.
TEST(ReversePath, PacketsForTheHostAreLinuxsBusiness) {
    VirtualGateway gateway;
    gateway.publish({service(Protocol::Tcp, 80)});
    gateway.set_packets(policy_of(ReversePath::Strict, ReversePath::Strict));
    EXPECT_EQ(gateway.send(syn(kSources[0].inside, kUpAddress, kUp), kUp).verdict, Verdict::Punt);
}

// A client whose path changes during a flow then arrives by another port. Linux without rp_filter accepts
// that.
TEST(ReversePath, KnownFlowsMayChangeTheirPort) {
    for (const uint32_t workers : {1U, 2U}) {
        VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
        gateway.publish({service(Protocol::Udp, 53)});
        gateway.set_packets(policy_of(ReversePath::Strict, ReversePath::Strict));
        const auto send = [&](L4Port client_port, NicPortId port) {
            return gateway.send(packet_of(kClient, kVip, port).udp(client_port, 53).build(), port);
        };
        ASSERT_EQ(send(40'000, kUp).verdict, Verdict::Transmit);
        EXPECT_EQ(send(40'000, kCluster).verdict, Verdict::Transmit);
        EXPECT_EQ(send(40'001, kCluster).reason, DropReason::ReversePath) << "a new flow may not begin there";
    }
}

// After a handoff, a worker checks a packet by the port on which it arrived.
TEST(ReversePath, TheArrivalPortSurvivesAHandoff) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = 4});
    gateway.publish({service(Protocol::Tcp, 80)});
    uint32_t handed = 0;
    for (uint16_t client = 0; client < 32; ++client) {
        for (const NicPortId port : {kUp, kCluster}) {
            const auto port_number = static_cast<uint16_t>(20'000 + client);
            const Outcome outcome = gateway.send(
                packet_of(kSources[0].inside, kVip, port).tcp(port_number, 80, "S").build(), port);
            EXPECT_EQ(outcome.verdict == Verdict::Transmit, port == kCluster);
            handed += outcome.handoffs;
        }
    }
    EXPECT_GT(handed, 0u);
}

// The whole datagram shares the verdict of its first fragment.
TEST(ReversePath, SpoofedFragmentsAreDroppedWithTheirFirst_NAT007) {
    VirtualGateway gateway;
    gateway.publish({service(Protocol::Udp, 53)});
    const auto fragment = [&] { return packet_of(kSources[0].inside, kVip, kUp).id(9); };
    EXPECT_EQ(
        gateway.send(fragment().udp(40'000, 53).payload("12345678").more_fragments().build(), kUp).reason,
        DropReason::ReversePath);
    EXPECT_EQ(
        gateway.send(fragment().ip_protocol(17).payload("12345678").fragment_offset(2).build(), kUp).reason,
        DropReason::Fragment);
}

// Pod CIDRs and endpoints behind a router have no subnet of a port; other sources from there only need a
// route.
TEST(ReversePath, PodsAndEndpointsBehindARouterKeepToTheirPort) {
    VirtualGateway gateway;
    gateway.publish({service(Protocol::Tcp, 80)});
    gateway.set_pod_cidrs({*Prefix::parse("10.244.0.0/16")});
    config::Snapshot snapshot = gateway.snapshot();
    const NicPortId third{2};
    snapshot.routes =
        route::RouteTable::build({{*Prefix::parse("10.80.2.0/24"), kCluster, {}, 0},
                                  {*Prefix::parse("10.0.0.0/8"), kCluster, IpAddr::v4(10, 80, 2, 250), 0},
                                  {*Prefix::parse("0.0.0.0/0"), kUp, kClient, 0, route::set_of(third)}},
                                 {}, {{kCluster, kClusterAddress, 24}}, {});
    auto routed = std::make_shared<lb::Service>();
    routed->sets.emplace_back().usable.push_back({BackendId{0}, IpAddr::v4(10, 9, 0, 5), 80, 1});
    snapshot.services = lb::ServiceTable::build({}, {routed}).value();
    const auto path = [&](const char* source, NicPortId port) {
        return pipeline::source_path(snapshot, *IpAddr::parse(source), port);
    };
    using pipeline::SourcePath;
    EXPECT_EQ(path("10.244.3.4", kUp), SourcePath::InsideElsewhere);
    EXPECT_EQ(path("10.244.3.4", kCluster), SourcePath::Ok);
    EXPECT_EQ(path("10.9.0.5", kUp), SourcePath::EndpointElsewhere);
    EXPECT_EQ(path("10.9.0.6", kUp), SourcePath::Ok) << "no endpoint: any port will do";
    EXPECT_EQ(path("10.80.2.77", kUp), SourcePath::OtherSubnet);
    EXPECT_EQ(path("198.51.100.7", third), SourcePath::Ok);
    snapshot.packets = policy_of(ReversePath::Strict, ReversePath::Strict);
    snapshot.packets.reverse_path[third.value] = ReversePath::Strict;
    EXPECT_EQ(path("198.51.100.7", third), SourcePath::Ok) << "an equal-cost next hop";
    EXPECT_EQ(path("198.51.100.7", kCluster), SourcePath::OtherPort);
}

// A router on a stick: clients, endpoints and the default router are behind one port.
TEST(ReversePath, OnePortServesEverybody) {
    config::Snapshot snapshot;
    snapshot.routes =
        route::RouteTable::build({{*Prefix::parse("10.80.1.0/24"), kUp, {}, 0},
                                  {*Prefix::parse("0.0.0.0/0"), kUp, IpAddr::v4(10, 80, 1, 254), 0}},
                                 {}, {{kUp, kUpAddress, 24}}, {});
    snapshot.cluster_clients =
        std::make_shared<lb::ClusterClients>(std::vector{*Prefix::parse("10.244.0.0/16")});
    for (const ReversePath mode :
         {ReversePath::Feasible, ReversePath::Strict, ReversePath::Loose, ReversePath::Off}) {
        snapshot.packets = policy_of(mode, mode);
        for (const char* source : {"10.80.1.77", "10.244.3.4", "198.51.100.7"}) {
            EXPECT_EQ(pipeline::source_path(snapshot, *IpAddr::parse(source), kUp), pipeline::SourcePath::Ok)
                << config::to_string(mode) << " " << source;
        }
    }
}

// Two ports on one link: their subnet is directly connected to both, whichever the route prefers.
TEST(ReversePath, TwoPortsOnOneLinkAreBothRight) {
    config::Snapshot snapshot;
    const Prefix link = *Prefix::parse("10.80.1.0/24");
    snapshot.routes =
        route::RouteTable::build({{link, kUp, {}, 100}, {link, kCluster, {}, 200}}, {},
                                 {{kUp, kUpAddress, 24}, {kCluster, IpAddr::v4(10, 80, 1, 9), 24}}, {});
    for (const NicPortId port : {kUp, kCluster}) {
        EXPECT_EQ(pipeline::source_path(snapshot, kClient, port), pipeline::SourcePath::Ok);
    }
    EXPECT_EQ(pipeline::source_path(snapshot, kClient, {5}), pipeline::SourcePath::OtherSubnet);
}

}  // namespace reverse_path_test
}  // namespace penstock::test
