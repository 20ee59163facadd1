// SPDX-License-Identifier: Apache-2.0
// Both families in one table, one burst and one set of capacities: neither may harm the other, whatever
// arrives.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/reverse_path.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace ipv6_test {

using packet::FlowKey;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");

// The n-th client socket of a family, behind the router on the uplink.
FlowKey client_flow(IpFamily family, uint32_t n, Protocol protocol = Protocol::Tcp) {
    const auto host = static_cast<uint8_t>(1 + n / 60'000);
    return {.source = family == IpFamily::V4
                          ? IpAddr::v4(198, 51, 100, host)
                          : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, host}),
            .destination = family == IpFamily::V4 ? kVip : kVip6,
            .source_port = static_cast<L4Port>(1 + n % 60'000),
            .destination_port = static_cast<L4Port>(protocol == Protocol::Tcp ? 80 : 53),
            .protocol = protocol};
}

PacketBuilder packet_of(const FlowKey& key, const char* flags, NicPortId port = kUp) {
    PacketBuilder packet =
        eth()
            .from_mac((port == kUp ? kClientMac : backend_mac(key.source.bytes()[15])).to_string())
            .to_mac((port == kUp ? kUpMac : kClusterMac).to_string());
    key.source.is_v4() ? packet.ipv4(key.source.to_string(), key.destination.to_string())
                       : packet.ipv6(key.source.to_string(), key.destination.to_string());
    key.protocol == Protocol::Tcp ? packet.tcp(key.source_port, key.destination_port, flags)
                                  : packet.udp(key.source_port, key.destination_port);
    return packet;
}
std::vector<uint8_t> from_client(const FlowKey& key, const char* flags = "S") {
    return packet_of(key, flags).build();
}
// The backend's answer to the flow that it sees as `inside`.
std::vector<uint8_t> answer_to(const FlowKey& inside, const char* flags = "SA") {
    return packet_of(inside.reversed(), flags, kCluster).build();
}
FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value()) << to_scapy(frame);
    return parsed.key;
}

std::vector<TestService> services(lb::SourceMode source = lb::SourceMode::Translate) {
    return {{.frontends = {{kVip, 80}, {kVip6, 80}}, .backends = {11}, .source = source},
            {.name = "dns",
             .protocol = Protocol::Udp,
             .frontends = {{kVip, 53}, {kVip6, 53}},
             .backends = {11},
             .source = source}};
}

constexpr IpFamily kFamilies[] = {IpFamily::V4, IpFamily::V6};
constexpr Protocol kProtocols[] = {Protocol::Tcp, Protocol::Udp};

// Both families, both protocols, new, known and repeated flows in one burst, and their answers in another.
TEST(MixedBurst, EveryPacketIsTranslatedAsIfItCameAlone_NAT001_DUAL001) {
    VirtualGateway gateway;
    gateway.publish(services());
    std::vector<FlowKey> flows;
    std::vector<std::vector<uint8_t>> first;
    for (uint32_t n = 0; n < 6; ++n) {
        for (const IpFamily family : kFamilies) {
            for (const Protocol protocol : kProtocols) {
                flows.push_back(client_flow(family, n, protocol));
                first.push_back(from_client(flows.back()));
            }
        }
    }
    // Known flows between unknown ones; some appear twice.
    for (size_t i = 0; i < flows.size(); i += 5) {
        ASSERT_EQ(gateway.send(first[i]).verdict, Verdict::Transmit);
    }
    for (size_t i = 0; i < 8; ++i) {
        first.push_back(first[i * 3]);
    }
    ASSERT_LE(first.size(), limits::kBurstMax);
    const std::vector<Outcome> opened = gateway.send_burst(first);
    EXPECT_EQ(gateway.connections(), flows.size());
    std::vector<std::vector<uint8_t>> answers;
    for (size_t i = 0; i < flows.size(); ++i) {
        ASSERT_EQ(opened[i].verdict, Verdict::Transmit)
            << flows[i].to_string() << " " << text_of(opened[i].reason).counter;
        const FlowKey inside = key_of(opened[i].frame);
        const IpFamily family = flows[i].source.family();
        EXPECT_EQ(inside.source, family == IpFamily::V4 ? kClusterAddress : kClusterAddress6);
        EXPECT_EQ(inside.destination, backend_address(11, family));
        EXPECT_EQ(gateway.send(first[i]).frame, opened[i].frame) << "alone, and again";
        answers.push_back(answer_to(inside));
    }
    for (size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(opened[flows.size() + i].frame, opened[i * 3].frame)
            << "the second packet of " << flows[i * 3].to_string();
    }
    const std::vector<Outcome> back = gateway.send_burst(answers, kCluster);
    for (size_t i = 0; i < flows.size(); ++i) {
        ASSERT_EQ(back[i].verdict, Verdict::Transmit)
            << flows[i].to_string() << " " << text_of(back[i].reason).counter;
        EXPECT_EQ(key_of(back[i].frame), flows[i].reversed());
    }
    EXPECT_EQ(gateway.count(stats::Counter::NewConnections), flows.size());
}

