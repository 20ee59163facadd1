// SPDX-License-Identifier: Apache-2.0
// The sweep of copies against a follower that applies its records: connections of all families and protocols
// open, change and end at random, clients reopen their tuples in other units, VIPs change their roles, and
// steps of random length run between. One pass after the last change, the follower has exactly the
// connections of the tables that are old enough and selected, with their state and tags.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "dataplane/copies/record.hpp"
#include "dataplane/copies/sweep.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/prng.hpp"

namespace penstock::copies {
namespace sweep_property_test {

using conn::Connection;
using packet::FlowKey;

constexpr CoarseClock kClock{TscRate{2'700'000'000}};
constexpr int32_t kMinAge = 50;
constexpr uint8_t kVips = 4;

struct ByBytes {
    bool operator()(const FlowKey& a, const FlowKey& b) const { return std::memcmp(&a, &b, sizeof a) < 0; }
};

// As the heir keeps copies: a Held record ends what had its slot, or one of its keys.
struct Follower {
    void apply(const Record& record) {
        forget(record.slot);
        if (record.kind == Record::Kind::Ended) {
            return;
        }
        for (const FlowKey& key : {record.connection.forward, record.connection.reverse}) {
            if (const auto holder = slots_of_keys.find(key); holder != slots_of_keys.end()) {
                forget(holder->second);
            }
            slots_of_keys[key] = record.slot;
        }
        slots[record.slot] = record.connection;
    }
    void forget(uint32_t slot) {
        if (const auto held = slots.find(slot); held != slots.end()) {
            slots_of_keys.erase(held->second.forward);
            slots_of_keys.erase(held->second.reverse);
            slots.erase(held);
        }
    }
    std::map<uint32_t, Connection> slots;
    std::map<FlowKey, uint32_t, ByBytes> slots_of_keys;
};

void make_v6(FlowKey& key) {
    for (IpAddr* address : {&key.source, &key.destination}) {
        std::array<uint8_t, 16> bytes = address->bytes();
        bytes[0] = 0x20;
        *address = IpAddr::v6(bytes);
    }
}
uint8_t vip_number(const IpAddr& vip) {
    return vip.bytes()[15];
}

class Gateway {
 public:
    Gateway(test::Prng& prng, std::vector<uint32_t> capacities) : prng_(prng) {
        for (const uint32_t capacity : capacities) {
            memories_.push_back(std::make_unique<test::AlignedMemory>(conn::Table::memory_needed(capacity)));
            tables_.push_back(std::make_unique<conn::Table>(
                *conn::Table::create(memories_.back()->span(), capacity, {prng.next(), prng.next()})));
            pointers_.push_back(tables_.back().get());
            first_slots_.push_back(slots_);
            slots_ += (capacity + 1) / 2 * 2;
        }
        sweep_.emplace(*Sweep::create(pointers_, kClock, kMinAge));
    }

    void change() {
        conn::Table& table = *tables_[prng_.below(tables_.size())];
        const uint64_t kind = prng_.below(100);
        if (kind < 30) {
            const Connection opened = draw(table);
            static_cast<void>(table.insert(opened, table.hash(opened.forward), table.hash(opened.reverse)));
        } else if (kind < 35) {
            selected_[prng_.below(kVips)] ^= true;
        } else if (kind < 60) {
            now_.value += static_cast<uint32_t>(prng_.below(40));
        } else if (const std::optional<ConnectionIndex> index = any_of(table)) {
            change_one(table, *index, kind);
        }
    }

    // True: a pass has ended.
    bool step(uint32_t units) {
        std::vector<std::byte> batch;
        const bool has_ended = sweep_->step(
            units, now_,
            [&](const IpAddr& vip, const IpAddr&) {
                return selected_[vip_number(vip)] ? Sweep::Selection::Old : Sweep::Selection::None;
            },
            batch);
        EXPECT_LE(batch.size(), (units + 1) * (kHeldV4Bytes + kEndedBytes) + kHeldV6Bytes);
        const auto records = decode(batch, now_, kClock);
        EXPECT_TRUE(records) << records.error().what;
        for (const Record& record : *records) {
            if (record.kind == Record::Kind::Held) {
                told_.insert(record.slot);
            } else {
                EXPECT_EQ(told_.erase(record.slot), 1u) << "ended twice";
            }
            follower_.apply(record);
        }
        EXPECT_EQ(sweep_->held(), told_.size());
        return has_ended;
    }

    void expect_complete() {
        while (!step(draw_budget())) {  // a pass that began before the last change
        }
        while (!step(draw_budget())) {
        }
        size_t expected = 0;
        for (size_t table = 0; table < tables_.size(); ++table) {
            for (uint32_t unit = 0; unit < tables_[table]->high_water(); ++unit) {
                Connection connection;
                if (!tables_[table]->read(unit, connection) ||
                    units_between(connection.opened_at, now_) < kMinAge ||
                    !selected_[vip_number(connection.forward.destination)]) {
                    continue;
                }
                ++expected;
                const auto held = follower_.slots.find(first_slots_[table] + unit);
                ASSERT_NE(held, follower_.slots.end()) << connection.forward.to_string();
                const Connection& copy = held->second;
                ASSERT_TRUE(copy.forward == connection.forward && copy.reverse == connection.reverse)
                    << copy.forward.to_string() << " for " << connection.forward.to_string();
                EXPECT_EQ(copy.state, connection.state);
                EXPECT_EQ(copy.source_kept, connection.source_kept);
                EXPECT_EQ(copy.opened_at, connection.opened_at);
                const int32_t behind = units_between(copy.last_seen, connection.last_seen);
                EXPECT_GE(behind, 0);
                EXPECT_LE(kClock.to_milliseconds(behind), Sweep::kRefreshS * 1000);
                if (connection.is_sctp()) {
                    EXPECT_EQ(copy.tags, connection.tags);
                }
            }
        }
        EXPECT_EQ(follower_.slots.size(), expected);
        EXPECT_EQ(sweep_->held(), expected);
        seen_ += expected;
    }
    uint32_t draw_budget() { return static_cast<uint32_t>(prng_.between(1, slots_)); }
    [[nodiscard]] uint64_t seen() const { return seen_; }

 private:
    // Few tuples, so that one is often opened again, in another unit. Workers have no tuple in common.
    Connection draw(const conn::Table& table) {
        uint8_t worker = 0;
        while (tables_[worker].get() != &table) {
            ++worker;
        }
        const auto client = static_cast<uint8_t>(prng_.below(24));
        const std::array<Protocol, 3> protocols{Protocol::Tcp, Protocol::Udp, Protocol::Sctp};
        const Protocol protocol = protocols[prng_.below(3)];
        Connection connection;
        connection.forward = {IpAddr::v4(11, worker, 0, client),
                              IpAddr::v4(80, 11, 12, static_cast<uint8_t>(prng_.below(kVips))), 40'000, 80,
                              protocol};
        connection.reverse = {IpAddr::v4(10, 2, 0, 1), IpAddr::v4(198, 51, 100, worker), 8080,
                              static_cast<L4Port>(1024 + client), protocol};
        if (client % 3 != 0) {
            make_v6(connection.forward);
        }
        if (client % 3 == 1) {
            make_v6(connection.reverse);
        }
        if (client % 3 != 2 && prng_.one_in(4)) {
            connection.source_kept = true;
            connection.reverse.destination = connection.forward.source;
        }
        connection.opened_at = connection.last_seen = now_;
        connection.state = draw_state(protocol);
        connection.tags = {static_cast<uint32_t>(prng_.next()), static_cast<uint32_t>(prng_.next())};
        return connection;
    }
    uint8_t draw_state(Protocol protocol) {
        const uint64_t states = protocol == Protocol::Tcp    ? conn::kTcpStates
                                : protocol == Protocol::Sctp ? conn::kSctpStates
                                                             : 2;
        return static_cast<uint8_t>(prng_.below(states));
    }
    std::optional<ConnectionIndex> any_of(const conn::Table& table) {
        const uint32_t end = table.high_water();
        const uint64_t from = prng_.below(end + 1U);
        for (uint32_t i = 0; i < end; ++i) {
            const auto unit = static_cast<uint32_t>((from + i) % end);
            if (table.is_live(unit)) {
                return ConnectionIndex{unit};
            }
        }
        return std::nullopt;
    }
    void change_one(conn::Table& table, ConnectionIndex index, uint64_t kind) {
        const Protocol protocol = table.at(index).protocol;
        if (kind < 75) {
            table.erase(index);
        } else if (kind < 85) {
            table.touch(index, now_);
        } else if (kind < 92 && protocol == Protocol::Sctp) {
            table.set_tag(index, prng_.one_in(2) ? conn::Direction::Forward : conn::Direction::Reverse,
                          static_cast<uint32_t>(prng_.next()));
        } else if (const uint8_t state = draw_state(protocol); protocol == Protocol::Tcp) {
            table.set_state(index, static_cast<conn::TcpState>(state), now_);
        } else if (protocol == Protocol::Sctp) {
            table.set_state(index, static_cast<conn::SctpState>(state), now_);
        } else {
            table.set_state(index, static_cast<conn::DatagramState>(state), now_);
        }
    }

    test::Prng& prng_;
    std::vector<std::unique_ptr<test::AlignedMemory>> memories_;
    std::vector<std::unique_ptr<conn::Table>> tables_;
    std::vector<const conn::Table*> pointers_;
    std::vector<uint32_t> first_slots_;
    uint32_t slots_ = 0;
    std::optional<Sweep> sweep_;
    CoarseTime now_{~0U - 1'000};  // wraps around soon
    std::array<bool, kVips> selected_{true, true, false, true};
    Follower follower_;
    std::set<uint32_t> told_;  // slots that no Ended record followed
    uint64_t seen_ = 0;
};

void run(std::vector<uint32_t> capacities) {
    test::Prng prng;
    Gateway gateway(prng, std::move(capacities));
    for (int round = 0; round < 4'000; ++round) {
        for (uint64_t changes = prng.between(1, 80); changes > 0; --changes) {
            gateway.change();
            if (prng.one_in(3)) {
                gateway.step(static_cast<uint32_t>(prng.below(20)));
            }
        }
        ASSERT_NO_FATAL_FAILURE(gateway.expect_complete());
        ASSERT_FALSE(testing::Test::HasFailure());
    }
    EXPECT_GT(gateway.seen(), 400u);  // the comparison had something to compare
}

TEST(CopySweepProperty, OneTable_OfFewUnits) {
    run({4});
}
TEST(CopySweepProperty, OneTable) {
    run({60});
}
TEST(CopySweepProperty, SeveralTables) {
    run({17, 2, 40});
}

}  // namespace sweep_property_test
}  // namespace penstock::copies
