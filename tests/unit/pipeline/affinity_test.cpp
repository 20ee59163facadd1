// SPDX-License-Identifier: Apache-2.0
// Session affinity through the real stages: the choices for a client's new flows, by whatever worker,
// frontend and port they arrive.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace affinity_test {

using stats::Counter;

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");
constexpr L4Port kNodePort = 30'080;

TestService sticky() {
    return {.frontends = {{kVip, 80}, {kVip6, 80}},
            .node_ports = {kNodePort},
            .backends = {11, 12, 13, 14},
            .affinity_timeout_s = 100};
}

// Sends first packets of new flows and reports where they leave. Each flow has a source port of its own.
class Clients {
 public:
    explicit Clients(VirtualGateway& gateway) : gateway_(gateway) {}

    Outcome open(const std::string& client, const IpAddr& frontend = kVip, L4Port port = 80,
                 Protocol protocol = Protocol::Tcp, uint8_t worker = 0) {
        PacketBuilder packet = eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
        frontend.is_v4() ? packet.ipv4(client, frontend.to_string())
                         : packet.ipv6(client, frontend.to_string());
        protocol == Protocol::Tcp   ? packet.tcp(next_port_++, port, "S")
        : protocol == Protocol::Udp ? packet.udp(next_port_++, port)
                                    : packet.sctp(next_port_++, port, 0).sctp_init(kClientTag);
        return gateway_.send(packet.build(), kUp, {worker});
    }
    // The last byte of the backend's address; 0 if the packet was not forwarded.
    uint8_t backend(const std::string& client, const IpAddr& frontend = kVip, L4Port port = 80,
                    Protocol protocol = Protocol::Tcp, uint8_t worker = 0) {
        const Outcome outcome = open(client, frontend, port, protocol, worker);
        return outcome.verdict == Verdict::Transmit ? destination_of(outcome.frame) : 0;
    }
    static uint8_t destination_of(std::vector<uint8_t> frame) {
        return frame[12] == 0x08 ? frame[33] : frame[53];
    }

    // A flow whose handshake is finished, or that is answered; returns the endpoint.
    uint8_t establish(const std::string& client, L4Port port = 80, Protocol protocol = Protocol::Tcp) {
        const L4Port client_port = next_port_;
        const Outcome opened = open(client, kVip, port, protocol);
        EXPECT_EQ(opened.verdict, Verdict::Transmit);
        packet::Parsed parsed;
        EXPECT_TRUE(packet::parse(opened.frame, parsed).has_value());
        const packet::FlowKey key = parsed.key;
        const uint8_t host = destination_of(opened.frame);
        const auto endpoint = [&] {
            return eth()
                .from_mac(backend_mac(host).to_string())
                .to_mac(kClusterMac.to_string())
                .ipv4(key.destination.to_string(), key.source.to_string());
        };
        const auto on = [&] {
            return eth()
                .from_mac(kClientMac.to_string())
                .to_mac(kUpMac.to_string())
                .ipv4(client, kVip.to_string());
        };
        const auto passes = [&](const PacketBuilder& packet, NicPortId from) {
            EXPECT_EQ(gateway_.send(packet.build(), from).verdict, Verdict::Transmit);
        };
        switch (protocol) {
            case Protocol::Tcp:
                passes(endpoint().tcp(key.destination_port, key.source_port, "SA"), kCluster);
                passes(on().tcp(client_port, port, "A"), kUp);
                break;
            case Protocol::Udp:
                passes(endpoint().udp(key.destination_port, key.source_port), kCluster);
                break;
            case Protocol::Sctp:
                passes(endpoint()
                           .sctp(key.destination_port, key.source_port, kClientTag)
                           .sctp_init_ack(kEndpointTag),
                       kCluster);
                passes(on().sctp(client_port, port, kEndpointTag).chunk(10, std::vector<uint8_t>(64, 1)),
                       kUp);  // COOKIE ECHO
                passes(endpoint().sctp(key.destination_port, key.source_port, kClientTag).chunk(11),
                       kCluster);  // COOKIE ACK
                break;
        }
        return host;
    }

