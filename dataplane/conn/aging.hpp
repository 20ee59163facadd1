// SPDX-License-Identifier: Apache-2.0
// Idle timeouts of connections, and the bounded sweep that removes expired ones. A cursor visits the table's
// units, some in each tick, and completes a round in kSweepPeriodMs. There is no timer wheel: a connection's
// limit changes with its state, and a sweep reads one line per entry in order, which the processor prefetches
// by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "dataplane/base/limits.hpp"
#include "dataplane/conn/flow_order.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/conn/tcp_state.hpp"

namespace penstock::conn {

// Idle seconds by state (NAT-008).
struct Timeouts {
    uint32_t tcp_half_open_s = 60;
    uint32_t tcp_established_s = 86'400;
    uint32_t tcp_closing_s = 120;
    // After a RST that refuses a SYN, or one RST from each side. Long enough to translate stray segments of
    // both sides instead of answering them. The same time applies to a connection that a flow order resets:
    // two sweeps, each of which sends probes. After any other RST the limit is tcp_closing_s. The RST may be
    // forged, and the side that it names may stay silent for a while before it shows that the connection is
    // alive.
    uint32_t tcp_closed_s = 10;
    // After each of the two probes of a connection that a FIN or a RST, possibly forged, may have ended. Both
    // probes fit within tcp_closing_s. One sweep, so that the second probe has its time in a table of any
    // size.
    uint32_t tcp_probed_s = 5;
    uint32_t udp_one_way_s = 30;  // also for an answered flow that did not last (is_brief), as in Linux
    uint32_t udp_two_way_s = 120;
    uint32_t sctp_half_open_s = 60;
    uint32_t sctp_established_s = 3'600;
    // From a SHUTDOWN on: two retransmissions at the longest interval (RTO.Max, RFC 9260, 16), as each
    // restarts the timeout.
    uint32_t sctp_closing_s = 120;
    // As for TCP: stray packets are still translated, and an association ended by an order is aborted twice.
    uint32_t sctp_closed_s = 10;
};

// For a UDP flow: no datagram has arrived after the flow was two seconds old, or three, as last_seen may lag
// by one second (kTouchAfterUnits). Most of these flows are a query and its answer, and are over; a spoofed
// datagram is answered, too. Linux also treats a UDP flow as a stream after two seconds.
[[nodiscard]] constexpr bool is_brief(CoarseTime opened_at, CoarseTime last_seen) noexcept {
    return units_between(opened_at, last_seen) < 2 * kTouchAfterUnits;
}

// The timeouts in coarse units of this machine, computed once. Limits beyond half the range of CoarseTime
// (two years) are capped. A Service's own timeouts are converted on use, because only the sweep needs them
// and few Services set them.
class Limits {
 public:
    Limits(const Timeouts& timeouts, TscRate rate) noexcept;
    [[nodiscard]] int32_t limit_for(Protocol protocol, uint8_t state) const noexcept {
        switch (protocol) {
            case Protocol::Tcp:
                return tcp_[state];
            case Protocol::Udp:
                return udp_[state];
            case Protocol::Sctp:
                return sctp_[state];
        }
        return 0;
    }
    // Whether a connection with this idle time is to be probed (conn::probed).
    [[nodiscard]] bool is_probe_due(const Entry& entry, int32_t idle) const noexcept {
        if (!entry.is_tcp() || probed(entry.tcp_state()) == entry.tcp_state()) {
            return false;
        }
        const int32_t one_probe = limit_for(Protocol::Tcp, static_cast<uint8_t>(TcpState::FinForwardProbed));
        const int32_t limit = limit_for(Protocol::Tcp, entry.state);
        return idle > (limit > one_probe ? limit - 2 * one_probe : limit);
    }
    // The limit of a connection of the table: an Entry, or a Connection with its protocol. The Service can
    // set the idle timeout of established and answered flows (ANN-03), brief ones included, because it
    // depends on how long its clients stay silent.
    template <typename Lived>
    [[nodiscard]] int32_t limit_for(Protocol protocol, const Lived& connection,
                                    const IdleLimits& own) const noexcept {
        const uint8_t state = connection.state;
        const uint32_t seconds = is_long_lived(protocol, state) ? own.of(connection.service) : 0;
        if (seconds != 0) {
            return units_of(seconds);
        }
        return protocol == Protocol::Udp && is_brief(connection.opened_at, connection.last_seen)
                   ? udp_[0]
                   : limit_for(protocol, state);
    }
    // kSweepPeriodMs: an expired connection stays in the table for this time at most.
    [[nodiscard]] int32_t sweep_period() const noexcept;

 private:
    [[nodiscard]] static constexpr bool is_long_lived(Protocol protocol, uint8_t state) noexcept {
        switch (protocol) {
            case Protocol::Tcp:
                return state == static_cast<uint8_t>(TcpState::Established);
            case Protocol::Udp:
                return state == static_cast<uint8_t>(DatagramState::TwoWay);
            case Protocol::Sctp:
                return state >= static_cast<uint8_t>(SctpState::Established) &&
                       state <= static_cast<uint8_t>(SctpState::BackendRestarting);
        }
        return false;
    }
    [[nodiscard]] int32_t units_of(uint32_t seconds) const noexcept;

