// SPDX-License-Identifier: Apache-2.0
// A program of classic BPF, as libpcap compiles it from its filter language, validated and prepared for
// repeated execution, in general and for the common shapes of packets. The interpreter reads no byte outside
// the frame. It terminates, because jumps lead forward only. docs/adr/0045 has the reasons for it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/base/bytes.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/capture/instruction.hpp"
#include "dataplane/capture/shape.hpp"
#include "dataplane/capture/specialise.hpp"
#include "dataplane/capture/step.hpp"

namespace penstock::capture {

class Program {
 public:
    // Matches every frame.
    Program() : steps_{{.kind = kReturn, .k = 1}} {}
    // No instructions: matches every frame. InvalidArgument names the instruction and the rule: the length is
    // limited, every code is known, jumps lead forward and stay inside, memory words exist, a constant
    // divisor is not zero, a constant shift is below 32, and the last instruction returns.
    static Result<Program> make(std::span<const Instruction> instructions);

    // Whether the program returns a number other than 0 for the frame. A read behind the end of the frame,
    // and a division by zero, end the program with 0, as in libpcap.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool matches(const uint8_t* frame, uint32_t length) const noexcept {
        if (length >= kShapeBytes) [[likely]] {
            const Comparisons::Entry& entry = entries_[static_cast<uint8_t>(shape_of(frame))];
            if (length >= entry.reads_end) [[likely]] {
                return by_shape_.match(entry, frame);
            }
        }
        return matches_general(frame, length);
    }

 private:
    static constexpr uint16_t kCompare = 0, kReturn = 1;  // of StepKind

    // For each packet, whatever its shape.
    [[nodiscard]] PENSTOCK_ALWAYS_INLINE bool matches_general(const uint8_t* frame,
                                                              uint32_t length) const noexcept {
        if (length < fixed_reads_end_) [[unlikely]] {
            return run<true>(steps_.data(), 0, frame, length) != 0;
        }
        // Most filters consist of comparisons; ten instructions each. A is computed only for other steps.
        const Step* const steps = steps_.data();
        const Step* step = steps;
        const Step* last = nullptr;
        uint32_t field = 0;
        while (step->kind == kCompare) {
            last = step;
            field = load<uint32_t>(frame + step->k) & step->mask;
            step = steps + (field == step->value ? step->on_true : step->on_false);
        }
        if (step->kind == kReturn) {
            return step->k != 0;
        }
        return run<false>(step, last == nullptr ? 0 : to_host(field, *last), frame, length) != 0;
    }

    static uint32_t to_host(uint32_t field, const Step& comparison) noexcept {
        return __builtin_bswap32(field) >> comparison.shift;
    }
    // Runs the steps from `step` on. Checks reads at constant places only if `kChecksFixed`; otherwise the
    // frame is long enough for all of them.
    template <bool kChecksFixed>
    [[nodiscard]] uint32_t run(const Step* step, uint32_t a, const uint8_t* frame,
                               uint32_t length) const noexcept;
    void add_steps(std::span<const Instruction> instructions);

    std::vector<Step> steps_;
    Comparisons by_shape_;
    std::array<Comparisons::Entry, kShapes + 1> entries_{};  // by Shape; if it has none, the steps run
    // Frames of this length have the fields of all comparisons, each read as a word, and the bytes of all
    // loads from constant places.
    uint32_t fixed_reads_end_ = 0;
    bool uses_memory_ = false;
};

}  // namespace penstock::capture
