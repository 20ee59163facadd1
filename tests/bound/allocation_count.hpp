// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations by the worker lcores. The test program's own malloc and related functions precede
// libc's (allocation_count.cpp). They count if the calling thread is a worker lcore and counting is on.
#pragma once

#include <cstdint>

#include "tests/support/sanitizers.hpp"

namespace penstock::test {

inline constexpr bool kAllocationsCounted = !kUnderAddressSanitizer && !kUnderThreadSanitizer;

void start_counting_worker_allocations();
// Returns the allocations since start and switches counting off.
uint64_t stop_counting_worker_allocations();

}  // namespace penstock::test
