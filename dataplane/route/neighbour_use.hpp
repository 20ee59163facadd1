// SPDX-License-Identifier: Apache-2.0
// The time at which each next hop last carried a packet. The kernel sees no flow traffic. A neighbour that
// Penstock uses all the time therefore appears unused to the kernel, becomes stale and is removed. A control
// thread reads these stamps and has the neighbours in use confirmed again before that happens.
//
// There is one array per worker, indexed by NeighbourId, so workers share no cache line. The clock is coarse
// on purpose: a stamp is written only when the second has changed, so the line of a busy next hop stays clean
// in between.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::route {

// Seconds since an origin that writer and readers share (TscRate::to_seconds of TscTime). 0 means never, so
// the clock starts at 1.
using UseSeconds = uint32_t;

class NeighbourUse {
 public:
    using Stamps = std::span<std::atomic<UseSeconds>>;
    static constexpr size_t kStamps = limits::kNeighboursMax;

    // The caller provides the memory (kStamps, zeroed), which must outlive this object.
    explicit NeighbourUse(Stamps stamps) : stamps_(stamps) { PENSTOCK_CHECK(stamps.size() >= kStamps); }

    // Records that a packet leaves through `id` now. Only the worker that owns the array. Relaxed, here and
    // below: each stamp is independent.
    void note(NeighbourId id, UseSeconds now) noexcept {
        PENSTOCK_ASSERT(id.value < kStamps);
        std::atomic<UseSeconds>& stamp = stamps_[id.value];
        if (stamp.load(std::memory_order_relaxed) != now) {
            stamp.store(now, std::memory_order_relaxed);
        }
    }

    // The time of the worker's last use of `id`; 0: never. Any thread. If the id has since been reassigned to
    // another neighbour, the result may still be that of its predecessor. The only effect is one superfluous
    // confirmation.
    [[nodiscard]] UseSeconds last_used(NeighbourId id) const noexcept {
        return id.value < kStamps ? stamps_[id.value].load(std::memory_order_relaxed) : 0;
    }

 private:
    Stamps stamps_;
};

}  // namespace penstock::route
