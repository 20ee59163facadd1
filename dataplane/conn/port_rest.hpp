// SPDX-License-Identifier: Apache-2.0
// The rest time of the SNAT port of a connection, before another connection may use the port. It applies when
// every port towards an endpoint is taken (docs/adr/0009). After its rest the port is safe to reuse. If no
// port has completed its rest, pipeline/opening/reclaim.hpp evicts the connection that a full table would
// evict first.
#pragma once

#include <cstdint>

#include "dataplane/base/time.hpp"
#include "dataplane/conn/aging.hpp"
#include "dataplane/conn/table.hpp"

namespace penstock::conn {

// For a half-open connection, from its first packet on. A handshake that loses two packets ends after 1 s + 2
// s (RFC 6298, 2.1 and 5.5) and one round trip, for which one second is reserved.
inline constexpr uint32_t kHandshakeRestS = 4;

// For UDP, from the last datagram on. A client that waits for an answer has repeated its query by then (2 to
// 5 s, RFC 1035, 4.2.1; 5 s in glibc and systemd-resolved), so a later answer to the first query is useless
// to it. The port's next client would mistake it for its own answer only if the endpoint takes even longer.
// The same time applies to an SCTP association that is over: its verification tag distinguishes late packets.
inline constexpr uint32_t kDatagramRestS = 5;

// For finished TCP, from the last segment on: TIME-WAIT of Linux (TCP_TIMEWAIT_LEN). Other stacks keep
// TIME-WAIT as long or longer; at worst they answer a SYN with a challenge ACK.
inline constexpr uint32_t kTimeWaitRestS = 60;

// The position of a client in its connection, or the start of a new one in its SYN.
struct TcpProgress {
    uint32_t seq = 0;        // next sequence number of the client, or that of its SYN
    uint32_t timestamp = 0;  // packet::timestamp_of()
};

// Whether an endpoint that holds the connection in TIME-WAIT accepts `syn` as a new connection (RFC 6191, 2;
// Linux, tcp_timewait_state_process()). The timestamps decide if both segments have one and they differ,
// otherwise the sequence numbers.
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

    // For a connection that may be evicted. `syn`: the numbers of the segment that needs the port; null if it
    // is not TCP.
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

    // For a TCP connection after the client's FIN (pipeline/opening/reclaim.hpp). Stored in place of the
    // handshake's numbers.
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
