// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture/specialise.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <map>

#include "dataplane/capture/step_kind.hpp"

namespace penstock::capture {
namespace {

using enum StepKind;

// Bits of the frame's first bytes that a shape determines.
struct Facts {
    std::array<uint8_t, kShapeBytes> mask{}, value{};

    void add(uint32_t place, uint32_t bytes, uint32_t bits, uint32_t content) {
        for (uint32_t i = 0; i < bytes; ++i) {
            const uint32_t shift = 8 * (bytes - 1 - i);
            mask[place + i] = static_cast<uint8_t>(bits >> shift);
            value[place + i] = static_cast<uint8_t>(content >> shift);
        }
    }
};

Facts facts_of(Shape shape) {
    Facts facts;
    const bool is_v4 = shape == Shape::TcpV4 || shape == Shape::UdpV4;
    const bool is_tcp = shape == Shape::TcpV4 || shape == Shape::TcpV6;
    facts.add(kTypePlace, 2, 0xffff, is_v4 ? kTypeV4 : kTypeV6);
    if (is_v4) {
        facts.add(kIpPlace, 1, 0xff, kVersionAndLengthV4);
        facts.add(kFragmentPlace, 2, kFragmentBits, 0);
    }
    facts.add(is_v4 ? kProtocolPlaceV4 : kProtocolPlaceV6, 1, 0xff,
              static_cast<uint32_t>(is_tcp ? Protocol::Tcp : Protocol::Udp));
    return facts;
}

// What A holds: some bits of a field of the frame, or, if `bytes` is 0, a constant.
struct Value {
    uint32_t place_or_constant = 0;
    uint32_t bytes = 0;
    uint32_t mask = ~0U;
    auto operator<=>(const Value&) const = default;
};

class Specialiser {
 public:
    Specialiser(std::span<const Instruction> instructions, Shape shape, Comparisons& out)
        : instructions_(instructions), facts_(facts_of(shape)), out_(out) {}

    std::optional<Comparisons::Entry> make() {
        const size_t before = out_.size();
        const std::optional<uint32_t> first = follow({.at = 0, .a = {}, .x = 0});
        if (!first) {
            out_.shrink(before);
            return std::nullopt;
        }
        return Comparisons::Entry{.reads_end = reads_end_, .first = *first};
    }

 private:
    struct State {
        size_t at = 0;
        Value a;
        uint32_t x = 0;
        auto operator<=>(const State&) const = default;
    };
    static constexpr size_t kComparisonsMax = kInstructionsMax;

    // Where the filter continues from the state. Empty: not supported.
    std::optional<uint32_t> follow(State state) {
        if (const auto known = made_.find(state); known != made_.end()) {
            return known->second;
        }
        const State begin = state;
        // Jumps lead forward only, so this ends.
        for (;; ++state.at) {
            const Instruction& instruction = instructions_[state.at];
            const StepKind kind = *kind_of(instruction.code);
            if (kind == Jump) {
                state.at += instruction.k;
            } else if (kind == ReturnK || kind == ReturnA) {
                const auto result = kind == ReturnK ? instruction.k : constant_of(state.a);
                return result.transform([](uint32_t number) {
                    return number != 0 ? Comparisons::kMatch : Comparisons::kNoMatch;
                });
            } else if (kind >= IfEqualK && kind <= IfSetK) {
                const std::optional<bool> decided = decide(kind, state.a, instruction.k);
                if (!decided) {
                    return branch(begin, state);
                }
                state.at += *decided ? instruction.jump_true : instruction.jump_false;
            } else if (!apply(kind, instruction.k, state)) {
                return std::nullopt;
            }
        }
    }

    // False: not supported.
    bool apply(StepKind kind, uint32_t k, State& state) {
        switch (kind) {
            case LoadWord:
            case LoadHalf:
            case LoadByte:
                return load(k, fixed_bytes(kind), state.a);
            case LoadWordAtX:
                return load(uint64_t{state.x} + k, 4, state.a);
            case LoadHalfAtX:
                return load(uint64_t{state.x} + k, 2, state.a);
            case LoadByteAtX:
                return load(uint64_t{state.x} + k, 1, state.a);
            case LoadConstant:
                state.a = {.place_or_constant = k};
                return true;
            case LoadXConstant:
                state.x = k;
                return true;
            case LoadXHeaderLength: {
                Value field;
                const bool has_field = load(k, 1, field);
                const auto byte = has_field ? constant_of(field) : std::nullopt;
                state.x = 4 * (byte.value_or(0) & 0xf);
                return byte.has_value();
            }
            case AndK:
                state.a.mask &= k;
                return true;
            case XFromA: {
                const auto constant = constant_of(state.a);
                state.x = constant.value_or(0);
                return constant.has_value();
            }
            case AFromX:
                state.a = {.place_or_constant = state.x};
                return true;
            default:
                return false;
        }
    }