 private:
    static constexpr uint32_t kClientTag = 0xc11e0001, kEndpointTag = 0xbac20002;
    VirtualGateway& gateway_;
    uint16_t next_port_ = 1'024;
};

TEST(Affinity, EveryFlowOfAClientGetsOneBackend_AFF001) {
    VirtualGateway gateway;
    gateway.publish({sticky()});
    Clients clients(gateway);
    std::set<uint8_t> chosen;
    for (int i = 0; i < 8; ++i) {
        const std::string client = "198.51.100." + std::to_string(1 + i);
        const uint8_t first = clients.backend(client);
        chosen.insert(first);
        EXPECT_EQ(clients.backend(client), first) << "another source port";
        EXPECT_EQ(clients.backend(client, kUpAddress, kNodePort), first) << "by NodePort";
        EXPECT_EQ(clients.backend(client), first);
    }
    EXPECT_EQ(chosen, (std::set<uint8_t>{11, 12, 13, 14}))
        << "rr turns for each new client, and only for those";
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), 8u);
    EXPECT_EQ(gateway.count(Counter::AffinityHits), 24u);
}

TEST(Affinity, ServicesWithoutItAreScheduledAsEver_AFF001) {
    VirtualGateway gateway;
    TestService plain = sticky();
    plain.affinity_timeout_s = 0;
    gateway.publish({plain});
    Clients clients(gateway);
    std::set<uint8_t> chosen;
    for (int i = 0; i < 4; ++i) {
        chosen.insert(clients.backend("198.51.100.1"));
    }
    EXPECT_EQ(chosen.size(), 4u);
    EXPECT_EQ(gateway.affinity().size(), 0u);
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), 0u);
}

TEST(Affinity, PortsOfAServiceArePinnedApart_AFF002) {
    VirtualGateway gateway;
    TestService https = sticky();
    https.name = "web-https";  // another service port, with an id of its own, as compile() assigns it
    https.frontends = {{kVip, 443}};
    https.node_ports = {};
    gateway.publish({sticky(), https});
    Clients clients(gateway);
    // rr is made to differ: the second port's rotation is advanced until it selects another backend.
    const uint8_t http_backend = clients.backend("198.51.100.1");
    int guard = 0;
    for (uint8_t next = clients.backend("203.0.113.0", kVip, 443);
         (next == 14 ? 11 : next + 1) == http_backend && guard < 8; ++guard) {
        next = clients.backend("203.0.113." + std::to_string(1 + guard), kVip, 443);
    }
    const uint8_t https_backend = clients.backend("198.51.100.1", kVip, 443);
    EXPECT_NE(https_backend, http_backend);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(clients.backend("198.51.100.1"), http_backend);
        EXPECT_EQ(clients.backend("198.51.100.1", kVip, 443), https_backend);
    }
}

// --- penstock.io/affinity-scope: service ---

constexpr L4Port kChat = 5'222;

// Two ports of one Service, over TCP and UDP, with endpoints that listen on different ports.
std::vector<TestService> united(std::vector<uint8_t> web_backends = {11, 12, 13, 14},
                                std::vector<uint8_t> chat_backends = {11, 12, 13, 14}) {
    TestService web = sticky();
    web.affinity_group = 1;
    web.backends = std::move(web_backends);
    TestService chat = web;
    chat.name = "web-chat";
    chat.protocol = Protocol::Udp;
    chat.frontends = {{kVip, kChat}, {kVip6, kChat}};
    chat.node_ports = {};
    chat.backends = std::move(chat_backends);
    chat.backend_port = 15'222;
    return {web, chat};
}
// A new flow to one port, or to the other.
uint8_t by_web(Clients& clients, const std::string& client, const IpAddr& frontend = kVip,
               uint8_t worker = 0) {
    return clients.backend(client, frontend, 80, Protocol::Tcp, worker);
}
uint8_t by_chat(Clients& clients, const std::string& client, const IpAddr& frontend = kVip,
                uint8_t worker = 0) {
    return clients.backend(client, frontend, kChat, Protocol::Udp, worker);
}

