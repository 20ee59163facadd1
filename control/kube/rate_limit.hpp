// SPDX-License-Identifier: Apache-2.0
// Token bucket: a burst, then one token per `interval`. Stored as the time at which the bucket is full again
// (the "virtual scheduling" form of ITU-T I.371). Exact, and needs no periodic refill. Time is an argument.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace penstock::kube {

class RateLimit {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::steady_clock::duration;

    // `burst` is at least 1.
    constexpr RateLimit(Duration interval, uint32_t burst) : interval_(interval), burst_(burst) {}

    // Time at which the next take() succeeds; in the past if it would succeed now. A caller that may overdraw
    // takes up to `overdraft` tokens in advance; all callers wait for them afterwards.
    [[nodiscard]] constexpr Time next_at(uint32_t overdraft = 0) const {
        // Before the first take() the bucket is full, for any epoch of the clock.
        return full_at_ == Time::min() ? full_at_ : full_at_ - interval_ * (int64_t{burst_} + overdraft - 1);
    }
    // True: a token was taken.
    [[nodiscard]] constexpr bool take(Time now, uint32_t overdraft = 0) {
        if (now < next_at(overdraft)) {
            return false;
        }
        full_at_ = std::max(full_at_, now) + interval_;
        return true;
    }

    // The bucket is full: it behaves like an unused one.
    [[nodiscard]] constexpr bool is_full(Time now) const { return full_at_ <= now; }

 private:
    Duration interval_;
    uint32_t burst_;
    Time full_at_ = Time::min();
};

}  // namespace penstock::kube
