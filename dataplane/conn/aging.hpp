// Which idle time ends which connection, and the bounded sweep that ends them: a cursor walks the table's units, some each tick, and goes
// round once in kSweepPeriodMs. No timer wheel: a connection's limit changes with its state, and a sweep reads one line per entry, in
// order, which the processor prefetches by itself.
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
    // After a RST that refuses a SYN, or one from each side: long enough for stray segments of both sides to be translated rather than
    // answered, and no more. As long lives what an order resets: two sweeps, of which each probes again. After any other RST it is
    // tcp_closing_s: the RST may be forged, and the side that it names may be silent for a while before it shows that it lives.
    uint32_t tcp_closed_s = 10;
    // After each of the two probes of a connection that a FIN or a RST may have ended in another's name. Both are within tcp_closing_s. A
    // sweep, so that in a table of any size the second one has its time.
    uint32_t tcp_probed_s = 5;
    uint32_t udp_one_way_s = 30;  // and of an answered flow that has not lasted (is_brief), as in Linux
    uint32_t udp_two_way_s = 120;
    uint32_t sctp_half_open_s = 60;
    uint32_t sctp_established_s = 3'600;
    // From a SHUTDOWN on: two retransmissions at the longest interval (RTO.Max, RFC 9260, 16), as each restarts it.
    uint32_t sctp_closing_s = 120;
    // As of TCP: strays are still translated, and what an order ends is told so twice.
    uint32_t sctp_closed_s = 10;
};

// Of a UDP flow: no datagram has come when it was two seconds old, or three, as last_seen may lag by one (kTouchAfterUnits). Most often it
// is a question and its answer, and over; a datagram in another's name is answered, too. Two seconds are those after which Linux takes a
// flow of UDP for a stream.
[[nodiscard]] constexpr bool is_brief(CoarseTime opened_at, CoarseTime last_seen) noexcept {
    return units_between(opened_at, last_seen) < 2 * kTouchAfterUnits;
}

// The same in coarse units of this machine, computed once. Limits beyond half of what CoarseTime can tell apart (two years) are cut there.
// What a Service says of its own is converted when it is asked for: only the sweep does, and few Services do.
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
    // Whether a connection that has been idle for so long is to be probed (conn::probed).
    [[nodiscard]] bool is_probe_due(const Entry& entry, int32_t idle) const noexcept {
        if (!entry.is_tcp() || probed(entry.tcp_state()) == entry.tcp_state()) {
            return false;
        }
        const int32_t one_probe = limit_for(Protocol::Tcp, static_cast<uint8_t>(TcpState::FinForwardProbed));
        const int32_t limit = limit_for(Protocol::Tcp, entry.state);
        return idle > (limit > one_probe ? limit - 2 * one_probe : limit);
    }
    // The same of a connection of the table, an Entry or a Connection with its protocol. Its Service may say how long established and
    // answered flows live (ANN-03), brief ones included: it is the Service that knows how long its clients are silent.
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

// How often a worker calls tick(), and how long a full table may take to be swept: a connection outlives its limit by at most a second
// (the grain of last_seen) and this.
inline constexpr uint32_t kAgingTickMs = 1;
inline constexpr uint32_t kSweepPeriodMs = 5'000;

// Units that one tick may visit so that `capacity` of them are swept in kSweepPeriodMs: 53 for the default table.
[[nodiscard]] constexpr uint32_t units_per_tick(uint32_t capacity) noexcept {
    constexpr uint32_t kTicks = kSweepPeriodMs / kAgingTickMs;
    return capacity / kTicks + 1;
}
static_assert(uint64_t{units_per_tick(limits::kConnectionsDefault)} * (kSweepPeriodMs / kAgingTickMs) >=
              limits::kConnectionsDefault);
static_assert(units_per_tick(limits::kConnectionsDefault) <= 64, "a tick must stay short beside a burst");

// How readily a connection is given up for another one: a full table's, or one towards an endpoint whose SNAT ports are all taken
// (port_rest.hpp). Keep: never. Surplus: only in a full table, by a Service or client prefix that holds more than its share.
enum class Worth : uint8_t { Keep, Surplus, Brief, Finished, OneSided };
[[nodiscard]] Worth worth_of(const Entry& entry) noexcept;
[[nodiscard]] Worth worth_of(const Connection& connection) noexcept;

// What a connection is worth to one that wants room; of Surplus, how many its holder has.
struct Appraisal {
    Worth worth = Worth::Keep;
    uint32_t held = 0;
};
// A function of the caller's, for find_victims().
struct Appraiser {
    Appraisal (*appraise)(const void* self, const Entry& entry) noexcept;
    const void* self;
    [[nodiscard]] Appraisal operator()(const Entry& entry) const noexcept { return appraise(self, entry); }
};
// By worth_of() alone.
inline constexpr Appraiser kByWorth{
    [](const void*, const Entry& entry) noexcept { return Appraisal{worth_of(entry), 0}; }, nullptr};

// Connections to be given up so that one more fits: one, or the two IPv4 connections of a pair that another one wants.
struct Victims {
    std::array<ConnectionIndex, 2> index;
    uint32_t count = 0;
};

class Aging {
 public:
    explicit Aging(const Limits& limits) noexcept : limits_(limits) {}
    [[nodiscard]] const Limits& limits() const noexcept { return limits_; }

    // Visits the next `budget_units` units and erases the connections that are idle past their limit, each after expired(ConnectionIndex)
    // has given back what it holds; resetting(ConnectionIndex) is called for those that an order is ending and that stay, and
    // doubtful(ConnectionIndex), which returns whether it has sent a probe, for those that one is due of, in time for two. Returns how many
    // went.
    template <typename Expired, typename Resetting, typename Doubtful>
    uint32_t tick(Table& table, CoarseTime now, const IdleLimits& own_limits, uint32_t budget_units,
                  Expired&& expired, Resetting&& resetting, Doubtful&& doubtful) {
        const uint32_t end = table.high_water();
        uint32_t gone = 0;
        // Those that end are collected first and their buckets asked for, so that erasing many does not wait for memory one by one.
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

    // For a full table: among the next `budget_units` units the half-open or one-way connection that opened first, or none. By opening
    // time, because retransmitted SYNs must not keep a flood alive. Where there is none, the connection that both sides have closed, or a
    // RST has, and that was seen longest ago: two minutes of TIME-WAIT must not bound the rate of short connections, and forged SYNs and
    // RSTs must not fill the table. Where there is none of these either, the answered UDP flow that did not last and that was seen longest
    // ago; then one of Surplus whose holder has the most, the one of these that was seen longest ago. Never another one. `family` is that
    // of the connection that wants room, V6 for a mixed one: it needs a pair, and what lives in the pair goes together, no more readily
    // than the best of it. The caller gives back what they hold and erases them.
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
