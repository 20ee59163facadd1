// SPDX-License-Identifier: Apache-2.0
// Packets that open no flow: the answered ones, the silently dropped ones, and those for Linux.
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
namespace admission_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

TestService web() {
    return {.frontends = {{kVip, 80}}, .backends = {11}};
}
PacketBuilder from_client() {
    return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
}
PacketBuilder to_client() {
    return eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string());
}

constexpr const char* kVip6 = "2001:db8:80::10";

struct DropCase {
    const char* name;
    DropReason reason;
    PacketBuilder packet;
};

TEST(Drops, EachHasItsReason) {
    VirtualGateway gateway;
    TestService guarded = web();
    guarded.name = "guarded";
    guarded.frontends = {{kVip, 443}};
    guarded.source_ranges = {{*Prefix::parse("10.9.0.0/16")}};
    TestService silent = web();
    silent.name = "silent";
    silent.frontends = {{kVip, 81}};
    silent.backends = {};
    silent.when_empty = lb::EmptyAction::Drop;
    TestService elsewhere = silent;
    elsewhere.name = "elsewhere";
    elsewhere.frontends = {{kVip, 82}};
    elsewhere.when_empty = lb::EmptyAction::DropNoLocal;
    TestService over_ipv6 = web();
    over_ipv6.name = "over-ipv6";
    over_ipv6.frontends = {{*IpAddr::parse(kVip6), 80}};
    gateway.publish({web(), guarded, silent, elsewhere, over_ipv6});

    const auto ip6 = [] { return from_client().ipv6("2001:db8:1::2", kVip6); };
    const auto tcp = [](const char* flags = "S", uint16_t port = 80) {
        return from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40000, port, flags);
    };
    const DropCase cases[] = {
        {"cut in the Ethernet header", DropReason::FrameTooShort, from_client().ether_type(0x0800)},
        {"IP length beyond the frame", DropReason::FrameShorterThanIp, tcp().ip_total_length(1400)},
        {"header length contradicts", DropReason::BadIpHeader, tcp().ip_total_length(19)},
        {"wrong IP checksum", DropReason::BadIpChecksum, tcp().ip_checksum(0x1234)},
        {"port 0", DropReason::BadL4Header, from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(0, 80, "S")},
        {"echo of our own frame", DropReason::OwnSourceMac, tcp().from_mac(kUpMac.to_string())},
        {"another host's frame", DropReason::WrongDestinationMac, tcp().to_mac("02:00:00:00:99:99")},
        {"loopback source", DropReason::MartianSource,
         from_client().ipv4("127.0.0.1", "80.11.12.10").tcp(1, 80, "S")},
        {"source equals destination", DropReason::MartianSource,
         from_client().ipv4("80.11.12.10", "80.11.12.10").tcp(1, 80, "S")},
        {"a fragment of a ping to a VIP", DropReason::Fragment,
         from_client().ipv4("10.80.1.2", "80.11.12.10").icmp(8, 0).payload("12345678").more_fragments()},
        {"a fragment that holds no whole unit", DropReason::BadFragment, tcp().payload("1").more_fragments()},
        {"a first fragment without its TCP header", DropReason::FragmentTooSmall,
         from_client().ipv4("10.80.1.2", "80.11.12.10").ip_protocol(6).payload("12345678").more_fragments()},
        {"TTL 1 of a sender that must not be answered", DropReason::TtlExpired,
         tcp().from_mac("03:00:00:00:00:01").ttl(1)},
        {"TTL 1 from a broadcast address", DropReason::MartianSource,
         from_client().ipv4("10.80.1.255", "80.11.12.10").ttl(1).tcp(40000, 80, "S")},
        {"undeclared port of a VIP", DropReason::VipPortClosed, tcp("S", 8080)},
        {"a question to a VIP that is no echo", DropReason::VipPortClosed,
         from_client().ipv4("10.80.1.2", "80.11.12.10").icmp(13, 0)},
        {"a protocol that no Service can have", DropReason::VipPortClosed,
         from_client().ipv4("10.80.1.2", "80.11.12.10").ip_protocol(47).payload("12345678")},
        {"an ICMP error about nothing", DropReason::BadIcmp,
         from_client().ipv4("10.80.1.2", "80.11.12.10").icmp(3, 3)},
        {"client outside the source ranges", DropReason::SourceNotAllowed, tcp("S", 443)},
        {"no endpoint, told to drop", DropReason::NoEndpoint, tcp("S", 81)},
        {"no local endpoint", DropReason::NoLocalEndpoint, tcp("S", 82)},
        {"RST without a flow", DropReason::RejectNotAllowed, tcp("R")},
        {"SYN with FIN", DropReason::InvalidTcpFlags, tcp("SF")},
        {"a question over IPv6 that is no echo", DropReason::VipPortClosed, ip6().icmp(139, 0)},
        {"a protocol over IPv6 that no Service can have", DropReason::VipPortClosed,
         ip6().ip_protocol(47).payload("12345678")},
        {"segment routing to a VIP", DropReason::VipPortClosed, ip6().routing(4, 1).tcp(1, 80, "S")},
        {"a link-local client of a VIP", DropReason::VipPortClosed,
         from_client().ipv6("fe80::2", kVip6).tcp(1, 80, "S")},
        {"a fragment of a ping to a VIP over IPv6", DropReason::Fragment,
         ip6().fragment(0, true).icmp(128, 0).payload("12345678")},
        {"a fragment over IPv6 that holds no whole unit", DropReason::BadFragment,
         ip6().fragment(0, true).tcp(1, 80, "S").payload("1")},
        {"hop limit 1 of a sender that must not be answered", DropReason::TtlExpired,
         ip6().from_mac("03:00:00:00:00:01").hop_limit(1).tcp(1, 80, "S")},
        {"undeclared port of a VIP over IPv6", DropReason::VipPortClosed, ip6().tcp(1, 8080, "S")},
        {"mapped source", DropReason::MappedAddress,
         from_client().ipv6("::ffff:10.80.1.2", kVip6).tcp(1, 80, "S")},
        {"an extension header that is cut", DropReason::BadExtensionHeader,
         ip6().hop_by_hop().payload_length(4).tcp(1, 80, "S")},
        {"routing header of type 0", DropReason::SourceRouted, ip6().routing(0, 1).tcp(1, 80, "S")},
        {"an inside address from outside", DropReason::ReversePath,
         from_client().ipv4("10.80.2.13", "80.11.12.10").tcp(1, 80, "S")},
        {"an inside address from outside over IPv6", DropReason::ReversePath,
         from_client().ipv6("fd00:80:2::d", kVip6).tcp(1, 80, "S")},
        {"UDP over IPv6 without checksum", DropReason::NoUdpChecksum, ip6().udp(1, 80).l4_checksum(0)},
    };
    for (const DropCase& c : cases) {
        const Outcome outcome = gateway.send(c.packet.build());
        EXPECT_EQ(outcome.verdict, Verdict::Drop) << c.name << ": " << to_string(outcome.verdict);
        EXPECT_EQ(text_of(outcome.reason).counter, text_of(c.reason).counter) << c.name;
    }
    EXPECT_EQ(gateway.connections(), 0u) << "a dropped packet leaves no flow behind (UDP-003)";
}

