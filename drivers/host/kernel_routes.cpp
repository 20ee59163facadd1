// SPDX-License-Identifier: Apache-2.0
#include "drivers/host/kernel_routes.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace penstock::drivers {
namespace {

template <typename Map, typename Key>
void count_in(Map& map, const Key& key, int by) {
    const auto at = map.try_emplace(key, 0).first;
    at->second += static_cast<uint32_t>(by);
    if (at->second == 0) {
        map.erase(at);
    }
}

// An IPv6 route that cannot become part of a multipath route: by a device, blackhole, throw. Linux accepts
// several that are equal in all attributes, which count as one here.
bool stands_alone(const RouteFact& fact) {
    return !fact.joins_others && !fact.key.destination.address().is_v4();
}

}  // namespace

void KernelRoutes::count(const RouteFact& fact, int by) {
    for (const int ifindex : fact.interfaces) {
        count_in(interfaces_, ifindex, by);
    }
    if (fact.source) {
        count_in(sources_, *fact.source, by);
    }
    if (fact.next_hop_object != 0) {
        count_in(next_hops_, fact.next_hop_object, by);
    }
}

KernelRoutes::KernelRoutes(const KernelRoutes* former) : knows_several_(former != nullptr) {
    if (former != nullptr) {
        several_ = former->several_;
    }
}

void KernelRoutes::add(RouteFact fact) {
    count(fact, 1);
    const RouteKey key = fact.key;
    if (routes_.contains(key)) {
        several_.insert(key);
    }
    routes_.emplace(key, std::move(fact));
}

void KernelRoutes::remove(Routes::iterator route) {
    count(route->second, -1);
    routes_.erase(route);
}

KernelRoutes::Routes::iterator KernelRoutes::find(const RouteFact& fact) {
    const auto [first, end] = routes_.equal_range(fact.key);
    return std::find_if(first, end,
                        [&](const auto& known) { return known.second.identity == fact.identity; });
}

void KernelRoutes::dumped(RouteFact fact) {
    // An interrupted dump may contain a route twice.
    if (find(fact) == routes_.upper_bound(fact.key)) {
        add(std::move(fact));
    }
}

KernelRoutes::Applied KernelRoutes::apply(RouteFact fact, Sent sent) {
    const auto [first, end] = routes_.equal_range(fact.key);
    const auto same = find(fact);
    if (fact.change == RouteFact::Change::Removed) {
        if (same == end) {
            return sent == Sent::PerhapsBeforeIt ? Applied::Nothing : Applied::Unclear;
        }
        remove(same);
        if (sent == Sent::SinceDump && routes_.count(fact.key) <= 1) {
            several_.erase(fact.key);
        }
        return stands_alone(fact) ? Applied::Unclear : Applied::Changed;
    }
    const auto known = std::distance(first, end);
    const bool is_replaced = fact.change == RouteFact::Change::Replaced;
    if (is_replaced && known > 1) {
        return Applied::Unclear;
    }
    if (same != end) {
        if (sent == Sent::PerhapsBeforeIt && !is_replaced) {
            several_.insert(fact.key);  // the dump does not show which other routes it was added beside
        }
        if (same->second.route == fact.route) {
            return Applied::Nothing;
        }
        remove(same);  // one of its hops was lost or came back
    } else if (is_replaced && known == 1) {
        if (sent == Sent::PerhapsBeforeIt && (!knows_several_ || several_.contains(fact.key))) {
            return Applied::Unclear;
        }
        // Linux replaces a route that can be part of a multipath route preferably by another such route, and
        // any other route by any other. The known route may not be the replaced one: see the header for
        // routes that dumps omit.
        if (first->second.joins_others != fact.joins_others || stands_alone(fact)) {
            return Applied::Unclear;
        }
        remove(first);
    } else if (known > 0 && fact.joins_others) {
        return Applied::Unclear;  // it may have become a hop of the other one
    }
    add(std::move(fact));
    return Applied::Changed;
}

std::vector<route::Route> KernelRoutes::list() const {
    std::vector<route::Route> list;
    list.reserve(routes_.size());
    const auto order = [](const route::Route& r) {
        return std::tie(r.destination, r.metric, r.egress, r.gateway, r.other_egress);
    };
    bool is_sorted = true;
    for (const auto& [key, fact] : routes_) {
        if (fact.route) {
            is_sorted = is_sorted && (list.empty() || order(list.back()) <= order(*fact.route));
            list.push_back(*fact.route);
        }
    }
    if (!is_sorted) {  // several with one key, which is rare
        std::ranges::sort(list, {}, order);
    }
    list.erase(std::ranges::unique(list).begin(), list.end());
    return list;
}

}  // namespace penstock::drivers
