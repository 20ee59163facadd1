// SPDX-License-Identifier: Apache-2.0
// IPv6 frames in, IPv6 frames out, through the real stages. Covers cases without an IPv4 equivalent: the flow
// label, extension headers, checksums of the transport only, ICMPv6 in answers; and the separation of the
// families of a dual-stack Service.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace forwarding6_test {

constexpr const char* kVip = "80.11.12.10";
constexpr const char* kVip6 = "2001:db8:80::10";
constexpr const char* kOtherVip6 = "2001:db8:80::11";
const std::string kClientText = kClient6.to_string();
const std::string kClusterText = kClusterAddress6.to_string();

TestService web(lb::SourceMode source = lb::SourceMode::Translate) {
    return {.frontends = {{*IpAddr::parse(kVip6), 80}, {*IpAddr::parse(kOtherVip6), 80}},
            .backends = {11},
            .source = source};
}
TestService dns(lb::SourceMode source = lb::SourceMode::Translate) {
    return {.name = "dns",
            .protocol = Protocol::Udp,
            .frontends = {{*IpAddr::parse(kVip6), 53}},
            .backends = {11},
            .backend_port = 5353,
            .source = source};
}

PacketBuilder from_client() {
    return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
}
PacketBuilder from_backend() {
    return eth().from_mac(backend_mac(11).to_string()).to_mac(kClusterMac.to_string());
}
PacketBuilder to_client() {
    return eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string());
}
PacketBuilder to_backend() {
    return eth().from_mac(kClusterMac.to_string()).to_mac(backend_mac(11).to_string());
}
const std::string kBackendText = backend_address(11, IpFamily::V6).to_string();

// The SNAT port that the gateway chose.
uint16_t source_port_of(const Outcome& outcome) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(outcome.frame, parsed).has_value()) << to_scapy(outcome.frame);
    return parsed.key.source_port;
}

TEST(FullNat6, TranslatesTcpBothWaysAndKeepsTheFlowLabel_ETP001_NAT001_NAT002_SVC009) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const Outcome syn = gateway.send(from_client()
                                         .ipv6(kClientText, kVip6)
                                         .hop_limit(63)
                                         .flow_label(0xabcde)
                                         .tos(0x28)
                                         .tcp(40000, 80, "S")
                                         .seq(7)
                                         .build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    EXPECT_EQ(syn.egress, kCluster);
    const uint16_t port = source_port_of(syn);
    EXPECT_GE(port, 1024);
    EXPECT_TRUE(same_frame(syn.frame, to_backend()
                                          .ipv6(kClusterText, kBackendText)
                                          .hop_limit(62)
                                          .flow_label(0xabcde)
                                          .tos(0x28)
                                          .tcp(port, 9376, "S")
                                          .seq(7)
                                          .build()));
    const Outcome answer = gateway.send(from_backend()
                                            .ipv6(kBackendText, kClusterText)
                                            .flow_label(0x54321)
                                            .tcp(9376, port, "SA")
                                            .seq(90)
                                            .ack(8)
                                            .payload("hello")
                                            .build(),
                                        kCluster);
    ASSERT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_EQ(answer.egress, kUp);
    EXPECT_TRUE(same_frame(answer.frame, to_client()
                                             .ipv6(kVip6, kClientText)
                                             .hop_limit(63)
                                             .flow_label(0x54321)
                                             .tcp(80, 40000, "SA")
                                             .seq(90)
                                             .ack(8)
                                             .payload("hello")
                                             .build()));
    EXPECT_EQ(gateway.connections(), 1u);
    const stats::ServiceCounters& counters = gateway.service_counters(0, "web");
    EXPECT_EQ(counters.forward().packets.read(), 1u);
    EXPECT_EQ(counters.reverse().packets.read(), 1u);
    EXPECT_EQ(counters.forward().bytes.read(), 60u) << "IP bytes: 40 of IPv6, 20 of TCP";
    EXPECT_EQ(counters.reverse().bytes.read(), 65u);
}

