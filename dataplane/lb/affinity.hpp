// SPDX-License-Identifier: Apache-2.0
// Session affinity by client address: one table, shared by all workers, that maps a client of a service port
// to its backend (AFF-001). The client's next flow gets the same backend, on any frontend, source port and
// worker. If the ports of a Service share their entries (AffinityScope::Service), an entry contains the
// endpoint without its port. Only new flows of Services with affinity use the table. The caller provides the
// memory, its size is fixed, and nothing blocks: every operation ends after a bounded number of tries. If a
// flow's operation has not succeeded by then, the flow gets no entry.
//
//   keyed hash of (owner, epoch, client)
//      | high bits                                         one bucket, four cache lines
//      v                                                   +----------------------------------------------+
//   [bucket][bucket] .. [bucket]                           | state: version | claimed slots | live slots  |
//                                                          | 7 tags: low bits of each entry's hash        |
//                                                          | 7 slots: client | owner, epoch | value       |
//                                                          +----------------------------------------------+
//   value: new | tentative | stay | endpoint | time of the last new flow
//   State, tags and the first slot share a cache line.
//
// An entry is tentative until a flow of its client is established, which only the client itself can achieve
// (for TCP and SCTP; docs/adr/0018). A tentative entry is valid, so that flows which a client opens at the
// same time get one backend, but a full bucket evicts it first. An entry is new until a flow has been opened
// with it.
//
// The protocol. `state` alone determines the contents of a bucket. Every change of it is a read-modify-write,
// and every change that claims, publishes or removes raises the version. A slot's key is written only by the
// thread that has claimed the slot, and a claimed slot is not live:
//
//   1. scan      read the state, compare the live slots
//   2. claim     compare-and-swap: a free slot becomes claimed. If none is free, a live one (victim())
//      becomes claimed and is no longer live.
//   3. write     tag, key and value, by release stores
//   4. publish   scan again, then compare-and-swap from the state of that scan: claimed becomes live. If
//      another worker has made the key live meanwhile, its entry is used and the claim is released.
//
// Why each client has one entry. A slot becomes live only in step 4, from a state in which all live slots
// were compared and have other keys. When the swap succeeds, the live slots and their keys are unchanged:
// changing a key requires claiming its slot, which raises the version, and the version does not repeat (50
// bits). So if two workers insert one client at the same time, one of them publishes first. The other's swap
// fails, its next scan finds the entry, and both flows get its backend (AFF-009).
//
// Why an entry is read consistently. A scan trusts a match only if the state has not changed since it was
// read. A thread that read a word written by a later claimant (release) has acquired it, and with it the
// preceding claim; its second read of the state then shows the change. A thread that read the state has
// acquired the words that each publisher wrote before its swap, because read-modify-writes continue a release
// sequence. No fence is needed, so ThreadSanitizer sees all of it.
//
// Why it terminates. A compare-and-swap fails only if another worker's succeeded, and each flow succeeds at
// most three times. A flow that still fails after kTries, or finds every slot claimed, gets no entry. A
// worker that is stopped within steps 2 to 4 only blocks one slot for the others.
//
// The value of a live slot changes in place in two ways only, and neither moves a client: a newer time for
// the same backend, with one or both marks cleared (open, establish), and the end of a new entry (withdraw).
// Both compare the whole value, so a late one fails if the slot has another client and therefore another
// value. Even if backend and time (to within the burst) are equal, the other client at worst loses an entry
// with which no flow has been opened yet.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "dataplane/base/cpu.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::lb {

struct AffinityKey {
    AffinityOwner owner;
    uint32_t epoch = 0;
    IpAddr client;
    bool operator==(const AffinityKey&) const = default;
};

// A copy of one entry, for listing, sweeping and clearing.
struct AffinityEntry {
    AffinityKey key;
    EndpointId endpoint;
    uint16_t stay = 0;
    CoarseTime refreshed;
    [[nodiscard]] bool is_past(CoarseTime now, int32_t limit) const noexcept {
        return units_between(refreshed, now) >= limit;
    }
};

// A copy of one entry of a former process (AffinityTable::for_each_former). Nothing about it is certain.
struct FormerAffinityEntry : AffinityEntry {
    bool is_tentative = false;
};

namespace detail {
struct AffinitySlot {
    std::atomic<uint64_t> client[2];
    std::atomic<uint64_t> owner;  // AffinityOwner << 32 | epoch
    std::atomic<uint64_t> value;
};
struct alignas(kCacheLine) AffinityBucket {
    static constexpr uint32_t kSlots = 7;
    std::atomic<uint64_t> state;
    std::array<std::atomic<uint8_t>, kSlots> tags;
    alignas(32) std::array<AffinitySlot, kSlots> slots;
};
static_assert(sizeof(AffinitySlot) == 32 && sizeof(AffinityBucket) == 4 * kCacheLine);
}  // namespace detail

