// What somebody can do to the gateway who may send any frame at any rate: each test is an attack, and what must still hold.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/support/packet_builder.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {
namespace {

const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

PacketBuilder from_client() {
    return eth().from_mac(kClientMac.to_string()).to_mac(kUpMac.to_string());
}
PacketBuilder segment(const char* flags) {
    return from_client().ipv4("10.80.1.2", "80.11.12.10").tcp(40'000, 80, flags);
}
PacketBuilder syn_of(uint32_t n) {
    return from_client()
        .ipv4("198.51." + std::to_string(n / 60'000) + ".1", "80.11.12.10")
        .tcp(static_cast<uint16_t>(1 + n % 60'000), 80, "S");
}
std::vector<uint8_t> from_backend(const packet::FlowKey& inside, const char* flags) {
    return eth()
        .from_mac(backend_mac(11).to_string())
        .to_mac(kClusterMac.to_string())
        .ipv4(inside.destination.to_string(), inside.source.to_string())
        .tcp(inside.destination_port, inside.source_port, flags)
        .build();
}
packet::FlowKey key_of(const std::vector<uint8_t>& frame) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(frame, parsed).has_value());
    return parsed.key;
}
TestService web() {
    return {.frontends = {{kVip, 80}}, .backends = {11}};
}

// A packet that arrives together with the one that opened its flow is found by new_flow, behind the stage that checks such packets. An
// unchecked TTL of 0 would leave as 255, and a ring of gateways would carry it for ever.
TEST(OneBurst, WhatFollowsAFirstPacketIsCheckedAsEver_ICMP006) {
    for (const uint8_t ttl : {uint8_t{0}, uint8_t{1}}) {
        VirtualGateway gateway;
        gateway.publish({web()});
        const auto outcomes = gateway.send_burst({segment("S").build(), segment("S").ttl(ttl).build(), segment("S").build()});
        EXPECT_EQ(outcomes[0].verdict, Verdict::Transmit);
        EXPECT_EQ(outcomes[1].verdict, Verdict::Drop);
        EXPECT_EQ(outcomes[1].reason, DropReason::TtlExpired);
        EXPECT_EQ(outcomes[2].verdict, Verdict::Transmit);
    }
}

TEST(OneBurst, WhatFollowsASynAdvancesItsState) {
    VirtualGateway gateway;
    gateway.publish({web()});
    // A flow that was reset before it began ends as one, and its client may begin again at once: in one burst as in three. What the burst
    // held of the first life goes down with it.
    const auto outcomes =
        gateway.send_burst({segment("S").build(), segment("SF").build(), segment("R").build(), segment("S").build(), segment("S").build()});
    EXPECT_EQ(outcomes[1].verdict, Verdict::Drop);
    EXPECT_EQ(outcomes[1].reason, DropReason::InvalidTcpFlags);
    EXPECT_EQ(outcomes[3].verdict, Verdict::Transmit);
    EXPECT_EQ(outcomes[4].verdict, Verdict::Transmit);
    EXPECT_EQ(key_of(outcomes[3].frame), key_of(outcomes[4].frame));
    EXPECT_EQ(gateway.connections(), 1u);
    EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 1u);
    EXPECT_EQ(gateway.count(stats::Counter::NewConnections), 2u);
}

// The SNAT ports of a full table are all taken too; that must not keep a new flow from taking a half-open one's place.
TEST(SynFlood, FlowsStillOpenWhenTheTableIsFullOfTranslatedOnes) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 256});
    gateway.publish({web()});
    const Outcome first = gateway.send(segment("S").build());
    const packet::FlowKey inside = key_of(first.frame);
    gateway.send(from_backend(inside, "SA"), kCluster);
    gateway.send(segment("A").build());
    for (uint32_t n = 0; n < 5'000; ++n) {
        gateway.advance_milliseconds(1);
        ASSERT_EQ(gateway.send(syn_of(n).build()).verdict, Verdict::Transmit) << n;
    }
    EXPECT_EQ(gateway.connections(), 256u);
    EXPECT_EQ(gateway.worker(0).snat_ports.in_use(), 256u);
    EXPECT_EQ(gateway.send(segment("A").build()).verdict, Verdict::Transmit) << "the established flow is untouched";
    EXPECT_EQ(key_of(gateway.send(from_backend(inside, "A"), kCluster).frame).destination, kClient);
}

// A connection that both sides have closed waits two minutes for stray segments. That wait must not be a capacity: 262,144 of them are
// 2,184 short connections a second.
TEST(FullTable, FinishedConnectionsMakeRoom) {
    VirtualGateway gateway(VirtualGateway::Options{.connections = 64});
    gateway.publish({web()});
    for (uint32_t n = 0; n < 500; ++n) {
        gateway.advance_milliseconds(1);
        const Outcome opened = gateway.send(syn_of(n).build());
        ASSERT_EQ(opened.verdict, Verdict::Transmit) << n << " " << text_of(opened.reason).counter;
        const packet::FlowKey inside = key_of(opened.frame);
        const auto client = [&](const char* flags) {
            return from_client().ipv4("198.51.0.1", "80.11.12.10").tcp(static_cast<uint16_t>(1 + n), 80, flags).build();
        };
        gateway.send(from_backend(inside, "SA"), kCluster);
        gateway.send(client("A"));
        gateway.send(client("FA"));
        gateway.send(from_backend(inside, "FA"), kCluster);
    }
    EXPECT_EQ(gateway.connections(), 64u);
}

// A source that everybody on the link listens to: neither an answer of ours nor a reply may go there (RFC 1812, 5.3.5.2; RFC 2644).
TEST(SpoofedBroadcastSource, IsNeverSentTo) {
    VirtualGateway gateway;
    TestService empty = web();
    empty.name = "empty";
    empty.frontends = {{kVip, 81}};
    empty.backends = {};
    gateway.publish({web(), empty});
    const Outcome answer = gateway.send(from_client().ipv4("10.80.1.255", "80.11.12.10").tcp(40'000, 81, "S").build());
    EXPECT_EQ(answer.verdict, Verdict::Drop);
    EXPECT_EQ(answer.reason, DropReason::NoRoute);
    const Outcome forward = gateway.send(from_client().ipv4("10.80.1.255", "80.11.12.10").tcp(40'000, 80, "S").build());
    ASSERT_EQ(forward.verdict, Verdict::Transmit);
    const Outcome reply = gateway.send(from_backend(key_of(forward.frame), "SA"), kCluster);
    EXPECT_EQ(reply.verdict, Verdict::Drop);
    EXPECT_EQ(reply.reason, DropReason::NoRoute);
}

}  // namespace
}  // namespace penstock::test
