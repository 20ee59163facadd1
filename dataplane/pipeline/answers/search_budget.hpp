// How many ICMP errors one worker may lead round all workers (errors.cpp). A tunnel that is suddenly narrower makes each flow of a client
// fetch one error: a thousand flows to one address in the first second, and the others with their next packet. Whoever forges errors to
// some Services' addresses uses up the turns of these. With those of four addresses the whole is gone, and each worker that asks costs each
// other one at most 4,000 turns of a ring, a parse and a look-up a second: at 250 ns each 0.1 % of its time, 3 % where 31 others ask.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/time.hpp"
#include "dataplane/pipeline/answers/reject_limiter.hpp"

namespace penstock::pipeline {

inline constexpr uint32_t kErrorSearchesPerSecond = 1'000;  // for errors to one address
inline constexpr uint32_t kErrorSearchesPerSecondOfAll = 4 * kErrorSearchesPerSecond;

class SearchBudget {
 public:
    explicit SearchBudget(TscRate rate) noexcept
        : all_(kErrorSearchesPerSecondOfAll, kErrorSearchesPerSecondOfAll, rate) {
        shares_.fill(RejectLimiter(kErrorSearchesPerSecond, kErrorSearchesPerSecond, rate));
    }
    // `address_hash`: keyed, of whom the error is addressed to.
    bool take(TscTime now, uint64_t address_hash) noexcept {
        return shares_[address_hash % shares_.size()].take(now) && all_.take(now);
    }

 private:
    RejectLimiter all_;
    std::array<RejectLimiter, 64> shares_;  // two addresses meet in one by chance
};

}  // namespace penstock::pipeline