// REJ-001, REJ-002: the answer comes from the VIP, field by field.
TEST(Rejects, TcpGetsARst_REJ001_REJ002) {
    VirtualGateway gateway;
    TestService empty = web();
    empty.backends = {};
    gateway.publish({empty});
    const Outcome syn =
        gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40000, 80, "S").seq(1000).build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    EXPECT_EQ(syn.egress, kUp);
    EXPECT_TRUE(same_frame(syn.frame, to_client()
                                          .ipv4("80.11.12.10", "10.80.1.2")
                                          .id(0)
                                          .dont_fragment()
                                          .ttl(64)
                                          .tcp(80, 40000, "RA")
                                          .seq(0)
                                          .ack(1001)
                                          .window(0)
                                          .build()));
    EXPECT_EQ(gateway.service_counters(0, "web").rejected.read(), 1u);
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST(Rejects, MidStreamWithoutAFlowGetsARst_REJ005) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const Outcome ack = gateway.send(
        from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40000, 80, "A").seq(1000).ack(77).build());
    ASSERT_EQ(ack.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(ack.frame, to_client()
                                          .ipv4("80.11.12.10", "10.80.1.2")
                                          .id(0)
                                          .dont_fragment()
                                          .ttl(64)
                                          .tcp(80, 40000, "R")
                                          .seq(77)
                                          .ack(0)
                                          .window(0)
                                          .build()));
    EXPECT_EQ(gateway.connections(), 0u);
}