// A handle: copies share the memory.
class AffinityTable {
 public:
    // A lookup: the new flow's key, the backends it may get, and the lifetime of an entry since its last new
    // flow, in coarse units.
    struct Question {
        AffinityKey key;
        const BackendSet& set;
        CoarseTime now;
        int32_t limit = 0;
    };
    // A flow's reference to its client's entry, until the flow is opened or not: then open() or withdraw().
    struct Pin {
        std::atomic<uint64_t>* value = nullptr;  // null: no entry
        uint64_t word = 0;                       // as it was found or written
        // The value that withdraw() restores; equal to `word` if another flow wrote it.
        uint64_t before = 0;
        // The value of the slot after that other flow has withdrawn its entry.
        uint64_t nothing = 0;
    };
    struct Answer {
        static constexpr uint32_t kNone = EndpointPositions::kNone;
        uint32_t position = kNone;  // in the set
        Pin pin;
        bool evicted = false;  // another client lost its entry
    };

    // Without entries: for tests and tools that have no Services with affinity.
    AffinityTable() = default;
    // Memory for at least this number of entries; 0 for 0.
    [[nodiscard]] static size_t memory_needed(uint32_t entries) noexcept;
    // Clears and lays out `memory`, which must outlive the table and begin on a cache line. InvalidArgument
    // if the memory is unsuitable.
    static Result<AffinityTable> create(std::span<std::byte> memory, uint32_t entries, const HashKey& secret);

    // --- Any worker ---

    // The client's backend, if its entry is valid and its endpoint is in the set with the same stay;
    // otherwise position kNone. Reads two cache lines.
    [[nodiscard]] Answer find(const Question& question) const noexcept;
    // Call after find() returned none. Enters the backend at `wanted` for the client, or returns the backend
    // that another worker has entered meanwhile. Never kNone; without a pin if no slot was available.
    [[nodiscard]] Answer agree(const Question& question, uint32_t wanted) noexcept;
    // The time when a flow of the client was last opened, as read by find().
    [[nodiscard]] static CoarseTime refreshed(const Pin& pin) noexcept {
        return {static_cast<uint32_t>(pin.word)};
    }
    // The flow is open. This restarts the timer of a tentative entry (AFF-004), but not that of an
    // established one, because a flow can be opened with a spoofed client address.
    static void open(const Pin& pin, CoarseTime now) noexcept;
    // A flow of the client to the backend at `position` is established: that backend's entry is no longer
    // tentative, and its timer restarts. If the entry was evicted meanwhile, it is inserted again, if
    // necessary by evicting another one (reported in `evicted`). An entry with another backend is unchanged.
    struct Established {
        bool evicted = false;
    };
    Established establish(const Question& question, uint32_t position) noexcept;
    // The flow could not be opened: an entry that this flow alone has created or changed is restored, and its
    // timer is not restarted.
    static void withdraw(const Pin& pin) noexcept;

    // --- Any thread ---

    [[nodiscard]] uint32_t buckets() const noexcept { return static_cast<uint32_t>(buckets_.size()); }
    [[nodiscard]] uint32_t capacity() const noexcept { return buckets() * detail::AffinityBucket::kSlots; }
    // Number of entries, expired ones included. Reads every bucket's first line: a millisecond for a quarter
    // of a million.
    [[nodiscard]] uint32_t size() const noexcept;
    // Calls `visit` for each entry until it returns false. Each entry is consistent; the walk is not a
    // snapshot in time.
    void for_each(const std::function<bool(const AffinityEntry&)>& visit) const;
    // Removes the entries for which `is_dead` returns true from `count` buckets starting at `first`, and
    // returns their number. A flow that refreshes such an entry at the same moment is too late. A bucket that
    // workers change continuously is skipped.
    uint32_t remove_if(uint32_t first, uint32_t count,
                       const std::function<bool(const AffinityEntry&)>& is_dead);

    // --- At start ---

    // Calls `visit` for each live entry in the memory of a table that a former process left, which may be
    // damaged in any way.
    static void for_each_former(std::span<const std::byte> memory,
                                const std::function<void(const FormerAffinityEntry&)>& visit);
    // Enters the backend at `wanted` with question.now as the time of its last new flow. False: the number of
    // entries has not grown, because the client has one already, there is no room, or another one was
    // evicted.
    bool adopt(const Question& question, uint32_t wanted, bool is_tentative) noexcept;

 private:
    using Bucket = detail::AffinityBucket;
    struct Hashed {
        Bucket* bucket;
        uint64_t client[2];
        uint64_t owner;
        uint64_t nothing;
        uint8_t tag;
    };
    struct Sight {
        uint32_t slot = Answer::kNone;
        uint64_t value = 0;
    };
    [[nodiscard]] Hashed hashed(const AffinityKey& key) const noexcept;
    [[nodiscard]] static Sight scan(const Hashed& at, uint64_t state) noexcept;
    enum class Entrant : uint8_t { Tentative, Established };
    [[nodiscard]] Answer enter(const Question& question, uint32_t wanted, Entrant entrant) noexcept;
    // The slot that a new entry takes in a bucket: a free one, or the one to evict; kNone if there is none.
    [[nodiscard]] static uint32_t victim(const Hashed& at, uint64_t state, const Question& question,
                                         Entrant entrant) noexcept;
    // Copies the live slots of a bucket, by slot, from one consistent state; false if it changed too often.
    static bool copy(const Bucket& bucket, uint64_t& state,
                     std::array<AffinityEntry, Bucket::kSlots>& entries) noexcept;

    std::span<Bucket> buckets_;
    KeyedMix mix_;
};

}  // namespace penstock::lb
