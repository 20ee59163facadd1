// SPDX-License-Identifier: Apache-2.0
// Cache-line aligned memory as passed to a worker's tables, zeroed or not.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"

namespace penstock::test {

class AlignedMemory {
 public:
    explicit AlignedMemory(size_t bytes)
        : bytes_((bytes + kCacheLine - 1) / kCacheLine * kCacheLine),
          memory_(static_cast<std::byte*>(std::aligned_alloc(kCacheLine, bytes_))) {
        PENSTOCK_CHECK(memory_ != nullptr);
    }
    [[nodiscard]] std::span<std::byte> span() const { return {memory_.get(), bytes_}; }

 private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    size_t bytes_;
    std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace penstock::test
