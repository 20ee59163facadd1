// When a worker without work may sleep, and for how long. Pure: rounds and moments go in, a length of sleep comes out.
//
//   found something      nothing for 64 rounds and 0.16 ms          2 ms (8 ms with receive interrupts)
//   |---- poll ---------------------------|---- sleep an eighth of the silence so far ----|---- sleep the longest ----
//
// A packet that ends a silence so waits for an eighth of that silence at most: who sends once in 2 ms may wait for 0.25 ms, and who
// sends every 0.1 ms, as in a conversation across a rack, never waits. Under load no worker gets here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"

namespace penstock::worker {

enum class IdleMode : uint8_t {
    Poll,      // never sleep
    Adaptive,  // sleep in ever longer steps the longer nothing comes
};

class IdleWatch {
 public:
    // Rounds that must have found nothing. Time alone would not do: a worker that had lost its CPU for some milliseconds would take its
    // own absence for silence.
    static constexpr uint32_t kEmptyRounds = 64;
    // A sleep is at most this part of the silence before it.
    static constexpr uint64_t kPartOfSilence = 8;
    // Shorter sleeps save nothing: to go to sleep and be woken takes the kernel some 5 us.
    static constexpr uint64_t kShortestUs = 20;
    // Packets of a sleeping worker wait in its receive queues and rings. At the 1.4 million a second that a worker can serve at all, this
    // many have come by the end of the longest sleep: a third of a receive queue's 1,024 descriptors, and less of the rings.
    static constexpr uint64_t kLongestUs = 250;
    static constexpr uint64_t kPacketsAsleepMax = kLongestUs * 1'400'000 / 1'000'000;
    static_assert(kPacketsAsleepMax * 2 < 1'024 &&
                  kPacketsAsleepMax * 2 < std::min(limits::kHandoffRing, limits::kPuntRing));
    // Where a packet on a receive queue ends the sleep, only what comes by rings waits. They hold what comes in a millisecond (1,400), and
    // a handed packet that ends a silence of 8 ms can wait for it. Connections are looked after every millisecond anyway.
    static constexpr uint64_t kLongestInterruptedUs = 1'000;
    static_assert(kLongestInterruptedUs * 1'400'000 / 1'000'000 < limits::kHandoffRing);

    // `interrupted`: packets on every one of the worker's receive queues end its sleep.
    constexpr IdleWatch(IdleMode mode, TscRate rate, bool interrupted) noexcept
        : mode_(mode),
          shortest_{microseconds(rate, kShortestUs)},
          longest_{microseconds(rate, interrupted ? kLongestInterruptedUs : kLongestUs)} {}

    // After each round, with the moment of its end: how long to sleep now. 0: poll again.
    constexpr TscTicks after_round(bool found, TscTime now) noexcept {
        if (found || mode_ == IdleMode::Poll) {
            empty_rounds_ = 0;
            return {};
        }
        if (empty_rounds_ == 0) {
            silent_since_ = now;
        }
        if (empty_rounds_ < kEmptyRounds) {
            ++empty_rounds_;
            return {};
        }
        const TscTicks wanted{ticks_between(silent_since_, now).value / kPartOfSilence};
        return wanted < shortest_ ? TscTicks{} : std::min(wanted, longest_);
    }

 private:
    static constexpr TscTicks microseconds(TscRate rate, uint64_t n) noexcept {
        return {rate.hz * n / 1'000'000};
    }

    IdleMode mode_;
    TscTicks shortest_, longest_;
    uint32_t empty_rounds_ = 0;
    TscTime silent_since_;  // end of the first empty round
};

}  // namespace penstock::worker