TEST(AffinityOfAllPorts, AClientHasOneEndpointWhicheverPortComesFirst_AFF002_AFF009) {
    for (const lb::SchedulerKind scheduler :
         {lb::SchedulerKind::RoundRobin, lb::SchedulerKind::Maglev, lb::SchedulerKind::Random}) {
        for (const bool is_v4 : {true, false}) {
            VirtualGateway gateway(VirtualGateway::Options{.workers = 2, .flow_stays_on_queue = true});
            std::vector<TestService> services = united();
            services[1].scheduler = scheduler;
            gateway.publish(services);
            Clients clients(gateway);
            const IpAddr& frontend = is_v4 ? kVip : kVip6;
            const std::string network = is_v4 ? "198.51.100." : "2001:db8:1::";
            std::set<uint8_t> chosen;
            for (int i = 1; i <= 16; ++i) {
                const std::string client = network + std::to_string(i);
                const bool web_first = i % 3 != 0;
                const uint8_t first =
                    web_first ? by_web(clients, client, frontend) : by_chat(clients, client, frontend);
                ASSERT_NE(first, 0);
                chosen.insert(first);
                EXPECT_EQ(
                    web_first ? by_chat(clients, client, frontend, 1) : by_web(clients, client, frontend, 1),
                    first)
                    << client;
                EXPECT_EQ(by_web(clients, client, frontend), first) << client;
                EXPECT_EQ(by_chat(clients, client, frontend), first) << client;
                if (is_v4) {
                    EXPECT_EQ(clients.backend(client, kUpAddress, kNodePort), first)
                        << client << " by NodePort";
                }
            }
            EXPECT_EQ(chosen.size(), 4u) << "other clients have other endpoints";
            EXPECT_EQ(gateway.count(Counter::AffinityMisses), 16u);
            EXPECT_EQ(gateway.affinity().size(), 16u);
        }
    }
}

TEST(AffinityOfAllPorts, EachPortHasItsOwnOfTheEndpointsPorts_AFF002) {
    VirtualGateway gateway;
    gateway.publish(united());
    Clients clients(gateway);
    const auto port_of = [](const Outcome& outcome) {
        packet::Parsed parsed;
        EXPECT_TRUE(packet::parse(outcome.frame, parsed).has_value());
        return parsed.key.destination_port;
    };
    EXPECT_EQ(port_of(clients.open("198.51.100.1")), 9'376);
    EXPECT_EQ(port_of(clients.open("198.51.100.1", kVip, kChat, Protocol::Udp)), 15'222);
}

TEST(AffinityOfAllPorts, AServiceBesideItIsPinnedByItself_AFF002) {
    VirtualGateway gateway;
    std::vector<TestService> services = united();
    TestService other = services[0];
    other.name = "other";
    other.frontends = {{kVip, 81}};
    other.node_ports = {};
    other.backends = {15};
    other.affinity_group = 2;
    services.push_back(other);
    TestService alone = other;
    alone.name = "alone";
    alone.frontends = {{kVip, 82}};
    alone.backends = {16};
    alone.affinity_group = 0;
    services.push_back(alone);
    gateway.publish(services);
    Clients clients(gateway);
    const uint8_t first = by_web(clients, "198.51.100.1");
    EXPECT_EQ(clients.backend("198.51.100.1", kVip, 81), 15);
    EXPECT_EQ(clients.backend("198.51.100.1", kVip, 82), 16);
    EXPECT_EQ(by_chat(clients, "198.51.100.1"), first);
    EXPECT_EQ(gateway.affinity().size(), 3u);
}

TEST(AffinityOfAllPorts, NewFlowsOfAnyPortRestartTheTimer_AFF004) {
    VirtualGateway gateway;
    gateway.publish(united());
    Clients clients(gateway);
    const uint8_t first = by_web(clients, "198.51.100.1");
    for (int i = 0; i < 3; ++i) {
        gateway.advance_seconds(99);
        EXPECT_EQ(by_chat(clients, "198.51.100.1"), first);
        gateway.advance_seconds(99);
        EXPECT_EQ(by_web(clients, "198.51.100.1"), first);
    }
    gateway.advance_seconds(101);
    by_chat(clients, "198.51.100.1");
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), 2u) << "expired";
}

