// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shares/share_map.hpp"

#include <gtest/gtest.h>

#include <array>

namespace penstock::shares {
namespace share_map_test {

constexpr uint64_t kHash4 = 0xe91d3796a5836022ULL, kHash6 = 0x9ec6035d80437a7bULL;

IpAddr ip(const char* text) {
    return IpAddr::parse(text).value();
}

// Gateways of different versions must agree, so these numbers never change.
TEST(ShareMap, TheShareOfAVipIsTheSameInEveryVersion) {
    EXPECT_EQ(share_hash(ip("203.0.113.1")), kHash4);
    EXPECT_EQ(share_hash(ip("2001:db8::1")), kHash6);
    const ShareMap map(16, {});
    EXPECT_EQ(map.share_of(ip("203.0.113.1")), kHash4 % 16);
}

TEST(ShareMap, NeighbouringVipsAreSpreadEvenly) {
    const ShareMap map(16, {});
    std::array<int, 16> vips{};
    for (uint8_t third = 0; third < 16; ++third) {
        for (int fourth = 0; fourth < 256; ++fourth) {
            ++vips[map.share_of(IpAddr::v4(203, 0, third, static_cast<uint8_t>(fourth)))];
        }
    }
    for (const int count : vips) {
        // 4,096 VIPs: 256 for each share, with a standard deviation of 15.5.
        EXPECT_NEAR(count, 256, 5 * 15.5);
    }
}

TEST(ShareMap, TheLongestPrefixWithAVipCounts) {
    const ShareMap map(4, {{Prefix::parse("203.0.113.0/24").value(), 1},
                           {Prefix::parse("203.0.113.16/28").value(), 2},
                           {Prefix::host(ip("203.0.113.17")), 3},
                           {Prefix::parse("2001:db8::/32").value(), 0}});
    EXPECT_EQ(map.share_of(ip("203.0.113.1")), 1);
    EXPECT_EQ(map.share_of(ip("203.0.113.16")), 2);
    EXPECT_EQ(map.share_of(ip("203.0.113.17")), 3);
    EXPECT_EQ(map.share_of(ip("2001:db8:1::1")), 0);
    EXPECT_EQ(map.share_of(ip("198.51.100.1")), share_hash(ip("198.51.100.1")) % 4);
}

}  // namespace share_map_test
}  // namespace penstock::shares
