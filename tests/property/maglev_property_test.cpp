// SPDX-License-Identifier: Apache-2.0
// Measures the share of clients that a change of endpoints moves under Maglev.
#include <gtest/gtest.h>

#include <algorithm>

#include "dataplane/lb/maglev.hpp"
#include "tests/support/prng.hpp"

namespace penstock::lb {
namespace maglev_property_test {

std::vector<Backend> random_backends(test::Prng& random, size_t count) {
    std::vector<Backend> made;
    while (made.size() < count) {
        const Backend backend{.address = IpAddr::v4(Be32::from_host(static_cast<uint32_t>(random.next()))),
                              .port = static_cast<L4Port>(random.between(1, 65535))};
        if (std::ranges::find(made, backend.address, &Backend::address) == made.end()) {
            made.push_back(backend);
        }
    }
    return made;
}

// The share of all clients that have different backends with the two rings.
double moved(test::Prng& random, const std::vector<Backend>& before, const std::vector<Backend>& after) {
    const MaglevRing ring_before = MaglevRing::build(before);
    const MaglevRing ring_after = MaglevRing::build(after);
    constexpr int kClients = 400'000;
    int count = 0;
    for (int i = 0; i < kClients; ++i) {
        const uint64_t hash = random.next();
        count += before[ring_before.pick(hash)].address != after[ring_after.pick(hash)].address ? 1 : 0;
    }
    return double(count) / kClients;
}

// Counts up to the points where the gradual change of ring sizes begins and ends, and the worst points
// between them. Removal and addition are the same comparison in opposite directions.
TEST(MaglevProperty, OneChangeMovesAtMostTwoNths_SCHED004) {
    test::Prng random;
    for (const size_t n : {2,  3,  5,  8,   9,   10,  11,  12,  15,  20,  30,  40,  41,
                           60, 80, 97, 100, 120, 140, 159, 160, 161, 200, 320, 640, 700}) {
        const std::vector<Backend> all = random_backends(random, n);
        for (int attempt = 0; attempt < 2; ++attempt) {
            std::vector<Backend> fewer = all;
            fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(random.below(n)));
            EXPECT_LE(moved(random, all, fewer) * double(n), 2.0) << n << " endpoints";
        }
    }
}

// For thousands of backends a sample of clients would be too coarse. So every slot of the larger ring is
// compared with both ends of the low bits' range and several values between them.
double moved_exactly(const std::vector<Backend>& before, const std::vector<Backend>& after) {
    const MaglevRing ring_before = MaglevRing::build(before);
    const MaglevRing ring_after = MaglevRing::build(after);
    uint64_t count = 0;
    constexpr unsigned kProbeBits = 22;
    for (uint64_t i = 0; i < uint64_t{1} << kProbeBits; ++i) {
        // An odd multiplier varies the low bits independently of the high ones.
        const uint64_t hash = i << (64 - kProbeBits) | (i * 40'503 & 0xffff);
        count += before[ring_before.pick(hash)].address != after[ring_after.pick(hash)].address ? 1 : 0;
    }
    return double(count) / (uint64_t{1} << kProbeBits);
}

TEST(MaglevProperty, OneOfThousandsMovesAtMostTwoNths_SCHED004) {
    test::Prng random;
    for (const size_t n : {1'000, 2'560, 5'120, 9'999, 10'000}) {
        const std::vector<Backend> all = random_backends(random, n);
        std::vector<Backend> fewer = all;
        fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(random.below(n)));
        const double found = moved_exactly(all, fewer) * double(n);
        RecordProperty("moved_of_" + std::to_string(n), std::to_string(found));
        EXPECT_LE(found, 2.0) << n << " endpoints";
        EXPECT_GE(found, 0.5) << n << " endpoints: less than the departed one's own share cannot be";
    }
}

// A change of weight moves only the difference of the share: ring sizes depend on the number of backends
// alone.
TEST(MaglevProperty, AWeightMovesItsShare_SCHED004) {
    test::Prng random;
    for (const size_t n : {2, 10, 40, 100, 1'000}) {
        std::vector<Backend> before = random_backends(random, n);
        for (Backend& backend : before) {
            backend.weight = 10;
        }
        std::vector<Backend> after = before;
        after[random.below(n)].weight = 5;  // half a share
        EXPECT_LE(moved(random, before, after) * double(n), 1.0) << n << " endpoints";
    }
}

TEST(MaglevProperty, IdsDoNotMatter_SCHED004) {
    test::Prng random;
    const std::vector<Backend> backends = random_backends(random, 50);
    const MaglevRing one = MaglevRing::build(backends);
    std::vector<Backend> renamed = backends;
    for (Backend& backend : renamed) {
        // Ids are drawn anew after a restart without a saved state.
        backend.id = {static_cast<uint32_t>(random.next())};
    }
    const MaglevRing two = MaglevRing::build(renamed);
    for (int i = 0; i < 100'000; ++i) {
        const uint64_t hash = random.next();
        ASSERT_EQ(one.pick(hash), two.pick(hash));
    }
}

}  // namespace maglev_property_test
}  // namespace penstock::lb
