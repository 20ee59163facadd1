// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/weighted_order.hpp"

#include <algorithm>
#include <numeric>

#include "dataplane/base/check.hpp"

namespace penstock::lb {

WeightedOrder WeightedOrder::build(std::span<const Backend> backends) {
    WeightedOrder made;
    if (backends.empty()) {
        return made;
    }
    uint64_t sum = 0;
    uint32_t divisor = 0;
    for (const Backend& backend : backends) {
        sum += backend.weight;
        divisor = std::gcd(divisor, uint32_t{backend.weight});
    }
    const bool all_zero = sum == 0;
    const auto reduced = [&](const Backend& backend, unsigned halvings) -> uint64_t {
        if (all_zero) {
            return 1;
        }
        const uint32_t weight = backend.weight / divisor;
        return weight == 0 ? 0 : std::max(weight >> halvings, 1u);
    };
    const auto total = [&](unsigned halvings) {
        return std::accumulate(
            backends.begin(), backends.end(), uint64_t{0},
            [&](uint64_t so_far, const Backend& backend) { return so_far + reduced(backend, halvings); });
    };
    unsigned halvings = 0;
    while (total(halvings) > ~uint32_t{0}) {
        ++halvings;
    }
    made.ends_.reserve(backends.size() + 1);
    made.ends_.push_back(0);
    for (const Backend& backend : backends) {
        made.ends_.push_back(made.ends_.back() + static_cast<uint32_t>(reduced(backend, halvings)));
    }
    return made;
}

uint32_t WeightedOrder::at(uint32_t place) const noexcept {
    PENSTOCK_ASSERT(place < length());
    uint32_t first = 0;
    auto end = static_cast<uint32_t>(ends_.size() - 1);
    while (end - first > 1) {
        const uint32_t middle = first + (end - first) / 2;
        const uint64_t whole = ends_[end] - ends_[first];
        const uint64_t left = ends_[middle] - ends_[first];
        const uint64_t product = place * left;  // place < whole < 2^32
        const auto gone_left = static_cast<uint32_t>(product / whole);
        if (product % whole + left >= whole) {
            end = middle;
            place = gone_left;
        } else {
            first = middle;
            place -= gone_left;
        }
    }
    return first;
}

}  // namespace penstock::lb
