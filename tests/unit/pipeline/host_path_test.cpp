// SPDX-License-Identifier: Apache-2.0
// The gateway host as an endpoint and as a client. Packets to its own addresses are delivered to Linux,
// packets of such flows from Linux are translated, and all other packets from Linux leave unchanged.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/frame_diff.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace host_path_test {

using packet::FlowKey;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");
constexpr uint8_t kHostItself =
    1;  // as a backend: 10.80.2.1 and fd00:80:2::1, the cluster twin's own addresses
constexpr L4Port kServerPort = 9376;

const IpAddr& vip_of(IpFamily family) {
    return family == IpFamily::V4 ? kVip : kVip6;
}
IpAddr far_client(IpFamily family, uint8_t host) {
    return family == IpFamily::V4
               ? IpAddr::v4(198, 51, 100, host)
               : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, host});
}

std::vector<uint8_t> frame_of(const FlowKey& key, const MacAddr& from, const MacAddr& to, const char* flags,
                              uint8_t ttl = 64) {
    PacketBuilder packet = eth().from_mac(from.to_string()).to_mac(to.to_string());
    key.source.is_v4() ? packet.ipv4(key.source.to_string(), key.destination.to_string()).ttl(ttl)
                       : packet.ipv6(key.source.to_string(), key.destination.to_string()).hop_limit(ttl);
    key.protocol == Protocol::Tcp ? packet.tcp(key.source_port, key.destination_port, flags)
                                  : packet.udp(key.source_port, key.destination_port);
    return packet.build();
}
std::vector<uint8_t> from_client(const FlowKey& key, const char* flags = "S") {
    return frame_of(key, kClientMac, kUpMac, flags);
}
std::vector<uint8_t> from_backend(const FlowKey& key, const char* flags = "SA") {
    return frame_of(key, backend_mac(key.source.bytes()[15]), kClusterMac, flags);
}
// Linux sends by the uplink's router.
std::vector<uint8_t> from_linux(const FlowKey& key, const char* flags = "SA") {
    return frame_of(key, kUpMac, kClientMac, flags);
}
packet::Parsed parsed_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed;
}
FlowKey key_of(const std::vector<uint8_t>& frame) {
    return parsed_of(frame).key;
}
MacAddr destination_mac(const std::vector<uint8_t>& frame) {
    MacAddr mac;
    std::copy_n(frame.begin(), mac.bytes.size(), mac.bytes.begin());
    return mac;
}

FlowKey client_key(IpFamily family, Protocol protocol, L4Port port = 40'000, uint8_t host = 7) {
    return {far_client(family, host), vip_of(family), port, 80, protocol, {}};
}

TestService served_by(std::vector<uint8_t> backends, Protocol protocol = Protocol::Tcp) {
    return {.name = protocol == Protocol::Tcp ? "web" : "dns",
            .protocol = protocol,
            .frontends = {{kVip, 80}, {kVip6, 80}},
            .backends = std::move(backends),
            .backend_port = kServerPort};
}

using Variant = std::tuple<uint32_t, IpFamily, Protocol, lb::SourceMode>;
class HostEndpoint : public testing::TestWithParam<Variant> {
 protected:
    uint32_t workers = std::get<0>(GetParam());
    IpFamily family = std::get<1>(GetParam());
    Protocol protocol = std::get<2>(GetParam());
    lb::SourceMode source = std::get<3>(GetParam());
    IpAddr host = family == IpFamily::V4 ? kClusterAddress : kClusterAddress6;
    Prng random;
    WorkerId any_worker() { return {static_cast<uint8_t>(random.below(workers))}; }
};
INSTANTIATE_TEST_SUITE_P(All, HostEndpoint,
                         testing::Combine(testing::Values(1u, 2u, 5u),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(Protocol::Tcp, Protocol::Udp),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep)));

