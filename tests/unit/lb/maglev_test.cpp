#include "dataplane/lb/maglev.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/lb/lb_fixture.hpp"

namespace penstock::lb {
namespace {

using test::make_backends;

// Share of each backend in parts of 1, over hashes that differ evenly in the high bits, which choose the slot: several to a slot of the
// largest ring. `low_bits` choose the ring where there are two.
std::vector<double> shares(const MaglevRing& ring, size_t backends, uint64_t low_bits = 0) {
    constexpr unsigned kProbeBits = 22;
    std::vector<double> share(backends);
    for (uint64_t i = 0; i < uint64_t{1} << kProbeBits; ++i) {
        share.at(ring.pick(i << (64 - kProbeBits) | low_bits)) += 1.0 / (1 << kProbeBits);
    }
    return share;
}

TEST(MaglevRing, SharesDifferByAboutOnePercent_SCHED001) {
    for (const uint32_t n : {1u, 2u, 3u, 10u, 11u, 60u, 159u, 160u, 320u, 321u, 1000u}) {
        const MaglevRing ring = MaglevRing::build(make_backends(n));
        for (const uint64_t low_bits : {0x0000u, 0xffffu}) {
            const std::vector<double> share = shares(ring, n, low_bits);
            const auto [least, most] = std::ranges::minmax(share);
            EXPECT_GT(least * n, 0.985) << n << ", low bits " << low_bits;
            EXPECT_LT(most * n, 1.015) << n << ", low bits " << low_bits;
        }
    }
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
        for (const uint64_t hash : {uint64_t{0}, uint64_t{0xffff}, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0xffff}}) {
            EXPECT_LT(ring.pick(hash), n);
        }
    }
}

}  // namespace
}  // namespace penstock::lb
