// SPDX-License-Identifier: Apache-2.0
#include "dataplane/shares/share_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/support/prng.hpp"

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

// An address of few different bits, so that prefixes of all lengths contain some of them.
IpAddr drawn_address(test::Prng& random) {
    const uint8_t low = static_cast<uint8_t>(random.below(4)), high = static_cast<uint8_t>(random.below(4));
    return random.one_in(2) ? IpAddr::v4(static_cast<uint8_t>(high << 6), 0, 0, low)
                            : IpAddr::v6({static_cast<uint8_t>(high << 6), 0, 0, 0, 0, 0, 0, high, low, 0, 0,
                                          0, 0, 0, 0, low});
}

TEST(PrefixNumbers, FindWhatAComparisonWithEachPrefixFinds) {
    test::Prng random;
    for (int round = 0; round < 200; ++round) {
        std::map<Prefix, uint8_t> numbers;
        for (uint64_t n = random.below(12); n > 0; --n) {
            const IpAddr address = drawn_address(random);
            const unsigned length = static_cast<unsigned>(random.below(address.bits() + 1U));
            numbers.emplace(Prefix::make(address, length).value(), static_cast<uint8_t>(n));
        }
        const PrefixNumbers searched(numbers);
        for (int n = 0; n < 50; ++n) {
            const IpAddr address = drawn_address(random);
            const std::pair<const Prefix, uint8_t>* longest = nullptr;
            for (const auto& each : numbers) {
                if (each.first.contains(address) &&
                    (longest == nullptr || each.first.length() > longest->first.length())) {
                    longest = &each;
                }
            }
            const uint8_t* const found = searched.find(address);
            ASSERT_EQ(found != nullptr, longest != nullptr) << address.to_string();
            if (found != nullptr) {
                ASSERT_EQ(*found, longest->second) << address.to_string();
            }
        }
    }
}

}  // namespace share_map_test
}  // namespace penstock::shares
