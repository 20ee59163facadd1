// Memory for tables on pages of 2 MiB, touched before anything is timed. Both sides of a comparison must have them: at ten million
// connections small pages would cost a TLB miss an access and hide what is compared.
#pragma once

#include <cstddef>
#include <span>

namespace penstock::perf {

class HugeMemory {
 public:
    // Zeroed. From the kernel's hugepage pool where that has enough, else transparent hugepages, said by a remark on stdout (once).
    // Stops the program where the machine has no memory left.
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

// What the machine could still give, free hugepages included.
[[nodiscard]] size_t available_bytes();

}  // namespace penstock::perf
