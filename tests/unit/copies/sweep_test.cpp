// SPDX-License-Identifier: Apache-2.0
#include "dataplane/copies/sweep.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "tests/support/aligned_memory.hpp"

namespace penstock::copies {
namespace sweep_test {

using conn::Connection;
using conn::DatagramState;
using conn::SctpState;
using conn::Table;
using conn::TcpState;
using Changes = std::vector<std::string>;

constexpr CoarseClock kClock{TscRate{2'000'000'000}};
constexpr int32_t kMinAge = 50;
constexpr CoarseTime kNow{10'000};
const int32_t kRefresh = static_cast<int32_t>(kClock.from_milliseconds(Sweep::kRefreshS * 1000));
const IpAddr kVip = IpAddr::v4(80, 11, 12, 10);

CoarseTime after(int32_t units) {
    return {kNow.value + static_cast<uint32_t>(units)};
}

// Every field that a record carries is derived from n, so that a torn copy is detected. The connection is old
// enough at kNow.
Connection numbered(uint32_t n, Protocol protocol = Protocol::Tcp) {
    Connection connection;
    connection.forward = {IpAddr::v4(Be32::from_host(0x0b00'0000 + n)), kVip,
                          static_cast<L4Port>(n * 7 % 60'000 + 1), 80, protocol};
    connection.reverse = {IpAddr::v4(10, 1, 0, 1), IpAddr::v4(Be32::from_host(0xc000'0000 + n)), 9376,
                          static_cast<L4Port>(n * 3 % 60'000 + 1), protocol};
    connection.opened_at = connection.last_seen = {kNow.value - kMinAge - n % 1000};
    connection.state = protocol == Protocol::Tcp    ? static_cast<uint8_t>(TcpState::Established)
                       : protocol == Protocol::Sctp ? static_cast<uint8_t>(SctpState::Established)
                                                    : static_cast<uint8_t>(DatagramState::TwoWay);
    connection.tags = {n * 3 + 1, n * 5 + 2};
    return connection;
}
Connection numbered_v6(uint32_t n) {
    Connection connection = numbered(n);
    const auto address = [&](uint32_t which) {
        std::array<uint8_t, 16> bytes;
        bytes.fill(0xfd);  // one mistaken for a generation would appear live
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
Connection numbered_mixed(uint32_t n) {
    Connection connection = numbered_v6(n);
    connection.reverse.source = numbered(n).reverse.source;
    connection.reverse.destination = numbered(n).reverse.destination;
    return connection;
}

struct TestTable {
    explicit TestTable(uint32_t capacity) : memory(Table::memory_needed(capacity)), capacity(capacity) {}
    ConnectionIndex insert(const Connection& connection) {
        const conn::Inserted inserted =
            table.insert(connection, table.hash(connection.forward), table.hash(connection.reverse));
        EXPECT_EQ(inserted.status, conn::InsertStatus::Inserted);
        return inserted.index;
    }
    test::AlignedMemory memory;
    uint32_t capacity;
    Table table = *Table::create(memory.span(), capacity, {1, 2});
};

// A connection for which no packet has arrived since another gateway gave it back.
TEST(CopySweep, OwnCopiesOfAStoreAreSentLikeConnections) {
    const auto store = *Store::create(64, {3, 4});
    TestTable table(64);
    const std::array<const Table*, 1> tables{&table.table};
    Sweep sweep = *Sweep::create(tables, kClock, kMinAge, store.get());
    const auto pass = [&] {
        std::vector<std::byte> batch;
        EXPECT_TRUE(sweep.step(
            Sweep::kStepUnitsMax, kNow, [](const IpAddr&, const IpAddr&) { return Sweep::Selection::Old; },
            batch));
        return *decode(batch, kNow, kClock);
    };
    ASSERT_TRUE(store->put(numbered(1)).is_set());
    const Store::Slot own = store->put(numbered(2), Store::Origin::Own);
    std::vector<Record> sent = pass();
    ASSERT_EQ(sent.size(), 1U) << "not the copy of another gateway's connection";
    EXPECT_EQ(sent[0].connection.forward, numbered(2).forward);
    EXPECT_EQ(sent[0].slot, 64 + own.value) << "behind the tables";
    EXPECT_TRUE(pass().empty());
    const auto found = store->find(numbered(2).forward);
    table.insert(numbered(2));
    store->mark_taken(*found);
    sent = pass();
    ASSERT_EQ(sent.size(), 2U) << "from the table, then the end of the copy";
    EXPECT_EQ(sent[0].kind, Record::Kind::Held);
    EXPECT_EQ(sent[0].connection.forward, numbered(2).forward);
    EXPECT_LT(sent[0].slot, 64U);
    EXPECT_EQ(sent[1].kind, Record::Kind::Ended);
    EXPECT_EQ(sweep.held(), 1U);
}

struct Fixture {
    explicit Fixture(std::vector<uint32_t> capacities = {64}) {
        for (const uint32_t capacity : capacities) {
            tables.push_back(std::make_unique<TestTable>(capacity));
            pointers.push_back(&tables.back()->table);
        }
        sweep.emplace(*Sweep::create(pointers, kClock, kMinAge));
    }
    Table& table() { return tables.front()->table; }
    ConnectionIndex insert(const Connection& connection) { return tables.front()->insert(connection); }

    // "held 3", "ended 4": the records of one pass, by slot.
    Changes pass(CoarseTime now = kNow, uint32_t budget = Sweep::kStepUnitsMax) {
        Changes changes;
        for (bool has_ended = false; !has_ended;) {
            std::vector<std::byte> batch;
            has_ended = sweep->step(budget, now, selects, batch);
            const auto records = decode(batch, now, kClock);
            EXPECT_TRUE(records) << records.error().what;
            for (const Record& record : *records) {
                const bool is_held = record.kind == Record::Kind::Held;
                changes.push_back((is_held ? "held " : "ended ") + std::to_string(record.slot));
                if (is_held) {
                    follower[record.slot] = record.connection;
                } else {
                    EXPECT_EQ(follower.erase(record.slot), 1u);
                }
            }
        }
        EXPECT_EQ(sweep->held(), follower.size());
        return changes;
    }

    std::vector<std::unique_ptr<TestTable>> tables;
    std::vector<const Table*> pointers;
    std::optional<Sweep> sweep;
    Sweep::Selects selects = [](const IpAddr&, const IpAddr&) { return Sweep::Selection::Old; };
    std::map<uint32_t, Connection> follower;
};

Sweep::Selection old_if(bool is_selected) {
    return is_selected ? Sweep::Selection::Old : Sweep::Selection::None;
}

TEST(CopySweep, Connection_IsSentOnceItIsOld) {
    Fixture f;
    Connection connection = numbered(1);
    connection.opened_at = connection.last_seen = kNow;
    f.insert(connection);
    EXPECT_EQ(f.pass(), Changes{});
    EXPECT_EQ(f.pass(after(kMinAge - 1)), Changes{});
    EXPECT_EQ(f.pass(after(kMinAge)), Changes{"held 0"});
    EXPECT_EQ(f.pass(after(kMinAge)), Changes{});
    EXPECT_TRUE(f.follower.at(0).forward == connection.forward);
    EXPECT_TRUE(f.follower.at(0).reverse == connection.reverse);
    EXPECT_EQ(f.follower.at(0).tags, connection.tags);
}

TEST(CopySweep, Connection_OpenedAheadOfNow_IsNotOld) {
    Fixture f;
    Connection connection = numbered(1);
    connection.opened_at = connection.last_seen = after(2);
    f.insert(connection);
    EXPECT_EQ(f.pass(), Changes{});
}

TEST(CopySweep, ChangeOfState_IsSent) {
    Fixture f;
    const ConnectionIndex tcp = f.insert(numbered(1));
    const ConnectionIndex udp = f.insert(numbered(2, Protocol::Udp));
    EXPECT_EQ(f.pass(), (Changes{"held 0", "held 1"}));
    f.table().set_state(tcp, TcpState::FinForward, kNow);
    EXPECT_EQ(f.pass(), Changes{"held 0"});
    EXPECT_EQ(f.follower.at(0).tcp_state(), TcpState::FinForward);
    EXPECT_EQ(f.follower.at(0).last_seen, kNow);
    f.table().set_state(udp, DatagramState::OneWay, kNow);
    EXPECT_EQ(f.pass(), Changes{"held 1"});
    EXPECT_EQ(f.pass(), Changes{});
}

TEST(CopySweep, ChangeOfTags_IsSentForSctpAlone) {
    Fixture f;
    const ConnectionIndex tcp = f.insert(numbered(1));
    const ConnectionIndex sctp = f.insert(numbered(2, Protocol::Sctp));
    EXPECT_EQ(f.pass(), (Changes{"held 0", "held 1"}));
    for (const conn::Direction direction : {conn::Direction::Forward, conn::Direction::Reverse}) {
        f.table().set_tag(tcp, direction, 77);
        f.table().set_tag(sctp, direction, 77);
        EXPECT_EQ(f.pass(), Changes{"held 1"});
    }
    EXPECT_EQ(f.follower.at(1).tags, (std::array<uint32_t, 2>{77, 77}));
    f.table().set_state(tcp, TcpState::FinForward, kNow);
    EXPECT_EQ(f.pass(), Changes{"held 0"});
    EXPECT_EQ(f.follower.at(0).tags, (std::array<uint32_t, 2>{77, 77}));
}

TEST(CopySweep, LastSeen_IsSentWhenItHasMovedBy15Seconds) {
    Fixture f;
    Connection connection = numbered(1);
    connection.last_seen = kNow;
    const ConnectionIndex index = f.insert(connection);
    EXPECT_EQ(f.pass(), Changes{"held 0"});
    f.table().touch(index, after(kRefresh - 1));
    EXPECT_EQ(f.pass(after(kRefresh)), Changes{});
    f.table().touch(index, after(kRefresh - 1 + conn::kTouchAfterUnits));
    EXPECT_EQ(f.pass(after(2 * kRefresh)), Changes{"held 0"});
    EXPECT_EQ(f.follower.at(0).last_seen, after(kRefresh - 1 + conn::kTouchAfterUnits));
    EXPECT_EQ(f.pass(after(20 * kRefresh)), Changes{});  // idle
}

TEST(CopySweep, Erased_IsEndedOnce) {
    Fixture f;
    const ConnectionIndex first = f.insert(numbered(1));
    f.insert(numbered(2));
    EXPECT_EQ(f.pass(), (Changes{"held 0", "held 1"}));
    f.table().erase(first);
    EXPECT_EQ(f.pass(), Changes{"ended 0"});
    EXPECT_EQ(f.pass(), Changes{});
}

TEST(CopySweep, Reused_ByAnOldConnection_IsReplaced) {
    Fixture f;
    f.table().erase(f.insert(numbered(1)));
    const ConnectionIndex index = f.insert(numbered(2));
    EXPECT_EQ(f.pass().size(), 1u);
    f.table().erase(index);
    ASSERT_EQ(f.insert(numbered(3)), index);  // alike but for its number
    EXPECT_EQ(f.pass(), Changes{"held " + std::to_string(index.value)});
    EXPECT_TRUE(f.follower.at(index.value).forward == numbered(3).forward);
}

TEST(CopySweep, Reused_ByTheSameTuple_IsSentAgain) {
    Fixture f;
    const ConnectionIndex index = f.insert(numbered(1));
    EXPECT_EQ(f.pass(), Changes{"held 0"});
    f.table().erase(index);
    ASSERT_EQ(f.insert(numbered(1)), index);
    EXPECT_EQ(f.pass(), Changes{"held 0"});
}

TEST(CopySweep, Reused_ByAYoungConnection_IsEnded) {
    Fixture f;
    const ConnectionIndex index = f.insert(numbered(1));
    EXPECT_EQ(f.pass(), Changes{"held 0"});
    f.table().erase(index);
    Connection young = numbered(2);
    young.opened_at = young.last_seen = kNow;
    ASSERT_EQ(f.insert(young), index);
    EXPECT_EQ(f.pass(), Changes{"ended 0"});
    EXPECT_EQ(f.pass(after(kMinAge)), Changes{"held 0"});
}

TEST(CopySweep, Vip_NoLongerSelected_EndsItsConnections) {
    Fixture f;
    f.insert(numbered(1));
    f.insert(numbered_v6(2));
    EXPECT_EQ(f.pass(), (Changes{"held 0", "held 2"}));
    f.selects = [](const IpAddr& vip, const IpAddr&) { return old_if(vip != kVip); };
    EXPECT_EQ(f.pass(), Changes{"ended 0"});
    f.selects = [](const IpAddr& vip, const IpAddr&) { return old_if(vip == kVip); };
    EXPECT_EQ(f.pass(), (Changes{"held 0", "ended 2"}));
    EXPECT_EQ(f.sweep->held(), 1u);
}

TEST(CopySweep, Vip_OfWhichAllAreSelected_SendsYoungOnesToo) {
    Fixture f;
    Connection young = numbered(1);
    young.opened_at = young.last_seen = kNow;
    f.insert(young);
    EXPECT_EQ(f.pass(), Changes{});
    f.selects = [](const IpAddr&, const IpAddr&) { return Sweep::Selection::All; };
    EXPECT_EQ(f.pass(), Changes{"held 0"});
    f.selects = [](const IpAddr&, const IpAddr&) { return Sweep::Selection::Old; };
    EXPECT_EQ(f.pass(), Changes{}) << "what was sent is not ended because of its age";
}

TEST(CopySweep, Vip_NotSelected_IsNotSent) {
    Fixture f;
    f.selects = [](const IpAddr&, const IpAddr&) { return old_if(false); };
    f.insert(numbered(1));
    EXPECT_EQ(f.pass(), Changes{});
    EXPECT_EQ(f.sweep->held(), 0u);
}

TEST(CopySweep, Pair_OfIpv6_GivesWayToTwoConnections) {
    for (const Connection& two_units : {numbered_v6(1), numbered_mixed(1)}) {
        Fixture f({2});
        const ConnectionIndex pair = f.insert(two_units);
        EXPECT_EQ(f.pass(), Changes{"held 0"});
        EXPECT_TRUE(f.follower.at(0).forward == two_units.forward);
        EXPECT_TRUE(f.follower.at(0).reverse == two_units.reverse);
        f.table().erase(pair);
        const ConnectionIndex first = f.insert(numbered(2)), second = f.insert(numbered(3));
        EXPECT_EQ(f.pass(), (Changes{"held 0", "held 1"}));
        f.table().erase(first);
        f.table().erase(second);
        f.insert(two_units);
        EXPECT_EQ(f.pass(), (Changes{"held 0", "ended 1"}));
        EXPECT_EQ(f.pass(), Changes{});
    }
}

TEST(CopySweep, Step_ExaminesAsManyUnitsAsItMay) {
    Fixture f;
    for (uint32_t n = 0; n < 10; ++n) {
        f.insert(numbered(n));
    }
    std::vector<std::byte> batch;
    EXPECT_FALSE(f.sweep->step(0, kNow, f.selects, batch));
    EXPECT_EQ(batch.size(), 0u);
    EXPECT_FALSE(f.sweep->step(1, kNow, f.selects, batch));
    EXPECT_EQ(batch.size(), kHeldV4Bytes);
    EXPECT_FALSE(f.sweep->step(8, kNow, f.selects, batch));
    EXPECT_EQ(batch.size(), 9 * kHeldV4Bytes);
    EXPECT_TRUE(f.sweep->step(1, kNow, f.selects, batch));
    EXPECT_EQ(batch.size(), 10 * kHeldV4Bytes);
    EXPECT_TRUE(f.sweep->step(10, kNow, f.selects, batch));
    EXPECT_EQ(batch.size(), 10 * kHeldV4Bytes);
}

TEST(CopySweep, Step_OfAnyLength_MakesABatchThatIsAccepted) {
    Fixture f({3 * Sweep::kStepUnitsMax});
    for (uint32_t n = 0; n < Sweep::kStepUnitsMax; ++n) {
        f.insert(numbered_v6(n));
    }
    std::vector<std::byte> batch;
    EXPECT_FALSE(f.sweep->step(~0U, kNow, f.selects, batch));
    EXPECT_EQ(batch.size(), Sweep::kStepUnitsMax / 2 * kHeldV6Bytes);
    EXPECT_TRUE(decode(batch, kNow, kClock));
    EXPECT_EQ(f.sweep->held(), Sweep::kStepUnitsMax / 2);
}

TEST(CopySweep, SeveralTables_HaveSlotsOfTheirOwn) {
    Fixture f({3, 7, 2});  // of whole pairs: 4, 8 and 2 units
    f.tables[0]->insert(numbered(1));
    f.tables[1]->insert(numbered_v6(2));
    f.tables[1]->insert(numbered(3));
    const ConnectionIndex last = f.tables[2]->insert(numbered(4));
    for (const uint32_t budget : {1u, 3u, Sweep::kStepUnitsMax}) {
        Fixture again({3, 7, 2});
        again.pointers = f.pointers;
        again.sweep.emplace(*Sweep::create(f.pointers, kClock, kMinAge));
        EXPECT_EQ(again.pass(kNow, budget), (Changes{"held 0", "held 4", "held 6", "held 12"}));
        EXPECT_EQ(again.pass(kNow, budget), Changes{});
    }
    EXPECT_EQ(f.pass(), (Changes{"held 0", "held 4", "held 6", "held 12"}));
    f.tables[2]->table.erase(last);
    EXPECT_EQ(f.pass(), Changes{"ended 12"});
}

TEST(CopySweep, NoTable_OrNoConnection_IsAPass) {
    Fixture none(std::vector<uint32_t>{});
    EXPECT_EQ(none.pass(), Changes{});
    Fixture f({8, 8});
    std::vector<std::byte> batch;
    EXPECT_TRUE(f.sweep->step(0, kNow, f.selects, batch));
}

TEST(CopySweep, MoreUnitsThanSlots_AreRefused) {
    TestTable one(1U << 16);
    std::vector<const Table*> tables(1U << 16, &one.table);
    EXPECT_TRUE(Sweep::create(tables, kClock, kMinAge));
    tables.push_back(&one.table);
    const auto sweep = Sweep::create(tables, kClock, kMinAge);
    ASSERT_FALSE(sweep);
    EXPECT_EQ(sweep.error().code, Errc::InvalidArgument);
    EXPECT_EQ(sweep.error().what,
              "copies of connections: the tables of 65537 workers have 4295032832 entries, of which "
              "4294967296 can be numbered");
}

// Two threads, as in production: the worker opens and ends connections of one and of two units as fast as it
// can, while this thread sweeps. Every record is one whole connection of the worker. Once the worker has
// ended, one pass makes the follower complete. The thread sanitizer verifies the rest.
TEST(CopySweep, RunningWorker_NeverGivesATornConnection) {
    constexpr uint32_t kUnits = 16, kNumbers = 96;
    Fixture f({kUnits});
    const auto connection_of = [](uint32_t n) {
        return n % 12 == 0 ? numbered_mixed(n) : n % 3 == 0 ? numbered_v6(n) : numbered(n, Protocol::Sctp);
    };
    struct Prepared {
        Connection connection;
        uint64_t forward_hash, reverse_hash;
    };
    std::vector<Prepared> prepared;
    std::map<std::string, Connection> by_key;
    for (uint32_t n = 0; n < kNumbers; ++n) {
        const Connection connection = connection_of(n);
        prepared.push_back(
            {connection, f.table().hash(connection.forward), f.table().hash(connection.reverse)});
        by_key[connection.forward.to_string()] = connection;
    }
    std::atomic<uint64_t> records_seen{0};
    std::atomic<bool> is_done{false};
    std::thread worker([&] {
        // Until both threads have done enough, because on a busy machine either may pause for long. The last
        // bound only ends the test if the sweep has failed.
        const auto has_enough = [&](uint64_t rounds) {
            return rounds > 100'000 && records_seen.load(std::memory_order_relaxed) > 5'000;
        };
        std::vector<std::pair<ConnectionIndex, uint32_t>> live;
        for (uint64_t round = 0; !has_enough(round) && round < 20'000'000; ++round) {
            const auto n = static_cast<uint32_t>(round % kNumbers);
            const Prepared& next = prepared[n];
            const conn::Inserted inserted =
                f.table().insert(next.connection, next.forward_hash, next.reverse_hash);
            if (inserted.status == conn::InsertStatus::Inserted) {
                live.emplace_back(inserted.index, n);
            }
            if (inserted.status != conn::InsertStatus::Inserted || round % 7 == 0) {
                const size_t victim = round % live.size();
                const Prepared& ended = prepared[live[victim].second];
                f.table().erase(live[victim].first, ended.forward_hash, ended.reverse_hash);
                live[victim] = live.back();
                live.pop_back();
            }
        }
        is_done.store(true);
    });
    std::map<uint32_t, Connection> follower;
    const auto sweep_once = [&] {
        std::vector<std::byte> batch;
        const bool has_ended = f.sweep->step(5, kNow, f.selects, batch);
        const auto records = decode(batch, kNow, kClock);
        if (!records) {
            ADD_FAILURE() << records.error().what;
            return has_ended;
        }
        for (const Record& record : *records) {
            if (record.kind == Record::Kind::Ended) {
                EXPECT_EQ(follower.erase(record.slot), 1u);
                continue;
            }
            follower[record.slot] = record.connection;
            const auto known = by_key.find(record.connection.forward.to_string());
            if (known == by_key.end()) {
                ADD_FAILURE() << "no such connection: " << record.connection.forward.to_string();
                continue;
            }
            EXPECT_TRUE(record.connection.reverse == known->second.reverse);
            EXPECT_EQ(record.connection.tags, known->second.tags);
            EXPECT_EQ(record.connection.opened_at, known->second.opened_at);
            EXPECT_EQ(record.connection.state, known->second.state);
        }
        records_seen.fetch_add(records->size(), std::memory_order_relaxed);
        return has_ended;
    };
    while (!is_done.load() && !testing::Test::HasFailure()) {
        sweep_once();
    }
    worker.join();
    for (int passes = 0; passes < 2;) {
        passes += sweep_once() ? 1 : 0;
    }
    size_t live = 0;
    for (uint32_t unit = 0; unit < f.table().high_water(); ++unit) {
        Connection connection;
        if (f.table().read(unit, connection)) {
            ++live;
            ASSERT_TRUE(follower.contains(unit)) << unit;
            EXPECT_TRUE(follower.at(unit).forward == connection.forward);
        }
    }
    EXPECT_EQ(follower.size(), live);
    EXPECT_EQ(f.sweep->held(), live);
}

}  // namespace sweep_test
}  // namespace penstock::copies
