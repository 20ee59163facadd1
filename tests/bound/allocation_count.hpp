// Counts what the worker lcores allocate from the heap. The test program's own malloc and its kin stand before libc's
// (allocation_count.cpp); they count where the calling thread is a worker lcore and counting is on.
#pragma once

#include <cstdint>

#include "tests/support/sanitizers.hpp"

namespace penstock::test {

inline constexpr bool kAllocationsCounted = !kUnderAddressSanitizer && !kUnderThreadSanitizer;

void start_counting_worker_allocations();
// Allocations since start, and counting off.
uint64_t stop_counting_worker_allocations();

}  // namespace penstock::test
