// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/aligned_memory.hpp"

namespace penstock::conn {
namespace table_test {

// Connection `n` in full: every field is derived from n, so that a reader can check the consistency of its
// copy.
Connection numbered(uint32_t n) {
    Connection connection;
    connection.forward = {.source = IpAddr::v4(Be32::from_host(0x0a000000 + n)),
                          .destination = IpAddr::v4(80, 11, 12, 10),
                          .source_port = static_cast<L4Port>(n * 7 + 1),
                          .destination_port = 80};
    connection.reverse = {.source = IpAddr::v4(10, 1, 0, 1),
                          .destination = IpAddr::v4(Be32::from_host(0xc0000000 + n)),
                          .source_port = 9376,
                          .destination_port = static_cast<L4Port>(n * 3 + 1)};
    connection.service = {n};
    connection.backend = {n ^ 0x5a5a5a5a};
    connection.opened_at = {n << 10 | 1};
    connection.last_seen = connection.opened_at;
    connection.snat_pool = n * 11;
    connection.l4_delta =
        packet::FoldedDelta(packet::ChecksumDelta().replace(Be32{}, Be32::from_host(n + 1)));
    connection.ip_delta =
        packet::FoldedDelta(packet::ChecksumDelta().replace(Be32{}, Be32::from_host(n + 2)));
    connection.snat_index = static_cast<uint8_t>(n % limits::kSnatAddressesMax);
    connection.tags = {n * 3 + 1, n * 5 + 2};
    connection.source_kept = (n & 1) != 0;
    return connection;
}

// The same in IPv6. Addresses consist of ones, so that one mistaken for a generation would appear live.
Connection numbered_v6(uint32_t n) {
    Connection connection = numbered(n);
    const auto address = [&](uint32_t which) {
        std::array<uint8_t, 16> bytes;
        bytes.fill(0xff);
        store(bytes.data() + 4, n * 4 + which);
        store(bytes.data() + 8, ~n);
        return IpAddr::v6(bytes);
    };
    connection.forward.source = address(0);
    connection.forward.destination = address(1);
    connection.reverse.source = address(2);
    connection.reverse.destination = address(3);
    return connection;
}

// Client and endpoint of different families: for even numbers the client is IPv4.
Connection numbered_mixed(uint32_t n) {
    Connection connection = numbered(n);
    const Connection v6 = numbered_v6(n);
    (n % 2 == 0 ? connection.reverse : connection.forward) = n % 2 == 0 ? v6.reverse : v6.forward;
    return connection;
}

bool is_same(const Connection& a, const Connection& b) {
    return a.forward == b.forward && a.reverse == b.reverse && a.last_seen == b.last_seen &&
           a.opened_at == b.opened_at && a.service == b.service && a.backend == b.backend &&
           a.snat_pool == b.snat_pool && a.l4_delta == b.l4_delta && a.ip_delta == b.ip_delta &&
           a.state == b.state && a.source_kept == b.source_kept && a.snat_index == b.snat_index &&
           a.tags == b.tags;
}

Inserted insert(Table& table, const Connection& connection) {
    return table.insert(connection, table.hash(connection.forward), table.hash(connection.reverse));
}

struct Fixture {
    explicit Fixture(uint32_t capacity)
        : memory(Table::memory_needed(capacity)),
          table(std::move(*Table::create(memory.span(), capacity, HashKey::random()))) {}
    test::AlignedMemory memory;
    Table table;
};

TEST(Table, BothKeysLeadToTheEntry_NAT001) {
    Fixture f(100);
    const Inserted inserted = insert(f.table, numbered(1));
    ASSERT_EQ(inserted.status, InsertStatus::Inserted);
    const Connection connection = f.table.connection(inserted.index);
    EXPECT_TRUE(is_same(connection, numbered(1)));

    const Found forward = f.table.find(connection.forward, f.table.hash(connection.forward));
    EXPECT_EQ(forward.index, inserted.index);
    EXPECT_EQ(forward.direction, Direction::Forward);
    const Found reverse = f.table.find(connection.reverse, f.table.hash(connection.reverse));
    EXPECT_EQ(reverse.index, inserted.index);
    EXPECT_EQ(reverse.direction, Direction::Reverse);
    // The packets that the gateway itself sends match no key.
    for (const packet::FlowKey& key : {connection.forward.reversed(), connection.reverse.reversed()}) {
        EXPECT_FALSE(f.table.find(key, f.table.hash(key)).is_hit());
    }
}

TEST(Table, TakenKeysAreToldApartAndNothingChanges) {
    Fixture f(100);
    ASSERT_EQ(insert(f.table, numbered(1)).status, InsertStatus::Inserted);
    const struct {
        const char* name;
        packet::FlowKey forward, reverse;
        InsertStatus expected;
    } cases[] = {
        {"same forward", numbered(1).forward, numbered(2).reverse, InsertStatus::ForwardTaken},
        {"same reverse", numbered(2).forward, numbered(1).reverse, InsertStatus::ReverseTaken},
        {"forward is another's reverse", numbered(1).reverse, numbered(2).reverse,
         InsertStatus::ForwardTaken},
        {"reverse is another's forward", numbered(2).forward, numbered(1).forward,
         InsertStatus::ReverseTaken},
        {"both are one key", numbered(2).forward, numbered(2).forward, InsertStatus::ReverseTaken},
    };
    for (const auto& c : cases) {
        Connection connection = numbered(2);
        connection.forward = c.forward;
        connection.reverse = c.reverse;
        EXPECT_EQ(insert(f.table, connection).status, c.expected) << c.name;
        EXPECT_EQ(f.table.size(), 1u) << c.name;
    }
    EXPECT_EQ(insert(f.table, numbered(2)).status, InsertStatus::Inserted);
}

TEST(Table, LastSeenIsWrittenOnlyWhenItHasAged) {
    Fixture f(10);
    const ConnectionIndex index = insert(f.table, numbered(1)).index;
    const CoarseTime opened = f.table.at(index).opened_at;
    const CoarseTime early{opened.value + kTouchAfterUnits - 1};
    const CoarseTime aged{opened.value + kTouchAfterUnits};
    f.table.touch(index, early);
    EXPECT_EQ(f.table.at(index).last_seen, opened);
    f.table.touch(index, aged);
    EXPECT_EQ(f.table.at(index).last_seen, aged);
    f.table.touch(index, opened);  // from a core with a counter that is behind
    EXPECT_EQ(f.table.at(index).last_seen, aged);
}

TEST(Table, SettingTheStateLeavesTheRestOfItsWordAlone) {
    Fixture f(10);
    const ConnectionIndex index = insert(f.table, numbered(7)).index;
    f.table.set_state(index, TcpState::FinReverse, {numbered(7).opened_at.value + 5});
    EXPECT_EQ(f.table.at(index).tcp_state(), TcpState::FinReverse);
    EXPECT_EQ(f.table.at(index).snat_index, numbered(7).snat_index);
    EXPECT_TRUE(f.table.at(index).source_kept);
    EXPECT_EQ(f.table.at(index).last_seen.value, numbered(7).opened_at.value + 5);
}

TEST(Table, AReusedIndexHasAnotherGeneration) {
    Fixture f(1);
    const ConnectionIndex first = insert(f.table, numbered(1)).index;
    const uint32_t generation = f.table.generation(first);
    f.table.erase(first);
    EXPECT_NE(f.table.generation(first), generation);
    const ConnectionIndex second = insert(f.table, numbered(2)).index;
    EXPECT_EQ(second, first);
    EXPECT_NE(f.table.generation(second), generation);
}

TEST(Table, RefusesMemoryThatDoesNotFit) {
    const test::AlignedMemory memory(Table::memory_needed(100) + kCacheLine);
    EXPECT_EQ(Table::create(memory.span().first(Table::memory_needed(100) - 1), 100, {}).error().code,
              Errc::InvalidArgument);
    EXPECT_EQ(Table::create(memory.span().subspan(8), 100, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(Table::create(memory.span(), 0, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(Table::create(memory.span(), Table::kCapacityMax + 1, {}).error().code, Errc::InvalidArgument);
}

// IPv6 connections use two units; IPv4 connections use free halves of pairs first.
TEST(Table, BothFamiliesShareTheUnits) {
    Fixture f(4);
    const ConnectionIndex a = insert(f.table, numbered(1)).index;
    const ConnectionIndex six = insert(f.table, numbered_v6(2)).index;
    const ConnectionIndex b = insert(f.table, numbered(3)).index;
    EXPECT_EQ(f.table.size(), 3u);
    EXPECT_EQ(f.table.units_used(), 4u);
    EXPECT_EQ(b.value, a.value + 1) << "the other half of the first pair";
    EXPECT_EQ(insert(f.table, numbered(4)).status, InsertStatus::Full);
    EXPECT_TRUE(is_same(f.table.connection(six), numbered_v6(2)));
    EXPECT_FALSE(f.table.is_live(six.value + 1));

    // Two free units, but not one pair.
    f.table.erase(a);
    EXPECT_EQ(insert(f.table, numbered_v6(5)).status, InsertStatus::Full);
    f.table.erase(b);
    EXPECT_EQ(insert(f.table, numbered_v6(5)).status, InsertStatus::Inserted);
    f.table.erase(six);
    EXPECT_EQ(insert(f.table, numbered(6)).status, InsertStatus::Inserted);
    EXPECT_EQ(insert(f.table, numbered(7)).status, InsertStatus::Inserted);
    EXPECT_EQ(f.table.units_used(), 4u);
    for (const Connection& live : {numbered_v6(5), numbered(6), numbered(7)}) {
        EXPECT_TRUE(f.table.find(live.forward, f.table.hash(live.forward)).is_hit());
        EXPECT_TRUE(f.table.find(live.reverse, f.table.hash(live.reverse)).is_hit());
    }
}

// A connection with keys of different families takes a pair, and either key finds it, whatever other keys are
// in the burst.
TEST(Table, MixedConnectionsAreFoundByEitherFamily_ANN32) {
    Fixture f(8);
    for (const uint32_t n : {2u, 3u}) {
        const Connection mixed = numbered_mixed(n);
        ASSERT_NE(mixed.forward.source.is_v4(), mixed.reverse.source.is_v4());
        const Inserted inserted = insert(f.table, mixed);
        ASSERT_EQ(inserted.status, InsertStatus::Inserted);
        EXPECT_EQ(f.table.units_used(), 2u);
        const Entry& entry = f.table.at(inserted.index);
        EXPECT_TRUE(entry.is_v6() && entry.is_mixed());
        EXPECT_EQ(entry.key(Direction::Forward), mixed.forward);
        EXPECT_EQ(entry.key(Direction::Reverse), mixed.reverse);
        EXPECT_TRUE(is_same(f.table.connection(inserted.index), mixed));
        EXPECT_FALSE(f.table.is_live(inserted.index.value + 1));
        Connection read;
        EXPECT_TRUE(f.table.read(inserted.index.value, read) && is_same(read, mixed));
        EXPECT_FALSE(f.table.read(inserted.index.value + 1, read));
        for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
            const packet::FlowKey& key = direction == Direction::Forward ? mixed.forward : mixed.reverse;
            Found found = f.table.find(key, f.table.hash(key));
            EXPECT_TRUE(found.index == inserted.index && found.direction == direction);
            uint64_t hash = 0;
            found = {};
            f.table.find_burst(1, [&](uint32_t) -> const packet::FlowKey& { return key; }, &hash, &found);
            EXPECT_TRUE(found.index == inserted.index && found.direction == direction);
        }
        EXPECT_EQ(insert(f.table, mixed).status, InsertStatus::ForwardTaken);
        Connection same_reverse = numbered(20 + n);
        same_reverse.reverse = mixed.reverse;
        same_reverse.forward =
            mixed.reverse.source.is_v4() ? numbered(20 + n).forward : numbered_v6(20 + n).forward;
        EXPECT_EQ(insert(f.table, same_reverse).status, InsertStatus::ReverseTaken);
        f.table.erase(inserted.index);
        EXPECT_EQ(f.table.units_used(), 0u);
        EXPECT_FALSE(f.table.find(mixed.forward, f.table.hash(mixed.forward)).is_hit());
        EXPECT_FALSE(f.table.find(mixed.reverse, f.table.hash(mixed.reverse)).is_hit());
    }
    // A pair that held a mixed connection can hold two of IPv4 afterwards.
    Fixture small(2);
    small.table.erase(insert(small.table, numbered_mixed(4)).index);
    EXPECT_EQ(insert(small.table, numbered(5)).status, InsertStatus::Inserted);
    EXPECT_EQ(insert(small.table, numbered(6)).status, InsertStatus::Inserted);
    EXPECT_EQ(insert(small.table, numbered_mixed(7)).status, InsertStatus::Full);
    for (const uint32_t n : {5u, 6u}) {
        EXPECT_TRUE(small.table.find(numbered(n).forward, small.table.hash(numbered(n).forward)).is_hit());
    }
}

// An attacker with a set of keys that share a bucket and a tag under one secret gains no information about
// another secret.
TEST(Table, WhichKeysCollideFollowsFromTheSecret) {
    constexpr uint32_t kKeys = 1 << 14;
    // Keys that agree in the low bits of their hashes, like those of one bucket: about kKeys * kKeys / 2 /
    // 2^20 pairs by chance.
    const auto colliding = [](const KeyedMix& mix, auto key_of) {
        std::map<uint32_t, std::vector<uint32_t>> by_hash;
        for (uint32_t n = 0; n < kKeys; ++n) {
            by_hash[packet::hash_of(key_of(n), mix) & 0xfffff].push_back(n);
        }
        std::set<std::pair<uint32_t, uint32_t>> pairs;
        for (const auto& [hash, keys] : by_hash) {
            for (size_t i = 1; i < keys.size(); ++i) {
                pairs.emplace(keys[i - 1], keys[i]);
            }
        }
        return pairs;
    };
    const auto check = [&](const char* name, auto key_of) {
        const auto one = colliding(KeyedMix(HashKey{1, 2}), key_of);
        const auto other = colliding(KeyedMix(HashKey{1, 3}), key_of);
        EXPECT_GT(one.size(), 64u) << name;
        EXPECT_LT(one.size(), 256u) << name << ": many more than chance gives";
        std::vector<std::pair<uint32_t, uint32_t>> both;
        std::ranges::set_intersection(one, other, std::back_inserter(both));
        EXPECT_LE(both.size(), 2u) << name;
    };
    check("IPv4 clients", [](uint32_t n) { return numbered(n).forward; });
    check("IPv6 clients", [](uint32_t n) { return numbered_v6(n).forward; });
    check("one client's ports", [](uint32_t n) {
        packet::FlowKey key = numbered(1).forward;
        key.source_port = static_cast<L4Port>(n);
        return key;
    });
}

// Two threads, as in production. The worker fills the table's only pair with one IPv6 or mixed connection,
// then with two of IPv4, as fast as it can. Everything is computed in advance, so that most copies of a
// reader are overtaken. Each copy that the reader gets must be one whole connection. (Without the generation
// check in read() torn copies occur within milliseconds.) The thread sanitizer verifies the rest.
TEST(Table, AListerNeverSeesATornEntry) {
    Fixture f(2);
    const Table& for_reading = f.table;
    std::atomic<bool> is_done{false};
    std::atomic<uint64_t> copies{0};
    std::thread lister([&] {
        while (!is_done.load(std::memory_order_relaxed)) {
            Connection seen;
            // The second unit is a separate connection, or the first one's addresses.
            if (!for_reading.read(static_cast<uint32_t>(copies.load(std::memory_order_relaxed) % 2), seen) &&
                !for_reading.read(0, seen)) {
                continue;
            }
            const uint32_t n = seen.service.value;
            const bool is_mixed = seen.forward.source.is_v4() != seen.reverse.source.is_v4();
            Connection expected = is_mixed                      ? numbered_mixed(n)
                                  : seen.forward.source.is_v4() ? numbered(n)
                                                                : numbered_v6(n);
            expected.state = seen.state;
            expected.last_seen = seen.last_seen;
            if (!is_same(seen, expected)) {
                ADD_FAILURE() << "torn entry, service " << seen.service.value;
                return;
            }
            EXPECT_LE(for_reading.size(), 2u);
            copies.fetch_add(1, std::memory_order_relaxed);
        }
    });
    struct Prepared {
        Connection connection;
        uint64_t forward_hash, reverse_hash;
    };
    std::vector<Prepared> prepared;
    for (uint32_t n = 0; n < 64; ++n) {
        const Connection connection = n % 12 == 0  ? numbered_mixed(n)
                                      : n % 3 == 0 ? numbered_v6(n)
                                                   : numbered(n);
        prepared.push_back({connection, f.table.hash(connection.forward), f.table.hash(connection.reverse)});
    }
    // Runs until both threads have done enough, because on a busy machine either may pause for long. The last
    // bound only ends the test if the reader has failed.
    const auto has_enough = [&](uint64_t rounds) {
        return rounds > 1'000'000 && copies.load(std::memory_order_relaxed) > 50'000;
    };
    for (uint64_t round = 0; !has_enough(round) && round < 100'000'000; ++round) {
        std::array<ConnectionIndex, 2> live;
        uint32_t count = 0;
        do {
            const Prepared& next = prepared[(round % 21 * 3 + (round % 2) + count) % 63];
            const Inserted inserted = f.table.insert(next.connection, next.forward_hash, next.reverse_hash);
            ASSERT_EQ(inserted.status, InsertStatus::Inserted);
            f.table.set_state(inserted.index, static_cast<TcpState>(round % kTcpStates),
                              {static_cast<uint32_t>(~round)});
            f.table.touch(inserted.index, {static_cast<uint32_t>(round)});
            live[count++] = inserted.index;
        } while (round % 2 == 1 && count < 2 && f.table.units_used() < 2);
        while (count > 0) {
            f.table.erase(live[--count]);
        }
    }
    is_done = true;
    lister.join();
    EXPECT_GT(copies.load(), 50'000u);
}

}  // namespace table_test
}  // namespace penstock::conn