// Whatever queue a client's packet arrives on, and whatever worker serves the twin.
TEST_P(HostEndpoint, GetsTheClientsPacketsAndIsAnsweredForAsTheVip_EP007_NAT001) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    TestService service = served_by({kHostItself}, protocol);
    service.source = source;
    gateway.publish({service});
    for (uint8_t n = 0; n < 40; ++n) {
        const FlowKey outside = client_key(family, protocol, static_cast<L4Port>(40'000 + n), n);
        const Outcome in = gateway.send(from_client(outside), kUp, any_worker());
        ASSERT_EQ(in.verdict, Verdict::Punt) << text_of(in.reason).counter;
        EXPECT_EQ(in.egress, kUp) << "the twin that Linux routes the client by";
        EXPECT_EQ(destination_mac(in.frame), kUpMac);
        const FlowKey inside = key_of(in.frame);
        EXPECT_EQ(inside.source, outside.source)
            << "Linux takes no packet from outside with an address of its own";
        EXPECT_EQ(inside.destination, host);
        EXPECT_EQ(inside.destination_port, kServerPort);
        if (source == lb::SourceMode::Keep || workers == 1) {
            EXPECT_EQ(inside.source_port, outside.source_port);
        }
        EXPECT_TRUE(same_frame(in.frame, frame_of(inside, kClientMac, kUpMac, "S", 63))) << "checksums too";

        const Outcome out = gateway.send_from_host(from_linux(inside.reversed()), kUp, any_worker());
        ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
        EXPECT_EQ(out.egress, kUp);
        EXPECT_TRUE(same_frame(out.frame, frame_of(outside.reversed(), kUpMac, kClientMac, "SA", 63)));

        const Outcome again = gateway.send(from_client(outside, "A"), kUp, any_worker());
        ASSERT_EQ(again.verdict, Verdict::Punt);
        EXPECT_EQ(key_of(again.frame), inside);
    }
    EXPECT_EQ(gateway.connections(), 40u);
    EXPECT_EQ(gateway.count(stats::Counter::NewConnections), 40u);
}

// The endpoint's address and port are a NodePort as well. A flow for which the host was chosen stays with the
// host, and no further choice is made.
TEST_P(HostEndpoint, IsNoFrontendOnceItWasChosen_EP007) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    TestService service = served_by({kHostItself}, protocol);
    service.source = source;
    TestService other = served_by({11}, protocol);
    other.name = "other";
    other.frontends = {};
    other.node_ports = {kServerPort};
    gateway.publish({service, other});
    const FlowKey outside = client_key(family, protocol);
    const Outcome in = gateway.send(from_client(outside), kUp, any_worker());
    ASSERT_EQ(in.verdict, Verdict::Punt);
    EXPECT_EQ(key_of(in.frame).destination, host);
    EXPECT_EQ(gateway.connections(), 1u);
    const Outcome out = gateway.send_from_host(from_linux(key_of(in.frame).reversed()), kUp, any_worker());
    ASSERT_EQ(out.verdict, Verdict::Transmit);
    EXPECT_EQ(key_of(out.frame), outside.reversed());

    FlowKey direct = outside;
    direct.destination = host;
    direct.destination_port = kServerPort;
    const Outcome through = gateway.send(from_client(direct), kUp, any_worker());
    ASSERT_EQ(through.verdict, Verdict::Transmit) << "a client that asks for the NodePort gets its Service";
    EXPECT_EQ(key_of(through.frame).destination, backend_address(11, family));
}

