// SPDX-License-Identifier: Apache-2.0
// Rate limit for all writes of this process to the API server (APISYNC-020). Source thread only. Each kind of
// write has a lane:
//
// - Lease: a Lease that is renewed too late is lost, so a Lease never waits for other writes. It overdraws
//   the common bucket, and later writes wait longer.
// - Status: at most `status_per_s` per second (--status-qps), with a burst of two seconds.
// - Ordinary, which are Events: at most 10 per second, with a burst of 20.
//
// All lanes together: 10 writes per second with a burst of 20, or two per second more than the status lane
// if that is more. Ten thousand new allocations therefore leave room for two other writes per second. By
// default, status has 8 of the 10.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "control/kube/rate_limit.hpp"

namespace penstock::kube {

enum class WriteLane : uint8_t { Ordinary, Status, Lease };

// Status writes per second: the rate that APISYNC-020 leaves to them, and the limit of the option.
inline constexpr uint32_t kStatusRateDefault = 8;
inline constexpr uint32_t kStatusRateMax = 200;

class WriteLimiter {
 public:
    using Time = RateLimit::Time;

    WriteLimiter() : WriteLimiter(kStatusRateDefault) {}
    // From 1 to kStatusRateMax.
    explicit WriteLimiter(uint32_t status_per_s)
        : status_per_s_(status_per_s),
          common_(interval_of(common_rate(status_per_s)), kBurstSeconds * common_rate(status_per_s)),
          status_(interval_of(status_per_s), kBurstSeconds * status_per_s) {}

    // True: a write is permitted and counted.
    [[nodiscard]] bool take(WriteLane lane, Time now) {
        if (now < next_at(lane)) {
            return false;
        }
        return (lane != WriteLane::Status || status_.take(now)) &&
               (lane != WriteLane::Ordinary || ordinary_.take(now)) && common_.take(now, overdraft(lane));
    }
    // Time at which take() succeeds if there are no other writes until then; in the past if it would succeed
    // now.
    [[nodiscard]] Time next_at(WriteLane lane) const {
        const Time common = common_.next_at(overdraft(lane));
        return lane == WriteLane::Status     ? std::max(common, status_.next_at())
               : lane == WriteLane::Ordinary ? std::max(common, ordinary_.next_at())
                                             : common;
    }
    [[nodiscard]] uint32_t status_per_s() const noexcept { return status_per_s_; }

    static constexpr uint32_t kRate = 10;  // writes per second of all lanes, unless status has more
    static constexpr uint32_t kBurstSeconds = 2;
    // Left to the other lanes, per second.
    static constexpr uint32_t kReserve = kRate - kStatusRateDefault;
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
    static constexpr uint32_t common_rate(uint32_t status_per_s) {
        return std::max(kRate, status_per_s + kReserve);
    }
    static constexpr RateLimit::Duration interval_of(uint32_t per_s) {
        return RateLimit::Duration(std::chrono::seconds(1)) / per_s;
    }

    uint32_t status_per_s_;
    RateLimit common_;
    RateLimit status_;
    RateLimit ordinary_{interval_of(kRate), kBurstSeconds* kRate};
};

}  // namespace penstock::kube
