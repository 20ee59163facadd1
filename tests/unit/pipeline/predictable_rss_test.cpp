// SPDX-License-Identifier: Apache-2.0
// Replies that reach their owner by the NIC's own RSS, and exceptions. The NIC is a plain Toeplitz hash over
// the configured fields, implemented here independently of the gateway's code.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/reply_hashes.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace predictable_rss_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");
constexpr L4Port kBackendPort = 9376;

packet::Parsed parsed(const std::vector<uint8_t>& frame) {
    packet::Parsed out;
    EXPECT_TRUE(packet::parse(frame, out).has_value());
    return out;
}
packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    return parsed(frame).key;
}

// The worker whose queue gets the frame from the NIC. Packets other than whole TCP or UDP packets are hashed
// by their addresses alone, as NICs do.
WorkerId rss(const nat::ReplyHash& hash, const std::vector<uint8_t>& frame) {
    const packet::Parsed out = parsed(frame);
    packet::FlowKey key = out.key;
    if (out.kind != packet::PacketKind::Flow || !hash.covers(out.family, key.protocol)) {
        key.source_port = key.destination_port = 0;
    }
    return hash.worker_of[plain_rss(hash.key, key) % hash.worker_of.size()];
}

PacketBuilder framed(bool from_client, const packet::FlowKey& key) {
    PacketBuilder builder = eth();
    builder.from_mac((from_client ? kClientMac : backend_mac(key.source.bytes()[15])).to_string())
        .to_mac((from_client ? kUpMac : kClusterMac).to_string());
    return key.source.is_v4() ? builder.ipv4(key.source.to_string(), key.destination.to_string())
                              : builder.ipv6(key.source.to_string(), key.destination.to_string());
}
std::vector<uint8_t> packet_of(bool from_client, const packet::FlowKey& key, const char* flags) {
    PacketBuilder builder = framed(from_client, key);
    return (key.protocol == Protocol::Tcp ? builder.tcp(key.source_port, key.destination_port, flags)
                                          : builder.udp(key.source_port, key.destination_port))
        .build();
}
std::vector<uint8_t> first_packet(const packet::FlowKey& key) {
    return packet_of(true, key, "S");
}
std::vector<uint8_t> answer_to(const packet::FlowKey& inside) {
    return packet_of(false, inside.reversed(), "SA");
}

// Flows of both families and protocols from clients of every kind.
packet::FlowKey client_flow(Prng& random, uint32_t n) {
    const bool v4 = n % 2 == 0;
    const auto host = static_cast<uint8_t>(random.between(2, 250));
    const IpAddr client = v4 ? IpAddr::v4(198, 51, static_cast<uint8_t>(n), host)
                             : IpAddr::v6({0x20, 1, 0xd, 0xb8, 0, static_cast<uint8_t>(n), host});
    return {client,
            v4 ? kVip : kVip6,
            static_cast<L4Port>(random.between(1'024, 65'535)),
            80,
            n / 2 % 2 == 0 ? Protocol::Tcp : Protocol::Udp,
            {}};
}

std::vector<TestService> services() {
    std::vector<TestService> all;
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp}) {
        all.push_back({.name = to_string(protocol),
                       .protocol = protocol,
                       .frontends = {{kVip, 80}, {kVip6, 80}},
                       .backends = {11, 12, 13, 14, 15},
                       .backend_port = kBackendPort});
    }
    return all;
}

nat::ReplyHash random_hash(Prng& random, uint32_t workers) {
    nat::ReplyHash hash = hash_in_turn(128, workers);
    do {
        hash.key = random.bytes(random.one_in(2) ? 40 : 52);
    } while (!obstacle_of(hash, workers).empty());
    return hash;
}

