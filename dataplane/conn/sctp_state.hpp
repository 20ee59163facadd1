// SPDX-License-Identifier: Apache-2.0
// The SCTP state machine of a middlebox (RFC 9260): the effect of a packet on the association of its entry.
// Besides the state, the entry keeps both verification tags, so that a sender that cannot see the tags cannot
// change the association. An ABORT or SHUTDOWN with a wrong tag is dropped here, as its receiver would drop
// it.
//
// Two guarantees hold against an attacker that can send in the name of one side but sees no packets. It
// cannot end a live association, and it cannot prevent a new one. Therefore a tag is enforced only after both
// sides have confirmed it:
//
// - Tag of packets to the client: the client's INIT requested it (if several INITs requested different tags,
//   the tag in the backend's answer counts); and the COOKIE ACK carried it.
// - Tag of packets to the backend: the COOKIE ECHO carried it, and no COOKIE ECHO carried another one; and
//   the backend sent a COOKIE ACK, which it sends only for a cookie of its own.
//
// Until then all packets pass, for their receiver to validate, and change nothing. A tag on which the two
// sides do not agree is unknown (0) and never a reason for a drop. Neither an INIT nor its answer restarts
// the idle time, nor does any other packet that an attacker can send. An entry that was created or altered by
// spoofed packets therefore expires.
//
// A COOKIE ECHO with another tag starts a restart (5.2.4) or is spoofed. The packets of both sides pass until
// a COOKIE ACK with a new tag arrives in the opposite direction. Meanwhile the tag of that opposite
// direction, which has not changed if the cookie was spoofed, decides about life and end of the association.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::conn {

enum class SctpAction : uint8_t {
    Pass,  // translate and forward
    // A new association on an old tuple: drop the old entry and treat the packet as the first of a new one.
    Reopen,
    Answer,    // the association was ended by an order: answer with an ABORT
    WrongTag,  // drop (SctpWrongTag)
    Stray,     // drop (SctpNoAssociation)
};

// The SCTP fields of an entry. Tags are those that packets of each Direction carry; 0: unknown. For a side
// that may have restarted, the tag is that of its COOKIE ECHO, which waits for the other side's COOKIE ACK.
struct Association {
    SctpState state = SctpState::CookieWait;
    std::array<uint32_t, 2> tags{};
    bool operator==(const Association&) const = default;
};

struct SctpPacket {
    packet::SctpEvent event = packet::SctpEvent::None;
    bool reflects_tag = false;
    uint32_t tag = 0;
    uint32_t initiate_tag = 0;  // of an INIT
};

struct SctpStep {
    Association next;
    SctpAction action = SctpAction::Pass;
    bool shows_life = false;  // restarts the idle time, as any new state does
    bool operator==(const SctpStep&) const = default;
};

// Same meaning as for TCP (SCHED-003).
[[nodiscard]] constexpr bool is_open(SctpState state) noexcept {
    return state < SctpState::Closed;
}
[[nodiscard]] constexpr bool is_opening(SctpState state) noexcept {
    return state == SctpState::CookieWait || state == SctpState::CookieEchoed;
}

// Only an INIT opens an association (pipeline/opening/admit.cpp). Its answers carry the tag that the INIT
// requests.
[[nodiscard]] constexpr Association opened_by(uint32_t initiate_tag) noexcept {
    return {SctpState::CookieWait, {0, initiate_tag}};
}