// One client socket reaches the host through two frontends: the second flow gets another port, so that the
// answers can be distinguished.
TEST_P(HostEndpoint, TellsFlowsOfOneClientSocketApart_EP007) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    TestService service = served_by({kHostItself}, protocol);
    service.source = source;
    service.frontends.push_back({kVip, 81});
    service.frontends.push_back({kVip6, 81});
    gateway.publish({service});
    for (uint8_t n = 0; n < 20; ++n) {
        FlowKey outside = client_key(family, protocol, 5060, n);
        const FlowKey first = key_of(gateway.send(from_client(outside), kUp, any_worker()).frame);
        FlowKey beside = outside;
        beside.destination_port = 81;
        const Outcome second = gateway.send(from_client(beside), kUp, any_worker());
        ASSERT_EQ(second.verdict, Verdict::Punt) << text_of(second.reason).counter;
        EXPECT_EQ(key_of(second.frame).source, outside.source);
        EXPECT_NE(key_of(second.frame).source_port, first.source_port);
        EXPECT_EQ(key_of(gateway.send_from_host(from_linux(first.reversed()), kUp, any_worker()).frame),
                  outside.reversed());
        EXPECT_EQ(
            key_of(
                gateway.send_from_host(from_linux(key_of(second.frame).reversed()), kUp, any_worker()).frame),
            beside.reversed());
    }
}

class HostClient : public testing::TestWithParam<std::tuple<uint32_t, IpFamily, Protocol>> {
 protected:
    uint32_t workers = std::get<0>(GetParam());
    IpFamily family = std::get<1>(GetParam());
    Protocol protocol = std::get<2>(GetParam());
    IpAddr host = family == IpFamily::V4 ? kUpAddress : kUpAddress6;
    IpAddr cluster = family == IpFamily::V4 ? kClusterAddress : kClusterAddress6;
    FlowKey to_vip{host, vip_of(family), 50'000, 80, protocol, {}};
    Prng random;
    WorkerId any_worker() { return {static_cast<uint8_t>(random.below(workers))}; }
};
INSTANTIATE_TEST_SUITE_P(All, HostClient,
                         testing::Combine(testing::Values(1u, 2u, 5u),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(Protocol::Tcp, Protocol::Udp)));

TEST_P(HostClient, ReachesAServiceAndIsAnswered_ETP006) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    gateway.publish({served_by({11}, protocol)});
    for (L4Port n = 0; n < 40; ++n) {
        FlowKey asked = to_vip;
        asked.source_port = static_cast<L4Port>(asked.source_port + n);
        const Outcome out = gateway.send_from_host(from_linux(asked, "S"), kUp, any_worker());
        ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
        EXPECT_EQ(out.egress, kCluster);
        const FlowKey inside = key_of(out.frame);
        EXPECT_EQ(inside.source, cluster);
        EXPECT_EQ(inside.destination, backend_address(11, family));
        const Outcome answer = gateway.send(from_backend(inside.reversed()), kCluster, any_worker());
        ASSERT_EQ(answer.verdict, Verdict::Punt) << text_of(answer.reason).counter;
        EXPECT_EQ(key_of(answer.frame), asked.reversed());
        EXPECT_EQ(answer.egress, kUp) << "the twin that Linux routes the VIP by";
        EXPECT_EQ(destination_mac(answer.frame), kUpMac);
        const Outcome again = gateway.send_from_host(from_linux(asked, "A"), kCluster, any_worker());
        EXPECT_EQ(key_of(again.frame), inside) << "even where Linux has changed its route";
    }
    EXPECT_EQ(gateway.connections(), 40u);
}

// Policy Local keeps clients' addresses and uses only endpoints of this node; neither applies to the host.
TEST_P(HostClient, UsesTheClusterSetAndIsTranslated_ETP006_NAT003) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    TestService local = served_by({11}, protocol);
    local.source = lb::SourceMode::Keep;
    local.inside = TestService::Inside{.source = lb::SourceMode::Keep, .backends = {12}};
    gateway.publish({local});
    const Outcome out = gateway.send_from_host(from_linux(to_vip, "S"), kUp, any_worker());
    ASSERT_EQ(out.verdict, Verdict::Transmit) << text_of(out.reason).counter;
    const FlowKey inside = key_of(out.frame);
    EXPECT_EQ(inside.destination, backend_address(12, family));
    EXPECT_EQ(inside.source, cluster);
    EXPECT_EQ(key_of(gateway.send(from_backend(inside.reversed()), kCluster, any_worker()).frame),
              to_vip.reversed());
    const Outcome client = gateway.send(from_client(client_key(family, protocol)), kUp, any_worker());
    EXPECT_EQ(key_of(client.frame).destination, backend_address(11, family))
        << "a client outside keeps the policy's set";
}

