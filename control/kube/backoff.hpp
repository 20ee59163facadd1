// SPDX-License-Identifier: Apache-2.0
// Wait time after a failure (APISYNC-012): 0.8 s, doubled up to 30 s, each multiplied by a random factor from
// 1 to 2, so that a hundred gateways that lost one server do not reconnect together. After 120 s without a
// failure the sequence starts again at 0.8 s.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "control/kube/random_source.hpp"

namespace penstock::kube {

class Backoff {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    static constexpr std::chrono::milliseconds kFirst{800};
    static constexpr std::chrono::seconds kMax{30};
    static constexpr std::chrono::seconds kResetAfter{120};
    // API servers send 1 to 30 s. Without this bound a single response with a Retry-After of one day would
    // stop this client for a day.
    static constexpr std::chrono::seconds kRetryAfterMax{600};

    explicit Backoff(RandomSource random) : random_(std::move(random)) {}

    // Records a failure at `now` and returns the time of the next attempt. The Retry-After of the server is a
    // lower bound, and is randomized as well.
    [[nodiscard]] Time after_failure(Time now,
                                     std::optional<std::chrono::seconds> retry_after = std::nullopt) {
        if (is_rested(now)) {
            next_ = kFirst;
        }
        const Duration asked = std::min(retry_after.value_or(std::chrono::seconds{0}), kRetryAfterMax);
        const std::chrono::duration<double, Duration::period> wait =
            std::max<Duration>(next_, asked) * (1.0 + random_());
        next_ = std::min<Duration>(next_ * 2, kMax);
        retry_at_ = now + std::chrono::duration_cast<Duration>(wait);
        return *retry_at_;
    }

    // True if there was no recent failure. Counted from the end of the last wait, because the wait itself is
    // no evidence of success.
    [[nodiscard]] bool is_rested(Time now) const { return !retry_at_ || now >= *retry_at_ + kResetAfter; }

 private:
    RandomSource random_;
    Duration next_ = kFirst;
    std::optional<Time> retry_at_;
};

}  // namespace penstock::kube
