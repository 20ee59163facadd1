// SPDX-License-Identifier: Apache-2.0
// Exhausted SNAT ports: which connection gives its port to a new flow, and which never does.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace reclaim_test {

using stats::Counter;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");

packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}
std::vector<uint8_t> timestamps(uint32_t value) {
    const auto byte = [&](int n) { return static_cast<uint8_t>(value >> (24 - 8 * n)); };
    return {8, 10, byte(0), byte(1), byte(2), byte(3), 0, 0, 0, 0};
}
// Client n of the Service, which has no other flow.
PacketBuilder client(uint32_t n, L4Port port = 80) {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("198.51." + std::to_string(n / 200) + "." + std::to_string(1 + n % 200), "80.11.12.10")
        .tcp(40'000, port, "S");
}
PacketBuilder segment(uint32_t n, const char* flags) {
    return client(n).tcp(40'000, 80, flags);
}
PacketBuilder endpoint(const packet::FlowKey& inside, const char* flags) {
    return eth()
        .from_mac(backend_mac(11).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, flags);
}

struct Bed {
    explicit Bed(VirtualGateway::Options options) : gateway(options) {
        gateway.publish({TestService{.frontends = {{kVip, 80}}, .backends = {11}}});
    }
    // The SNAT port, or 0 if the SYN is dropped because no port is available.
    L4Port open(uint32_t n) { return open(client(n)); }
    L4Port open(PacketBuilder syn) {
        const Outcome outcome = gateway.send(syn.build());
        if (outcome.verdict != Verdict::Transmit) {
            EXPECT_EQ(outcome.reason, DropReason::SnatPortsExhausted);
            return 0;
        }
        inside = key_of(outcome.frame);
        return inside.source_port;
    }
    // Client n: from its SYN to both FINs, the endpoint's first. `last`: the sequence number of the client's
    // FIN.
    L4Port open_and_close(uint32_t n, uint32_t last, std::optional<uint32_t> timestamp = {}) {
        const auto with = [&](PacketBuilder built) {
            return timestamp ? built.tcp_options(timestamps(*timestamp)) : built;
        };
        const L4Port port = open(with(client(n).seq(last - 1)));
        const packet::FlowKey flow = inside;
        gateway.send(endpoint(flow, "SA").seq(500).ack(last).build(), kCluster);
        gateway.send(with(segment(n, "A").seq(last).ack(501)).build());
        gateway.send(endpoint(flow, "PA").seq(501).ack(last).payload("x").build(), kCluster);
        gateway.send(endpoint(flow, "FA").seq(502).ack(last).build(), kCluster);
        gateway.send(with(segment(n, "FA").seq(last).ack(503)).build());
        return port;
    }
    [[nodiscard]] uint64_t reclaimed() const { return gateway.count(Counter::ReclaimedSnatPorts); }

    VirtualGateway gateway;
    packet::FlowKey inside;  // of the newest flow
};

TEST(Reclaim, HalfOpenConnectionsGiveWayInTheOrderOfTheirFirstSyn_NAT002) {
    Bed bed({.snat_ports = {2'000, 2'031}});
    std::vector<L4Port> ports;
    for (uint32_t n = 0; n < 160; ++n) {
        // A pool records its first ports when it visits them again, and is in order one round later.
        const bool is_in_order = n >= 96;
        if (is_in_order) {
            // a retransmitted SYN does not make a connection younger
            bed.gateway.send(client(n - 32).build());
        }
        ports.push_back(bed.open(n));
        if (is_in_order) {
            EXPECT_EQ(ports[n], ports[n - 32]) << n;
        }
        bed.gateway.advance_milliseconds(100);
    }
    EXPECT_EQ(bed.reclaimed(), 160u - 32u);
    EXPECT_EQ(bed.gateway.count(Counter::EvictedConnections), 0u) << "the table has room";
    EXPECT_EQ(bed.gateway.connections(), 32u);
    EXPECT_EQ(bed.gateway.worker(0).snat_ports.in_use(), 32u);
    // The endpoint's answer to the former client's SYN is sent only to the port's new client.
    EXPECT_EQ(key_of(bed.gateway.send(endpoint(bed.inside, "SA").build(), kCluster).frame).destination,
              key_of(client(159).build()).source);
}

// The maximum number of connections, of which one may be evicted. It is found in as many attempts as it takes
// to examine all of them, 64 in each.
TEST(Reclaim, TheOnlyOneThatMayGoIsFoundInBoundedWork_NAT002) {
    Bed bed({.snat_ports = {2'000, 2'999}});
    std::vector<L4Port> ports;
    for (uint32_t n = 0; n < 1'000; ++n) {
        ports.push_back(bed.open(n));
    }
    const auto held = std::set<L4Port>(ports.begin(), ports.end());
    ASSERT_EQ(held.size(), 1'000u);
    bed.gateway.establish_all();
    EXPECT_EQ(bed.open(5'000), 0) << "established ones stay";
    EXPECT_EQ(bed.gateway.service_counters(0, "web").dropped.read(), 1u);
    bed.gateway.send(segment(321, "R").build());
    L4Port got = 0;
    uint32_t tries = 0;
    while (got == 0 && tries < 20) {
        got = bed.open(5'000);
        ++tries;
    }
    EXPECT_EQ(got, ports[321]);
    EXPECT_LE(tries, 16u);
    EXPECT_EQ(bed.reclaimed(), 1u);
    EXPECT_EQ(bed.gateway.connections(), 1'000u);
}

// RFC 6191: the endpoint accepts a SYN for a new connection if its timestamp is newer than the old
// connection's, otherwise if its sequence number is higher. So one connection in TIME-WAIT has a suitable
// port for the SYN and another has not, whichever comes first.
TEST(Reclaim, ASynGetsThePortWhoseTimeWaitItPasses_NAT002) {
    const struct {
        const char* name;
        uint32_t lower, higher;  // the two clients' last sequence numbers
        std::optional<uint32_t> older, newer;
        uint32_t seq;
        std::optional<uint32_t> timestamp;
    } cases[] = {
        {"by sequence number", 1'000, 2'000'000'000, {}, {}, 1'500'000'000, {}},
        {"across zero", 0xffff'ff00, 1'000, {}, {}, 500, {}},
        {"by timestamp, whatever the sequence number", 1'000, 1'000, 7'000, 9'000, 500, 8'000},
        {"a SYN without a timestamp, by sequence number",
         1'000,
         2'000'000'000,
         7'000,
         7'000,
         1'500'000'000,
         {}},
        {"the same timestamp, by sequence number", 1'000, 2'000'000'000, 7'000, 7'000, 1'500'000'000, 7'000},
    };
    for (const auto& c : cases) {
        for (const bool is_lower_first : {false, true}) {
            Bed bed({.snat_ports = {2'000, 2'001}});
            std::map<bool, L4Port> ports;  // by: whether it is the suitable one
            for (const bool is_right : {is_lower_first, !is_lower_first}) {
                ports[is_right] = bed.open_and_close(is_right ? 1 : 2, is_right ? c.lower : c.higher,
                                                     is_right ? c.older : c.newer);
                bed.gateway.advance_milliseconds(500);
            }
            ASSERT_NE(ports[true], ports[false]) << c.name;
            PacketBuilder syn = client(3).seq(c.seq);
            EXPECT_EQ(bed.open(c.timestamp ? syn.tcp_options(timestamps(*c.timestamp)) : syn), ports[true])
                << c.name << is_lower_first;
            EXPECT_EQ(bed.reclaimed(), 1u) << c.name;
        }
    }
}

// Any SYN gets the port of a connection that ended longer ago than TIME-WAIT, before a young half-open one is
// evicted. A SYN that would be challenged there gets another port once the half-open connection has had its
// time.
TEST(Reclaim, APortThatHasRestedIsTakenBeforeOneThatHasNot_NAT002) {
    const struct {
        const char* name;
        uint64_t finished_ago_s, opened_ago_s;
        bool takes_finished;
    } cases[] = {{"TIME-WAIT is over", 63, 1, true}, {"the handshake has had its time", 30, 6, false}};
    for (const auto& c : cases) {
        Bed bed({.snat_ports = {2'000, 2'001}});
        const L4Port finished = bed.open_and_close(1, 2'000'000'000);
        bed.gateway.advance_seconds(c.finished_ago_s - c.opened_ago_s);
        const L4Port half_open = bed.open(2);
        ASSERT_NE(half_open, 0);
        bed.gateway.advance_seconds(c.opened_ago_s);
        EXPECT_EQ(bed.open(client(3).seq(5)), c.takes_finished ? finished : half_open) << c.name;
    }
}

// All suitable addresses are searched for a free port before a connection is evicted.
TEST(Reclaim, OtherAddressesComeFirst_NAT002) {
    Bed bed({.snat_ports = {2'000, 2'007}, .more_snat = {{IpAddr::v4(10, 80, 2, 2), kCluster, false}}});
    std::set<std::pair<IpAddr, L4Port>> sources;
    for (uint32_t n = 0; n < 16; ++n) {
        ASSERT_NE(bed.open(n), 0);
        sources.emplace(bed.inside.source, bed.inside.source_port);
    }
    EXPECT_EQ(sources.size(), 16u);
    EXPECT_EQ(bed.reclaimed(), 0u);
    ASSERT_NE(bed.open(16), 0);
    EXPECT_EQ(bed.reclaimed(), 1u);
    // If all connections of one address are lasting ones, those of the other address are evicted, whichever
    // address the client normally gets.
    std::set<IpAddr> given;
    for (uint32_t unit = 0; unit < bed.gateway.worker(0).connections.high_water(); ++unit) {
        conn::Table& table = bed.gateway.worker(0).connections;
        if (table.is_live(unit) &&
            table.at({unit}).key(conn::Direction::Reverse).destination == kClusterAddress) {
            table.set_state({unit}, conn::TcpState::Established, bed.gateway.worker(0).now_coarse);
        }
    }
    for (uint32_t n = 20; n < 60; ++n) {
        ASSERT_NE(bed.open(n), 0) << n;
        given.insert(bed.inside.source);
    }
    EXPECT_EQ(given, std::set<IpAddr>{IpAddr::v4(10, 80, 2, 2)});
}

// Ports that may no longer be allocated are not reclaimed either: NodePorts created later, on an address that
// the host uses.
TEST(Reclaim, APortThatMayNotBeHandedOutIsLeftAlone_NAT002) {
    Bed bed({.snat_ports = {30'000, 30'007}, .snat_shared_with_host = true});
    for (uint32_t n = 0; n < 8; ++n) {
        ASSERT_NE(bed.open(n), 0);
    }
    TestService service{.frontends = {{kVip, 80}}, .backends = {11}};
    service.node_ports = {30'003};
    bed.gateway.publish({service});
    bed.gateway.advance_seconds(10);
    std::set<L4Port> got;
    for (uint32_t n = 10; n < 40; ++n) {
        got.insert(bed.open(n));
    }
    EXPECT_EQ(got, (std::set<L4Port>{30'000, 30'001, 30'002, 30'004, 30'005, 30'006, 30'007}));
}

// Each worker reclaims only its own ports: the replies of all flows reach their worker.
TEST(Reclaim, WorkersKeepToTheirOwnPorts_NAT002) {
    Bed bed({.workers = 4, .snat_ports = {2'048, 2'303}});
    for (uint32_t n = 0; n < 2'000; ++n) {
        ASSERT_NE(bed.open(n), 0) << n;
        const Outcome reply =
            bed.gateway.send(endpoint(bed.inside, "SA").build(), kCluster, {static_cast<uint8_t>(n % 4)});
        ASSERT_EQ(reply.verdict, Verdict::Transmit) << n;
        ASSERT_EQ(key_of(reply.frame).destination, key_of(client(n).build()).source) << n;
    }
    EXPECT_EQ(bed.gateway.connections(), 256u);
    EXPECT_EQ(bed.reclaimed(), 2'000u - 256u);
}

// UDP: a port rests while a client waits for an answer. After that the flows that ended first are evicted;
// long-lived flows never are.
TEST(Reclaim, ADatagramsPortRestsWhileAnAnswerIsAwaited_NAT002) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {2'000, 2'007}});
    gateway.publish(
        {TestService{.name = "dns", .protocol = Protocol::Udp, .frontends = {{kVip, 53}}, .backends = {11}}});
    const auto ask = [&](uint16_t port) {
        const Outcome asked = gateway.send(eth()
                                               .from_mac(kClientMac.to_string())
                                               .to_mac(kUpMac.to_string())
                                               .ipv4("198.51.100.1", "80.11.12.10")
                                               .udp(port, 53)
                                               .build());
        EXPECT_EQ(asked.verdict, Verdict::Transmit) << port;
        return asked.verdict == Verdict::Transmit ? key_of(asked.frame).source_port : L4Port{0};
    };
    const auto answer = [&](L4Port port) {
        const Outcome outcome = gateway.send(eth()
                                                 .from_mac(backend_mac(11).to_string())
                                                 .to_mac(kClusterMac.to_string())
                                                 .ipv4("10.80.2.11", "10.80.2.1")
                                                 .udp(9376, port)
                                                 .build(),
                                             kCluster);
        return outcome.verdict == Verdict::Transmit ? key_of(outcome.frame).destination_port : L4Port{0};
    };
    std::vector<L4Port> ports;
    for (uint16_t n = 0; n < 7; ++n) {
        ports.push_back(ask(static_cast<uint16_t>(1'000 + n)));
    }
    EXPECT_EQ(answer(ports[0]), 1'000);
    gateway.advance_seconds(4);
    EXPECT_EQ(ask(1'000), ports[0]);
    EXPECT_EQ(answer(ports[0]), 1'000);
    EXPECT_EQ(answer(ports[3]), 1'003) << "late, and of use to the client that asked";
    ports.push_back(ask(1'007));
    gateway.advance_seconds(4);
    std::set<L4Port> reused;
    for (uint16_t n = 0; n < 5; ++n) {
        reused.insert(ask(static_cast<uint16_t>(2'000 + n)));
    }
    EXPECT_EQ(reused, (std::set<L4Port>{ports[1], ports[2], ports[4], ports[5], ports[6]}))
        << "two go on, one waits for its answer";
    EXPECT_EQ(gateway.count(Counter::ReclaimedSnatPorts), 5u);
    EXPECT_EQ(answer(ports[7]), 1'007);
}

TEST(Reclaim, ServesIpv6AndTheOtherFamily_NAT002_ANN32) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {2'000, 2'015}});
    TestService six{.name = "six", .frontends = {{kVip6, 80}}, .backends = {11}};
    TestService mixed{
        .name = "mixed", .frontends = {{kVip6, 81}}, .backends = {12}, .endpoints_of = IpFamily::V4};
    gateway.publish({six, mixed});
    for (const L4Port port : {L4Port{80}, L4Port{81}}) {
        std::set<L4Port> used;
        for (uint32_t n = 0; n < 100; ++n) {
            gateway.advance_milliseconds(20);
            const Outcome outcome =
                gateway.send(eth()
                                 .from_mac(kClientMac.to_string())
                                 .to_mac(kUpMac.to_string())
                                 .ipv6("2001:db8:1::" + std::to_string(1 + n), kVip6.to_string())
                                 .tcp(40'000, port, "S")
                                 .build());
            ASSERT_EQ(outcome.verdict, Verdict::Transmit) << port << " " << n;
            used.insert(key_of(outcome.frame).source_port);
        }
        EXPECT_EQ(used.size(), 16u) << port;
    }
    EXPECT_EQ(gateway.connections(), 32u);
    EXPECT_EQ(gateway.count(Counter::ReclaimedSnatPorts), 2u * (100 - 16));
}

// Several flows of one burst, more than there are ports.
TEST(Reclaim, ABurstOfFirstPacketsIsServed_NAT002) {
    Bed bed({.snat_ports = {2'000, 2'031}});
    for (uint32_t round = 0; round < 10; ++round) {
        std::vector<std::vector<uint8_t>> burst;
        for (uint32_t n = 0; n < limits::kBurstMax; ++n) {
            burst.push_back(client(round * limits::kBurstMax + n).build());
        }
        for (const Outcome& outcome : bed.gateway.send_burst(burst)) {
            EXPECT_EQ(outcome.verdict, Verdict::Transmit);
        }
        bed.gateway.advance_milliseconds(10);
    }
    EXPECT_EQ(bed.gateway.connections(), 32u);
    EXPECT_EQ(bed.gateway.worker(0).snat_ports.in_use(), 32u);
}

}  // namespace reclaim_test
}  // namespace penstock::test
