// SPDX-License-Identifier: Apache-2.0
// Entries of a full connection table that a Service or a prefix gives up to others.
#include "dataplane/pipeline/opening/fair_share.hpp"

#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"
#include "tests/unit/pipeline/web_service.hpp"

namespace penstock::test {
namespace fair_share_test {

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
    // A prefix may share a counter with the one that holds the table, one in 4,096 of them.
    std::vector<uint32_t> served;
    for (uint32_t n = 0; n < 20; ++n) {
        if (ask(host(1'000 + n, 0))) {
            served.push_back(n);
        }
    }
    ASSERT_GE(served.size(), 18u);
    EXPECT_TRUE(browse(host(1'000 + served.front(), 1), 40'000, [] {}));
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

}  // namespace fair_share_test
}  // namespace penstock::test
