// SPDX-License-Identifier: Apache-2.0
// Processor-level helpers of the packet path: cache line size, prefetch, inlining attributes.
#pragma once

#include <cstddef>

#define PENSTOCK_ALWAYS_INLINE inline __attribute__((always_inline))
// Position: between a lambda's parameters and its return type.
#define PENSTOCK_INLINE_LAMBDA __attribute__((always_inline))
#define PENSTOCK_NOINLINE __attribute__((noinline))

namespace penstock {

// The line size of x86-64 and of the arm64 servers that DPDK runs on; DPDK's own RTE_CACHE_LINE_SIZE on x86.
inline constexpr size_t kCacheLine = 64;

PENSTOCK_ALWAYS_INLINE void prefetch_read(const void* address) noexcept {
    __builtin_prefetch(address, 0, 3);
}

// The same for a line that another core has written and this one is about to write: it is requested once, for
// both. On x86-64 GCC uses the instruction only for processors named at build time; the others ignore it.
PENSTOCK_ALWAYS_INLINE void prefetch_write(const void* address) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
    __builtin_prefetch(address, 1, 3);
#endif
}

}  // namespace penstock