TEST(AffinityOfAllPorts, AGoneEndpointGivesWayOnAllPortsAndHasNoClaimWhenItIsBack_AFF005) {
    VirtualGateway gateway;
    gateway.publish(united());
    Clients clients(gateway);
    const uint8_t first = by_web(clients, "198.51.100.1");
    std::vector<uint8_t> rest = {11, 12, 13, 14};
    std::erase(rest, first);
    gateway.publish(united(rest, rest));
    const uint8_t moved = by_chat(clients, "198.51.100.1");
    EXPECT_NE(moved, first);
    EXPECT_EQ(by_web(clients, "198.51.100.1"), moved);
    gateway.publish(united());
    EXPECT_EQ(by_web(clients, "198.51.100.1"), moved);
    EXPECT_EQ(by_chat(clients, "198.51.100.1"), moved);
}

// Two rules meet: an entry is used only at a port that has its endpoint, and an entry that is not used is
// overwritten.
TEST(AffinityOfAllPorts, AnEndpointThatLacksAPortIsReplacedOnAll_AFF002_AFF005) {
    VirtualGateway gateway;
    gateway.publish(united({11}, {12}));
    Clients clients(gateway);
    EXPECT_EQ(by_web(clients, "198.51.100.1"), 11);
    EXPECT_EQ(by_chat(clients, "198.51.100.1"), 12) << "11 does not have the port";
    gateway.publish(united({11, 12}, {12}));
    EXPECT_EQ(by_web(clients, "198.51.100.1"), 12) << "overwritten, and usable here as well";
}

TEST(AffinityOfAllPorts, AnEstablishedFlowOfOnePortKeepsTheEntryOfAll_AFF010) {
    for (const bool web_first : {true, false}) {
        VirtualGateway gateway(VirtualGateway::Options{.affinity_entries = 70});
        gateway.publish(united());
        Clients clients(gateway);
        std::map<std::string, uint8_t> pinned;
        for (int i = 0; i < 8; ++i) {
            const std::string client = "198.51.100." + std::to_string(i);
            pinned[client] = web_first ? clients.establish(client, 80, Protocol::Tcp)
                                       : clients.establish(client, kChat, Protocol::Udp);
        }
        for (int i = 0; i < 3'000; ++i) {
            by_web(clients, "10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256));
        }
        EXPECT_GT(gateway.count(Counter::AffinityEvictions), 2'000u);
        for (const auto& [client, backend] : pinned) {
            EXPECT_EQ(by_web(clients, client), backend) << client;
            EXPECT_EQ(by_chat(clients, client), backend) << client;
        }
    }
}

TEST(AffinityOfAllPorts, AnotherEpochForgetsAllPortsAndFlowsStay_AFF007) {
    VirtualGateway gateway;
    gateway.publish(united());
    Clients clients(gateway);
    const auto datagram = eth()
                              .from_mac(kClientMac.to_string())
                              .to_mac(kUpMac.to_string())
                              .ipv4("198.51.100.1", "80.11.12.10")
                              .udp(50'000, kChat)
                              .build();
    const uint8_t first = Clients::destination_of(gateway.send(datagram).frame);
    std::vector<TestService> again = united();
    again[0].affinity_epoch = again[1].affinity_epoch = 2;
    gateway.publish(again);
    by_web(clients, "198.51.100.1");
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), 2u);
    EXPECT_EQ(Clients::destination_of(gateway.send(datagram).frame), first);
}

// To within a second: the coarse clock's unit is a sixteenth.
TEST(Affinity, TheTimerRestartsAtEachNewFlowAndEndsOnTime_AFF004) {
    VirtualGateway gateway;
    gateway.publish({sticky()});
    Clients clients(gateway);
    const uint8_t first = clients.backend("198.51.100.1");
    for (int i = 0; i < 5; ++i) {
        gateway.advance_seconds(99);
        EXPECT_EQ(clients.backend("198.51.100.1"), first) << "99 s after the last new flow";
    }
    gateway.advance_seconds(101);
    EXPECT_NE(clients.backend("198.51.100.1"), first) << "expired: rr's next";
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), 2u);
}

