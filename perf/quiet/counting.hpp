// SPDX-License-Identifier: Apache-2.0
// Counts one thread's heap operations and locks. The program's own malloc, pthread_mutex_lock and similar
// functions replace libc's (counting.cpp), so calls from DPDK and the C++ library are counted too. Operations
// inside libc and DPDK are not counted: their futexes are system calls (tracer.hpp), and DPDK's spinlocks are
// inline.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace penstock::perf {

struct Counted {
    uint64_t heap = 0;   // allocations and releases
    uint64_t locks = 0;  // mutexes, read-write locks, spinlocks and semaphores taken
    bool operator==(const Counted&) const = default;
};

// Counts from now on, for this one thread only.
void start_counting(pid_t thread);
// Ends counting and returns the counts.
[[nodiscard]] Counted stop_counting();

}  // namespace penstock::perf