TEST(MixedBurst, WhatIsDroppedOrRejectedLeavesTheRestAlone_REJ001) {
    VirtualGateway gateway;
    std::vector<TestService> all = services();
    all.push_back({.name = "empty", .frontends = {{kVip, 81}, {kVip6, 81}}});
    gateway.publish(all);
    const auto with_port = [](FlowKey key, L4Port port) {
        key.destination_port = port;
        return from_client(key);
    };
    const FlowKey v4 = client_flow(IpFamily::V4, 1), v6 = client_flow(IpFamily::V6, 1);
    const std::vector<Outcome> outcomes = gateway.send_burst(
        {with_port(v6, 81), from_client(v4), with_port(v6, 82), from_client(v6), with_port(v4, 81),
         with_port(v4, 82), packet_of(v6, "S").hop_limit(1).build(), from_client(v6)});
    EXPECT_EQ(key_of(outcomes[0].frame).source, kVip6) << "a RST";
    EXPECT_EQ(outcomes[0].egress, kUp);
    EXPECT_EQ(key_of(outcomes[1].frame).destination, backend_address(11));
    EXPECT_EQ(outcomes[2].reason, DropReason::VipPortClosed);
    EXPECT_EQ(key_of(outcomes[3].frame).destination, backend_address(11, IpFamily::V6));
    EXPECT_EQ(key_of(outcomes[4].frame).source, kVip);
    EXPECT_EQ(outcomes[5].reason, DropReason::VipPortClosed);
    EXPECT_EQ(outcomes[6].egress, kUp) << "its sender is told";
    EXPECT_EQ(outcomes[7].frame, outcomes[3].frame);
    EXPECT_EQ(gateway.connections(), 2u);
}

// An IPv6 connection takes the space of two IPv4 ones.
TEST(FullTable6, AnIpv6FlowTakesAPairOfHalfOpenOnes_NAT008) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 64});
    gateway.publish(services());
    const FlowKey kept = client_flow(IpFamily::V4, 0);
    const FlowKey inside = key_of(gateway.send(from_client(kept)).frame);
    gateway.send(answer_to(inside), kCluster);
    gateway.send(from_client(kept, "A"));
    for (uint32_t n = 1; n < 64; ++n) {
        gateway.advance_milliseconds(1);
        ASSERT_EQ(gateway.send(from_client(client_flow(IpFamily::V4, n))).verdict, Verdict::Transmit) << n;
    }
    ASSERT_EQ(gateway.connections(), 64u);
    gateway.advance_milliseconds(1);
    const Outcome first = gateway.send(from_client(client_flow(IpFamily::V6, 0)));
    ASSERT_EQ(first.verdict, Verdict::Transmit) << text_of(first.reason).counter;
    EXPECT_EQ(gateway.count(stats::Counter::EvictedConnections), 2u);
    EXPECT_EQ(gateway.connections(), 63u);
    EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 63u) << "both gave their ports back";
    const FlowKey inside6 = key_of(first.frame);
    const Outcome answer = gateway.send(answer_to(inside6), kCluster);
    EXPECT_EQ(key_of(answer.frame), client_flow(IpFamily::V6, 0).reversed());

    // A flood of IPv6 SYNs that lasts longer than handshakes of another prefix are protected. Of 32 pairs two
    // are kept: the one with the established IPv4 connection, and the one of the answered connection.
    gateway.send(from_client(client_flow(IpFamily::V6, 0), "A"));
    for (uint32_t n = 1; n < 500; ++n) {
        gateway.advance_milliseconds(10);
        ASSERT_EQ(gateway.send(from_client(client_flow(IpFamily::V6, n))).verdict, Verdict::Transmit) << n;
    }
    EXPECT_EQ(gateway.connections(), 2u + 31u) << "31 pairs, and two IPv4 connections in the other one";
    EXPECT_EQ(key_of(gateway.send(from_client(kept, "A")).frame), inside);
    EXPECT_EQ(key_of(gateway.send(from_client(client_flow(IpFamily::V6, 0), "A")).frame), inside6);

    // Followed by IPv4 SYNs, which take the pairs back.
    for (uint32_t n = 1'000; n < 1'500; ++n) {
        gateway.advance_milliseconds(10);
        ASSERT_EQ(gateway.send(from_client(client_flow(IpFamily::V4, n))).verdict, Verdict::Transmit) << n;
    }
    EXPECT_EQ(gateway.connections(), 1u + 62u);
    EXPECT_EQ(key_of(gateway.send(from_client(kept, "A")).frame), inside);
    EXPECT_EQ(key_of(gateway.send(from_client(client_flow(IpFamily::V6, 0), "A")).frame), inside6);
}

