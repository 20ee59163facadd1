// Counts what the worker lcores allocate from the heap. The test program's own malloc and its kin stand before libc's
// (allocation_count.cpp); they count where the calling thread is a worker lcore and counting is on.
#pragma once

#include <cstdint>

namespace penstock::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kAllocationsCounted = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kAllocationsCounted = false;
#else
inline constexpr bool kAllocationsCounted = true;
#endif
#else
inline constexpr bool kAllocationsCounted = true;
#endif

void start_counting_worker_allocations();
// Allocations since start, and counting off.
uint64_t stop_counting_worker_allocations();

}  // namespace penstock::test
