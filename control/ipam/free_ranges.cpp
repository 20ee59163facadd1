// SPDX-License-Identifier: Apache-2.0
#include "control/ipam/free_ranges.hpp"

#include <iterator>

namespace penstock::ipam {

void FreeRanges::add(Number first, Number last) {
    auto next = last_by_first_.lower_bound(first);
    if (next != last_by_first_.begin()) {
        const auto before = std::prev(next);
        if (before->second + 1 == first) {
            first = before->first;
            last_by_first_.erase(before);
        }
    }
    if (next != last_by_first_.end() && last + 1 == next->first) {
        last = next->second;
        last_by_first_.erase(next);
    }
    last_by_first_.emplace(first, last);
}

void FreeRanges::take(Number address) {
    auto range = last_by_first_.upper_bound(address);
    if (range == last_by_first_.begin() || (--range)->second < address) {
        return;
    }
    const auto [first, last] = *range;
    last_by_first_.erase(range);
    if (first < address) {
        last_by_first_.emplace(first, address - 1);
    }
    if (address < last) {
        last_by_first_.emplace(address + 1, last);
    }
}

std::optional<IpAddr> FreeRanges::lowest() {
    while (!last_by_first_.empty()) {
        const Number first = last_by_first_.begin()->first;
        const IpAddr address = to_address(first, family_);
        if (!skips_buggy_ || !is_buggy(address)) {
            return address;
        }
        take(first);
    }
    return std::nullopt;
}

}  // namespace penstock::ipam