TEST(FullNat6, TranslatesUdpBothWays_ETP001_NAT001_NAT002) {
    VirtualGateway gateway;
    gateway.publish({dns()});
    const Outcome query =
        gateway.send(from_client().ipv6(kClientText, kVip6).udp(5000, 53).payload("query").build());
    ASSERT_EQ(query.verdict, Verdict::Transmit);
    const uint16_t port = source_port_of(query);
    EXPECT_TRUE(same_frame(query.frame, to_backend()
                                            .ipv6(kClusterText, kBackendText)
                                            .hop_limit(63)
                                            .udp(port, 5353)
                                            .payload("query")
                                            .build()));
    const Outcome answer = gateway.send(
        from_backend().ipv6(kBackendText, kClusterText).udp(5353, port).payload("answers").build(), kCluster);
    ASSERT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(
        answer.frame,
        to_client().ipv6(kVip6, kClientText).hop_limit(63).udp(53, 5000).payload("answers").build()));
}

TEST(KeptSource6, LeavesTheClientsAddressAndPort_ETP002_NAT003) {
    VirtualGateway gateway;
    gateway.publish({web(lb::SourceMode::Keep), dns(lb::SourceMode::Keep)});
    constexpr const char* kFarClient = "2001:db8:99::7";  // behind the router on the uplink
    const Outcome syn = gateway.send(from_client().ipv6(kFarClient, kVip6).tcp(40000, 80, "S").build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(
        syn.frame, to_backend().ipv6(kFarClient, kBackendText).hop_limit(63).tcp(40000, 9376, "S").build()));
    const Outcome syn_ack =
        gateway.send(from_backend().ipv6(kBackendText, kFarClient).tcp(9376, 40000, "SA").build(), kCluster);
    EXPECT_TRUE(same_frame(syn_ack.frame,
                           to_client().ipv6(kVip6, kFarClient).hop_limit(63).tcp(80, 40000, "SA").build()));

    const Outcome query =
        gateway.send(from_client().ipv6(kFarClient, kVip6).udp(5000, 53).payload("q").build());
    ASSERT_EQ(query.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(
        query.frame,
        to_backend().ipv6(kFarClient, kBackendText).hop_limit(63).udp(5000, 5353).payload("q").build()));
    const Outcome answer = gateway.send(
        from_backend().ipv6(kBackendText, kFarClient).udp(5353, 5000).payload("a").build(), kCluster);
    EXPECT_TRUE(same_frame(
        answer.frame, to_client().ipv6(kVip6, kFarClient).hop_limit(63).udp(53, 5000).payload("a").build()));
    EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 0u);
}

// One client socket, two frontends, one endpoint, source kept: the second flow is translated, because
// otherwise both would have one reverse tuple.
TEST(KeptSource6, OneSocketThroughTwoFrontendsStaysTwoFlows_NAT003) {
    VirtualGateway gateway;
    gateway.publish({web(lb::SourceMode::Keep)});
    const Outcome one = gateway.send(from_client().ipv6(kClientText, kVip6).tcp(40000, 80, "S").build());
    EXPECT_TRUE(same_frame(
        one.frame, to_backend().ipv6(kClientText, kBackendText).hop_limit(63).tcp(40000, 9376, "S").build()));
    const Outcome two = gateway.send(from_client().ipv6(kClientText, kOtherVip6).tcp(40000, 80, "S").build());
    ASSERT_EQ(two.verdict, Verdict::Transmit);
    const uint16_t port = source_port_of(two);
    EXPECT_TRUE(same_frame(
        two.frame, to_backend().ipv6(kClusterText, kBackendText).hop_limit(63).tcp(port, 9376, "S").build()));
    const Outcome answer =
        gateway.send(from_backend().ipv6(kBackendText, kClusterText).tcp(9376, port, "SA").build(), kCluster);
    EXPECT_TRUE(same_frame(
        answer.frame, to_client().ipv6(kOtherVip6, kClientText).hop_limit(63).tcp(80, 40000, "SA").build()));
}

