// SPDX-License-Identifier: Apache-2.0
// Rate limit of the log lines of one part of the program: a burst, then a number of lines per second. The
// rate of log lines often depends on users, who can change objects as fast as the API server accepts: ten
// thousand Services that compete for one address produce ten thousand lines each time the winner changes.
// Suppressed lines are counted, and the count is logged with the next line. A state machine without a clock;
// one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "control/kube/rate_limit.hpp"

namespace penstock::sync {

class FloodGuard {
 public:
    // The first evaluation of a cluster may log a line for each of many Services.
    static constexpr uint32_t kBurst = 5'000;
    static constexpr std::chrono::milliseconds kInterval{20};

    // Number of lines suppressed before this one, which may be written. nullopt: this line is suppressed too.
    [[nodiscard]] std::optional<uint64_t> admit(kube::RateLimit::Time now) {
        if (!limit_.take(now)) {
            ++left_out_;
            return std::nullopt;
        }
        return std::exchange(left_out_, 0);
    }

 private:
    kube::RateLimit limit_{kInterval, kBurst};
    uint64_t left_out_ = 0;
};

}  // namespace penstock::sync