// If every pair holds a connection answered by both sides, IPv6 is dropped under its reason, and no
// connection is lost.
TEST(FullTable6, OfEstablishedFlowsRefusesByName_NAT008) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 64});
    gateway.publish(services());
    for (uint32_t n = 0; n < 64; ++n) {
        const FlowKey client = client_flow(IpFamily::V4, n, n % 2 == 0 ? Protocol::Tcp : Protocol::Udp);
        const Outcome opened = gateway.send(from_client(client));
        ASSERT_EQ(opened.verdict, Verdict::Transmit) << n;
        if (n % 2 == 0) {
            gateway.send(answer_to(key_of(opened.frame)), kCluster);
            gateway.send(from_client(client, "A"));
        }
    }
    gateway.advance_seconds(10);
    const Outcome refused = gateway.send(from_client(client_flow(IpFamily::V6, 0, Protocol::Udp)));
    EXPECT_EQ(refused.verdict, Verdict::Drop);
    EXPECT_EQ(refused.reason, DropReason::ConnectionTableFull);
    EXPECT_EQ(gateway.count(stats::Counter::EvictedConnections), 0u);
    EXPECT_EQ(gateway.connections(), 64u);
}

// A burst that overfills the table: the later packets may evict connections opened by the earlier ones, which
// have left by then.
TEST(FullTable6, ABurstOfBothFamiliesMayExceedIt_NAT001) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 16});
    gateway.publish(services());
    std::vector<FlowKey> flows;
    std::vector<std::vector<uint8_t>> burst;
    for (uint32_t n = 0; n < limits::kBurstMax; ++n) {
        flows.push_back(client_flow(kFamilies[n % 2], n));
        burst.push_back(from_client(flows.back()));
    }
    const std::vector<Outcome> outcomes = gateway.send_burst(burst);
    for (size_t i = 0; i < flows.size(); ++i) {
        ASSERT_EQ(outcomes[i].verdict, Verdict::Transmit) << i << " " << text_of(outcomes[i].reason).counter;
        EXPECT_EQ(key_of(outcomes[i].frame).destination, backend_address(11, flows[i].source.family()));
    }
    EXPECT_LE(gateway.worker(0).connections.units_used(), 16u);
    EXPECT_EQ(gateway.connections(), gateway.worker(0).snat_ports.in_use());
}

TEST(SnatPorts6, OneFamilysExhaustionIsNotTheOthers_NAT002) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {2000, 2031}});
    gateway.publish(services());
    for (uint32_t n = 0; n < 32; ++n) {
        ASSERT_EQ(gateway.send(from_client(client_flow(IpFamily::V6, n))).verdict, Verdict::Transmit) << n;
    }
    gateway.establish_all();
    const Outcome over = gateway.send(from_client(client_flow(IpFamily::V6, 32)));
    EXPECT_EQ(over.verdict, Verdict::Drop);
    EXPECT_EQ(over.reason, DropReason::SnatPortsExhausted);
    EXPECT_EQ(gateway.send(from_client(client_flow(IpFamily::V6, 32, Protocol::Udp))).verdict,
              Verdict::Transmit)
        << "another protocol";
    for (uint32_t n = 0; n < 32; ++n) {
        ASSERT_EQ(gateway.send(from_client(client_flow(IpFamily::V4, n))).verdict, Verdict::Transmit)
            << "the other family, " << n;
    }
    gateway.advance_seconds(86'402);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u);
    EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 0u);
    EXPECT_EQ(gateway.send(from_client(client_flow(IpFamily::V6, 40))).verdict, Verdict::Transmit)
        << "ports come back";
}

