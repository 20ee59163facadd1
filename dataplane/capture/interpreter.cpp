// SPDX-License-Identifier: Apache-2.0
// The interpreter of Program.
#include <array>
#include <cstring>

#include "dataplane/capture/program.hpp"
#include "dataplane/capture/step_kind.hpp"

namespace penstock::capture {

using enum StepKind;

namespace {

inline uint32_t word_at(const uint8_t* place) noexcept {
    uint32_t raw = 0;
    std::memcpy(&raw, place, sizeof raw);
    return __builtin_bswap32(raw);
}
inline uint32_t half_at(const uint8_t* place) noexcept {
    uint16_t raw = 0;
    std::memcpy(&raw, place, sizeof raw);
    return __builtin_bswap16(raw);
}

}  // namespace

template <bool kChecksFixed>
uint32_t Program::run(const Step* step, uint32_t a, const uint8_t* frame, uint32_t length) const noexcept {
    std::array<uint32_t, kMemoryWords> memory;
    if (uses_memory_) {
        memory.fill(0);
    }
    uint32_t x = 0;
    const Step* const steps = steps_.data();
    // Places are computed in 64 bits: k and X are any numbers.
    const auto has = [&](uint64_t place, uint32_t bytes) { return place + bytes <= length; };
    const auto has_fixed = [&](uint32_t bytes) { return !kChecksFixed || has(step->k, bytes); };
    const auto at_x = [&] { return uint64_t{x} + step->k; };
    const auto branch = [&](bool is_true) { step = steps + (is_true ? step->on_true : step->on_false); };
    for (;;) {
        switch (static_cast<StepKind>(step->kind)) {
            case Compare: {
                const uint32_t bytes = 4U - step->shift / 8U;
                if (!has_fixed(bytes)) {
                    return 0;
                }
                uint32_t field = 0;
                std::memcpy(&field, frame + step->k, kChecksFixed ? bytes : sizeof field);
                field &= step->mask;
                a = to_host(field, *step);
                branch(field == step->value);
                continue;
            }
            case IfHalfAtXEqual:
                if (!has(at_x(), 2)) {
                    return 0;
                }
                a = half_at(frame + at_x());
                branch(a == step->value);
                continue;
            case LoadWord:
                if (!has_fixed(4)) {
                    return 0;
                }
                a = word_at(frame + step->k);
                break;
            case LoadHalf:
                if (!has_fixed(2)) {
                    return 0;
                }
                a = half_at(frame + step->k);
                break;
            case LoadByte:
                if (!has_fixed(1)) {
                    return 0;
                }
                a = frame[step->k];
                break;
            case LoadWordAtX:
                if (!has(at_x(), 4)) {
                    return 0;
                }
                a = word_at(frame + at_x());
                break;
            case LoadHalfAtX:
                if (!has(at_x(), 2)) {
                    return 0;
                }
                a = half_at(frame + at_x());
                break;
            case LoadByteAtX:
                if (!has(at_x(), 1)) {
                    return 0;
                }
                a = frame[at_x()];
                break;
            case LoadXHeaderLength:
                if (!has_fixed(1)) {
                    return 0;
                }
                x = (frame[step->k] & 0xfU) * 4;
                break;
            case LoadConstant:
                a = step->k;
                break;
            case LoadLength:
                a = length;
                break;
            case LoadMemory:
                a = memory[step->k];
                break;
            case LoadXConstant:
                x = step->k;
                break;
            case LoadXLength:
                x = length;
                break;
            case LoadXMemory:
                x = memory[step->k];
                break;
            case Store:
                memory[step->k] = a;
                break;
            case StoreX:
                memory[step->k] = x;
                break;
            case AddK:
                a += step->k;
                break;
            case SubK:
                a -= step->k;
                break;
            case MulK:
                a *= step->k;
                break;
            case DivK:
                a /= step->k;
                break;
            case ModK:
                a %= step->k;
                break;
            case AndK:
                a &= step->k;
                break;
            case OrK:
                a |= step->k;
                break;
            case XorK:
                a ^= step->k;
                break;
            case LshK:
                a <<= step->k;
                break;
            case RshK:
                a >>= step->k;
                break;
            case AddX:
                a += x;
                break;
            case SubX:
                a -= x;
                break;
            case MulX:
                a *= x;
                break;
            case DivX:
            case ModX:
                if (x == 0) {
                    return 0;
                }
                a = static_cast<StepKind>(step->kind) == DivX ? a / x : a % x;
                break;
            case AndX:
                a &= x;
                break;
            case OrX:
                a |= x;
                break;
            case XorX:
                a ^= x;
                break;
            case LshX:
                a = x < 32 ? a << x : 0;
                break;
            case RshX:
                a = x < 32 ? a >> x : 0;
                break;
            case Negate:
                a = 0U - a;
                break;
            case Jump:
                branch(true);
                continue;
            case IfEqualK:
                branch(a == step->k);
                continue;
            case IfGreaterK:
                branch(a > step->k);
                continue;
            case IfGreaterEqualK:
                branch(a >= step->k);
                continue;
            case IfSetK:
                branch((a & step->k) != 0);
                continue;
            case IfEqualX:
                branch(a == x);
                continue;
            case IfGreaterX:
                branch(a > x);
                continue;
            case IfGreaterEqualX:
                branch(a >= x);
                continue;
            case IfSetX:
                branch((a & x) != 0);
                continue;
            case ReturnK:
                return step->k;
            case ReturnA:
                return a;
            case XFromA:
                x = a;
                break;
            case AFromX:
                a = x;
                break;
            default:
                __builtin_unreachable();  // steps hold the kinds above only
        }
        ++step;
    }
}

template uint32_t Program::run<false>(const Step* step, uint32_t a, const uint8_t* frame,
                                      uint32_t length) const noexcept;
template uint32_t Program::run<true>(const Step* step, uint32_t a, const uint8_t* frame,
                                     uint32_t length) const noexcept;

}  // namespace penstock::capture
