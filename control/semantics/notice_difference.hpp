// SPDX-License-Identifier: Apache-2.0
// Comparison of the notices before and after an evaluation.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "control/semantics/policy.hpp"

namespace penstock::semantics {

inline void sort_notices(std::vector<ObjectNotice>& notices) {
    std::ranges::sort(notices);
    const auto [first, last] = std::ranges::unique(notices);
    notices.erase(first, last);
}

// Appends the differences to `appeared` and `gone`. `old` and `now` must be sorted and unique.
inline void append_difference(const std::vector<ObjectNotice>& old, const std::vector<ObjectNotice>& now,
                              std::vector<ObjectNotice>& appeared, std::vector<ObjectNotice>& gone) {
    std::ranges::set_difference(now, old, std::back_inserter(appeared));
    std::ranges::set_difference(old, now, std::back_inserter(gone));
}

}  // namespace penstock::semantics
