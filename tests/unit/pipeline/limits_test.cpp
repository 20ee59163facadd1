// SPDX-License-Identifier: Apache-2.0
// Behaviour at the limit of every capacity that a packet can reach: exhaustion is a state with a name, never
// an accident.
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/fragment_cutter.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/reverse_path.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace limits_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

PacketBuilder syn(uint32_t n, uint16_t port = 80) {
    return eth()
        .from_mac(kClientMac.to_string())
        .to_mac(kUpMac.to_string())
        .ipv4("198.51." + std::to_string(n / 60'000) + ".1", "80.11.12.10")
        .tcp(static_cast<uint16_t>(1 + n % 60'000), port, "S");
}
TestService web() {
    return {.frontends = {{kVip, 80}}, .backends = {11}};
}

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

// A flood that repeats each of its UDP flows, so that they are long-lived and no ordinary victim is left. The
// endpoint answers.
class FullOfLastingFlows : public testing::TestWithParam<IpFamily> {
 protected:
    FullOfLastingFlows() {
        const IpAddr vip = is_v4 ? kVip : *IpAddr::parse("2001:db8:80::10");
        dns = {.name = "dns",
               .protocol = Protocol::Udp,
               .frontends = {{vip, 53}},
               .backends = {11},
               .source = lb::SourceMode::Keep};
        web = {.name = "web", .frontends = {{vip, 80}}, .backends = {12}, .source = lb::SourceMode::Keep};
        other_dns = dns;
        other_dns.name = "other-dns";
        other_dns.frontends = {{vip, 54}};
        other_dns.backends = {13};
        gateway.publish({dns, web, other_dns});
    }
    // The n-th host of a prefix that is a /24, or a /56.
    [[nodiscard]] std::string host(uint32_t prefix, uint32_t n) const {
        return is_v4 ? "203." + std::to_string(prefix / 256) + "." + std::to_string(prefix % 256) + "." +
                           std::to_string(1 + n)
                     : "2001:db8:" + hex(0x1000 + prefix) + ":" + hex(n % 256) + "::" + hex(1 + n);
    }
    static std::string hex(uint32_t number) {
        std::array<char, 9> text{};
        return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number, 16).ptr};
    }
    [[nodiscard]] PacketBuilder ip(PacketBuilder link, const std::string& from, const std::string& to) const {
        return is_v4 ? link.ipv4(from, to) : link.ipv6(from, to);
    }
    [[nodiscard]] PacketBuilder client(const std::string& address) const {
        return ip(eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string()), address,
                  web.frontends[0].first.to_string());
    }
    [[nodiscard]] PacketBuilder endpoint(uint8_t number, const std::string& address) const {
        const auto link = eth().from_mac(backend_mac(number).to_string()).to_mac(kClusterMac.to_string());
        return ip(link, backend_address(number, GetParam()).to_string(), address);
    }
    // A request, and its answer.
    bool ask(const std::string& address, uint16_t client_port = 5'000, L4Port port = 53) {
        const bool is_served =
            gateway.send(client(address).udp(client_port, port).build()).verdict == Verdict::Transmit;
        gateway.send(endpoint(port == 53 ? 11 : 13, address).udp(9376, client_port).build(), kCluster);
        return is_served;
    }
    // Sent twice, so that the flows count as long-lived. `source` returns the n-th flow's source.
    void flood(const std::function<std::string(uint32_t)>& source) {
        for (int round = 0; round < 2; ++round) {
            for (uint32_t n = 0; n < flows; ++n) {
                ask(source(n), static_cast<uint16_t>(5'000 + n % 1'000));
            }
            gateway.advance_seconds(3);
        }
        ASSERT_EQ(gateway.connections(), flows);
    }
    // A handshake with a request; `between` runs after each segment.
    bool browse(const std::string& address, uint16_t client_port, const std::function<void()>& between) {
        bool is_served = true;
        const auto passes = [&](const PacketBuilder& packet, NicPortId port) {
            is_served = is_served && gateway.send(packet.build(), port).verdict == Verdict::Transmit;
            between();
        };
        passes(client(address).tcp(client_port, 80, "S"), kUp);
        passes(endpoint(12, address).tcp(9376, client_port, "SA"), kCluster);
        passes(client(address).tcp(client_port, 80, "A"), kUp);
        passes(client(address).tcp(client_port, 80, "PA").payload("GET /"), kUp);
        passes(endpoint(12, address).tcp(9376, client_port, "PA").payload("200"), kCluster);
        return is_served;
    }

    const bool is_v4 = GetParam() == IpFamily::V4;
    static constexpr uint32_t kRoom = 256;
    const uint32_t flows = is_v4 ? kRoom : kRoom / 2;
    TestService dns, web, other_dns;
    VirtualGateway gateway{VirtualGateway::Options{.connections = kRoom}};
};
INSTANTIATE_TEST_SUITE_P(Families, FullOfLastingFlows, testing::Values(IpFamily::V4, IpFamily::V6));

// The sources are spoofed, so no two are alike. The flood continues between the segments of the others.
TEST_P(FullOfLastingFlows, OfOneServiceServesOtherServices_NAT008) {
    flood([&](uint32_t n) { return host(n, 0); });
    uint32_t next = 1'000;
    const auto goes_on = [&] {
        for (int n = 0; n < 100; ++n, ++next) {
            ask(host(next, 0));
        }
    };
    for (uint16_t n = 0; n < 20; ++n) {
        EXPECT_TRUE(browse(host(9'000, n), static_cast<uint16_t>(40'000 + n), goes_on)) << n;
    }
    EXPECT_FALSE(ask(host(8'000, 0))) << "the Service that holds the table takes nothing from itself";
    // A request is answered before its entry is evicted, and a long-lived flow stays.
    for (uint32_t round = 0; round < 3; ++round) {
        EXPECT_TRUE(ask(host(9'000, 100), 6'000, 54)) << round;
        goes_on();
        gateway.advance_seconds(1);
    }
    EXPECT_EQ(gateway.service_counters(0, "web").connections.read(), 20u);
    EXPECT_EQ(gateway.service_counters(0, "other-dns").new_flows.read(), 1u);
}

// A Service takes from the Service that fills the table until it has half as much, a third of the table, and
// no more.
TEST_P(FullOfLastingFlows, TwoServicesShareTheTable_NAT008) {
    flood([&](uint32_t n) { return host(n, 0); });
    for (uint32_t n = 0; n < flows; ++n) {
        browse(host(2'000 + n, 0), 40'000, [] {});
    }
    const auto held = [&](const char* name) { return gateway.service_counters(0, name).connections.read(); };
    EXPECT_NEAR(static_cast<double>(held("web")), flows / 3.0, 2);
    EXPECT_EQ(held("dns"), flows - held("web"));
}

// A client of the same Service, from another prefix than all others.
TEST_P(FullOfLastingFlows, OfOnePrefixServesOtherPrefixes_NAT008) {
    flood([&](uint32_t n) { return host(7, n % 200); });
    EXPECT_FALSE(ask(host(7, 201))) << "nobody makes room for the prefix that holds the table";
    for (uint32_t n = 0; n < 20; ++n) {
        EXPECT_TRUE(ask(host(1'000 + n, 0))) << n;
    }
    EXPECT_TRUE(browse(host(3'000, 0), 40'000, [] {}));
}

// Past connections of a prefix do not count against it.
TEST_P(FullOfLastingFlows, APrefixGetsItsShareBack_NAT008) {
    flood([&](uint32_t n) { return host(7, n % 200); });
    gateway.advance_seconds(125);
    gateway.age();
    ASSERT_EQ(gateway.connections(), 0u);
    flood([&](uint32_t n) { return host(n, 0); });  // one of them is of that prefix
    for (uint32_t n = 0; n < 8; ++n) {              // a search examines a quarter of the table
        EXPECT_FALSE(ask(host(5'000 + n, 0))) << n;
    }
    EXPECT_EQ(gateway.count(stats::Counter::EvictedConnections), 0u);
}

// A connection whose client has acknowledged the handshake is never evicted for another, however many its
// Service holds.
TEST_P(FullOfLastingFlows, EstablishedTcpNeverGivesWay_NAT008) {
    for (uint32_t n = 0; n < flows; ++n) {
        ASSERT_TRUE(browse(host(7, n % 200), static_cast<uint16_t>(40'000 + n), [] {})) << n;
    }
    gateway.advance_seconds(100);
    EXPECT_FALSE(ask(host(1, 0)));
    EXPECT_EQ(gateway.service_counters(0, "web").connections.read(), flows);
    EXPECT_EQ(gateway.count(stats::Counter::EvictedConnections), 0u);
}

// REJ-003: answers are limited per worker, and the limit costs forwarding nothing.
TEST(Rejects, AreLimitedPerWorker_REJ003) {
    VirtualGateway gateway(VirtualGateway::Options{.rejects_per_second = 10, .rejects_burst = 5});
    TestService empty = web();
    empty.backends = {};
    TestService alive = web();
    alive.name = "alive";
    alive.frontends = {{kVip, 443}};
    gateway.publish({empty, alive});
    const auto answered = [&](uint32_t from, uint32_t count) {
        uint32_t answers = 0;
        for (uint32_t n = from; n < from + count; ++n) {
            const Outcome outcome = gateway.send(syn(n).build());
            answers += outcome.verdict == Verdict::Transmit ? 1 : 0;
            if (outcome.verdict == Verdict::Drop) {
                EXPECT_EQ(outcome.reason, DropReason::RejectLimited);
            }
        }
        return answers;
    };
    EXPECT_EQ(answered(0, 100), 5u);
    EXPECT_EQ(gateway.send(syn(0, 443).build()).verdict, Verdict::Transmit);
    gateway.advance_milliseconds(200);
    EXPECT_EQ(answered(100, 100), 2u);
    gateway.advance_seconds(10);
    EXPECT_EQ(answered(200, 100), 5u) << "the bucket holds no more than its burst";
}

// Segments of no flow, each of which is answered by a RST, at three times the limit of RSTs.
class BesideAFloodOfSegments : public testing::Test {
 protected:
    static constexpr uint16_t kNarrow = 1'400;
    void SetUp() override {
        TestService dns = web();
        dns.name = "dns";
        dns.protocol = Protocol::Udp;
        gateway.publish({web(), dns});
        gateway.set_mtu(kCluster, kNarrow);
    }
    static std::vector<uint8_t> datagram(const std::string& client, size_t payload, uint8_t ttl = 64) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4(client, "80.11.12.10")
            .dont_fragment()
            .ttl(ttl)
            .udp(5'000, 80)
            .payload(std::vector<uint8_t>(payload))
            .build();
    }
    // Counts the answers to 20 datagrams, sent every 50 ms during the flood: 3,000 of `flood` a second.
    template <typename Flood>
    uint32_t answered(const std::vector<uint8_t>& asked, Flood&& flood) {
        uint32_t n = 0;
        const auto pass = [&](uint32_t ms) {
            for (uint32_t i = 0; i < ms; ++i) {
                gateway.advance_milliseconds(1);
                for (int segment = 0; segment < 3; ++segment) {
                    gateway.send(flood(n++));
                }
            }
        };
        pass(1'000);  // uses up the burst of the limit
        uint32_t answers = 0;
        for (int question = 0; question < 20; ++question) {
            pass(50);
            const Outcome outcome = gateway.send(asked);
            answers += outcome.verdict == Verdict::Transmit && outcome.egress == kUp ? 1 : 0;
        }
        return answers;
    }
    static std::vector<uint8_t> ack(uint32_t n) {
        return eth()
            .from_mac(kClientMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("198.51.100.1", "80.11.12.10")
            .tcp(static_cast<uint16_t>(1'024 + n % 60'000), 80, "A")
            .build();
    }
    // With a fixed secret the networks of these tests share no bucket.
    VirtualGateway gateway{VirtualGateway::Options{.secrets_from = 1}};
};

TEST_F(BesideAFloodOfSegments, SendersLearnTheirPathMtu_ICMP004_REJ003) {
    EXPECT_EQ(answered(datagram("10.80.1.2", 1'450), ack), 20u);
    EXPECT_GT(gateway.count(stats::Counter::Rejected), 0u);
}

TEST_F(BesideAFloodOfSegments, TracesAreAnswered_ICMP006_REJ003) {
    EXPECT_EQ(answered(datagram("10.80.1.2", 10, 1), ack), 20u);
}

// Neither does a flood of too large packets from another network, nor a flood of expiring packets from the
// same sender. One network has its limit.
TEST_F(BesideAFloodOfSegments, EachNetworkLearnsItsPathMtu_ICMP004_REJ003) {
    const auto large = [](uint32_t) { return datagram("198.51.100.1", 1'450); };
    EXPECT_EQ(answered(datagram("10.80.1.2", 1'450), large), 20u);
    const uint64_t answers = gateway.count(stats::Counter::IcmpErrorsSent) - 20;
    EXPECT_LE(answers, 2 * limits::kErrorsPerSecondToPrefix + limits::kErrorsBurstToPrefix);
    const auto expiring = [](uint32_t) { return datagram("10.80.1.9", 10, 1); };
    EXPECT_EQ(answered(datagram("10.80.1.2", 1'450), expiring), 20u);
    const auto neighbours = [](uint32_t) { return datagram("10.80.1.9", 1'450); };
    EXPECT_LT(answered(datagram("10.80.1.2", 1'450), neighbours), 20u) << "of one network";
}

// Packets that cannot be answered take no token.
TEST(Rejects, WhatIsNotAnsweredTakesNoToken_REJ003) {
    VirtualGateway gateway(VirtualGateway::Options{
        .rejects_per_second = 2, .rejects_burst = 2, .errors_per_second = 2, .errors_burst = 2});
    TestService empty = web();
    empty.backends = {};
    TestService alive = web();
    alive.name = "alive";
    alive.frontends = {{kVip, 443}};
    gateway.publish({empty, alive});
    const auto damaged = [](const std::vector<uint8_t>& frame) {
        std::vector<uint8_t> other = frame;
        other.back() ^= 1;
        return other;
    };
    const auto expect = [&](const std::vector<uint8_t>& frame, DropReason reason, const char* what) {
        for (int n = 0; n < 5; ++n) {
            const Outcome outcome = gateway.send(frame);
            EXPECT_EQ(outcome.verdict, Verdict::Drop) << what;
            EXPECT_EQ(text_of(outcome.reason).counter, text_of(reason).counter) << what;
        }
    };
    expect(damaged(syn(1).payload("x").build()), DropReason::BadL4Checksum, "a SYN");
    const auto dying = eth()
                           .from_mac(kClientMac.to_string())
                           .to_mac(kUpMac.to_string())
                           .ipv4("10.80.1.2", "80.11.12.10")
                           .ttl(1)
                           .tcp(5'000, 443, "S")
                           .payload("x")
                           .build();
    expect(damaged(dying), DropReason::BadL4Checksum, "a SYN that expires");
    for (int n = 0; n < 2; ++n) {
        EXPECT_EQ(gateway.send(syn(1).build()).verdict, Verdict::Transmit);
        EXPECT_EQ(gateway.send(dying).verdict, Verdict::Transmit);
    }
    expect(syn(1).build(), DropReason::RejectLimited, "a SYN");
    expect(dying, DropReason::RejectLimited, "a SYN that expires");
    gateway.advance_seconds(10);
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    expect(syn(1).build(), DropReason::NoRoute, "a SYN without a way back");
    expect(dying, DropReason::NoRoute, "a SYN without a way back that expires");
}

TEST(Forwarding, NamesWhatStopsItOnTheWayOut) {
    VirtualGateway gateway;
    gateway.publish({web()});
    gateway.set_unresolved({11});
    const Outcome held = gateway.send(syn(1).build());
    EXPECT_EQ(held.verdict, Verdict::Hold);
    EXPECT_EQ(held.egress, kCluster);
    gateway.set_unresolved({});
    gateway.set_mtu(100);
    EXPECT_EQ(gateway.send(syn(2).payload(std::string(61, 'x')).build()).verdict, Verdict::Split);
    EXPECT_EQ(gateway.send(syn(3).payload(std::string(60, 'x')).build()).verdict, Verdict::Transmit);
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    EXPECT_EQ(gateway.send(syn(4).build()).reason, DropReason::NoRoute);
    EXPECT_EQ(gateway.service_counters(0, "web").dropped.read(), 1u);
}

// An answer that cannot be sent does not count as one.
TEST(Forwarding, AnAnswerThatFindsNoWayBackIsADropAndNoAnswer_REJ001) {
    VirtualGateway gateway;
    TestService empty = web();
    empty.backends = {};
    gateway.publish({empty});
    gateway.set_packets(without_reverse_path_check());
    gateway.remove_routes();
    EXPECT_EQ(gateway.send(syn(1).build()).reason, DropReason::NoRoute);
    EXPECT_EQ(gateway.count(stats::Counter::Rejected), 0u);
    EXPECT_EQ(gateway.service_counters(0, "web").rejected.read(), 0u);
    EXPECT_EQ(gateway.service_counters(0, "web").dropped.read(), 1u);
}

// After a restore on another host, the TSC of a virtual machine may restart. Work that waits for a time must
// not wait for the old one.
TEST(Time, ThatReadsEarlierStallsNothing) {
    VirtualGateway gateway(VirtualGateway::Options{.rejects_per_second = 10, .rejects_burst = 5});
    TestService empty = web();
    empty.name = "empty";
    empty.backends = {};
    TestService dns = web();
    dns.name = "dns";
    dns.protocol = Protocol::Udp;
    dns.frontends = {{kVip, 53}};
    gateway.publish({empty, dns});
    const auto question = eth()
                              .from_mac(kClientMac.to_string())
                              .to_mac(kUpMac.to_string())
                              .ipv4("10.80.1.2", "80.11.12.10")
                              .udp(5'000, 53);
    const auto refused = [&] {
        uint32_t answers = 0;
        for (uint32_t n = 0; n < 20; ++n) {
            answers += gateway.send(syn(n).build()).verdict == Verdict::Transmit ? 1 : 0;
        }
        return answers;
    };
    EXPECT_EQ(refused(), 5u);
    EXPECT_EQ(gateway.send(PacketBuilder(question).payload("?").build()).verdict, Verdict::Transmit);
    const auto later = cut(PacketBuilder(question).payload(std::vector<uint8_t>(200)).build(), 9, 64)[1];
    EXPECT_EQ(gateway.send(later).verdict, Verdict::Await);

    gateway.turn_tsc_back(900);
    EXPECT_EQ(refused(), 0u) << "no token has come in no time";
    gateway.advance_seconds(2);
    EXPECT_EQ(refused(), 5u);
    gateway.expire_fragments();
    EXPECT_EQ(gateway.fragments_waiting(), 0u);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 1u);
    gateway.advance_seconds(conn::Timeouts().udp_one_way_s);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u) << "idle past its limit";
}

}  // namespace limits_test
}  // namespace penstock::test
