// SPDX-License-Identifier: Apache-2.0
// Copies of another gateway's connections, held beside the connection tables (docs/adr/0050). One writer puts
// and removes them. A worker looks here for a packet that has missed in every table, and takes the copy over:
// it inserts the connection into its own table (pipeline/opening/take_over.hpp).
//
//            writer (control)                  workers
//   put, refresh, remove                         find, mark_taken, mark_refused
//         |                                        |
//         v                                        v
//   conn::Table: both keys -> unit     marks: the life of each unit that a worker has taken over or refused
//
// The storage is a connection table with the readings that any thread may make, so a copy takes what a
// connection takes. Readers never wait for the writer: a lookup reads at most kLookups times two buckets and
// the entries whose tag matches.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/spsc_queue.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::copies {

// A connection in the table of a worker, as any thread finds it.
struct OwnConnection {
    WorkerId worker = {};
    uint32_t unit = 0;
    uint32_t generation = 0;  // conn::Table::generation()
    conn::Connection connection = {};
};

// The order to end one.
struct Ending {
    uint32_t unit = 0;
    uint32_t generation = 0;
    CoarseTime last_seen;  // when it was ordered
};

class Store {
 public:
    static constexpr uint32_t kCapacityMax = 1U << 26;

    // The place of a copy. The next put() may reuse the place of a removed one.
    using Slot = Id<struct SlotTag, uint32_t>;

    // Bytes of memory for `capacity` copies: 99 each. 0 if capacity is 0 or exceeds kCapacityMax.
    [[nodiscard]] static size_t memory_needed(uint32_t capacity) noexcept;
    // `capacity`: IPv4 copies, or half as many of connections with an IPv6 key. All memory is taken and
    // cleared here. InvalidArgument: a capacity that is out of range. Exhausted: the machine has not enough
    // memory. `secret` keys the hash, because clients choose their tuples.
    static Result<std::unique_ptr<Store>> create(uint32_t capacity, const HashKey& secret);

    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    // --- One writer at a time; the caller holds a lock ---

    // Whose connection a copy is of.
    enum class Origin : uint8_t {
        Other,  // another gateway's
        Own,    // this gateway's, before its process was started anew: another gateway has given it back
    };

    // Adds a copy. Both keys, source_kept, state, times and tags are held; numbers of Services, backends and
    // pools are not used. Unset: the store is full, or another copy has one of the two keys. No reader finds
    // a copy before it is complete.
    Slot put(const conn::Connection& copy, Origin origin = Origin::Other) noexcept;
    // Replaces state, last_seen and tags of a held copy; last_seen changes by steps of
    // conn::kTouchAfterUnits. A reader may see some of them before the others. False, and nothing is
    // replaced: a worker has taken the copy over, or `copy` has other keys than the held one.
    bool refresh(Slot slot, const conn::Connection& copy) noexcept;
    // Of a held copy: a worker that has refused it may examine it again.
    void forget_refusal(Slot slot) noexcept { refused_[slot.value].store(0, std::memory_order_relaxed); }
    // Of a held copy. A worker that has found it before may still take it over.
    void remove(Slot slot) noexcept;
    // Orders the worker to end a connection, unless a packet renews it first
    // (pipeline/opening/superseded.hpp). False: earlier orders wait for the worker.
    bool order_end(const OwnConnection& own) noexcept {
        return endings_[own.worker.value].push({own.unit, own.generation, own.connection.last_seen});
    }
    // Whether a worker has taken this held copy over.
    [[nodiscard]] bool is_taken(Slot slot) const noexcept;
    [[nodiscard]] bool is_held(Slot slot) const noexcept {
        return slot.value < table_.high_water() && table_.is_live(slot.value);
    }
    // A held copy; its Service, backend, pool and checksum differences are as in put().
    [[nodiscard]] conn::Connection at(Slot slot) const noexcept { return table_.connection({slot.value}); }
    // The slots from slots() on have never been used.
    [[nodiscard]] uint32_t slots() const noexcept { return table_.high_water(); }
    // Calls visit(slot) for each held copy among `count` slots from `first` on. The call may remove that
    // copy.
    template <typename Visit>
    void for_each(uint32_t first, uint32_t count, Visit&& visit) const {
        for (uint32_t at = first; at < slots() && at - first < count; ++at) {
            if (is_held(Slot{at})) {
                visit(Slot{at});
            }
        }
    }
    template <typename Visit>
    void for_each(Visit&& visit) const {
        for_each(0, slots(), visit);
    }

