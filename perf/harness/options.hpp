// SPDX-License-Identifier: Apache-2.0
// The common command line of the benchmarks: --quick, --sizes 1k,1M, --windows N, and flags of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "perf/harness/windows.hpp"

namespace penstock::perf {

struct Options {
    bool quick = false;
    std::vector<uint32_t> sizes;  // connections
    WindowPlan plan;
    std::vector<std::string_view> flags;  // the bench's own, as given

    [[nodiscard]] bool has(std::string_view flag) const noexcept;
};

// Sizes are `usual`, or `quick_sizes` with --quick, unless --sizes lists others. Ends the program with code 2
// on an option that is neither shared nor in `own_flags`.
[[nodiscard]] Options read_options(int argc, char** argv, std::span<const uint32_t> usual,
                                   std::span<const uint32_t> quick_sizes,
                                   std::span<const std::string_view> own_flags);

// Returns false and prints a remark with the size if `bytes` exceed the available memory.
[[nodiscard]] bool fits_memory(std::string_view what, uint32_t size, size_t bytes);

}  // namespace penstock::perf
