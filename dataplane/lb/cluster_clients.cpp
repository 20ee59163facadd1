// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/cluster_clients.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::lb {
namespace {

std::pair<IpFamily, IpAddr> place_of(const Prefix& prefix) {
    return {prefix.family(), prefix.address()};
}

bool contains(const Prefix& outer, const Prefix& inner) {
    return outer.length() <= inner.length() && outer.contains(inner.address());
}

// The prefixes that no other one contains; sorted by family and address.
std::vector<Prefix> outermost(std::vector<Prefix> prefixes) {
    std::ranges::sort(prefixes, {},
                      [](const Prefix& prefix) { return std::pair(place_of(prefix), prefix.length()); });
    std::vector<Prefix> out;
    for (const Prefix& prefix : prefixes) {
        if (out.empty() || !contains(out.back(), prefix)) {
            out.push_back(prefix);
        }
    }
    return out;
}

// The intersection. Of two prefixes one contains the other, or they are disjoint.
std::vector<Prefix> common(const std::vector<Prefix>& a, const std::vector<Prefix>& b) {
    std::vector<Prefix> out;
    const auto add_inner = [&](const std::vector<Prefix>& inner, const std::vector<Prefix>& outer) {
        for (const Prefix& prefix : inner) {
            const auto behind = std::ranges::upper_bound(outer, place_of(prefix), {}, place_of);
            if (behind != outer.begin() && contains(*std::prev(behind), prefix)) {
                out.push_back(prefix);
            }
        }
    };
    add_inner(a, b);
    add_inner(b, a);
    return outermost(std::move(out));
}

}  // namespace

ClusterClients::ClusterClients(std::vector<Prefix> pod_cidrs)
    : ever_inside_(outermost(std::move(pod_cidrs))),
      always_inside_(ever_inside_),
      now_(true, ever_inside_),
      ever_(true, ever_inside_),
      always_(true, ever_inside_) {}

ClusterClients ClusterClients::changed_to(std::vector<Prefix> pod_cidrs) const {
    ClusterClients next(std::move(pod_cidrs));
    next.always_inside_ = common(always_inside_, next.ever_inside_);
    next.ever_inside_.insert(next.ever_inside_.end(), ever_inside_.begin(), ever_inside_.end());
    next.ever_inside_ = outermost(std::move(next.ever_inside_));
    if (next.ever_inside_.size() > kRememberedMax) {
        next.ever_inside_ = {*Prefix::make(IpAddr::v4(0, 0, 0, 0), 0), *Prefix::make(IpAddr(), 0)};
    }
    next.ever_ = SourceFilter(true, next.ever_inside_);
    next.always_ = SourceFilter(true, next.always_inside_);
    return next;
}

}  // namespace penstock::lb
