// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture/program.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/capture/step_kind.hpp"

namespace penstock::capture {
namespace {

using enum StepKind;

bool is_branch(StepKind kind) {
    return kind >= IfEqualK && kind <= IfSetX;
}
bool is_return(StepKind kind) {
    return kind == ReturnK || kind == ReturnA;
}

// The rule that instruction `at` of `count` breaks; "": none.
std::string fault_of(const Instruction& instruction, size_t at, size_t count) {
    const auto kind = kind_of(instruction.code);
    if (!kind) {
        return "unknown code " + std::to_string(instruction.code);
    }
    const size_t behind = count - at - 1;  // instructions behind this one
    if (*kind == Jump && instruction.k >= behind) {
        return "a jump of " + std::to_string(instruction.k) + " leads out of the program";
    }
    if (is_branch(*kind) && std::max(instruction.jump_true, instruction.jump_false) >= behind) {
        return "a branch leads out of the program";
    }
    if ((*kind == LoadMemory || *kind == LoadXMemory || *kind == Store || *kind == StoreX) &&
        instruction.k >= kMemoryWords) {
        return "memory word " + std::to_string(instruction.k) + " does not exist; the last one is 15";
    }
    if ((*kind == DivK || *kind == ModK) && instruction.k == 0) {
        return "division by zero";
    }
    if ((*kind == LshK || *kind == RshK) && instruction.k > 31) {
        return "a shift by " + std::to_string(instruction.k) + " bits; the maximum is 31";
    }
    if (behind == 0 && !is_return(*kind)) {
        return "the last instruction must return";
    }
    return "";
}

// A field of the frame, as a load from a constant place reads it.
struct Field {
    uint32_t place;
    uint32_t bytes;
    bool operator==(const Field&) const = default;
};

bool changes_a(StepKind kind) {
    return kind <= LoadMemory || kind == AFromX || (kind >= AddK && kind <= Negate);
}

// The field that A holds before each instruction, whichever way leads there; empty: none, or it depends.
std::vector<std::optional<Field>> fields_in_a(std::span<const Instruction> instructions) {
    std::vector<std::optional<Field>> held(instructions.size());
    std::vector<bool> is_reached(instructions.size());
    const auto reach = [&](size_t target, const std::optional<Field>& field) {
        held[target] = !is_reached[target] || held[target] == field ? field : std::nullopt;
        is_reached[target] = true;
    };
    for (size_t at = 0; at < instructions.size(); ++at) {
        const Instruction& instruction = instructions[at];
        const StepKind kind = *kind_of(instruction.code);
        auto field = held[at];
        if (kind == LoadWord || kind == LoadHalf || kind == LoadByte) {
            field = Field{instruction.k, fixed_bytes(kind)};
        } else if (changes_a(kind)) {
            field = std::nullopt;
        }
        if (kind == Jump) {
            reach(at + 1 + instruction.k, field);
        } else if (is_branch(kind)) {
            reach(at + 1 + instruction.jump_true, field);
            reach(at + 1 + instruction.jump_false, field);
        } else if (!is_return(kind)) {
            reach(at + 1, field);
        }
    }
    return held;
}

}  // namespace

Result<Program> Program::make(std::span<const Instruction> instructions) {
    if (instructions.size() > kInstructionsMax) {
        return fail(Errc::InvalidArgument, "the filter has " + std::to_string(instructions.size()) +
                                               " instructions; the maximum is " +
                                               std::to_string(kInstructionsMax));
    }
    for (size_t at = 0; at < instructions.size(); ++at) {
        if (const std::string fault = fault_of(instructions[at], at, instructions.size()); !fault.empty()) {
            return fail(Errc::InvalidArgument, "instruction " + std::to_string(at) + ": " + fault);
        }
    }
    Program program;
    if (!instructions.empty()) {
        program.add_steps(instructions);
        for (uint8_t shape = 0; shape < kShapes; ++shape) {
            program.entries_[shape] = specialise(instructions, static_cast<Shape>(shape), program.by_shape_)
                                          .value_or(Comparisons::Entry{});
        }
    }
    return program;
}

void Program::add_steps(std::span<const Instruction> instructions) {
    static_assert(kCompare == std::to_underlying(Compare) && kReturn == std::to_underlying(ReturnK));
    const auto held = fields_in_a(instructions);
    const auto need = [&](uint64_t end) {  // beyond any frame: such a load ends the program
        fixed_reads_end_ = std::max(fixed_reads_end_, static_cast<uint32_t>(std::min<uint64_t>(end, ~0U)));
    };
    const auto compare = [&](const Field& field, const Instruction& branch, Step& step) {
        step.kind = kCompare;
        step.k = field.place;
        step.shift = static_cast<uint16_t>(32 - 8 * field.bytes);
        step.mask = __builtin_bswap32(~0U << step.shift);
        step.value = __builtin_bswap32(branch.k << step.shift);
        need(uint64_t{field.place} + sizeof(uint32_t));
    };
    const auto fits = [](const Field& field, uint32_t value) {
        return field.bytes == 4 || value >> 8 * field.bytes == 0;
    };
    steps_.clear();
    for (size_t at = 0; at < instructions.size(); ++at) {
        const Instruction& instruction = instructions[at];
        const StepKind kind = *kind_of(instruction.code);
        const auto index = [](size_t target) { return static_cast<uint16_t>(target); };
        Step step{.kind = std::to_underlying(kind),
                  .on_true = index(at + 1),
                  .on_false = index(at + 1),
                  .k = instruction.k};
        if (kind == Jump) {
            step.on_true = index(at + 1 + instruction.k);
        } else if (is_branch(kind)) {
            step.on_true = index(at + 1 + instruction.jump_true);
            step.on_false = index(at + 1 + instruction.jump_false);
        }
        uses_memory_ |= kind == LoadMemory || kind == LoadXMemory;
        const uint32_t bytes = fixed_bytes(kind);
        need(bytes == 0 ? 0 : uint64_t{instruction.k} + bytes);
        const bool is_pair = at + 1 < instructions.size() && kind_of(instructions[at + 1].code) == IfEqualK;
        if (is_pair && (kind == LoadWord || kind == LoadHalf || kind == LoadByte || kind == LoadHalfAtX)) {
            const Instruction& branch = instructions[at + 1];
            const Field field{instruction.k, bytes};
            if (kind == LoadHalfAtX) {
                step.kind = std::to_underlying(IfHalfAtXEqual);
                step.value = branch.k;
            } else if (fits(field, branch.k)) {
                compare(field, branch, step);
            }
            if (step.kind != std::to_underlying(kind)) {
                step.on_true = index(at + 2 + branch.jump_true);
                step.on_false = index(at + 2 + branch.jump_false);
            }
        } else if (kind == IfEqualK && held[at] && fits(*held[at], instruction.k)) {
            compare(*held[at], instruction, step);
        }
        steps_.push_back(step);
    }
}

}  // namespace penstock::capture
