// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/maglev.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "dataplane/base/limits.hpp"
#include "tests/unit/lb/lb_fixture.hpp"

namespace penstock::lb {
namespace maglev_test {

using test::make_backends;

// Share of each backend as a fraction of 1, over hashes that are spaced evenly in the high bits, which select
// the slot: several per slot of the largest ring. `low_bits` select the ring if there are two.
std::vector<double> shares(const MaglevRing& ring, size_t backends, uint64_t low_bits = 0) {
    constexpr unsigned kProbeBits = 22;
    std::vector<double> share(backends);
    for (uint64_t i = 0; i < uint64_t{1} << kProbeBits; ++i) {
        share.at(ring.pick(i << (64 - kProbeBits) | low_bits)) += 1.0 / (1 << kProbeBits);
    }
    return share;
}

TEST(MaglevRing, SharesByTurnsDifferByAboutOnePercent_SCHED004) {
    for (const uint32_t n : {1u, 2u, 3u, 10u, 11u, 60u, 159u}) {
        const std::vector<double> share = shares(MaglevRing::build(make_backends(n)), n, 0xffff);
        const auto [least, most] = std::ranges::minmax(share);
        EXPECT_GT(least * n, 0.985) << n;
        EXPECT_LT(most * n, 1.015) << n;
    }
}

// Limits: five times the standard deviation that maglev.cpp derives, for the ring with the fewest slots per
// backend of each window, and for 10,000 backends.
TEST(MaglevRing, SharesByRendezvousDifferAsDerived_SCHED004) {
    struct Row {
        uint32_t backends, slots;
        uint64_t low_bits;  // selects the ring
    };
    for (const Row& row : {Row{11, 1u << 18, 0}, Row{160, 1u << 18, 0}, Row{640, 1u << 18, 0},
                           Row{1'000, 1u << 20, 0}, Row{10'000, 1u << 20, 0}, Row{16'384, 1u << 20, 0}}) {
        const std::vector<double> share =
            shares(MaglevRing::build(make_backends(row.backends)), row.backends, row.low_bits);
        const auto [least, most] = std::ranges::minmax(share);
        const double bound = 5 * std::sqrt(row.backends / (2.0 * row.slots));
        EXPECT_GT(least * row.backends, 1 - bound) << row.backends;
        EXPECT_LT(most * row.backends, 1 + bound) << row.backends;
    }
}

// Every backend of the largest possible Service gets flows.
TEST(MaglevRing, AMillionBackendsAllHaveSlots_SCHED004) {
    constexpr uint32_t kBackends = limits::kBackendsPerServiceMax;
    const MaglevRing ring = MaglevRing::build(make_backends(kBackends));
    std::vector<bool> has(kBackends);
    for (uint64_t i = 0; i < uint64_t{1} << 23; ++i) {
        has[ring.pick(i << 41)] = true;
    }
    EXPECT_LE(std::ranges::count(has, false), 10);
}

TEST(MaglevRing, SharesFollowWeights) {
    std::vector<Backend> backends = make_backends(4);
    backends[0].weight = 1;
    backends[1].weight = 2;
    backends[2].weight = 5;
    backends[3].weight = 0;
    const std::vector<double> share = shares(MaglevRing::build(backends), 4);
    EXPECT_NEAR(share[0], 1.0 / 8, 0.002);
    EXPECT_NEAR(share[1], 2.0 / 8, 0.002);
    EXPECT_NEAR(share[2], 5.0 / 8, 0.002);
    EXPECT_EQ(share[3], 0.0);
}

TEST(MaglevRing, ExtremeWeightsKeepEveryoneInTheRing) {
    std::vector<Backend> backends = make_backends(3);
    backends[1].weight = 65535;
    backends[2].weight = 65535;
    const std::vector<double> share = shares(MaglevRing::build(backends), 3);
    EXPECT_GT(share[0], 0.0);
    EXPECT_LT(share[0], 0.001);
    EXPECT_NEAR(share[1], 0.5, 0.001);
}

TEST(MaglevRing, WeightsThatAreAllZeroMeanEqualShares) {
    std::vector<Backend> backends = make_backends(4);
    for (Backend& backend : backends) {
        backend.weight = 0;
    }
    for (const double share : shares(MaglevRing::build(backends), 4)) {
        EXPECT_NEAR(share, 0.25, 0.001);
    }
}

TEST(MaglevRing, AnEmptySetHasAnEmptyRing) {
    EXPECT_TRUE(MaglevRing::build({}).empty());
    EXPECT_FALSE(MaglevRing::build(make_backends(1)).empty());
}

TEST(MaglevRing, EveryHashHasABackend) {
    for (const uint32_t n : {1u, 2u, 50u, 500u}) {
        const MaglevRing ring = MaglevRing::build(make_backends(n));
        for (const uint64_t hash :
             {uint64_t{0}, uint64_t{0xffff}, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0xffff}}) {
            EXPECT_LT(ring.pick(hash), n);
        }
    }
}

}  // namespace maglev_test
}  // namespace penstock::lb
