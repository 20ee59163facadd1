// SPDX-License-Identifier: Apache-2.0
// The size of the hugepages that a gateway uses (--hugepage-size). Pure.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::drivers {

enum class HugepageSize : uint8_t {
    Any,      // whatever is free; ordinary memory if nothing is
    Small2M,  // only 2 MB
    Large1G,  // only 1 GB
};

// Size of the pages that are added to the kernel's pool. Any: the size that every x86-64 and most arm64
// kernels can still allocate at run time.
[[nodiscard]] constexpr uint64_t page_kb(HugepageSize size) noexcept {
    return size == HugepageSize::Large1G ? 1'048'576 : 2'048;
}

// "2 MB".
[[nodiscard]] constexpr const char* text_of_page(HugepageSize size) noexcept {
    return size == HugepageSize::Large1G ? "1 GB" : "2 MB";
}

// As in --hugepage-size and in mount's pagesize=.
[[nodiscard]] constexpr const char* word_of_page(HugepageSize size) noexcept {
    return size == HugepageSize::Large1G ? "1G" : "2M";
}

// The kernel's name of the pool, "hugepages-2048kB".
[[nodiscard]] inline std::string pool_name(HugepageSize size) {
    return "hugepages-" + std::to_string(page_kb(size)) + "kB";
}

// `memory_mb` rounded up to whole pages. Any: unchanged.
[[nodiscard]] constexpr uint64_t whole_pages_mb(uint64_t memory_mb, HugepageSize size) noexcept {
    const uint64_t page_mb = page_kb(size) / 1024;
    return size == HugepageSize::Any ? memory_mb : (memory_mb + page_mb - 1) / page_mb * page_mb;
}

}  // namespace penstock::drivers