namespace detail {
inline constexpr size_t kForward = static_cast<size_t>(Direction::Forward);
inline constexpr size_t kReverse = static_cast<size_t>(Direction::Reverse);

// The state in which the sender of packets in direction `at` may have restarted.
[[nodiscard]] constexpr SctpState restarting(size_t at) noexcept {
    return at == kForward ? SctpState::Restarting : SctpState::BackendRestarting;
}
[[nodiscard]] constexpr bool is_restarting(SctpState state) noexcept {
    return state == SctpState::Restarting || state == SctpState::BackendRestarting;
}

// For an association that is or was open: whether the tag of this direction is known and confirmed by both
// sides.
[[nodiscard]] constexpr bool is_proven(const Association& association, size_t at) noexcept {
    return association.tags[at] != 0 && association.state != restarting(at);
}

// Validates a packet that changes nothing by its tag, the one that packets of direction `at` carry.
[[nodiscard]] constexpr SctpStep judge(const Association& before, size_t at, uint32_t tag) noexcept {
    if (is_proven(before, at) && tag == before.tags[at]) {
        return {before, SctpAction::Pass, true};
    }
    if (before.tags[at] != 0 && !is_restarting(before.state)) {
        return {before, SctpAction::WrongTag};
    }
    // If no tag is confirmed, the packets of all senders count alike, and an association that may be alive
    // must stay.
    return {before, SctpAction::Pass,
            is_open(before.state) && !is_proven(before, kForward) && !is_proven(before, kReverse)};
}

[[nodiscard]] constexpr SctpStep on_init(Association next, size_t at, uint32_t initiate_tag) noexcept {
    const bool is_clients = at == kForward;
    uint32_t& asked = next.tags[1 - at];
    switch (next.state) {
        case SctpState::CookieWait:
            // A retransmission, a new attempt, or a spoofed one. From the backend: both sides start at once
            // (RFC 9260, 5.2.1).
            asked = asked == initiate_tag || (!is_clients && asked == 0) ? initiate_tag : 0;
            return {next};
        case SctpState::CookieEchoed:
            asked = is_clients && asked != initiate_tag ? 0 : asked;
            return {next};
        case SctpState::Closed:
            return {next, is_clients ? SctpAction::Reopen : SctpAction::Stray};
        case SctpState::Aborting:
            return {next, is_clients ? SctpAction::Reopen : SctpAction::Answer};
        default:
            return {next};
    }
}

[[nodiscard]] constexpr SctpStep on_init_ack(Association next, size_t at, uint32_t tag) noexcept {
    if (is_opening(next.state) && at == kReverse && next.tags[at] == 0) {
        next.tags[at] = tag;  // several INITs requested different tags; the backend has received this one
    }
    return {next};
}

[[nodiscard]] constexpr SctpStep on_cookie_echo(Association next, size_t at, uint32_t tag) noexcept {
    uint32_t& known = next.tags[at];
    if (is_opening(next.state)) {
        if (at == kForward) {
            const bool is_first = next.state == SctpState::CookieWait && known == 0;
            known = is_first || known == tag ? tag : 0;
            next.state = SctpState::CookieEchoed;
        }
        return {next};
    }
    if (!is_open(next.state) || (is_proven(next, at) && known == tag)) {
        return judge(next, at, tag);
    }
    if (!is_restarting(next.state)) {
        next.state = restarting(at);
        known = tag;
    } else if (next.state != restarting(at)) {
        next.tags = {};  // both sides at once
    } else if (known != tag) {
        known = 0;
    }
    return {next};
}

[[nodiscard]] constexpr SctpStep on_cookie_ack(Association next, size_t at, uint32_t tag) noexcept {
    uint32_t& known = next.tags[at];
    const bool is_right = known != 0 && known == tag;
    switch (next.state) {
        case SctpState::CookieWait:
            // Both sides have started at once. The client answers the backend's cookie before it sends its
            // own, or instead.
            if (at == kForward && is_right) {
                next = {SctpState::Established, {tag, 0}};
            }
            return {next};
        case SctpState::CookieEchoed:
            if (at == kReverse) {
                next.state = SctpState::Established;
                known = is_right ? tag : 0;
            }
            return {next};
        case SctpState::Restarting:
        case SctpState::BackendRestarting:
            if (next.state == restarting(1 - at) && !is_right) {
                // If the old tag is unknown, this may be a repeated answer to the old cookie.
                const bool is_new = known != 0;
                known = tag;
                return {{SctpState::Established, is_new ? next.tags : std::array<uint32_t, 2>{}}};
            }
            return judge(next, at, tag);
        default:
            return judge(next, at, tag);
    }
}

[[nodiscard]] constexpr SctpStep on_others_while_opening(Association next, size_t at,
                                                         const SctpPacket& packet) noexcept {
    const bool is_right = next.tags[at] != 0 && packet.tag == next.tags[at] && !packet.reflects_tag;
    if (at == kForward) {
        // Only a COOKIE ECHO may follow the INIT. After the COOKIE ECHO, the tag is confirmed by the client
        // alone.
        return {next,
                next.state == SctpState::CookieWait && !is_right ? SctpAction::WrongTag : SctpAction::Pass};
    }
    if (is_right && packet.event == packet::SctpEvent::Abort) {
        next = {SctpState::Closed, {0, packet.tag}};
    }
    return {next, SctpAction::Pass, is_right};
}
}  // namespace detail

[[nodiscard]] constexpr SctpStep step(const Association& before, Direction direction,
                                      const SctpPacket& packet) noexcept {
    using enum packet::SctpEvent;
    const auto at = static_cast<size_t>(direction);
    if (packet.event == Init) {
        return detail::on_init(before, at, packet.initiate_tag);
    }
    if (before.state == SctpState::Aborting) {
        const bool ends_it_too = packet.event == Abort || packet.event == ShutdownComplete;
        return {before, ends_it_too ? SctpAction::Pass : SctpAction::Answer};
    }
    switch (packet.event) {
        case InitAck:
            return detail::on_init_ack(before, at, packet.tag);
        case CookieEcho:
            return detail::on_cookie_echo(before, at, packet.tag);
        case CookieAck:
            return detail::on_cookie_ack(before, at, packet.tag);
        default:
            break;
    }
    if (is_opening(before.state)) {
        return detail::on_others_while_opening(before, at, packet);
    }
    const size_t of_tag = packet.reflects_tag ? 1 - at : at;
    SctpStep judged = detail::judge(before, of_tag, packet.tag);
    if (!detail::is_proven(before, of_tag) || judged.action != SctpAction::Pass ||
        packet.tag != before.tags[of_tag]) {
        return judged;
    }
    SctpState& state = judged.next.state;
    const bool finishes = packet.event == ShutdownAck && state != SctpState::Closed;
    const bool asks = packet.event == Shutdown && state < SctpState::Shutdown;
    if (packet.event == Abort || packet.event == ShutdownComplete) {
        state = SctpState::Closed;
    } else if (finishes || asks) {
        state = finishes ? SctpState::ShutdownAcked : SctpState::Shutdown;
    }
    if (detail::is_restarting(before.state) && state != before.state) {
        const size_t of_restarted =
            before.state == SctpState::Restarting ? detail::kForward : detail::kReverse;
        judged.next.tags[of_restarted] = 0;  // was never proven
    }
    return judged;
}

}  // namespace penstock::conn
