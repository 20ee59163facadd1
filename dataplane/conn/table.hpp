// SPDX-License-Identifier: Apache-2.0
// The connection table of one worker. The worker is the only writer; any thread may list the entries without
// stopping it. The caller provides the memory. It holds no pointers, so that a later process can map it at
// another address and read what its writer left (former_table.hpp).
//
//   Header | buckets, one cache line each       | units, one cache line each
//          |  8 tags: 32 bits of a key's hash   |  IPv4 connection: one unit (keys, state, times, ids,
//          |                                    |   checksum deltas)
//          |  8 references: unit, direction ----+-> IPv6 connection: a pair of units; the second holds its
//          |                                    |   addresses. Likewise a connection whose two keys are of
//          |                                    |   different families, IPv4 addresses in mapped form
//
// Both keys of a connection are in the same index and refer to the same entry; the last bit of the reference
// is the direction of the key. A key is in one of two buckets. The low half of its hash selects the first;
// the second is that position mirrored by the key's tag (partial-key cuckoo hashing, Fan et al. 2014). A slot
// can therefore be moved to its other bucket without reading the key. An established packet costs two cache
// lines: its bucket and its entry. The bucket is compared whole by vector instructions. The entry holds the
// exact key and everything that the translation needs. docs/adr/0007 describes the other layouts that were
// measured.
//
// At most 60 % of the slots are used. In a full table one key in fifty is in its second bucket, and one in
// twelve after many connections have opened and closed (docs/adr/0010). Insertion tries a bounded number of
// moves and then returns Full.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/match8.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/conn/entry.hpp"
#include "dataplane/conn/sent_numbers.hpp"
#include "dataplane/conn/table_layout.hpp"

namespace penstock::conn {

struct Found {
    ConnectionIndex index;
    Direction direction = Direction::Forward;
    [[nodiscard]] constexpr bool is_hit() const noexcept { return index.is_set(); }
};

enum class InsertStatus : uint8_t {
    Inserted,
    // No free unit (or no free pair, if two units are needed), or no slot could be freed. With a sound hash
    // the latter happens only near capacity.
    Full,
    ForwardTaken,  // another connection has this forward key
    ReverseTaken,  // another connection has this reverse key, or both keys are equal
};

struct Inserted {
    InsertStatus status = InsertStatus::Full;
    ConnectionIndex index;  // set where status is Inserted
};

class Table {
 public:
    // A unit's number shares a word with the direction bit.
    static constexpr uint32_t kCapacityMax = 1U << 28;

    // Bytes needed for `capacity` IPv4 connections (or half as many of those that take two units). 0 if
    // capacity is 0 or exceeds kCapacityMax.
    [[nodiscard]] static size_t memory_needed(uint32_t capacity) noexcept;
    // Clears and lays out `memory`, which must outlive the table and start on a cache line. InvalidArgument
    // names the requirement that is not met.
    static Result<Table> create(std::span<std::byte> memory, uint32_t capacity, const HashKey& secret);

    Table(Table&&) noexcept = default;
    Table& operator=(Table&&) noexcept = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    // --- Worker only ---

    PENSTOCK_ALWAYS_INLINE uint64_t hash(const packet::FlowKey& key) const noexcept {
        return packet::hash_of(key, mix_);
    }
    // Overload for callers that already have the address family.
    PENSTOCK_ALWAYS_INLINE uint64_t hash(const packet::FlowKey& key, IpFamily family) const noexcept {
        return family == IpFamily::V4 ? packet::v4_hash_of(key, mix_) : packet::v6_hash_of(key, mix_);
    }
    // Starts loading the key's first bucket, which holds nearly all keys.
    PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept {
        prefetch_read(&buckets_[first_bucket(hash)]);
    }
    // Prefetches the units that the next `count` IPv4 connections will take. Call before insert(). Only a
    // guess if there are free halves.
    PENSTOCK_ALWAYS_INLINE void prefetch_units(uint32_t count) const noexcept;
    // Prefetches both buckets. Call before insert().
    PENSTOCK_ALWAYS_INLINE void prefetch_buckets(uint64_t hash) const noexcept {
        prefetch(hash);
        prefetch_read(&buckets_[other_bucket(first_bucket(hash), tag_of(hash))]);
    }
    PENSTOCK_ALWAYS_INLINE Found find(const packet::FlowKey& key, uint64_t hash) const noexcept;
    // find() for several keys with overlapping memory accesses. For each i below count (at most
    // limits::kBurstMax), looks up key_at(i) by its hash hash_at(i) and writes the result to found_at(i).
    // Each hash should have been prefetched. `v6`: the number of IPv6 keys.
    template <typename KeyAt, typename HashAt, typename FoundAt>
    PENSTOCK_ALWAYS_INLINE void find_hashed(uint32_t count, uint32_t v6, KeyAt&& key_at, HashAt&& hash_at,
                                            FoundAt&& found_at) const noexcept;
    // The same including hashing; writes hash[i] and found[i].
    template <typename KeyAt>
    PENSTOCK_ALWAYS_INLINE void find_burst(uint32_t count, KeyAt&& key_at, uint64_t* hash,
                                           Found* found) const noexcept;