TEST(Affinity, PacketsOfALongFlowDoNotKeepTheEntry_AFF004) {
    VirtualGateway gateway;
    TestService service = sticky();
    service.protocol = Protocol::Udp;
    gateway.publish({service});
    Clients clients(gateway);
    const auto datagram = eth()
                              .from_mac(kClientMac.to_string())
                              .to_mac(kUpMac.to_string())
                              .ipv4("198.51.100.1", "80.11.12.10")
                              .udp(50'000, 80)
                              .build();
    const uint8_t first = Clients::destination_of(gateway.send(datagram).frame);
    for (int i = 0; i < 11; ++i) {
        gateway.advance_seconds(10);
        EXPECT_EQ(Clients::destination_of(gateway.send(datagram).frame), first)
            << "the flow stays where it is";
    }
    EXPECT_NE(clients.backend("198.51.100.1", kVip, 80, Protocol::Udp), first)
        << "110 s after its first packet the next flow moves";
    EXPECT_EQ(Clients::destination_of(gateway.send(datagram).frame), first);
}

TEST(Affinity, AGoneEndpointGivesWayAndHasNoClaimWhenItIsBack_AFF005) {
    VirtualGateway gateway;
    gateway.publish({sticky()});
    Clients clients(gateway);
    const uint8_t seen = clients.backend("198.51.100.1");
    const uint8_t unseen = clients.backend("198.51.100.2");
    TestService without = sticky();
    std::erase_if(without.backends, [&](uint8_t host) { return host == seen || host == unseen; });
    gateway.publish({without});
    const uint8_t moved = clients.backend("198.51.100.1");
    EXPECT_NE(moved, seen);
    gateway.publish({sticky()});
    EXPECT_EQ(clients.backend("198.51.100.1"), moved) << "overwritten: the old endpoint has lost it";
    // The second client opened no flow in between. Its entry ended with the endpoint, so it gets a new
    // choice.
    const uint64_t misses = gateway.count(Counter::AffinityMisses);
    EXPECT_NE(clients.backend("198.51.100.2"), 0);
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), misses + 1);
}

TEST(Affinity, AnEndpointOfAnotherNodeIsNotHonouredOnALocalFrontend_AFF006) {
    VirtualGateway gateway;
    TestService service = sticky();
    service.backends = {11};
    service.local_frontends = {{IpAddr::v4(80, 11, 12, 11), 80}};
    service.local_backends = {12};
    gateway.publish({service});
    Clients clients(gateway);
    EXPECT_EQ(clients.backend("198.51.100.1"), 11);
    EXPECT_EQ(clients.backend("198.51.100.1", IpAddr::v4(80, 11, 12, 11)), 12)
        << "the set of the frontend's policy comes first";
    service.backends = {11, 12};
    gateway.publish({service});
    EXPECT_EQ(clients.backend("198.51.100.1"), 12) << "overwritten, and usable here as well";
}

