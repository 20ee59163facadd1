// So many in a row, then one each `interval`: a token bucket, kept as the one moment at which it will be full again (the "virtual
// scheduling" form of ITU-T I.371). Exact, without a counter that somebody has to refill. Time is an argument.
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

    // When the next one may go, in the past where it may go now. Somebody who may overdraw goes up to `overdraft` ahead of the rate, and
    // everybody pays for it afterwards.
    [[nodiscard]] constexpr Time next_at(uint32_t overdraft = 0) const {
        // Before the first take nothing is owed, whatever the clock's epoch is.
        return full_at_ == Time::min() ? full_at_ : full_at_ - interval_ * (int64_t{burst_} + overdraft - 1);
    }
    // True: it may go, and is counted.
    [[nodiscard]] constexpr bool take(Time now, uint32_t overdraft = 0) {
        if (now < next_at(overdraft)) {
            return false;
        }
        full_at_ = std::max(full_at_, now) + interval_;
        return true;
    }

    // Nothing is owed any more: one that has never been used would answer the same.
    [[nodiscard]] constexpr bool is_full(Time now) const { return full_at_ <= now; }

 private:
    Duration interval_;
    uint32_t burst_;
    Time full_at_ = Time::min();
};

}  // namespace penstock::kube
