// SPDX-License-Identifier: Apache-2.0
// The TCP state machine of a middlebox: transitions as a table [state][direction][flag class]. It is derived
// from Linux's nf_conntrack_proto_tcp and reduced to the transitions that determine a timeout.
//
// Sequence windows are not tracked. A segment that passes may therefore be one that its receiver rejects:
// spoofed, or from an earlier connection on the tuple. Two kinds of segments are not trusted (docs/adr/0028):
// the client's ACK of a handshake, and a RST. In both cases the connection becomes established when the
// client acknowledges data that the endpoint has sent (conn/sent_numbers.hpp). A sender that only has the
// tuple cannot do this, and a client that has reset the connection does not.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::conn {

enum class TcpAction : uint8_t {
    Pass,    // translate and forward; the state is `next`
    Offer,   // the same for a segment with SYN, which offers an MSS (pipeline/offered_mss.hpp)
    End,     // the same, and with this packet the connection is no longer open (SCHED-003)
    Revive,  // the same, and with this packet it is open again
    // The same, and the sequence numbers of the backend's segment are recorded (pipeline/handshake.hpp).
    Note,
    // The same if those numbers allow the client's ACK number; the connection is then open. Otherwise the
    // state stays.
    Verify,
    // The same as Pass, for a FIN of the client; its numbers are recorded (pipeline/opening/reclaim.hpp).
    Finish,
    Reset,  // answer with RSTs to both sides instead of forwarding
    // A new connection on an old tuple: drop the old entry and treat the packet as the first of a new one.
    Reopen,
    // Drop (InvalidTcpFlags): no stack sends these flags, or none sends them in this state.
    Invalid,
};

struct TcpStep {
    TcpState next;
    TcpAction action;
};

// The flags that matter here. PSH, ECE and CWR may accompany any class, URG any segment with data.
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

// Half-open or established: the connections that schedulers count as open flows. The table leaves such a
// state only by End, and returns to one only by Revive and Verify.
[[nodiscard]] constexpr bool is_open(TcpState state) noexcept {
    return state < TcpState::TimeWait || state == TcpState::FinForwardProbed ||
           state == TcpState::FinReverseProbed || state == TcpState::FinForwardProbedAgain ||
           state == TcpState::FinReverseProbedAgain;
}

// A RST has passed that may be spoofed (docs/adr/0028).
[[nodiscard]] constexpr bool is_behind_rst(TcpState state) noexcept {
    return state == TcpState::RstForward || state == TcpState::RstReverse ||
           state == TcpState::RstForwardProbed || state == TcpState::RstReverseProbed ||
           state == TcpState::RstForwardProbedAgain || state == TcpState::RstReverseProbedAgain;
}

// The state after the next probe, if the FIN or RST that passed may be spoofed. The same state if no probe,
// or no further probe, is due.
[[nodiscard]] constexpr TcpState probed(TcpState state) noexcept {
    switch (state) {
        case TcpState::FinForward:
            return TcpState::FinForwardProbed;
        case TcpState::FinReverse:
            return TcpState::FinReverseProbed;
        case TcpState::RstForward:
            return TcpState::RstForwardProbed;
        case TcpState::RstReverse:
            return TcpState::RstReverseProbed;
        case TcpState::FinForwardProbed:
            return TcpState::FinForwardProbedAgain;
        case TcpState::FinReverseProbed:
            return TcpState::FinReverseProbedAgain;
        case TcpState::RstForwardProbed:
            return TcpState::RstForwardProbedAgain;
        case TcpState::RstReverseProbed:
            return TcpState::RstReverseProbedAgain;
        default:
            return state;
    }
}

// Only a packet of class Syn opens a connection (pipeline/opening/admit.cpp). A packet of class Ack may
// reveal an existing connection, which is then PickedUp.
inline constexpr TcpState kTcpOpeningState = TcpState::SynSent;

