// SPDX-License-Identifier: Apache-2.0
// Times of many packets as counts in classes of 1.6 % width, 64 classes per doubling. Adding is an increment.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace penstock::perf {

class LatencyHistogram {
 public:
    void add(uint64_t ticks) noexcept {
        ++counts_[class_of(ticks)];
        ++total_;
    }
    [[nodiscard]] uint64_t count() const noexcept { return total_; }
    // The upper end of the class with the packet at `share` of all in order of time; 0 without packets.
    [[nodiscard]] uint64_t at(double share) const noexcept {
        auto left = static_cast<uint64_t>(share * static_cast<double>(total_));
        for (uint32_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] > left) {
                return upper_end(i);
            }
            left -= counts_[i];
        }
        return 0;
    }

 private:
    static constexpr uint32_t kBits = 6;
    static constexpr uint32_t kStep = 1u << kBits;
    static constexpr uint32_t class_of(uint64_t ticks) noexcept {
        if (ticks < kStep) {
            return static_cast<uint32_t>(ticks);
        }
        const auto shift = static_cast<uint32_t>(std::bit_width(ticks)) - kBits - 1;
        return (shift + 1) * kStep + static_cast<uint32_t>((ticks >> shift) - kStep);
    }
    static constexpr uint64_t upper_end(uint32_t index) noexcept {
        if (index < kStep) {
            return index;
        }
        const uint32_t shift = index / kStep - 1;
        return ((uint64_t{index % kStep} + kStep + 1) << shift) - 1;
    }

    std::array<uint64_t, (64 - kBits + 1) * kStep> counts_{};
    uint64_t total_ = 0;
};

}  // namespace penstock::perf
