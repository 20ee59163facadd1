// SPDX-License-Identifier: Apache-2.0
// The share of one worker in the SNAT ports: the blocks of 64 that ReplyOwner::of_snat_port() assigns to it
// and that contain ports of --snat-ports. The blocks are numbered from 0 here, because data per block is
// needed only for the worker's own blocks. No I/O, no state.
#pragma once

#include <cstdint>

#include "dataplane/base/ids.hpp"
#include "dataplane/nat/port_blocks.hpp"
#include "dataplane/nat/snat_config.hpp"

namespace penstock::nat {

class PortShare {
 public:
    // `self` is below `workers`.
    constexpr PortShare(PortRange range, WorkerId self, uint32_t workers) noexcept : workers_(workers) {
        const uint32_t from = range.first / kPortsPerBlock;
        const uint32_t last = range.last / kPortsPerBlock;
        first_ = from + (self.value + workers - from % workers) % workers;
        // Port 0 is never allocated: a range that contains only port 0 is empty.
        count_ =
            range.first > range.last || range.last == 0 || first_ > last ? 0 : (last - first_) / workers + 1;
        reciprocal_ = 0xffff'ffffULL / workers + 1;
    }
    // The number of the worker's blocks. The first and the last may contain ports outside the range.
    [[nodiscard]] constexpr uint32_t blocks() const noexcept { return count_; }
    // Converts an index in the share to a block of the port space, and back for a block of the share.
    [[nodiscard]] constexpr uint32_t block_at(uint32_t index) const noexcept {
        return first_ + index * workers_;
    }
    [[nodiscard]] constexpr uint32_t index_of(uint32_t block) const noexcept {
        // (block - first_) / workers_. The reciprocal is too large by less than one part in 2^32, which has
        // no effect on numbers below 2^16.
        return static_cast<uint32_t>(uint64_t{block - first_} * reciprocal_ >> 32);
    }

 private:
    uint32_t workers_;
    uint32_t first_;  // in the port space
    uint32_t count_;
    uint64_t reciprocal_;  // 2^32 / workers, rounded up
};

}  // namespace penstock::nat
