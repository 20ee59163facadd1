// SPDX-License-Identifier: Apache-2.0
// The end of the process after a signal to stop: at once, or after a drain (--drain-on-stop,
// PRESENCE-003). Pure.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "control/gateway/care/drain_order.hpp"

namespace penstock::gateway {

// Used by the main thread, except deadline().
class StopDrain {
 public:
    using Clock = std::chrono::steady_clock;
    // `limit`: the longest drain; 0: none.
    explicit StopDrain(std::chrono::seconds limit) : limit_(limit) {}

    enum class Answer : uint8_t { StopNow, DrainFirst };
    // A signal to stop has arrived. The first one begins the drain, a second one ends it.
    [[nodiscard]] Answer take_signal(Clock::time_point now) {
        if (limit_.count() == 0 || deadline()) {
            return Answer::StopNow;
        }
        deadline_.store(now + limit_, std::memory_order_relaxed);
        return Answer::DrainFirst;
    }
    // Whether the drain that a signal began is over: no flow is open, or the limit has passed. An undrain
    // does not prolong it.
    [[nodiscard]] bool is_over(Clock::time_point now, DrainStep step) const {
        const auto until = deadline();
        return until && (now >= *until || step == DrainStep::Done);
    }
    // When the process stops at the latest; empty: no signal yet. Any thread.
    [[nodiscard]] std::optional<Clock::time_point> deadline() const {
        const auto until = deadline_.load(std::memory_order_relaxed);
        return until == Clock::time_point{} ? std::nullopt : std::optional(until);
    }

 private:
    const std::chrono::seconds limit_;
    std::atomic<Clock::time_point> deadline_{};
};

}  // namespace penstock::gateway
