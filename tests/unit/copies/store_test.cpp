// SPDX-License-Identifier: Apache-2.0
// The store of copies: what is found, what is replaced, and a reader beside the writer.
#include "dataplane/copies/store.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/prng.hpp"

namespace penstock::copies {
namespace store_test {

using conn::Connection;
using conn::Direction;
using Slot = Store::Slot;

enum class Family : uint8_t { V4, V6, Mixed };

// A TCP connection with facts that follow from its number.
Connection numbered(uint32_t n, Family family = Family::V4) {
    const auto v6 = [n](uint8_t net) {
        return IpAddr::v6({0x20, 1, 0xd, 0xb8, net, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(n >> 24),
                           static_cast<uint8_t>(n >> 16), static_cast<uint8_t>(n >> 8),
                           static_cast<uint8_t>(n)});
    };
    Connection connection;
    connection.forward = {.source = family == Family::V4 ? IpAddr::v4(Be32::from_host(n)) : v6(1),
                          .destination = family == Family::V4 ? IpAddr::v4(80, 11, 12, 10) : v6(2),
                          .source_port = 40'000,
                          .destination_port = 80,
                          .protocol = Protocol::Tcp};
    connection.reverse = {.source = family == Family::V6 ? v6(3) : IpAddr::v4(10, 1, 0, 1),
                          .destination = family == Family::V6 ? v6(4) : IpAddr::v4(Be32::from_host(n)),
                          .source_port = 9'376,
                          .destination_port = static_cast<L4Port>(1'024 + n % 60'000),
                          .protocol = Protocol::Tcp};
    connection.opened_at = {n};
    connection.last_seen = {n + 100};
    connection.state = static_cast<uint8_t>(conn::TcpState::Established);
    connection.tags = {n, ~n};
    return connection;
}

std::unique_ptr<Store> store_for(uint32_t capacity) {
    test::Prng random;
    return *Store::create(capacity, {random.next(), random.next()});
}

bool is_same(const Connection& one, const Connection& other) {
    return one.forward == other.forward && one.reverse == other.reverse && one.state == other.state &&
           one.source_kept == other.source_kept && one.opened_at == other.opened_at &&
           one.last_seen == other.last_seen && one.tags == other.tags;
}

void expect_found(const Store& store, const Connection& connection, Slot slot) {
    for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
        const auto found =
            store.find(direction == Direction::Forward ? connection.forward : connection.reverse);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->slot, slot);
        EXPECT_EQ(found->direction, direction);
        EXPECT_TRUE(is_same(found->connection, connection));
    }
}

TEST(Store, NamesTheCapacityThatIsOutOfRange) {
    for (const uint32_t capacity : {0U, Store::kCapacityMax + 1, ~0U}) {
        const auto store = Store::create(capacity, {});
        ASSERT_FALSE(store);
        EXPECT_EQ(store.error().code, Errc::InvalidArgument);
        EXPECT_EQ(store.error().what, "copies of connections: capacity " + std::to_string(capacity) +
                                          " is not between 1 and 67108864");
        EXPECT_EQ(Store::memory_needed(capacity), 0U);
    }
}

TEST(Store, TakesTheMemoryThatIsDocumented) {
    const size_t each = Store::memory_needed(Store::kCapacityMax) / Store::kCapacityMax;
    EXPECT_GE(each, 64U);
    EXPECT_LE(each, 64 + conn::kUnitBytes + 32);
    if (conn::kUnitBytes == 64) {
        EXPECT_EQ(each, 98U);  // store.hpp: 99
    }
}

TEST(Store, FindsACopyByBothKeys) {
    const auto store = store_for(100);
    EXPECT_FALSE(store->find(numbered(1).forward));
    EXPECT_EQ(store->size(), 0U);
    uint32_t n = 1;
    for (const Family family : {Family::V4, Family::V6, Family::Mixed}) {
        const Connection copy = numbered(++n, family);
        const Slot slot = store->put(copy);
        ASSERT_TRUE(slot.is_set());
        expect_found(*store, copy, slot);
        EXPECT_TRUE(is_same(store->at(slot), copy));
        EXPECT_TRUE(store->is_held(slot));
        EXPECT_FALSE(store->is_taken(slot));
    }
    EXPECT_EQ(store->size(), 3U);
    EXPECT_EQ(store->units_used(), 5U);
    EXPECT_FALSE(store->find(numbered(1).forward));
}

