// SPDX-License-Identifier: Apache-2.0
// The start-up check of a port's RSS, without a port: its packets and its objections. With ports:
// tests/bound/drivers_rss_test.cpp.
#include "drivers/steering/self_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/prng.hpp"

namespace penstock::drivers {
namespace self_check_test {

RssReading reading_of(test::Prng& prng, RssKinds kinds = kAllRssKinds, uint16_t queues = 4) {
    RssReading reading;
    reading.granted = true;
    reading.kinds = kinds;
    reading.key = prng.bytes(40);
    for (uint16_t entry = 0; entry < 128; ++entry) {
        reading.table.push_back(entry % queues);
    }
    return reading;
}

TEST(SelfCheck, KnownPacketsAreOfEachKindCoveredAndReachEveryQueue) {
    test::Prng prng;
    const RssReading reading = reading_of(prng);
    const std::vector<KnownPacket> packets = known_packets(reading);
    ASSERT_EQ(packets.size(), 64u);
    std::set<uint16_t> queues;
    std::set<std::string> different;
    for (const KnownPacket& packet : packets) {
        queues.insert(packet.queue);
        different.insert(packet.key.to_string());
        EXPECT_NE(packet.key.source_port, 0);
        EXPECT_FALSE(packet.key.destination.is_multicast());
    }
    EXPECT_EQ(queues.size(), 4u);
    EXPECT_EQ(different.size(), packets.size());
    for (const KnownPacket& packet :
         known_packets(reading_of(prng, {.tcp4 = false, .udp4 = false, .tcp6 = true, .udp6 = false}))) {
        EXPECT_FALSE(packet.key.source.is_v4());
        EXPECT_EQ(packet.key.protocol, Protocol::Tcp);
    }
}

// Our Toeplitz and DPDK's were written independently: any key, longer ones too, and any table.
TEST(SelfCheck, BothHashesForetellAlike) {
    test::Prng prng;
    for (int draw = 0; draw < 200; ++draw) {
        RssReading reading = reading_of(prng);
        reading.key = prng.bytes(draw % 2 == 0 ? 40 : 52);
        for (uint16_t& queue : reading.table) {
            queue = static_cast<uint16_t>(prng.below(16));
        }
        ASSERT_EQ(disagreement_by_computing(reading, known_packets(reading)), "");
    }
}

TEST(SelfCheck, AnotherKeyOrTableIsNoticed) {
    test::Prng prng;
    const RssReading reading = reading_of(prng);
    const std::vector<KnownPacket> packets = known_packets(reading);
    RssReading other = reading;
    other.key[12] ^= 0xff;  // a byte that affects the ports of IPv4
    EXPECT_NE(disagreement_by_computing(other, packets).find("the self-check predicts queue"),
              std::string::npos);
    other = reading;
    std::ranges::reverse(other.table);
    EXPECT_NE(disagreement_by_computing(other, packets), "");
}

TEST(SelfCheck, OnlyPacketsThatCameToAnotherQueueSpeakAgainstTheDevice) {
    EXPECT_EQ(
        (LoopbackAnswer{.sent = 64, .returned = 0, .misplaced = 0, .first_misplaced = {}}.disagreement()),
        "");
    EXPECT_EQ(
        (LoopbackAnswer{.sent = 64, .returned = 60, .misplaced = 0, .first_misplaced = {}}.disagreement()),
        "");
    EXPECT_EQ(
        (LoopbackAnswer{
            .sent = 64, .returned = 60, .misplaced = 7, .first_misplaced = "X reached queue 1 instead of 0"}
             .disagreement()),
        "the port's RSS differs from its report: of 60 known packets, 7 reached another queue; X reached "
        "queue 1 "
        "instead of 0");
}

}  // namespace self_check_test
}  // namespace penstock::drivers
