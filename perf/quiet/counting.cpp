// SPDX-License-Identifier: Apache-2.0
#include "perf/quiet/counting.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace penstock::perf {
namespace {

std::atomic<pid_t> watched{0};  // 0: none
std::atomic<uint64_t> heap{0}, locks{0};

bool is_watched() noexcept {
    const pid_t wanted = watched.load(std::memory_order_relaxed);
    if (wanted == 0) {
        return false;
    }
    thread_local pid_t self = 0;  // gettid is a system call, which would be counted itself
    if (self == 0) {
        self = static_cast<pid_t>(syscall(SYS_gettid));
    }
    return self == wanted;
}
void note_heap() noexcept {
    if (is_watched()) {
        heap.fetch_add(1, std::memory_order_relaxed);
    }
}
void note_lock() noexcept {
    if (is_watched()) {
        locks.fetch_add(1, std::memory_order_relaxed);
    }
}

// The libc function that the replacement below hides.
template <typename Function>
Function* behind(const char* name) noexcept {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void start_counting(pid_t thread) {
    heap = 0;
    locks = 0;
    watched = thread;
}
Counted stop_counting() {
    watched = 0;
    return {heap, locks};
}

}  // namespace penstock::perf

// The names below are libc's; NOLINTBEGIN(readability-identifier-naming)
extern "C" {
// glibc's allocator has these names for programs that replace malloc.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) {
    penstock::perf::note_heap();
    return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
    penstock::perf::note_heap();
    return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
    penstock::perf::note_heap();
    return __libc_realloc(old, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
    penstock::perf::note_heap();
    return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
    penstock::perf::note_heap();
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
    penstock::perf::note_heap();
    *out = __libc_memalign(alignment, bytes);
    return *out == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
    penstock::perf::note_heap();
    __libc_free(memory);
}

#define PENSTOCK_COUNT_LOCK(function, type)                                      \
    int function(type* lock) noexcept {                                          \
        static auto* const real = penstock::perf::behind<int(type*)>(#function); \
        penstock::perf::note_lock();                                             \
        return real(lock);                                                       \
    }
PENSTOCK_COUNT_LOCK(pthread_mutex_lock, pthread_mutex_t)
PENSTOCK_COUNT_LOCK(pthread_mutex_trylock, pthread_mutex_t)
PENSTOCK_COUNT_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
PENSTOCK_COUNT_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
PENSTOCK_COUNT_LOCK(pthread_spin_lock, pthread_spinlock_t)
PENSTOCK_COUNT_LOCK(sem_post, sem_t)
#undef PENSTOCK_COUNT_LOCK
}
// NOLINTEND(readability-identifier-naming)
