// SPDX-License-Identifier: Apache-2.0
// Decides when pending changes are processed: the first change after an idle period at once, a storm of
// changes in batches (GEN-008). A state machine without a clock.
//
//     quiet   | change ... settle |--> take       (a move between slices is two changes: takes both or none)
//     storm   take |<------ window ------>| take |<------ window ------>| take
//
// Even the first change waits for the settle time. API servers report a rolling update as several events in a
// row, and the event that removes an endpoint often precedes the event that adds its successor.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace penstock::sync {

// A controller writes its slices in consecutive requests, and their events follow each other within one or
// two milliseconds. A single change waits this long without benefit, out of its budget of 20 ms.
inline constexpr std::chrono::milliseconds kSettle{3};
// A stream of changes without such a pause is cut after this time.
inline constexpr std::chrono::milliseconds kSettleMax{10};

class Coalescer {
 public:
    using Time = std::chrono::steady_clock::time_point;

    // At most one batch per `window`. 0: no delay at all.
    explicit Coalescer(std::chrono::milliseconds window)
        : window_(window), settle_(std::min(kSettle, window)) {}

    void on_change(Time now) {
        if (!waits_) {
            first_ = now;
        }
        waits_ = true;
        last_ = now;
    }
    // When the pending changes are to be taken; nullopt if there are none.
    [[nodiscard]] std::optional<Time> due() const {
        const Time settled = std::min(last_ + settle_, first_ + kSettleMax);
        return waits_ ? std::optional(std::max(settled, not_before_)) : std::nullopt;
    }
    // Arrival time of the oldest pending change; nullopt if there are none.
    [[nodiscard]] std::optional<Time> oldest() const { return waits_ ? std::optional(first_) : std::nullopt; }
    void on_taken(Time now) {
        waits_ = false;
        not_before_ = now + window_;
    }

 private:
    std::chrono::milliseconds window_;
    std::chrono::milliseconds settle_;
    bool waits_ = false;
    Time first_{};  // arrival of the first pending change
    Time last_{};   // arrival of the last pending change
    Time not_before_ = Time::min();
};

}  // namespace penstock::sync