TEST(Store, HoldsASecondCopyOfNoKey) {
    const auto store = store_for(100);
    const Slot slot = store->put(numbered(1));
    Connection same_forward = numbered(2);
    same_forward.forward = numbered(1).forward;
    Connection same_reverse = numbered(3);
    same_reverse.reverse = numbered(1).reverse;
    EXPECT_FALSE(store->put(numbered(1)).is_set());
    EXPECT_FALSE(store->put(same_forward).is_set());
    EXPECT_FALSE(store->put(same_reverse).is_set());
    EXPECT_FALSE(store->find(numbered(2).reverse));
    EXPECT_FALSE(store->find(numbered(3).forward));
    expect_found(*store, numbered(1), slot);
    EXPECT_EQ(store->size(), 1U);
}

TEST(Store, HoldsAsManyAsItsCapacity) {
    const auto store = store_for(1'000);
    std::vector<Slot> slots;
    for (uint32_t n = 0; n < 1'000; ++n) {
        slots.push_back(store->put(numbered(n)));
        ASSERT_TRUE(slots.back().is_set()) << n;
    }
    EXPECT_FALSE(store->put(numbered(1'000)).is_set());
    EXPECT_FALSE(store->find(numbered(1'000).forward));
    EXPECT_EQ(store->size(), 1'000U);
    store->remove(slots[500]);
    EXPECT_FALSE(store->find(numbered(500).forward));
    EXPECT_FALSE(store->find(numbered(500).reverse));
    EXPECT_FALSE(store->is_held(slots[500]));
    const Slot slot = store->put(numbered(1'000));
    EXPECT_EQ(slot, slots[500]);
    expect_found(*store, numbered(1'000), slot);
}

TEST(Store, RefreshesStateTimeAndTags) {
    const auto store = store_for(10);
    const Slot slot = store->put(numbered(7));
    Connection later = numbered(7);
    later.state = static_cast<uint8_t>(conn::TcpState::FinForward);
    later.last_seen = {later.last_seen.value + 50};
    later.tags = {1, 2};
    EXPECT_TRUE(store->refresh(slot, later));
    expect_found(*store, later, slot);
    later.last_seen = {later.last_seen.value + conn::kTouchAfterUnits};
    EXPECT_TRUE(store->refresh(slot, later));
    expect_found(*store, later, slot);

    Connection other = later;
    other.reverse.destination_port = 1;
    other.tags = {};
    EXPECT_FALSE(store->refresh(slot, other));
    other = later;
    other.forward.source_port = 1;
    EXPECT_FALSE(store->refresh(slot, other));
    expect_found(*store, later, slot);
}

TEST(Store, RefreshesTheStateOfEachProtocol) {
    const auto store = store_for(10);
    uint32_t n = 0;
    for (const auto& [protocol, before, after] :
         {std::tuple{Protocol::Udp, static_cast<uint8_t>(conn::DatagramState::OneWay),
                     static_cast<uint8_t>(conn::DatagramState::TwoWay)},
          std::tuple{Protocol::Sctp, static_cast<uint8_t>(conn::SctpState::CookieWait),
                     static_cast<uint8_t>(conn::SctpState::Established)}}) {
        Connection copy = numbered(++n);
        copy.forward.protocol = copy.reverse.protocol = protocol;
        copy.state = before;
        const Slot slot = store->put(copy);
        copy.state = after;
        EXPECT_TRUE(store->refresh(slot, copy));
        expect_found(*store, copy, slot);
    }
}

TEST(Store, KeepsTheMarkOfTheCopyThatWasTaken) {
    const auto store = store_for(10);
    const Slot slot = store->put(numbered(1));
    const auto found = store->find(numbered(1).reverse);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->is_taken);
    store->mark_taken(*found);
    EXPECT_TRUE(store->is_taken(slot));
    EXPECT_TRUE(store->find(numbered(1).forward)->is_taken);
    Connection later = numbered(1);
    later.state = static_cast<uint8_t>(conn::TcpState::TimeWait);
    EXPECT_FALSE(store->refresh(slot, later));
    expect_found(*store, numbered(1), slot);

    // The next copy in the slot is not a taken one, even if the worker was late.
    store->remove(slot);
    ASSERT_EQ(store->put(numbered(2)), slot);
    EXPECT_FALSE(store->is_taken(slot));
    store->mark_taken(*found);
    EXPECT_FALSE(store->is_taken(slot));
    EXPECT_FALSE(store->find(numbered(2).forward)->is_taken);
    const auto second = store->find(numbered(2).forward);
    store->mark_taken(*second);
    store->mark_taken(*found);
    EXPECT_TRUE(store->is_taken(slot));
}

TEST(Store, VisitsEachHeldCopyAndLetsItBeRemoved) {
    const auto store = store_for(100);
    std::set<uint32_t> held;
    for (uint32_t n = 0; n < 40; ++n) {
        const Slot slot = store->put(numbered(n, n % 3 == 0 ? Family::V6 : Family::V4));
        if (n % 4 == 0) {
            store->remove(slot);
        } else {
            held.insert(slot.value);
        }
    }
    std::set<uint32_t> visited;
    for (uint32_t first = 0; first < store->slots(); first += 7) {
        store->for_each(first, 7, [&](Slot slot) { EXPECT_TRUE(visited.insert(slot.value).second); });
    }
    EXPECT_EQ(visited, held);
    store->for_each([&](Slot slot) { store->remove(slot); });
    EXPECT_EQ(store->size(), 0U);
    EXPECT_EQ(store->units_used(), 0U);
}

// The writer removes and puts copies as fast as it can, in a store so small that keys are moved between their
// buckets, and refreshes others. Readers must find each copy that stays, whole, at every moment, and of the
// others nothing that was never put. The thread sanitizer verifies the rest.
TEST(Store, AReaderFindsEveryCopyThatStays) {
    constexpr uint32_t kStay = 20, kChange = 30;
    const auto store = store_for(kStay + kChange);
    std::vector<Slot> staying, changing(kChange);
    for (uint32_t n = 0; n < kStay; ++n) {
        staying.push_back(store->put(numbered(n)));
        ASSERT_TRUE(staying.back().is_set());
    }
    std::atomic<bool> is_done{false};
    std::atomic<uint64_t> lookups{0};
    std::thread reader([&] {
        test::Prng random(1);
        while (!is_done.load(std::memory_order_relaxed)) {
            const auto n = static_cast<uint32_t>(random.below(kStay + 2 * kChange));
            const Connection expected = numbered(n);
            const auto found = store->find(random.one_in(2) ? expected.forward : expected.reverse);
            if (!found && n < kStay) {
                ADD_FAILURE() << "copy " << n << " was missed";
                return;
            }
            if (found && (found->connection.forward != expected.forward ||
                          found->connection.reverse != expected.reverse ||
                          found->connection.opened_at != expected.opened_at ||
                          (n >= kStay && !is_same(found->connection, expected)))) {
                ADD_FAILURE() << "copy " << n << " is torn";
                return;
            }
            if (found && n >= kStay) {
                store->mark_taken(*found);
            }
            lookups.fetch_add(1, std::memory_order_relaxed);
        }
    });
    test::Prng random(2);
    // On a busy machine either thread may pause for long. The last bound only ends the test if the reader has
    // failed.
    const auto has_enough = [&](uint64_t rounds) {
        return rounds > 200'000 && lookups.load(std::memory_order_relaxed) > 200'000;
    };
    uint64_t taken = 0;
    for (uint64_t round = 0; !has_enough(round) && round < 100'000'000; ++round) {
        Slot& slot = changing[random.below(kChange)];
        if (slot.is_set()) {
            taken += store->is_taken(slot) ? 1 : 0;
            store->remove(slot);
        }
        slot = store->put(numbered(kStay + static_cast<uint32_t>(random.below(2 * kChange))));
        const auto n = static_cast<uint32_t>(random.below(kStay));
        Connection refreshed = numbered(n);
        refreshed.state = static_cast<uint8_t>(random.below(conn::kTcpStates));
        refreshed.tags = {static_cast<uint32_t>(round), n};
        ASSERT_TRUE(store->refresh(staying[n], refreshed));
    }
    is_done = true;
    reader.join();
    EXPECT_GT(lookups.load(), 200'000U);
    EXPECT_GT(taken, 0U);
}

}  // namespace store_test
}  // namespace penstock::copies
