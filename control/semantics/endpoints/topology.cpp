// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/endpoints/topology.hpp"

#include <algorithm>

#include "control/annotations/table.hpp"
#include "control/annotations/value.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

constexpr size_t kTopologyKeysMax = 16;  // the former limit of API servers
constexpr std::string_view kAnywhere = "*";

// The error in the list, or "" if the list is valid.
std::string fault_of(std::span<const std::string> keys) {
    if (keys.size() > kTopologyKeysMax) {
        return std::to_string(keys.size()) + " keys exceed the limit of " + std::to_string(kTopologyKeysMax);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] == kAnywhere) {
            if (i + 1 != keys.size()) {
                return "\"*\" may only be the last key";
            }
        } else if (!annotations::is_label_key(keys[i])) {
            return quoted(keys[i]) + " is not a valid label key";
        }
        if (std::ranges::find(keys.first(i), keys[i]) != keys.first(i).end()) {
            return quoted(keys[i]) + " is a duplicate";
        }
    }
    return "";
}

bool names(const InternedTexts& hints, std::string_view wanted) {
    const std::span<const std::string> hinted = hints;
    return std::ranges::find(hinted, wanted) != hinted.end();
}

// Whether every candidate has `hints` and at least one candidate is hinted for `place`.
bool can_follow(const Candidates& candidates, InternedTexts kube::Endpoint::* hints, std::string_view place) {
    return !place.empty() && std::ranges::none_of(candidates, [&](const Candidate& one) {
        return (one.endpoint->*hints).empty();
    }) && std::ranges::any_of(candidates, [&](const Candidate& one) {
        return names(one.endpoint->*hints, place);
    });
}

}  // namespace

const kube::Node* node_called(std::string_view name, const Nodes& nodes) {
    const auto found = name.empty() ? nodes.end() : nodes.find(std::string(name));
    return found == nodes.end() ? nullptr : found->second.get();
}

std::optional<std::string_view> label_of(const kube::Node* node, const std::string& key) {
    if (node == nullptr) {
        return std::nullopt;
    }
    const auto found = node->meta.labels.find(key);
    return found == node->meta.labels.end() ? std::nullopt : std::optional<std::string_view>(found->second);
}

Origin origin_of(const model::GatewayIdentity& gateway, const Nodes& nodes) {
    static const annotations::Labels kNone;
    if (gateway.mode == model::GatewayMode::External) {
        return {.node_name = {}, .labels = gateway.labels};
    }
    const kube::Node* node = node_called(gateway.node_name, nodes);
    return {.node_name = gateway.node_name, .labels = node == nullptr ? kNone : node->meta.labels};
}

std::optional<std::string_view> topology_of(const Candidate& candidate, const std::string& key,
                                            const Nodes& nodes) {
    if (const kube::Node* node = node_called(candidate.endpoint->node_name, nodes)) {
        return label_of(node, key);
    }
    if (!candidate.slice->topology.empty()) {
        const auto index = static_cast<size_t>(candidate.endpoint - candidate.slice->endpoints.data());
        const std::span<const std::string> labels = candidate.slice->topology.at(index);
        for (size_t i = 0; i + 1 < labels.size(); i += 2) {
            if (labels[i] == key) {
                return labels[i + 1];
            }
        }
    }
    if (key == kZoneLabel && !candidate.endpoint->zone.empty()) {
        return std::string_view(candidate.endpoint->zone);
    }
    return std::nullopt;
}

std::vector<std::string> topology_keys_of(const kube::Service& service, std::string_view annotation,
                                          Notices& notices) {
    std::vector<std::string> keys = service.topology_keys;
    std::string_view where = "spec.topologyKeys";
    if (keys.empty()) {
        if (annotation.empty()) {
            return keys;
        }
        where = annotations::spec_of(annotations::Setting::TopologyKeys).spellings.front().key;
        for (const std::string_view item : split(annotation, ',')) {
            keys.emplace_back(item);
        }
    }
    if (const std::string fault = fault_of(keys); !fault.empty()) {
        notices.warn(reason::kInvalidTopologyKeys,
                     std::string(where) + ": " + fault + "; the list is ignored");
        return {};
    }
    return keys;
}

void select_by_keys(Selection& selection, std::span<const std::string> keys, const Origin& origin,
                    const Nodes& nodes) {
    for (const std::string& key : keys) {
        if (key == kAnywhere) {
            return;
        }
        const auto here = origin.labels.find(key);
        if (here == origin.labels.end()) {
            continue;
        }
        const auto agrees = [&](const Candidate& one) {
            return topology_of(one, key, nodes) == here->second;
        };
        if (std::ranges::any_of(selection.left, agrees)) {
            selection.keep_if(model::Exclusion::TopologyKeys, agrees);
            return;
        }
    }
    selection.keep_if(model::Exclusion::TopologyKeys, [](const Candidate&) { return false; });
}

void select_by_hints(Selection& selection, const Origin& origin) {
    const auto zone = origin.labels.find(kZoneLabel);
    const std::pair<InternedTexts kube::Endpoint::*, std::string_view> kinds[] = {
        {&kube::Endpoint::hints_for_nodes, origin.node_name},
        {&kube::Endpoint::hints_for_zones,
         zone == origin.labels.end() ? std::string_view() : std::string_view(zone->second)}};
    for (const auto& [hints, place] : kinds) {
        if (can_follow(selection.left, hints, place)) {
            selection.keep_if(model::Exclusion::TopologyHints,
                              [hints = hints, place = place](const Candidate& one) {
                                  return names(one.endpoint->*hints, place);
                              });
            return;
        }
    }
}

}  // namespace penstock::semantics
