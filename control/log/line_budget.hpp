// SPDX-License-Identifier: Apache-2.0
// Rate limit for log lines that any client of a port can cause: ten, then one per second. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace penstock::log {

class LineBudget {
 public:
    // The number of lines suppressed before this one; empty if this one is suppressed too.
    std::optional<uint64_t> admit() {
        const std::lock_guard lock(mutex_);
        const auto now = std::chrono::steady_clock::now();
        tokens_ = std::min(kTokensMax, tokens_ + std::chrono::duration<double>(now - last_).count());
        last_ = now;
        if (tokens_ < 1) {
            ++left_out_;
            return std::nullopt;
        }
        tokens_ -= 1;
        return std::exchange(left_out_, 0);
    }

 private:
    static constexpr double kTokensMax = 10;
    std::mutex mutex_;
    double tokens_ = kTokensMax;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    uint64_t left_out_ = 0;
};

}  // namespace penstock::log
