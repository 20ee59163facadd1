// SPDX-License-Identifier: Apache-2.0
// When to probe a link for a share's address, and what the answers mean (LinkHolder). One address stands for
// the share on each of its links. Three probes, kFast apart, find out whether the other gateway answers; then
// one each second renews the result. Pure; one thread.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "dataplane/base/ip.hpp"
#include "dataplane/route/link_vips.hpp"
#include "dataplane/shares/share_map.hpp"

namespace penstock::gateway {

struct LinkTarget {
    uint8_t share = 0;
    route::LinkVip vip;
    auto operator<=>(const LinkTarget&) const = default;
};

class ProbeRounds {
 public:
    using Time = std::chrono::steady_clock::time_point;
    static constexpr uint32_t kProbes = 3;
    static constexpr std::chrono::milliseconds kFast{50};
    static constexpr std::chrono::milliseconds kSlow{1'000};

    // Bit n: share n is to be probed, at its targets. A target that is new begins anew.
    void set(uint64_t shares, const std::vector<LinkTarget>& targets, Time now);
    // The targets to which a probe must be sent now.
    [[nodiscard]] std::vector<LinkTarget> due(Time now) const;
    void sent(const LinkTarget& target, Time now);
    // The other gateway of a share has the address.
    void claimed(const LinkTarget& target, Time now);
    [[nodiscard]] const std::vector<LinkTarget>& targets() const noexcept { return targets_; }

    // Shares that are probed, and for which the other gateway answers on a link.
    [[nodiscard]] uint64_t answered() const;
    // Shares with a target.
    [[nodiscard]] uint64_t on_link() const;
    // Shares with a target for which kProbes in turn have had no answer on each of their links, the last one
    // for kFast.
    [[nodiscard]] uint64_t unanswered(Time now) const;
    // Since when, by share. A share that is not probed: the epoch.
    [[nodiscard]] std::array<Time, shares::kSharesMax> unanswered_since() const;

 private:
    struct Round {
        uint32_t silent = 0;  // probes since the last answer
        bool is_answered = false;
        Time since{};  // the begin, or the last answer
        Time next{};   // probe
        Time last{};
    };

    uint64_t probed_ = 0;
    std::vector<LinkTarget> targets_;
    std::map<LinkTarget, Round> rounds_;  // of those of probed shares
    std::array<Time, shares::kSharesMax> probed_since_{};
};

}  // namespace penstock::gateway
