// SPDX-License-Identifier: Apache-2.0
// Decides when pending changes are processed: the first change after an idle period at once, a storm of
// changes in batches (GEN-008). A state machine without a clock.
//
//     quiet   | change ... settle |--> take       (a move between slices is two changes: takes both or none)
//     quiet   | complete change --> take          (no endpoint appears or disappears: nothing to wait for)
//     storm   take |<------ window ------>| take |<------ window ------>| take
//
// The first change waits for the settle time if it can be part of a move. API servers report a rolling update
// as several events in a row, and the event that removes an endpoint often precedes the event that adds its
// successor. A change that is complete by itself is taken at once after a quiet window. It does not begin the
// next window, so a change that follows closely is as early as without it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace penstock::sync {

// A controller writes its slices in consecutive requests, and their events follow each other within one or
// two milliseconds. A single change waits this long without benefit, out of its budget of 20 ms, unless it is
// complete.
inline constexpr std::chrono::milliseconds kSettle{3};
// A stream of changes without such a pause is cut after this time.
inline constexpr std::chrono::milliseconds kSettleMax{10};

// Whether other changes can belong to a change.
enum class Extent : uint8_t {
    Open,      // it can be part of a move
    Complete,  // it neither adds nor removes an endpoint
};

class Coalescer {
 public:
    using Time = std::chrono::steady_clock::time_point;

    // At most one batch per `window`. 0: no delay at all.
    explicit Coalescer(std::chrono::milliseconds window)
        : window_(window), settle_(std::min(kSettle, window)) {}

    void on_change(Time now, Extent extent = Extent::Open) {
        if (!waits_) {
            first_ = now;
            is_complete_ = true;
        }
        is_complete_ &= extent == Extent::Complete;
        waits_ = true;
        last_ = now;
    }
    // When the pending changes are to be taken; nullopt if there are none.
    [[nodiscard]] std::optional<Time> due() const {
        if (!waits_) {
            return std::nullopt;
        }
        const Time settled = std::min(last_ + settle_, first_ + kSettleMax);
        return is_early() ? first_ : std::max(settled, not_before_);
    }
    // Arrival time of the oldest pending change; nullopt if there are none.
    [[nodiscard]] std::optional<Time> oldest() const { return waits_ ? std::optional(first_) : std::nullopt; }
    void on_taken(Time now) {
        not_before_ = is_early() ? now : now + window_;
        quiet_from_ = now + window_;
        waits_ = false;
    }

 private:
    // At most one batch in a window is.
    [[nodiscard]] bool is_early() const { return is_complete_ && first_ >= quiet_from_; }

    std::chrono::milliseconds window_;
    std::chrono::milliseconds settle_;
    bool waits_ = false;
    bool is_complete_ = false;  // all pending changes are
    Time first_{};              // arrival of the first pending change
    Time last_{};               // arrival of the last pending change
    Time not_before_ = Time::min();
    Time quiet_from_ = Time::min();  // a window after the last batch
};

}  // namespace penstock::sync
