// SPDX-License-Identifier: Apache-2.0
// conn::Table with the interface of population.hpp. The only file of the table benches that uses its API.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/conn/table.hpp"
#include "perf/harness/memory.hpp"
#include "perf/micro/connections.hpp"

namespace penstock::perf {

class ConnStore {
 public:
    using Key = packet::FlowKey;
    explicit ConnStore(uint32_t connections)
        : memory_(conn::Table::memory_needed(connections)),
          table_(make(memory_, connections)),
          index_of_slot_(connections) {}
    static size_t memory_needed(uint32_t connections) noexcept {
        return conn::Table::memory_needed(connections) + connections * sizeof(ConnectionIndex);
    }
    static Key key(uint32_t number, conn::Direction direction) noexcept {
        return flow_key(number, direction);
    }

    bool insert(uint32_t slot, uint32_t number) noexcept {
        const conn::Connection entry = connection(flow_key(number, conn::Direction::Forward),
                                                  flow_key(number, conn::Direction::Reverse));
        const conn::Inserted inserted =
            table_.insert(entry, table_.hash(entry.forward), table_.hash(entry.reverse));
        index_of_slot_[slot] = inserted.index;
        return inserted.status == conn::InsertStatus::Inserted;
    }
    void erase(uint32_t slot, uint32_t) noexcept { table_.erase(index_of_slot_[slot]); }

    template <bool kWithState>
    PENSTOCK_NOINLINE uint32_t lookup(std::span<const Key> keys) noexcept {
        std::array<uint64_t, kBurst> hash;
        std::array<conn::Found, kBurst> found;
        table_.find_burst(
            kBurst, [&](uint32_t i) PENSTOCK_INLINE_LAMBDA -> const Key& { return keys[i]; }, hash.data(),
            found.data());
        return count<kWithState>(found);
    }

    // In two steps, as find_hashed() allows: the entries of a burst are prefetched together with the buckets
    // of the next one.
    PENSTOCK_NOINLINE void expect(std::span<const Key> keys) noexcept {
        newest_ ^= 1;
        for (uint32_t i = 0; i < kBurst; ++i) {
            expected_[newest_][i] = table_.hash(keys[i]);
            table_.prefetch(expected_[newest_][i]);
        }
        ++expected_count_;
    }
    // The oldest burst passed to expect(); at most two are pending.
    template <bool kWithState>
    PENSTOCK_NOINLINE uint32_t lookup_expected(std::span<const Key> keys) noexcept {
        const auto& hash = expected_[expected_count_ == 2 ? newest_ ^ 1 : newest_];
        --expected_count_;
        std::array<conn::Found, kBurst> found;
        table_.find_hashed(
            kBurst, 0, [&](uint32_t i) PENSTOCK_INLINE_LAMBDA -> const Key& { return keys[i]; },
            [&](uint32_t i) PENSTOCK_INLINE_LAMBDA { return hash[i]; },
            [&](uint32_t i) PENSTOCK_INLINE_LAMBDA -> conn::Found& { return found[i]; });
        return count<kWithState>(found);
    }

    [[nodiscard]] conn::Table& table() noexcept { return table_; }
    [[nodiscard]] static conn::Connection connection(const packet::FlowKey& forward,
                                                     const packet::FlowKey& reverse) noexcept {
        conn::Connection entry;
        entry.forward = forward;
        entry.reverse = reverse;
        entry.service = {forward.destination_port};
        entry.backend = {reverse.source_port};
        entry.state = static_cast<uint8_t>(conn::TcpState::Established);
        return entry;
    }

 private:
    static constexpr uint32_t kBurst = RteYardstick::kBurst;

    template <bool kWithState>
    PENSTOCK_ALWAYS_INLINE uint32_t count(const std::array<conn::Found, kBurst>& found) noexcept {
        // Each burst is a second after the previous one, so that each hit finds an old last_seen and writes
        // it.
        now_ = {now_.value + conn::kTouchAfterUnits};
        uint32_t hits = 0;
        for (const conn::Found& each : found) {
            if (each.is_hit()) {
                ++hits;
                if constexpr (kWithState) {
                    table_.touch(each.index, now_);
                }
            }
        }
        return hits;
    }

    static conn::Table make(const HugeMemory& memory, uint32_t connections) {
        auto table = conn::Table::create(memory.span(), connections, HashKey::random());
        PENSTOCK_CHECK(table);
        return std::move(*table);
    }

    HugeMemory memory_;
    conn::Table table_;
    std::vector<ConnectionIndex> index_of_slot_;
    CoarseTime now_{1};
    std::array<std::array<uint64_t, kBurst>, 2> expected_{};
    uint32_t expected_count_ = 0;
    uint32_t newest_ = 0;
};

}  // namespace penstock::perf
