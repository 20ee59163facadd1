// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/snat.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "dataplane/nat/masquerade.hpp"
#include "dataplane/nat/reply_owner.hpp"

namespace penstock::nat {
namespace snat_test {

constexpr NicPortId kOutside{0}, kInside{1};
const IpAddr kSnatA = IpAddr::v4(192, 0, 2, 1), kSnatB = IpAddr::v4(192, 0, 2, 2);
const IpAddr kSnat6 = *IpAddr::parse("2001:db8::1");
const IpAddr kEndpoint = IpAddr::v4(10, 1, 0, 1);

BindRequest request(uint64_t client_hash) {
    return {kEndpoint, 9376, Protocol::Tcp, kInside, client_hash};
}

// explain lists the addresses without a search. They must be those of a search, in its order.
TEST(Snat, ChoicesBeginWithTheClientsOwnAmongThoseThatFit) {
    SnatConfig config;
    EXPECT_TRUE(choices_in_turn(config, request(0)).empty());
    config.addresses = {{.address = kSnat6},
                        {.address = kSnatA},
                        {.address = kSnatB},
                        {.address = kSnatB, .egress = kOutside}};
    for (uint64_t hash = 0; hash < 10; ++hash) {
        const std::vector expected{&config.addresses[1 + hash % 2], &config.addresses[1 + (hash + 1) % 2]};
        EXPECT_EQ(choices_in_turn(config, request(hash)), expected);
    }
}

TEST(Snat, OnlyASharedAddressLeavesOutWhatTheHostUses) {
    SnatConfig config;
    std::vector<uint64_t> node_ports(kPortBlocks);
    node_ports[30'080 / 64] = 1;  // NodePort 30080
    const HostPorts host{.node_port_bits = node_ports.data(), .version = 3};
    config.ports = {30'079, 32'769};
    const PortRules shared = rules_for(config, {.address = kSnatA, .shared_with_host = true}, host);
    const PortRules own = rules_for(config, {.address = kSnatA}, host);
    const auto allows = [](const PortRules& rules, uint32_t port) {
        return (rules.usable(port / 64) >> (port % 64) & 1) != 0;
    };
    for (const uint32_t port : {30'080u, 32'768u, 32'769u}) {
        EXPECT_FALSE(allows(shared, port)) << port;
        EXPECT_TRUE(allows(own, port)) << port;
    }
    for (const uint32_t port : {30'079u, 30'081u, 32'767u}) {
        EXPECT_TRUE(allows(shared, port)) << port;
    }
    for (const uint32_t port : {30'078u, 32'770u}) {
        EXPECT_FALSE(allows(own, port)) << port;
    }
}

TEST(Masquerade, OnlyAKeptSourceThatIsNotTheEndpointStays_NAT003_NAT005) {
    const IpAddr client = IpAddr::v4(198, 51, 100, 7);
    EXPECT_TRUE(must_translate(false, client, kEndpoint));
    EXPECT_FALSE(must_translate(true, client, kEndpoint));
    EXPECT_TRUE(must_translate(true, kEndpoint, kEndpoint));
    EXPECT_TRUE(must_translate(true, *IpAddr::parse("2001:db8::2"), kEndpoint))
        << "no packet to it holds that address (ANN-32)";
}

}  // namespace snat_test
}  // namespace penstock::nat