TEST(Hairpin6, IsTranslatedWhateverThePolicy_NAT005) {
    VirtualGateway gateway;
    gateway.publish({web(lb::SourceMode::Keep)});
    const Outcome syn =
        gateway.send(from_backend().ipv6(kBackendText, kVip6).tcp(40000, 80, "S").build(), kCluster);
    ASSERT_EQ(syn.verdict, Verdict::Transmit);
    EXPECT_EQ(syn.egress, kCluster);
    const uint16_t port = source_port_of(syn);
    EXPECT_TRUE(same_frame(
        syn.frame, to_backend().ipv6(kClusterText, kBackendText).hop_limit(63).tcp(port, 9376, "S").build()));
    const Outcome answer =
        gateway.send(from_backend().ipv6(kBackendText, kClusterText).tcp(9376, port, "SA").build(), kCluster);
    EXPECT_TRUE(same_frame(
        answer.frame, to_backend().ipv6(kVip6, kBackendText).hop_limit(63).tcp(80, 40000, "SA").build()));
}

TEST(ExtensionHeaders, ArePassedOnAsTheyCame_NAT001) {
    VirtualGateway gateway;
    gateway.publish({dns()});
    const Outcome query = gateway.send(from_client()
                                           .ipv6(kClientText, kVip6)
                                           .hop_by_hop()
                                           .destination_options(1)
                                           .udp(5000, 53)
                                           .payload("q")
                                           .build());
    ASSERT_EQ(query.verdict, Verdict::Transmit) << text_of(query.reason).counter;
    EXPECT_TRUE(same_frame(query.frame, to_backend()
                                            .ipv6(kClusterText, kBackendText)
                                            .hop_limit(63)
                                            .hop_by_hop()
                                            .destination_options(1)
                                            .udp(source_port_of(query), 5353)
                                            .payload("q")
                                            .build()));
}

TEST(NodePorts6, AnswerOnEveryAddressOfTheGateway_NODEPORT001) {
    VirtualGateway gateway;
    TestService node = web();
    node.node_ports = {30080};
    gateway.publish({node});
    for (const IpAddr& address : {kUpAddress6, kClusterAddress6}) {
        const Outcome syn =
            gateway.send(from_client().ipv6(kClientText, address.to_string()).tcp(40000, 30080, "S").build());
        ASSERT_EQ(syn.verdict, Verdict::Transmit) << address.to_string();
        const Outcome answer = gateway.send(
            from_backend().ipv6(kBackendText, kClusterText).tcp(9376, source_port_of(syn), "SA").build(),
            kCluster);
        EXPECT_TRUE(same_frame(answer.frame, to_client()
                                                 .ipv6(address.to_string(), kClientText)
                                                 .hop_limit(63)
                                                 .tcp(30080, 40000, "SA")
                                                 .build()));
    }
    EXPECT_EQ(gateway.send(from_client().ipv6(kClientText, kVip6).tcp(40000, 30080, "S").build()).reason,
              DropReason::VipPortClosed);
}

// The same ports of both families at once: four tuples that differ in their addresses only.
TEST(DualStack, EachFamilyIsServedByItsOwn_DUAL001_DUAL002) {
    VirtualGateway gateway;
    TestService both = web();
    both.frontends.emplace_back(*IpAddr::parse(kVip), 80);
    gateway.publish({both});
    const std::vector<Outcome> opened =
        gateway.send_burst({from_client().ipv4("10.80.1.2", kVip).tcp(40000, 80, "S").build(),
                            from_client().ipv6(kClientText, kVip6).tcp(40000, 80, "S").build()});
    ASSERT_EQ(opened[0].verdict, Verdict::Transmit);
    ASSERT_EQ(opened[1].verdict, Verdict::Transmit);
    const uint16_t port4 = source_port_of(opened[0]), port6 = source_port_of(opened[1]);
    EXPECT_TRUE(same_frame(
        opened[0].frame, to_backend().ipv4("10.80.2.1", "10.80.2.11").ttl(63).tcp(port4, 9376, "S").build()));
    EXPECT_TRUE(same_frame(
        opened[1].frame,
        to_backend().ipv6(kClusterText, kBackendText).hop_limit(63).tcp(port6, 9376, "S").build()));
    const std::vector<Outcome> answers =
        gateway.send_burst({from_backend().ipv6(kBackendText, kClusterText).tcp(9376, port6, "SA").build(),
                            from_backend().ipv4("10.80.2.11", "10.80.2.1").tcp(9376, port4, "SA").build()},
                           kCluster);
    EXPECT_TRUE(same_frame(answers[0].frame,
                           to_client().ipv6(kVip6, kClientText).hop_limit(63).tcp(80, 40000, "SA").build()));
    EXPECT_TRUE(same_frame(answers[1].frame,
                           to_client().ipv4(kVip, "10.80.1.2").ttl(63).tcp(80, 40000, "SA").build()));
    EXPECT_EQ(gateway.connections(), 2u);
}

