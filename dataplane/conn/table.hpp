// A worker's own connection table. One writer, the worker; any thread may list its entries without stopping it. The memory is handed in and
// holds no pointer, so that a later process may map it elsewhere and adopt() it.
//
//   Header | buckets, one cache line each           | entries, two cache lines each
//          |  8 x { tag:32, index+1:31, dir:1 } ----+-> Connection | generation | next_free | where its two slots are
//
// Both keys of a connection are in the one index and lead to the one entry; the slot's last bit says which direction the key is. A key
// lives in one of two buckets: `hash & mask`, or that xor a mix of the tag (partial-key cuckoo hashing, Fan et al. 2014), so that a slot
// can be moved to its other bucket without reading the key. Buckets are at most 80 % full, and half in the default table when that is
// full: first buckets then hold 99 % of the keys, and an established packet costs its bucket's line and its entry's pair. Insertion tries a
// bounded number of moves and then says Full.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/conn/connection.hpp"

namespace penstock::conn {

struct Found {
    ConnectionIndex index;
    Direction direction = Direction::Forward;
    [[nodiscard]] constexpr bool is_hit() const noexcept { return index.is_set(); }
};

enum class InsertStatus : uint8_t {
    Inserted,
    Full,          // no entry is free, or (with a sound hash only near capacity) no slot could be made free
    ForwardTaken,  // another connection answers to this forward key
    ReverseTaken,  // another connection answers to this reverse key, or both keys are the same
};

struct Inserted {
    InsertStatus status = InsertStatus::Full;
    ConnectionIndex index;  // set where status is Inserted
};

namespace detail {
// Entries are copied and changed by whole words, so that readers on other threads meet each word whole. may_alias: the words are a
// Connection's bytes.
using Word [[gnu::may_alias]] = uint64_t;

struct alignas(kCacheLine) Bucket {
    static constexpr uint32_t kSlots = 8;
    uint64_t slots[kSlots];  // 0: free
};
static_assert(sizeof(Bucket) == kCacheLine);

struct alignas(kCacheLine) Entry {
    Connection connection;
    uint32_t generation;  // odd: live. Even: free or being filled. Each life has its own number
    uint32_t next_free;   // index + 1 of the next free entry, 0 at the end; only while free
    uint32_t slot_at[2];  // by Direction: bucket * kSlots + slot; kept up to date by moves
};
static_assert(sizeof(Entry) == 2 * kCacheLine);

// First in the memory. A change to any layout of this file changes kVersion.
struct alignas(kCacheLine) Header {
    static constexpr uint64_t kMagic = 0x6e6e6f636b736e70;  // "pnskconn"
    static constexpr uint32_t kVersion = 1;
    uint64_t magic;
    uint32_t version;
    uint32_t capacity;
    uint32_t buckets;     // a power of two
    uint32_t free_head;   // index + 1, or 0
    uint32_t size;        // read by any thread
    uint32_t high_water;  // entries from here on have never been used; read by any thread
    HashKey secret;
};
static_assert(sizeof(Header) == kCacheLine);
}  // namespace detail

class Table {
 public:
    // An entry's number shares a word with the direction.
    static constexpr uint32_t kCapacityMax = 1U << 28;

    // Bytes that `capacity` connections take; 0 where capacity is 0 or beyond kCapacityMax.
    [[nodiscard]] static size_t memory_needed(uint32_t capacity) noexcept;
    // Clears and lays out `memory`, which must outlive the table and begin on a cache line. InvalidArgument names what does not fit.
    static Result<Table> create(std::span<std::byte> memory, uint32_t capacity, const HashKey& secret);
    // Takes over a table that create() laid out, connections included. Corrupt where the header is another version's or contradicts the
    // memory's size. The former writer must have stopped.
    static Result<Table> adopt(std::span<std::byte> memory);

    Table(Table&&) noexcept = default;
    Table& operator=(Table&&) noexcept = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    // --- The worker's side -------------------------------------------------------------------------------------------------------------

