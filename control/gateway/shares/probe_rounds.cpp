// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/shares/probe_rounds.hpp"

#include <algorithm>

namespace penstock::gateway {

void ProbeRounds::set(uint64_t shares, const std::vector<LinkTarget>& targets, Time now) {
    for (size_t share = 0; share < probed_since_.size(); ++share) {
        const bool was_probed = (probed_ >> share & 1) != 0;
        if (const bool is_probed = (shares >> share & 1) != 0; is_probed != was_probed) {
            probed_since_[share] = is_probed ? now : Time{};
        }
    }
    probed_ = shares;
    targets_ = targets;
    const auto is_probed = [&](const LinkTarget& target) { return (shares >> target.share & 1) != 0; };
    std::erase_if(rounds_, [&](const auto& round) {
        return !is_probed(round.first) || std::ranges::find(targets, round.first) == targets.end();
    });
    for (const LinkTarget& target : targets) {
        if (is_probed(target)) {
            rounds_.try_emplace(target, Round{.since = now});
        }
    }
}

std::vector<LinkTarget> ProbeRounds::due(Time now) const {
    std::vector<LinkTarget> due;
    for (const auto& [target, round] : rounds_) {
        if (now >= round.next) {
            due.push_back(target);
        }
    }
    return due;
}

void ProbeRounds::sent(const LinkTarget& target, Time now) {
    const auto found = rounds_.find(target);
    if (found == rounds_.end()) {
        return;
    }
    Round& round = found->second;
    ++round.silent;
    round.is_answered = round.is_answered && round.silent < kProbes;
    round.last = now;
    round.next = now + (round.silent < kProbes ? kFast : kSlow);
}

void ProbeRounds::claimed(const LinkTarget& target, Time now) {
    if (const auto found = rounds_.find(target); found != rounds_.end()) {
        found->second = {.is_answered = true, .since = now, .next = now + kSlow, .last = now};
    }
}

uint64_t ProbeRounds::answered() const {
    uint64_t shares = 0;
    for (const auto& [target, round] : rounds_) {
        shares |= uint64_t{round.is_answered} << target.share;
    }
    return shares;
}

uint64_t ProbeRounds::unanswered(Time now) const {
    uint64_t silent = 0, others = 0;
    for (const auto& [target, round] : rounds_) {
        const bool is_silent =
            round.silent > kProbes || (round.silent == kProbes && now - round.last >= kFast);
        (is_silent ? silent : others) |= uint64_t{1} << target.share;
    }
    return silent & ~others;
}

uint64_t ProbeRounds::on_link() const {
    uint64_t shares = 0;
    for (const LinkTarget& target : targets_) {
        shares |= uint64_t{1} << target.share;
    }
    return shares;
}

std::array<ProbeRounds::Time, shares::kSharesMax> ProbeRounds::unanswered_since() const {
    std::array<Time, shares::kSharesMax> since = probed_since_;
    for (const auto& [target, round] : rounds_) {
        since[target.share] = std::max(since[target.share], round.since);
    }
    return since;
}

}  // namespace penstock::gateway
