// SPDX-License-Identifier: Apache-2.0
// The datagrams with fragments passing through one worker, and the fragments that wait for the first
// fragment of their datagram. Only the first fragment has the L4 header and so identifies the flow. Its fate
// (DatagramFate) is applied to the others.
//
//   sets of 8 --> datagram: key, fate, bytes seen
//                    |  first          last
//                    '-> slot -> slot -> slot     the datagram's waiting fragments, in order of arrival
//   ready ------------> slot -> slot -> ...       fate known: to be passed through the stages again
//   oldest --> datagram <-> datagram              datagrams with waiting fragments, by the arrival of the
//                                                 first waiting one: expiry looks only at the front
//
// A datagram is removed when all of it has passed. Only datagrams with a lost fragment and attacks stay for
// kDatagramMs. In a full set the oldest datagram is evicted, because complete ones are gone within
// milliseconds and the remains are worth little. Datagrams with waiting fragments, or with fragments in the
// current burst, are not evicted. The slots for waiting fragments are few and never taken over: a
// fragment keeps its slot for kFragmentWaitMs. All memory is inside the table and nothing is allocated. Each
// call is O(1), except for up to kPiecesMax pieces.
//
// The bytes seen are kept as disjoint pieces, and each byte passes once. A fragment without new bytes is
// dropped alone, because networks duplicate packets. A fragment with both new and known bytes marks the
// datagram as an attack (RFC 1858; RFC 5722), and no further fragment of it passes.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <utility>

#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/match8.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/fragment.hpp"
#include "dataplane/pipeline/state/handoff.hpp"

struct rte_mbuf;

namespace penstock::pipeline {

// From a datagram's first seen fragment to its last one. The sender transmits them back to back, and no queue
// on the path holds one for seconds. A later fragment is lost, and single fragments are not retransmitted.
// Receivers wait for 30 s (Linux) or 60 s (RFC 8200). However, with 65,536 ids for each pair of hosts the ids
// of a fast sender repeat in less than 5 s (RFC 4963), and a stale datagram then corrupts a new one.
inline constexpr uint64_t kDatagramMs = 5'000;
// How long a fragment waits for the first one. The first one was overtaken on the path, which is a matter of
// milliseconds, or is lost.
inline constexpr uint64_t kFragmentWaitMs = 1'000;

// The fate of a datagram's first fragment.
struct DatagramFate {
    enum class Kind : uint8_t {
        Unknown,  // not received yet
        Flow,     // belongs to `connection`
        Handed,   // handed to `worker`
        Host,     // punted to Linux
        Relayed,  // sent by Linux, and transmitted unchanged
        Stray,    // forwarded to `gateway`
        Dead,     // dropped or answered
    };
    Kind kind = Kind::Unknown;
    conn::Direction direction = conn::Direction::Forward;
    WorkerId worker;
    uint8_t tried = 0;    // if handed: index of the candidate (HandoffNote)
    uint8_t gateway = 0;  // if stray: its number (shares/strays.hpp)
    ConnectionIndex connection;
    uint32_t generation = 0;  // of the connection: another one may have taken its slot meanwhile
    // The identification that the whole datagram leaves with; empty: the sender's.
    std::optional<uint32_t> id = {};
    constexpr bool operator==(const DatagramFate&) const = default;
};

// Identifies a datagram (RFC 791, 3.2; RFC 8200, 4.5) and one visit to this worker. A flow may have several
// candidate owners, and the last candidate may be the worker at which all fragments of the datagram are
// collected.
struct DatagramKey {
    IpAddr source;
    IpAddr destination;
    uint64_t rest = 0;  // of()
    static constexpr DatagramKey of(const IpAddr& source, const IpAddr& destination, uint8_t protocol,
                                    uint32_t id, const HandoffNote& note) noexcept {
        return {source, destination,
                id | uint64_t{protocol} << 32 | uint64_t{note.tried} << 40 | uint64_t{note.from_host} << 48};
    }
    constexpr bool operator==(const DatagramKey&) const = default;
};

using SlotIndex = Id<struct SlotTag, uint16_t>;

class FragmentTable {
 public:
    // The hash key is secret, because addresses and ids can be chosen by anyone on the network.
    explicit FragmentTable(TscRate rate, const HashKey& secret = HashKey::random()) noexcept;
    FragmentTable(const FragmentTable&) = delete;
    FragmentTable& operator=(const FragmentTable&) = delete;

