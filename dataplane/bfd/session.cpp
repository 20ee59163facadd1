// SPDX-License-Identifier: Apache-2.0
#include "dataplane/bfd/session.hpp"

#include <algorithm>

namespace penstock::bfd {
namespace {

// A longer interval would exceed the range of ticks, and serves no one.
constexpr uint64_t kIntervalMaxUs = 1'000'000'000;

}  // namespace

Session::Session(const Terms& terms, TscRate rate, uint64_t salt, TscTime now) noexcept
    : terms_(terms),
      rate_(rate),
      random_((salt ^ terms.discriminator) | 1),
      applied_tx_us_(terms.desired_min_tx_us),
      applied_rx_us_(terms.required_min_rx_us) {
    if (terms.is_shut_down) {
        status_.state = State::AdminDown;
        status_.diagnostic = Diagnostic::AdministrativelyDown;
    }
    due_at_ = now;
}

void Session::resume(const Status& status, TscTime now) noexcept {
    status_ = status;
    applied_tx_us_ = terms_.desired_min_tx_us;
    applied_rx_us_ = terms_.required_min_rx_us;
    due_at_ = now;
    if (status_.remote.my_discriminator != 0) {
        detects_at_ = now + ticks(detection_time_us());
    }
}

TscTicks Session::ticks(uint64_t us) const noexcept {
    return {std::min(us, kIntervalMaxUs) * (rate_.hz / 1'000) / 1'000};
}

// Below one packet a second while the session is not up.
uint32_t Session::desired_min_tx_us() const noexcept {
    return status_.state == State::Up ? terms_.desired_min_tx_us
                                      : std::max(terms_.desired_min_tx_us, kSlowUs);
}

uint64_t Session::transmit_interval_us() const noexcept {
    const uint32_t own = status_.state == State::Up ? applied_tx_us_ : desired_min_tx_us();
    return std::max(own, status_.remote.required_min_rx_us);
}

uint64_t Session::detection_time_us() const noexcept {
    const ControlPacket& remote = status_.remote;
    return uint64_t{remote.detect_multiplier} * std::max(applied_rx_us_, remote.desired_min_tx_us);
}

// Whether periodic packets are sent (6.8.7).
bool Session::sends() const noexcept {
    const bool has_peer = status_.remote.my_discriminator != 0;
    if (terms_.is_passive && !has_peer) {
        return false;
    }
    return !has_peer || status_.remote.required_min_rx_us != 0;
}

void Session::begin_poll() noexcept {
    polls_ = status_.state == State::Up;
    if (!polls_) {
        end_poll();
    }
}

void Session::end_poll() noexcept {
    polls_ = false;
    applied_tx_us_ = terms_.desired_min_tx_us;
    applied_rx_us_ = terms_.required_min_rx_us;
}

void Session::enter(State state, Diagnostic diagnostic, TscTime now) noexcept {
    if (status_.state == state) {
        return;
    }
    status_.state = state;
    if (state == State::Up) {
        // The interval changes from that of a session which is not up, so the peer is polled.
        status_.diagnostic = Diagnostic::None;
        begin_poll();
    } else {
        status_.diagnostic = diagnostic;
        end_poll();
    }
    due_at_ = now;  // the peer learns of the change at once
}

void Session::forget_peer() noexcept {
    status_.remote = {};
    status_.remote_discriminator = 0;
    detects_at_ = kNever;
}

void Session::change(const Terms& terms, TscTime now) noexcept {
    const Terms former = terms_;
    terms_ = terms;
    if (terms.is_shut_down != former.is_shut_down) {
        enter(terms.is_shut_down ? State::AdminDown : State::Down,
              terms.is_shut_down ? Diagnostic::AdministrativelyDown : Diagnostic::None, now);
    }
    if (terms.desired_min_tx_us != former.desired_min_tx_us ||
        terms.required_min_rx_us != former.required_min_rx_us) {
        // A shorter interval for sending, and a longer one for detection, apply at once (6.8.3).
        applied_tx_us_ = std::min(applied_tx_us_, terms.desired_min_tx_us);
        applied_rx_us_ = std::max(applied_rx_us_, terms.required_min_rx_us);
        begin_poll();
    }
    due_at_ = now;
}

void Session::receive(const ControlPacket& packet, TscTime now) noexcept {
    status_.remote = packet;
    status_.remote_discriminator = packet.my_discriminator;
    if (packet.final && polls_) {
        end_poll();
    }
    if (transmit_interval_us() != scheduled_us_) {
        schedule(sent_at_);  // at once (6.8.7)
    }
    detects_at_ = now + ticks(detection_time_us());
    if (status_.state == State::AdminDown) {
        return;
    }
    owes_final_ = owes_final_ || packet.poll;
    if (packet.state == State::AdminDown) {
        return enter(State::Down, Diagnostic::NeighbourSignaledDown, now);
    }
    switch (status_.state) {
        case State::Down:
            if (packet.state == State::Down) {
                enter(State::Init, status_.diagnostic, now);
            } else if (packet.state == State::Init) {
                enter(State::Up, Diagnostic::None, now);
            }
            break;
        case State::Init:
            if (packet.state != State::Down) {
                enter(State::Up, Diagnostic::None, now);
            }
            break;
        case State::Up:
            if (packet.state == State::Down) {
                enter(State::Down, Diagnostic::NeighbourSignaledDown, now);
            }
            break;
        case State::AdminDown:
            break;
    }
}

void Session::look(TscTime now) noexcept {
    if (now < detects_at_) {
        return;
    }
    forget_peer();
    if (status_.state == State::Init || status_.state == State::Up) {
        enter(State::Down, Diagnostic::DetectionTimeExpired, now);
    }
}

bool Session::is_due(TscTime now) const noexcept {
    return owes_final_ || (now >= due_at_ && sends());
}

// Each interval is shortened by up to 25 %, and by at least 10 % if the peer detects the loss of a single
// packet (6.8.7).
void Session::schedule(TscTime since) noexcept {
    scheduled_us_ = transmit_interval_us();
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    const uint64_t least = terms_.detect_multiplier == 1 ? 10 : 0;
    const uint64_t percent = 100 - least - random_ % (26 - least);
    due_at_ = since + ticks(scheduled_us_ * percent / 100);
}

void Session::skip(TscTime now) noexcept {
    owes_final_ = false;
    schedule(now);
}

ControlPacket Session::next(TscTime now) noexcept {
    const ControlPacket packet{.state = status_.state,
                               .diagnostic = status_.diagnostic,
                               .poll = polls_ && !owes_final_,
                               .final = owes_final_,
                               .control_plane_independent = terms_.control_plane_independent,
                               .demand = false,
                               .detect_multiplier = terms_.detect_multiplier,
                               .my_discriminator = terms_.discriminator,
                               .your_discriminator = status_.remote_discriminator,
                               .desired_min_tx_us = desired_min_tx_us(),
                               .required_min_rx_us = terms_.required_min_rx_us,
                               .required_min_echo_rx_us = 0};
    const bool is_periodic = now >= due_at_;
    owes_final_ = false;
    sent_at_ = now;
    if (is_periodic) {
        schedule(now);
    }
    return packet;
}

TscTime Session::wakes_at() const noexcept {
    if (owes_final_) {
        return {};
    }
    return std::min(detects_at_, sends() ? due_at_ : kNever);
}

}  // namespace penstock::bfd
