// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/former_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_layout.hpp"
#include "tests/support/aligned_memory.hpp"

namespace penstock::conn {
namespace former_table_test {

using Unit = FormerTable::Unit;

enum class Kind : uint8_t { V4, V6, Mixed };

Connection numbered(uint32_t n, Kind kind = Kind::V4) {
    const auto v6 = [&](uint8_t which) {
        std::array<uint8_t, 16> bytes;
        bytes.fill(0xff);  // one mistaken for a generation would appear live
        bytes[0] = 0x20;
        bytes[14] = which;
        bytes[15] = static_cast<uint8_t>(n);
        return IpAddr::v6(bytes);
    };
    Connection connection;
    connection.forward = {IpAddr::v4(Be32::from_host(0x0a000000 + n)), IpAddr::v4(80, 11, 12, 10),
                          static_cast<L4Port>(n + 1), 80};
    connection.reverse = {IpAddr::v4(10, 1, 0, 1), IpAddr::v4(10, 1, 0, 2), 9376,
                          static_cast<L4Port>(n + 1024)};
    if (kind != Kind::V4) {
        connection.reverse.source = v6(1);
        connection.reverse.destination = v6(2);
    }
    if (kind == Kind::V6) {
        connection.forward.source = v6(3);
        connection.forward.destination = v6(4);
    }
    connection.last_seen = {n + 7};
    connection.opened_at = {n + 3};
    connection.service = {n};
    connection.backend = {n + 1};
    connection.snat_pool = n + 2;
    connection.l4_delta = packet::FoldedDelta(packet::ChecksumDelta().replace(Be32{}, Be32::from_host(n)));
    connection.state = static_cast<uint8_t>(TcpState::Established);
    connection.is_pinned = true;
    connection.snat_index = 5;
    connection.tags = {n * 3, n * 5};
    return connection;
}

struct Fixture {
    explicit Fixture(uint32_t capacity) : memory(Table::memory_needed(capacity)), capacity(capacity) {}
    ConnectionIndex insert(const Connection& connection) {
        const Inserted inserted =
            table.insert(connection, table.hash(connection.forward), table.hash(connection.reverse));
        EXPECT_EQ(inserted.status, InsertStatus::Inserted);
        return inserted.index;
    }
    Entry& entry(ConnectionIndex index) {
        const size_t units = (capacity + 1U) / 2 * 2;
        return reinterpret_cast<Entry*>(memory.span().data() + Table::memory_needed(capacity) -
                                        units * sizeof(Entry))[index.value];
    }
    // What each unit holds now, with the connections in the order of their units.
    std::vector<Unit> units(std::vector<Connection>& live) const {
        const Result<FormerTable> former = FormerTable::open(memory.span());
        EXPECT_TRUE(former.has_value());
        std::vector<Unit> all;
        for (uint32_t unit = 0; former && unit < former->units(); ++unit) {
            Connection connection;
            all.push_back(former->read(unit, connection));
            if (all.back() == Unit::Live) {
                live.push_back(connection);
            }
        }
        return all;
    }
    [[nodiscard]] size_t count(Unit unit) const {
        std::vector<Connection> live;
        return static_cast<size_t>(std::ranges::count(units(live), unit));
    }

