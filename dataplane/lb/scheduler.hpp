// Which backend a new flow gets. One function for every scheduler; what a scheduler remembers between flows lies in SchedulerState, one per
// worker, so choosing takes no lock: fairness holds exactly on each worker, and over all of them to within one flow per worker (SCHED-002).
//
//   name    new flow goes to                                                  looks at                          cost with n backends
//   rr      the next                                                          the worker's cursor               1
//   wrr     the next of a turn in which each is as often as its weight says   cursor, WeightedOrder             log n
//   lc      the fewest open flows                                             all workers' open-flow counts     n x workers
//   wlc     the least open / weight                                           the same                          n x workers
//   sed     the least (open + 1) / weight                                     the same                          n x workers
//   nq      the first without open flows if there is any, else as sed         the same                          n x workers, or less
//   p2c     of two different ones drawn at random the lesser (open + 1) / weight   the counts of two            workers
//   random  one drawn at random, all alike                                    the worker's generator            1
//   sh      a hash of the client's address tells                              MaglevRing                        1
//   dh      a hash of the frontend's address tells                            MaglevRing                        1
//   mh      a hash of the 5-tuple, or of the client's address where the Service has session affinity     MaglevRing     1
//
// Ties go to the lowest position (SCHED-003), those of p2c to the one drawn first, or the first positions would get more of short flows.
// Loads are compared by cross-multiplication. A count that another worker is changing may be read as it was before: by nanoseconds, not
// by the 10 ms that are allowed. lc and its like read every backend's count for every new flow, which is what their definition asks for
// and thousands of endpoints make dear (docs/performance.md); p2c comes close to their balance for the cost of two.
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

// A Service has a backend set for external traffic and may have others: for clients inside the cluster, for internal traffic, and for each
// of these by origin; each for one or both IP families. Each set rotates on its own, or flows to one would tear holes into the rotation of
// the other.
inline constexpr uint32_t kBackendSetsMax = 8;

// The backend counters of every worker, by BackendId; each row has its worker as only writer, and a picker sums.
using BackendRows = std::span<const stats::BackendCounters* const>;

// What one worker's schedulers remember. The worker alone writes; a control thread may peek (relaxed atomics, no pairing: each word stands
// for itself). The memory is handed in and outlives this.
class SchedulerState {
 public:
    static constexpr size_t kCursors = size_t{limits::kServicesMax} * kBackendSetsMax;

    // `seed` differs from worker to worker (HashKey::random at start): every rotation begins at a random place of its own. Workers that
    // all began at the first backend would send it a burst of `workers` flows for every new Service. `rows`: complete before the first
    // pick.
    SchedulerState(std::span<uint32_t> cursors, uint64_t seed, BackendRows rows) noexcept;

    // Where the rotation of `set` stands: the next place to take, before reduction to the length of the set's turn.
    [[nodiscard]] uint32_t cursor(ServiceId service, size_t set) const noexcept {
        return std::atomic_ref(cursors_[slot(service, set)]).load(std::memory_order_relaxed);
    }
    void set_cursor(ServiceId service, size_t set, uint32_t next) noexcept {
        std::atomic_ref(cursors_[slot(service, set)]).store(next, std::memory_order_relaxed);
    }

    // The number that draw() would give next.
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
// Reduces a cursor to a turn that may have shrunk since. Reducing, not resetting: a reset would send the next flow of every worker to the
// first backend after each change (SCHED-002's edge). The division, slow as an L2 access, is left to that change: a whole turn ends at n.
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

// Index into set.usable for a new flow whose first packet is `forward`. `set` is one of service.sets and is not empty. Worker. For lc and
// its like to see it, the caller counts the flow as open at once.
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
    // One past the end is left to the next pick to wrap: a backend added at the end meanwhile is then simply the next.
    state.set_cursor(service.id, index, chosen + 1);
    return chosen;
}

// What pick() would answer now, changing nothing; for `explain`. Any thread: a worker that schedules meanwhile makes it a recent answer.
[[nodiscard]] uint32_t peek(const Service& service, const BackendSet& set, const packet::FlowKey& forward,
                            const SchedulerState& state) noexcept;

}  // namespace penstock::lb
