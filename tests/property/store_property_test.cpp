// SPDX-License-Identifier: Apache-2.0
// The store of copies, compared with a std::map: random puts, refreshes, removals and take-overs, to capacity
// and beyond.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "dataplane/copies/store.hpp"
#include "tests/support/prng.hpp"

namespace penstock::copies {
namespace store_property_test {

using conn::Connection;
using conn::Direction;
using packet::FlowKey;

struct ByBytes {
    bool operator()(const FlowKey& a, const FlowKey& b) const { return std::memcmp(&a, &b, sizeof a) < 0; }
};

void make_v6(FlowKey& key) {
    for (IpAddr* address : {&key.source, &key.destination}) {
        std::array<uint8_t, 16> bytes = address->bytes();
        bytes[0] = 0x20;
        *address = IpAddr::v6(bytes);
    }
}

// Few keys, so that copies with a key of another one are frequent.
Connection random_connection(test::Prng& random, uint32_t clients) {
    const auto client = static_cast<uint32_t>(random.below(clients));
    static constexpr std::pair<Protocol, uint8_t> kProtocols[] = {
        {Protocol::Tcp, conn::kTcpStates}, {Protocol::Udp, 2}, {Protocol::Sctp, conn::kSctpStates}};
    const auto& [protocol, states] = kProtocols[client % 3];
    Connection connection;
    connection.forward = {.source = IpAddr::v4(Be32::from_host(client)),
                          .destination = IpAddr::v4(80, 11, 12, 10),
                          .source_port = static_cast<L4Port>(1 + random.below(2)),
                          .destination_port = 80,
                          .protocol = protocol};
    connection.reverse = {.source = IpAddr::v4(172, 16, 0, 1),
                          .destination = IpAddr::v4(192, 0, 2, 1),
                          .source_port = 9'376,
                          .destination_port = static_cast<L4Port>(1'024 + random.below(clients)),
                          .protocol = protocol};
    if (client % 4 <= 1) {
        make_v6(connection.forward);
    }
    if (client % 4 == 1 || client % 4 == 2) {
        make_v6(connection.reverse);
    }
    connection.opened_at = {static_cast<uint32_t>(random.next())};
    connection.last_seen = {connection.opened_at.value + static_cast<uint32_t>(random.below(1'000))};
    connection.state = static_cast<uint8_t>(random.below(states));
    connection.source_kept = random.one_in(2);
    connection.tags = {static_cast<uint32_t>(random.next()), static_cast<uint32_t>(random.next())};
    return connection;
}

struct Copy {
    Connection connection;
    bool is_taken = false;
};

void expect_same(const Connection& one, const Connection& other) {
    EXPECT_EQ(one.forward, other.forward);
    EXPECT_EQ(one.reverse, other.reverse);
    EXPECT_EQ(one.state, other.state);
    EXPECT_EQ(one.source_kept, other.source_kept);
    EXPECT_EQ(one.opened_at, other.opened_at);
    EXPECT_EQ(one.last_seen, other.last_seen);
    EXPECT_EQ(one.tags, other.tags);
}

class Model {
 public:
    explicit Model(uint32_t capacity)
        : capacity_(capacity), store_(*Store::create(capacity, {random_.next(), random_.next()})) {}

    void step() {
        const uint64_t choice = random_.below(100);
        if (copies_.empty() || choice < (grows_ ? 60U : 30U)) {
            put();
        } else if (choice < 75) {
            remove();
        } else if (choice < 90) {
            refresh();
        } else {
            take();
        }
        if (random_.one_in(1'000)) {
            grows_ = !grows_;
        }
    }

    void expect_all() {
        ASSERT_EQ(store_->size(), copies_.size());
        ASSERT_EQ(store_->units_used(), units_);
        uint32_t visited = 0;
        store_->for_each([&](Store::Slot slot) {
            ++visited;
            ASSERT_TRUE(copies_.contains(slot.value));
        });
        ASSERT_EQ(visited, copies_.size());
        for (const auto& [slot, copy] : copies_) {
            ASSERT_TRUE(store_->is_held({slot}));
            ASSERT_EQ(store_->is_taken({slot}), copy.is_taken);
            expect_same(store_->at({slot}), copy.connection);
            for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
                const auto found = store_->find(key_of(copy.connection, direction));
                ASSERT_TRUE(found);
                ASSERT_EQ(found->slot.value, slot);
                ASSERT_EQ(found->direction, direction);
                ASSERT_EQ(found->is_taken, copy.is_taken);
                expect_same(found->connection, copy.connection);
            }
        }
    }

    [[nodiscard]] bool was_full() const { return was_full_; }

 private:
    static const FlowKey& key_of(const Connection& connection, Direction direction) {
        return direction == Direction::Forward ? connection.forward : connection.reverse;
    }
    static uint32_t units_of(const Connection& connection) {
        return connection.forward.source.is_v4() && connection.reverse.source.is_v4() ? 1 : 2;
    }
    auto any() {
        auto at = copies_.lower_bound(static_cast<uint32_t>(random_.below(capacity_)));
        return at == copies_.end() ? copies_.begin() : at;
    }

    void put() {
        const Connection copy = random_connection(random_, 2 * capacity_);
        const Store::Slot slot = store_->put(copy);
        const bool is_refused = keys_.contains(copy.forward) || keys_.contains(copy.reverse);
        if (!slot.is_set()) {
            // One unit that is not next to another free one holds no copy with an IPv6 key.
            ASSERT_TRUE(is_refused || units_ + units_of(copy) > capacity_ || units_of(copy) == 2);
            was_full_ |= !is_refused;
            return;
        }
        ASSERT_FALSE(is_refused);
        ASSERT_LE(units_ += units_of(copy), capacity_);
        ASSERT_TRUE(copies_.emplace(slot.value, Copy{copy}).second);
        keys_[copy.forward] = keys_[copy.reverse] = slot.value;
    }

    void remove() {
        const auto at = any();
        const Connection& copy = at->second.connection;
        store_->remove({at->first});
        for (const Direction direction : {Direction::Forward, Direction::Reverse}) {
            ASSERT_FALSE(store_->find(key_of(copy, direction)));
            keys_.erase(key_of(copy, direction));
        }
        units_ -= units_of(copy);
        copies_.erase(at);
    }

    void refresh() {
        const auto at = any();
        Copy& copy = at->second;
        Connection next = random_connection(random_, 2 * capacity_);
        const bool is_other = random_.one_in(4);
        if (!is_other) {
            const Connection drawn = next;
            next = copy.connection;
            next.state = static_cast<uint8_t>(drawn.state % 2);
            next.tags = drawn.tags;
            next.last_seen = {next.last_seen.value + conn::kTouchAfterUnits +
                              static_cast<uint32_t>(random_.below(500))};
        }
        const bool has_other_keys =
            next.forward != copy.connection.forward || next.reverse != copy.connection.reverse;
        ASSERT_EQ(store_->refresh({at->first}, next), !copy.is_taken && !has_other_keys);
        if (!copy.is_taken && !has_other_keys) {
            copy.connection.state = next.state;
            copy.connection.tags = next.tags;
            copy.connection.last_seen = next.last_seen;
        }
    }

    void take() {
        const auto at = any();
        const auto found = store_->find(at->second.connection.forward);
        ASSERT_TRUE(found);
        store_->mark_taken(*found);
        at->second.is_taken = true;
    }

    test::Prng random_;
    uint32_t capacity_;
    std::unique_ptr<Store> store_;
    std::map<uint32_t, Copy> copies_;  // by slot
    std::map<FlowKey, uint32_t, ByBytes> keys_;
    uint32_t units_ = 0;
    bool grows_ = true, was_full_ = false;
};

TEST(StoreProperty, AgreesWithAMap) {
    for (const uint32_t capacity : {1U, 2U, 7U, 100U, 1'000U}) {
        SCOPED_TRACE("capacity " + std::to_string(capacity));
        Model model(capacity);
        for (int step = 0; step < 30'000; ++step) {
            model.step();
            if (step % 2'000 == 0) {
                ASSERT_NO_FATAL_FAILURE(model.expect_all());
            }
            ASSERT_FALSE(testing::Test::HasFailure());
        }
        ASSERT_NO_FATAL_FAILURE(model.expect_all());
        EXPECT_TRUE(model.was_full());
    }
}

}  // namespace store_property_test
}  // namespace penstock::copies
