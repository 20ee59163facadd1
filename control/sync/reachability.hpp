// SPDX-License-Identifier: Apache-2.0
// Whether a gateway counts as reachable: it is connected and has the state of this process, or has lost that
// less than kGatewayGone ago. Time is an argument.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "control/sync/observer.hpp"

namespace penstock::sync {

// Longer than a restart of penstockd, or of a connection to it. Afterwards the condition Programmed does not
// count the gateway any more.
inline constexpr std::chrono::seconds kGatewayGone{20};

class Reachability {
 public:
    using Time = std::chrono::steady_clock::time_point;

    // `is_current`: connected, and the state of this process is applied. Reports changes to the observer.
    void update(const std::string& gateway, bool is_current, Time now, Observer& observer) {
        if (!is_current) {
            away_since_ = away_since_.value_or(now);
            if (!reported_.empty() && now - *away_since_ >= kGatewayGone) {
                observer.on_reachable(std::exchange(reported_, {}), false);
            }
            return;
        }
        away_since_.reset();
        const std::string former = std::exchange(reported_, gateway);
        if (former == gateway) {
            return;
        }
        if (!former.empty()) {
            observer.on_reachable(former, false);
        }
        observer.on_reachable(gateway, true);
    }

 private:
    std::string reported_;  // the gateway that was reported as reachable; "": none
    std::optional<Time> away_since_;
};

}  // namespace penstock::sync
