// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/link_holder.hpp"

#include <algorithm>
#include <utility>

namespace penstock::gateway {

struct LinkHolder::Share {
    size_t number = 0;
    bool is_primary = false;
    const Inputs& inputs;
    const Peer& peer;
    bool is_held = false;
    bool is_ready = false;
    Time now{};

    [[nodiscard]] bool in(uint64_t shares) const noexcept { return (shares >> number & 1) != 0; }
    [[nodiscard]] bool is_able() const noexcept { return in(inputs.able); }
    // The other gateway is gone, or does not answer without a known reason for `patience`.
    [[nodiscard]] bool is_gone(std::chrono::seconds patience) const noexcept {
        const Time since = std::max(peer.silent_since, inputs.unanswered_since[number]);
        return in(inputs.unanswered) && (peer.bfd == Peer::Bfd::Down || now - since >= patience);
    }
    // By the order of the file's head.
    [[nodiscard]] bool is_first() const noexcept {
        const bool is_other_ready = in(peer.report.ready);
        if (is_ready || is_other_ready) {
            return is_ready && (is_primary || !is_other_ready);
        }
        return is_able() && (is_primary || !in(peer.report.able));
    }
};

bool LinkHolder::is_lost(const Share& share) const {
    const HolderReport& heir = share.peer.report;
    if (!share.is_primary || !share.peer.is_reporting || share.in(share.inputs.returning)) {
        return false;
    }
    return share.in(heir.served) || (share.in(heir.held) && (share.is_held || !share.in(current_)));
}

bool LinkHolder::holds_by_report(const Share& share) {
    Time& since = conflict_since_[share.number];
    if (!share.in(share.peer.report.held)) {
        since = {};
        return share.is_first();
    }
    if (share.is_primary || !share.is_held) {
        return false;
    }
    if (since == Time{}) {
        since = share.now;
    }
    return share.is_able() && share.now - since < kConflictMax;
}

bool LinkHolder::holds_without_report(const Share& share) {
    conflict_since_[share.number] = {};
    const bool returns = share.in(share.inputs.returning);
    if (!share.is_able()) {
        return false;
    }
    if (share.is_primary) {
        return share.is_held ||
               (returns ? share.is_gone(kPatienceAfterStart) : share.in(share.inputs.unanswered));
    }
    if (share.is_held) {
        return share.in(share.inputs.on_link) && !share.in(share.inputs.answered);
    }
    return !returns && share.is_gone(share.peer.bfd == Peer::Bfd::Up ? kPatienceWithBfd : kPatience);
}

uint64_t LinkHolder::update(const GatewayShares& shares,
                            const std::function<Peer(const std::string&)>& peer_of, const Inputs& inputs,
                            Time now) {
    uint64_t held = 0, ready = 0, lost = 0;
    to_probe_ = 0;
    for (size_t number = 0; number < shares.plan().shares.size(); ++number) {
        const shares::Role role = shares.part_in(static_cast<uint8_t>(number)).role;
        const uint64_t bit = uint64_t{1} << number;
        if (role == shares::Role::None) {
            keep(~bit);
            continue;
        }
        const shares::Share& planned = shares.plan().shares[number];
        const std::string& other = role == shares::Role::Primary ? planned.heir : planned.primary;
        // The only gateway of the plan.
        const Peer peer = other.empty() ? Peer{.is_reporting = true} : peer_of(other);
        Share share{.number = number,
                    .is_primary = role == shares::Role::Primary,
                    .inputs = inputs,
                    .peer = peer,
                    .is_held = (held_ & bit) != 0,
                    .now = now};
        if (is_lost(share)) {
            lost |= bit;
        }
        share.is_ready = (inputs.able & inputs.whole & ~inputs.returning & ~lost & bit) != 0;
        const bool holds = peer.is_reporting ? holds_by_report(share) : holds_without_report(share);
        held |= holds ? bit : 0;
        ready |= share.is_ready ? bit : 0;
        if (holds || ((inputs.returning | lost) & bit) != 0) {
            current_ |= bit;
        } else if (!peer.is_reporting) {
            current_ &= ~bit;
        }
        if (holds && !share.is_primary && !peer.is_reporting) {
            served_ |= bit;
        } else if (share.is_primary || (peer.is_reporting && (peer.report.ready & bit) == 0)) {
            served_ &= ~bit;
        }
        const bool is_silent = !peer.is_reporting || peer.bfd == Peer::Bfd::Down;
        // A primary keeps what it holds.
        to_probe_ |= is_silent && share.is_able() && !(holds && share.is_primary) ? bit : 0;
    }
    ready_ = ready;
    held_ = held;
    return lost;
}

}  // namespace penstock::gateway