    // --- The worker of `self` ---

    // The next one of order_end().
    [[nodiscard]] std::optional<Ending> next_ending(WorkerId self) noexcept {
        return endings_[self.value].pop();
    }

    // --- Any thread ---

    // Copies held. In units of create(): a copy with an IPv6 key takes two of the capacity.
    [[nodiscard]] size_t size() const noexcept { return table_.size(); }
    [[nodiscard]] uint32_t capacity() const noexcept { return table_.capacity(); }
    [[nodiscard]] uint32_t units_used() const noexcept { return table_.units_used(); }

    // For readings that any thread may make (Sweep).
    [[nodiscard]] const conn::Table& table() const noexcept { return table_; }
    // Of a copy in table(), by the generation of its unit: one of this gateway that no worker has taken over.
    [[nodiscard]] bool is_own(uint32_t unit, uint32_t life, const conn::Connection& copy) const noexcept {
        return origin_of(copy) == Origin::Own && taken_[unit].load(std::memory_order_relaxed) != life;
    }
    [[nodiscard]] static Origin origin_of(const conn::Connection& copy) noexcept {
        return copy.is_pinned ? Origin::Own : Origin::Other;  // a copy is not pinned to anything
    }

    struct Found {
        Slot slot;
        uint32_t life = 0;  // of the slot: differs between two copies in it
        conn::Connection connection;
        conn::Direction direction = conn::Direction::Forward;  // of the key
        bool is_taken = false;                                 // a worker has taken it over
    };
    // The copy with this key. Bounded, and never waits for the writer. A copy that is found was held at some
    // moment during the call; last_seen, state and tags are each from some moment during it. A held copy is
    // missed only if each of kLookups attempts overlaps another put() that moves its key to the other bucket;
    // the next packet finds it.
    [[nodiscard]] std::optional<Found> find(const packet::FlowKey& key) const noexcept;
    // A worker has inserted the connection into its table. Does nothing if the copy was removed meanwhile.
    void mark_taken(const Found& found) noexcept;
    // A worker has refused to take the copy over under the configuration of this number
    // (config::Snapshot::generation).
    void mark_refused(const Found& found, uint64_t configuration) noexcept {
        refused_[found.slot.value].store(refusal_of(found, configuration), std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_refused(const Found& found, uint64_t configuration) const noexcept {
        return refused_[found.slot.value].load(std::memory_order_relaxed) == refusal_of(found, configuration);
    }

 private:
    static constexpr int kLookups = 4;

    struct Free {
        void operator()(std::byte* memory) const noexcept;
    };
    using Memory = std::unique_ptr<std::byte, Free>;
    using Marks = std::unique_ptr<std::atomic<uint32_t>[]>;

    Store(Memory memory, Marks taken, Marks refused, conn::Table table) noexcept;

    // Differs between two lives of a slot, and between two configurations.
    static uint32_t refusal_of(const Found& found, uint64_t configuration) noexcept {
        return found.life * 0x9e37'79b1U + static_cast<uint32_t>(configuration);
    }

    Memory memory_;  // of table_
    conn::Table table_;
    // By unit: the life that was taken over, or an earlier one.
    Marks taken_;
    // By unit: refusal_of() the last refusal.
    Marks refused_;
    static constexpr uint32_t kEndingsMax = 256;
    std::array<SpscQueue<Ending, kEndingsMax>, limits::kWorkersMax> endings_;
    // put() calls begun and ended. Changes while a key may be on its way between its two buckets.
    // On a line of its own: lookups read the members above.
    alignas(kCacheLine) std::atomic<uint32_t> puts_{0};
};

}  // namespace penstock::copies
