// SPDX-License-Identifier: Apache-2.0
#include "tests/bound/allocation_count.hpp"

#include <rte_lcore.h>

#include <atomic>
#include <cstddef>

namespace penstock::test {
namespace {
std::atomic<bool> counting{false};
std::atomic<uint64_t> allocations{0};

[[maybe_unused]] void note() {
    if (counting.load(std::memory_order_relaxed) && rte_lcore_id() != LCORE_ID_ANY && rte_lcore_id() != 0) {
        allocations.fetch_add(1, std::memory_order_relaxed);
    }
}
}  // namespace

void start_counting_worker_allocations() {
    allocations = 0;
    counting = true;
}
uint64_t stop_counting_worker_allocations() {
    counting = false;
    return allocations;
}

}  // namespace penstock::test

#if !defined(PENSTOCK_UNDER_ADDRESS_SANITIZER) && !defined(PENSTOCK_UNDER_THREAD_SANITIZER)
// glibc provides its allocator under these names for programs that replace malloc.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
    penstock::test::note();
    return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
    penstock::test::note();
    return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
    penstock::test::note();
    return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
    penstock::test::note();
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
    penstock::test::note();
    *out = __libc_memalign(alignment, bytes);
    return *out == nullptr ? 12 : 0;  // ENOMEM
}
}
#endif
