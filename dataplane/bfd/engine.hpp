// SPDX-License-Identifier: Apache-2.0
// All BFD sessions of the gateway. One worker runs them between its bursts, so that the peers receive packets
// only while the workers make rounds (docs/adr/0049). Queues carry the orders of a thread of the control
// plane, and the changes for it.
//
// A packet of a session is sent only while all of these hold: every worker has made a round within two
// intervals of the session, and the control plane has not withheld packets. Then the peer detects the loss.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/spsc_queue.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/bfd/control_packet.hpp"
#include "dataplane/bfd/session.hpp"
#include "dataplane/stats/counters.hpp"

namespace penstock::bfd {

// From the control plane.
struct Order {
    // Remove: the peer gets AdminDown in one more packet.
    enum class Kind : uint8_t { Put, Remove };
    Kind kind = Kind::Put;
    Terms terms;  // of Remove: only the discriminator counts
    // With Put of a session that does not exist: it continues from here (an upgrade). State Down: it begins.
    Status former = {};
};

// To the control plane: the status of a session after a change that the routing daemon needs.
struct Change {
    uint32_t discriminator = 0;
    Status status;
};

// Since the session exists. UDP payload bytes.
struct Counts {
    stats::Tally received;
    stats::Tally received_bytes;
    stats::Tally sent;
    stats::Tally sent_bytes;
    stats::Tally withheld;    // due, but a worker or the control plane did not make rounds
    stats::Tally unsendable;  // due, but there was no next hop or no buffer
};

// Where a packet came from.
struct Origin {
    IpAddr source;
    IpAddr destination;
    NicPortId port;
    uint8_t ttl = 0;
    bool is_multihop = false;
};

// Whether each worker makes rounds, from their counters of rounds.
class RoundWatch {
 public:
    explicit RoundWatch(std::span<const stats::WorkerCounters* const> workers = {}) noexcept;
    // The longest time since the counter of a worker was last seen to move.
    [[nodiscard]] TscTicks longest_silence(TscTime now) noexcept;

 private:
    struct Seen {
        const stats::WorkerCounters* worker = nullptr;
        uint64_t rounds = 0;
        TscTime moved_at{};
    };
    std::array<Seen, limits::kWorkersMax> seen_{};
    uint32_t count_ = 0;
};

class Engine {
 public:
    // `salt`: random, for the jitter. `workers`: the counters of all workers; they outlive the engine.
    Engine(TscRate rate, uint64_t salt, std::span<const stats::WorkerCounters* const> workers) noexcept;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- One thread of the control plane ---

    // False: the queue is full; the worker has not read it for long.
    bool order(const Order& order) noexcept { return orders_.push(order); }
    std::optional<Change> take_change() noexcept { return changes_.pop(); }
    // The worker sends no packet while packets are withheld.
    void withhold(bool withheld) noexcept { withheld_.store(withheld, std::memory_order_relaxed); }
    [[nodiscard]] bool is_withheld() const noexcept { return withheld_.load(std::memory_order_relaxed); }
    // Null: the worker has no such session (yet).
    [[nodiscard]] const Counts* counts(uint32_t discriminator) const noexcept;

    // --- Any worker ---

    // Whether a packet from there can be of a session, by its TTL alone. A router in between cannot forward a
    // single-hop one, so a distant sender cannot make other workers hand its packets over.
    [[nodiscard]] bool may_be_of_session(const Origin& origin) const noexcept {
        return origin.is_multihop ? has_multihop_.load(std::memory_order_relaxed) : origin.ttl == kTtlMax;
    }

    // --- The worker that runs the sessions ---

    // Whether run() has something to do.
    [[nodiscard]] bool is_due(TscTime now) const noexcept { return now >= wakes_at_; }
    // A valid packet. False: it belongs to no session, or has a TTL that the session does not accept.
    bool receive(const ControlPacket& packet, const Origin& origin, TscTime now) noexcept;
    // Works off the orders, looks for peers that are silent, and calls `bool send(const Terms&, const
    // ControlPacket&)` for each packet that is due; false: it could not be sent.
    template <typename Send>
    void run(TscTime now, Send&& send) noexcept;

 private:
    static constexpr uint8_t kTtlMax = 255;
    // Orders of the control plane are read at least this often.
    static constexpr uint64_t kLookEveryMs = 2;

    struct Slot {
        std::atomic<uint32_t> discriminator{0};  // 0: free. Read by any thread
        Session session;
        Status reported;
        bool is_reported = false;
        bool ends = false;  // after its next packet
        Counts counts;
    };

    [[nodiscard]] Slot* find(uint32_t discriminator) noexcept;
    [[nodiscard]] Slot* find(const ControlPacket& packet, const Origin& origin) noexcept;
    void take_orders(TscTime now) noexcept;
    void put(const Order& order, TscTime now) noexcept;
    void report(Slot& slot) noexcept;
    [[nodiscard]] bool may_send(const Session& session, TscTime now) noexcept;

    TscRate rate_;
    uint64_t salt_;
    TscTime wakes_at_{};
    RoundWatch rounds_;
    std::array<Slot, limits::kBfdSessionsMax> slots_;
    std::atomic<bool> withheld_{false};
    std::atomic<bool> has_multihop_{false};
    SpscQueue<Order, 2 * limits::kBfdSessionsMax> orders_;
    SpscQueue<Change, 4 * limits::kBfdSessionsMax> changes_;
};

template <typename Send>
void Engine::run(TscTime now, Send&& send) noexcept {
    take_orders(now);
    wakes_at_ = now + rate_.milliseconds(kLookEveryMs);
    bool has_multihop = false;
    for (Slot& slot : slots_) {
        if (slot.discriminator.load(std::memory_order_relaxed) == 0) {
            continue;
        }
        slot.session.look(now);
        if (slot.session.is_due(now)) {
            if (!may_send(slot.session, now)) {
                slot.counts.withheld.add(1);
                slot.session.skip(now);
            } else if (const Terms& terms = slot.session.terms(); send(terms, slot.session.next(now))) {
                slot.counts.sent.add(1);
                slot.counts.sent_bytes.add(kControlPacketBytes);
            } else {
                slot.counts.unsendable.add(1);
            }
        }
        if (slot.ends) {
            slot.discriminator.store(0, std::memory_order_release);
            continue;
        }
        report(slot);
        has_multihop = has_multihop || slot.session.terms().is_multihop();
        wakes_at_ = std::min(wakes_at_, slot.session.wakes_at());
    }
    has_multihop_.store(has_multihop, std::memory_order_relaxed);
}

}  // namespace penstock::bfd
