// SPDX-License-Identifier: Apache-2.0
// The reference for the other subjects: whole TCP and UDP packets of a flow, on any worker's queue. The
// exceptional packets of the other subjects must have the same result.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "dataplane/packet/parse.hpp"

#include "tests/protocols/one_endpoint.hpp"
#include "tests/support/frame_diff.hpp"

namespace penstock::test {
namespace flows_test {

constexpr uint32_t kManyWorkers = 4;

packet::FlowKey key_of(const Outcome& outcome) {
    packet::Parsed parsed;
    EXPECT_TRUE(packet::parse(outcome.frame, parsed).has_value()) << to_scapy(outcome.frame);
    return parsed.key;
}

class Flows : public ThroughOneEndpoint {};

TEST_P(Flows, OfTcpAreTranslatedFromWhateverQueue_NAT001_NAT002_NAT003) {
    gateway.publish({service_on_both(Protocol::Tcp, 80, 9376, source)});
    const Outcome syn = gateway.send(ends.from_client().tcp(40000, 80, "S").seq(7).build());
    ASSERT_EQ(syn.verdict, Verdict::Transmit) << to_string(syn.verdict);
    const uint16_t port = key_of(syn).source_port;
    if (!translated) {
        EXPECT_EQ(port, 40000);
    }
    EXPECT_TRUE(same_frame(syn.frame, to_endpoint().tcp(port, 9376, "S").seq(7).build()));
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const Outcome answer =
            gateway.send(from_endpoint().tcp(9376, port, "SA").seq(90).ack(8).build(), kCluster, {queue});
        ASSERT_EQ(answer.verdict, Verdict::Transmit) << "queue " << int{queue};
        EXPECT_TRUE(same_frame(answer.frame, ends.to_client().tcp(80, 40000, "SA").seq(90).ack(8).build()));
        const Outcome data = gateway.send(
            ends.from_client().tcp(40000, 80, "PA").seq(8).ack(91).payload("GET /").build(), kUp, {queue});
        ASSERT_EQ(data.verdict, Verdict::Transmit) << "queue " << int{queue};
        EXPECT_TRUE(same_frame(data.frame,
                               to_endpoint().tcp(port, 9376, "PA").seq(8).ack(91).payload("GET /").build()));
    }
    EXPECT_EQ(gateway.connections(), 1u) << "one flow is one entry, whoever receives its packets";
}

TEST_P(Flows, OfUdpAreTranslatedFromWhateverQueue_NAT001_NAT002_NAT003) {
    gateway.publish({service_on_both(Protocol::Udp, 53, 5353, source)});
    const Outcome first = gateway.send(ends.from_client().udp(5000, 53).payload("query").build());
    ASSERT_EQ(first.verdict, Verdict::Transmit) << to_string(first.verdict);
    const uint16_t port = key_of(first).source_port;
    EXPECT_TRUE(same_frame(first.frame, to_endpoint().udp(port, 5353).payload("query").build()));
    for (uint8_t queue = 0; queue < workers; ++queue) {
        const Outcome answer =
            gateway.send(from_endpoint().udp(5353, port).payload("answer").build(), kCluster, {queue});
        ASSERT_EQ(answer.verdict, Verdict::Transmit) << "queue " << int{queue};
        EXPECT_TRUE(same_frame(answer.frame, ends.to_client().udp(53, 5000).payload("answer").build()));
        const Outcome again =
            gateway.send(ends.from_client().udp(5000, 53).payload("more").build(), kUp, {queue});
        ASSERT_EQ(again.verdict, Verdict::Transmit) << "queue " << int{queue};
        EXPECT_TRUE(same_frame(again.frame, to_endpoint().udp(port, 5353).payload("more").build()));
    }
    EXPECT_EQ(gateway.connections(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, Flows,
                         testing::Combine(testing::Values(1, 2, kManyWorkers),
                                          testing::Values(IpFamily::V4, IpFamily::V6),
                                          testing::Values(lb::SourceMode::Translate, lb::SourceMode::Keep)));

}  // namespace flows_test
}  // namespace penstock::test
