// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/hash.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace penstock {
namespace hash_test {

// An attacker with access to the source code must not be able to collect keys that share a bucket. Therefore
// the set of colliding keys must depend on the secret. (A CRC with a secret seed fails this test: its
// collisions are the same for every seed.)
TEST(SipHash, CollisionsChangeWithTheKey) {
    constexpr uint64_t kBuckets = 1024;
    const HashKey a{1, 2};
    const HashKey b{3, 4};
    std::map<uint64_t, std::vector<uint64_t>> by_bucket;
    for (uint64_t i = 0; i < 16'384; ++i) {
        by_bucket[siphash13<1>(a, {i}) % kBuckets].push_back(i);
    }
    // About 1 in 1024 pairs of the keys that share bucket 0 under key a may still collide under b.
    const std::vector<uint64_t>& together = by_bucket.at(0);
    ASSERT_GE(together.size(), 4u);
    std::map<uint64_t, int> under_b;
    for (const uint64_t value : together) {
        ++under_b[siphash13<1>(b, {value}) % kBuckets];
    }
    EXPECT_GE(under_b.size(), together.size() - 2);
}

TEST(SipHash, EveryInputBitReachesTheHash) {
    const HashKey key = HashKey::random();
    const uint64_t zero = siphash13<2>(key, {0, 0});
    for (int bit = 0; bit < 64; ++bit) {
        EXPECT_NE((siphash13<2>(key, {uint64_t{1} << bit, 0})), zero);
        EXPECT_NE((siphash13<2>(key, {0, uint64_t{1} << bit})), zero);
    }
}

}  // namespace hash_test
}  // namespace penstock
