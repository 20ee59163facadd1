// SPDX-License-Identifier: Apache-2.0
// The workers that may own a packet's connection, in the order in which the packet visits them
// (placement.hpp).
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/ids.hpp"

namespace penstock::pipeline {

struct Candidates {
    std::array<WorkerId, 3> workers{};
    uint8_t count = 0;
    // RSS or a flow rule of the arrival port should have delivered the packet to its owner
    bool is_foretold = false;
    bool is_first_guess = false;  // computed with Ask::ReceiverFirst: on a miss compute again with EachWorker
    void add(WorkerId worker) noexcept {
        if (count == 0 || workers[count - 1] != worker) {  // two rules may agree
            workers[count++] = worker;
        }
    }
    // The configuration may change while a packet is handed over, so a position counted by another worker may
    // no longer exist.
    [[nodiscard]] uint8_t in_range(uint8_t tried) const noexcept {
        return tried < count ? tried : static_cast<uint8_t>(count - 1);
    }
    [[nodiscard]] bool is_last(uint8_t tried) const noexcept { return tried + 1 >= count; }
};

}  // namespace penstock::pipeline