    // Valid until erase(). Read-only, because readers on other threads must see whole words: changes go
    // through touch() and set_state().
    [[nodiscard]] const Entry& at(ConnectionIndex index) const noexcept {
        PENSTOCK_ASSERT(is_live(index.value));
        return entries_[index.value];
    }
    // The same, unpacked.
    [[nodiscard]] Connection connection(ConnectionIndex index) const noexcept;
    // Records a packet: writes last_seen if it is older than kTouchAfterUnits.
    PENSTOCK_ALWAYS_INLINE void touch(ConnectionIndex index, CoarseTime now) noexcept;
    // Writes only on a change. Restarts the idle time, because the new state's limit may be shorter.
    PENSTOCK_ALWAYS_INLINE void set_state(ConnectionIndex index, TcpState state, CoarseTime now) noexcept;
    PENSTOCK_ALWAYS_INLINE void set_state(ConnectionIndex index, DatagramState state,
                                          CoarseTime now) noexcept;
    PENSTOCK_ALWAYS_INLINE void set_state(ConnectionIndex index, SctpState state, CoarseTime now) noexcept;
    // For an association: the tag that packets of `direction` carry from now on.
    void set_tag(ConnectionIndex index, Direction direction, uint32_t tag) noexcept {
        __atomic_store_n(&entries_[index.value].tags[static_cast<size_t>(direction)], tag, __ATOMIC_RELAXED);
    }
    // For a TCP connection; stored in the same field.
    [[nodiscard]] SentNumbers sent_numbers(ConnectionIndex index) const noexcept {
        const auto& [span, first] = entries_[index.value].tags;
        return {first, span};
    }
    void set_sent_numbers(ConnectionIndex index, SentNumbers sent) noexcept {
        set_tag(index, Direction::Reverse, sent.first);
        set_tag(index, Direction::Forward, sent.span);
    }

    // The hashes are hash(entry.forward) and hash(entry.reverse); each key is of one family. The entry is
    // complete before either key can be found. Bounded: reads at most kSearchNodes buckets and moves at most
    // kMovesMax slots for each key.
    [[nodiscard]] Inserted insert(const Connection& entry, uint64_t forward_hash,
                                  uint64_t reverse_hash) noexcept;
    // The next insert() may reuse the index; generation() distinguishes the lives.
    void erase(ConnectionIndex index) noexcept;
    // Overload for callers that have the hashes of the connection.
    void erase(ConnectionIndex index, uint64_t forward_hash, uint64_t reverse_hash) noexcept;
    // Starts loading the memory that erase() of a live entry reads. Call before erasing several.
    void prefetch_for_erase(ConnectionIndex index) const noexcept;

    // Differs between two lives of the same index.
    [[nodiscard]] uint32_t generation(ConnectionIndex index) const noexcept {
        return entries_[index.value].generation;
    }
    // Whether a connection starts at this unit.
    [[nodiscard]] bool is_live(uint32_t unit) const noexcept {
        return (entries_[unit].generation & 1) != 0 && ((unit & 1) == 0 || !entries_[unit - 1].is_v6());
    }

    // --- Any thread ---