// SRC-001: a client outside the ranges gets no information, not even about a missing endpoint.
TEST(SourceRanges, ComeBeforeTheReject_SRC001) {
    VirtualGateway gateway;
    TestService guarded = web();
    guarded.backends = {};
    guarded.source_ranges = {{*Prefix::parse("10.9.0.0/16")}};
    gateway.publish({guarded});
    EXPECT_EQ(gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(1, 80, "S").build()).reason,
              DropReason::SourceNotAllowed);
    const Outcome inside =
        gateway.send(from_client().ipv4("10.9.1.1", "80.11.12.10").tcp(1, 80, "S").build());
    EXPECT_EQ(inside.verdict, Verdict::Transmit) << "a RST, by the default route";
}

// SRC-005: ranges apply to new flows only.
TEST(SourceRanges, LeaveEstablishedFlowsAlone_SRC005) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const auto segment = [&](const char* flags) {
        return gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(1, 80, flags).build());
    };
    EXPECT_EQ(segment("S").verdict, Verdict::Transmit);
    TestService guarded = web();
    guarded.source_ranges = {{*Prefix::parse("10.9.0.0/16")}};
    gateway.publish({guarded});
    EXPECT_EQ(segment("S").verdict, Verdict::Transmit);
}

struct PuntCase {
    const char* name;
    PacketBuilder packet;
};

TEST(Punts, WhatIsTheHostsGoesToTheHost_XIP003_NODEPORT005) {
    VirtualGateway gateway;
    TestService node = web();
    node.node_ports = {30080};
    node.frontends.push_back({kUpAddress, 8000});  // an externalIP that is the gateway's own address
    gateway.publish({node});
    const PuntCase cases[] = {
        {"ARP",
         from_client().to_mac("ff:ff:ff:ff:ff:ff").ether_type(0x0806).payload(std::vector<uint8_t>(28, 0))},
        {"neighbour solicitation", from_client()
                                       .to_mac("33:33:ff:00:00:01")
                                       .ipv6("fe80::1:2", "ff02::1:ff00:1")
                                       .hop_limit(255)
                                       .icmp(135, 0)},
        {"neighbour solicitation to one host",
         from_client().ipv6("fe80::1:2", "2001:db8:1::1").hop_limit(255).icmp(135, 0)},
        {"an MLD report",
         from_client().to_mac("33:33:00:00:00:16").ipv6("fe80::1:2", "ff02::16").hop_by_hop().icmp(143, 0)},
        {"a link-local connection", from_client().ipv6("fe80::1:2", "fe80::1").tcp(1, 22, "S")},
        {"a fragment over IPv6", from_client()
                                     .ipv6("2001:db8:1::2", "2001:db8:1::1")
                                     .fragment(0, true)
                                     .udp(1, 53)
                                     .payload("12345678")},
        {"segment routing",
         from_client().ipv6("2001:db8:1::2", "2001:db8:1::1").routing(4, 1).tcp(1, 22, "S")},
        {"an undeclared port over IPv6",
         from_client().ipv6("2001:db8:1::2", "2001:db8:1::1").tcp(1, 22, "S")},
        {"ping of the gateway", from_client().ipv4("10.80.1.2", "10.80.1.1").icmp(8, 0)},
        {"an undeclared port of the gateway", from_client().ipv4("10.80.1.2", "10.80.1.1").tcp(1, 22, "S")},
        {"UDP to a port that is a TCP frontend", from_client().ipv4("10.80.1.2", "10.80.1.1").udp(1, 8000)},
        {"a neighbour of the NodePort number",
         from_client().ipv4("10.80.1.2", "10.80.1.1").tcp(1, 30081, "S")},
        {"a fragment to the gateway",
         from_client().ipv4("10.80.1.2", "10.80.1.1").udp(1, 53).more_fragments()},
        {"broadcast", from_client().to_mac("ff:ff:ff:ff:ff:ff").ipv4("10.80.1.2", "10.80.1.255").udp(1, 67)},
        {"DHCP", from_client().to_mac("ff:ff:ff:ff:ff:ff").ipv4("0.0.0.0", "255.255.255.255").udp(68, 67)},
        {"routed traffic", from_client().ipv4("10.80.1.2", "192.0.2.77").tcp(1, 80, "S")},
        {"a reply without a flow", eth()
                                       .from_mac(backend_mac(11).to_string())
                                       .to_mac(kUpMac.to_string())
                                       .ipv4("10.80.2.11", "10.80.1.1")
                                       .tcp(9376, 5000, "A")},
    };
    for (const PuntCase& c : cases) {
        const std::vector<uint8_t> frame = c.packet.build();
        const Outcome outcome = gateway.send(frame);
        EXPECT_EQ(outcome.verdict, Verdict::Punt)
            << c.name << ": " << to_string(outcome.verdict) << " "
            << (outcome.verdict == Verdict::Drop ? text_of(outcome.reason).counter : "");
        EXPECT_EQ(outcome.frame, frame) << c.name << ": Linux must see the frame as it came";
    }
    for (const L4Port port : {L4Port{30080}, L4Port{8000}}) {
        EXPECT_EQ(
            gateway.send(from_client().ipv4("10.80.1.2", "10.80.1.1").tcp(1, port, "S").build()).verdict,
            Verdict::Transmit)
            << port;
    }
    EXPECT_EQ(gateway.send(from_client().ipv4("10.80.1.2", "10.80.2.1").tcp(1, 30080, "S").build()).verdict,
              Verdict::Transmit)
        << "NODEPORT-001: on every address";
}

