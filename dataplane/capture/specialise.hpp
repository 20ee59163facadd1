// SPDX-License-Identifier: Apache-2.0
// Prepares a filter for packets of one shape by partial evaluation: what the shape determines is computed
// once, and only comparisons of the remaining fields with constants are left. `tcp port 9` has two of them
// for TCP, and none for UDP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/capture/instruction.hpp"
#include "dataplane/capture/shape.hpp"

namespace penstock::capture {

// A filter that consists of comparisons of fields with constants.
class Comparisons {
 public:
    // Where a comparison leads: to another one, as the bytes between it and the first element, or to an end.
    static constexpr uint32_t kNoMatch = 0, kMatch = 1;

    struct Comparison {
        uint32_t place = 0;  // of a word of the frame
        uint32_t mask = 0;   // the field in it
        uint32_t value = 0;
        uint32_t on_true = kNoMatch;
        uint32_t on_false = kNoMatch;
    };
    // The first comparison of a filter for one shape.
    struct Entry {
        uint32_t reads_end = UINT32_MAX;  // for frames of this length or more
        uint32_t first = kNoMatch;
    };

    // Returns where the new comparison is.
    uint32_t add(const Comparison& comparison);
    [[nodiscard]] size_t size() const noexcept { return all_.size(); }
    void shrink(size_t size) { all_.resize(size); }

    // The frame has at least entry.reads_end bytes.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool match(const Entry& entry, const uint8_t* frame) const noexcept {
        const auto* const base = reinterpret_cast<const std::byte*>(all_.data());
        uint32_t next = entry.first;
        while (next > kMatch) {
            const auto* const here = reinterpret_cast<const Comparison*>(base + next);
            const uint32_t field = load<uint32_t>(frame + here->place) & here->mask;
            next = field == here->value ? here->on_true : here->on_false;
        }
        return next == kMatch;
    }

 private:
    std::vector<Comparison> all_{{}};  // no comparison is at 0, which is an end
};

// `instructions` are valid (Program::make). Adds the comparisons for this shape. Empty: the filter computes,
// compares a field with "greater", or uses memory or the frame's length; `out` is unchanged.
[[nodiscard]] std::optional<Comparisons::Entry> specialise(std::span<const Instruction> instructions,
                                                           Shape shape, Comparisons& out);

}  // namespace penstock::capture