    [[nodiscard]] uint64_t hash(const packet::FlowKey& key) const noexcept { return packet::hash_of(key, secret_); }
    // Starts loading the key's first bucket. The second is not: one key in a hundred needs it.
    PENSTOCK_ALWAYS_INLINE void prefetch(uint64_t hash) const noexcept { prefetch_read(&buckets_[first_bucket(hash)]); }
    // For a pass between prefetch() and find(): starts loading the entry that the bucket probably leads to.
    PENSTOCK_ALWAYS_INLINE void prefetch_entry(uint64_t hash) const noexcept;
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE Found find(const packet::FlowKey& key, uint64_t hash) const noexcept;

    // Valid until erase(). Read-only, because readers on other threads must meet whole words: changes go through touch() and set_state().
    [[nodiscard]] const Connection& at(ConnectionIndex index) const noexcept {
        PENSTOCK_ASSERT(is_live(index.value));
        return entries_[index.value].connection;
    }
    // Notes a packet: writes last_seen where it is older than `aged` (kTouchAfterMs in ticks).
    PENSTOCK_ALWAYS_INLINE void touch(ConnectionIndex index, TscTime now, TscTicks aged) noexcept;
    // Writes only where it changes something. Restarts the idle time, because the new state's limit may be shorter.
    PENSTOCK_ALWAYS_INLINE void set_state(ConnectionIndex index, TcpState state, TscTime now) noexcept;
    PENSTOCK_ALWAYS_INLINE void set_state(ConnectionIndex index, DatagramState state, TscTime now) noexcept;

    // The hashes are hash(entry.forward) and hash(entry.reverse). The entry is complete before either key can be found. Bounded: at most
    // kSearchNodes buckets are read and kMovesMax slots moved for each key.
    [[nodiscard]] Inserted insert(const Connection& entry, uint64_t forward_hash, uint64_t reverse_hash) noexcept;
    // The index may come back with the next insert(); generation() tells the lives apart.
    void erase(ConnectionIndex index) noexcept;

    // Differs between two lives of one index: whoever keeps an index over an erase(), as a burst does while its later packets evict,
    // compares.
    [[nodiscard]] uint32_t generation(ConnectionIndex index) const noexcept { return entries_[index.value].generation; }
    [[nodiscard]] bool is_live(uint32_t slot) const noexcept { return (entries_[slot].generation & 1) != 0; }

    // --- Any thread --------------------------------------------------------------------------------------------------------------------

    [[nodiscard]] uint32_t size() const noexcept { return __atomic_load_n(&header_->size, __ATOMIC_RELAXED); }
    [[nodiscard]] uint32_t capacity() const noexcept { return capacity_; }
    // No entry from here on has ever been used: listing and aging may stop here. Never falls.
    [[nodiscard]] uint32_t high_water() const noexcept { return __atomic_load_n(&header_->high_water, __ATOMIC_ACQUIRE); }
    // Copies entry `slot` (0 .. capacity-1) where it is live and stayed the same connection while it was copied. False: free, or replaced
    // more often than a few tries. last_seen and state are each as of some moment during the copy.
    [[nodiscard]] bool read(uint32_t slot, Connection& out) const noexcept;

 private:
    Table(std::span<std::byte> memory, uint32_t capacity) noexcept;

    static constexpr uint32_t kSearchNodes = 256;
    static constexpr uint32_t kMovesMax = 4;

    [[nodiscard]] uint32_t first_bucket(uint64_t hash) const noexcept { return static_cast<uint32_t>(hash) & bucket_mask_; }
    [[nodiscard]] static constexpr uint32_t tag_of(uint64_t hash) noexcept { return static_cast<uint32_t>(hash >> 32); }
    // Its own inverse, as moving a slot back must find the bucket it came from. The multiplier spreads neighbouring tags; the `| 1` keeps
    // the two buckets apart (with a single bucket, the mask folds them together).
    [[nodiscard]] uint32_t other_bucket(uint32_t bucket, uint32_t tag) const noexcept {
        return (bucket ^ ((tag * 0x9e3779b1U >> 4) | 1)) & bucket_mask_;
    }
    [[nodiscard]] static constexpr uint64_t make_slot(uint32_t tag, uint32_t index, Direction direction) noexcept {
        return uint64_t{tag} << 32 | (uint64_t{index} + 1) << 1 | static_cast<uint64_t>(direction);
    }
    [[nodiscard]] static constexpr uint32_t index_in(uint64_t slot) noexcept { return (static_cast<uint32_t>(slot) >> 1) - 1; }
    [[nodiscard]] static constexpr Direction direction_in(uint64_t slot) noexcept { return static_cast<Direction>(slot & 1); }
    [[nodiscard]] static constexpr uint32_t tag_in(uint64_t slot) noexcept { return static_cast<uint32_t>(slot >> 32); }