    test::AlignedMemory memory;
    uint32_t capacity;
    Table table = std::move(*Table::create(memory.span(), capacity, HashKey::random()));
};

bool is_same(const Connection& a, const Connection& b) {
    return a.forward == b.forward && a.reverse == b.reverse && a.last_seen == b.last_seen &&
           a.opened_at == b.opened_at && a.service == b.service && a.backend == b.backend &&
           a.snat_pool == b.snat_pool && a.l4_delta == b.l4_delta && a.ip_delta == b.ip_delta &&
           a.state == b.state && a.source_kept == b.source_kept && a.is_pinned == b.is_pinned &&
           a.snat_index == b.snat_index && a.tags == b.tags;
}

// The memory contains no addresses of its own: a copy elsewhere is read as well.
TEST(FormerTable, HasEveryLiveConnectionOfACopy) {
    Fixture f(500);
    std::vector<Connection> expected;
    for (uint32_t n = 0; n < 60; ++n) {
        const Connection connection = numbered(n, static_cast<Kind>(n % 3));
        const ConnectionIndex index = f.insert(connection);
        if (n % 5 == 4) {
            f.table.erase(index);
        } else {
            expected.push_back(connection);
        }
    }
    const test::AlignedMemory elsewhere(f.memory.span().size());
    std::memcpy(elsewhere.span().data(), f.memory.span().data(), f.memory.span().size());
    std::memset(f.memory.span().data(), 0xee, f.memory.span().size());
    const Result<FormerTable> former = FormerTable::open(elsewhere.span());
    ASSERT_TRUE(former.has_value()) << former.error().what;
    size_t live = 0;
    for (uint32_t unit = 0; unit < former->units(); ++unit) {
        Connection read;
        const Unit seen = former->read(unit, read);
        ASSERT_NE(seen, Unit::Damaged) << unit;
        if (seen == Unit::Live) {
            ++live;
            EXPECT_EQ(std::ranges::count_if(
                          expected, [&](const Connection& connection) { return is_same(connection, read); }),
                      1)
                << read.forward.to_string();
        }
    }
    EXPECT_EQ(live, expected.size());
}

TEST(FormerTable, OpensNothingThatIsNoTable) {
    Fixture f(100);
    EXPECT_EQ(FormerTable::open({}).error().code, Errc::Corrupt);
    EXPECT_EQ(FormerTable::open(f.memory.span().first(32)).error().code, Errc::Corrupt);
    EXPECT_EQ(FormerTable::open(f.memory.span().first(Table::memory_needed(100) - kCacheLine)).error().code,
              Errc::Corrupt);
    for (const size_t damaged :
         {size_t{0}, offsetof(detail::Header, version), offsetof(detail::Header, capacity) + 2}) {
        Fixture copy(100);
        copy.memory.span()[damaged] ^= std::byte{0x10};
        EXPECT_EQ(FormerTable::open(copy.memory.span()).error().code, Errc::Corrupt) << "byte " << damaged;
    }
}

// Counts and free lists are not read, and units beyond the memory do not exist.
TEST(FormerTable, NeedsNoCountOfTheHeader) {
    Fixture f(100);
    f.insert(numbered(1));
    f.insert(numbered(2, Kind::V6));
    auto& header = *reinterpret_cast<detail::Header*>(f.memory.span().data());
    header.free_pairs = header.free_halves = header.size = header.units_used = 0xffff'ffff;
    header.high_water = 0xffff'ffff;
    EXPECT_EQ(f.count(Unit::Live), 2u);
    EXPECT_EQ(FormerTable::open(f.memory.span())->units(), 100u);
}

TEST(FormerTable, RefusesFieldsThatNoConnectionHas) {
    const struct {
        const char* name;
        Kind kind;
        std::function<void(Entry&)> damage;
    } cases[] = {
        {"protocol", Kind::V4, [](Entry& entry) { entry.protocol = Protocol{1}; }},
        {"families", Kind::V4, [](Entry& entry) { entry.families = KeyFamilies{5}; }},
        {"TCP state", Kind::V4, [](Entry& entry) { entry.state = kTcpStates; }},
        {"UDP state", Kind::V4,
         [](Entry& entry) {
             entry.protocol = Protocol::Udp;
             entry.state = 2;
         }},
        {"SCTP state", Kind::V4,
         [](Entry& entry) {
             entry.protocol = Protocol::Sctp;
             entry.state = kSctpStates;
         }},
        {"families of mixed keys", Kind::Mixed, [](Entry& entry) { entry.families = KeyFamilies::V6; }},
        {"families of IPv6 keys", Kind::V6, [](Entry& entry) { entry.families = KeyFamilies::Mixed; }},
        {"second unit empty", Kind::V6,
         [](Entry& entry) {
             std::memset(static_cast<void*>(&entry + 1), 0, sizeof(Entry));
             store(reinterpret_cast<std::byte*>(&entry + 1) + 8, uint64_t{0xffff'0000});  // 0.0.0.0
         }},
    };
    for (const auto& [name, kind, damage] : cases) {
        Fixture f(100);
        damage(f.entry(f.insert(numbered(9, kind))));
        EXPECT_EQ(f.count(Unit::Damaged), 1u) << name;
        EXPECT_EQ(f.count(Unit::Live), 0u) << name;
    }
    Fixture f(100);
    f.insert(numbered(1));
    f.entry(f.insert(numbered(2))).families = KeyFamilies::V6;  // in the second unit of a pair
    EXPECT_EQ(f.count(Unit::Damaged), 1u);
    EXPECT_EQ(f.count(Unit::Live), 1u);
}

// The words of an insertion in the order in which table.cpp writes them, ended after each.
TEST(FormerTable, HasNoConnectionWhoseInsertionEnded) {
    Fixture f(100);
    const ConnectionIndex index = f.insert(numbered(3, Kind::V6));
    const auto filled = load<std::array<uint64_t, 16>>(&f.entry(index));
    f.entry(index).generation += 1;  // before it is live
    for (size_t words = 0; words <= 16; ++words) {
        Fixture copy(100);
        copy.insert(numbered(1, Kind::V6));
        auto* unit = reinterpret_cast<std::byte*>(&copy.entry(copy.insert(numbered(3, Kind::V6))));
        std::memset(unit, 0, 2 * sizeof(Entry));
        reinterpret_cast<Entry*>(unit)->families = KeyFamilies::V6;
        const size_t second = std::min<size_t>(words, 8);
        std::memcpy(unit + sizeof(Entry), filled.data() + 8, second * 8);
        std::memcpy(unit, filled.data(), (words - second) * 8);
        reinterpret_cast<Entry*>(unit)->families = KeyFamilies::V6;
        reinterpret_cast<Entry*>(unit)->generation &= ~1U;
        EXPECT_EQ(copy.count(Unit::Live), 1u) << words << " words";
        EXPECT_EQ(copy.count(Unit::Damaged), 0u) << words << " words";
    }
}

}  // namespace former_table_test
}  // namespace penstock::conn
