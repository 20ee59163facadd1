// SPDX-License-Identifier: Apache-2.0
// One connection: the entry that owns both flows. The two keys hold the whole translation, so nothing about
// it is stored twice. A forward packet leaves as reverse.reversed(), a reverse packet as forward.reversed().
//
//                client -> frontend                 SNAT (or client) -> backend
//   forward key  ------------------>   [gateway]   ---------------------------->  reverse.reversed()
//                <------------------               <----------------------------
//             forward.reversed()                      reverse key: backend -> SNAT
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/packet/checksum.hpp"
#include "dataplane/packet/flow_key.hpp"

namespace penstock::conn {

// Forward: the direction of the connection's first packet.
enum class Direction : uint8_t { Forward = 0, Reverse = 1 };

// Arithmetic instead of a branch: half of all packets go either way, so a branch would be mispredicted half
// the time.
[[nodiscard]] constexpr Direction opposite(Direction direction) noexcept {
    return static_cast<Direction>(1 - static_cast<uint8_t>(direction));
}

// The state of a TCP connection, derived from the packets that passed the gateway. tcp_state.hpp holds the
// transitions.
enum class TcpState : uint8_t {
    SynSent,  // the client's SYN has passed
    // The backend's SYN has passed too. No ACK from the client has confirmed yet that it receives the
    // backend's segments.
    SynReceived,
    // A connection that another gateway opened; only the client has sent packets here so far
    // (pipeline/opening/pick_up.hpp).
    PickedUp,
    Established,  // the client has acknowledged what the backend has sent (docs/adr/0028)
    FinForward,   // the client has sent its FIN; the backend may continue to send
    FinReverse,   // the backend has sent its FIN
    TimeWait,     // both FINs have passed
    Closed,       // the backend has refused the connection by a RST, or each side has sent a RST
    // Ended by an order: any further packet of either side is answered by RSTs (pipeline/flow_orders.hpp).
    Resetting,
    // A RST from the client has passed; it may be spoofed (docs/adr/0028).
    RstForward,
    RstReverse,  // the same for the backend
    // As the four states above after a FIN or a RST, but after the long silence that would end them. The
    // sides have been probed to check whether the connection is alive (pipeline/liveness.hpp).
    FinForwardProbed,
    FinReverseProbed,
    RstForwardProbed,
    RstReverseProbed,
    FinForwardProbedAgain,  // probed a second time
    FinReverseProbedAgain,
    RstForwardProbedAgain,
    RstReverseProbedAgain,
};
inline constexpr uint8_t kTcpStates = 19;

// UDP: whether the backend has ever answered.
enum class DatagramState : uint8_t { OneWay, TwoWay };

// The state of an SCTP association, derived from the packets that passed the gateway. sctp_state.hpp holds
// the transitions.
enum class SctpState : uint8_t {
    CookieWait,    // an INIT has passed
    CookieEchoed,  // the client has returned the backend's cookie
    Established,   // the backend has accepted it
    // As established, but the client has sent a cookie with another tag and may have restarted (RFC 9260,
    // 5.2).
    Restarting,
    BackendRestarting,  // the same for the backend
    Shutdown,           // one side has no more data and requests the shutdown
    ShutdownAcked,      // the other side has finished
    Closed,             // the shutdown was confirmed, or an ABORT has passed
    // Ended by an order: any further packet of either side is answered by an ABORT
    // (pipeline/flow_orders.hpp).
    Aborting,
};
inline constexpr uint8_t kSctpStates = 9;

// "syn-sent", "established", ...; "one-way", "two-way"; "cookie-wait", ...
[[nodiscard]] std::string_view to_string(TcpState state) noexcept;
[[nodiscard]] std::string_view to_string(SctpState state) noexcept;
[[nodiscard]] std::string_view to_string(DatagramState state) noexcept;

// Whether connections of `protocol` have a state of this number. False for an unknown protocol.
[[nodiscard]] bool is_state(Protocol protocol, uint8_t state) noexcept;

// The value that is inserted into the table and listed from it. In the table itself a connection takes one or
// two cache lines (table.hpp).
struct Connection {
    packet::FlowKey forward;  // client -> frontend
    packet::FlowKey reverse;  // backend -> SNAT, or backend -> client if the source is kept
    CoarseTime last_seen;     // of either direction; written only when it has aged by kTouchAfterUnits
    CoarseTime opened_at;
    ServiceId service;
    BackendId backend;
    uint32_t snat_pool = 0;        // the pool of the SNAT port; unused if the source is kept
    packet::FoldedDelta l4_delta;  // change of a forward packet's checksums: of TCP or UDP,
    packet::FoldedDelta ip_delta;  // and of the IPv4 header, hop count excluded
    uint8_t state = 0;             // a TcpState, DatagramState or SctpState, by forward.protocol
    bool source_kept = false;      // no SNAT port is bound
    // Its Service has session affinity: once established, the connection confirms its client's affinity
    // entry.
    bool is_pinned = false;
    // Index in SnatConfig.addresses when the connection opened; for counters only. The port is released under
    // the address in reverse.destination, because a later configuration may renumber the addresses.
    uint8_t snat_index = 0;
    // SCTP: the verification tag, chosen by the receiver, that packets of each Direction carry; 0 if unknown.
    // TCP before it is established, and behind a RST: conn::SentNumbers (pipeline/handshake.hpp). TCP after
    // the client's FIN: the sequence number after that FIN, and its timestamp (port_rest.hpp).
    std::array<uint32_t, 2> tags{};

    [[nodiscard]] constexpr bool is_tcp() const noexcept { return forward.protocol == Protocol::Tcp; }
    [[nodiscard]] constexpr bool is_sctp() const noexcept { return forward.protocol == Protocol::Sctp; }
    [[nodiscard]] constexpr TcpState tcp_state() const noexcept { return static_cast<TcpState>(state); }
    [[nodiscard]] constexpr DatagramState datagram_state() const noexcept {
        return static_cast<DatagramState>(state);
    }
    [[nodiscard]] constexpr SctpState sctp_state() const noexcept { return static_cast<SctpState>(state); }
    // The name of the state, according to the connection's protocol.
    [[nodiscard]] std::string_view state_name() const noexcept;
};

// Without this limit, each packet of a busy connection would make its entry a dirty cache line. 16 units are
// between half a second and one second. Aging adds one second to every limit, so that nothing expires early.
inline constexpr int32_t kTouchAfterUnits = 16;

}  // namespace penstock::conn
