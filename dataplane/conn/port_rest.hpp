// How long the SNAT port of a connection rests before it may serve another one, where every port towards an endpoint is taken
// (docs/adr/0009). A rest that is over makes the port safe to use again. Where none is over, pipeline/reclaim.hpp takes the connection that
// a full table would evict first.
#pragma once

#include <cstdint>

#include "dataplane/base/time.hpp"
#include "dataplane/conn/aging.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::conn {

// Half-open, from its first packet on. A handshake that loses two packets ends after 1 s + 2 s (RFC 6298, 2.1 and 5.5) and a round trip,
// for which a second is left.
inline constexpr uint32_t kHandshakeRestS = 4;

// UDP, from its last datagram on: a client that waits for an answer has asked again by then (2 to 5 s, RFC 1035, 4.2.1; 5 s in glibc and
// systemd-resolved), so a later answer to the first question is of no use to it, and would be mistaken by the port's next client only if
// the endpoint takes still longer. An SCTP association that is over, likewise: its verification tag tells late packets apart.
inline constexpr uint32_t kDatagramRestS = 5;

// Finished TCP, from its last segment on: TIME-WAIT of Linux (TCP_TIMEWAIT_LEN). Other stacks keep it for as long or longer; their answer
// to a SYN is a challenge ACK at worst.
inline constexpr uint32_t kTimeWaitRestS = 60;

// How far a client has come in a connection, or where its SYN begins a new one.
struct TcpProgress {
    uint32_t seq = 0;        // that it sends next, or its SYN's
    uint32_t timestamp = 0;  // packet::timestamp_of()
};

// Whether an endpoint that holds the connection in TIME-WAIT takes `syn` for a new one (RFC 6191, 2; Linux, tcp_timewait_state_process()).
// Timestamps decide where both have them and they differ, sequence numbers elsewhere.
[[nodiscard]] constexpr bool passes_time_wait(const TcpProgress& last, const TcpProgress& syn) noexcept {
    const auto is_after = [](uint32_t later, uint32_t earlier) {
        return static_cast<int32_t>(later - earlier) > 0;
    };
    const bool have_both = last.timestamp != 0 && syn.timestamp != 0 && last.timestamp != syn.timestamp;
    return have_both ? is_after(syn.timestamp, last.timestamp) : is_after(syn.seq, last.seq);
}

class PortRest {
 public:
    explicit PortRest(TscRate rate) noexcept
        : handshake_(units(rate, kHandshakeRestS)),
          // last_seen may lag by a second.
          datagram_(units(rate, kDatagramRestS + 1)),
          time_wait_(units(rate, kTimeWaitRestS + 1)) {}

    // Of a connection that is not worth keeping. `syn`: the numbers of the segment that wants the port; null where it is not TCP.
    [[nodiscard]] bool is_over(const Entry& entry, Worth worth, CoarseTime now,
                               const TcpProgress* syn) const noexcept {
        const int32_t silent = units_between(entry.last_seen, now);
        if (!entry.is_tcp()) {
            return silent > datagram_;
        }
        switch (worth) {
            case Worth::OneSided:
                return units_between(entry.opened_at, now) > handshake_;
            case Worth::Finished:
                return silent > time_wait_ || (entry.tcp_state() == TcpState::TimeWait && syn != nullptr &&
                                               passes_time_wait(progress_at_end(entry), *syn));
            default:
                return false;
        }
    }

    // Of a TCP connection whose client has sent its FIN (pipeline/reclaim.hpp): kept where the numbers of the handshake were.
    [[nodiscard]] static TcpProgress progress_at_end(const Entry& entry) noexcept {
        return {entry.tags[0], entry.tags[1]};
    }

 private:
    [[nodiscard]] static int32_t units(TscRate rate, uint32_t seconds) noexcept {
        return static_cast<int32_t>(CoarseClock(rate).units(rate.seconds(seconds)));
    }

    int32_t handshake_;
    int32_t datagram_;
    int32_t time_wait_;
};

}  // namespace penstock::conn
