// Session affinity by client address: one table for all workers that remembers which backend a client of a service port has (AFF-001), so
// that its next flow gets it too, whatever frontend, source port and worker it comes by. Where the ports of a Service share their entries
// (AffinityScope::Service), an entry names the endpoint without its port. Only new flows of Services with affinity look here. The memory is
// handed in, its size is fixed, and nothing blocks: every step ends after a bounded number of tries, and what was not settled by then is a
// flow without an entry.
//
//   keyed hash of (owner, epoch, client)
//      | high bits                                             one bucket, four cache lines
//      v                                                       +--------------------------------------------------+
//   [bucket][bucket] .. [bucket]                               | state: version | claimed slots | live slots      |
//                                                              | 7 tags: low bits of each entry's hash            |
//                                                              | 7 slots: client | owner, epoch | value           |
//                                                              +--------------------------------------------------+
//   value: new | tentative | stay | endpoint | time of the last new flow  state, tags and the first slot share a line
//
// An entry is tentative until a flow of its client is established, which only the client can do (of TCP and SCTP; docs/adr/0018). Until
// then it counts all the same, so that flows which a client opens at once get one backend; but a full bucket gives it up first. It is new
// until a flow has been opened with it.
//
// The protocol. `state` alone decides what is in a bucket; every change of it is a read-modify-write, and every one that claims, publishes
// or removes raises the version. A slot's key is written only by who has claimed it, and a claimed slot is not live:
//
//   1. scan      read the state, compare the live slots
//   2. claim     compare-and-swap: a free slot becomes claimed; where none is free, a live one (victim()) becomes claimed and is live no
//   more
//   3. write     tag, key and value, by release stores
//   4. scan again, then publish by compare-and-swap from the state of that scan: claimed becomes live. Where the key has become live
//      meanwhile, by another worker, its entry holds and the claim is given back.
//
// Why each client has one entry. A slot becomes live only in step 4, from a state whose live slots were all compared and found to be of
// other keys. They are still the same ones with the same keys when the swap succeeds: to change a key its slot must be claimed, which
// raises the version, and the version never comes back (50 bits). So of two workers that insert one client at the same time one publishes
// first, the other's swap fails, its next scan finds the entry, and both flows have its backend (AFF-009).
//
// Why an entry is read whole. A scan trusts a match only where the state has not changed since it was read. Whoever read a word that a
// later claimant wrote (release) has acquired it, and with it the claim that came before: then the second read of the state tells. Whoever
// read the state has acquired what each publisher wrote before its swap, because read-modify-writes continue its release sequence. No fence
// is needed, so ThreadSanitizer sees all of it.
//
// Why it ends. A compare-and-swap fails only where another worker's succeeded, and each flow succeeds three times at most; who still
// fails after kTries, or finds every slot claimed, goes without an entry. A worker that is stopped within steps 2 to 4 keeps one slot from
// the others, nothing else.
//
// The value of a live slot changes in place in two ways only, neither of which moves a client: a newer time for the same backend, without
// one of the marks or both (open, establish), and the end of a new one (withdraw). These compare the whole value, so one that comes too
// late, when the slot has another client, finds another value. Should even the backend be the same and the time, to within the burst, the
// other client at worst loses an entry of which no flow is open yet.
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

// A copy of one entry, for who lists, sweeps or clears.
struct AffinityEntry {
    AffinityKey key;
    EndpointId endpoint;
    uint16_t stay = 0;
    CoarseTime refreshed;
    [[nodiscard]] bool is_past(CoarseTime now, int32_t limit) const noexcept {
        return units_between(refreshed, now) >= limit;
    }
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
    // Who asks: the new flow's key, the backends it may have, and how long an entry holds since its last new flow, in coarse units.
    struct Question {
        AffinityKey key;
        const BackendSet& set;
        CoarseTime now;
        int32_t limit = 0;
    };
    // What a flow has of its client's entry until it is known whether the flow can be opened: then open() or withdraw().
    struct Pin {
        std::atomic<uint64_t>* value = nullptr;  // null: no entry
        uint64_t word = 0;                       // as it was found or written
        uint64_t before = 0;   // what withdraw() brings back; equal to `word` where another flow wrote it
        uint64_t nothing = 0;  // what stands there when that other flow has withdrawn its own
    };
    struct Answer {
        static constexpr uint32_t kNone = EndpointPositions::kNone;
        uint32_t position = kNone;  // in the set
        Pin pin;
        bool evicted = false;  // another client lost its entry
    };

