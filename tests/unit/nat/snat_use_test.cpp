// SPDX-License-Identifier: Apache-2.0
#include "dataplane/nat/snat_use.hpp"

#include <gtest/gtest.h>

#include <array>

namespace penstock::nat {
namespace snat_use_test {

const IpAddr kOwn = IpAddr::v4(10, 0, 0, 1);
const IpAddr kShared = IpAddr::v4(10, 0, 0, 2);
const IpAddr kEndpoint = IpAddr::v4(192, 0, 2, 1);
const IpAddr kOther = IpAddr::v4(192, 0, 2, 2);

// NodePorts 30000 and 30001 of TCP; none of the other protocols.
const uint64_t* node_ports(Protocol protocol) {
    static const auto kBits = [] {
        std::array<uint64_t, kPortBlocks> bits{};
        for (const uint32_t port : {30'000U, 30'001U}) {
            bits[port / 64] |= 1ULL << port % 64;
        }
        return bits;
    }();
    return protocol == Protocol::Tcp ? kBits.data() : nullptr;
}

SnatConfig config() {
    return {.addresses = {{.address = kOwn, .egress = {1}},
                          {.address = kShared, .egress = {1}, .shared_with_host = true},
                          {.address = kOwn, .egress = {2}}},
            .ports = {1'024, 65'535},
            .host_ephemeral = {32'768, 60'999}};
}

TEST(SnatUse, TotalLeavesOutWhatTheHostNeeds) {
    const SnatCensus census(config(), node_ports);
    const std::vector<SnatUse> expected{
        {.address = kOwn, .protocol = Protocol::Tcp, .ports = 64'512},
        {.address = kOwn, .protocol = Protocol::Udp, .ports = 64'512},
        {.address = kOwn, .protocol = Protocol::Sctp, .ports = 64'512},
        {.address = kShared, .protocol = Protocol::Tcp, .ports = 64'512 - 28'232 - 2},
        {.address = kShared, .protocol = Protocol::Udp, .ports = 64'512 - 28'232},
        {.address = kShared, .protocol = Protocol::Sctp, .ports = 64'512 - 28'232},
    };
    EXPECT_EQ(census.result(), expected);
}

TEST(SnatUse, BusiestEndpointIsCountedByAddressPortAndProtocol) {
    SnatCensus census(config(), node_ports);
    const auto count = [&census](const PoolKey& key, int times) {
        for (int i = 0; i < times; ++i) {
            census.count(key, 1'024);
        }
    };
    count({kOwn, kEndpoint, 80, Protocol::Tcp}, 3);
    count({kOwn, kEndpoint, 81, Protocol::Tcp}, 5);
    count({kOwn, kOther, 80, Protocol::Tcp}, 4);
    count({kOwn, kEndpoint, 80, Protocol::Udp}, 1);
    count({kShared, kEndpoint, 81, Protocol::Tcp}, 2);
    count({IpAddr::v4(10, 0, 0, 9), kEndpoint, 80, Protocol::Tcp}, 9);  // no longer configured
    const auto& uses = census.result();
    ASSERT_EQ(uses.size(), 6u);
    EXPECT_EQ(uses[0].in_use, 12u);
    EXPECT_EQ(uses[0].busiest_endpoint, 5u);
    EXPECT_EQ(uses[1].in_use, 1u);
    EXPECT_EQ(uses[1].busiest_endpoint, 1u);
    EXPECT_EQ(uses[2].in_use, 0u);
    EXPECT_EQ(uses[2].busiest_endpoint, 0u);
    EXPECT_EQ(uses[3].in_use, 2u);
    EXPECT_EQ(uses[3].busiest_endpoint, 2u);
}

TEST(SnatUse, PortsOfAShareAreThoseOfTheGatewaysPart) {
    const SnatConfig both{.addresses = {{.address = kOwn, .group = 1, .part = PortPart::Primary},
                                        {.address = kShared, .group = 2, .part = PortPart::Heir}},
                          .ports = {1'024, 65'535}};
    SnatCensus census(both, [](Protocol) { return nullptr; });
    // The last one was opened by the other gateway.
    for (const L4Port port : {L4Port{1'024}, L4Port{1'025}, L4Port{1'031}}) {
        census.count({kOwn, kEndpoint, 80, Protocol::Tcp}, port);
        census.count({kShared, kEndpoint, 80, Protocol::Tcp}, port);
    }
    const auto& uses = census.result();
    EXPECT_EQ(uses[0], (SnatUse{kOwn, Protocol::Tcp, 56'448, 3, 2}));
    EXPECT_EQ(uses[3], (SnatUse{kShared, Protocol::Tcp, 8'064, 3, 1}));
}

}  // namespace snat_use_test
}  // namespace penstock::nat