TEST(Rejects6, TcpGetsARst_REJ001_REJ002) {
    VirtualGateway gateway;
    TestService empty = web();
    empty.backends = {};
    gateway.publish({empty});
    const Outcome answer = gateway.send(from_client()
                                            .ipv6(kClientText, kVip6)
                                            .flow_label(0xabcde)
                                            .tcp(40000, 80, "S")
                                            .seq(1000)
                                            .payload("early")
                                            .build());
    ASSERT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_EQ(answer.egress, kUp);
    EXPECT_TRUE(same_frame(answer.frame, to_client()
                                             .ipv6(kVip6, kClientText)
                                             .hop_limit(64)
                                             .tcp(80, 40000, "RA")
                                             .seq(0)
                                             .ack(1006)
                                             .window(0)
                                             .build()));
    EXPECT_EQ(gateway.service_counters(0, "web").rejected.read(), 1u);
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST(Rejects6, MidStreamWithoutAFlowGetsARst_REJ005) {
    VirtualGateway gateway;
    gateway.publish({web()});
    const Outcome answer =
        gateway.send(from_client().ipv6(kClientText, kVip6).tcp(40000, 80, "A").seq(1000).ack(77).build());
    ASSERT_EQ(answer.verdict, Verdict::Transmit);
    EXPECT_TRUE(same_frame(answer.frame, to_client()
                                             .ipv6(kVip6, kClientText)
                                             .hop_limit(64)
                                             .tcp(80, 40000, "R")
                                             .seq(77)
                                             .ack(0)
                                             .window(0)
                                             .build()));
}

// RFC 4443, 3.1 and 2.4 (c): port unreachable, quoting as much as fits 1,280 bytes; the transport's checksum
// is the client's own.
TEST(Rejects6, UdpGetsPortUnreachable_REJ001_REJ002) {
    VirtualGateway gateway;
    TestService empty = dns();
    empty.backends = {};
    gateway.publish({empty});
    for (const size_t payload_bytes : {size_t{5}, size_t{1'400}}) {
        const std::vector<uint8_t> query = from_client()
                                               .ipv6(kClientText, kVip6)
                                               .udp(5000, 53)
                                               .payload(std::string(payload_bytes, 'q'))
                                               .build();
        const Outcome answer = gateway.send(query);
        ASSERT_EQ(answer.verdict, Verdict::Transmit) << text_of(answer.reason).counter;
        constexpr size_t kEthernet = 14, kHeaders = 40 + 8, kIpBytesMax = 1'280;
        const size_t quoted = std::min(query.size() - kEthernet, kIpBytesMax - kHeaders);
        const std::vector<uint8_t> quote(query.begin() + kEthernet,
                                         query.begin() + static_cast<std::ptrdiff_t>(kEthernet + quoted));
        EXPECT_TRUE(same_frame(
            answer.frame,
            to_client().ipv6(kVip6, kClientText).hop_limit(64).tos(0xc0).icmp(1, 4).payload(quote).build()));
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST(Rejects6, AreForThoseWhoseChecksumIsRight_REJ002) {
    VirtualGateway gateway;
    TestService empty = web(), silent = dns();
    empty.backends = silent.backends = {};
    gateway.publish({empty, silent});
    EXPECT_EQ(
        gateway.send(from_client().ipv6(kClientText, kVip6).tcp(40000, 80, "S").l4_checksum(0x1234).build())
            .reason,
        DropReason::BadL4Checksum);
    EXPECT_EQ(
        gateway
            .send(
                from_client().ipv6(kClientText, kVip6).udp(5000, 53).payload("q").l4_checksum(0x1234).build())
            .reason,
        DropReason::BadL4Checksum);
}

}  // namespace forwarding6_test
}  // namespace penstock::test
