// SPDX-License-Identifier: Apache-2.0
// Memory for tables on pages of 2 MiB, touched before any measurement. Both sides of a comparison must use
// it: at ten million connections small pages would add a TLB miss per access and hide the difference.
#pragma once

#include <cstddef>
#include <span>

namespace penstock::perf {

class HugeMemory {
 public:
    HugeMemory() = default;  // none
    // Zeroed. From the kernel's hugepage pool if it has enough, otherwise transparent hugepages, reported by
    // a remark on stdout (once). Ends the program if the machine has not enough memory.
    explicit HugeMemory(size_t bytes);
    ~HugeMemory();
    HugeMemory(HugeMemory&& other) noexcept;
    HugeMemory(const HugeMemory&) = delete;
    HugeMemory& operator=(const HugeMemory&) = delete;

    [[nodiscard]] std::span<std::byte> span() const noexcept { return {memory_, wanted_}; }
    template <typename T>
    [[nodiscard]] std::span<T> as() const noexcept {
        return {reinterpret_cast<T*>(memory_), wanted_ / sizeof(T)};
    }
    [[nodiscard]] size_t bytes() const noexcept { return wanted_; }

 private:
    std::byte* memory_ = nullptr;
    size_t wanted_ = 0;
    size_t mapped_ = 0;
};

// The memory that the machine has available, free hugepages included.
[[nodiscard]] size_t available_bytes();

}  // namespace penstock::perf
