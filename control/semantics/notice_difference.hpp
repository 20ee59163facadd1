// SPDX-License-Identifier: Apache-2.0
// The notices that an evaluation changes, for the Step that the engine returns.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "control/semantics/engine.hpp"

namespace penstock::semantics {

inline void sort_notices(std::vector<ObjectNotice>& notices) {
    std::ranges::sort(notices);
    const auto [first, last] = std::ranges::unique(notices);
    notices.erase(first, last);
}

// `old` and `now` must be sorted and unique.
inline void tell_difference(const std::vector<ObjectNotice>& old, const std::vector<ObjectNotice>& now,
                            Step& step) {
    std::ranges::set_difference(now, old, std::back_inserter(step.appeared));
    std::ranges::set_difference(old, now, std::back_inserter(step.gone));
}

}  // namespace penstock::semantics
