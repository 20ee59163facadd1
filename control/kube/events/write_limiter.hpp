// SPDX-License-Identifier: Apache-2.0
// Rate limit for all writes of this process to the API server (APISYNC-020): 10 per second, burst 20. A Lease
// that is renewed too late is lost, so a Lease never waits behind Events: it overdraws the bucket, and later
// Events wait longer. Source thread only.
#pragma once

#include <chrono>
#include <cstdint>

#include "control/kube/rate_limit.hpp"

namespace penstock::kube {

enum class WriteLane : uint8_t { Ordinary, Lease };

class WriteLimiter {
 public:
    using Time = RateLimit::Time;

    // True: a write is permitted and counted.
    [[nodiscard]] bool take(WriteLane lane, Time now) { return bucket_.take(now, overdraft(lane)); }
    // Time at which take() succeeds if there are no other writes until then; in the past if it would succeed
    // now.
    [[nodiscard]] Time next_at(WriteLane lane) const { return bucket_.next_at(overdraft(lane)); }

    static constexpr std::chrono::milliseconds kInterval{100};
    static constexpr uint32_t kBurst = 20;
    // A Lease is written every 2 s (LEASE-002), so even retries of several Leases fit. The limit stops a
    // runaway writer.
    static constexpr uint32_t kLeaseOverdraft = 20;

 private:
    static constexpr uint32_t overdraft(WriteLane lane) {
        return lane == WriteLane::Lease ? kLeaseOverdraft : 0;
    }

    RateLimit bucket_{kInterval, kBurst};
};

}  // namespace penstock::kube
