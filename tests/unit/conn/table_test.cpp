#include "dataplane/conn/table.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/aligned_memory.hpp"

namespace penstock::conn {
namespace {

// Connection `n` in full: every field follows from n, so that a reader can check what it copied against itself.
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
    connection.opened_at = {uint64_t{n} << 20 | 1};
    connection.last_seen = connection.opened_at;
    connection.snat_index = static_cast<uint8_t>(n);
    connection.source_kept = (n & 1) != 0;
    return connection;
}

Inserted insert(Table& table, const Connection& connection) {
    return table.insert(connection, table.hash(connection.forward), table.hash(connection.reverse));
}

struct Fixture {
    explicit Fixture(uint32_t capacity)
        : memory(Table::memory_needed(capacity)), table(std::move(*Table::create(memory.span(), capacity, HashKey::random()))) {}
    test::AlignedMemory memory;
    Table table;
};

TEST(Table, BothKeysLeadToTheEntry_NAT001) {
    Fixture f(100);
    const Inserted inserted = insert(f.table, numbered(1));
    ASSERT_EQ(inserted.status, InsertStatus::Inserted);
    const Connection& connection = f.table.at(inserted.index);

    const Found forward = f.table.find(connection.forward, f.table.hash(connection.forward));
    EXPECT_EQ(forward.index, inserted.index);
    EXPECT_EQ(forward.direction, Direction::Forward);
    const Found reverse = f.table.find(connection.reverse, f.table.hash(connection.reverse));
    EXPECT_EQ(reverse.index, inserted.index);
    EXPECT_EQ(reverse.direction, Direction::Reverse);
    // The packets that we send ourselves are nobody's keys.
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
        {"forward is another's reverse", numbered(1).reverse, numbered(2).reverse, InsertStatus::ForwardTaken},
        {"reverse is another's forward", numbered(2).forward, numbered(1).forward, InsertStatus::ReverseTaken},
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
    const TscTime opened = f.table.at(index).opened_at;
    f.table.touch(index, opened + TscTicks{1'000}, TscTicks{1'000});
    EXPECT_EQ(f.table.at(index).last_seen, opened);
    f.table.touch(index, opened + TscTicks{1'001}, TscTicks{1'000});
    EXPECT_EQ(f.table.at(index).last_seen, opened + TscTicks{1'001});
    f.table.touch(index, opened, TscTicks{1'000});  // from a core whose counter is behind
    EXPECT_EQ(f.table.at(index).last_seen, opened + TscTicks{1'001});
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
    EXPECT_EQ(Table::create(memory.span().first(Table::memory_needed(100) - 1), 100, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(Table::create(memory.span().subspan(8), 100, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(Table::create(memory.span(), 0, {}).error().code, Errc::InvalidArgument);
    EXPECT_EQ(Table::create(memory.span(), Table::kCapacityMax + 1, {}).error().code, Errc::InvalidArgument);
}

// The memory holds no address of its own: copied elsewhere, it is the same table.
TEST(Table, CanBeAdoptedWhereverItsMemoryLies) {
    Fixture f(500);
    for (uint32_t n = 0; n < 400; ++n) {
        ASSERT_EQ(insert(f.table, numbered(n)).status, InsertStatus::Inserted);
    }
    f.table.erase(f.table.find(numbered(3).forward, f.table.hash(numbered(3).forward)).index);
    const test::AlignedMemory elsewhere(f.memory.span().size());
    std::memcpy(elsewhere.span().data(), f.memory.span().data(), f.memory.span().size());
    std::memset(f.memory.span().data(), 0xee, f.memory.span().size());

    Result<Table> adopted = Table::adopt(elsewhere.span());
    ASSERT_TRUE(adopted) << adopted.error().what;
    EXPECT_EQ(adopted->size(), 399u);
    for (uint32_t n = 0; n < 400; ++n) {
        EXPECT_EQ(adopted->find(numbered(n).reverse, adopted->hash(numbered(n).reverse)).is_hit(), n != 3) << n;
    }
    for (uint32_t n = 1'000; n < 1'101; ++n) {
        EXPECT_EQ(insert(*adopted, numbered(n)).status, InsertStatus::Inserted);
    }
    EXPECT_EQ(insert(*adopted, numbered(2'000)).status, InsertStatus::Full);
}

TEST(Table, AdoptsNothingThatIsNoTable) {
    Fixture f(100);
    EXPECT_EQ(Table::adopt(f.memory.span().first(32)).error().code, Errc::Corrupt);
    EXPECT_EQ(Table::adopt(f.memory.span().first(Table::memory_needed(100) - kCacheLine)).error().code, Errc::Corrupt);
    for (const size_t damaged : {size_t{0}, offsetof(detail::Header, version), offsetof(detail::Header, capacity),
                                 offsetof(detail::Header, buckets), offsetof(detail::Header, size)}) {
        Fixture copy(100);
        copy.memory.span()[damaged] ^= std::byte{0x10};
        EXPECT_EQ(Table::adopt(copy.memory.span()).error().code, Errc::Corrupt) << "byte " << damaged;
    }
}

// Two threads, as in production. The worker replaces the table's only entry as fast as it can, everything worked out beforehand, so that a
// lister is overtaken in most of its copies; what it gets must be one connection, whole. (Without the generation check in read() it meets
// torn copies within milliseconds.) The thread sanitizer proves the rest.
TEST(Table, AListerNeverSeesATornEntry) {
    Fixture f(1);
    const Table& for_reading = f.table;
    std::atomic<bool> is_done{false};
    std::atomic<uint64_t> copies{0};
    std::thread lister([&] {
        while (!is_done.load(std::memory_order_relaxed)) {
            Connection seen;
            if (!for_reading.read(0, seen)) {
                continue;
            }
            Connection expected = numbered(seen.service.value);
            expected.state = seen.state;
            expected.last_seen = seen.last_seen;
            if (std::memcmp(&seen, &expected, sizeof seen) != 0) {
                ADD_FAILURE() << "torn entry, service " << seen.service.value;
                return;
            }
            EXPECT_LE(for_reading.size(), 1u);
            copies.fetch_add(1, std::memory_order_relaxed);
        }
    });
    struct Prepared {
        Connection connection;
        uint64_t forward_hash, reverse_hash;
    };
    std::vector<Prepared> prepared;
    for (uint32_t n = 0; n < 64; ++n) {
        const Connection connection = numbered(n);
        prepared.push_back({connection, f.table.hash(connection.forward), f.table.hash(connection.reverse)});
    }
    // Until both threads have done much, as on a busy machine either may pause for long; the last bound only ends the test where the lister
    // has failed.
    const auto has_enough = [&](uint64_t rounds) { return rounds > 1'000'000 && copies.load(std::memory_order_relaxed) > 50'000; };
    for (uint64_t round = 0; !has_enough(round) && round < 100'000'000; ++round) {
        const Prepared& next = prepared[round % prepared.size()];
        const Inserted inserted = f.table.insert(next.connection, next.forward_hash, next.reverse_hash);
        ASSERT_EQ(inserted.status, InsertStatus::Inserted);
        f.table.set_state(inserted.index, static_cast<TcpState>(round % kTcpStates), {~round});
        f.table.touch(inserted.index, {~round + 1}, {0});
        f.table.erase(inserted.index);
    }
    is_done = true;
    lister.join();
    EXPECT_GT(copies.load(), 50'000u);
}

}  // namespace
}  // namespace penstock::conn
