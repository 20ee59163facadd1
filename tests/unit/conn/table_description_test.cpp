// SPDX-License-Identifier: Apache-2.0
#include "dataplane/conn/table_description.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/conn/former_table.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/conn/table_layout.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/other_layout.hpp"

namespace penstock::conn {
namespace table_description_test {

using Unit = FormerTable::Unit;

constexpr uint32_t kCapacity = 64;

// One of each kind, with a different value in each field.
std::vector<Connection> connections() {
    std::vector<Connection> all;
    for (uint8_t n = 0; n < 24; ++n) {
        Connection connection;
        const IpAddr four = IpAddr::v4(10, 1, 2, n),
                     six = *IpAddr::parse("2001:db8::" + std::to_string(n + 1));
        const bool is_forward_v4 = n % 3 != 1, is_reverse_v4 = n % 3 == 0;
        const Protocol protocol = n % 4 == 0 ? Protocol::Udp : n % 4 == 1 ? Protocol::Sctp : Protocol::Tcp;
        connection.forward = {is_forward_v4 ? four : six,
                              is_forward_v4 ? IpAddr::v4(80, 11, 12, n) : *IpAddr::parse("2001:db8:80::1"),
                              static_cast<L4Port>(0xa000 + n),
                              static_cast<L4Port>(0x5000 + n),
                              protocol,
                              {}};
        connection.reverse = {is_reverse_v4 ? IpAddr::v4(10, 9, 9, n) : *IpAddr::parse("2001:db8:9::1"),
                              is_reverse_v4 ? IpAddr::v4(10, 8, 8, n) : *IpAddr::parse("2001:db8:8::1"),
                              static_cast<L4Port>(0xb000 + n),
                              static_cast<L4Port>(0xc000 + n),
                              protocol,
                              {}};
        connection.last_seen = {0x1111'0000U + n};
        connection.opened_at = {0x2222'0000U + n};
        connection.service = {0x3333'0000U + n};
        connection.backend = {0x4444'0000U + n};
        connection.snat_pool = 0x5555'0000U + n;
        connection.state = static_cast<uint8_t>(n % 2);
        connection.source_kept = n % 5 == 0;
        connection.is_pinned = n % 7 == 0;
        connection.snat_index = static_cast<uint8_t>(n * 2);
        connection.tags = {0x6666'0000U + n, 0x7777'0000U + n};
        all.push_back(connection);
    }
    return all;
}

struct Filled {
    Filled() {
        auto table = Table::create(memory.span(), kCapacity, HashKey{1, 2});
        for (const Connection& connection : connections()) {
            EXPECT_EQ(
                table->insert(connection, table->hash(connection.forward), table->hash(connection.reverse))
                    .status,
                InsertStatus::Inserted);
        }
    }
    test::AlignedMemory memory{Table::memory_needed(kCapacity)};
};

std::vector<Connection> read_all(const Result<FormerTable>& former) {
    std::vector<Connection> all;
    EXPECT_TRUE(former.has_value()) << former.error().what;
    for (uint32_t unit = 0; former && unit < former->units(); ++unit) {
        Connection connection;
        const Unit seen = former->read(unit, connection);
        EXPECT_TRUE(seen == Unit::Live || seen == Unit::Empty) << unit;
        if (seen == Unit::Live) {
            all.push_back(connection);
        }
    }
    return all;
}

// All but what a reader computes. `layout`: optional fields that it lacks are zero.
void expect_same(const Connection& read, const Connection& expected, const TableDescription& layout) {
    const auto has = [&](EntryField field) { return layout.place(field).bits > 0; };
    EXPECT_EQ(read.forward, expected.forward);
    EXPECT_EQ(read.reverse, expected.reverse);
    EXPECT_EQ(read.last_seen, expected.last_seen);
    EXPECT_EQ(read.opened_at, expected.opened_at);
    EXPECT_EQ(read.service, expected.service);
    EXPECT_EQ(read.backend.value, has(EntryField::Backend) ? expected.backend.value : 0);
    EXPECT_EQ(read.snat_pool, has(EntryField::SnatPool) ? expected.snat_pool : 0);
    EXPECT_EQ(read.state, expected.state);
    EXPECT_EQ(read.source_kept, expected.source_kept);
    EXPECT_EQ(read.is_pinned, has(EntryField::IsPinned) && expected.is_pinned);
    EXPECT_EQ(read.snat_index, has(EntryField::SnatIndex) ? expected.snat_index : 0);
    EXPECT_EQ(read.tags, expected.tags);
}

// Bit-fields have no offset in C++; this is the proof of theirs.
TEST(TableDescription, ReadsATableOfThisBuild) {
    const Filled filled;
    const TableDescription own = describe_tables(kCapacity);
    const std::vector<Connection> direct = read_all(FormerTable::open(filled.memory.span()));
    const std::vector<Connection> described = read_all(FormerTable::open(filled.memory.span(), own));
    ASSERT_EQ(direct.size(), connections().size());
    ASSERT_EQ(described.size(), direct.size());
    for (size_t i = 0; i < direct.size(); ++i) {
        expect_same(described[i], direct[i], own);
    }
}

TEST(TableDescription, ReadsATableOfAnyLayout) {
    const Filled filled;
    const TableDescription own = describe_tables(kCapacity);
    const std::vector<Connection> expected = read_all(FormerTable::open(filled.memory.span()));
    test::Prng random;
    for (int round = 0; round < 200; ++round) {
        const TableDescription layout = test::random_layout(random, own);
        const test::AlignedMemory memory = test::in_layout(filled.memory.span(), own, layout, random);
        const std::vector<Connection> read = read_all(FormerTable::open(memory.span(), layout));
        ASSERT_EQ(read.size(), expected.size()) << "round " << round;
        for (size_t i = 0; i < read.size(); ++i) {
            expect_same(read[i], expected[i], layout);
        }
        if (HasFailure()) {
            return;
        }
    }
}

// A change of the layout is a change of the version: files of released builds have this one.
TEST(TableDescription, OfVersion6) {
    const TableDescription own = describe_tables(1'000);
    EXPECT_EQ(own.meaning, 1u);
    EXPECT_EQ(own.version, 6u);
    EXPECT_EQ(own.units, 1'000u);
    EXPECT_EQ(own.units_at, 64u + 64 * 421);
    EXPECT_EQ(own.unit_bytes, 64u);
    EXPECT_EQ(own.high_water_at, 32u);
    EXPECT_EQ(own.addresses_at, (std::array<uint16_t, 4>{0, 16, 32, 48}));
    const std::pair<EntryField, FieldPlace> places[] = {
        {EntryField::Generation, {0, 32}},
        {EntryField::Protocol, {32, 8}},
        {EntryField::Families, {40, 8}},
        {EntryField::State, {48, 8}},
        {EntryField::SourceKept, {56, 1}},
        {EntryField::IsPinned, {57, 1}},
        {EntryField::SnatIndex, {58, 6}},
        {EntryField::ForwardV4Addresses, {64, 64}},
        {EntryField::ReverseV4Addresses, {128, 64}},
        {EntryField::ForwardPorts, {192, 32}},
        {EntryField::ReversePorts, {224, 32}},
        {EntryField::LastSeen, {256, 32}},
        {EntryField::OpenedAt, {288, 32}},
        {EntryField::Service, {320, 32}},
        {EntryField::Backend, {352, 32}},
        {EntryField::SnatPool, {384, 32}},
        {EntryField::ForwardTag, {448, 32}},
        {EntryField::ReverseTag, {480, 32}},
    };
    EXPECT_EQ(std::size(places), kEntryFields);
    for (const auto& [field, place] : places) {
        EXPECT_EQ(own.place(field), place) << "field " << static_cast<int>(field);
    }
}

TEST(TableDescription, WithAnObstacleIsRefusedByName) {
    const uint64_t bytes = Table::memory_needed(kCapacity);
    const auto field = [](TableDescription& layout, EntryField which) -> FieldPlace& {
        return layout.fields[static_cast<size_t>(which)];
    };
    const struct {
        std::function<void(TableDescription&)> change;
        const char* why;
    } cases[] = {
        {[](auto& layout) { layout.meaning = 9; }, "meaning 9 of its fields is not known; this build has 1"},
        {[](auto& layout) { layout.unit_bytes = 24; }, "a unit of 24 bytes is out of range"},
        {[](auto& layout) { layout.unit_bytes = 1'025; }, "a unit of 1025 bytes is out of range"},
        {[](auto& layout) { layout.units = 0; }, "0 units are out of range"},
        {[](auto& layout) { layout.units = 63; }, "63 units are out of range"},
        {[](auto& layout) { layout.units = 0xffff'fffe; }, "4294967294 units are out of range"},
        {[](auto& layout) { layout.units += 2; }, "66 units from byte"},
        {[](auto& layout) { layout.units_at += 1; }, "do not lie in a table of"},
        {[](auto& layout) { layout.units_at = ~uint64_t{0} - 100; }, "do not lie in a table of"},
        {[](auto& layout) { layout.units_at = 8; }, "64 units from byte 8 on"},
        {[](auto& layout) { layout.high_water_at = 8; }, "the number of used units is not in the header"},
        {[](auto& layout) {
             layout.units_at = 64;
             layout.high_water_at = 61;
         },
         "the number of used units is not in the header"},
        {[](auto& layout) { layout.addresses_at[3] = 49; }, "an address is not in a unit"},
        {[&](auto& layout) { field(layout, EntryField::State) = {}; }, "field State is missing"},
        {[&](auto& layout) { field(layout, EntryField::Service).bits = 33; },
         "field Service has 33 bits; this build has 32"},
        {[&](auto& layout) { field(layout, EntryField::ReverseTag).at = 481; },
         "field ReverseTag does not lie in eight bytes of a unit"},
        {[&](auto& layout) { field(layout, EntryField::ReverseTag).at = 0xffff; },
         "field ReverseTag does not lie in eight bytes of a unit"},
        {[&](auto& layout) { field(layout, EntryField::ForwardV4Addresses).at = 65; },
         "field ForwardV4Addresses does not lie in eight bytes of a unit"},
    };
    const Filled filled;
    for (const auto& [change, why] : cases) {
        TableDescription layout = describe_tables(kCapacity);
        ASSERT_EQ(obstacle_of(layout, bytes), "");
        change(layout);
        EXPECT_NE(obstacle_of(layout, bytes).find(why), std::string::npos) << obstacle_of(layout, bytes);
        EXPECT_EQ(FormerTable::open(filled.memory.span(), layout).error().code, Errc::InvalidArgument) << why;
    }
    TableDescription smaller = describe_tables(kCapacity);
    for (const EntryField optional :
         {EntryField::IsPinned, EntryField::SnatIndex, EntryField::Backend, EntryField::SnatPool}) {
        field(smaller, optional) = {};
    }
    EXPECT_EQ(obstacle_of(smaller, bytes), "");
}

TEST(TableDescription, OfAnotherTableOpensNothing) {
    const Filled filled;
    TableDescription layout = describe_tables(kCapacity);
    ++layout.version;
    EXPECT_EQ(FormerTable::open(filled.memory.span(), layout).error().code, Errc::Corrupt);
    --layout.version;
    filled.memory.span()[0] ^= std::byte{1};
    EXPECT_EQ(FormerTable::open(filled.memory.span(), layout).error().code, Errc::Corrupt);
}

TEST(TableDescription, AValueThatThisBuildDoesNotKnowIsUnknownAndAWrongOneDamaged) {
    const TableDescription own = describe_tables(kCapacity);
    const struct {
        EntryField field;
        uint8_t value;
        Unit expected;
    } cases[] = {
        {EntryField::Protocol, 33, Unit::Unknown},
        {EntryField::State, 200, Unit::Unknown},
        {EntryField::Families, 5, Unit::Unknown},
        {EntryField::Families, static_cast<uint8_t>(KeyFamilies::Mixed), Unit::Damaged},
    };
    for (const auto& [field, value, expected] : cases) {
        const Filled filled;
        Connection connection;
        filled.memory.span()[own.units_at + own.place(field).at / 8] = std::byte{value};
        EXPECT_EQ(FormerTable::open(filled.memory.span(), own)->read(0, connection), expected)
            << static_cast<int>(field);
    }
}

}  // namespace table_description_test
}  // namespace penstock::conn
