// One connection: the entry that owns both flows. The two keys hold the whole translation, so nothing about it is stored twice: a forward
// packet leaves as reverse.reversed(), a reverse packet as forward.reversed().
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

// Forward: as the connection's first packet went.
enum class Direction : uint8_t { Forward = 0, Reverse = 1 };

// By arithmetic, because half of all packets go either way and a branch on it would be mispredicted half the time.
[[nodiscard]] constexpr Direction opposite(Direction direction) noexcept {
    return static_cast<Direction>(1 - static_cast<uint8_t>(direction));
}

// Where a TCP connection stands as its packets passed the gateway. tcp_state.hpp holds the transitions.
enum class TcpState : uint8_t {
    SynSent,  // the client's SYN has passed
    SynReceived,  // the backend's SYN has passed too; no ACK of the client's has shown that it receives the backend's segments
    PickedUp,  // of a connection that another gateway has opened; only the client has sent here so far (pipeline/new_flow.cpp)
    Established,  // the client has acknowledged what the backend has sent (docs/adr/0028)
    FinForward,   // the client has sent its FIN; the backend may go on sending
    FinReverse,   // the backend has sent its FIN
    TimeWait,     // both FINs have passed
    Closed,       // the backend has refused it by a RST, or each side has sent one
    Resetting,  // ended by an order: what either side still sends is answered by RSTs (pipeline/flow_orders.hpp)
    RstForward,  // a RST of the client's has passed, or of somebody who writes in its name (docs/adr/0028)
    RstReverse,  // the same of the backend's
    // As the four above that a FIN or a RST has passed in, after the long silence that would end them: the sides have been probed, to learn
    // whether the connection lives (pipeline/liveness.hpp)
    FinForwardProbed,
    FinReverseProbed,
    RstForwardProbed,
    RstReverseProbed,
    FinForwardProbedAgain,  // and a second time
    FinReverseProbedAgain,
    RstForwardProbedAgain,
    RstReverseProbedAgain,
};
inline constexpr uint8_t kTcpStates = 19;

// UDP: whether the backend has ever answered.
enum class DatagramState : uint8_t { OneWay, TwoWay };

// Where an SCTP association stands as its packets passed the gateway. sctp_state.hpp holds the transitions.
enum class SctpState : uint8_t {
    CookieWait,    // an INIT has passed
    CookieEchoed,  // the client has sent back the cookie that the backend gave it
    Established,   // the backend has accepted it
    Restarting,  // as established; but the client has sent a cookie with another tag, and may have begun anew (RFC 9260, 5.2)
    BackendRestarting,  // the same of the backend
    Shutdown,           // one side has nothing more to send and asks the other to finish
    ShutdownAcked,      // the other has finished
    Closed,             // that was confirmed, or an ABORT has passed
    Aborting,  // ended by an order: what either side still sends is answered by an ABORT (pipeline/flow_orders.hpp)
};
inline constexpr uint8_t kSctpStates = 9;

// "syn-sent", "established", ...; "one-way", "two-way"; "cookie-wait", ...
[[nodiscard]] std::string_view to_string(TcpState state) noexcept;
[[nodiscard]] std::string_view to_string(SctpState state) noexcept;
[[nodiscard]] std::string_view to_string(DatagramState state) noexcept;

// What the table is given and what it lists. In the table itself a connection is one or two cache lines (table.hpp).
struct Connection {
    packet::FlowKey forward;  // client -> frontend
    packet::FlowKey reverse;  // backend -> SNAT, or backend -> client where the source is kept
    CoarseTime last_seen;     // of either direction; written only when it has aged by kTouchAfterUnits
    CoarseTime opened_at;
    ServiceId service;
    BackendId backend;
    uint32_t snat_pool = 0;        // where the SNAT port goes back to; unused where the source is kept
    packet::FoldedDelta l4_delta;  // what a forward packet's checksums change by: TCP's or UDP's,
    packet::FoldedDelta ip_delta;  // and the IPv4 header's, hop count apart
    uint8_t state = 0;             // a TcpState, DatagramState or SctpState, by forward.protocol
    bool source_kept = false;      // no SNAT port is bound
    bool is_pinned = false;  // its Service has session affinity: established, it confirms its client's entry
    // Index in SnatConfig.addresses as it was when the connection opened: for counters only. The port goes back under the address that
    // reverse.destination names, because a configuration may renumber the addresses meanwhile.
    uint8_t snat_index = 0;
    // SCTP: the verification tag that packets of each Direction carry, which their receiver has chosen; 0 while it is not known. TCP that
    // is not established, and behind a RST: conn::SentNumbers (pipeline/handshake.hpp). TCP whose client has sent its FIN: the number
    // behind that, and its timestamp (port_rest.hpp).
    std::array<uint32_t, 2> tags{};

    [[nodiscard]] constexpr bool is_tcp() const noexcept { return forward.protocol == Protocol::Tcp; }
    [[nodiscard]] constexpr bool is_sctp() const noexcept { return forward.protocol == Protocol::Sctp; }
    [[nodiscard]] constexpr TcpState tcp_state() const noexcept { return static_cast<TcpState>(state); }
    [[nodiscard]] constexpr DatagramState datagram_state() const noexcept {
        return static_cast<DatagramState>(state);
    }
    [[nodiscard]] constexpr SctpState sctp_state() const noexcept { return static_cast<SctpState>(state); }
    // The state's name by the connection's protocol.
    [[nodiscard]] std::string_view state_name() const noexcept;
};

// A busy connection's entry would otherwise be a dirty cache line per packet. 16 units are half a second to a second; aging adds a second
// to every limit, so that nothing expires early.
inline constexpr int32_t kTouchAfterUnits = 16;

}  // namespace penstock::conn