    bool load(uint64_t place, uint32_t bytes, Value& a) {
        // A read behind the end of the frame ends the program; frames have at most 64 KB.
        if (place > UINT16_MAX) {
            return false;
        }
        need(static_cast<uint32_t>(place) + bytes);
        a = {static_cast<uint32_t>(place), bytes, ~0U >> (32 - 8 * bytes)};
        return true;
    }
    void need(uint32_t end) { reads_end_ = std::max(reads_end_, end); }

    struct Bits {
        uint32_t mask = 0, value = 0;
    };
    // The bits of the value that the shape determines.
    [[nodiscard]] Bits known_of(const Value& a) const {
        if (a.bytes == 0) {
            return {~0U, a.place_or_constant & a.mask};
        }
        Bits bits;
        for (uint32_t i = 0; i < a.bytes; ++i) {
            const uint32_t place = a.place_or_constant + i;
            bits.mask = bits.mask << 8 | (place < kShapeBytes ? facts_.mask[place] : 0U);
            bits.value = bits.value << 8 | (place < kShapeBytes ? facts_.value[place] : 0U);
        }
        // Bits outside the mask are 0, and so known.
        return {bits.mask | ~a.mask, bits.value & a.mask};
    }
    [[nodiscard]] std::optional<uint32_t> constant_of(const Value& a) const {
        const Bits known = known_of(a);
        return known.mask == ~0U ? std::optional(known.value) : std::nullopt;
    }
    [[nodiscard]] std::optional<bool> decide(StepKind kind, const Value& a, uint32_t k) const {
        const Bits known = known_of(a);
        if (kind == IfEqualK) {
            const bool differs = ((known.value ^ k) & known.mask) != 0;
            return differs || known.mask == ~0U ? std::optional(!differs) : std::nullopt;
        }
        if (kind == IfSetK) {
            const bool is_set = (known.value & k) != 0;
            return is_set || (known.mask & k) == k ? std::optional(is_set) : std::nullopt;
        }
        if (known.mask != ~0U) {
            return std::nullopt;
        }
        return kind == IfGreaterK ? known.value > k : known.value >= k;
    }

    // The branch at `state` compares a field.
    std::optional<uint32_t> branch(const State& begin, const State& state) {
        const Instruction& instruction = instructions_[state.at];
        const StepKind kind = *kind_of(instruction.code);
        if ((kind != IfEqualK && kind != IfSetK) || made_.size() >= kComparisonsMax) {
            return std::nullopt;
        }
        const auto go = [&](uint8_t jump) {
            return follow({.at = state.at + 1 + jump, .a = state.a, .x = state.x});
        };
        const auto on_true = go(instruction.jump_true);
        const auto on_false = on_true ? go(instruction.jump_false) : std::nullopt;
        if (!on_false) {
            return std::nullopt;
        }
        need(state.a.place_or_constant + sizeof(uint32_t));
        const uint32_t shift = 32 - 8 * state.a.bytes;
        const auto in_frame = [&](uint32_t number) { return __builtin_bswap32(number << shift); };
        Comparisons::Comparison made{.place = state.a.place_or_constant};
        if (kind == IfEqualK) {
            made.mask = in_frame(state.a.mask);
            made.value = in_frame(instruction.k);
            made.on_true = *on_true;
            made.on_false = *on_false;
        } else {  // some bit is set: not all of them are 0
            made.mask = in_frame(state.a.mask & instruction.k);
            made.on_true = *on_false;
            made.on_false = *on_true;
        }
        return made_.emplace(begin, out_.add(made)).first->second;
    }

    const std::span<const Instruction> instructions_;
    const Facts facts_;
    Comparisons& out_;
    std::map<State, uint32_t> made_;
    uint32_t reads_end_ = kShapeBytes;
};

}  // namespace

uint32_t Comparisons::add(const Comparison& comparison) {
    all_.push_back(comparison);
    return static_cast<uint32_t>((all_.size() - 1) * sizeof(Comparison));
}

std::optional<Comparisons::Entry> specialise(std::span<const Instruction> instructions, Shape shape,
                                             Comparisons& out) {
    return Specialiser(instructions, shape, out).make();
}

}  // namespace penstock::capture