    AffinityTable() =
        default;  // remembers nothing: size for tests and tools that have no Services with affinity
    // For at least so many entries; 0 where that is 0.
    [[nodiscard]] static size_t memory_needed(uint32_t entries) noexcept;
    // Clears and lays out `memory`, which must outlive the table and begin on a cache line. InvalidArgument names what does not fit.
    static Result<AffinityTable> create(std::span<std::byte> memory, uint32_t entries, const HashKey& secret);

    // --- Any worker ------------------------------------------------------------------------------------------------------------------

    // The client's backend, where its entry holds and names one of the set in its present stay; else position kNone. Two cache lines.
    [[nodiscard]] Answer find(const Question& question) const noexcept;
    // After find() found none: the client's backend from now on is the one at `wanted`, or the one that another worker has given it
    // meanwhile. Never kNone; without a pin where no slot could be had.
    [[nodiscard]] Answer agree(const Question& question, uint32_t wanted) noexcept;
    // When a flow of the client was last opened, as find() saw it.
    [[nodiscard]] static CoarseTime refreshed(const Pin& pin) noexcept {
        return {static_cast<uint32_t>(pin.word)};
    }
    // The flow is open. The timer of a tentative entry starts again (AFF-004); that of another one does not, because anybody can open a
    // flow in its client's name.
    static void open(const Pin& pin, CoarseTime now) noexcept;
    // A flow of the client to the backend at `position` is established: that backend's entry is no longer tentative, and its timer starts
    // again. Where the entry has been given up meanwhile, it is there again, if need be in place of another one, which `evicted` tells.
    // Where it names another backend, it stays as it is.
    struct Established {
        bool evicted = false;
    };
    Established establish(const Question& question, uint32_t position) noexcept;
    // The flow could not be opened: an entry that it alone has made or changed is as before, and the timer was not started.
    static void withdraw(const Pin& pin) noexcept;

    // --- Any thread ------------------------------------------------------------------------------------------------------------------

    [[nodiscard]] uint32_t buckets() const noexcept { return static_cast<uint32_t>(buckets_.size()); }
    [[nodiscard]] uint32_t capacity() const noexcept { return buckets() * detail::AffinityBucket::kSlots; }
    // Entries, of which some may have expired. Reads every bucket's first line: a millisecond for a quarter of a million.
    [[nodiscard]] uint32_t size() const noexcept;
    // Calls `visit` for each entry until it answers false. Each is whole; the walk is no snapshot in time.
    void for_each(const std::function<bool(const AffinityEntry&)>& visit) const;
    // Removes what `is_dead` says of `count` buckets from `first` on; how many. A flow that refreshes such an entry at the same moment
    // comes too late. A bucket that workers change all the while is left as it is.
    uint32_t remove_if(uint32_t first, uint32_t count,
                       const std::function<bool(const AffinityEntry&)>& is_dead);

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
    // The slot of a bucket without a free one that makes room; kNone: none does.
    [[nodiscard]] static uint32_t victim(const Hashed& at, uint64_t state, const Question& question,
                                         Entrant entrant) noexcept;
    // The live slots of a bucket in one state of it, by slot; false where it changed too often.
    static bool copy(const Bucket& bucket, uint64_t& state,
                     std::array<AffinityEntry, Bucket::kSlots>& entries) noexcept;

    std::span<Bucket> buckets_;
    KeyedMix mix_;
};

}  // namespace penstock::lb
