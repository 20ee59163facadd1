// SPDX-License-Identifier: Apache-2.0
// Types for time. Functions take the time as an argument and never read a clock. The poll loop reads the TSC
// once per burst and passes it down; a test passes any value.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>

namespace penstock {

// A length of time in TSC ticks.
struct TscTicks {
    uint64_t value = 0;
    constexpr auto operator<=>(const TscTicks&) const = default;
};

// A point in time: TSC ticks since an origin that is private to this boot. Never 0 in a running worker, so 0
// can mean "never".
struct TscTime {
    uint64_t value = 0;
    constexpr auto operator<=>(const TscTime&) const = default;
    constexpr TscTime operator+(TscTicks ticks) const noexcept { return {value + ticks.value}; }
};

// Ticks since `earlier`. 0 if the order appears reversed, because the two readings come from cores with
// slightly different counters.
constexpr TscTicks ticks_between(TscTime earlier, TscTime later) noexcept {
    return {later.value > earlier.value ? later.value - earlier.value : 0};
}

// Converts between ticks and units of time for one machine.
struct TscRate {
    uint64_t hz = 1'000'000'000;  // ticks per second; with the default (for tests) one tick is 1 ns
    constexpr TscTicks seconds(uint64_t n) const noexcept { return {n * hz}; }
    constexpr TscTicks milliseconds(uint64_t n) const noexcept { return {n * (hz / 1000)}; }
    constexpr uint64_t to_milliseconds(TscTicks ticks) const noexcept { return ticks.value / (hz / 1000); }
    constexpr uint64_t to_seconds(TscTicks ticks) const noexcept { return ticks.value / hz; }
};

// Converts TSC readings into a time that never decreases. The counter itself can decrease: to any earlier
// value when a virtual machine is restored or migrated, and slightly when a thread changes its CPU. Time then
// continues from its last value; all later readings are shifted. Written by one thread.
class TscTimeline {
 public:
    TscTime at(uint64_t reading) noexcept {
        if (reading < last_) [[unlikely]] {
            shift_.store(shift_.load(std::memory_order_relaxed) + (last_ - reading),
                         std::memory_order_relaxed);
        }
        last_ = reading;
        return {reading + shift_.load(std::memory_order_relaxed)};
    }
    // The same for any thread, without changing the timeline; for display. Pairs with nothing.
    [[nodiscard]] TscTime shown(uint64_t reading) const noexcept {
        return {reading + shift_.load(std::memory_order_relaxed)};
    }

 private:
    uint64_t last_ = 0;
    std::atomic<uint64_t> shift_{0};
};

// A point in time with a resolution of 1/16 s or finer, in 32 bits, for tables with millions of entries.
// Wraps around after four to eight years; differences are correct up to half of that.
struct CoarseTime {
    uint32_t value = 0;
    constexpr bool operator==(const CoarseTime&) const = default;
};
// Units from `earlier` to `later`. Negative if the order appears reversed, because the two readings come from
// cores with different counters.
constexpr int32_t units_between(CoarseTime earlier, CoarseTime later) noexcept {
    return static_cast<int32_t>(later.value - earlier.value);
}

// Coarse time of one machine: the TSC without its low bits. One unit is between 1/32 and 1/16 s.
class CoarseClock {
 public:
    explicit constexpr CoarseClock(TscRate rate) noexcept : rate_(rate) {
        while ((uint64_t{2} << shift_) <= rate.hz / 16) {
            ++shift_;
        }
    }
    [[nodiscard]] constexpr CoarseTime at(TscTime time) const noexcept {
        return {static_cast<uint32_t>(time.value >> shift_)};
    }
    // The length in units, rounded up.
    [[nodiscard]] constexpr uint64_t units(TscTicks ticks) const noexcept {
        return (ticks.value + (uint64_t{1} << shift_) - 1) >> shift_;
    }
    [[nodiscard]] constexpr uint64_t to_milliseconds(int32_t units) const noexcept {
        return units <= 0 ? 0 : rate_.to_milliseconds({static_cast<uint64_t>(units) << shift_});
    }
    // The inverse, rounded up.
    [[nodiscard]] constexpr uint64_t from_milliseconds(uint64_t milliseconds) const noexcept {
        return units(rate_.milliseconds(milliseconds));
    }

 private:
    TscRate rate_;
    unsigned shift_ = 0;
};

}  // namespace penstock
