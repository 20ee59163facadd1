// SPDX-License-Identifier: Apache-2.0
// Packets whose time to live ends at the gateway: it is a hop, and traceroute through a VIP shows it as one.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/protocols/ends.hpp"
#include "tests/support/frame_diff.hpp"

namespace penstock::test {
namespace time_exceeded_test {

constexpr size_t kEthernetBytes = 14;

// Workers, family, TTL.
class TimeExceeded : public testing::TestWithParam<std::tuple<uint32_t, IpFamily, uint8_t>> {
 protected:
    uint32_t workers = std::get<0>(GetParam());
    Ends ends = std::get<1>(GetParam()) == IpFamily::V4 ? ends4() : ends6();
    bool v4 = ends.family == IpFamily::V4;
    uint8_t ttl = std::get<2>(GetParam());
    VirtualGateway gateway{VirtualGateway::Options{.workers = workers}};

    [[nodiscard]] PacketBuilder dying(PacketBuilder builder) const {
        return v4 ? builder.ttl(ttl) : builder.hop_limit(ttl);
    }
    // The error that the gateway sends about `frame`.
    [[nodiscard]] std::vector<uint8_t> error(PacketBuilder link, const IpAddr& from, const IpAddr& to,
                                             const std::vector<uint8_t>& frame) const {
        const std::vector<uint8_t> quote(frame.begin() + kEthernetBytes, frame.end());
        return v4 ? link.ipv4(from.to_string(), to.to_string())
                        .id(0)
                        .dont_fragment()
                        .ttl(64)
                        .tos(0xc0)
                        .icmp(11, 0)
                        .payload(quote)
                        .build()
                  : link.ipv6(from.to_string(), to.to_string())
                        .hop_limit(64)
                        .tos(0xc0)
                        .icmp(3, 0)
                        .payload(quote)
                        .build();
    }
    [[nodiscard]] IpAddr uplink() const { return v4 ? kUpAddress : kUpAddress6; }
    [[nodiscard]] IpAddr cluster() const { return v4 ? kClusterAddress : kClusterAddress6; }
};

TEST_P(TimeExceeded, AClientHearsTheGatewayItself_ICMP006) {
    gateway.publish({service_on_both(Protocol::Tcp, 80, 9376), service_on_both(Protocol::Udp, 53, 5353)});
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const auto syn = dying(ends.from_client()).tcp(40000, 80, "S").build();
        const Outcome told = gateway.send(syn, kUp, {queue});
        ASSERT_EQ(told.verdict, Verdict::Transmit);
        EXPECT_EQ(told.egress, kUp);
        EXPECT_TRUE(same_frame(told.frame, error(Ends::to_uplink(), uplink(), ends.client, syn)))
            << "a packet that would open a flow";
        const auto query = dying(ends.from_client()).udp(5000, 53).payload("query").build();
        EXPECT_TRUE(same_frame(gateway.send(query, kUp, {queue}).frame,
                               error(Ends::to_uplink(), uplink(), ends.client, query)));
    }
    EXPECT_EQ(gateway.connections(), 0u) << "it opens none";
    ASSERT_EQ(gateway.send(ends.from_client().tcp(40000, 80, "S").build()).egress, kCluster);
    const auto data = dying(ends.from_client()).tcp(40000, 80, "PA").payload("GET /").build();
    EXPECT_TRUE(same_frame(gateway.send(data).frame, error(Ends::to_uplink(), uplink(), ends.client, data)))
        << "a packet of a flow";
    EXPECT_EQ(gateway.count(stats::Counter::IcmpErrorsSent), 2 * workers + 1u);
}

TEST_P(TimeExceeded, AnEndpointHearsTheGatewayItself_ICMP006) {
    for (const lb::SourceMode source : {lb::SourceMode::Translate, lb::SourceMode::Keep}) {
        VirtualGateway fresh{VirtualGateway::Options{.workers = workers}};
        fresh.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
        const Outcome first = fresh.send(ends.from_client().udp(5000, 53).payload("query").build());
        packet::Parsed parsed;
        ASSERT_TRUE(packet::parse(first.frame, parsed).has_value());
        const bool translated = source == lb::SourceMode::Translate;
        const auto answer = dying(translated ? ends.from_backend(11) : ends.from_backend_to_client(11))
                                .udp(5353, parsed.key.source_port)
                                .payload("answer")
                                .build();
        const Outcome told = fresh.send(answer, kCluster, {static_cast<uint8_t>(workers - 1)});
        EXPECT_EQ(told.egress, kCluster);
        EXPECT_TRUE(same_frame(
            told.frame, error(Ends::to_cluster(11), cluster(), backend_address(11, ends.family), answer)));
    }
}

// A packet that goes no further does not change its connection: not even a FIN.
TEST_P(TimeExceeded, LeavesTheConnectionAsItWas_ICMP006) {
    gateway.publish({service_on_both(Protocol::Tcp, 80, 9376)});
    ASSERT_EQ(gateway.send(ends.from_client().tcp(40000, 80, "S").build()).egress, kCluster);
    ASSERT_EQ(gateway.send(dying(ends.from_client()).tcp(40000, 80, "R").build()).egress, kUp);
    gateway.advance_seconds(45);
    ASSERT_EQ(gateway.send(dying(ends.from_client()).tcp(40000, 80, "S").build()).egress, kUp);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 1u) << "still half-open: the RST has not passed";
    gateway.advance_seconds(20);
    gateway.age();
    EXPECT_EQ(gateway.connections(), 0u) << "and nothing has kept it alive";
}

TEST_P(TimeExceeded, IsSaidOnlyToWhomItMayBe_ICMP006_REJ003) {
    VirtualGateway limited(
        VirtualGateway::Options{.workers = workers, .errors_per_second = 10, .errors_burst = 3});
    limited.publish({service_on_both(Protocol::Udp, 53, 5353)});
    const auto query = dying(ends.from_client()).udp(5000, 53).payload("query");
    const auto dropped_as = [&](const PacketBuilder& packet) {
        const Outcome outcome = limited.send(packet.build());
        EXPECT_EQ(outcome.verdict, Verdict::Drop) << to_string(outcome.verdict);
        return text_of(outcome.reason).counter;
    };
    EXPECT_EQ(dropped_as(PacketBuilder(query).from_mac("03:00:00:00:00:01")), "ttl_expired")
        << "a group's Ethernet address";
    if (v4) {
        EXPECT_EQ(
            dropped_as(
                dying(ends.ip(Ends::from_uplink(), IpAddr::v4(10, 80, 1, 255), ends.vip, 64)).udp(5000, 53)),
            "martian_source")
            << "a subnet's broadcast address";
    }
    for (unsigned n = 0; n < 3; ++n) {
        EXPECT_EQ(limited.send(query.build()).verdict, Verdict::Transmit) << n;
    }
    EXPECT_EQ(dropped_as(query), "reject_limited");
    limited.advance_seconds(1);
    EXPECT_EQ(limited.send(query.build()).verdict, Verdict::Transmit);
    EXPECT_EQ(dropped_as(PacketBuilder(query).l4_checksum(0x4242)), "bad_l4_checksum")
        << "it may not be from whom it names";
}

INSTANTIATE_TEST_SUITE_P(All, TimeExceeded,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(uint8_t{1}, uint8_t{0})));

}  // namespace time_exceeded_test
}  // namespace penstock::test
