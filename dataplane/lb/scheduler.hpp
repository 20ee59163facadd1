// SPDX-License-Identifier: Apache-2.0
// Chooses the backend of a new flow. One function serves all schedulers. The state that a scheduler keeps
// between flows is in SchedulerState, one per worker, so a choice takes no lock. Fairness is exact on each
// worker, and within one flow per worker over all of them (SCHED-002).
//
//   name    backend of a new flow                             reads                         cost (n backends)
//   rr      the next one                                      the worker's cursor           1
//   wrr     the next of a turn that contains each backend     cursor, WeightedOrder         log n
//           in proportion to its weight
//   lc      fewest open flows                                 open flows of all workers     n x workers
//   wlc     lowest open / weight                              the same                      n x workers
//   sed     lowest (open + 1) / weight                        the same                      n x workers
//   nq      the first without open flows, otherwise as sed    the same                      at most the same
//   p2c     of two different random ones, the one with the    open flows of two backends    workers
//           lower (open + 1) / weight
//   random  a random one, with equal probability              the worker's generator        1
//   sh      by hash of the client's address                   MaglevRing                    1
//   dh      by hash of the frontend's address                 MaglevRing                    1
//   mh      by hash of the 5-tuple, or of the client's        MaglevRing                    1
//           address if the Service has session affinity
//
// Ties go to the lowest position (SCHED-003). Ties of p2c go to the backend drawn first; otherwise the first
// positions would get more of the short flows. Loads are compared by cross-multiplication. A count that
// another worker is changing may be stale by nanoseconds; 10 ms are allowed. lc, wlc, sed and nq read every
// backend's count for every new flow. Their definition requires it, and it is expensive with thousands of
// endpoints (docs/performance.md). p2c balances nearly as well for the cost of two reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "dataplane/base/check.hpp"
#include "dataplane/base/cpu.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/lb/service.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/stats/counters.hpp"

namespace penstock::lb {

// A Service has a backend set for external traffic and may have others: for clients inside the cluster, for
// internal traffic, and for each of these by origin; each for one or both IP families. Each set has its own
// rotation. With a shared one, flows to one set would leave gaps in the rotation of the other.
inline constexpr uint32_t kBackendSetsMax = 8;

// The backend counters of every worker, by BackendId. Each row is written only by its worker; a scheduler
// adds them up.
using BackendRows = std::span<const stats::BackendCounters* const>;

// The scheduler state of one worker. Only this worker writes it. A control thread may read it (relaxed
// atomics, no pairing: each word is independent). The caller provides the memory, which must outlive this
// object.
class SchedulerState {
 public:
    static constexpr size_t kCursors = size_t{limits::kServicesMax} * kBackendSetsMax;

    // `seed` differs between workers (HashKey::random at start), so that every rotation begins at a random
    // position. If all workers began at the first backend, every new Service would send it a burst of
    // `workers` flows. `rows` must be complete before the first pick.
    SchedulerState(std::span<uint32_t> cursors, uint64_t seed, BackendRows rows) noexcept;

    // The position of the rotation of `set`: the next place to use, before reduction modulo the length of the
    // set's turn.
    [[nodiscard]] uint32_t cursor(ServiceId service, size_t set) const noexcept {
        return std::atomic_ref(cursors_[slot(service, set)]).load(std::memory_order_relaxed);
    }
    void set_cursor(ServiceId service, size_t set, uint32_t next) noexcept {
        std::atomic_ref(cursors_[slot(service, set)]).store(next, std::memory_order_relaxed);
    }

    // The number that draw() would return next.
    [[nodiscard]] uint64_t peek_draw() const noexcept;
    uint64_t draw() noexcept;

    // Open flows of the backend on all workers.
    [[nodiscard]] uint64_t open_flows(BackendId backend) const noexcept {
        uint64_t sum = 0;
        for (const stats::BackendCounters* rows : rows_) {
            sum += rows[backend.value].open.read();
        }
        return sum;
    }

 private:
    static size_t slot(ServiceId service, size_t set) noexcept {
        PENSTOCK_ASSERT(service.value < limits::kServicesMax && set < kBackendSetsMax);
        return size_t{service.value} * kBackendSetsMax + set;
    }

    std::span<uint32_t> cursors_;
    BackendRows rows_;
    uint64_t random_state_;
};

namespace detail {
// Reduces a cursor to a turn that may have become shorter. A reset to 0 instead would send the next flow of
// every worker to the first backend after each change (SCHED-002). The division is as slow as an L2 access,
// so it is done only after such a change; a whole turn ends at n.
PENSTOCK_ALWAYS_INLINE uint32_t rotation_index(uint32_t cursor, uint32_t n) noexcept {
    if (cursor < n) [[likely]] {
        return cursor;
    }
    return cursor == n ? 0 : cursor % n;
}
PENSTOCK_ALWAYS_INLINE size_t index_of(const Service& service, const BackendSet& set) noexcept {
    const auto index = static_cast<size_t>(&set - service.sets.data());
    PENSTOCK_ASSERT(index < service.sets.size());
    return index;
}
[[nodiscard]] uint32_t pick_without_turn(const Service& service, const BackendSet& set,
                                         const packet::FlowKey& forward, SchedulerState& state) noexcept;
}  // namespace detail

// Index into set.usable for a new flow with `forward` as its first packet. `set` is one of service.sets and
// is not empty. Worker. The caller counts the flow as open immediately, so that lc, wlc, sed, nq and p2c
// include it.
[[nodiscard]] PENSTOCK_ALWAYS_INLINE uint32_t pick(const Service& service, const BackendSet& set,
                                                   const packet::FlowKey& forward,
                                                   SchedulerState& state) noexcept {
    if (service.scheduler != SchedulerKind::RoundRobin) {
        return detail::pick_without_turn(service, set, forward, state);
    }
    PENSTOCK_ASSERT(!set.usable.empty());
    const size_t index = detail::index_of(service, set);
    const uint32_t chosen =
        detail::rotation_index(state.cursor(service.id, index), static_cast<uint32_t>(set.usable.size()));
    // The next pick wraps a cursor of one past the end. So if a backend was added at the end meanwhile, it is
    // the next one.
    state.set_cursor(service.id, index, chosen + 1);
    return chosen;
}

// The current result of pick(), without changing any state; for `explain`. Any thread. If a worker schedules
// at the same time, the result may be slightly out of date.
[[nodiscard]] uint32_t peek(const Service& service, const BackendSet& set, const packet::FlowKey& forward,
                            const SchedulerState& state) noexcept;

}  // namespace penstock::lb
