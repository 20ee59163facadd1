// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/routed_prefixes.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

namespace penstock::gateway {
namespace {

bool covers(const Prefix& outer, const Prefix& inner) {
    return outer.length() <= inner.length() && outer.contains(inner.address());
}

// The half of `prefix` with `bit` as the next bit.
Prefix half_of(const Prefix& prefix, bool bit) {
    std::array<uint8_t, 16> bytes = prefix.address().bytes();
    const bool v4 = prefix.family() == IpFamily::V4;
    // An IPv4 address is the tail of its mapped form.
    const unsigned position = (v4 ? 96U : 0U) + prefix.length();
    if (bit) {
        bytes[position / 8] = static_cast<uint8_t>(bytes[position / 8] | (0x80U >> (position % 8)));
    }
    const IpAddr address = v4 ? IpAddr::v4(bytes[12], bytes[13], bytes[14], bytes[15]) : IpAddr::v6(bytes);
    return Prefix::make(address, prefix.length() + 1U).value();
}

// Appends `prefix` without `holes` to `pieces`. All holes are inside `prefix`, sorted, and a contiguous
// range.
void cut(const Prefix& prefix, std::span<const Prefix> holes, std::vector<Prefix>& pieces) {
    if (holes.empty()) {
        pieces.push_back(prefix);
        return;
    }
    if (holes.front() == prefix) {
        return;
    }
    const Prefix upper = half_of(prefix, true);
    const auto middle = std::ranges::lower_bound(holes, upper);
    const auto below = static_cast<size_t>(middle - holes.begin());
    cut(half_of(prefix, false), holes.first(below), pieces);
    cut(upper, holes.subspan(below), pieces);
}

}  // namespace

std::vector<Prefix> routed_prefixes(std::vector<route::Route> routes) {
    // Of routes with equal destinations, keep the one that the route table uses.
    std::ranges::sort(routes, {}, [](const route::Route& route) {
        return std::tuple(route.destination, route.metric, route.egress);
    });
    const auto [same, end] = std::ranges::unique(routes, {}, &route::Route::destination);
    routes.erase(same, end);
    std::vector<Prefix> holes;
    for (const route::Route& route : routes) {
        if (!route.egress.is_set()) {
            holes.push_back(route.destination);
        }
    }
    std::vector<Prefix> pieces;
    for (const route::Route& route : routes) {
        if (!route.egress.is_set() || route.destination.length() == 0) {
            continue;
        }
        // In the order of prefixes, those inside a prefix follow it directly.
        const auto first = std::ranges::lower_bound(holes, route.destination);
        const auto last = std::find_if_not(
            first, holes.end(), [&](const Prefix& hole) { return covers(route.destination, hole); });
        cut(route.destination, std::span(first, last), pieces);
    }
    std::ranges::sort(pieces);
    std::vector<Prefix> outermost;
    for (const Prefix& piece : pieces) {
        if (outermost.empty() || !covers(outermost.back(), piece)) {
            outermost.push_back(piece);
        }
    }
    if (outermost.size() > model::kRoutedPrefixesMax) {
        std::ranges::stable_sort(outermost, {}, &Prefix::length);
        outermost.resize(model::kRoutedPrefixesMax);
        std::ranges::sort(outermost);
    }
    return outermost;
}

}  // namespace penstock::gateway