    PENSTOCK_ALWAYS_INLINE Found find_in(uint32_t bucket, uint32_t tag, const packet::FlowKey& key) const noexcept;
    [[nodiscard]] bool place(uint64_t hash, uint32_t index, Direction direction) noexcept;
    // A free slot in either of two buckets, made free by moving others where it must be; kNoSlot where that takes too much.
    static constexpr uint32_t kNoSlot = ~0U;
    [[nodiscard]] uint32_t free_slot(uint32_t bucket) const noexcept;
    [[nodiscard]] PENSTOCK_NOINLINE uint32_t make_room(uint32_t first, uint32_t second) noexcept;
    void set_slot(uint32_t at, uint64_t slot) noexcept;
    PENSTOCK_ALWAYS_INLINE void set_state_byte(ConnectionIndex index, uint8_t state, TscTime now) noexcept;

    detail::Header* header_;
    detail::Bucket* buckets_;
    detail::Entry* entries_;
    uint32_t bucket_mask_;
    uint32_t capacity_;
    HashKey secret_;
};

PENSTOCK_ALWAYS_INLINE Found Table::find_in(uint32_t bucket, uint32_t tag, const packet::FlowKey& key) const noexcept {
    for (const uint64_t slot : buckets_[bucket].slots) {
        if (tag_in(slot) == tag && slot != 0) {
            const Connection& candidate = entries_[index_in(slot)].connection;
            const Direction direction = direction_in(slot);
            if ((direction == Direction::Forward ? candidate.forward : candidate.reverse) == key) {
                return {{index_in(slot)}, direction};
            }
        }
    }
    return {};
}

PENSTOCK_ALWAYS_INLINE Found Table::find(const packet::FlowKey& key, uint64_t hash) const noexcept {
    const uint32_t first = first_bucket(hash);
    const Found found = find_in(first, tag_of(hash), key);
    return found.is_hit() ? found : find_in(other_bucket(first, tag_of(hash)), tag_of(hash), key);
}

PENSTOCK_ALWAYS_INLINE void Table::prefetch_entry(uint64_t hash) const noexcept {
    for (const uint64_t slot : buckets_[first_bucket(hash)].slots) {
        if (tag_in(slot) == tag_of(hash) && slot != 0) {
            const auto* entry = reinterpret_cast<const std::byte*>(&entries_[index_in(slot)]);
            prefetch_read(entry);
            prefetch_read(entry + kCacheLine);
            return;
        }
    }
}

PENSTOCK_ALWAYS_INLINE void Table::touch(ConnectionIndex index, TscTime now, TscTicks aged) noexcept {
    Connection& connection = entries_[index.value].connection;
    if (is_idle_past(connection.last_seen, now, aged)) [[unlikely]] {
        // Relaxed: a single word that stands alone. The same holds for the state's word below.
        __atomic_store_n(reinterpret_cast<detail::Word*>(&connection.last_seen), now.value, __ATOMIC_RELAXED);
    }
}

PENSTOCK_ALWAYS_INLINE void Table::set_state_byte(ConnectionIndex index, uint8_t state, TscTime now) noexcept {
    Connection& connection = entries_[index.value].connection;
    if (connection.state == state) [[likely]] {
        return;
    }
    static_assert(offsetof(Connection, state) % sizeof(detail::Word) == 0, "the state is the first byte of its word");
    auto* word = reinterpret_cast<detail::Word*>(&connection.state);
    __atomic_store_n(word, (*word & ~uint64_t{0xff}) | state, __ATOMIC_RELAXED);
    touch(index, now, {0});
}
PENSTOCK_ALWAYS_INLINE void Table::set_state(ConnectionIndex index, TcpState state, TscTime now) noexcept {
    set_state_byte(index, static_cast<uint8_t>(state), now);
}
PENSTOCK_ALWAYS_INLINE void Table::set_state(ConnectionIndex index, DatagramState state, TscTime now) noexcept {
    set_state_byte(index, static_cast<uint8_t>(state), now);
}

}  // namespace penstock::conn