TEST(Affinity, SwitchedOffItForgetsAndSwitchedOnItStartsEmpty_AFF007) {
    VirtualGateway gateway;
    TestService service = sticky();
    gateway.publish({service});
    Clients clients(gateway);
    const uint8_t first = clients.backend("198.51.100.1");
    TestService off = sticky();
    off.affinity_timeout_s = 0;
    gateway.publish({off});
    std::set<uint8_t> chosen;
    for (int i = 0; i < 4; ++i) {
        chosen.insert(clients.backend("198.51.100.1"));
    }
    EXPECT_EQ(chosen.size(), 4u) << "scheduled as ever";
    service.affinity_epoch = 2;
    gateway.publish({service});
    const uint64_t misses = gateway.count(Counter::AffinityMisses);
    clients.backend("198.51.100.1");
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), misses + 1) << "not pinned to " << int{first};
}

TEST(Affinity, AChangedTimeoutCountsFromTheLastRefresh_AFF008) {
    VirtualGateway gateway;
    gateway.publish({sticky()});
    Clients clients(gateway);
    const uint8_t first = clients.backend("198.51.100.1");
    const uint8_t other = clients.backend("198.51.100.2");
    gateway.advance_seconds(60);
    TestService longer = sticky();
    longer.affinity_timeout_s = 200;
    gateway.publish({longer});
    gateway.advance_seconds(120);
    EXPECT_EQ(clients.backend("198.51.100.1"), first) << "180 s under 200 s";
    TestService shorter = sticky();
    shorter.affinity_timeout_s = 50;
    gateway.publish({shorter});
    EXPECT_EQ(clients.backend("198.51.100.1"), first) << "refreshed just now";
    EXPECT_NE(clients.backend("198.51.100.2"), other) << "180 s ago: expired by the change";
}

struct Wire {
    const char* name;
    Protocol protocol;
    const IpAddr& frontend;
    const char* client;
};
const Wire kWires[] = {{"TCP over IPv4", Protocol::Tcp, kVip, "198.51.100.1"},
                       {"UDP over IPv4", Protocol::Udp, kVip, "198.51.100.1"},
                       {"TCP over IPv6", Protocol::Tcp, kVip6, "2001:db8:1::1"},
                       {"UDP over IPv6", Protocol::Udp, kVip6, "2001:db8:1::1"}};

TEST(Affinity, TwoWorkersAgreeOverEachProtocolAndFamily_AFF009) {
    for (const Wire& wire : kWires) {
        VirtualGateway gateway(VirtualGateway::Options{.workers = 2, .flow_stays_on_queue = true});
        TestService service = sticky();
        service.protocol = wire.protocol;
        gateway.publish({service});
        Clients clients(gateway);
        const uint8_t first = clients.backend(wire.client, wire.frontend, 80, wire.protocol, 0);
        ASSERT_NE(first, 0) << wire.name;
        for (uint8_t i = 0; i < 8; ++i) {
            EXPECT_EQ(clients.backend(wire.client, wire.frontend, 80, wire.protocol, i % 2), first)
                << wire.name;
        }
        EXPECT_GT(gateway.worker(0).connections.size(), 0u) << "both workers had flows";
        EXPECT_GT(gateway.worker(1).connections.size(), 0u);
    }
}

TEST(Affinity, IPv6ClientsDifferInEachOfTheir128Bits_AFF009) {
    VirtualGateway gateway;
    TestService service = sticky();
    gateway.publish({service});
    Clients clients(gateway);
    const IpAddr base = *IpAddr::parse("2001:db8:1::1");
    clients.backend(base.to_string(), kVip6);
    uint64_t others = 0;
    for (size_t byte = 1; byte < 16; ++byte) {
        std::array<uint8_t, 16> bytes = base.bytes();
        bytes[byte] ^= 0x40;
        EXPECT_NE(clients.backend(IpAddr::v6(bytes).to_string(), kVip6), 0);
        ++others;
    }
    EXPECT_EQ(gateway.count(Counter::AffinityMisses), 1 + others);
}

