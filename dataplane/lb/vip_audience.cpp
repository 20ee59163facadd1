// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/vip_audience.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::lb {
namespace {

// `list` is sorted by address and disjoint, as in a filter.
bool is_within(const Prefix& prefix, std::span<const Prefix> list) {
    const auto behind = std::ranges::upper_bound(list, prefix.address(), {}, &Prefix::address);
    return behind != list.begin() && std::prev(behind)->length() <= prefix.length() &&
           std::prev(behind)->contains(prefix.address());
}

// Appends the intersection of two lists. Two prefixes are disjoint, or one contains the other, so the
// intersection is the prefixes of either list that lie within one of the other.
void add_common(std::span<const Prefix> a, std::span<const Prefix> b, std::vector<Prefix>& common) {
    std::ranges::copy_if(a, std::back_inserter(common),
                         [&](const Prefix& prefix) { return is_within(prefix, b); });
    std::ranges::copy_if(b, std::back_inserter(common),
                         [&](const Prefix& prefix) { return is_within(prefix, a); });
}

}  // namespace

VipAudience::VipAudience(std::span<const SourceFilter* const> filters) {
    std::vector<Prefix> listed;
    std::optional<SourceFilter> denied;  // intersection of all lists that deny
    for (const SourceFilter* filter : filters) {
        if (filter == nullptr || filter->allows_everyone()) {
            is_everyone_ = true;
            return;
        }
        if (!filter->denies()) {
            for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
                std::ranges::copy(filter->allowed(family), std::back_inserter(listed));
            }
            continue;
        }
        if (!denied) {
            denied = *filter;
            continue;
        }
        std::vector<Prefix> common;
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            add_common(denied->denied(family), filter->denied(family), common);
        }
        denied = SourceFilter(true, std::move(common), true);
    }
    listed_ = SourceFilter(true, std::move(listed));
    if (denied) {
        not_denied_ = std::move(*denied);
    }
}

}  // namespace penstock::lb
