// The datagrams whose fragments are under way through one worker, and the fragments that wait for the first one of theirs. Only the first
// one tells the flow; what became of it (DatagramFate) becomes of the rest.
//
//   sets of 8 --> datagram: key, fate, what has been seen of it
//                    |  first          last
//                    '-> seat -> seat -> seat     of the datagram: its fragments that wait, in the order in which they came
//   ready ------------> seat -> seat -> ...       the fate is known: to be taken through the stages again
//   oldest --> datagram <-> datagram              with waiting fragments, by the time of their first: expiry looks only at the front
//
// A datagram leaves when all of it has passed, so only those that lost a fragment or are an attack stay for kDatagramMs. In a full set the
// oldest makes room, because what is complete is gone within milliseconds and what is left over is worth little; those with fragments
// that wait or that a burst works on are spared. Seats are few and not taken over: who came first stays, for kFragmentWaitMs. All memory is
// inside; nothing is allocated; each call is O(1), but for kPiecesMax pieces.
//
// What has been seen is kept as disjoint pieces, and each byte passes once. A fragment that brings nothing new is dropped alone: networks
// do duplicate packets. One that is part old and part new makes the datagram an attack (RFC 1858; RFC 5722), and nothing of it passes
// from then on.
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

// From a datagram's first fragment seen to its last one. They leave their sender back to back, and no queue on the way holds one for
// seconds; what is later is lost, and nobody sends a fragment again by itself. Receivers wait for 30 s (Linux) or 60 s (RFC 8200), but at
// 65,536 ids for each pair of hosts a fast sender is round in less than 5 s as it is (RFC 4963), and then a stale datagram spoils a fresh.
inline constexpr uint64_t kDatagramMs = 5'000;
// How long a fragment waits for the first one: that was overtaken by it on the way, which is a matter of milliseconds, or is lost.
inline constexpr uint64_t kFragmentWaitMs = 1'000;

// What became of a datagram's first fragment.
struct DatagramFate {
    enum class Kind : uint8_t {
        Unknown,  // it has not come yet
        Flow,     // it was of `connection`
        Handed,   // `worker` has it
        Host,     // Linux has it
        Relayed,  // Linux sent it, and it left as it was
        Dead,     // dropped, or answered
    };
    Kind kind = Kind::Unknown;
    conn::Direction direction = conn::Direction::Forward;
    WorkerId worker;
    uint8_t tried = 0;  // where handed: the candidate that it was (HandoffNote)
    ConnectionIndex connection;
    uint32_t generation = 0;  // of the connection: another one may have its place meanwhile
    // The identification that all of the datagram leaves with; empty: its sender's.
    std::optional<uint32_t> id = {};
    constexpr bool operator==(const DatagramFate&) const = default;
};

// Tells a datagram from others (RFC 791, 3.2; RFC 8200, 4.5), and one visit here from the next: a flow may have several candidate owners,
// and the last may be the worker that all fragments met at.
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

using SeatIndex = Id<struct SeatTag, uint16_t>;

class FragmentTable {
 public:
    // The key of the hash is secret, since anybody chooses addresses and ids.
    explicit FragmentTable(TscRate rate, const HashKey& secret = HashKey::random()) noexcept;
    FragmentTable(const FragmentTable&) = delete;
    FragmentTable& operator=(const FragmentTable&) = delete;

    // Notes a fragment that has come, of a known datagram or a new one. The index is good for this burst; served() must follow in it, or
    // wait(). FragmentOverlap, BadFragment (it contradicts the length that another one has shown), Fragment (the datagram is dead),
    // FragmentsFull (no room, or in too many pieces).
    [[nodiscard]] std::expected<DatagramIndex, DropReason> take(const DatagramKey& key,
                                                                const packet::FragmentPlace& place,
                                                                TscTime now) noexcept;
    // Whether the next take() with this key means a datagram that is there.
    [[nodiscard]] bool is_known(const DatagramKey& key, TscTime now) const noexcept;

    [[nodiscard]] const DatagramFate& fate(DatagramIndex datagram) const noexcept {
        return datagrams_[datagram.value].fate;
    }
    // What waits for it becomes ready.
    void decide(DatagramIndex datagram, const DatagramFate& fate) noexcept;
    // A fragment that was taken has met its verdict. The last one takes the datagram along.
    void served(DatagramIndex datagram) noexcept;

    // A seat for a fragment that was taken and must wait; unset where there is none for it. fill() must follow before the next burst.
    [[nodiscard]] SeatIndex wait(DatagramIndex datagram, TscTime now) noexcept;
    void fill(SeatIndex seat, rte_mbuf* handle, NicPortId port, HandoffNote note) noexcept;

