// SPDX-License-Identifier: Apache-2.0
// Decides when an idle worker may sleep, and for how long. Pure: rounds and times are the input, the length
// of a sleep is the result.
//
//   found something    nothing for 64 rounds and 0.16 ms        2 ms (8 ms with receive interrupts)
//   |---- poll ----------------------|---- sleep 1/8 of the idle time so far ----|---- longest sleep ----
//
// Therefore a packet that ends an idle period waits for at most an eighth of that period. At one packet every
// 2 ms the wait is up to 0.25 ms. At one every 0.1 ms, as in a request-response exchange within a rack, there
// is none. Workers under load never sleep.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/limits.hpp"
#include "dataplane/base/time.hpp"

namespace penstock::worker {

enum class IdleMode : uint8_t {
    Poll,      // never sleep
    Adaptive,  // sleep in longer steps the longer nothing arrives
};

class IdleWatch {
 public:
    // Minimum number of empty rounds. Time alone does not suffice: a worker that had lost its CPU for some
    // milliseconds would count its own absence as idle time.
    static constexpr uint32_t kEmptyRounds = 64;
    // A sleep is at most this fraction of the idle time before it.
    static constexpr uint64_t kPartOfSilence = 8;
    // Shorter sleeps save nothing: going to sleep and waking up takes the kernel some 5 us.
    static constexpr uint64_t kShortestUs = 20;
    // Packets for a sleeping worker wait in its receive queues and rings. At 1.4 million packets a second,
    // the maximum rate of a worker, this many have arrived by the end of the longest sleep: a third of a
    // receive queue's 1,024 descriptors, and less of the rings.
    static constexpr uint64_t kLongestUs = 250;
    static constexpr uint64_t kPacketsAsleepMax = kLongestUs * 1'400'000 / 1'000'000;
    static_assert(kPacketsAsleepMax * 2 < 1'024 &&
                  kPacketsAsleepMax * 2 < std::min(limits::kHandoffRing, limits::kPuntRing));
    // If a packet on a receive queue ends the sleep, only packets in the rings wait. The rings hold the
    // packets of a millisecond (1,400), and a handed packet that ends an idle period of 8 ms can wait that
    // long. Aging of connections runs every millisecond anyway.
    static constexpr uint64_t kLongestInterruptedUs = 1'000;
    static_assert(kLongestInterruptedUs * 1'400'000 / 1'000'000 < limits::kHandoffRing);

    // `interrupted`: packets on every one of the worker's receive queues end its sleep.
    constexpr IdleWatch(IdleMode mode, TscRate rate, bool interrupted) noexcept
        : mode_(mode),
          shortest_{microseconds(rate, kShortestUs)},
          longest_{microseconds(rate, interrupted ? kLongestInterruptedUs : kLongestUs)} {}

    // Called after each round, with the time of its end. Returns how long to sleep now; 0: poll again.
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
