// SPDX-License-Identifier: Apache-2.0
#include "perf/harness/memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

namespace penstock::perf {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

std::byte* map(size_t bytes, int flags) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

uint64_t meminfo(const std::string& name) {
    std::ifstream file("/proc/meminfo");
    std::string word;
    while (file >> word) {
        if (word == name + ":") {
            uint64_t value = 0;
            file >> value;
            return value;
        }
    }
    return 0;
}

}  // namespace

HugeMemory::HugeMemory(size_t bytes)
    : wanted_(bytes), mapped_((bytes + kHugePage - 1) / kHugePage * kHugePage) {
    memory_ = map(mapped_, MAP_HUGETLB | MAP_POPULATE);
    if (memory_ == nullptr) {
        static bool said = false;
        if (!std::exchange(said, true)) {
            std::printf("# too few hugepages are reserved: tables are on transparent ones\n");
        }
        mapped_ += kHugePage;  // the kernel joins pages at 2 MiB boundaries only
        memory_ = map(mapped_, 0);
        if (memory_ == nullptr) {
            std::fprintf(stderr, "no memory for %zu MiB\n", mapped_ >> 20);
            std::exit(1);
        }
        madvise(memory_, mapped_, MADV_HUGEPAGE);
        for (size_t at = 0; at < mapped_; at += 4096) {
            *reinterpret_cast<volatile std::byte*>(memory_ + at) = std::byte{0};
        }
    }
}

HugeMemory::HugeMemory(HugeMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      wanted_(std::exchange(other.wanted_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

HugeMemory::~HugeMemory() {
    if (memory_ != nullptr) {
        munmap(memory_, mapped_);
    }
}

size_t available_bytes() {
    const uint64_t ordinary_kib = meminfo("MemAvailable");
    const uint64_t huge_kib = meminfo("HugePages_Free") * meminfo("Hugepagesize");
    return static_cast<size_t>(ordinary_kib + huge_kib) << 10;
}

}  // namespace penstock::perf
