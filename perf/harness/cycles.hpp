// SPDX-License-Identifier: Apache-2.0
// Time by the TSC, fenced so that no measured work is executed outside the measured span. The unit is TSC
// cycles, not core cycles (the core may run faster or slower than its TSC counts). Processors without a TSC
// use the nearest monotonic counter.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "dataplane/base/cpu.hpp"

namespace penstock::perf {

// All earlier instructions have finished, no later one has begun.
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

// rdtscp waits until all earlier loads and stores have executed; the fence delays the later ones.
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

// Ticks per second, measured once against CLOCK_MONOTONIC.
[[nodiscard]] uint64_t cycles_per_second();

// Cost of an empty span between cycles_begin() and cycles_end(), subtracted from each measured one. Measured
// once, as the minimum of many spans.
[[nodiscard]] uint64_t empty_span_cycles();

}  // namespace penstock::perf
