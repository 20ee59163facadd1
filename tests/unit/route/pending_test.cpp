// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/pending.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace penstock::route {
namespace pending_test {

constexpr NicPortId kP0{0};
constexpr NicPortId kP1{1};
constexpr TscRate kRate{};  // one tick is one nanosecond

TscTime at_ms(uint64_t ms) {
    return TscTime{1} + kRate.milliseconds(ms);
}
IpAddr host(uint32_t n) {
    return IpAddr::v4(Be32::from_host(0x0a000000u + n));
}

using Pending = PendingPackets<int>;

std::shared_ptr<const RouteTable> neighbours(std::vector<Neighbour> known) {
    return RouteTable::build({}, std::move(known), {}, {});
}

std::vector<int> expired(Pending& pending, TscTime now) {
    std::vector<int> gone;
    pending.expire(now, [&](int handle) { gone.push_back(handle); });
    return gone;
}

TEST(Pending, TheFirstForANextHopAsksForIt) {
    Pending pending(kRate);
    EXPECT_EQ(pending.hold(1, kP0, host(1), at_ms(0)), HoldResult::HeldFirst);
    EXPECT_EQ(pending.hold(2, kP0, host(1), at_ms(1)), HoldResult::Held);
    EXPECT_EQ(pending.hold(3, kP1, host(1), at_ms(2)), HoldResult::HeldFirst)
        << "the same address on another port is another host";
    EXPECT_EQ(pending.hold(4, kP0, host(2), at_ms(3)), HoldResult::HeldFirst);
    EXPECT_EQ(pending.size(), 4u);
}

TEST(Pending, WhatIsResolvedLeavesInOrder) {
    Pending pending(kRate);
    for (int handle = 0; handle < 6; ++handle) {
        pending.hold(handle, kP0, host(static_cast<uint32_t>(handle) % 2), at_ms(0));
    }
    pending.hold(6, kP0, host(2), at_ms(0));
    std::vector<int> sent;
    const auto table =
        neighbours({{.id = {9}, .port = kP0, .address = host(1), .state = NeighbourState::Stale},
                    {.id = {8}, .port = kP0, .address = host(2), .state = NeighbourState::Failed},
                    {.id = {7}, .port = kP1, .address = host(0), .state = NeighbourState::Reachable}});
    pending.take_ready(*table, [&](int handle, const NextHop& hop) {
        sent.push_back(handle);
        EXPECT_EQ(hop.egress, kP0);
        EXPECT_EQ(hop.address, host(1));
        EXPECT_EQ(hop.neighbour->id.value, 9u);
    });
    EXPECT_EQ(sent, (std::vector<int>{1, 3, 5}));
    EXPECT_EQ(pending.size(), 4u);
    EXPECT_EQ(pending.hold(7, kP0, host(1), at_ms(1)), HoldResult::HeldFirst)
        << "nothing of it is left behind";
}

TEST(Pending, OneNextHopCannotTakeAllRoom) {
    Pending pending(kRate);
    for (uint32_t i = 0; i < limits::kPendingPerNextHop; ++i) {
        ASSERT_NE(pending.hold(static_cast<int>(i), kP0, host(1), at_ms(0)), HoldResult::Full);
    }
    EXPECT_EQ(pending.hold(100, kP0, host(1), at_ms(0)), HoldResult::Full);
    EXPECT_EQ(pending.hold(100, kP0, host(2), at_ms(0)), HoldResult::HeldFirst);
}

// A flood to as many addresses as there is room for: the next packet is refused, waiting packets stay, and
// room is free again after they expire.
TEST(Pending, AFloodIsRefusedAndPasses) {
    Pending pending(kRate);
    for (uint32_t i = 0; i < limits::kPendingMax; ++i) {
        ASSERT_EQ(pending.hold(static_cast<int>(i), kP0, host(i), at_ms(i)), HoldResult::HeldFirst);
    }
    EXPECT_EQ(pending.hold(-1, kP0, host(9999), at_ms(300)), HoldResult::FullFirst)
        << "none waits for it, so its caller asks";
    EXPECT_EQ(pending.hold(-1, kP0, host(3), at_ms(300)), HoldResult::Full);
    EXPECT_EQ(expired(pending, at_ms(kHoldMs + 1)), (std::vector<int>{0, 1}));
    EXPECT_EQ(pending.hold(-1, kP0, host(9999), at_ms(kHoldMs + 1)), HoldResult::HeldFirst);
}

TEST(Pending, WaitingEndsAfterASecondOldestFirst) {
    Pending pending(kRate);
    pending.hold(1, kP0, host(1), at_ms(0));
    pending.hold(2, kP0, host(2), at_ms(10));
    pending.hold(3, kP0, host(1), at_ms(20));
    EXPECT_TRUE(expired(pending, at_ms(kHoldMs - 1)).empty());
    EXPECT_EQ(expired(pending, at_ms(kHoldMs + 10)), (std::vector<int>{1, 2}));
    EXPECT_EQ(pending.hold(4, kP0, host(1), at_ms(kHoldMs + 11)), HoldResult::Held) << "3 still waits";
    EXPECT_EQ(pending.hold(5, kP0, host(2), at_ms(kHoldMs + 11)), HoldResult::HeldFirst);
    EXPECT_EQ(expired(pending, at_ms(2 * kHoldMs + 11)), (std::vector<int>{3, 4, 5}));
    EXPECT_TRUE(pending.empty());
}

TEST(Pending, AsksAgainWhileItWaits) {
    Pending pending(kRate);
    pending.hold(1, kP0, host(1), at_ms(0));
    pending.hold(2, kP1, host(2), at_ms(150));
    const auto asked = [&](TscTime now) {
        std::vector<std::pair<NicPortId, IpAddr>> hops;
        pending.ask_again(
            now, [&](NicPortId egress, const IpAddr& address) { hops.emplace_back(egress, address); });
        return hops;
    };
    using Hops = std::vector<std::pair<NicPortId, IpAddr>>;
    EXPECT_EQ(asked(at_ms(kAskAgainMs - 1)), Hops{});
    EXPECT_EQ(asked(at_ms(kAskAgainMs)), (Hops{{kP0, host(1)}}));
    EXPECT_EQ(asked(at_ms(kAskAgainMs + 1)), Hops{});
    EXPECT_EQ(asked(at_ms(kAskAgainMs * 2)), (Hops{{kP0, host(1)}, {kP1, host(2)}}));
}

// A packet that needs another next hop can be held again from within the callback.
TEST(Pending, HoldingFromACallbackIsSafe) {
    Pending pending(kRate);
    for (int handle = 0; handle < 3; ++handle) {
        pending.hold(handle, kP0, host(1), at_ms(0));
    }
    const auto table =
        neighbours({{.id = {1}, .port = kP0, .address = host(1), .state = NeighbourState::Reachable}});
    pending.take_ready(*table,
                       [&](int handle, const NextHop&) { pending.hold(handle, kP1, host(7), at_ms(1)); });
    EXPECT_EQ(pending.size(), 3u);
    EXPECT_EQ(expired(pending, at_ms(kHoldMs + 1)), (std::vector<int>{0, 1, 2}));
}

TEST(Pending, StoppingGivesEverythingBack) {
    Pending pending(kRate);
    for (int handle = 0; handle < 40; ++handle) {
        pending.hold(handle, kP0, host(static_cast<uint32_t>(handle) % 5), at_ms(0));
    }
    int given_back = 0;
    pending.clear([&](int) { ++given_back; });
    EXPECT_EQ(given_back, 40);
    EXPECT_TRUE(pending.empty());
}

}  // namespace pending_test
}  // namespace penstock::route
