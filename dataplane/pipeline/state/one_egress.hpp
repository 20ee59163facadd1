// SPDX-License-Identifier: Apache-2.0
// Recognises a burst that leaves as a whole, for disposal without a decision per packet (tx.cpp).
#pragma once

#include <cstdint>

#include "dataplane/base/cpu.hpp"
#include "dataplane/pipeline/state/burst.hpp"

namespace penstock::pipeline {

// Whether all packets of the burst are transmitted by one port.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE bool leaves_by_one_port(const Burst& burst) noexcept {
    uint8_t other = 0;  // without a branch: the loop is compiled to vector instructions
    for (uint32_t i = 0; i < burst.count; ++i) {
        other |= static_cast<uint8_t>(static_cast<uint8_t>(burst.verdict[i]) ^
                                      static_cast<uint8_t>(Verdict::Transmit));
        other |= static_cast<uint8_t>(burst.egress[i].value ^ burst.egress[0].value);
    }
    return other == 0 && burst.count > 0;
}

}  // namespace penstock::pipeline
