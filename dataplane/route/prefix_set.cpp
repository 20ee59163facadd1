// SPDX-License-Identifier: Apache-2.0
#include "dataplane/route/prefix_set.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "dataplane/route/prefix_range.hpp"

namespace penstock::route {
namespace {

constexpr uint32_t kListed = 1;

std::tuple<IpFamily, IpAddr, uint8_t> order_of(const Prefix& prefix) noexcept {
    return {prefix.family(), prefix.address(), prefix.length()};
}

}  // namespace

PrefixSet::PrefixSet(std::vector<Prefix> prefixes) {
    // By family, then address, then length. An outer prefix comes before all prefixes that it contains, with
    // none of the other family in between.
    std::ranges::sort(prefixes, [](const Prefix& a, const Prefix& b) { return order_of(a) < order_of(b); });
    std::vector<Range<uint32_t>> v4;
    std::vector<Range<Uint128>> v6;
    for (const Prefix& prefix : prefixes) {
        if (!prefixes_.empty() && prefixes_.back().contains(prefix.address())) {
            continue;
        }
        prefixes_.push_back(prefix);
        if (prefix.family() == IpFamily::V4) {
            v4.push_back(range_of(number_v4(prefix.address()), prefix.length(), kListed));
        } else {
            v6.push_back(range_of(number_v6(prefix.address()), prefix.length(), kListed));
        }
    }
    v4_ = PrefixMap4(Intervals<uint32_t>(std::move(v4)));
    v6_ = PrefixMap6(Intervals<Uint128>(std::move(v6)));
}

bool PrefixSet::contains(const Prefix& prefix) const {
    // The set's prefixes are disjoint, so only the last one at or before the address can contain it.
    const auto behind = std::ranges::upper_bound(
        prefixes_, std::pair(prefix.family(), prefix.address()), {},
        [](const Prefix& listed) { return std::pair(listed.family(), listed.address()); });
    return behind != prefixes_.begin() && std::prev(behind)->length() <= prefix.length() &&
           std::prev(behind)->contains(prefix.address());
}

}  // namespace penstock::route
