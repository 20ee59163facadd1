// SPDX-License-Identifier: Apache-2.0
// RSS keys that are drawn, and the kinds of packets that a port hashes.
#include "drivers/steering/rss.hpp"

#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <bit>

#include "dataplane/base/limits.hpp"
#include "tests/support/plain_toeplitz.hpp"
#include "tests/unit/drivers/steering/rss_readings.hpp"

namespace penstock::drivers {
namespace rss_test {

using test_readings::kTcpOnly;
using test_readings::rss_of;

TEST(Rss, DrawnKeysSpreadOverEveryTable) {
    EXPECT_NE(random_rss_key(), random_rss_key());
    for (int draw = 0; draw < 200; ++draw) {
        RssReading reading = rss_of(2);
        reading.key = random_rss_key();
        for (const unsigned workers : {2u, 3u, 7u, 64u}) {
            for (const size_t entries : {64u, 128u, 512u, 2048u}) {
                RssReading shared = rss_of(workers, kAllRssKinds, entries);
                shared.key = reading.key;
                // 64 entries are one for each of 64 workers. 128 entries give no even share of every class to
                // 7 workers; none may be left out.
                EXPECT_EQ(obstacle_of(shared, workers), "")
                    << workers << " workers, " << entries << " entries";
            }
        }
    }
}

// A reply's port alone reaches each entry of the largest table, so the ports towards one endpoint are shared
// as evenly as the table. One key in nine fails this and is redrawn. The hash is computed bit by bit here.
TEST(Rss, DrawnKeysLeadPortsToEveryEntry) {
    constexpr uint32_t kEntries = nat::kReplyHashEntriesMax;
    packet::FlowKey replies[] = {
        {IpAddr::v4(10, 1, 2, 3), IpAddr::v4(192, 0, 2, 1), 9376, 0, Protocol::Tcp, {}},
        {IpAddr::v6({0xfd, 1}), IpAddr::v6({0xfd, 9}), 9376, 0, Protocol::Tcp, {}}};
    for (int draw = 0; draw < 200; ++draw) {
        const std::vector<uint8_t> key = random_rss_key();
        for (packet::FlowKey& reply : replies) {
            std::array<uint32_t, 16> column;
            reply.destination_port = 0;
            const uint32_t base = test::plain_rss(key, reply);
            for (unsigned bit = 0; bit < column.size(); ++bit) {
                reply.destination_port = static_cast<L4Port>(1U << bit);
                column[bit] = (test::plain_rss(key, reply) ^ base) % kEntries;
            }
            std::vector<bool> reached(kEntries);
            uint32_t entry = base % kEntries;
            for (uint32_t port = 1; port <= 65'536;
                 ++port) {  // in Gray code order: one bit changes at a time
                reached[entry] = true;
                entry ^= column[std::min(std::countr_zero(port), 15)];
            }
            ASSERT_EQ(std::ranges::count(reached, true), kEntries) << "draw " << draw;
        }
    }
}

TEST(Rss, KindsAreThoseWithPorts) {
    EXPECT_EQ(
        to_string(rss_kinds(RTE_ETH_RSS_IP | RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP)),
        "tcp4,tcp6");
    EXPECT_EQ(to_string(RssKinds{}), "none");
    EXPECT_EQ(without(kAllRssKinds, kTcpOnly),
              (RssKinds{.tcp4 = false, .udp4 = true, .tcp6 = false, .udp6 = true}));
}

}  // namespace rss_test
}  // namespace penstock::drivers