    [[nodiscard]] bool has_ready() const noexcept { return ready_first_ != kEnd; }
    // Gives back one that is ready, oldest first, by `use(handle, port, note)`. It holds its datagram, note.waited_for, until served().
    template <typename Use>
    void take_ready(Use&& use) noexcept {
        const uint16_t at = std::exchange(ready_first_, seats_[ready_first_].next);
        Seat seat = seats_[at];
        seat.note.waited_for = seat.datagram;
        leave(at);
        use(seat.handle, seat.port, seat.note);
    }
    // Gives back, by `drop(handle)`, what has waited for kFragmentWaitMs or longer, and what waits with it for the same first fragment.
    template <typename Drop>
    void expire(TscTime now, Drop&& drop) noexcept {
        while (oldest_ != kEnd && ticks_between(datagrams_[oldest_].waits_since, now) >= wait_) {
            empty(oldest_, drop);
        }
    }
    // Everything: the worker stops.
    template <typename Drop>
    void clear(Drop&& drop) noexcept {
        while (oldest_ != kEnd) {
            empty(oldest_, drop);
        }
        while (has_ready()) {
            take_ready([&](rte_mbuf* handle, NicPortId, HandoffNote) { drop(handle); });
        }
    }

    [[nodiscard]] uint32_t waiting() const noexcept { return seats_taken_; }
    // How many datagrams are remembered, expired ones that nobody has come upon included. For tests; it counts.
    [[nodiscard]] uint32_t datagrams() const noexcept;

 private:
    static constexpr uint16_t kEnd = 0xffff;
    static constexpr uint32_t kWays = 8;
    static constexpr uint32_t kDatagrams = limits::kFragmentedDatagramsMax;
    static constexpr uint32_t kSeats = limits::kFragmentsWaitingMax;
    static constexpr uint32_t kSources = 256;       // that are told apart while they wait; more share a count
    static constexpr uint32_t kWaysWaitingMax = 4;  // the rest of a set is for who comes in order
    // Disjoint pieces of one datagram at once. In order there is one, backwards too; every second fragment of 64 first makes 32.
    static constexpr uint32_t kPiecesMax = 32;
    static_assert(kDatagrams % kWays == 0 && (kDatagrams & (kDatagrams - 1)) == 0 && kDatagrams <= kEnd &&
                  kSeats <= kEnd);

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
        uint16_t first = kEnd;  // seat
        uint16_t last = kEnd;
        uint16_t older = kEnd;  // datagram with waiting fragments
        uint16_t younger = kEnd;
        uint16_t total = 0;  // bytes; 0: not known yet
        uint8_t pieces = 0;
        std::array<Piece, kPiecesMax> seen{};
    };
    struct Seat {
        rte_mbuf* handle;
        HandoffNote note;
        DatagramIndex datagram;
        NicPortId port;
        uint8_t source;  // whose count it is in
        uint16_t next;   // of the datagram, of those that are ready, or of those that are free
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
    // A place of the set for a newcomer, or kEnd.
    [[nodiscard]] uint16_t make_room(uint32_t set, TscTime now) const noexcept;
    void forget(uint16_t at) noexcept { tags_[at] = 0; }
    // Empty where it is well.
    static std::expected<void, DropReason> note_piece(Datagram& datagram,
                                                      const packet::FragmentPlace& place) noexcept;
    void unlink(uint16_t at) noexcept;  // from those with waiting fragments
    void leave(uint16_t seat) noexcept;

    template <typename Drop>
    void empty(uint16_t at, Drop&& drop) noexcept {
        Datagram& datagram = datagrams_[at];
        unlink(at);
        datagram.fate = {.kind = DatagramFate::Kind::Dead};
        datagram.waiting = 0;
        while (datagram.first != kEnd) {
            const uint16_t seat = std::exchange(datagram.first, seats_[datagram.first].next);
            rte_mbuf* const handle = seats_[seat].handle;
            leave(seat);
            --datagram.under_way;
            drop(handle);
        }
    }

    TscTicks datagram_time_;
    TscTicks wait_;
    KeyedMix mix_;
    uint16_t oldest_ = kEnd, newest_ = kEnd;
    uint16_t ready_first_ = kEnd, ready_last_ = kEnd;
    uint16_t free_seat_ = 0;
    uint32_t seats_taken_ = 0;
    std::array<uint16_t, kSources> waiting_of_source_{};
    alignas(32) std::array<uint32_t, kDatagrams> tags_{};
    // Where its tag is set; else nothing has been written there.
    union {
        std::array<Datagram, kDatagrams> datagrams_;
    };
    std::array<Seat, kSeats> seats_;
};

}  // namespace penstock::pipeline