// NODEPORT-004: a NodePort number on an address that is only a VIP is not a frontend.
TEST(NodePorts, DoNotAnswerOnAVip_NODEPORT004) {
    VirtualGateway gateway;
    TestService node = web();
    node.node_ports = {30080};
    gateway.publish({node});
    EXPECT_EQ(gateway.send(from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(1, 30080, "S").build()).reason,
              DropReason::VipPortClosed);
}

// LB-021: closed ports of addresses that belong to Services only may be answered. Packets that must not be
// answered are still dropped silently.
TEST(ClosedVipPorts, AreAnsweredWhereTheOperatorWantsIt_LB021) {
    VirtualGateway gateway;
    TestService on_host = web();
    on_host.name = "on-host";
    on_host.frontends = {{kUpAddress, 80}};
    gateway.publish({web(), on_host});
    const auto to_vip = [] { return from_client().ipv4("10.80.1.2", "80.11.12.10"); };
    EXPECT_EQ(gateway.send(to_vip().tcp(40000, 8080, "S").build()).reason, DropReason::VipPortClosed)
        << "silence is the default";
    EXPECT_EQ(gateway.send(to_vip().udp(40000, 53).build()).reason, DropReason::VipPortClosed);

    gateway.set_rejects_closed_vip_ports(true);
    const Outcome reset = gateway.send(to_vip().tcp(40000, 8080, "S").build());
    ASSERT_EQ(reset.verdict, Verdict::Transmit);
    packet::Parsed parsed;
    ASSERT_TRUE(packet::parse(reset.frame, parsed));
    EXPECT_TRUE(parsed.tcp_flags.has(packet::TcpFlags::kRst));
    EXPECT_EQ(parsed.key, (packet::FlowKey{kVip, kClient, 8080, 40000, Protocol::Tcp, {}}));
    const Outcome unreachable = gateway.send(to_vip().udp(40000, 53).build());
    ASSERT_EQ(unreachable.verdict, Verdict::Transmit);
    EXPECT_EQ(unreachable.frame[14 + 9], 1) << "ICMP";
    EXPECT_EQ(unreachable.frame[14 + 20], 3) << "destination unreachable";
    EXPECT_EQ(unreachable.frame[14 + 21], 3) << "port";

    EXPECT_EQ(gateway.send(to_vip().tcp(40000, 8080, "R").build()).reason, DropReason::VipPortClosed)
        << "a RST is never answered";
    EXPECT_EQ(gateway.send(to_vip().tcp(40000, 8080, "SF").build()).reason, DropReason::VipPortClosed);
    // An address that Linux has as well belongs to Linux on its other ports (XIP-003).
    EXPECT_EQ(
        gateway.send(from_client().ipv4("10.80.1.2", "10.80.1.1").tcp(40000, 8080, "S").build()).verdict,
        Verdict::Punt);
    EXPECT_EQ(gateway.connections(), 0U);
}