    [[nodiscard]] uint32_t size() const noexcept { return __atomic_load_n(&header_->size, __ATOMIC_RELAXED); }
    // In units: the table holds this number of IPv4 connections, or half as many others.
    [[nodiscard]] uint32_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] uint32_t units_used() const noexcept {
        return __atomic_load_n(&header_->units_used, __ATOMIC_RELAXED);
    }
    // The share of slots that hold a key.
    [[nodiscard]] double slots_used() const noexcept {
        return 2.0 * size() / (static_cast<double>(buckets_count_) * detail::Bucket::kSlots);
    }
    // No unit from here on has ever been used, so listing and aging can stop here. Never decreases.
    [[nodiscard]] uint32_t high_water() const noexcept {
        return __atomic_load_n(&header_->high_water, __ATOMIC_ACQUIRE);
    }
    // Copies the connection that starts at `unit` (0 .. capacity-1). False: there is none, or it was replaced
    // during each of a few attempts. last_seen and state are each from some moment during the copy.
    [[nodiscard]] bool read(uint32_t unit, Connection& out) const noexcept {
        uint32_t generation = 0;
        return read(unit, out, generation) == Unit::Live;
    }
    // Empty: no connection starts here. Replaced: during each attempt; there may be one.
    enum class Unit : uint8_t { Empty, Replaced, Live };
    // The same, and the generation() of the connection, which is odd. Both are valid if Live.
    [[nodiscard]] Unit read(uint32_t unit, Connection& out, uint32_t& generation) const noexcept;
    struct Lookup {
        Found found;
        uint32_t generation = 0;  // of this life
        Connection connection;
    };
    // read() by a key. False also if the key was moved to its other bucket meanwhile (copies/store.hpp).
    [[nodiscard]] bool look_up(const packet::FlowKey& key, uint64_t hash, Lookup& out) const noexcept;

 private:
    Table(std::span<std::byte> memory, uint32_t capacity) noexcept;

    static constexpr uint32_t kSearchNodes = 256;
    static constexpr uint32_t kMovesMax = 4;
    static constexpr uint32_t kNone = ~0U;