TEST(Affinity, AFullTableEvictsTheOldestAndForwardsOn_AFF010) {
    // one bucket, so that the result does not depend on the hash
    VirtualGateway gateway(VirtualGateway::Options{.affinity_entries = 7});
    gateway.publish({sticky()});
    Clients clients(gateway);
    std::map<std::string, uint8_t> pinned;
    for (int i = 0; i < 7; ++i) {
        const std::string client = "198.51.100." + std::to_string(i);
        pinned[client] = clients.backend(client);
        gateway.advance_seconds(1);
    }
    EXPECT_EQ(gateway.count(Counter::AffinityEvictions), 0u);
    EXPECT_EQ(clients.backend("198.51.100.0"), pinned["198.51.100.0"])
        << "the youngest now; .1 is the oldest";
    gateway.advance_seconds(1);
    EXPECT_NE(clients.backend("203.0.113.1"), 0) << "an eighth client is served";
    EXPECT_EQ(gateway.count(Counter::AffinityEvictions), 1u);
    for (const auto& [client, backend] : pinned) {
        if (client != "198.51.100.1") {
            EXPECT_EQ(clients.backend(client), backend) << client;
        }
    }
    EXPECT_EQ(gateway.count(Counter::AffinityEvictions), 1u);
}

TEST(Affinity, AFloodOfForgedSourcesIsForwardedAndCounted_AFF010) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 16'384, .affinity_entries = 70});
    gateway.publish({sticky()});
    Clients clients(gateway);
    for (int i = 0; i < 5'000; ++i) {
        ASSERT_NE(clients.backend("10." + std::to_string(i / 65'536) + "." + std::to_string(i / 256 % 256) +
                                  "." + std::to_string(i % 256)),
                  0);
    }
    EXPECT_LE(gateway.affinity().size(), 70u);
    EXPECT_EQ(gateway.count(Counter::AffinityEvictions), 5'000u - gateway.affinity().size());
    const uint8_t real = clients.backend("198.51.100.1");
    EXPECT_EQ(clients.backend("198.51.100.1"), real);
}

// Spoofed sources, towards another Service and this one: clients with an established flow keep their
// endpoint.
TEST(Affinity, SpoofedFlowsToAnotherServiceMoveNoClient_AFF010) {
    for (const Protocol protocol : {Protocol::Tcp, Protocol::Udp, Protocol::Sctp}) {
        VirtualGateway gateway(VirtualGateway::Options{.affinity_entries = 70});
        TestService service = sticky();
        service.protocol = protocol;
        TestService other = service;
        other.name = "other";
        other.frontends = {{kVip, 81}};
        other.node_ports = {};
        gateway.publish({service, other});
        Clients clients(gateway);
        std::map<std::string, uint8_t> pinned;
        for (int i = 0; i < 8; ++i) {
            const std::string client = "198.51.100." + std::to_string(i);
            pinned[client] = clients.establish(client, 80, protocol);
        }
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 3'000; ++i) {
                clients.open("10." + std::to_string(round) + "." + std::to_string(i / 256) + "." +
                                 std::to_string(i % 256),
                             kVip, i % 2 == 0 ? L4Port{80} : L4Port{81}, protocol);
            }
            for (const auto& [client, backend] : pinned) {
                EXPECT_EQ(clients.backend(client, kVip, 80, protocol), backend)
                    << client << " in round " << round;
            }
        }
        EXPECT_GT(gateway.count(Counter::AffinityEvictions), 8'000u);
    }
}