TEST_P(HostClient, IsLetInWhereAnyOfItsAddressesIsInTheRanges_SRC007) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    TestService guarded = served_by({11}, protocol);
    guarded.source_ranges = {
        {*Prefix::parse("10.80.2.1/32"), *Prefix::parse("fd00:80:2::1/128")}};  // the other twin's
    gateway.publish({guarded});
    EXPECT_EQ(gateway.send_from_host(from_linux(to_vip, "S"), kUp, any_worker()).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.send(from_client(client_key(family, protocol)), kUp, any_worker()).reason,
              DropReason::SourceNotAllowed);

    guarded.source_ranges = {{*Prefix::parse("192.0.2.0/24"), *Prefix::parse("2001:db8:77::/64")}};
    gateway.publish({guarded});
    FlowKey another = to_vip;
    ++another.source_port;
    EXPECT_EQ(gateway.send_from_host(from_linux(another, "S"), kUp, any_worker()).reason,
              DropReason::SourceNotAllowed);
}

// The edge of SRC-007: Linux has the VIP of one Service as an address, and sends requests to another Service
// from it.
TEST_P(HostClient, MayAskFromAVipOfItsOwn_SRC007) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    TestService guarded = served_by({11}, protocol);
    guarded.source_ranges = {{*Prefix::parse("10.80.2.1/32"), *Prefix::parse("fd00:80:2::1/128")}};
    TestService own = served_by({12}, protocol);
    own.name = "own";
    own.frontends = {{host, 80}};
    gateway.publish({guarded, own});
    const Outcome out = gateway.send_from_host(from_linux(to_vip, "S"), kUp, any_worker());
    ASSERT_EQ(out.verdict, Verdict::Transmit);
    EXPECT_EQ(key_of(gateway.send(from_backend(key_of(out.frame).reversed()), kCluster, any_worker()).frame),
              to_vip.reversed());
}

TEST_P(HostClient, IsRefusedAloud_REJ001) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    gateway.publish({served_by({}, protocol)});
    const Outcome refused = gateway.send_from_host(from_linux(to_vip, "S"), kUp, any_worker());
    ASSERT_EQ(refused.verdict, Verdict::Punt) << text_of(refused.reason).counter;
    EXPECT_EQ(refused.egress, kUp);
    EXPECT_EQ(destination_mac(refused.frame), kUpMac);
    EXPECT_EQ(parsed_of(refused.frame).key.destination, host);
}

// Linux would treat its own packet as spoofed, so it is not sent back.
TEST_P(HostClient, IsNotItsOwnEndpoint_EP007) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    gateway.publish({served_by({kHostItself}, protocol)});
    const Outcome out = gateway.send_from_host(from_linux(to_vip, "S"), kUp, any_worker());
    EXPECT_EQ(out.verdict, Verdict::Drop);
    EXPECT_EQ(out.reason, DropReason::MartianSource);
    EXPECT_EQ(gateway.connections(), 0u);
}