    // The low half of the hash, scaled to the number of buckets, which need not be a power of two.
    [[nodiscard]] uint32_t first_bucket(uint64_t hash) const noexcept {
        return static_cast<uint32_t>((hash & 0xffff'ffff) * buckets_count_ >> 32);
    }
    // The high half; 0 marks a free slot.
    [[nodiscard]] static constexpr uint32_t tag_of(uint64_t hash) noexcept {
        const auto tag = static_cast<uint32_t>(hash >> 32);
        return tag + (tag == 0 ? 1 : 0);
    }
    // Its own inverse, because moving a slot back must find the bucket that it came from: a position derived
    // from the tag, minus `bucket`, modulo the number of buckets. The multiplier spreads neighbouring tags.
    [[nodiscard]] uint32_t other_bucket(uint32_t bucket, uint32_t tag) const noexcept {
        const auto mirror = static_cast<uint32_t>(uint64_t{tag * 0x9e3779b1U} * buckets_count_ >> 32);
        return mirror >= bucket ? mirror - bucket : mirror + buckets_count_ - bucket;
    }

    [[nodiscard]] const detail::V6Addresses& v6_addresses(uint32_t unit) const noexcept {
        return *reinterpret_cast<const detail::V6Addresses*>(&entries_[unit + 1]);
    }
    PENSTOCK_ALWAYS_INLINE bool holds(uint32_t reference, const packet::FlowKey& key) const noexcept;
    // False for a mixed connection.
    PENSTOCK_ALWAYS_INLINE bool holds_v4(uint32_t reference, const packet::FlowKey& key) const noexcept;
    PENSTOCK_ALWAYS_INLINE bool holds_v6(uint32_t reference, const packet::FlowKey& key) const noexcept;
    PENSTOCK_ALWAYS_INLINE bool holds_addresses(uint32_t reference,
                                                const packet::FlowKey& key) const noexcept;
    PENSTOCK_ALWAYS_INLINE Found find_in(uint32_t bucket, uint32_t tag,
                                         const packet::FlowKey& key) const noexcept;
    // The first reference in a bucket with a matching tag; kNone if no tag matches.
    PENSTOCK_ALWAYS_INLINE uint32_t candidate_in(uint32_t bucket, uint32_t tag) const noexcept;
    // The families of the keys of a burst.
    enum class Keys : uint8_t { V4, V6, Both };
    template <Keys kKeys, typename KeyAt, typename HashAt, typename FoundAt>
    PENSTOCK_ALWAYS_INLINE void find_all(uint32_t count, KeyAt&& key_at, HashAt&& hash_at,
                                         FoundAt&& found_at) const noexcept;
    [[nodiscard]] PENSTOCK_NOINLINE Found find_slowly(const packet::FlowKey& key,
                                                      uint64_t hash) const noexcept;
    [[nodiscard]] uint64_t hash_of(uint32_t unit, Direction direction) const noexcept;

    [[nodiscard]] uint32_t take_unit() noexcept;
    [[nodiscard]] uint32_t take_pair() noexcept;
    void give_back_unit(uint32_t unit) noexcept;
    void give_back_pair(uint32_t unit) noexcept;
    void give_back_both(uint32_t unit) noexcept;
    void push_half(uint32_t unit) noexcept;
    void remove_half(uint32_t unit) noexcept;
    [[nodiscard]] uint32_t fresh_pair() noexcept;
    [[nodiscard]] uint32_t next_life() noexcept {
        return header_->lives = (header_->lives + 1) & 0x7fff'ffff;
    }

    // Whether a slot of either bucket has the hash's tag.
    PENSTOCK_ALWAYS_INLINE bool has_tag(uint64_t hash) const noexcept;
    // Uses a free slot of the first bucket, else of the second, else one that make_room() frees. False: no
    // slot is available.
    PENSTOCK_ALWAYS_INLINE bool place(uint64_t hash, uint32_t reference) noexcept;
    // The slot's number in the table, counted through all buckets; kNone if the bucket is full.
    PENSTOCK_ALWAYS_INLINE uint32_t free_slot(uint32_t bucket) const noexcept;
    // Frees a slot of either of two full buckets by moving others; kNone if that exceeds the search limits.
    [[nodiscard]] PENSTOCK_NOINLINE uint32_t make_room(uint32_t first, uint32_t second) noexcept;
    void clear_slot(uint64_t hash, uint32_t reference) noexcept;
    PENSTOCK_ALWAYS_INLINE void set_state_byte(ConnectionIndex index, uint8_t state, CoarseTime now) noexcept;

    detail::Header* header_;
    detail::Bucket* buckets_;
    Entry* entries_;
    uint32_t buckets_count_;
    uint32_t capacity_;
    KeyedMix mix_;
};

PENSTOCK_ALWAYS_INLINE void Table::prefetch_units(uint32_t count) const noexcept {
    // Units that were never used are contiguous. Of the freed units, only the first is known without reading
    // it.
    if (header_->free_halves != 0) {
        prefetch_read(&entries_[header_->free_halves - 1]);
    } else if (header_->free_pairs != 0) {
        prefetch_read(&entries_[header_->free_pairs - 1]);
    } else {
        for (uint32_t i = 0; i < count && header_->high_water + i < capacity_; ++i) {
            prefetch_read(&entries_[header_->high_water + i]);
        }
    }
}

PENSTOCK_ALWAYS_INLINE uint32_t Table::free_slot(uint32_t bucket) const noexcept {
    const uint32_t free = match8(buckets_[bucket].tags, 0);
    return free == 0 ? kNone
                     : bucket * detail::Bucket::kSlots + static_cast<uint32_t>(std::countr_zero(free));
}

PENSTOCK_ALWAYS_INLINE void Table::touch(ConnectionIndex index, CoarseTime now) noexcept {
    Entry& entry = entries_[index.value];
    if (units_between(entry.last_seen, now) >= kTouchAfterUnits) [[unlikely]] {
        // Relaxed: a single independent word. The same holds for the state below.
        __atomic_store_n(&entry.last_seen.value, now.value, __ATOMIC_RELAXED);
    }
}

PENSTOCK_ALWAYS_INLINE void Table::set_state_byte(ConnectionIndex index, uint8_t state,
                                                  CoarseTime now) noexcept {
    Entry& entry = entries_[index.value];
    if (entry.state == state) [[likely]] {
        return;
    }
    __atomic_store_n(&entry.state, state, __ATOMIC_RELAXED);
    __atomic_store_n(&entry.last_seen.value, now.value, __ATOMIC_RELAXED);
}
PENSTOCK_ALWAYS_INLINE void Table::set_state(ConnectionIndex index, TcpState state, CoarseTime now) noexcept {
    set_state_byte(index, static_cast<uint8_t>(state), now);
}
PENSTOCK_ALWAYS_INLINE void Table::set_state(ConnectionIndex index, DatagramState state,
                                             CoarseTime now) noexcept {
    set_state_byte(index, static_cast<uint8_t>(state), now);
}
PENSTOCK_ALWAYS_INLINE void Table::set_state(ConnectionIndex index, SctpState state,
                                             CoarseTime now) noexcept {
    set_state_byte(index, static_cast<uint8_t>(state), now);
}

}  // namespace penstock::conn

#include "dataplane/conn/table_find.hpp"
