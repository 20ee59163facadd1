// The order in which weighted round robin visits backends, without a table of it: the place in the turn is a number below the sum of the
// weights, and which backend has that place is computed in one walk down a binary tree over the backends.
//
//              w = 7                 A node that has had p visits has passed floor(p x left / w) of them to its left half and the rest to
//            .-'   '-.               its right half; so the p-th visit goes left where that number grows by one. Nothing is remembered
//         w = 5     w = 2            in the nodes: one cursor a worker and set stands for the whole state.
//         .' '.     .' '.
//         3   2     1   1            The turn of these four: 3 1 0 2 1 0 0.
//
// In w visits a node gives its left half exactly `left` of them, wherever they begin; by induction each backend has exactly k x weight of
// any k x sum flows in a row (SCHED-002). In any other run its number differs from its share by less than one a level, scaled by the
// weights below it: by less than 1 + log2 n, and by about 3 at worst where it was measured (tests/property/scheduler_property_test.cpp).
//
// Why not a table: 10,000 endpoints of weight 65,535 would need 655 million places. Why not virtual deadlines in a heap: it interleaves
// somewhat better, but is a heap of n entries for each set and worker, to be rebuilt on each worker with each change. This is n numbers in
// the snapshot, shared by all workers, and a pick of log2 n steps (perf/micro/scheduler_bench.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

class WeightedOrder {
 public:
    WeightedOrder() = default;  // of no backends: at() must not be called

    // Weights are divided by their greatest common divisor. Where their sum exceeds 2^32 - 1, which takes 65,537 backends, they are halved
    // until it does not, each at least 1. Where all are 0, each counts as 1: a flow must go somewhere. Control thread.
    static WeightedOrder build(std::span<const Backend> backends);

    // Flows in one turn; 0 where there are no backends.
    [[nodiscard]] uint32_t length() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
    // Index of the backend that has this place, below length().
    [[nodiscard]] uint32_t at(uint32_t place) const noexcept;

 private:
    std::vector<uint32_t> ends_;  // [i]: the sum of the first i weights
};

}  // namespace penstock::lb
