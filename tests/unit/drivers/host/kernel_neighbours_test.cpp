// SPDX-License-Identifier: Apache-2.0
// Neighbours followed by messages: what counts as a change for forwarding, the ids, and the times at which a
// request to resolve or to probe a neighbour is due.
#include "drivers/host/kernel_neighbours.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "dataplane/base/limits.hpp"

namespace penstock::drivers {
namespace kernel_neighbours_test {

using namespace std::chrono_literals;
using Applied = KernelNeighbours::Applied;
using State = route::NeighbourState;

constexpr MacAddr kMac{{2, 0, 0, 0, 0, 1}};
constexpr MacAddr kOtherMac{{2, 0, 0, 0, 0, 2}};
constexpr KernelNeighbours::Clock::time_point kStart{1h};

IpAddr address(uint32_t number) {
    return IpAddr::v4(10, static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8),
                      static_cast<uint8_t>(number));
}
NeighbourKey key(uint32_t number) {
    return {NicPortId{0}, address(number)};
}
NeighbourFact fact(uint32_t number, std::optional<State> state, std::optional<MacAddr> mac = std::nullopt) {
    return {NicPortId{0}, address(number), state, mac};
}

TEST(KernelNeighbours, ReportChangesOfMacAndUsabilityForForwarding) {
    struct Case {
        const char* name;
        NeighbourFact fact;
        Applied expected;
    };
    // Each case follows the one before it.
    const Case cases[] = {
        {"removed, but unknown", fact(1, std::nullopt), Applied::Nothing},
        {"usable without a MAC", fact(1, State::Reachable), Applied::Nothing},
        {"new, unresolved", fact(1, State::Resolving), Applied::Forwarding},
        {"repeated", fact(1, State::Resolving), Applied::Nothing},
        {"failed, unusable as before", fact(1, State::Failed), Applied::Forwarding},
        {"resolved again, without an answer yet", fact(1, State::Resolving), Applied::Nothing},
        {"failed again", fact(1, State::Failed), Applied::Nothing},
        {"resolved", fact(1, State::Reachable, kMac), Applied::Forwarding},
        {"stale, usable as before", fact(1, State::Stale, kMac), Applied::State},
        {"another MAC", fact(1, State::Stale, kOtherMac), Applied::Forwarding},
        {"failed", fact(1, State::Failed), Applied::Forwarding},
        {"removed", fact(1, std::nullopt), Applied::Forwarding},
    };
    KernelNeighbours neighbours;
    for (const Case& one : cases) {
        EXPECT_EQ(neighbours.apply(one.fact), one.expected) << one.name;
    }
    EXPECT_TRUE(neighbours.list().empty());
}

TEST(KernelNeighbours, KeepTheirIdAndFreeItLast) {
    KernelNeighbours neighbours;
    neighbours.apply(fact(1, State::Reachable, kMac));
    neighbours.apply(fact(2, State::Reachable, kMac));
    neighbours.apply(fact(1, State::Stale, kMac));
    const auto before = neighbours.list();
    ASSERT_EQ(before.size(), 2u);
    EXPECT_EQ(before[0].address, address(1));
    EXPECT_EQ(before[0].id, NeighbourId{0});
    EXPECT_EQ(before[1].id, NeighbourId{1});

    neighbours.apply(fact(1, std::nullopt));
    neighbours.apply(fact(1, State::Reachable, kMac));
    EXPECT_EQ(neighbours.list()[1].id, NeighbourId{2}) << "the freed id is not the next one";
}

TEST(KernelNeighbours, BeyondTheLimitAreNotRecorded) {
    KernelNeighbours neighbours;
    for (uint32_t number = 0; number < limits::kNeighboursMax; ++number) {
        ASSERT_EQ(neighbours.apply(fact(number, State::Resolving)), Applied::Forwarding);
    }
    const uint32_t beyond = limits::kNeighboursMax;
    EXPECT_EQ(neighbours.apply(fact(beyond, State::Resolving)), Applied::Full);
    EXPECT_EQ(neighbours.apply(fact(0, std::nullopt)), Applied::Forwarding);
    EXPECT_EQ(neighbours.apply(fact(beyond, State::Resolving)), Applied::Forwarding);
}

TEST(KernelNeighbours, ThatADumpDoesNotContainAreRemoved) {
    KernelNeighbours neighbours;
    neighbours.apply(fact(1, State::Resolving));
    neighbours.apply(fact(2, State::Resolving));
    EXPECT_FALSE(neighbours.keep_only({key(1), key(2), key(3)}));
    EXPECT_TRUE(neighbours.keep_only({key(2)}));
    ASSERT_EQ(neighbours.list().size(), 1u);
    EXPECT_EQ(neighbours.list()[0].address, address(2));
}

TEST(KernelNeighbours, AreResolvedOncePerSecondAndAfterAFailureOncePerThree) {
    KernelNeighbours neighbours;
    EXPECT_TRUE(neighbours.start_resolution(key(1), kStart));
    EXPECT_FALSE(neighbours.start_resolution(key(1), kStart + 999ms));
    EXPECT_TRUE(neighbours.start_resolution(key(2), kStart + 999ms)) << "another address";
    EXPECT_TRUE(neighbours.start_resolution(key(1), kStart + 1s));

    neighbours.apply(fact(1, State::Failed));
    EXPECT_FALSE(neighbours.start_resolution(key(1), kStart + 3'999ms));
    EXPECT_TRUE(neighbours.start_resolution(key(1), kStart + 4s));

    neighbours.apply(fact(1, State::Reachable, kMac));
    EXPECT_FALSE(neighbours.start_resolution(key(1), kStart + 1h)) << "usable";
}

TEST(KernelNeighbours, RequestsAreLimitedWhileAPrefixIsScanned) {
    KernelNeighbours neighbours;
    for (uint32_t number = 0; number < limits::kNeighboursMax; ++number) {
        ASSERT_TRUE(neighbours.start_resolution(key(number), kStart));
    }
    const uint32_t beyond = limits::kNeighboursMax;
    EXPECT_FALSE(neighbours.start_resolution(key(beyond), kStart + 2'999ms));
    EXPECT_TRUE(neighbours.start_resolution(key(beyond), kStart + 3s));
}

TEST(KernelNeighbours, AreConfirmedOncePerSecondWhileStale) {
    KernelNeighbours neighbours;
    neighbours.apply(fact(1, State::Reachable, kMac));
    EXPECT_FALSE(neighbours.start_confirmation(neighbours.list()[0], kStart));
    neighbours.apply(fact(1, State::Stale, kMac));
    const route::Neighbour stale = neighbours.list()[0];
    EXPECT_TRUE(neighbours.start_confirmation(stale, kStart));
    EXPECT_FALSE(neighbours.start_confirmation(stale, kStart + 999ms));
    EXPECT_TRUE(neighbours.start_confirmation(stale, kStart + 1s));
}

}  // namespace kernel_neighbours_test
}  // namespace penstock::drivers
