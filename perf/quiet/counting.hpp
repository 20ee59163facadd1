// Counts what one thread asks of the heap and of locks. The program's own malloc, pthread_mutex_lock and their kin stand before libc's
// (counting.cpp), so calls out of DPDK's and the C++ library are seen too; what libc and DPDK do inside, between their own functions, is
// not: a futex of theirs is a system call (tracer.hpp), and DPDK's spinlocks are inline.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace penstock::perf {

struct Counted {
    uint64_t heap = 0;   // allocations and releases
    uint64_t locks = 0;  // mutexes, read-write locks, spinlocks and semaphores taken
    bool operator==(const Counted&) const = default;
};

// From now on, of this thread of ours only.
void start_counting(pid_t thread);
// What it did since, and counting off.
[[nodiscard]] Counted stop_counting();

}  // namespace penstock::perf
