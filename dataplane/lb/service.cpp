// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/service.hpp"

#include <algorithm>

namespace penstock::lb {

const char* to_string(SchedulerKind kind) noexcept {
    switch (kind) {
        case SchedulerKind::RoundRobin:
            return "rr";
        case SchedulerKind::Random:
            return "random";
        case SchedulerKind::Maglev:
            return "mh";
        case SchedulerKind::WeightedRoundRobin:
            return "wrr";
        case SchedulerKind::LeastConnection:
            return "lc";
        case SchedulerKind::WeightedLeastConnection:
            return "wlc";
        case SchedulerKind::SourceHash:
            return "sh";
        case SchedulerKind::DestinationHash:
            return "dh";
        case SchedulerKind::ShortestExpectedDelay:
            return "sed";
        case SchedulerKind::NeverQueue:
            return "nq";
        case SchedulerKind::TwoChoices:
            return "p2c";
    }
    return "unknown";
}

const char* to_string(SourceMode mode) noexcept {
    switch (mode) {
        case SourceMode::Translate:
            return "translate";
        case SourceMode::Keep:
            return "keep";
    }
    return "unknown";
}

const char* to_string(EmptyAction action) noexcept {
    switch (action) {
        case EmptyAction::Reject:
            return "reject";
        case EmptyAction::Drop:
            return "drop";
        case EmptyAction::DropNoLocal:
            return "drop (no local endpoint)";
    }
    return "unknown";
}

const char* to_string(AffinityScope scope) noexcept {
    switch (scope) {
        case AffinityScope::Port:
            return "port";
        case AffinityScope::Service:
            return "service";
    }
    return "unknown";
}

void BackendSet::index_for_affinity(AffinityScope scope) {
    if (scope == AffinityScope::Port) {
        for (Backend& backend : usable) {
            backend.endpoint = {backend.id.value};
        }
    }
    positions = EndpointPositions::build(usable);
    by_id = scope == AffinityScope::Port ? BackendPositions() : BackendPositions::build(usable);
}

uint32_t BackendSet::pinned_position(BackendId id) const noexcept {
    if (by_id.empty()) {
        return positions.find({id.value});
    }
    // Several backends may have one address; entries lead to the first of them.
    const uint32_t own = by_id.find(id);
    return own == BackendPositions::kNone ? own : positions.find(usable[own].endpoint);
}

const char* to_string(FrontendClass cls) noexcept {
    switch (cls) {
        case FrontendClass::ClusterIp:
            return "ClusterIP";
        case FrontendClass::LoadBalancerIp:
            return "LoadBalancerIP";
        case FrontendClass::ExternalIp:
            return "ExternalIP";
        case FrontendClass::NodePort:
            return "NodePort";
    }
    return "unknown";
}

void prepare(BackendSet& set, SchedulerKind scheduler) {
    set.ring = {};
    set.order = {};
    switch (scheduler) {
        case SchedulerKind::Maglev:
        case SchedulerKind::SourceHash:
        case SchedulerKind::DestinationHash:
            set.ring = MaglevRing::build(set.usable);
            break;
        case SchedulerKind::WeightedRoundRobin:
            set.order = WeightedOrder::build(set.usable);
            break;
        case SchedulerKind::RoundRobin:
        case SchedulerKind::Random:
        case SchedulerKind::LeastConnection:
        case SchedulerKind::WeightedLeastConnection:
        case SchedulerKind::ShortestExpectedDelay:
        case SchedulerKind::NeverQueue:
        case SchedulerKind::TwoChoices:
            break;
    }
}

std::string Service::display_name() const {
    std::string text = namespace_name + "/" + name;
    return port_name.empty() ? text : text + ":" + port_name;
}

SourceFilter::SourceFilter(bool restricted, std::vector<Prefix> listed, bool deny)
    : restricted_(restricted), deny_(deny) {
    // Sorted by address, then length: an outer prefix precedes all prefixes that it contains.
    std::ranges::sort(listed);
    for (const Prefix& prefix : listed) {
        std::vector<Prefix>& family = prefix.family() == IpFamily::V4 ? v4_ : v6_;
        if (family.empty() || !family.back().contains(prefix.address())) {
            family.push_back(prefix);
        }
    }
}

bool SourceFilter::allows(const IpAddr& client) const noexcept {
    if (!restricted_) {
        return true;
    }
    // In a list that allows, a family without a CIDR is closed (SRC-003), and a list without any valid entry
    // is closed to every client (SRC-002).
    const std::vector<Prefix>& family = client.is_v4() ? v4_ : v6_;
    const auto behind = std::ranges::upper_bound(family, client, {}, &Prefix::address);
    const bool is_listed = behind != family.begin() && std::prev(behind)->contains(client);
    return is_listed != deny_;
}

std::span<const Prefix> SourceFilter::denied(IpFamily family) const noexcept {
    if (!restricted_ || !deny_) {
        return {};
    }
    return family == IpFamily::V4 ? v4_ : v6_;
}

std::span<const Prefix> SourceFilter::allowed(IpFamily family) const noexcept {
    if (!restricted_ || deny_) {
        return {};
    }
    return family == IpFamily::V4 ? v4_ : v6_;
}

}  // namespace penstock::lb
