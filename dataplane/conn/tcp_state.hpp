// TCP as a middlebox sees it: transitions as a table [state][direction][flag class], after Linux's nf_conntrack_proto_tcp, reduced to what
// decides a timeout. Sequence windows are not tracked: a forged RST therefore only shortens the idle limit, and traffic that goes on keeps
// the connection (Closed passes packets).
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::conn {

enum class TcpAction : uint8_t {
    Pass,     // translate and forward; the state is `next`
    Offer,    // the same for a segment with SYN, which offers a segment size (pipeline/offered_mss.hpp)
    End,      // the same, and with this packet the connection is no longer open (SCHED-003)
    Reset,    // answer with RSTs to both sides instead of forwarding
    Reopen,   // a new connection on an old tuple: drop the old entry and treat the packet as the first of a new one
    Invalid,  // drop (InvalidTcpFlags): no stack sends these flags, or none sends them in this state
};

struct TcpStep {
    TcpState next;
    TcpAction action;
};

// What of the flags matters here. PSH, ECE and CWR may accompany anything, URG what carries data.
enum class TcpFlagClass : uint8_t { Syn, SynAck, Ack, Fin, Rst, Invalid };
inline constexpr uint8_t kTcpFlagClasses = 6;

[[nodiscard]] constexpr TcpFlagClass classify(packet::TcpFlags flags) noexcept {
    using F = packet::TcpFlags;
    switch (flags.bits & (F::kSyn | F::kAck | F::kFin | F::kRst)) {
        case F::kSyn:
            return TcpFlagClass::Syn;
        case F::kSyn | F::kAck:
            return TcpFlagClass::SynAck;
        case F::kAck:
            return TcpFlagClass::Ack;
        case F::kFin | F::kAck:
            return TcpFlagClass::Fin;
        case F::kRst:
        case F::kRst | F::kAck:
            return TcpFlagClass::Rst;
        default:
            return TcpFlagClass::Invalid;  // none of them, SYN with FIN or RST, FIN without ACK
    }
}

// Half-open or established: what schedulers that count open flows count. The table passes from such a state to the others by End alone, and
// never back.
[[nodiscard]] constexpr bool is_open(TcpState state) noexcept {
    return state < TcpState::TimeWait;
}

// Only a packet of class Syn opens a connection (pipeline/admit.cpp).
inline constexpr TcpState kTcpOpeningState = TcpState::SynSent;

namespace detail {
// One cell spelt short, so that the table below can be read as one.
consteval TcpStep to(TcpState next) {
    return {next, TcpAction::Pass};
}
consteval TcpStep end(TcpState next) {
    return {next, TcpAction::End};
}
consteval TcpStep reset(TcpState state) {
    return {state, TcpAction::Reset};
}
consteval TcpStep reopen(TcpState state) {
    return {state, TcpAction::Reopen};
}
consteval TcpStep invalid(TcpState state) {
    return {state, TcpAction::Invalid};
}

using Row = std::array<TcpStep, kTcpFlagClasses>;
// What passes with a SYN is an Offer: the column says it, so the cells need not.
consteval std::array<std::array<Row, 2>, kTcpStates> with_offers(std::array<std::array<Row, 2>, kTcpStates> transitions) {
    for (std::array<Row, 2>& of_state : transitions) {
        for (Row& row : of_state) {
            for (const TcpFlagClass with_syn : {TcpFlagClass::Syn, TcpFlagClass::SynAck}) {
                TcpAction& action = row[static_cast<size_t>(with_syn)].action;
                action = action == TcpAction::Pass ? TcpAction::Offer : action;
            }
        }
    }
    return transitions;
}
using enum TcpState;
// A SYN in Established or half-closed is passed and changes nothing: the backend answers with a challenge ACK (RFC 5961, 4) and, where the
// client has really forgotten the connection, its RST closes ours.
inline constexpr std::array<std::array<Row, 2>, kTcpStates> kTransitions = with_offers({{
    // clang-format off
    //  SYN                  SYN+ACK               ACK                   FIN                   RST         none or contradictory
    // SynSent. A lone ACK from the backend is its challenge ACK from an earlier connection on this tuple (RFC 5961, 4); the client answers
    // with a RST, which ends that connection, and sends its SYN again (Linux since 2020 within two ticks). That SYN must leave by the same
    // SNAT port, which is clear now; a fresh one may be in TIME-WAIT too, and then the client waits for its retransmission timer.
    {{{to(SynSent),          invalid(SynSent),     invalid(SynSent),     invalid(SynSent),    to(SynSent), invalid(SynSent)},
      {to(SynReceived),      to(SynReceived),      to(SynSent),          invalid(SynSent),    end(Closed), invalid(SynSent)}}},
    // SynReceived. SYN+ACK from the client: simultaneous open (RFC 9293, 3.5).
    {{{to(SynReceived),      to(SynReceived),      to(Established),      to(FinForward),      end(Closed), invalid(SynReceived)},
      {to(SynReceived),      to(SynReceived),      to(SynReceived),      to(FinReverse),      end(Closed), invalid(SynReceived)}}},
    // Established. SYN+ACK from the backend again: the client's ACK was lost behind us.
    {{{to(Established),      invalid(Established), to(Established),      to(FinForward),      end(Closed), invalid(Established)},
      {invalid(Established), to(Established),      to(Established),      to(FinReverse),      end(Closed), invalid(Established)}}},
    // FinForward
    {{{to(FinForward),       invalid(FinForward),  to(FinForward),       to(FinForward),      end(Closed), invalid(FinForward)},
      {invalid(FinForward),  to(FinForward),       to(FinForward),      end(TimeWait),        end(Closed), invalid(FinForward)}}},
    // FinReverse
    {{{to(FinReverse),       invalid(FinReverse),  to(FinReverse),      end(TimeWait),        end(Closed), invalid(FinReverse)},
      {invalid(FinReverse),  to(FinReverse),       to(FinReverse),       to(FinReverse),      end(Closed), invalid(FinReverse)}}},
    // TimeWait. A client may reuse its port at once (RFC 9293, 3.6.1); a fresh SNAT port keeps it clear of the backend's TIME-WAIT.
    {{{reopen(TimeWait),     invalid(TimeWait),    to(TimeWait),         to(TimeWait),         to(Closed), invalid(TimeWait)},
      {invalid(TimeWait),    to(TimeWait),         to(TimeWait),         to(TimeWait),         to(Closed), invalid(TimeWait)}}},
    // Closed
    {{{reopen(Closed),       invalid(Closed),      to(Closed),           to(Closed),           to(Closed), invalid(Closed)},
      {invalid(Closed),      to(Closed),           to(Closed),           to(Closed),           to(Closed), invalid(Closed)}}},
    // Resetting. A SYN is of a client that has forgotten the connection, or never got the backend's SYN+ACK: a new one. A RST goes to the
    // other side, where it ends what there is to end, or is not accepted.
    {{{reopen(Resetting),    invalid(Resetting),   reset(Resetting),     reset(Resetting),  to(Resetting), invalid(Resetting)},
      {invalid(Resetting),   reset(Resetting),     reset(Resetting),     reset(Resetting),  to(Resetting), invalid(Resetting)}}},
    // clang-format on
}});
}  // namespace detail

[[nodiscard]] constexpr TcpStep step(TcpState state, Direction direction, packet::TcpFlags flags) noexcept {
    return detail::kTransitions[static_cast<size_t>(state)][static_cast<size_t>(direction)][static_cast<size_t>(classify(flags))];
}

namespace detail {
// Whoever subtracts at End and at the removal of what is still open subtracts once.
consteval bool end_is_where_open_ends() {
    for (size_t state = 0; state < kTcpStates; ++state) {
        for (const Row& row : kTransitions[state]) {
            for (const TcpStep& cell : row) {
                const bool leaves = is_open(static_cast<TcpState>(state)) && !is_open(cell.next);
                if (leaves != (cell.action == TcpAction::End) || (!is_open(static_cast<TcpState>(state)) && is_open(cell.next))) {
                    return false;
                }
            }
        }
    }
    return true;
}
static_assert(end_is_where_open_ends());
}  // namespace detail

// What has no TCP flags is refused in every state. That is how a packet of an association, whose entries share the look-up by state, leaves
// the path of established TCP without a question of its own (pipeline/track.hpp).
namespace detail {
consteval bool none_passes_without_flags() {
    for (const auto& of_state : kTransitions) {
        for (const Row& row : of_state) {
            if (row[static_cast<size_t>(classify(packet::TcpFlags{}))].action != TcpAction::Invalid) {
                return false;
            }
        }
    }
    return true;
}
static_assert(none_passes_without_flags() && kSctpStates <= kTcpStates);
}  // namespace detail

[[nodiscard]] constexpr DatagramState step(DatagramState state, Direction direction) noexcept {
    static_assert(static_cast<uint8_t>(Direction::Reverse) == static_cast<uint8_t>(DatagramState::TwoWay));
    return static_cast<DatagramState>(static_cast<uint8_t>(state) | static_cast<uint8_t>(direction));  // an answer makes it two-way
}

}  // namespace penstock::conn
