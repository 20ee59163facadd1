// SPDX-License-Identifier: Apache-2.0
// Owners of copies against the simplest model: for each copy its peer, stream and slot.
#include "control/gateway/shares/copy_owners.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "dataplane/conn/connection.hpp"
#include "tests/support/prng.hpp"
#include "tests/support/seed.hpp"

namespace penstock::gateway {
namespace copy_owners_test {

using Slot = CopyOwners::Slot;

conn::Connection at_port(L4Port port) {
    conn::Connection connection;
    connection.forward.source_port = port;
    return connection;
}

TEST(CopyOwners, ACopyIsFoundByItsSlotUntilTheStreamEnds) {
    CopyOwners owners(16);
    CopyPeer one, two;
    owners.link(Slot{3}, one, 70, 5);
    owners.link(Slot{4}, two, 70, 5);
    EXPECT_EQ(owners.find(one, 70), Slot{3});
    EXPECT_EQ(owners.find(two, 70), Slot{4});
    EXPECT_EQ(owners.find(one, 71), std::nullopt);
    EXPECT_EQ(owners.held_in(5), 2U);
    owners.begin_stream(one);
    EXPECT_EQ(owners.find(one, 70), std::nullopt);
    EXPECT_EQ(owners.find(two, 70), Slot{4});
    EXPECT_EQ(one.former, 1U);
    EXPECT_EQ(one.counts.held, 1U);
    owners.link(Slot{16}, one, 70, 6);
    EXPECT_EQ(owners.find(one, 70), Slot{16});
    owners.unlink(Slot{3});
    EXPECT_EQ(one.former, 0U);
    EXPECT_EQ(one.counts.held, 1U);
    EXPECT_EQ(owners.find(one, 70), Slot{16});
    owners.move(Slot{16}, 7);
    EXPECT_EQ(owners.held_in(6), 0U);
    EXPECT_EQ(owners.held_in(7), 1U);
}

TEST(CopyOwners, AConnectionThatWaitsIsNoCopy) {
    CopyOwners owners(16);
    CopyPeer peer;
    owners.wait(Slot{3}, peer, 70, at_port(9));
    EXPECT_EQ(owners.find(peer, 70), Slot{3});
    EXPECT_EQ(owners.at(Slot{3}).waiting->forward.source_port, 9);
    EXPECT_EQ(peer.counts.held, 0U);
    EXPECT_EQ(owners.held_in(0), 0U);
    owners.begin_stream(peer);
    EXPECT_EQ(peer.former, 0U);
    EXPECT_FALSE(owners.at(Slot{3}).is_current());
    owners.unlink(Slot{3});
    EXPECT_EQ(peer.former, 0U);
    EXPECT_EQ(owners.at(Slot{3}).waiting, nullptr);
    owners.unlink(Slot{3});
    EXPECT_EQ(peer.counts.held, 0U) << "it had no owner any more";
}

struct Owned {
    size_t peer = 0;
    uint32_t stream = 0;
    uint32_t slot = 0;
    uint8_t share = 0;
    bool waits = false;
};

// There are as many chains as places. With few of them, each has copies of several peers and streams.
class RandomOwners : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Capacities, RandomOwners, testing::Values(3, 40));

TEST_P(RandomOwners, AsAMapOfCopies) {
    const uint64_t seed = test::seed();
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Prng random(seed);
    const uint32_t capacity = GetParam();
    const uint32_t slots = 2 * capacity;
    CopyOwners owners(capacity);
    std::array<CopyPeer, 3> peers;
    std::array<uint32_t, 3> streams{};
    std::map<uint32_t, Owned> model;
    const auto find = [&](size_t peer, uint32_t slot) -> std::optional<Slot> {
        for (const auto& [copy, owned] : model) {
            if (owned.peer == peer && owned.stream == streams[peer] && owned.slot == slot) {
                return Slot{copy};
            }
        }
        return std::nullopt;
    };
    for (int step = 0; step < 20'000; ++step) {
        const auto copy = static_cast<uint32_t>(random.below(capacity + 1));
        const auto slot = static_cast<uint32_t>(random.below(slots));
        const size_t peer = random.below(peers.size());
        const auto share = static_cast<uint8_t>(random.below(4));
        const auto owned = model.find(copy);
        if (random.one_in(20)) {
            owners.begin_stream(peers[peer]);
            ++streams[peer];
        } else if (owned == model.end() && !find(peer, slot)) {
            const bool waits = random.one_in(3);
            waits ? owners.wait(Slot{copy}, peers[peer], slot, at_port(1))
                  : owners.link(Slot{copy}, peers[peer], slot, share);
            model[copy] = {peer, streams[peer], slot, share, waits};
        } else if (owned != model.end() && !owned->second.waits && random.one_in(4)) {
            owners.move(Slot{copy}, share);
            owned->second.share = share;
        } else {
            owners.unlink(Slot{copy});
            model.erase(copy);
        }
        for (size_t number = 0; number < peers.size(); ++number) {
            const auto count = [&](auto&& counts) {
                return static_cast<uint64_t>(std::ranges::count_if(model, [&](const auto& entry) {
                    return entry.second.peer == number && !entry.second.waits && counts(entry.second);
                }));
            };
            ASSERT_EQ(peers[number].counts.held, count([](const Owned&) { return true; })) << step;
            ASSERT_EQ(peers[number].former,
                      count([&](const Owned& one) { return one.stream != streams[number]; }))
                << step;
            ASSERT_EQ(owners.find(peers[number], slot), find(number, slot)) << step;
        }
        ASSERT_EQ(owners.held_in(share),
                  static_cast<uint64_t>(std::ranges::count_if(
                      model,
                      [&](const auto& entry) { return !entry.second.waits && entry.second.share == share; })))
            << step;
    }
}

}  // namespace copy_owners_test
}  // namespace penstock::gateway
