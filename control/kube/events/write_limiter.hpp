// SPDX-License-Identifier: Apache-2.0
// Rate limit for all writes of this process to the API server (APISYNC-020): 10 per second, burst 20. Source
// thread only. Each kind of write has a lane:
//
// - Lease: a Lease that is renewed too late is lost, so a Lease never waits for other writes. It overdraws
//   the bucket, and later writes wait longer.
// - Status: at most 8 per second, burst 16, of the common 10. Ten thousand new allocations therefore leave
//   room for two other writes per second.
// - Ordinary: Events.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "control/kube/rate_limit.hpp"

namespace penstock::kube {

enum class WriteLane : uint8_t { Ordinary, Status, Lease };

class WriteLimiter {
 public:
    using Time = RateLimit::Time;

    // True: a write is permitted and counted.
    [[nodiscard]] bool take(WriteLane lane, Time now) {
        if (now < next_at(lane)) {
            return false;
        }
        return (lane != WriteLane::Status || status_.take(now)) && bucket_.take(now, overdraft(lane));
    }
    // Time at which take() succeeds if there are no other writes until then; in the past if it would succeed
    // now.
    [[nodiscard]] Time next_at(WriteLane lane) const {
        const Time common = bucket_.next_at(overdraft(lane));
        return lane == WriteLane::Status ? std::max(common, status_.next_at()) : common;
    }

    static constexpr std::chrono::milliseconds kInterval{100};
    static constexpr uint32_t kBurst = 20;
    static constexpr std::chrono::milliseconds kStatusInterval{125};
    static constexpr uint32_t kStatusBurst = 16;
    // Status writes are more urgent than Events: they need not wait until a storm of Events has paused.
    static constexpr uint32_t kStatusOverdraft = 4;
    // A Lease is written every 2 s (LEASE-002), so even retries of several Leases fit. The limit stops a
    // runaway writer.
    static constexpr uint32_t kLeaseOverdraft = 20;
    static_assert(kLeaseOverdraft > kStatusOverdraft, "status writes must not use up the Lease's reserve");

 private:
    static constexpr uint32_t overdraft(WriteLane lane) {
        return lane == WriteLane::Lease ? kLeaseOverdraft : lane == WriteLane::Status ? kStatusOverdraft : 0;
    }

    RateLimit bucket_{kInterval, kBurst};
    RateLimit status_{kStatusInterval, kStatusBurst};
};

}  // namespace penstock::kube
