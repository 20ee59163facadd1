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

    // True where an answer may be sent now; takes one token.
    bool take(TscTime now) noexcept {
        // The bucket is a moment: the one from which on it has been filling. It is full when that lies a whole capacity back.
        const uint64_t full_since = now.value > capacity_ticks_ ? now.value - capacity_ticks_ : 0;
        const uint64_t start = filling_since_ > full_since ? filling_since_ : full_since;
        if (start + ticks_per_token_ > now.value) {
            return false;
        }
        filling_since_ = start + ticks_per_token_;
        return true;
    }

 private:
    uint64_t ticks_per_token_ = 1;
    uint64_t capacity_ticks_ = 1;
    uint64_t filling_since_ = 0;
};

}  // namespace penstock::pipeline
