// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/endpoints/traffic_policy.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "control/semantics/endpoints/topology.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

using lb::EmptyAction;
using lb::SourceMode;

TrafficPolicy policy_of(const std::string& value, const char* field, Notices& notices) {
    if (value == "Local") {
        return TrafficPolicy::Local;
    }
    if (value != "Cluster") {
        notices.warn(reason::kUnknownValue,
                     "spec." + std::string(field) + " " + quoted(value) + " is not known; Cluster is used");
    }
    return TrafficPolicy::Cluster;
}

// An external gateway is not a node: no endpoint is local to it, and none is remote (ETP-004).
bool is_node(const PolicyRules& rules) {
    return rules.around.gateway.mode == model::GatewayMode::Node;
}

SourceMode external_source(const PolicyRules& rules) {
    const bool kept =
        rules.external == TrafficPolicy::Local && (is_node(rules) || rules.around.policy.symmetric_return);
    return kept ? SourceMode::Keep : SourceMode::Translate;
}

// For display. Slices converted from Endpoints have no zone; the zone of the Node is used instead (EP-015).
InternedText zone_of(const Candidate& candidate, const Nodes& nodes) {
    if (candidate.slice->from_endpoints) {
        const auto zone = topology_of(candidate, kZoneLabel, nodes);
        return zone ? name_for_people(InternedText(*zone)) : InternedText();
    }
    return name_for_people(candidate.endpoint->zone);
}

}  // namespace

TrafficPolicy external_policy_of(const kube::Service& service, Notices& notices) {
    return policy_of(service.external_traffic_policy, "externalTrafficPolicy", notices);
}

TrafficPolicy internal_policy_of(const kube::Service& service, Notices& notices) {
    return policy_of(service.internal_traffic_policy, "internalTrafficPolicy", notices);
}

void report_unknown_distribution(const kube::Service& service, Notices& notices) {
    constexpr std::array<std::string_view, 4> kKnown = {"", "PreferClose", "PreferSameZone",
                                                        "PreferSameNode"};
    if (std::ranges::find(kKnown, service.traffic_distribution) == kKnown.end()) {
        notices.warn(reason::kUnknownValue, "spec.trafficDistribution " +
                                                quoted(service.traffic_distribution) +
                                                " is not known and is ignored; the hints of the "
                                                "EndpointSlices are used, as for known values");
    }
}

void report_limits(const PolicyRules& rules, Notices& notices) {
    if (rules.external != TrafficPolicy::Local) {
        return;
    }
    if (external_source(rules) == SourceMode::Translate) {
        notices.warn(reason::kSourceIpNotPreserved,
                     "externalTrafficPolicy Local keeps the client's address only if endpoints reply "
                     "through the gateway, but "
                     "--symmetric-return off is set");
    }
    if (!rules.topology_keys.empty()) {
        notices.warn(reason::kTopologyKeysIgnored,
                     "topologyKeys are ignored for external clients, because externalTrafficPolicy is Local");
    }
}

bool has_usable(const model::BackendSet& set) {
    return std::ranges::any_of(set.endpoints, [](const model::Endpoint& one) { return one.weight != 0; });
}

model::BackendSet own_or_other(model::BackendSet own, model::BackendSet other, EmptyAction nobody) {
    const auto knows_some = [](const model::BackendSet& set) {
        return !set.endpoints.empty() || !set.excluded.empty();
    };
    const bool takes_other = has_usable(other) || (knows_some(other) && !knows_some(own)) ||
                             (own.when_empty == nobody && other.when_empty != nobody);
    return !has_usable(own) && takes_other ? other : own;
}

model::BackendSet FamilySets::external() const {
    return of_policy(rules_.external, external_source(rules_));
}

std::optional<model::BackendSet> FamilySets::external_inside() const {
    if (rules_.external != TrafficPolicy::Local || !is_node(rules_)) {
        return std::nullopt;
    }
    // If no Pod CIDR is known, only the gateway's own host uses the set. Its flows are always translated.
    return of_policy(TrafficPolicy::Cluster,
                     rules_.around.facts.pod_cidrs.empty() ? SourceMode::Translate : SourceMode::Keep);
}

model::BackendSet FamilySets::internal() const {
    return of_policy(rules_.internal, SourceMode::Translate);
}

std::optional<model::BackendSet> FamilySets::internal_inside() const {
    if (rules_.around.policy.masquerade_all || rules_.around.facts.pod_cidrs.empty()) {
        return std::nullopt;
    }
    model::BackendSet inside = of_policy(rules_.internal, SourceMode::Keep);
    return inside.translates_family ? std::nullopt
                                    : std::optional(std::move(inside));  // no source address can be kept
}

model::BackendSet FamilySets::of_policy(TrafficPolicy policy, SourceMode source) const {
    model::BackendSet own = made(policy, {.candidates = candidates_, .source = source});
    if (others_ == nullptr || has_usable(own)) {
        return own;
    }
    return own_or_other(std::move(own), made(policy, {.candidates = *others_, .translates_family = true}),
                        rules_.no_endpoints);
}

model::BackendSet FamilySets::made(TrafficPolicy policy, const Making& making) const {
    return policy == TrafficPolicy::Local ? local(making) : cluster(making);
}

model::BackendSet FamilySets::cluster(const Making& making) const {
    Selection selection = making.candidates;
    select_cluster(selection);
    const Origin origin = origin_of(rules_.around.gateway, rules_.around.nodes);
    EmptyAction when_empty = rules_.no_endpoints;
    if (!rules_.topology_keys.empty()) {
        const bool any_anywhere = has_usable(selection.left);
        select_by_keys(selection, rules_.topology_keys, origin, rules_.around.nodes);
        if (any_anywhere && selection.left.empty() && rules_.around.policy.topology_no_match_drops) {
            when_empty = EmptyAction::Drop;  // TOPO-004
        }
    } else if (!selection.left.empty() &&
               // Not if terminating endpoints are used (EP-012).
               selection.left.front().readiness == Readiness::Ready) {
        select_by_hints(selection, origin);
    }
    return set_of(std::move(selection), making, when_empty);
}

model::BackendSet FamilySets::local(const Making& making) const {
    Selection everywhere = making.candidates;
    select_cluster(everywhere);
    if (!is_node(rules_)) {
        return set_of(std::move(everywhere), making, rules_.no_endpoints);
    }
    Selection here = making.candidates;
    select_local(here, rules_.around.gateway.node_name);
    // An upstream router may try another node, so the packet is dropped silently instead of rejected
    // (ETP-003).
    const bool only_elsewhere = !has_usable(here.left) && has_usable(everywhere.left);
    return set_of(std::move(here), making, only_elsewhere ? EmptyAction::DropNoLocal : rules_.no_endpoints);
}

model::BackendSet FamilySets::set_of(Selection selection, const Making& making,
                                     EmptyAction when_empty) const {
    model::BackendSet set{.source = making.source,
                          .when_empty = when_empty,
                          .family = family_,
                          .translates_family = making.translates_family};
    set.endpoints.reserve(selection.left.size());
    for (const Candidate& candidate : selection.left) {
        set.endpoints.push_back({.address = candidate.address,
                                 .port = candidate.port,
                                 .weight = candidate.weight.value_or(1),
                                 .node_name = name_for_people(candidate.endpoint->node_name),
                                 .zone = zone_of(candidate, rules_.around.nodes)});
    }
    set.excluded = std::move(selection.excluded);
    std::ranges::sort(set.excluded, {},
                      [](const model::ExcludedEndpoint& one) { return std::tuple(one.address, one.port); });
    return set;
}

}  // namespace penstock::semantics