    TscRate rate_;
    CoarseClock clock_;
    std::array<int32_t, kTcpStates> tcp_;
    std::array<int32_t, 2> udp_;
    std::array<int32_t, kSctpStates> sctp_;
};

// The interval of tick(), and the time in which a full table is swept. A connection outlives its limit by at
// most one second (the resolution of last_seen) plus this sweep period.
inline constexpr uint32_t kAgingTickMs = 1;
inline constexpr uint32_t kSweepPeriodMs = 5'000;

// Units that one tick visits so that `capacity` units are swept in kSweepPeriodMs: 53 for the default table.
[[nodiscard]] constexpr uint32_t units_per_tick(uint32_t capacity) noexcept {
    constexpr uint32_t kTicks = kSweepPeriodMs / kAgingTickMs;
    return capacity / kTicks + 1;
}
static_assert(uint64_t{units_per_tick(limits::kConnectionsDefault)} * (kSweepPeriodMs / kAgingTickMs) >=
              limits::kConnectionsDefault);
static_assert(units_per_tick(limits::kConnectionsDefault) <= 64, "a tick must stay short beside a burst");

// Eviction class of a connection, when another one needs its room in a full table or its SNAT port towards an
// endpoint without free ports (port_rest.hpp). Higher values are evicted first. Keep: never evicted. Surplus:
// evicted only from a full table, if its Service or client prefix holds more than its share.
enum class Worth : uint8_t { Keep, Surplus, Brief, Finished, OneSided };
[[nodiscard]] Worth worth_of(const Entry& entry) noexcept;
[[nodiscard]] Worth worth_of(const Connection& connection) noexcept;

// The eviction class of one connection; for Surplus, also the number of connections that its holder has.
struct Appraisal {
    Worth worth = Worth::Keep;
    uint32_t held = 0;
};
// The appraisal function of a caller of find_victims().
struct Appraiser {
    Appraisal (*appraise)(const void* self, const Entry& entry) noexcept;
    const void* self;
    [[nodiscard]] Appraisal operator()(const Entry& entry) const noexcept { return appraise(self, entry); }
};
// Classifies by worth_of() alone.
inline constexpr Appraiser kByWorth{
    [](const void*, const Entry& entry) noexcept { return Appraisal{worth_of(entry), 0}; }, nullptr};

// Connections to evict so that one more fits: one, or the two IPv4 connections of a pair that a two-unit
// connection needs.
struct Victims {
    std::array<ConnectionIndex, 2> index;
    uint32_t count = 0;
};

class Aging {
 public:
    explicit Aging(const Limits& limits) noexcept : limits_(limits) {}
    [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

    // Visits the next `budget_units` units and erases the connections past their idle limit, each after
    // expired(ConnectionIndex) has released its resources. Calls resetting(ConnectionIndex) for connections
    // under reset by an order that stay. Calls doubtful(ConnectionIndex) for connections that are due for a
    // probe, in time for two probes; it returns whether it sent one. Returns the number of erased
    // connections.
    template <typename Expired, typename Resetting, typename Doubtful>
    uint32_t tick(Table& table, CoarseTime now, const IdleLimits& own_limits, uint32_t budget_units,
                  Expired&& expired, Resetting&& resetting, Doubtful&& doubtful) {
        const uint32_t end = table.high_water();
        uint32_t gone = 0;
        // Expired connections are collected first and their buckets prefetched, so that erasing many does not
        // wait for memory one by one.
        std::array<ConnectionIndex, kEraseTogether> ends;
        uint32_t pending = 0;
        const auto erase_pending = [&] {
            for (uint32_t i = 0; i < pending; ++i) {
                expired(ends[i]);
                table.erase(ends[i]);
            }
            gone += pending;
            pending = 0;
        };
        for (uint32_t left = std::min(budget_units, end); left > 0; --left) {
            const uint32_t unit = next(sweep_cursor_, end);
            if (!table.is_live(unit)) {
                continue;
            }
            const Entry& entry = table.at({unit});
            const int32_t idle = units_between(entry.last_seen, now);
            if (limits_.is_probe_due(entry, idle) && doubtful(ConnectionIndex{unit})) {
                continue;
            }
            if (idle > limits_.limit_for(entry.protocol, entry, own_limits)) {
                table.prefetch_for_erase({unit});
                ends[pending++] = {unit};
                if (pending == ends.size()) {
                    erase_pending();
                }
            } else if (is_under_reset(entry)) {
                resetting(ConnectionIndex{unit});
            }
        }
        erase_pending();
        return gone;
    }

    // Selects the connections to evict from a full table, among the next `budget_units` units. The order of
    // preference:
    // 1. The half-open or one-way connection that opened first. The opening time counts, because
    //    retransmitted SYNs must not keep a flood alive.
    // 2. The least recently seen connection that both sides, or a RST, have closed. Two minutes of TIME-WAIT
    //    must not bound the rate of short connections, and forged SYNs and RSTs must not fill the table.
    // 3. The least recently seen answered UDP flow that did not last.
    // 4. A Surplus connection of the largest holder; of these, the least recently seen.
    // No other connection is evicted; the result may be empty. `family` is that of the connection that needs
    // room, V6 for a mixed one. It needs a pair: the connections of a pair are evicted together, and the pair
    // has the class of its most valuable connection. The caller releases the resources of the victims and
    // erases them.
    [[nodiscard]] Victims find_victims(const Table& table, IpFamily family, uint32_t budget_units,
                                       const Appraiser& appraise = kByWorth) noexcept;

 private:
    static constexpr uint32_t kEraseTogether = 16;

    static bool is_under_reset(const Entry& entry) noexcept {
        return (entry.is_tcp() && entry.tcp_state() == TcpState::Resetting) ||
               (entry.is_sctp() && entry.sctp_state() == SctpState::Aborting);
    }
    static uint32_t next(uint32_t& cursor, uint32_t end) noexcept {
        if (cursor >= end) {
            cursor = 0;
        }
        return cursor++;
    }

    Limits limits_;
    uint32_t sweep_cursor_ = 0;
    uint32_t victim_cursor_ = 0;
};

}  // namespace penstock::conn
