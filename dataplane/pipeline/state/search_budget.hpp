// SPDX-License-Identifier: Apache-2.0
// Limits the ICMP errors that one worker may pass to all workers in turn (errors.cpp). A tunnel with an MTU
// that drops makes each flow of a client receive one error: a thousand flows to one address within the first
// second, the others with their next packet. An attacker that forges errors to the addresses of some Services
// exhausts the share of these addresses; forged errors to four addresses exhaust the whole limit. Each
// searching worker then costs each other worker at most 4,000 ring transfers, parses and lookups a second. At
// 250 ns each this is 0.1 % of its time, or 3 % if 31 other workers search.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/time.hpp"
#include "dataplane/pipeline/state/reject_limiter.hpp"

namespace penstock::pipeline {

inline constexpr uint32_t kErrorSearchesPerSecond = 1'000;  // for errors to one address
inline constexpr uint32_t kErrorSearchesPerSecondOfAll = 4 * kErrorSearchesPerSecond;

class SearchBudget {
 public:
    explicit SearchBudget(TscRate rate) noexcept
        : all_(kErrorSearchesPerSecondOfAll, kErrorSearchesPerSecondOfAll, rate) {
        shares_.fill(RejectLimiter(kErrorSearchesPerSecond, kErrorSearchesPerSecond, rate));
    }
    // `address_hash`: keyed hash of the destination address of the error.
    bool take(TscTime now, uint64_t address_hash) noexcept {
        return shares_[address_hash % shares_.size()].take(now) && all_.take(now);
    }

 private:
    RejectLimiter all_;
    std::array<RejectLimiter, 64> shares_;  // two addresses may share one by chance
};

}  // namespace penstock::pipeline