// A VIP that Linux has for the link only answers echo and ND, and otherwise is not an address of the host.
TEST(ClosedVipPorts, APresentVipAnswersTheLinkAndIsNotTheHosts_LB018_LB021_ICMP007) {
    VirtualGateway gateway;
    TestService over_ipv6 = web();
    over_ipv6.name = "over-ipv6";
    over_ipv6.frontends = {{*IpAddr::parse(kVip6), 80}};
    gateway.publish({web(), over_ipv6});
    gateway.set_present_vips({kVip, *IpAddr::parse(kVip6)});
    const auto ip4 = [] { return from_client().ipv4("10.80.1.2", "80.11.12.10"); };
    const auto ip6 = [](const char* from = "fd00:80:1::2") { return from_client().ipv6(from, kVip6); };
    EXPECT_EQ(gateway.send(ip4().icmp(8, 0).build()).verdict, Verdict::Punt);
    EXPECT_EQ(gateway.send(ip6().icmp(128, 0).build()).verdict, Verdict::Punt);
    EXPECT_EQ(gateway.send(ip6().icmp(135, 0).build()).verdict, Verdict::Punt)
        << "a neighbour asks whether its entry still holds";
    EXPECT_EQ(gateway.send(ip6("fe80::2").icmp(135, 0).build()).verdict, Verdict::Punt);
    EXPECT_EQ(gateway.send(ip6().icmp(136, 0).build()).verdict, Verdict::Punt)
        << "the answer to Linux's own question";

    for (const auto& frame :
         {ip4().tcp(40000, 8080, "S").build(), ip4().udp(40000, 53).build(), ip4().icmp(13, 0).build(),
          ip4().icmp(5, 1).build(), ip6().tcp(40000, 8080, "S").build(), ip6().icmp(137, 0).build(),
          ip6("fe80::2").tcp(40000, 80, "S").build()}) {
        const Outcome outcome = gateway.send(frame);
        EXPECT_EQ(outcome.verdict, Verdict::Drop);
        EXPECT_EQ(outcome.reason, DropReason::VipPortClosed);
    }
    EXPECT_EQ(gateway.send(ip4().tcp(40000, 80, "S").build()).verdict, Verdict::Transmit)
        << "what is served is served";
    gateway.set_rejects_closed_vip_ports(true);
    EXPECT_EQ(gateway.send(ip4().tcp(40000, 8080, "S").build()).verdict, Verdict::Transmit) << "a RST";

    gateway.set_present_vips({});
    EXPECT_EQ(gateway.send(ip4().icmp(8, 0).build()).verdict, Verdict::Transmit)
        << "the gateway's own answer";
    EXPECT_EQ(gateway.send(ip6().icmp(135, 0).build()).reason, DropReason::VipPortClosed);
}

TEST(ClosedVipPorts, AnswersAreLimited_LB021_REJ003) {
    VirtualGateway gateway(VirtualGateway::Options{.rejects_per_second = 2, .rejects_burst = 2});
    gateway.publish({web()});
    gateway.set_rejects_closed_vip_ports(true);
    const auto syn = from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40000, 8080, "S").build();
    EXPECT_EQ(gateway.send(syn).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(syn).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(syn).reason, DropReason::RejectLimited);
}

}  // namespace admission_test
}  // namespace penstock::test