class PredictableRss : public testing::TestWithParam<uint32_t> {
 protected:
    PredictableRss() : up(random_hash(random, GetParam())), cluster(random_hash(random, GetParam())) {}
    VirtualGateway::Options options() {
        return {.workers = GetParam(),
                .flow_stays_on_queue = true,
                .connections = 8'192,
                .up_hash = up,
                .cluster_hash = cluster};
    }
    Prng random;
    nat::ReplyHash up, cluster;
};
INSTANTIATE_TEST_SUITE_P(Workers, PredictableRss, testing::Values(1u, 2u, 3u, 4u));

// Every packet of 4,000 flows is received by its owner: no packet is handed over, in either direction.
TEST_P(PredictableRss, BringsEveryReplyHome_NAT001) {
    VirtualGateway gateway(options());
    gateway.publish(services());
    std::vector<uint32_t> by_worker(GetParam());
    std::set<std::string> seen;
    for (uint32_t n = 0; n < 4'000; ++n) {
        const packet::FlowKey flow = client_flow(random, n);
        if (!seen.insert(flow.to_string()).second) {
            continue;
        }
        const auto syn = first_packet(flow);
        const Outcome opened = gateway.send(syn, kUp, rss(up, syn));
        ASSERT_EQ(opened.verdict, Verdict::Transmit) << flow.to_string();
        ASSERT_EQ(opened.handoffs, 0u);
        const auto reply = answer_to(key_of(opened.frame));
        const Outcome answered = gateway.send(reply, kCluster, rss(cluster, reply));
        ASSERT_EQ(answered.verdict, Verdict::Transmit) << flow.to_string();
        ASSERT_EQ(answered.handoffs, 0u) << flow.to_string();
        ASSERT_EQ(answered.worker, opened.worker);
        ASSERT_EQ(key_of(answered.frame), flow.reversed());
        ++by_worker[answered.worker.value];
    }
    EXPECT_EQ(gateway.replies_misplaced(kCluster), 0u);
    for (const uint32_t flows : by_worker) {
        EXPECT_GT(flows, 4'000 / GetParam() / 2) << "flows were meant to spread";
    }
}

// A NIC that does not behave as configured: every reply still reaches its owner, and is counted as misplaced.
TEST_P(PredictableRss, ReachesTheOwnerThoughTheNicLies_NAT001) {
    VirtualGateway gateway(options());
    gateway.publish(services());
    uint64_t handed = 0;
    for (uint32_t n = 0; n < 2'000; ++n) {
        const packet::FlowKey flow = client_flow(random, n);
        const auto syn = first_packet(flow);
        const Outcome opened = gateway.send(syn, kUp, rss(up, syn));
        ASSERT_EQ(opened.verdict, Verdict::Transmit);
        const packet::FlowKey inside = key_of(opened.frame);
        const WorkerId anywhere{static_cast<uint8_t>(random.below(GetParam()))};
        const Outcome answered = gateway.send(answer_to(inside), kCluster, anywhere);
        ASSERT_EQ(answered.verdict, Verdict::Transmit) << flow.to_string();
        ASSERT_EQ(answered.worker, opened.worker);
        ASSERT_EQ(answered.handoffs, anywhere == opened.worker ? 0u : 1u);
        ASSERT_EQ(key_of(answered.frame), flow.reversed());
        handed += answered.handoffs;
    }
    EXPECT_EQ(gateway.replies_misplaced(kCluster), handed);
    EXPECT_EQ(gateway.replies_misplaced(kUp), 0u);
    EXPECT_EQ(handed > 0, GetParam() > 1);
}

// A reply of no known flow ends at the worker selected by its hash, and opens nothing.
TEST_P(PredictableRss, AnUnknownReplyIsTheHosts) {
    VirtualGateway gateway(options());
    gateway.publish(services());
    for (L4Port port = 2'000; port < 2'200; ++port) {
        const auto stray = packet_of(
            false, {backend_address(11), kClusterAddress, kBackendPort, port, Protocol::Tcp, {}}, "A");
        const WorkerId anywhere{static_cast<uint8_t>(random.below(GetParam()))};
        const Outcome outcome = gateway.send(stray, kCluster, anywhere);
        EXPECT_EQ(outcome.verdict, Verdict::Punt);
        EXPECT_EQ(outcome.worker, rss(cluster, stray));
    }
    EXPECT_EQ(gateway.connections(), 0u);
}

// Traffic that the hash does not cover uses port blocks: it is handed over, and does not count as misplaced.
TEST_P(PredictableRss, WhatItDoesNotCoverIsHandedOver_NAT001) {
    cluster.udp4 = cluster.udp6 = false;
    VirtualGateway gateway(options());
    gateway.publish(services());
    uint32_t handed = 0;
    for (uint32_t n = 0; n < 2'000; ++n) {
        const packet::FlowKey flow = client_flow(random, n);
        const auto syn = first_packet(flow);
        const Outcome opened = gateway.send(syn, kUp, rss(up, syn));
        ASSERT_EQ(opened.verdict, Verdict::Transmit);
        const auto reply = answer_to(key_of(opened.frame));
        const Outcome answered = gateway.send(reply, kCluster, rss(cluster, reply));
        ASSERT_EQ(answered.verdict, Verdict::Transmit) << flow.to_string();
        ASSERT_EQ(key_of(answered.frame), flow.reversed());
        if (flow.protocol == Protocol::Tcp) {
            ASSERT_EQ(answered.handoffs, 0u) << flow.to_string();
        }
        handed += answered.handoffs;
    }
    EXPECT_EQ(handed > 0, GetParam() > 1);
    EXPECT_EQ(gateway.replies_misplaced(kCluster), 0u);
}

// An address for any egress has the rule of the first NicPort. Replies by another port with another hash are
// handed over; with the same hash they reach their owner there as well.
TEST_P(PredictableRss, AnAddressOfAnyEgressHasTheFirstPortsRule_NAT001) {
    for (const bool alike : {false, true}) {
        cluster = alike ? up : cluster;
        VirtualGateway::Options with_any = options();
        with_any.snat_any_egress = true;
        VirtualGateway gateway(with_any);
        gateway.publish(services());
        uint32_t handed = 0;
        for (uint32_t n = 0; n < 1'000; ++n) {
            const packet::FlowKey flow = client_flow(random, n);
            const auto syn = first_packet(flow);
            const Outcome opened = gateway.send(syn, kUp, rss(up, syn));
            ASSERT_EQ(opened.verdict, Verdict::Transmit);
            const auto reply = answer_to(key_of(opened.frame));
            ASSERT_EQ(rss(up, reply), opened.worker);
            const Outcome answered = gateway.send(reply, kCluster, rss(cluster, reply));
            ASSERT_EQ(answered.verdict, Verdict::Transmit) << flow.to_string();
            ASSERT_EQ(answered.worker, opened.worker);
            handed += answered.handoffs;
        }
        EXPECT_EQ(handed > 0, GetParam() > 1 && !alike);
        EXPECT_EQ(gateway.replies_misplaced(kCluster), 0u);
    }
}

// Ports are used completely: every port of a narrow range serves one flow towards one endpoint, on the worker
// to which it leads.
TEST_P(PredictableRss, EveryPortOfTheRangeIsUsed_NAT002) {
    VirtualGateway::Options narrow = options();
    narrow.snat_ports = {20'000, 20'999};
    VirtualGateway gateway(narrow);
    TestService one = services().front();
    one.backends = {11};
    gateway.publish({one});
    std::set<L4Port> used;
    for (uint32_t n = 0; n < 20'000 && used.size() < 1'000; ++n) {
        const packet::FlowKey flow{
            IpAddr::v4(198, 51, 100, 7), kVip, static_cast<L4Port>(1'024 + n), 80, Protocol::Tcp, {}};
        const auto syn = first_packet(flow);
        const Outcome opened = gateway.send(syn, kUp, rss(up, syn));
        if (opened.verdict == Verdict::Transmit) {
            ASSERT_TRUE(used.insert(key_of(opened.frame).source_port).second);
            gateway.establish_all();
        } else {
            ASSERT_EQ(opened.reason, DropReason::SnatPortsExhausted);
        }
    }
    EXPECT_EQ(used.size(), 1'000u);
    EXPECT_EQ(*used.begin(), 20'000);
    EXPECT_EQ(*used.rbegin(), 20'999);
}

// All fragments of a datagram to a Service's or a SNAT address are collected on one worker, whichever worker
// received them. They wait there for the first fragment, which alone identifies the owner of the flow.
// Fragments to other addresses stay.
TEST_P(PredictableRss, FragmentsOfOneDatagramMeet) {
    VirtualGateway gateway(options());
    gateway.publish(services());
    const auto any_worker = [&] { return WorkerId{static_cast<uint8_t>(random.below(GetParam()))}; };
    std::set<uint8_t> owners;
    for (uint16_t n = 0; n < 64; ++n) {
        // In all bits: with some RSS keys, the last six alone do not reach every worker.
        const auto id = static_cast<uint16_t>(n * 1'021);
        for (const bool to_vip : {true, false}) {
            const packet::FlowKey key{kClient, to_vip ? kVip : kUpAddress, 0, 0, Protocol::Udp, {}};
            std::set<uint8_t> at;
            for (uint16_t part = 0; part < 3; ++part) {
                PacketBuilder builder = framed(true, key);
                builder.id(id)
                    .ip_protocol(17)
                    .fragment_offset(static_cast<uint16_t>((1 + part) * 100))
                    .payload(std::vector<uint8_t>(64, 1));
                const Outcome outcome =
                    gateway.send((part < 2 ? builder.more_fragments() : builder).build(), kUp, any_worker());
                at.insert(outcome.worker.value);
                EXPECT_EQ(outcome.verdict, Verdict::Await);
                EXPECT_LE(outcome.handoffs, 1u);
            }
            EXPECT_EQ(at.size(), 1u) << id;
            owners.insert(*at.begin());
        }
        gateway.advance_milliseconds(pipeline::kFragmentWaitMs);
        gateway.expire_fragments();  // the number of slots for one source is limited
        const WorkerId receiver = any_worker();
        const auto elsewhere = framed(true, {kClient, IpAddr::v4(10, 80, 1, 99), 0, 0, Protocol::Udp, {}})
                                   .id(id)
                                   .ip_protocol(17)
                                   .more_fragments()
                                   .payload(std::vector<uint8_t>(64, 1))
                                   .build();
        EXPECT_EQ(gateway.send(elsewhere, kUp, receiver).handoffs, 0u);
    }
    EXPECT_EQ(owners.size(), GetParam()) << "datagrams were meant to spread";
    std::set<uint8_t> at;
    for (uint8_t w = 0; w < GetParam(); ++w) {  // over IPv6, where the number is in an extension header
        PacketBuilder builder = framed(true, {kClient6, kVip6, 0, 0, Protocol::Udp, {}});
        builder.fragment(static_cast<uint16_t>((1 + w) * 100), true)
            .ip_protocol(17)
            .payload(std::vector<uint8_t>(64, 1));
        const Outcome outcome = gateway.send(builder.build(), kUp, {w});
        EXPECT_EQ(outcome.verdict, Verdict::Await);
        at.insert(outcome.worker.value);
    }
    EXPECT_EQ(at.size(), 1u);
}

// An ICMP error reaches the owner of the flow that it concerns, from either side and over either family. An
// error about a connection of the host is punted on the worker where it arrived.
TEST_P(PredictableRss, IcmpErrorsFindTheOwnerOfTheQuotedFlow_ICMP001_ICMP002) {
    VirtualGateway gateway(options());
    gateway.publish(services());
    const auto any_worker = [&] { return WorkerId{static_cast<uint8_t>(random.below(GetParam()))}; };
    // Everything behind the Ethernet header, or the 28 bytes that RFC 792 requires.
    const auto quote = [](const std::vector<uint8_t>& frame, bool is_short) {
        return std::vector<uint8_t>(frame.begin() + 14, is_short ? frame.begin() + 14 + 28 : frame.end());
    };
    const auto error_about = [&](bool from_client, const std::vector<uint8_t>& sent, bool is_short) {
        const packet::FlowKey key = key_of(sent);
        PacketBuilder builder = framed(from_client, {key.destination, key.source, 0, 0, Protocol::Tcp, {}});
        const bool v4 = key.source.is_v4();
        return builder.icmp(v4 ? 3 : 1, v4 ? 1 : 3).payload(quote(sent, is_short && v4)).build();
    };
    for (uint32_t n = 0; n < 400; ++n) {
        const packet::FlowKey flow = client_flow(random, n);
        const auto syn = first_packet(flow);
        const Outcome opened = gateway.send(syn, kUp, rss(up, syn));
        ASSERT_EQ(opened.verdict, Verdict::Transmit);
        // An error from a router towards the backend, about a packet that the gateway sent there.
        const Outcome inside =
            gateway.send(error_about(false, opened.frame, n % 3 == 0), kCluster, any_worker());
        EXPECT_EQ(inside.worker, opened.worker) << flow.to_string();
        EXPECT_EQ(inside.verdict, Verdict::Transmit);
        EXPECT_LE(inside.handoffs, 1u);
        // An error from a router towards the client, about the answer. The flow is owned by its first
        // receiver, which is selected by the hash of the uplink.
        const auto reply = answer_to(key_of(opened.frame));
        const Outcome answered = gateway.send(reply, kCluster, rss(cluster, reply));
        const Outcome outside =
            gateway.send(error_about(true, answered.frame, n % 3 == 0), kUp, any_worker());
        EXPECT_EQ(outside.worker, opened.worker) << flow.to_string();
        EXPECT_EQ(outside.verdict, Verdict::Transmit);
        // A connection of Linux: a request to a name server from a port below the SNAT range.
        const auto asked =
            packet_of(false, {kClusterAddress, backend_address(99), 999, 53, Protocol::Udp, {}}, "");
        const WorkerId receiver = any_worker();
        const Outcome own = gateway.send(error_about(false, asked, false), kCluster, receiver);
        EXPECT_EQ(own.verdict, Verdict::Punt);
        EXPECT_EQ(own.worker, receiver);
        // Errors without a usable quote, and echo, stay on their worker.
        const auto echo =
            framed(false, {backend_address(11), kClusterAddress, 0, 0, Protocol::Tcp, {}}).icmp(8, 0).build();
        EXPECT_EQ(gateway.send(echo, kCluster, receiver).worker, receiver);
    }
}

// If the source is kept, the client's address determines the owner of an error, also of errors about packets
// to the endpoint.
TEST_P(PredictableRss, IcmpErrorsOfKeptSourcesFindTheirOwner_ICMP001) {
    VirtualGateway gateway(options());
    TestService kept = services().front();
    kept.source = lb::SourceMode::Keep;
    gateway.publish({kept});
    for (uint8_t host = 2; host < 60; ++host) {
        const auto syn = first_packet({IpAddr::v4(198, 51, 100, host), kVip, 40'000, 80, Protocol::Tcp, {}});
        const Outcome opened = gateway.send(syn, kUp, rss(up, syn));
        ASSERT_EQ(opened.verdict, Verdict::Transmit);
        const packet::FlowKey inside = key_of(opened.frame);
        const auto error = framed(false, {inside.destination, inside.source, 0, 0, Protocol::Tcp, {}})
                               .icmp(3, 1)
                               .payload(std::vector<uint8_t>(opened.frame.begin() + 14, opened.frame.end()))
                               .build();
        const Outcome outcome =
            gateway.send(error, kCluster, {static_cast<uint8_t>(random.below(GetParam()))});
        EXPECT_EQ(outcome.worker, opened.worker);
        EXPECT_EQ(outcome.verdict, Verdict::Transmit);
    }
}

}  // namespace predictable_rss_test
}  // namespace penstock::test
