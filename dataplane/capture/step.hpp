// SPDX-License-Identifier: Apache-2.0
// A step of a filter that is prepared for execution (program.hpp).
#pragma once

#include <cstdint>

namespace penstock::capture {

// An instruction with absolute jump targets, or a comparison of a field of the frame with a constant. The
// latter replaces a load and the branch behind it, the most frequent pair. The branch is also a step of its
// own, because a jump may lead to it.
struct Step {
    uint16_t kind = 0;     // a StepKind
    uint16_t on_true = 0;  // index of the next step
    uint16_t on_false = 0;
    uint16_t shift = 0;  // of a comparison: 32 minus the field's bits
    uint32_t k = 0;
    uint32_t mask = 0;  // of a comparison: the field in a word read at k
    uint32_t value = 0;
};

}  // namespace penstock::capture