TEST(Forwarding6, NamesWhatStopsItOnTheWayOut) {
    VirtualGateway gateway;
    gateway.publish(services());
    gateway.set_unresolved({11});
    const Outcome held = gateway.send(from_client(client_flow(IpFamily::V6, 1)));
    EXPECT_EQ(held.verdict, Verdict::Hold);
    EXPECT_EQ(held.egress, kCluster);
    gateway.set_unresolved({});
    gateway.set_mtu(1'280);
    const auto of_size = [](uint32_t n, size_t ip_bytes) {
        return packet_of(client_flow(IpFamily::V6, n), "S").payload(std::string(ip_bytes - 60, 'x')).build();
    };
    EXPECT_EQ(gateway.send(of_size(2, 1'281)).egress, kUp) << "its sender is told";
    EXPECT_EQ(gateway.send(of_size(3, 1'280)).verdict, Verdict::Transmit);
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    EXPECT_EQ(gateway.send(from_client(client_flow(IpFamily::V6, 4))).reason, DropReason::NoRoute);
}

TEST(SourceRanges6, AFamilyWithoutARangeIsClosed_SRC001_SRC003) {
    VirtualGateway gateway;
    std::vector<TestService> all = services();
    all[0].source_ranges = {{*Prefix::parse("198.51.100.0/24")}};
    all[1].source_ranges = {{*Prefix::parse("2001:db8:99::/64")}};
    gateway.publish(all);
    EXPECT_EQ(gateway.send(from_client(client_flow(IpFamily::V4, 1))).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(from_client(client_flow(IpFamily::V6, 1))).reason, DropReason::SourceNotAllowed);
    EXPECT_EQ(gateway.send(from_client(client_flow(IpFamily::V4, 1, Protocol::Udp))).reason,
              DropReason::SourceNotAllowed);
    EXPECT_EQ(gateway.send(from_client(client_flow(IpFamily::V6, 1, Protocol::Udp))).verdict,
              Verdict::Transmit);
}

// Every packet on a worker selected at random, mostly the wrong one, in bursts of both families.
class Placement6 : public testing::TestWithParam<std::pair<uint32_t, lb::SourceMode>> {};
INSTANTIATE_TEST_SUITE_P(
    Workers, Placement6,
    testing::Values(std::pair{2u, lb::SourceMode::Translate}, std::pair{2u, lb::SourceMode::Keep},
                    std::pair{7u, lb::SourceMode::Translate}, std::pair{7u, lb::SourceMode::Keep}),
    [](const auto& info) {
        return std::to_string(info.param.first) +
               (info.param.second == lb::SourceMode::Keep ? "KeepTheSource" : "TranslateTheSource");
    });

TEST_P(Placement6, EveryPacketOfEveryFlowIsTranslatedAlike_NAT001_ETP001_ETP002) {
    const auto [workers, source] = GetParam();
    Prng random;
    VirtualGateway gateway(VirtualGateway::Options{.workers = workers});
    gateway.publish(services(source));
    const auto any_worker = [&, count = workers] {
        return WorkerId{static_cast<uint8_t>(random.below(count))};
    };
    std::vector<FlowKey> flows, inside;
    for (uint32_t n = 0; n < 200; ++n) {
        flows.push_back(client_flow(kFamilies[n % 2], n, kProtocols[n / 2 % 2]));
        const Outcome first = gateway.send(from_client(flows.back()), kUp, any_worker());
        ASSERT_EQ(first.verdict, Verdict::Transmit) << text_of(first.reason).counter;
        inside.push_back(key_of(first.frame));
        ASSERT_EQ(gateway.send(answer_to(inside.back()), kCluster, any_worker()).verdict, Verdict::Transmit);
    }
    for (uint32_t round = 0; round < 200; ++round) {
        std::vector<size_t> picked;
        std::vector<std::vector<uint8_t>> forward, reverse;
        for (uint32_t i = 0; i < limits::kBurstMax; ++i) {
            picked.push_back(random.below(flows.size()));
            forward.push_back(from_client(flows[picked.back()], "A"));
            reverse.push_back(answer_to(inside[picked.back()], "A"));
        }
        const std::vector<Outcome> out = gateway.send_burst(forward, kUp, any_worker());
        const std::vector<Outcome> back = gateway.send_burst(reverse, kCluster, any_worker());
        for (uint32_t i = 0; i < limits::kBurstMax; ++i) {
            ASSERT_EQ(out[i].verdict, Verdict::Transmit) << text_of(out[i].reason).counter;
            ASSERT_EQ(key_of(out[i].frame), inside[picked[i]]);
            ASSERT_EQ(back[i].verdict, Verdict::Transmit) << text_of(back[i].reason).counter;
            ASSERT_EQ(key_of(back[i].frame), flows[picked[i]].reversed());
        }
    }
    EXPECT_EQ(gateway.connections(), flows.size());
}

}  // namespace ipv6_test
}  // namespace penstock::test
