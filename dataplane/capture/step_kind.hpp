// SPDX-License-Identifier: Apache-2.0
// The kinds of a filter's steps (step.hpp).
#pragma once

#include <cstdint>
#include <optional>

namespace penstock::capture {

inline constexpr uint32_t kMemoryWords = 16;

// The kinds of steps: one for each valid code, and two for pairs of them.
enum class StepKind : uint16_t {
    Compare,  // a field of the frame with a constant; a load and the branch behind it
    ReturnK,
    LoadWord,
    LoadHalf,
    LoadByte,
    LoadWordAtX,
    LoadHalfAtX,
    LoadByteAtX,
    LoadConstant,
    LoadLength,
    LoadMemory,
    LoadXConstant,
    LoadXLength,
    LoadXMemory,
    LoadXHeaderLength,
    Store,
    StoreX,
    AddK,
    SubK,
    MulK,
    DivK,
    ModK,
    AndK,
    OrK,
    XorK,
    LshK,
    RshK,
    AddX,
    SubX,
    MulX,
    DivX,
    ModX,
    AndX,
    OrX,
    XorX,
    LshX,
    RshX,
    Negate,
    Jump,
    IfEqualK,
    IfGreaterK,
    IfGreaterEqualK,
    IfSetK,
    IfEqualX,
    IfGreaterX,
    IfGreaterEqualX,
    IfSetX,
    ReturnA,
    XFromA,
    AFromX,
    IfHalfAtXEqual,  // LoadHalfAtX and the branch behind it
};

// The kind of an instruction with this code; empty: unknown.
[[nodiscard]] std::optional<StepKind> kind_of(uint16_t code);

// Bytes read by a load from a constant place; 0: another instruction.
[[nodiscard]] uint32_t fixed_bytes(StepKind kind);

}  // namespace penstock::capture
