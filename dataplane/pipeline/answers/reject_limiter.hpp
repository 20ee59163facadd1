// A token bucket for what the gateway answers on its own (REJ-003): a flood of packets to a Service without endpoints must not turn the
// gateway into a reflector, nor cost the flows that work.
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

    // True where an answer may be sent now. For callers that find out more before they take() the token.
    [[nodiscard]] bool has_token(TscTime now) const noexcept {
        return start(now) + ticks_per_token_ <= now.value;
    }
    // True where an answer may be sent now; takes one token.
    bool take(TscTime now) noexcept {
        const uint64_t since = start(now);
        if (since + ticks_per_token_ > now.value) {
            return false;
        }
        filling_since_ = since + ticks_per_token_;
        return true;
    }

 private:
    // The bucket is a moment: the one from which on it has been filling. It is full when that lies a whole capacity back.
    [[nodiscard]] uint64_t start(TscTime now) const noexcept {
        const uint64_t full_since = now.value > capacity_ticks_ ? now.value - capacity_ticks_ : 0;
        return filling_since_ > full_since ? filling_since_ : full_since;
    }

    uint64_t ticks_per_token_ = 1;
    uint64_t capacity_ticks_ = 1;
    uint64_t filling_since_ = 0;
};

}  // namespace penstock::pipeline
