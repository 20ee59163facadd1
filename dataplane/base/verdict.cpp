// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/verdict.hpp"

namespace penstock {

const std::array<DropReasonText, kDropReasons> kDropReasonTexts{{
#define PENSTOCK_X(name, counter, meaning) {counter, meaning},
    PENSTOCK_DROP_REASONS(PENSTOCK_X)
#undef PENSTOCK_X
}};

const char* to_string(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::None:
            return "none";
        case Verdict::Transmit:
            return "transmit";
        case Verdict::Split:
            return "split";
        case Verdict::Punt:
            return "punt";
        case Verdict::Handoff:
            return "handoff";
        case Verdict::Hold:
            return "hold";
        case Verdict::Await:
            return "await";
        case Verdict::Drop:
            return "drop";
    }
    return "unknown";
}

}  // namespace penstock
