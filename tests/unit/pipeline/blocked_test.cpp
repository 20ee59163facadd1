// SPDX-License-Identifier: Apache-2.0
// The blocklist: packets dropped for their source, and packets left alone.
#include <gtest/gtest.h>

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace blocked_test {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);
const IpAddr kVip6 = *IpAddr::parse("2001:db8:80::10");

TestService web() {
    return {.frontends = {{kVip, 80}, {kVip6, 80}}, .backends = {11}};
}

PacketBuilder up() {
    return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
}
std::vector<uint8_t> syn(const std::string& from, uint16_t port = 40'000) {
    return up().ipv4(from, kVip.to_string()).tcp(port, 80, "S").build();
}

route::PrefixSet list(std::initializer_list<const char*> texts) {
    std::vector<Prefix> prefixes;
    for (const char* text : texts) {
        prefixes.push_back(*Prefix::parse(text));
    }
    return route::PrefixSet(std::move(prefixes));
}

void expect_blocked(const Outcome& outcome) {
    EXPECT_EQ(outcome.verdict, Verdict::Drop);
    EXPECT_EQ(outcome.reason, DropReason::SourceBlocked) << text_of(outcome.reason).counter;
}

TEST(Blocklist, AnyIpPacketFromAListedSourceIsDropped) {
    VirtualGateway gateway;
    gateway.publish({web()});
    gateway.set_blocked_sources(list({"10.80.1.2/32", "198.51.100.0/24", "fd00:80:1::/64"}));
    expect_blocked(gateway.send(syn("10.80.1.2")));  // to a Service
    expect_blocked(
        gateway.send(up().ipv4("198.51.100.9", "10.80.1.1").udp(5'000, 22).build()));         // to the host
    expect_blocked(gateway.send(up().ipv4("198.51.100.9", "10.80.1.1").icmp(8, 0).build()));  // of no flow
    expect_blocked(gateway.send(
        up().ipv4("10.80.1.2", "10.80.1.1").more_fragments().udp(5'000, 53).build()));  // a fragment
    expect_blocked(gateway.send(up().ipv6("fd00:80:1::2", kVip6.to_string()).tcp(40'000, 80, "S").build()));
    EXPECT_EQ(gateway.connections(), 0U);

    EXPECT_EQ(gateway.send(syn("10.80.1.3")).verdict, Verdict::Transmit);
    EXPECT_EQ(gateway.send(up().ether_type(0x0806).payload(std::vector<uint8_t>(46)).build()).verdict,
              Verdict::Punt)
        << "ARP is no IP";
}

TEST(Blocklist, NothingFromItIsHandedToAnotherWorker) {
    VirtualGateway gateway(VirtualGateway::Options{.workers = 4});
    gateway.publish({web()});
    gateway.set_blocked_sources(list({"198.51.100.0/24"}));
    for (uint8_t receiver = 0; receiver < 4; ++receiver) {
        const Outcome fragment = gateway.send(
            up().ipv4("198.51.100.9", kUpAddress.to_string()).more_fragments().udp(5'000, 53).build(), kUp,
            {receiver});
        expect_blocked(fragment);
        EXPECT_EQ(fragment.handoffs, 0U);
    }
}

TEST(Blocklist, AFlowThatLivesEndsForItsClientAndGoesOnWhenTheListIsEmpty) {
    VirtualGateway gateway;
    gateway.publish({web()});
    ASSERT_EQ(gateway.send(syn("10.80.1.2")).verdict, Verdict::Transmit);
    gateway.set_blocked_sources(list({"10.80.1.0/24"}));
    expect_blocked(gateway.send(syn("10.80.1.2")));
    gateway.set_blocked_sources({});
    EXPECT_EQ(gateway.send(syn("10.80.1.2")).verdict, Verdict::Transmit);
}

// The other packets of the burst keep their positions and their flows.
TEST(Blocklist, ABurstLosesOnlyWhatIsListed) {
    for (const uint32_t workers : {1U, 2U}) {
        VirtualGateway gateway({.workers = workers});
        gateway.publish({web()});
        gateway.set_blocked_sources(list({"10.80.1.64/26"}));
        std::vector<std::vector<uint8_t>> frames;
        for (unsigned host = 50; host < 80; ++host) {
            frames.push_back(syn("10.80.1." + std::to_string(host)));
        }
        const std::vector<Outcome> outcomes = gateway.send_burst(frames);
        for (unsigned host = 50; host < 80; ++host) {
            EXPECT_EQ(outcomes[host - 50].verdict, host < 64 ? Verdict::Transmit : Verdict::Drop) << host;
        }
        EXPECT_EQ(gateway.connections(), 14U);
    }
}

TEST(Blocklist, WhatLinuxSendsDoesNotArrive) {
    VirtualGateway gateway;
    gateway.publish({web()});
    gateway.set_blocked_sources(list({"10.80.1.0/24"}));
    const auto from_host = eth().from_mac(kUpMac.to_string()).to_mac(kClientMac.to_string());
    EXPECT_EQ(
        gateway
            .send_from_host(
                PacketBuilder(from_host).ipv4("10.80.1.1", "10.80.1.2").tcp(179, 5'000, "A").build(), kUp)
            .verdict,
        Verdict::Transmit);
    EXPECT_EQ(
        gateway
            .send_from_host(PacketBuilder(from_host).ipv4("10.80.1.1", "10.80.1.2").icmp(0, 0).build(), kUp)
            .verdict,
        Verdict::Transmit);
}

}  // namespace blocked_test
}  // namespace penstock::test
