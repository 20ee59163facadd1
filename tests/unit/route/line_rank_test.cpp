// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/line_rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/support/prng.hpp"

namespace penstock::route {
namespace line_rank_test {

template <typename Key>
struct LineRankTest : testing::Test {};
using Keys = testing::Types<uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(LineRankTest, Keys);

// Compares the vector form of this build with the plain loop and with the definition. Covers every fill level
// of a line, the extreme numbers, and four bytes of the caller that look like keys.
TYPED_TEST(LineRankTest, EveryFormCountsTheSmallerNumbers) {
    using Key = TypeParam;
    using Rank = LineRank<Key>;
    constexpr Key kMax = std::numeric_limits<Key>::max();
    test::Prng random;
    for (int round = 0; round < 2'000; ++round) {
        alignas(kCacheLine) typename Rank::Stored line[kCacheLine / sizeof(Key)];
        std::ranges::fill(line, Rank::stored(random.one_in(2) ? Key{0} : kMax));
        std::vector<Key> keys;
        for (size_t i = 0; i < Rank::kKeys; ++i) {
            keys.push_back(
                i < static_cast<size_t>(round) % (Rank::kKeys + 1) ? static_cast<Key>(random.next()) : kMax);
        }
        std::ranges::sort(keys);
        std::ranges::transform(keys, line, Rank::stored);
        for (const Key key : {Key{0}, kMax, static_cast<Key>(random.next()), keys[random.below(keys.size())],
                              static_cast<Key>(keys[random.below(keys.size())] + 1)}) {
            const auto expected = static_cast<uint32_t>(std::ranges::lower_bound(keys, key) - keys.begin());
            ASSERT_EQ(Rank::plain(line, key), expected);
            ASSERT_EQ(Rank::count_before(line, key), expected);
        }
    }
}

}  // namespace line_rank_test
}  // namespace penstock::route
