// SPDX-License-Identifier: Apache-2.0
// Limit of the time that a test waits for other threads of its process. A limit in wall-clock time expires
// too early on a machine whose processors are used by other programs. The limit is therefore measured in
// processor time of this process, which is the time its threads could use. Wall-clock time is a limit only if
// all threads sleep, and far longer than any wait needs.
#pragma once

#include <chrono>
#include <ctime>
#include <thread>

namespace penstock::test {

class Patience {
 public:
    // Of all threads together. A successful wait needs milliseconds of it; only a failing one uses all of it.
    static constexpr std::chrono::nanoseconds kProcessorTime = std::chrono::seconds(6);
    static constexpr std::chrono::nanoseconds kClock = std::chrono::seconds(60);

    [[nodiscard]] bool lasts() const {
        return now(CLOCK_PROCESS_CPUTIME_ID) - processor_ < kProcessorTime &&
               now(CLOCK_MONOTONIC) - clock_ < kClock;
    }
    // Yields to the other threads for a moment. False when the limit is reached.
    [[nodiscard]] bool wait() const {
        if (!lasts()) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        return true;
    }

 private:
    static std::chrono::nanoseconds now(clockid_t clock) {
        timespec time{};
        clock_gettime(clock, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }
    std::chrono::nanoseconds processor_ = now(CLOCK_PROCESS_CPUTIME_ID);
    std::chrono::nanoseconds clock_ = now(CLOCK_MONOTONIC);
};

// Waits until `condition` is true; false if the limit is reached before.
template <typename Condition>
[[nodiscard]] bool comes_true(const Condition& condition) {
    for (const Patience patience; !condition();) {
        if (!patience.wait()) {
            return condition();
        }
    }
    return true;
}

}  // namespace penstock::test
