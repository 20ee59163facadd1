// SPDX-License-Identifier: Apache-2.0
// The order in which weighted round robin visits backends, computed without a table. A place in the turn is a
// number below the sum of the weights. Its backend is computed in one walk down a binary tree over the
// backends.
//
//             w = 7             A node that has had p visits has sent floor(p x left / w) of them to its left
//           .-'   '-.           half and the rest to its right half. So visit p goes left if that number
//        w = 5     w = 2        increases by one. The nodes have no state: one cursor per worker and set
//        .' '.     .' '.        is the whole state.
//        3   2     1   1        The turn of these four: 3 1 0 2 1 0 0.
//
// In w consecutive visits, from any start, a node sends exactly `left` of them to its left half. By induction
// each backend gets exactly k x weight of any k x sum consecutive flows (SCHED-002). In any other run its
// number differs from its share by less than one per level, scaled by the weights below it: by less than 1 +
// log2 n, and by about 3 at most in measurements (tests/property/scheduler_property_test.cpp).
//
// Alternatives: a table for 10,000 endpoints of weight 65,535 would need 655 million places. Virtual
// deadlines in a heap interleave slightly better, but need a heap of n entries for each set and worker, which
// each worker rebuilds after each change. This solution takes n numbers in the snapshot, shared by all
// workers, and log2 n steps per pick (perf/micro/scheduler_bench.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/lb/backend.hpp"

namespace penstock::lb {

class WeightedOrder {
 public:
    WeightedOrder() = default;  // without backends: at() must not be called

    // Weights are divided by their greatest common divisor. If their sum exceeds 2^32 - 1, which takes 65,537
    // backends, they are halved until it does not, each at least 1. If all are 0, each counts as 1, because a
    // flow must have a backend. Control thread.
    static WeightedOrder build(std::span<const Backend> backends);

    // Number of flows in one turn; 0 without backends.
    [[nodiscard]] uint32_t length() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
    // Index of the backend at this place, which is below length().
    [[nodiscard]] uint32_t at(uint32_t place) const noexcept;

 private:
    std::vector<uint32_t> ends_;  // [i]: the sum of the first i weights
};

}  // namespace penstock::lb
