// When changes that have been heard are worked in: the first one after a quiet time at once, a storm of them in portions (GEN-008).
// A machine without a clock.
//
//     quiet      | change ... settle |--> take       an endpoint that moves from one slice to another is two changes: both or none
//     storm      take |<------ window ------>| take |<------ window ------>| take
//
// Not even the first one goes without a moment of patience: API servers tell a rolling update as several events in a row, and the one that
// takes an endpoint away often comes before the one that brings its successor.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace penstock::sync {

// A controller writes its slices one request after the other, and their events follow each other within one or two milliseconds. A single
// change waits this long for nothing, out of the 20 ms that it may take.
inline constexpr std::chrono::milliseconds kSettle{3};
// A stream of changes without such a pause is cut here.
inline constexpr std::chrono::milliseconds kSettleMax{10};

class Coalescer {
 public:
    using Time = std::chrono::steady_clock::time_point;

    // At most one portion in each `window`; 0: nothing is held back at all.
    explicit Coalescer(std::chrono::milliseconds window)
        : window_(window), settle_(std::min(kSettle, window)) {}

    void on_change(Time now) {
        if (!waits_) {
            first_ = now;
        }
        waits_ = true;
        last_ = now;
    }
    // When what was heard shall be taken; nullopt where there is nothing.
    [[nodiscard]] std::optional<Time> due() const {
        const Time settled = std::min(last_ + settle_, first_ + kSettleMax);
        return waits_ ? std::optional(std::max(settled, not_before_)) : std::nullopt;
    }
    // When the oldest of what waits was heard.
    [[nodiscard]] std::optional<Time> oldest() const { return waits_ ? std::optional(first_) : std::nullopt; }
    void on_taken(Time now) {
        waits_ = false;
        not_before_ = now + window_;
    }

 private:
    std::chrono::milliseconds window_;
    std::chrono::milliseconds settle_;
    bool waits_ = false;
    Time first_{};  // heard of what waits
    Time last_{};   // likewise
    Time not_before_ = Time::min();
};

}  // namespace penstock::sync