// Packets of no flow go to the wire byte by byte, from whichever worker. They never return to the twin and
// are never lost.
TEST_P(HostClient, SendsAllElseUntouched_XIP003) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    TestService service = served_by({kHostItself, 11}, protocol);
    gateway.publish({service});
    const IpAddr client = far_client(family, 9);
    const IpAddr forwarded = family == IpFamily::V4 ? IpAddr::v4(172, 17, 0, 2) : *IpAddr::parse("fd17::2");
    const FlowKey keys[] = {
        {host, client, 50'000, 443, protocol, {}},  // a client program on the host
        {host,
         client,
         kServerPort,
         40'000,
         protocol,
         {}},  // the server answers a client that addressed it directly
        {host, vip_of(family), 50'000, 9999, protocol, {}},     // a closed port of a VIP
        {forwarded, vip_of(family), 50'000, 80, protocol, {}},  // forwarded by Linux for a container
        {host, backend_address(11, family), 50'000, kServerPort, protocol, {}},  // a probe of an endpoint
    };
    for (const FlowKey& key : keys) {
        const std::vector<uint8_t> frame = from_linux(key, "A");
        const Outcome out = gateway.send_from_host(frame, kUp, any_worker());
        EXPECT_EQ(out.verdict, Verdict::Transmit) << key.to_string() << " " << text_of(out.reason).counter;
        EXPECT_EQ(out.egress, kUp);
        EXPECT_TRUE(same_frame(out.frame, frame)) << key.to_string();
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

TEST(HostFrames, ThatNobodyCouldParseOrThatGoToAGroupLeaveUntouched) {
    VirtualGateway gateway;
    gateway.publish({served_by({11})});
    const auto linux_frame = [] { return eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string()); };
    std::vector<uint8_t> runt = linux_frame().ipv4("10.80.1.1", "80.11.12.10").tcp(50'000, 80, "S").build();
    runt.resize(20);
    std::vector<uint8_t> arp(60);
    std::copy_n(runt.begin(), 12, arp.begin());
    arp[12] = 0x08;
    arp[13] = 0x06;
    const std::vector<std::vector<uint8_t>> frames = {runt, arp,
                                                      eth()
                                                          .from_mac(kUpMac.to_string())
                                                          .to_mac("01:00:5e:00:00:12")
                                                          .ipv4("10.80.1.1", "224.0.0.18")
                                                          .udp(1, 2)
                                                          .build(),
                                                      eth()
                                                          .from_mac(kUpMac.to_string())
                                                          .to_mac("ff:ff:ff:ff:ff:ff")
                                                          .ipv4("10.80.1.1", "80.11.12.10")
                                                          .tcp(50'000, 80, "S")
                                                          .build(),
                                                      eth()
                                                          .from_mac("02:00:00:00:77:01")
                                                          .to_mac("01:00:5e:00:00:12")
                                                          .ipv4("10.80.1.1", "224.0.0.18")
                                                          .udp(1, 2)
                                                          .build()};
    for (const std::vector<uint8_t>& frame : frames) {
        const Outcome out = gateway.send_from_host(frame, kUp);
        EXPECT_EQ(out.verdict, Verdict::Transmit) << to_scapy(frame) << text_of(out.reason).counter;
        EXPECT_EQ(out.egress, kUp);
        EXPECT_EQ(out.frame, frame);
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

// Segments originated by the gateway to end a connection (DRAIN-004) reach an endpoint on the host as well.
TEST(HostEndpointReset, GoesToTheTwin_EP007) {
    VirtualGateway gateway;
    const TestService service = served_by({kHostItself});
    gateway.publish({service});
    const FlowKey outside = client_key(IpFamily::V4, Protocol::Tcp);
    const FlowKey inside = key_of(gateway.send(from_client(outside)).frame);
    gateway.send_from_host(from_linux(inside.reversed()), kUp);
    gateway.send(from_client(outside, "A"));
    gateway.order({gateway.backend_of(service, kHostItself), {}, 0});
    gateway.work_off_orders();
    size_t to_host = 0, to_client = 0;
    for (const Outcome& made_up : gateway.take_own_segments()) {
        const bool is_for_host = made_up.verdict == Verdict::Punt;
        EXPECT_EQ(key_of(made_up.frame), is_for_host ? inside : outside.reversed());
        EXPECT_EQ(destination_mac(made_up.frame), is_for_host ? kUpMac : kClientMac);
        EXPECT_EQ(made_up.egress, kUp);
        ++(is_for_host ? to_host : to_client);
    }
    EXPECT_GE(to_host, 1u);
    EXPECT_GE(to_client, 1u);
}

}  // namespace host_path_test
}  // namespace penstock::test
