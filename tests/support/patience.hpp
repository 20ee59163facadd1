// How long a test waits for what other threads of its process do. A wait by the clock ends too early on a machine whose processors other
// programs take; so patience is measured in processor time of this process, which is what its threads have had to get on with. The clock
// bounds it only where all threads sleep, and far beyond what any wait needs.
#pragma once

#include <chrono>
#include <ctime>
#include <thread>

namespace penstock::test {

class Patience {
 public:
    // Of all threads together. A passing wait needs milliseconds of it; only a failing one takes it all.
    static constexpr std::chrono::nanoseconds kProcessorTime = std::chrono::seconds(6);
    static constexpr std::chrono::nanoseconds kClock = std::chrono::seconds(60);

    [[nodiscard]] bool lasts() const {
        return now(CLOCK_PROCESS_CPUTIME_ID) - processor_ < kProcessorTime &&
               now(CLOCK_MONOTONIC) - clock_ < kClock;
    }
    // Gives way to the other threads for a moment. False when patience has ended.
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

// Waits until `condition` holds; false where patience ends before it does.
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
