// SCTP as a middlebox sees it (RFC 9260): what a packet does to the association that its entry stands for. Beside the state the entry keeps
// both verification tags, so that nobody who cannot see them moves it: an ABORT or SHUTDOWN with another tag is dropped here as its
// receiver would drop it.
//
// A tag is believed when its receiver is known to accept it. Its first packet is the COOKIE ECHO one way and the COOKIE ACK the other; that
// a backend answers a cookie shows that it gave it. An INIT and its answer inside a living association move nothing: anybody may have sent
// the INIT. A COOKIE ECHO with another tag begins a restart (5.2.4) or is forged; until a COOKIE ACK comes the other way, every packet
// passes unlooked at and moves nothing. A forger gains that the association's end is not seen, so that its entry goes by idle time.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/conn/connection.hpp"
#include "dataplane/packet/parsed.hpp"

namespace penstock::conn {

enum class SctpAction : uint8_t {
    Pass,      // translate and forward
    Reopen,    // a new association on an old tuple: drop the old entry and treat the packet as the first of a new one
    Answer,    // the association was ended by an order: the sender is told by an ABORT
    WrongTag,  // drop (SctpWrongTag)
};

// What the entry remembers. Tags are those that packets of each Direction carry; 0: not known.
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
[[nodiscard]] constexpr SctpStep on_init(Association next, Direction direction, uint32_t initiate_tag) noexcept {
    switch (next.state) {
        case SctpState::CookieWait:
            // The client has begun anew, or both sides have begun at once (RFC 9260, 5.2.1).
            next.tags[static_cast<size_t>(opposite(direction))] = initiate_tag;
            return {next, SctpAction::Pass};
        case SctpState::Closed:
            return {next, direction == Direction::Forward ? SctpAction::Reopen : SctpAction::Pass};
        case SctpState::Aborting:
            return {next, direction == Direction::Forward ? SctpAction::Reopen : SctpAction::Answer};
        default:
            return {next, SctpAction::Pass};
    }
}

[[nodiscard]] constexpr SctpStep on_cookie_echo(Association next, Direction direction, uint32_t tag, bool is_right) noexcept {
    const auto at = static_cast<size_t>(direction);
    switch (next.state) {
        case SctpState::CookieWait:
        case SctpState::CookieEchoed:
            next.state = direction == Direction::Forward ? SctpState::CookieEchoed : next.state;
            next.tags[at] = tag;
            return {next, SctpAction::Pass};
        case SctpState::Established:
        case SctpState::Restarting:
        case SctpState::Shutdown:
            if (!is_right || next.state == SctpState::Restarting) {
                next = {SctpState::Restarting, {}};
                next.tags[at] = tag;
            }
            return {next, SctpAction::Pass};
        default:
            return {next, is_right ? SctpAction::Pass : SctpAction::WrongTag};
    }
}
}  // namespace detail

[[nodiscard]] constexpr SctpStep step(const Association& before, Direction direction, const SctpPacket& packet) noexcept {
    using enum packet::SctpEvent;
    const auto at = static_cast<size_t>(direction);
    const uint32_t known = before.tags[packet.reflects_tag ? 1 - at : at];
    const bool is_right = known != 0 && packet.tag == known;
    Association next = before;

    if (packet.event == Init) {
        return detail::on_init(next, direction, packet.initiate_tag);
    }
    if (before.state == SctpState::Aborting) {
        const bool ends_it_too = packet.event == Abort || packet.event == ShutdownComplete;
        return {next, ends_it_too ? SctpAction::Pass : SctpAction::Answer};
    }
    if (packet.event == CookieEcho) {
        return detail::on_cookie_echo(next, direction, packet.tag, is_right);
    }
    const bool accepts_cookie =
        packet.event == CookieAck && ((before.state == SctpState::CookieEchoed && direction == Direction::Reverse) ||
                                      (before.state == SctpState::Restarting && before.tags[at] == 0));
    if (accepts_cookie) {
        next.state = SctpState::Established;
        next.tags[at] = packet.tag;
        return {next, SctpAction::Pass};
    }
    const bool answers_an_init_inside = packet.event == InitAck && !is_opening(before.state);
    if (before.state == SctpState::Restarting || answers_an_init_inside) {
        return {next, SctpAction::Pass};
    }
    if (!is_right) {
        return {next, SctpAction::WrongTag};
    }
    switch (packet.event) {
        case Abort:
        case ShutdownComplete:
            next.state = SctpState::Closed;
            break;
        case Shutdown:
            next.state = before.state == SctpState::Established ? SctpState::Shutdown : before.state;
            break;
        case ShutdownAck:
            next.state =
                before.state == SctpState::Established || before.state == SctpState::Shutdown ? SctpState::ShutdownAcked : before.state;
            break;
        default:
            break;
    }
    return {next, SctpAction::Pass};
}

}  // namespace penstock::conn
