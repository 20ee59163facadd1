// SPDX-License-Identifier: Apache-2.0
// The connection table, compared with a std::map: random opening, finding and closing, to capacity and
// beyond, with a good hash and with bad ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "dataplane/conn/table.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/prng.hpp"

namespace penstock::conn {
namespace table_property_test {

struct ByBytes {
    bool operator()(const packet::FlowKey& a, const packet::FlowKey& b) const {
        return std::memcmp(&a, &b, sizeof a) < 0;
    }
};

// The hash of a test: the table's own, or a bad one.
using HashOf = uint64_t (*)(const Table&, const packet::FlowKey&);
uint64_t sound(const Table& table, const packet::FlowKey& key) {
    return table.hash(key);
}
uint64_t constant(const Table&, const packet::FlowKey&) {
    return 42;
}
// Four first buckets and three tags: long chains of equal tags beside full buckets.
uint64_t poor(const Table& table, const packet::FlowKey& key) {
    return table.hash(key) & 0x0000'0003'c000'0000;
}
// A good tag, and a first bucket in the first nine sixteenths of the table.
uint64_t crowded(const Table& table, const packet::FlowKey& key) {
    const uint64_t hash = table.hash(key);
    return (hash & 0xffff'ffff'0000'0000) | (hash & 0xffff'ffff) * 9 / 16;
}
// Every key has the same tag, so a find must compare keys, and each bucket has only one alternative.
uint64_t one_tag(const Table& table, const packet::FlowKey& key) {
    return table.hash(key) & 0xffff'ffff;
}

// Few keys, so that opening a tuple twice, and two connections with one reverse key, are frequent.
enum class Families : uint8_t { V4, All };
void make_v6(packet::FlowKey& key) {
    for (IpAddr* address : {&key.source, &key.destination}) {
        std::array<uint8_t, 16> bytes = address->bytes();
        bytes[0] = 0x20;
        *address = IpAddr::v6(bytes);
    }
}
Connection random_connection(test::Prng& prng, uint32_t clients, Families family) {
    const auto client = static_cast<uint32_t>(prng.below(clients));
    const auto addr = [](uint32_t n) {
        return IpAddr::v4(10, static_cast<uint8_t>(n >> 16), static_cast<uint8_t>(n >> 8),
                          static_cast<uint8_t>(n));
    };
    Connection connection;
    connection.forward = {.source = addr(client),
                          .destination = IpAddr::v4(80, 11, 12, 10),
                          .source_port = static_cast<L4Port>(1 + prng.below(4)),
                          .destination_port = 80,
                          .protocol = prng.one_in(2) ? Protocol::Tcp : Protocol::Udp};
    connection.reverse = {.source = IpAddr::v4(172, 16, 0, static_cast<uint8_t>(prng.below(4))),
                          .destination = IpAddr::v4(192, 0, 2, 1),
                          .source_port = 9376,
                          .destination_port = static_cast<L4Port>(1024 + prng.below(clients)),
                          .protocol = connection.forward.protocol};
    // One of four is the same in IPv6: the IPv4 addresses under a prefix, which also tests that keys of the
    // families are never confused. One has an IPv6 forward key, one an IPv6 reverse key.
    if (family == Families::All && client % 4 <= 1) {
        make_v6(connection.forward);
    }
    if (family == Families::All && client % 4 != 1 && client % 4 != 3) {
        make_v6(connection.reverse);
    }
    connection.opened_at = connection.last_seen = {static_cast<uint32_t>(prng.next())};
    connection.service = {client};
    return connection;
}

struct Model {
    std::map<packet::FlowKey, std::pair<uint32_t, Direction>, ByBytes> keys;
    std::map<uint32_t, Connection> live;
};

// As a worker searches: one burst at a time, of one family or of both.
void expect_found_in_bursts(const Table& table, const Model& model, HashOf hash_of) {
    enum class Families { V4, V6, Both };
    for (const Families families : {Families::V4, Families::V6, Families::Both}) {
        std::vector<packet::FlowKey> keys;
        const auto find_them = [&] {
            std::array<Found, limits::kBurstMax> found;
            table.find_hashed(
                static_cast<uint32_t>(keys.size()),
                static_cast<uint32_t>(
                    std::ranges::count_if(keys, [](const auto& key) { return !key.source.is_v4(); })),
                [&](uint32_t i) -> const packet::FlowKey& { return keys[i]; },
                [&](uint32_t i) { return hash_of(table, keys[i]); },
                [&](uint32_t i) -> Found& { return found[i]; });
            for (size_t i = 0; i < keys.size(); ++i) {
                ASSERT_TRUE(found[i].is_hit());
                EXPECT_EQ(found[i].index.value, model.keys.at(keys[i]).first);
                EXPECT_EQ(found[i].direction, model.keys.at(keys[i]).second);
            }
            keys.clear();
        };
        for (const auto& [key, where] : model.keys) {
            if (families == Families::Both || key.source.is_v4() == (families == Families::V4)) {
                keys.push_back(key);
            }
            if (keys.size() == limits::kBurstMax) {
                ASSERT_NO_FATAL_FAILURE(find_them());
            }
        }
        ASSERT_NO_FATAL_FAILURE(find_them());
    }
}

void expect_same(const Table& table, const Model& model, HashOf hash_of) {
    ASSERT_EQ(table.size(), model.live.size());
    ASSERT_NO_FATAL_FAILURE(expect_found_in_bursts(table, model, hash_of));
    for (const auto& [key, where] : model.keys) {
        const Found found = table.find(key, hash_of(table, key));
        ASSERT_TRUE(found.is_hit()) << key.source.to_string() << ":" << key.source_port;
        EXPECT_EQ(found.index.value, where.first);
        EXPECT_EQ(found.direction, where.second);
        Table::Lookup lookup;
        ASSERT_TRUE(table.look_up(key, hash_of(table, key), lookup));
        EXPECT_EQ(lookup.found.index, found.index);
        EXPECT_EQ(lookup.found.direction, found.direction);
        EXPECT_EQ(lookup.generation, table.generation(found.index));
        const Connection& expected = model.live.at(where.first);
        EXPECT_TRUE(lookup.connection.forward == expected.forward &&
                    lookup.connection.reverse == expected.reverse);
    }
    uint32_t listed = 0;
    for (uint32_t slot = 0; slot < table.high_water(); ++slot) {
        ASSERT_EQ(table.is_live(slot), model.live.contains(slot));
        Connection out;
        if (table.read(slot, out)) {
            ++listed;
            ASSERT_TRUE(model.live.contains(slot));
            const Connection& expected = model.live.at(slot);
            EXPECT_TRUE(out.forward == expected.forward && out.reverse == expected.reverse &&
                        out.service == expected.service && out.opened_at == expected.opened_at);
        }
    }
    EXPECT_EQ(listed, model.live.size());
}

// Whether Full may occur below capacity, as it does with a bad hash; it must not change the table in any
// case.
enum class Refusals { Never, Allowed, Expected };

void run_against_model(uint32_t capacity, HashOf hash_of, Refusals refusals, int steps,
                       Families families = Families::V4) {
    test::Prng prng;
    const test::AlignedMemory memory(Table::memory_needed(capacity));
    Result<Table> table = Table::create(memory.span(), capacity, {prng.next(), prng.next()});
    ASSERT_TRUE(table);
    Model model;
    uint32_t refused = 0;
    uint32_t units = 0;
    const auto units_of = [](const Connection& connection) {
        return connection.forward.source.is_v4() && connection.reverse.source.is_v4() ? 1U : 2U;
    };
    for (int i = 0; i < steps; ++i) {
        // Opening predominates for half of the time, then closing, so that both limits are reached.
        const bool opens = prng.below(100) < ((i / (steps / 8)) % 2 == 0 ? 80u : 30u);
        if (opens || model.live.empty()) {
            const Connection wanted = random_connection(prng, capacity * 2, families);
            const Inserted got =
                table->insert(wanted, hash_of(*table, wanted.forward), hash_of(*table, wanted.reverse));
            if (model.keys.contains(wanted.forward)) {
                ASSERT_EQ(got.status, InsertStatus::ForwardTaken);
            } else if (model.keys.contains(wanted.reverse)) {
                ASSERT_EQ(got.status, InsertStatus::ReverseTaken);
            } else if (units + units_of(wanted) > capacity) {
                ASSERT_EQ(got.status, InsertStatus::Full);
            } else if (got.status == InsertStatus::Full) {
                ASSERT_NE(refusals, Refusals::Never) << "refused at " << table->size() << " of " << capacity;
                ++refused;
            } else {
                ASSERT_EQ(got.status, InsertStatus::Inserted);
                ASSERT_LT(got.index.value, capacity + 1);
                units += units_of(wanted);
                ASSERT_EQ(table->units_used(), units);
                ASSERT_TRUE(model.live.emplace(got.index.value, wanted).second)
                    << "an index was given out twice";
                model.keys[wanted.forward] = {got.index.value, Direction::Forward};
                model.keys[wanted.reverse] = {got.index.value, Direction::Reverse};
            }
        } else {
            auto victim = model.live.lower_bound(static_cast<uint32_t>(prng.below(capacity)));
            victim = victim == model.live.end() ? model.live.begin() : victim;
            if (hash_of == sound && prng.one_in(2)) {
                table->erase({victim->first});  // the table computes its own hash
            } else {
                table->erase({victim->first}, hash_of(*table, victim->second.forward),
                             hash_of(*table, victim->second.reverse));
            }
            for (const packet::FlowKey* key : {&victim->second.forward, &victim->second.reverse}) {
                EXPECT_FALSE(table->find(*key, hash_of(*table, *key)).is_hit());
                model.keys.erase(*key);
            }
            units -= units_of(victim->second);
            model.live.erase(victim);
        }
        if (i % (steps / 16) == 0) {
            ASSERT_NO_FATAL_FAILURE(expect_same(*table, model, hash_of));
        }
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(*table, model, hash_of));
    EXPECT_TRUE(refused > 0 || refusals != Refusals::Expected)
        << "the broken hash was meant to fill its buckets";
}

TEST(TableProperty, AgreesWithAMap) {
    run_against_model(1'000, sound, Refusals::Never, 60'000);
}
// First buckets are in little more than half of the table. So these become full, and room is made in them by
// moves, as in a table much fuller than the 60 % of one with a good hash. There is room elsewhere, so nothing
// may be refused.
TEST(TableProperty, AgreesWithAMapWhereFirstBucketsAreFull) {
    run_against_model(3'600, crowded, Refusals::Never, 60'000);
}
// Full may occur early: free units do not always form a pair.
TEST(TableProperty, AgreesWithAMapOfBothFamiliesAndMixed_ANN32) {
    run_against_model(1'000, sound, Refusals::Allowed, 60'000, Families::All);
}
TEST(TableProperty, AgreesWithAMapOfAllFamiliesWhereHashesTellNothing_ANN32) {
    for (const HashOf bad : {constant, poor, one_tag}) {
        run_against_model(256, bad, Refusals::Allowed, 20'000, Families::All);
    }
}
TEST(TableProperty, AgreesWithAMapWhereEveryKeyHasOneHash) {
    run_against_model(256, constant, Refusals::Expected, 20'000);
}
TEST(TableProperty, AgreesWithAMapWhereHashesAreFew) {
    run_against_model(256, poor, Refusals::Expected, 20'000);
}
TEST(TableProperty, AgreesWithAMapWhereAllTagsAreEqual) {
    run_against_model(256, one_tag, Refusals::Allowed, 20'000);
}
TEST(TableProperty, AgreesWithAMapInTheSmallestTables) {
    for (uint32_t capacity = 1; capacity <= 12; ++capacity) {
        run_against_model(capacity, sound, Refusals::Never, 2'000);
    }
}

// Full occurs at capacity only: with the table's own hash every entry can be used, also when the buckets are
// fullest.
TEST(TableProperty, TakesExactlyItsCapacity) {
    test::Prng prng;
    for (const uint32_t capacity : {36u, 900u, 3'600u, 26'214u, 100'000u}) {
        const test::AlignedMemory memory(Table::memory_needed(capacity));
        Result<Table> table = Table::create(memory.span(), capacity, {prng.next(), prng.next()});
        ASSERT_TRUE(table);
        Connection connection;
        connection.forward = {.destination = IpAddr::v4(80, 11, 12, 10), .destination_port = 80};
        connection.reverse = {.source = IpAddr::v4(10, 1, 0, 1), .source_port = 9376};
        for (uint32_t i = 0; i <= capacity; ++i) {
            connection.forward.source = IpAddr::v4(Be32::from_host(i));
            connection.reverse.destination = IpAddr::v4(Be32::from_host(i));
            const InsertStatus status =
                table->insert(connection, table->hash(connection.forward), table->hash(connection.reverse))
                    .status;
            ASSERT_EQ(status, i < capacity ? InsertStatus::Inserted : InsertStatus::Full)
                << i << " of " << capacity;
        }
    }
}

}  // namespace table_property_test
}  // namespace penstock::conn
