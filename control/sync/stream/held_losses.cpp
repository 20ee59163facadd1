// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/held_losses.hpp"

#include <algorithm>
#include <tuple>

namespace penstock::sync {
namespace {

using model::Frontend;
using model::Service;

bool has_endpoints(const Service& service, uint8_t set) {
    return !service.sets.at(set).endpoints.empty();
}

bool same_place(const Frontend& a, const Frontend& b) {
    return std::tie(a.cls, a.address, a.family, a.port, a.filtered) ==
           std::tie(b.cls, b.address, b.family, b.port, b.filtered);
}

// Backend sets change with endpoints, so frontends may point to other sets. Notices and health check counts
// follow endpoints too.
bool differ_in_endpoints_alone(const Service& a, const Service& b) {
    const auto rest = [](const Service& service) {
        return std::tie(service.service_port, service.scheduler, service.uid, service.source_ranges,
                        service.source_ranges_deny, service.affinity_timeout_s, service.affinity_scope,
                        service.idle_timeout_s, service.drain_timeout_s, service.probe, service.access_log);
    };
    return rest(a) == rest(b) && std::ranges::equal(a.frontends, b.frontends, same_place);
}

// An address that has become a frontend must not be forwarded to any longer (EP-006).
bool has_forbidden(const Service& service) {
    return std::ranges::any_of(service.sets, [](const model::BackendSet& set) {
        return std::ranges::any_of(
            set.excluded, [](const auto& one) { return one.why == model::Exclusion::ForbiddenAddress; });
    });
}

}  // namespace

bool loses_last_endpoint(const Service& former, const Service& current) {
    if (!differ_in_endpoints_alone(former, current) || has_forbidden(current)) {
        return false;
    }
    for (size_t i = 0; i < current.frontends.size(); ++i) {
        const Frontend& before = former.frontends[i];
        const Frontend& now = current.frontends[i];
        const bool outside = has_endpoints(former, before.set) && !has_endpoints(current, now.set);
        const bool inside = has_endpoints(former, before.inside_set.value_or(before.set)) &&
                            !has_endpoints(current, now.inside_set.value_or(now.set));
        if (outside || inside) {
            return true;
        }
    }
    return false;
}

std::optional<HeldLosses::Time> HeldLosses::on_change(const ServicePtr& former, const ServicePtr& current,
                                                      Time heard, Time now) {
    const auto known = held_.find(current->key);
    if (known == held_.end()) {
        if (wait_.count() == 0 || former == nullptr || !loses_last_endpoint(*former, *current)) {
            return heard;
        }
        held_.emplace(current->key, Held{.former = former, .heard = heard, .until = now + wait_});
        return std::nullopt;
    }
    const Held& held = known->second;
    if (loses_last_endpoint(*held.former, *current)) {
        return std::nullopt;
    }
    const std::optional<Time> since =
        *held.former == *current ? std::nullopt : std::optional(std::min(held.heard, heard));
    held_.erase(known);
    return since;
}

HeldLosses::ServicePtr HeldLosses::former_of(const model::ServiceKey& key) const {
    const auto held = held_.find(key);
    return held == held_.end() ? nullptr : held->second.former;
}

std::optional<HeldLosses::Time> HeldLosses::due() const {
    std::optional<Time> first;
    for (const auto& [key, held] : held_) {
        first = std::min(first.value_or(held.until), held.until);
    }
    return first;
}

std::optional<HeldLosses::Time> HeldLosses::oldest() const {
    std::optional<Time> first;
    for (const auto& [key, held] : held_) {
        first = std::min(first.value_or(held.heard), held.heard);
    }
    return first;
}

std::vector<std::pair<model::ServiceKey, HeldLosses::Time>> HeldLosses::take_due(Time now) {
    std::vector<std::pair<model::ServiceKey, Time>> due;
    std::erase_if(held_, [&](const auto& entry) {
        const bool is_due = entry.second.until <= now;
        if (is_due) {
            due.emplace_back(entry.first, entry.second.heard);
        }
        return is_due;
    });
    return due;
}

}  // namespace penstock::sync
