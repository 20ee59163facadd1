// SPDX-License-Identifier: Apache-2.0
// Token bucket for the gateway's own answers (REJ-003). A flood of packets to a Service without endpoints
// must neither make the gateway a reflector nor slow down working flows.
#pragma once

#include <cstdint>

#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"

namespace penstock::pipeline {

class RejectLimiter {
 public:
    RejectLimiter() = default;
    RejectLimiter(uint32_t per_second, uint32_t burst, TscRate rate) noexcept
        : ticks_per_token_(rate.hz / per_second), capacity_ticks_(ticks_per_token_ * burst) {}

    // Returns true if an answer may be sent now. For callers with further checks before they take() the
    // token.
    [[nodiscard]] bool has_token(TscTime now) const noexcept {
        return start(now) + ticks_per_token_ <= now.value;
    }
    // Returns true if an answer may be sent now; takes one token.
    bool take(TscTime now) noexcept {
        const uint64_t since = start(now);
        if (since + ticks_per_token_ > now.value) {
            return false;
        }
        filling_since_ = since + ticks_per_token_;
        return true;
    }

 private:
    // The bucket's state is the time since which it has been filling. It is full if that time is one capacity
    // or more ago.
    [[nodiscard]] uint64_t start(TscTime now) const noexcept {
        const uint64_t full_since = now.value > capacity_ticks_ ? now.value - capacity_ticks_ : 0;
        return filling_since_ > full_since ? filling_since_ : full_since;
    }

    uint64_t ticks_per_token_ = 1;
    uint64_t capacity_ticks_ = 1;
    uint64_t filling_since_ = 0;
};

}  // namespace penstock::pipeline
