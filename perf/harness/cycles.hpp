// Time by the TSC, read so that nothing of the measured work slides out of the measured span: TSC cycles, not core cycles (the core may run
// faster or slower than its TSC counts). On processors without one, the nearest monotonic counter.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "dataplane/base/cpu.hpp"

namespace penstock::perf {

// Everything before has finished, nothing behind has begun.
PENSTOCK_ALWAYS_INLINE uint64_t cycles_begin() noexcept {
#if defined(__x86_64__)
    _mm_lfence();
    const uint64_t now = __rdtsc();
    _mm_lfence();
    return now;
#else
    uint64_t now;
    asm volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(now)::"memory");
    return now;
#endif
}

// rdtscp waits for all loads and stores in front of it to execute; the fence keeps what follows behind it.
PENSTOCK_ALWAYS_INLINE uint64_t cycles_end() noexcept {
#if defined(__x86_64__)
    unsigned cpu;
    const uint64_t now = __rdtscp(&cpu);
    _mm_lfence();
    return now;
#else
    return cycles_begin();
#endif
}

// Ticks a second, measured once against CLOCK_MONOTONIC.
[[nodiscard]] uint64_t cycles_per_second();

// What an empty span between cycles_begin() and cycles_end() costs: subtracted from each measured one. Measured once, the minimum of many.
[[nodiscard]] uint64_t empty_span_cycles();

}  // namespace penstock::perf
