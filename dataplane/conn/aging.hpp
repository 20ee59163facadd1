// Which idle time ends which connection, and the bounded sweep that ends them: a cursor walks the table's entries, some each tick, and goes
// round once in kSweepPeriodMs. No timer wheel: a connection's limit changes with its state, and a sweep costs one line read per entry.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "dataplane/base/limits.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::conn {

// Idle seconds by state (NAT-008).
struct Timeouts {
    uint32_t tcp_half_open_s = 60;
    uint32_t tcp_established_s = 86'400;
    uint32_t tcp_closing_s = 120;
    // After a RST: long enough for stray segments of both sides to be translated rather than answered, and no more.
    uint32_t tcp_closed_s = 10;
    uint32_t udp_one_way_s = 30;
    uint32_t udp_two_way_s = 120;
    uint32_t sctp_half_open_s = 60;
    uint32_t sctp_established_s = 3'600;
};

// The same in ticks of this machine, computed once.
class TimeoutTicks {
 public:
    TimeoutTicks(const Timeouts& timeouts, TscRate rate) noexcept;
    [[nodiscard]] TscTicks limit_for(const Connection& connection) const noexcept {
        switch (connection.forward.protocol) {
            case Protocol::Tcp:
                return tcp_[connection.state];
            case Protocol::Udp:
                return udp_[connection.state];
            case Protocol::Sctp:
                return sctp_[connection.state];
        }
        return {0};
    }

 private:
    std::array<TscTicks, kTcpStates> tcp_;
    std::array<TscTicks, 2> udp_;
    std::array<TscTicks, 2> sctp_;
};

// How often a worker calls tick(), and how long a full table may take to be swept: a connection outlives its limit by at most kTouchAfterMs
// and this.
inline constexpr uint32_t kAgingTickMs = 1;
inline constexpr uint32_t kSweepPeriodMs = 5'000;

// Entries that one tick may visit so that `capacity` of them are swept in kSweepPeriodMs: 53 for the default table.
[[nodiscard]] constexpr uint32_t slots_per_tick(uint32_t capacity) noexcept {
    constexpr uint32_t kTicks = kSweepPeriodMs / kAgingTickMs;
    return capacity / kTicks + 1;
}
static_assert(uint64_t{slots_per_tick(limits::kConnectionsDefault)} * (kSweepPeriodMs / kAgingTickMs) >= limits::kConnectionsDefault);
static_assert(slots_per_tick(limits::kConnectionsDefault) <= 64, "a tick must stay short beside a burst");

class Aging {
 public:
    explicit Aging(const TimeoutTicks& limits) noexcept : limits_(limits) {}
    [[nodiscard]] const TimeoutTicks& limits() const noexcept { return limits_; }

    // Visits the next `budget_slots` entries and erases those idle past their limit, each after expired(ConnectionIndex, const Connection&)
    // has given back what it holds. Returns how many went.
    template <typename F>
    uint32_t tick(Table& table, TscTime now, uint32_t budget_slots, F&& expired) {
        const uint32_t end = table.high_water();
        uint32_t gone = 0;
        for (uint32_t left = std::min(budget_slots, end); left > 0; --left) {
            const uint32_t slot = next(sweep_cursor_, end);
            if (!table.is_live(slot)) {
                continue;
            }
            const ConnectionIndex index{slot};
            const Connection& connection = table.at(index);
            if (is_idle_past(connection.last_seen, now, limits_.limit_for(connection))) {
                expired(index, connection);
                table.erase(index);
                ++gone;
            }
        }
        return gone;
    }

    // For a full table: among the next `budget_slots` entries the half-open or one-way connection that opened first, or unset. By opening
    // time, because retransmitted SYNs must not keep a flood alive. Where there is none, the connection that both sides have closed and
    // that was seen longest ago: two minutes of TIME-WAIT must not bound the rate of short connections. Never another one that both sides
    // have taken part in; nor one that a RST has closed, because the RST may be forged. The caller gives back what it holds and erases it.
    [[nodiscard]] ConnectionIndex find_victim(const Table& table, uint32_t budget_slots) noexcept;

 private:
    static uint32_t next(uint32_t& cursor, uint32_t end) noexcept {
        if (cursor >= end) {
            cursor = 0;
        }
        return cursor++;
    }

    TimeoutTicks limits_;
    uint32_t sweep_cursor_ = 0;
    uint32_t victim_cursor_ = 0;
};

}  // namespace penstock::conn
