// When each next hop last carried a packet. The kernel sees no flow traffic, so a neighbour that Penstock uses all day looks unused to it,
// goes stale and is forgotten; a control thread reads these stamps and has the ones in use confirmed again before that happens.
//
// One array per worker, indexed by NeighbourId, so workers share no line. The clock is coarse on purpose: a stamp is written only when the
// second has changed, so the line of a busy next hop stays clean between.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::route {

// Seconds since an origin that writer and readers share (TscRate::to_seconds of TscTime); 0 means never, so the clock starts at 1.
using UseSeconds = uint32_t;

class NeighbourUse {
 public:
    using Stamps = std::span<std::atomic<UseSeconds>>;
    static constexpr size_t kStamps = limits::kNeighboursMax;

    // The memory (kStamps, zero) is handed in and outlives this.
    explicit NeighbourUse(Stamps stamps) : stamps_(stamps) { PENSTOCK_CHECK(stamps.size() >= kStamps); }

    // A packet leaves through `id` now. The worker that owns the array. Relaxed, here and below: a stamp stands for itself.
    void note(NeighbourId id, UseSeconds now) noexcept {
        PENSTOCK_ASSERT(id.value < kStamps);
        std::atomic<UseSeconds>& stamp = stamps_[id.value];
        if (stamp.load(std::memory_order_relaxed) != now) {
            stamp.store(now, std::memory_order_relaxed);
        }
    }

    // When the worker last used `id`; 0: never. Any thread. An id that was given to another neighbour since may still tell of its
    // predecessor's use: at worst a confirmation too many.
    [[nodiscard]] UseSeconds last_used(NeighbourId id) const noexcept {
        return id.value < kStamps ? stamps_[id.value].load(std::memory_order_relaxed) : 0;
    }

 private:
    Stamps stamps_;
};

}  // namespace penstock::route