TEST(Affinity, AnAddedEndpointLeavesClientsWhereTheyAre_AFF011) {
    VirtualGateway gateway;
    gateway.publish({sticky()});
    Clients clients(gateway);
    std::map<std::string, uint8_t> pinned;
    for (int i = 0; i < 16; ++i) {
        const std::string client = "198.51.100." + std::to_string(i);
        pinned[client] = clients.backend(client);
    }
    TestService more = sticky();
    more.backends = {11, 12, 13, 14, 15, 16};
    TestService unrelated{.name = "other", .frontends = {{kVip, 9'000}}, .backends = {20}};
    gateway.publish({unrelated, more});
    for (const auto& [client, backend] : pinned) {
        EXPECT_EQ(clients.backend(client), backend) << client;
    }
}

// A flow that could not be opened does not affect the choice for its client.
TEST(Affinity, ARefusedFlowLeavesNoEntryAndRefreshesNone_AFF004) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {2'000, 2'001}});
    TestService service = sticky();
    service.backends = {11};
    gateway.publish({service});
    Clients clients(gateway);
    EXPECT_EQ(clients.backend("198.51.100.1"), 11);
    gateway.advance_seconds(50);
    EXPECT_EQ(clients.backend("198.51.100.2"), 11);
    gateway.establish_all();
    EXPECT_EQ(clients.open("198.51.100.3").reason, DropReason::SnatPortsExhausted);
    EXPECT_EQ(clients.open("198.51.100.1").reason, DropReason::SnatPortsExhausted);
    std::map<std::string, CoarseTime> entries;
    gateway.affinity().for_each([&](const lb::AffinityEntry& entry) {
        entries[entry.key.client.to_string()] = entry.refreshed;
        return true;
    });
    EXPECT_FALSE(entries.contains("198.51.100.3"));
    ASSERT_TRUE(entries.contains("198.51.100.1") && entries.contains("198.51.100.2"));
    EXPECT_GT(units_between(entries["198.51.100.1"], entries["198.51.100.2"]), 0)
        << "50 s apart: the refused flow refreshed nothing";
}

// Its first flow on the Local frontend fails, so the client keeps its endpoint of the other frontend.
TEST(Affinity, ARefusedMoveBringsTheFormerEntryBack_AFF005) {
    VirtualGateway gateway(VirtualGateway::Options{.snat_ports = {2'000, 2'000}});
    TestService service = sticky();
    service.backends = {11};
    service.local_frontends = {{IpAddr::v4(80, 11, 12, 11), 80}};
    service.local_backends = {12};
    gateway.publish({service});
    Clients clients(gateway);
    EXPECT_EQ(clients.backend("198.51.100.2", IpAddr::v4(80, 11, 12, 11)), 12)
        << "takes the only port towards .12";
    EXPECT_EQ(clients.backend("198.51.100.1"), 11);
    gateway.establish_all();
    EXPECT_EQ(clients.open("198.51.100.1", IpAddr::v4(80, 11, 12, 11)).reason,
              DropReason::SnatPortsExhausted);
    const uint64_t hits = gateway.count(Counter::AffinityHits);
    EXPECT_EQ(clients.open("198.51.100.1").reason, DropReason::SnatPortsExhausted)
        << "goes to .11, whose port is taken";
    EXPECT_EQ(gateway.count(Counter::AffinityHits), hits + 1);
}

TEST(Affinity, TwoFlowsOfAClientInOneBurstGetOneBackend_AFF009) {
    VirtualGateway gateway;
    gateway.publish({sticky()});
    std::vector<std::vector<uint8_t>> frames;
    for (uint16_t i = 0; i < 32; ++i) {
        frames.push_back(eth()
                             .from_mac(kClientMac.to_string())
                             .to_mac(kUpMac.to_string())
                             .ipv4("198.51.100.1", "80.11.12.10")
                             .tcp(static_cast<uint16_t>(40'000 + i), 80, "S")
                             .build());
    }
    std::set<uint8_t> chosen;
    for (const Outcome& outcome : gateway.send_burst(frames)) {
        ASSERT_EQ(outcome.verdict, Verdict::Transmit);
        chosen.insert(Clients::destination_of(outcome.frame));
    }
    EXPECT_EQ(chosen.size(), 1u);
    EXPECT_EQ(gateway.affinity().size(), 1u);
}

}  // namespace affinity_test
}  // namespace penstock::test