    // Records a received fragment of a known or a new datagram. The index is valid for this burst, in which
    // served() or wait() must follow. Errors: FragmentOverlap; BadFragment (contradicts the length shown by
    // another fragment); Fragment (the datagram is dead); FragmentsFull (no room, or too many pieces).
    [[nodiscard]] std::expected<DatagramIndex, DropReason> take(const DatagramKey& key,
                                                                const packet::FragmentRange& place,
                                                                TscTime now) noexcept;
    // Whether the next take() with this key refers to an existing datagram.
    [[nodiscard]] bool is_known(const DatagramKey& key, TscTime now) const noexcept;

    [[nodiscard]] const DatagramFate& fate(DatagramIndex datagram) const noexcept {
        return datagrams_[datagram.value].fate;
    }
    // Sets the fate. The fragments that wait for it become ready.
    void decide(DatagramIndex datagram, const DatagramFate& fate) noexcept;
    // A fragment passed to take() has received its verdict. The last one removes the datagram.
    void served(DatagramIndex datagram) noexcept;

    // A slot for a taken fragment that must wait; unset if none is free for it. fill() must follow before the
    // next burst.
    [[nodiscard]] SlotIndex wait(DatagramIndex datagram, TscTime now) noexcept;
    void fill(SlotIndex slot, rte_mbuf* handle, NicPortId port, HandoffNote note) noexcept;

    [[nodiscard]] bool has_ready() const noexcept { return ready_first_ != kEnd; }
    // Returns one ready fragment, oldest first, by `use(handle, port, note)`. It keeps its datagram,
    // note.waited_for, in the table until served().
    template <typename Use>
    void take_ready(Use&& use) noexcept {
        const uint16_t at = std::exchange(ready_first_, slots_[ready_first_].next);
        Slot slot = slots_[at];
        slot.note.waited_for = slot.datagram;
        leave(at);
        use(slot.handle, slot.port, slot.note);
    }
    // Returns by `drop(handle)` the fragments that have waited for kFragmentWaitMs or longer, together with
    // those that wait for the same first fragment.
    template <typename Drop>
    void expire(TscTime now, Drop&& drop) noexcept {
        while (oldest_ != kEnd && ticks_between(datagrams_[oldest_].waits_since, now) >= wait_) {
            empty(oldest_, drop);
        }
    }
    // Returns all fragments: the worker stops.
    template <typename Drop>
    void clear(Drop&& drop) noexcept {
        while (oldest_ != kEnd) {
            empty(oldest_, drop);
        }
        while (has_ready()) {
            take_ready([&](rte_mbuf* handle, NicPortId, HandoffNote) { drop(handle); });
        }
    }

    [[nodiscard]] uint32_t waiting() const noexcept { return slots_taken_; }
    // Number of datagrams in the table, including expired ones that no lookup has met. For tests; counts all
    // slots.
    [[nodiscard]] uint32_t datagrams() const noexcept;

