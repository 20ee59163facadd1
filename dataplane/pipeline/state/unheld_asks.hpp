// SPDX-License-Identifier: Apache-2.0
// Resolution requests for next hops for which no packet can be held, because the limit of held packets is
// reached (route/pending.hpp). A next hop without a held packet is in no list, so the last request for it is
// recorded here.
//
// Endpoints and routers have a limit of their own: they are few. A flood from spoofed addresses of a link,
// each of which is a next hop that does not exist, therefore cannot keep a new endpoint from being resolved.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/pipeline/state/reject_limiter.hpp"
#include "dataplane/route/pending.hpp"

namespace penstock::pipeline {

class UnheldAsks {
 public:
    enum class Kind : uint8_t { Configured, Host };  // an endpoint or a router; any other host of a link

    explicit UnheldAsks(TscRate rate) noexcept
        : again_after_(rate.milliseconds(route::kAskAgainMs)),
          groups_{Group{RejectLimiter(limits::kUnheldAsksPerSecond, limits::kUnheldAsksPerSecond, rate), {}},
                  Group{RejectLimiter(limits::kUnheldAsksPerSecondOfHosts,
                                      limits::kUnheldAsksPerSecondOfHosts, rate),
                        {}}} {}

    // Whether Linux shall resolve `address` now. `hash`: keyed hash of the address.
    bool ask(Kind kind, NicPortId egress, const IpAddr& address, uint64_t hash, TscTime now) noexcept {
        Group& group = groups_[static_cast<size_t>(kind)];
        Asked& last = group.asked[hash % group.asked.size()];
        const bool was_asked =
            last.address == address && last.egress == egress && ticks_between(last.at, now) < again_after_;
        if (was_asked || !group.limit.take(now)) {
            return false;
        }
        last = {address, now, egress};
        return true;
    }

 private:
    struct Asked {
        IpAddr address;
        TscTime at;
        NicPortId egress;
    };
    struct Group {
        RejectLimiter limit;
        std::array<Asked, limits::kPendingMax> asked;
    };
    TscTicks again_after_;
    std::array<Group, 2> groups_;
};

}  // namespace penstock::pipeline
