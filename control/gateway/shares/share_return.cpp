// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/share_return.hpp"

#include <utility>

namespace penstock::gateway {

static_assert(shares::kSharesMax <= 64, "a bit for each share");

bool ShareReturn::is_back(shares::Role role, const std::string& other, const Peer& peer, Time now) {
    switch (peer.channel) {
        case Peer::Channel::Off:
            return true;
        case Peer::Channel::Copying:
            waits_since_.erase(other);
            return false;
        case Peer::Channel::Complete:
            if (role == shares::Role::Primary || peer.has_returned) {
                return true;
            }
            break;
        case Peer::Channel::Away:
            break;
    }
    // A primary waits for as long as it takes: an heir that serves, and that it cannot reach, would lose its
    // connections. An heir does not: the level of the primary is ahead of its own, or there is none.
    const bool is_over = now - waits_since_.try_emplace(other, now).first->second >= kWaitMax;
    return role == shares::Role::Heir && is_over;
}

bool ShareReturn::update(const GatewayShares& shares, const std::function<Peer(const std::string&)>& peer_of,
                         Time now) {
    uint64_t with_role = 0, returning = 0, held = 0;
    has_returned_as_primary_ = true;
    for (size_t number = 0; number < shares.plan().shares.size(); ++number) {
        const shares::Role role = shares.part_in(static_cast<uint8_t>(number)).role;
        if (role == shares::Role::None) {
            continue;
        }
        const uint64_t self = uint64_t{1} << number;
        with_role |= self;
        const bool is_new_role = has_plan_ ? (with_role_ & self) == 0 : first_ == First::AtStart;
        if (is_new_role && has_plan_) {
            released_ |= self;
        }
        if (!is_new_role && ((returning_ | lost_) & self) == 0) {
            continue;
        }
        const shares::Share& share = shares.plan().shares[number];
        const std::string& other = role == shares::Role::Primary ? share.heir : share.primary;
        if (other.empty()) {
            continue;
        }
        const bool could_return = is_back(role, other, peer_of(other), now);
        if (could_return && mode_ == FailBack::ByCommand && role == shares::Role::Primary &&
            (released_ & self) == 0) {
            held |= self;
        }
        if (!could_return || (held & self) != 0) {
            returning |= self;
            has_returned_as_primary_ &= role != shares::Role::Primary;
        }
    }
    has_plan_ = true;
    lost_ = 0;
    with_role_ = with_role;
    held_ = held;
    released_ &= returning;
    return std::exchange(returning_, returning) != returning;
}

}  // namespace penstock::gateway