namespace detail {
// Short names for the cells, to keep the table below readable.
consteval TcpStep to(TcpState next) {
    return {next, TcpAction::Pass};
}
consteval TcpStep end(TcpState next) {
    return {next, TcpAction::End};
}
consteval TcpStep revive(TcpState next) {
    return {next, TcpAction::Revive};
}
consteval TcpStep note(TcpState next) {
    return {next, TcpAction::Note};
}
consteval TcpStep verify(TcpState next) {
    return {next, TcpAction::Verify};
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

using StepsByFlags = std::array<TcpStep, kTcpFlagClasses>;
using TcpTransitions = std::array<std::array<StepsByFlags, 2>, kTcpStates>;  // by state and direction
// A Pass with a SYN becomes an Offer, a Pass with a FIN of the client a Finish. The column implies it, so the
// cells do not repeat it.
consteval TcpTransitions with_columns(TcpTransitions transitions) {
    for (std::array<StepsByFlags, 2>& of_state : transitions) {
        for (StepsByFlags& row : of_state) {
            for (const TcpFlagClass with_syn : {TcpFlagClass::Syn, TcpFlagClass::SynAck}) {
                TcpAction& action = row[static_cast<size_t>(with_syn)].action;
                action = action == TcpAction::Pass ? TcpAction::Offer : action;
            }
        }
        TcpAction& action =
            of_state[static_cast<size_t>(Direction::Forward)][static_cast<size_t>(TcpFlagClass::Fin)].action;
        action = action == TcpAction::Pass ? TcpAction::Finish : action;
    }
    return transitions;
}
using enum TcpState;
// The second probe has the transitions of the first, but it is the last.
consteval TcpTransitions with_second_probes(TcpTransitions transitions) {
    for (const TcpState first : {FinForwardProbed, FinReverseProbed, RstForwardProbed, RstReverseProbed}) {
        std::array<StepsByFlags, 2>& second = transitions[static_cast<size_t>(probed(first))];
        second = transitions[static_cast<size_t>(first)];
        for (StepsByFlags& row : second) {
            for (TcpStep& cell : row) {
                cell.next = cell.next == first ? probed(first) : cell.next;
            }
        }
    }
    // A RST moves the second probe to the same state as the first.
    for (const auto& [fin, rst] : {std::pair{FinForwardProbedAgain, RstForwardProbedAgain},
                                   {FinReverseProbedAgain, RstReverseProbedAgain}}) {
        for (StepsByFlags& row : transitions[static_cast<size_t>(fin)]) {
            TcpStep& cell = row[static_cast<size_t>(TcpFlagClass::Rst)];
            cell.next = probed(cell.next) == rst ? rst : cell.next;
        }
    }
    return transitions;
}
// The client's ACK of the handshake may be spoofed by a sender that sees none of the backend's segments. An
// ACK that the backend drops (a wrong checksum, a TTL that ends behind the gateway) is not answered by a RST.
// Therefore only an ACK number that the backend's SYN+ACK allows establishes the connection; any other leaves
// it half-open.
//
// A SYN in Established or a half-closed state, and behind a RST, passes and changes nothing. A backend that
// has the connection answers with a challenge ACK (RFC 5961, 4). If the client has really lost the
// connection, it answers that with a RST, which clears the backend's connection for the next SYN. A backend
// without the connection answers with SYN+ACK. So two spoofed packets, a RST and a SYN, cannot replace a live
// connection by a new one.
inline constexpr TcpTransitions kTransitions = with_second_probes(with_columns({{
    // clang-format off
    // Columns; the sixth, unnamed one is for no or contradictory flags:
    //  SYN                  SYN+ACK               ACK                   FIN                   RST
    // SynSent. A lone ACK from the backend is its challenge ACK from an earlier connection on this tuple (RFC
    // 5961, 4). The client answers with a RST, which ends that connection, and retransmits its SYN (Linux
    // since 2020 within two ticks). That SYN must leave by the same SNAT port, which is free now. A new port
    // may be in TIME-WAIT too, and then the client waits for its retransmission timer.
    {{{to(SynSent),          invalid(SynSent),     invalid(SynSent),     invalid(SynSent),     to(SynSent),     invalid(SynSent)},
      {note(SynReceived),    note(SynReceived),    to(SynSent),          invalid(SynSent),     end(Closed),     invalid(SynSent)}}},
    // SynReceived. SYN+ACK from the client: simultaneous open (RFC 9293, 3.5). ACK from the backend: data
    // before the handshake is over (RFC 7413), or the answer to a second SYN. A RST may be spoofed here as in
    // later states.
    {{{to(SynReceived),      verify(Established),  verify(Established),  verify(FinForward),   end(RstForward), invalid(SynReceived)},
      {note(SynReceived),    note(SynReceived),    note(SynReceived),    to(FinReverse),       end(RstReverse), invalid(SynReceived)}}},
    // PickedUp. The backend that has the connection continues it, or its handshake; another backend refuses
    // by a RST. If the client's first ACK number is the next number of the backend, the connection is
    // Established at once (pipeline/handshake.cpp). After a RST, from either side, the client's next segment
    // is picked up anew once this entry has been removed.
    {{{to(PickedUp),         invalid(PickedUp),    to(PickedUp),         to(PickedUp),         end(Closed),     invalid(PickedUp)},
      {invalid(PickedUp),    note(SynReceived),    note(SynReceived),    to(FinReverse),       end(Closed),     invalid(PickedUp)}}},
    // Established. SYN+ACK from the backend: it was overtaken, or the client's ACK was lost behind the
    // gateway. SYN+ACK from the client: simultaneous open, and the backend's SYN+ACK was lost.
    {{{to(Established),      to(Established),      to(Established),      to(FinForward),       end(RstForward), invalid(Established)},
      {invalid(Established), to(Established),      to(Established),      to(FinReverse),       end(RstReverse), invalid(Established)}}},
    // FinForward
    {{{to(FinForward),       invalid(FinForward),  to(FinForward),       to(FinForward),       end(RstForward), invalid(FinForward)},
      {invalid(FinForward),  to(FinForward),       to(FinForward),       end(TimeWait),        end(RstReverse), invalid(FinForward)}}},
    // FinReverse
    {{{to(FinReverse),       invalid(FinReverse),  to(FinReverse),       end(TimeWait),        end(RstForward), invalid(FinReverse)},
      {invalid(FinReverse),  to(FinReverse),       to(FinReverse),       to(FinReverse),       end(RstReverse), invalid(FinReverse)}}},
    // TimeWait. A client may reuse its port at once (RFC 9293, 3.6.1); a new SNAT port avoids the backend's
    // TIME-WAIT. A RST must not end that state (RFC 1337), and must not end the rest of the SNAT port here
    // either.
    {{{reopen(TimeWait),     invalid(TimeWait),    to(TimeWait),         to(TimeWait),         to(TimeWait),    invalid(TimeWait)},
      {invalid(TimeWait),    to(TimeWait),         to(TimeWait),         to(TimeWait),         to(TimeWait),    invalid(TimeWait)}}},
    // Closed. Segments of either side that are still in flight pass, within the shorter limit of this state.
    {{{reopen(Closed),       invalid(Closed),      to(Closed),           to(Closed),           to(Closed),      invalid(Closed)},
      {invalid(Closed),      to(Closed),           to(Closed),           to(Closed),           to(Closed),      invalid(Closed)}}},
    // Resetting. A SYN is from a client that has lost the connection, or never received the backend's
    // SYN+ACK: it opens a new connection. A RST is forwarded to the other side, where it ends the connection
    // or is not accepted.
    {{{reopen(Resetting),    invalid(Resetting),   reset(Resetting),     reset(Resetting),     to(Resetting),   invalid(Resetting)},
      {invalid(Resetting),   reset(Resetting),     reset(Resetting),     reset(Resetting),     to(Resetting),   invalid(Resetting)}}},
    // RstForward. A RST from the backend confirms that the backend has no connection either. The backend
    // sends it in answer to a SYN that it refuses, or to data after a genuine RST.
    {{{to(RstForward),       invalid(RstForward),  verify(Established),  verify(FinForward),   to(RstForward),  invalid(RstForward)},
      {invalid(RstForward),  revive(SynReceived),  note(RstForward),     to(RstForward),       to(Closed),      invalid(RstForward)}}},
    // RstReverse. The backend's second RST answers further segments of the client. From now on a SYN may go
    // to another backend.
    {{{to(RstReverse),       invalid(RstReverse),  verify(Established),  verify(FinForward),   to(Closed),      invalid(RstReverse)},
      {invalid(RstReverse),  revive(SynReceived),  note(RstReverse),     revive(FinReverse),   to(Closed),      invalid(RstReverse)}}},
    // FinForwardProbed. The client has been probed. A stack that has closed the connection and removed its
    // state answers by a RST, one that still has it by an ACK. In the latter case the FIN was spoofed, or the
    // client's program keeps the connection half-closed; it is treated as an established one. Segments of the
    // backend prove nothing about the client.
    {{{to(FinForwardProbed), invalid(FinForwardProbed), to(Established),  to(FinForward),       end(RstForwardProbed), invalid(FinForwardProbed)},
      {invalid(FinForwardProbed), to(FinForward), to(FinForward),        end(TimeWait),        end(RstReverse), invalid(FinForwardProbed)}}},
    // FinReverseProbed. The same for the backend.
    {{{to(FinReverseProbed), invalid(FinReverseProbed), to(FinReverse),   end(TimeWait),        end(RstForward), invalid(FinReverseProbed)},
      {invalid(FinReverseProbed), to(FinReverse), to(Established),       to(FinReverse),       end(RstReverseProbed), invalid(FinReverseProbed)}}},
    // RstForwardProbed, RstReverseProbed. Both sides have been probed; their answers are handled as above.
    {{{to(RstForwardProbed), invalid(RstForwardProbed), verify(Established), verify(FinForward), to(RstForwardProbed), invalid(RstForwardProbed)},
      {invalid(RstForwardProbed), revive(SynReceived), note(RstForwardProbed), to(RstForwardProbed), to(Closed), invalid(RstForwardProbed)}}},
    {{{to(RstReverseProbed), invalid(RstReverseProbed), verify(Established), verify(FinForward), to(Closed), invalid(RstReverseProbed)},
      {invalid(RstReverseProbed), revive(SynReceived), note(RstReverseProbed), revive(FinReverse), to(Closed), invalid(RstReverseProbed)}}},
    // clang-format on
}}));
}  // namespace detail

[[nodiscard]] constexpr TcpStep step(TcpState state, Direction direction, packet::TcpFlags flags) noexcept {
    return detail::kTransitions[static_cast<size_t>(state)][static_cast<size_t>(direction)]
                               [static_cast<size_t>(classify(flags))];
}

namespace detail {
// A count of open connections stays balanced by these rules: decrement at End and at the removal of an open
// connection; increment when Revive or Verify opens one.
consteval bool counts_balance() {
    for (size_t state = 0; state < kTcpStates; ++state) {
        const bool was_open = is_open(static_cast<TcpState>(state));
        for (const StepsByFlags& row : kTransitions[state]) {
            for (const TcpStep& cell : row) {
                const bool ends = was_open && !is_open(cell.next), begins = !was_open && is_open(cell.next);
                const bool may_begin = cell.action == TcpAction::Revive || cell.action == TcpAction::Verify;
                if (ends != (cell.action == TcpAction::End) || (begins && !may_begin) ||
                    (cell.action == TcpAction::Revive && !begins)) {
                    return false;
                }
            }
        }
    }
    return true;
}
static_assert(counts_balance());
}  // namespace detail

// A packet without TCP flags is refused in every state. SCTP entries share the look-up by state, so their
// packets leave the path of established TCP without a separate check (pipeline/track.hpp).
namespace detail {
consteval bool none_passes_without_flags() {
    for (const auto& of_state : kTransitions) {
        for (const StepsByFlags& row : of_state) {
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
    // An answer makes the flow two-way.
    return static_cast<DatagramState>(static_cast<uint8_t>(state) | static_cast<uint8_t>(direction));
}

}  // namespace penstock::conn
