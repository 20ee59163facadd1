// SPDX-License-Identifier: Apache-2.0
// The benches' frames and counts, compared with the parser and the packet builder of the tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "perf/traffic/frame.hpp"
#include "perf/traffic/latency.hpp"
#include "perf/traffic/network.hpp"
#include "tests/support/packet_builder.hpp"
#include "tests/support/prng.hpp"

namespace penstock::perf {
namespace {

constexpr uint64_t kTicks = 0x1234'5678'9abc;

std::vector<uint8_t> frame_of(uint32_t flow) {
    std::vector<uint8_t> frame(kFrameBytes);
    FrameWriter(kRouterMac, kUpMac).write(frame.data(), forward_tuple(flow), flow, 7, kTicks);
    return frame;
}

TEST(Frame, IsWhatThePacketBuilderMakesOfTheSameWords) {
    const std::vector<uint8_t> frame = frame_of(40'000);
    const std::vector<uint8_t> expected =
        test::eth()
            .from_mac(kRouterMac.to_string())
            .to_mac(kUpMac.to_string())
            .ipv4("198.18.0.1", "203.0.113.1")
            .id(0)
            .udp(1024 + 40'000 - 32'768, 80)
            .payload(std::vector<uint8_t>(frame.begin() + kTimeAt, frame.end()))
            .build();
    EXPECT_EQ(frame, expected) << test::to_scapy(frame);
    EXPECT_TRUE(is_ours(frame.data(), kFrameBytes));
    EXPECT_EQ(flow_of(frame.data()), 40'000u);
    EXPECT_EQ(run_of(frame.data()), 7);
    EXPECT_EQ(time_of(frame.data()), kTicks);
}

TEST(Frame, KeepsItsChecksumsOverTimeAndTurn) {
    test::Prng random;
    for (int i = 0; i < 10'000; ++i) {
        const auto flow = static_cast<uint32_t>(random.below(kFlowsMax - 1));
        std::vector<uint8_t> frame = frame_of(flow);
        ASSERT_TRUE(has_valid_checksums(frame.data())) << flow;
        turn_around(frame.data(), random.below(1'000'000'000) * 100'000);
        ASSERT_TRUE(has_valid_checksums(frame.data())) << flow;
        ASSERT_EQ(tuple_of(frame.data()), answer_tuple(flow));
    }
}

TEST(Frame, ShowsDamage) {
    for (size_t at = kIpAt; at < kFrameBytes; ++at) {
        std::vector<uint8_t> frame = frame_of(1);
        frame[at] ^= 0x10;
        EXPECT_FALSE(has_valid_checksums(frame.data())) << at;
    }
}

TEST(Network, FlowsDifferAndBelongToTheirServices) {
    std::set<std::tuple<uint32_t, uint16_t, uint32_t>> seen;
    for (uint32_t flow = 0; flow < 3 * kPortsPerClient; ++flow) {
        const Tuple tuple = forward_tuple(flow);
        ASSERT_TRUE(seen.emplace(tuple.source, tuple.source_port, tuple.destination).second) << flow;
        uint32_t endpoints = 0;
        for (uint32_t number = 0; number < kServices * kEndpointsPerService; ++number) {
            endpoints += is_endpoint_of(flow, kEndpoints + number, kEndpointPort) ? 1 : 0;
        }
        ASSERT_EQ(endpoints, kEndpointsPerService);
    }
    EXPECT_FALSE(is_endpoint_of(0, kEndpoints + kEndpointsPerService, kEndpointPort)) << "the next Service's";
    EXPECT_FALSE(is_endpoint_of(0, kEndpoints, kServicePort));
    EXPECT_FALSE(is_endpoint_of(0, kEndpoints - 1, kEndpointPort));
}

TEST(Latency, PercentilesAreRightToASixtyFourth) {
    test::Prng random;
    LatencyHistogram histogram;
    std::vector<uint64_t> times;
    for (int i = 0; i < 20'000; ++i) {
        times.push_back(uint64_t{1} << random.below(40));
        times.back() += random.below(static_cast<uint32_t>(std::min<uint64_t>(times.back(), UINT32_MAX)));
        histogram.add(times.back());
    }
    std::ranges::sort(times);
    for (const double share : {0.0, 0.5, 0.9, 0.99, 0.999}) {
        const uint64_t exact = times[static_cast<size_t>(share * static_cast<double>(times.size()))];
        EXPECT_GE(histogram.at(share), exact) << share;
        EXPECT_LE(static_cast<double>(histogram.at(share)), static_cast<double>(exact) * (1 + 1.0 / 64))
            << share;
    }
    EXPECT_EQ(LatencyHistogram().at(0.5), 0u);
}

}  // namespace
}  // namespace penstock::perf
