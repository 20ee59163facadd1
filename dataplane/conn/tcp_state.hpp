// TCP as a middlebox sees it: transitions as a table [state][direction][flag class], after Linux's nf_conntrack_proto_tcp, reduced to what
// decides a timeout.
//
// Sequence windows are not tracked, so a segment that passes may be one that its receiver will not accept: forged, or of an earlier
// connection on the tuple. Two kinds are not taken at their word (docs/adr/0028): the client's ACK of a handshake, and a RST. In either
// case the connection is established when the client acknowledges what the endpoint has sent (conn/sent_numbers.hpp). A sender that only
// knows the tuple cannot, and a client that has reset the connection does not.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::conn {

enum class TcpAction : uint8_t {
    Pass,    // translate and forward; the state is `next`
    Offer,   // the same for a segment with SYN, which offers a segment size (pipeline/offered_mss.hpp)
    End,     // the same, and with this packet the connection is no longer open (SCHED-003)
    Revive,  // the same, and with this packet it is open again
    Note,  // the same, and the numbers that the backend's segment occupies are kept (pipeline/handshake.hpp)
    Verify,  // the same if the client's ACK number is allowed by those numbers, and then it is open; otherwise the state stays
    Finish,  // the same as Pass for a FIN of the client's, whose numbers are kept (pipeline/reclaim.hpp)
    Reset,   // answer with RSTs to both sides instead of forwarding
    Reopen,  // a new connection on an old tuple: drop the old entry and treat the packet as the first of a new one
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
// back by Revive and Verify alone.
[[nodiscard]] constexpr bool is_open(TcpState state) noexcept {
    return state < TcpState::TimeWait || state == TcpState::FinForwardProbed ||
           state == TcpState::FinReverseProbed || state == TcpState::FinForwardProbedAgain ||
           state == TcpState::FinReverseProbedAgain;
}

// A RST has passed that may have been forged (docs/adr/0028).
[[nodiscard]] constexpr bool is_behind_rst(TcpState state) noexcept {
    return state == TcpState::RstForward || state == TcpState::RstReverse ||
           state == TcpState::RstForwardProbed || state == TcpState::RstReverseProbed ||
           state == TcpState::RstForwardProbedAgain || state == TcpState::RstReverseProbedAgain;
}

// The state after the next probe, where the FIN or RST that has passed may have been forged; the same where none is due, or no more.
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

// Only a packet of class Syn opens a connection (pipeline/admit.cpp); one of class Ack may show one that is open already, which is
// PickedUp.
inline constexpr TcpState kTcpOpeningState = TcpState::SynSent;

namespace detail {
// One cell spelt short, so that the table below can be read as one.
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

using Row = std::array<TcpStep, kTcpFlagClasses>;
// What passes with a SYN is an Offer, a FIN of the client's a Finish: the column says it, so the cells need not.
consteval std::array<std::array<Row, 2>, kTcpStates> with_columns(
    std::array<std::array<Row, 2>, kTcpStates> transitions) {
    for (std::array<Row, 2>& of_state : transitions) {
        for (Row& row : of_state) {
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
// A second probe leads to what the first one does, but it is the last.
consteval std::array<std::array<Row, 2>, kTcpStates> with_second_probes(
    std::array<std::array<Row, 2>, kTcpStates> transitions) {
    for (const TcpState first : {FinForwardProbed, FinReverseProbed, RstForwardProbed, RstReverseProbed}) {
        std::array<Row, 2>& second = transitions[static_cast<size_t>(probed(first))];
        second = transitions[static_cast<size_t>(first)];
        for (Row& row : second) {
            for (TcpStep& cell : row) {
                cell.next = cell.next == first ? probed(first) : cell.next;
            }
        }
    }
    // A RST says of the second probe what it says of the first.
    for (const auto& [fin, rst] : {std::pair{FinForwardProbedAgain, RstForwardProbedAgain},
                                   {FinReverseProbedAgain, RstReverseProbedAgain}}) {
        for (Row& row : transitions[static_cast<size_t>(fin)]) {
            TcpStep& cell = row[static_cast<size_t>(TcpFlagClass::Rst)];
            cell.next = probed(cell.next) == rst ? rst : cell.next;
        }
    }
    return transitions;
}
// The client's ACK of the handshake may be forged by a sender that sees none of the backend's segments, and one that the backend drops (a
// wrong checksum, a TTL that ends behind the gateway) is not answered by a RST. So only an ACK number that the backend's SYN+ACK allows
// establishes; any other leaves the connection half-open.
//
// A SYN in Established or half-closed, and behind a RST, is passed and changes nothing: a backend that has the connection answers with a
// challenge ACK (RFC 5961, 4); where the client has really forgotten it, the client's RST clears it for the next SYN. One that has not
// answers with SYN+ACK. So two forged packets, a RST and a SYN, cannot exchange a connection that lives for a new one.
inline constexpr std::array<std::array<Row, 2>, kTcpStates> kTransitions = with_second_probes(with_columns({{
    // clang-format off
    //  SYN                  SYN+ACK               ACK                   FIN                   RST             none or contradictory
    // SynSent. A lone ACK from the backend is its challenge ACK from an earlier connection on this tuple (RFC 5961, 4); the client answers
    // with a RST, which ends that connection, and sends its SYN again (Linux since 2020 within two ticks). That SYN must leave by the same
    // SNAT port, which is clear now; a fresh one may be in TIME-WAIT too, and then the client waits for its retransmission timer.
    {{{to(SynSent),          invalid(SynSent),     invalid(SynSent),     invalid(SynSent),     to(SynSent),     invalid(SynSent)},
      {note(SynReceived),    note(SynReceived),    to(SynSent),          invalid(SynSent),     end(Closed),     invalid(SynSent)}}},
    // SynReceived. SYN+ACK from the client: simultaneous open (RFC 9293, 3.5). ACK from the backend: data before the handshake is over (RFC
    // 7413), or the answer to a second SYN. A RST may be forged here as later.
    {{{to(SynReceived),      verify(Established),  verify(Established),  verify(FinForward),   end(RstForward), invalid(SynReceived)},
      {note(SynReceived),    note(SynReceived),    note(SynReceived),    to(FinReverse),       end(RstReverse), invalid(SynReceived)}}},
    // PickedUp. The backend that has the connection continues it, or its handshake; another one refuses by a RST. If the client's first ACK
    // number is where the backend continues, the connection is Established at once (pipeline/handshake.cpp). After a RST, from either side,
    // the next segment of the client's is picked up anew once this entry is gone.
    {{{to(PickedUp),         invalid(PickedUp),    to(PickedUp),         to(PickedUp),         end(Closed),     invalid(PickedUp)},
      {invalid(PickedUp),    note(SynReceived),    note(SynReceived),    to(FinReverse),       end(Closed),     invalid(PickedUp)}}},
    // Established. SYN+ACK from the backend: it was overtaken, or the client's ACK was lost behind the gateway. From the client:
    // simultaneous open, and the backend's SYN+ACK was lost.
    {{{to(Established),      to(Established),      to(Established),      to(FinForward),       end(RstForward), invalid(Established)},
      {invalid(Established), to(Established),      to(Established),      to(FinReverse),       end(RstReverse), invalid(Established)}}},
    // FinForward
    {{{to(FinForward),       invalid(FinForward),  to(FinForward),       to(FinForward),       end(RstForward), invalid(FinForward)},
      {invalid(FinForward),  to(FinForward),       to(FinForward),       end(TimeWait),        end(RstReverse), invalid(FinForward)}}},
    // FinReverse
    {{{to(FinReverse),       invalid(FinReverse),  to(FinReverse),       end(TimeWait),        end(RstForward), invalid(FinReverse)},
      {invalid(FinReverse),  to(FinReverse),       to(FinReverse),       to(FinReverse),       end(RstReverse), invalid(FinReverse)}}},
    // TimeWait. A client may reuse its port at once (RFC 9293, 3.6.1); a fresh SNAT port keeps it clear of the backend's TIME-WAIT. That
    // state is not for a RST to end (RFC 1337), and no more is the rest of the port here.
    {{{reopen(TimeWait),     invalid(TimeWait),    to(TimeWait),         to(TimeWait),         to(TimeWait),    invalid(TimeWait)},
      {invalid(TimeWait),    to(TimeWait),         to(TimeWait),         to(TimeWait),         to(TimeWait),    invalid(TimeWait)}}},
    // Closed. What either side still has under way passes, within the shorter limit of this state.
    {{{reopen(Closed),       invalid(Closed),      to(Closed),           to(Closed),           to(Closed),      invalid(Closed)},
      {invalid(Closed),      to(Closed),           to(Closed),           to(Closed),           to(Closed),      invalid(Closed)}}},
    // Resetting. A SYN is of a client that has forgotten the connection, or never got the backend's SYN+ACK: a new one. A RST goes to the
    // other side, where it ends what there is to end, or is not accepted.
    {{{reopen(Resetting),    invalid(Resetting),   reset(Resetting),     reset(Resetting),     to(Resetting),   invalid(Resetting)},
      {invalid(Resetting),   reset(Resetting),     reset(Resetting),     reset(Resetting),     to(Resetting),   invalid(Resetting)}}},
    // RstForward. A RST of the backend's says that it has nothing either: it answers a SYN that it refuses, or data behind a true RST.
    {{{to(RstForward),       invalid(RstForward),  verify(Established),  verify(FinForward),   to(RstForward),  invalid(RstForward)},
      {invalid(RstForward),  revive(SynReceived),  note(RstForward),     to(RstForward),       to(Closed),      invalid(RstForward)}}},
    // RstReverse. The backend's second RST answers what the client still sends: now its SYN may go elsewhere.
    {{{to(RstReverse),       invalid(RstReverse),  verify(Established),  verify(FinForward),   to(Closed),      invalid(RstReverse)},
      {invalid(RstReverse),  revive(SynReceived),  note(RstReverse),     revive(FinReverse),   to(Closed),      invalid(RstReverse)}}},
    // FinForwardProbed. The client has been asked. A stack that has closed and forgotten the connection answers by a RST, one that still has
    // it by an ACK: then the FIN was forged, or the client's program keeps the connection half-closed; it lives as an established one. What
    // the backend sends shows nothing of the client.
    {{{to(FinForwardProbed), invalid(FinForwardProbed), to(Established),  to(FinForward),       end(RstForwardProbed), invalid(FinForwardProbed)},
      {invalid(FinForwardProbed), to(FinForward), to(FinForward),        end(TimeWait),        end(RstReverse), invalid(FinForwardProbed)}}},
    // FinReverseProbed. The same of the backend.
    {{{to(FinReverseProbed), invalid(FinReverseProbed), to(FinReverse),   end(TimeWait),        end(RstForward), invalid(FinReverseProbed)},
      {invalid(FinReverseProbed), to(FinReverse), to(Established),       to(FinReverse),       end(RstReverseProbed), invalid(FinReverseProbed)}}},
    // RstForwardProbed, RstReverseProbed. Both sides have been asked, and answer as ever.
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
// Subtracting at End and at the removal of what is still open, and adding where Revive or Verify opens, subtracts as often as was added.
consteval bool counts_balance() {
    for (size_t state = 0; state < kTcpStates; ++state) {
        const bool was_open = is_open(static_cast<TcpState>(state));
        for (const Row& row : kTransitions[state]) {
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
    return static_cast<DatagramState>(static_cast<uint8_t>(state) |
                                      static_cast<uint8_t>(direction));  // an answer makes it two-way
}

}  // namespace penstock::conn