 private:
    static constexpr uint16_t kEnd = 0xffff;
    static constexpr uint32_t kWays = 8;
    static constexpr uint32_t kDatagrams = limits::kFragmentedDatagramsMax;
    static constexpr uint32_t kSlots = limits::kFragmentsWaitingMax;
    // distinguished while fragments wait; more than these share a count
    static constexpr uint32_t kSources = 256;
    // the rest of a set is for datagrams with fragments in order
    static constexpr uint32_t kWaysWaitingMax = 4;
    // Disjoint pieces of one datagram at a time. Fragments in order, forward or backward, make one piece. If
    // every second of 64 fragments comes first, they make 32.
    static constexpr uint32_t kPiecesMax = 32;
    static_assert(kDatagrams % kWays == 0 && (kDatagrams & (kDatagrams - 1)) == 0 && kDatagrams <= kEnd &&
                  kSlots <= kEnd);

    struct Piece {
        uint16_t begin;
        uint16_t end;
    };
    struct Datagram {
        DatagramKey key;
        TscTime since;
        TscTime waits_since;
        DatagramFate fate;
        uint16_t under_way = 0;  // fragments that were taken and not yet served
        uint16_t waiting = 0;
        uint16_t first = kEnd;  // slot
        uint16_t last = kEnd;
        uint16_t older = kEnd;  // datagram with waiting fragments
        uint16_t younger = kEnd;
        uint16_t total = 0;  // bytes; 0: not yet known
        uint8_t pieces = 0;
        std::array<Piece, kPiecesMax> seen{};
    };
    struct Slot {
        rte_mbuf* handle;
        HandoffNote note;
        DatagramIndex datagram;
        NicPortId port;
        uint8_t source;  // the source whose count includes it
        uint16_t next;   // in the list of the datagram, of ready slots or of free slots
    };
    static uint32_t tag_of(uint64_t hash) noexcept { return static_cast<uint32_t>(hash) | 1; }  // 0: free
    static uint32_t set_of(uint64_t hash) noexcept {
        return static_cast<uint32_t>(hash >> 32) & (kDatagrams / kWays - 1);
    }
    [[nodiscard]] uint64_t hash_of(const DatagramKey& key) const noexcept;
    [[nodiscard]] bool is_expired(const Datagram& datagram, TscTime now) const noexcept {
        return datagram.under_way == 0 && ticks_between(datagram.since, now) >= datagram_time_;
    }
    [[nodiscard]] uint16_t find_in(uint32_t set, uint32_t tag, const DatagramKey& key) const noexcept;
    // A slot of the set for a new datagram, or kEnd.
    [[nodiscard]] uint16_t make_room(uint32_t set, TscTime now) const noexcept;
    void forget(uint16_t at) noexcept { tags_[at] = 0; }
    // Empty on success.
    static std::expected<void, DropReason> note_piece(Datagram& datagram,
                                                      const packet::FragmentRange& place) noexcept;
    void unlink(uint16_t at) noexcept;  // from the datagrams with waiting fragments
    void leave(uint16_t slot) noexcept;

    template <typename Drop>
    void empty(uint16_t at, Drop&& drop) noexcept {
        Datagram& datagram = datagrams_[at];
        unlink(at);
        datagram.fate = {.kind = DatagramFate::Kind::Dead};
        datagram.waiting = 0;
        while (datagram.first != kEnd) {
            const uint16_t slot = std::exchange(datagram.first, slots_[datagram.first].next);
            rte_mbuf* const handle = slots_[slot].handle;
            leave(slot);
            --datagram.under_way;
            drop(handle);
        }
    }

    TscTicks datagram_time_;
    TscTicks wait_;
    KeyedMix mix_;
    uint16_t oldest_ = kEnd, newest_ = kEnd;
    uint16_t ready_first_ = kEnd, ready_last_ = kEnd;
    uint16_t free_slot_ = 0;
    uint32_t slots_taken_ = 0;
    std::array<uint16_t, kSources> waiting_of_source_{};
    alignas(32) std::array<uint32_t, kDatagrams> tags_{};
    // Valid only if the tag is set; otherwise never written.
    union {
        std::array<Datagram, kDatagrams> datagrams_;
    };
    std::array<Slot, kSlots> slots_;
};

}  // namespace penstock::pipeline
