// How fast this process writes to the API server, all writers together (APISYNC-020): 10 a second, 20 in a row. A lease that is renewed too
// late is lost, so a Lease never waits behind Events: it overdraws the bucket, and the Events behind it pay. Source thread only.
#pragma once

#include <chrono>
#include <cstdint>

#include "control/kube/rate_limit.hpp"

namespace penstock::kube {

enum class WriteLane : uint8_t { Ordinary, Lease };

class WriteLimiter {
 public:
    using Time = RateLimit::Time;

    // True: write now; it is counted.
    [[nodiscard]] bool take(WriteLane lane, Time now) { return bucket_.take(now, overdraft(lane)); }
    // When take() would succeed if nobody else wrote meanwhile; in the past where it would now.
    [[nodiscard]] Time next_at(WriteLane lane) const { return bucket_.next_at(overdraft(lane)); }

    static constexpr std::chrono::milliseconds kInterval{100};
    static constexpr uint32_t kBurst = 20;
    // A Lease is written every 2 s (LEASE-002), so even retries of several fit. The bound stops a writer that has gone wild.
    static constexpr uint32_t kLeaseOverdraft = 20;

 private:
    static constexpr uint32_t overdraft(WriteLane lane) {
        return lane == WriteLane::Lease ? kLeaseOverdraft : 0;
    }

    RateLimit bucket_{kInterval, kBurst};
};

}  // namespace penstock::kube
