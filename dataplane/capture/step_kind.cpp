// SPDX-License-Identifier: Apache-2.0
#include "dataplane/capture/step_kind.hpp"

#include <algorithm>
#include <iterator>

namespace penstock::capture {

using enum StepKind;

namespace {

struct Known {
    uint16_t code;
    StepKind kind;
};
// The codes of pcap/bpf.h: class in the low three bits; then size and mode, or operation and source.
constexpr Known kKnown[] = {{0x20, LoadWord},
                            {0x28, LoadHalf},
                            {0x30, LoadByte},
                            {0x40, LoadWordAtX},
                            {0x48, LoadHalfAtX},
                            {0x50, LoadByteAtX},
                            {0x00, LoadConstant},
                            {0x80, LoadLength},
                            {0x60, LoadMemory},
                            {0x01, LoadXConstant},
                            {0x81, LoadXLength},
                            {0x61, LoadXMemory},
                            {0xb1, LoadXHeaderLength},
                            {0x02, Store},
                            {0x03, StoreX},
                            {0x04, AddK},
                            {0x14, SubK},
                            {0x24, MulK},
                            {0x34, DivK},
                            {0x94, ModK},
                            {0x54, AndK},
                            {0x44, OrK},
                            {0xa4, XorK},
                            {0x64, LshK},
                            {0x74, RshK},
                            {0x0c, AddX},
                            {0x1c, SubX},
                            {0x2c, MulX},
                            {0x3c, DivX},
                            {0x9c, ModX},
                            {0x5c, AndX},
                            {0x4c, OrX},
                            {0xac, XorX},
                            {0x6c, LshX},
                            {0x7c, RshX},
                            {0x84, Negate},
                            {0x05, Jump},
                            {0x15, IfEqualK},
                            {0x25, IfGreaterK},
                            {0x35, IfGreaterEqualK},
                            {0x45, IfSetK},
                            {0x1d, IfEqualX},
                            {0x2d, IfGreaterX},
                            {0x3d, IfGreaterEqualX},
                            {0x4d, IfSetX},
                            {0x06, ReturnK},
                            {0x16, ReturnA},
                            {0x07, XFromA},
                            {0x87, AFromX}};

}  // namespace

std::optional<StepKind> kind_of(uint16_t code) {
    const auto* found = std::ranges::find(kKnown, code, &Known::code);
    return found == std::end(kKnown) ? std::nullopt : std::optional(found->kind);
}

uint32_t fixed_bytes(StepKind kind) {
    switch (kind) {
        case LoadWord:
            return 4;
        case LoadHalf:
            return 2;
        case LoadByte:
        case LoadXHeaderLength:
            return 1;
        default:
            return 0;
    }
}

}  // namespace penstock::capture
