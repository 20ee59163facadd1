// How much one part of the program may log: so many lines at once, then so many a second. What a line is about often comes from users, who
// can change it as often as the API server lets them: ten thousand Services that contend for one address have ten thousand things to tell
// each time the winner changes. What is left out is counted, and said with the next line. A machine without a clock; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "control/kube/rate_limit.hpp"

namespace penstock::sync {

class FloodGuard {
 public:
    // A cluster's first evaluation may say something about each of many Services.
    static constexpr uint32_t kBurst = 5'000;
    static constexpr std::chrono::milliseconds kInterval{20};

    // How many lines were left out before this one, which may be written; nullopt: it is left out as well.
    [[nodiscard]] std::optional<uint64_t> admit(kube::RateLimit::Time now) {
        if (!limit_.take(now)) {
            ++left_out_;
            return std::nullopt;
        }
        return std::exchange(left_out_, 0);
    }

 private:
    kube::RateLimit limit_{kInterval, kBurst};
    uint64_t left_out_ = 0;
};

}  // namespace penstock::sync
