// SCTP as a middlebox sees it (RFC 9260): what a packet does to the association that its entry stands for. Beside the state the entry keeps
// both verification tags, so that nobody who cannot see them moves it: an ABORT or SHUTDOWN with another tag is dropped here as its
// receiver would drop it.
//
// Two promises hold against whoever can send in one side's name but sees nothing: he ends nothing that lives, and he keeps nothing from
// being opened. So a tag is judged by only when both sides have shown it:
//
// - of packets to the client: an INIT of its own asked for it, alone or with the backend's answer; and the COOKIE ACK carried it;
// - of packets to the backend: the COOKIE ECHO carried it, alone of all that were seen; and the backend sent a COOKIE ACK, as it does only
//   for a cookie of its own.
//
// Until then all packets pass, for their receiver to judge, and move nothing. A tag on which the two sides do not agree is not known (0),
// and never dropped for. Neither an INIT nor its answer restarts the idle time, nor does anything else that anybody can send: an entry that
// a forger has made or bent goes by itself.
//
// A COOKIE ECHO with another tag begins a restart (5.2.4) or is forged. Both sides' packets pass until a COOKIE ACK with a new tag comes
// the other way; meanwhile the tag of that other way, which has not changed if the cookie was forged, tells life and end of the
// association.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::conn {

enum class SctpAction : uint8_t {
    Pass,  // translate and forward
    Reopen,  // a new association on an old tuple: drop the old entry and treat the packet as the first of a new one
    Answer,    // the association was ended by an order: the sender is told by an ABORT
    WrongTag,  // drop (SctpWrongTag)
    Stray,     // drop (SctpNoAssociation)
};

// What the entry remembers. Tags are those that packets of each Direction carry; 0: not known. Of a side that may have restarted it is the
// tag of its COOKIE ECHO, which waits for the other side's COOKIE ACK.
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
    bool shows_life = false;  // restarts the idle time, as a new state does anyway
    bool operator==(const SctpStep&) const = default;
};

// As of TCP (SCHED-003).
[[nodiscard]] constexpr bool is_open(SctpState state) noexcept {
    return state < SctpState::Closed;
}
[[nodiscard]] constexpr bool is_opening(SctpState state) noexcept {
    return state == SctpState::CookieWait || state == SctpState::CookieEchoed;
}

// Only an INIT opens an association (pipeline/admit.cpp). Its answers carry the tag that it asks for.
[[nodiscard]] constexpr Association opened_by(uint32_t initiate_tag) noexcept {
    return {SctpState::CookieWait, {0, initiate_tag}};
}

namespace detail {
inline constexpr size_t kForward = static_cast<size_t>(Direction::Forward);
inline constexpr size_t kReverse = static_cast<size_t>(Direction::Reverse);

// The state in which the sender of packets of a direction may have restarted.
[[nodiscard]] constexpr SctpState restarting(size_t at) noexcept {
    return at == kForward ? SctpState::Restarting : SctpState::BackendRestarting;
}
[[nodiscard]] constexpr bool is_restarting(SctpState state) noexcept {
    return state == SctpState::Restarting || state == SctpState::BackendRestarting;
}

// Of an association that is or was open: whether the tag of that direction is known, and both sides have shown it.
[[nodiscard]] constexpr bool is_proven(const Association& association, size_t at) noexcept {
    return association.tags[at] != 0 && association.state != restarting(at);
}

// A packet that moves nothing: by its tag, the one that packets of direction `at` carry.
[[nodiscard]] constexpr SctpStep judge(const Association& before, size_t at, uint32_t tag) noexcept {
    if (is_proven(before, at) && tag == before.tags[at]) {
        return {before, SctpAction::Pass, true};
    }
    if (before.tags[at] != 0 && !is_restarting(before.state)) {
        return {before, SctpAction::WrongTag};
    }
    // Where no tag is proven, nobody's packets tell more than another's; what may live must not go.
    return {before, SctpAction::Pass,
            is_open(before.state) && !is_proven(before, kForward) && !is_proven(before, kReverse)};
}

[[nodiscard]] constexpr SctpStep on_init(Association next, size_t at, uint32_t initiate_tag) noexcept {
    const bool is_clients = at == kForward;
    uint32_t& asked = next.tags[1 - at];
    switch (next.state) {
        case SctpState::CookieWait:
            // Again, or anew, or forged; from the backend: both begin at once (RFC 9260, 5.2.1).
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
        next.tags[at] = tag;  // several INITs asked for different ones; this one the backend has seen
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
            // Both have begun at once, and the client answers the backend's cookie before it has sent one of its own, or instead.
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
                // Where the old tag is not known, this may be the old cookie's answer once more.
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
        // Nothing but a COOKIE ECHO may follow the INIT. Behind that, the tag is the client's word alone.
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
        judged.next.tags[before.state == SctpState::Restarting ? detail::kForward : detail::kReverse] =
            0;  // was never proven
    }
    return judged;
}

}  // namespace penstock::conn
