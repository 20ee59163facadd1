// SPDX-License-Identifier: Apache-2.0
// Step 5 of EP-020: endpoints near the gateway before others. Uses the Service's topologyKeys
// (TOPO-002..006), otherwise the hints in its slices (TOPO-008..010). Locations are compared as labels: those
// of the gateway's Node, or those configured for an external gateway, with those of each endpoint's Node.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/semantics/endpoints/selection.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/surroundings.hpp"

namespace penstock::semantics {

inline constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

// The Node of this name, or null.
[[nodiscard]] const kube::Node* node_called(std::string_view name, const Nodes& nodes);

// The value of the label, or nullopt if `node` is null or does not have the label.
[[nodiscard]] std::optional<std::string_view> label_of(const kube::Node* node, const std::string& key);

// The location of the gateway (TOPO-001). References, without ownership.
struct Origin {
    std::string_view node_name;  // "" in external mode
    const annotations::Labels& labels;
};
[[nodiscard]] Origin origin_of(const model::GatewayIdentity& gateway, const Nodes& nodes);

// The location of an endpoint: the label of its Node or, if the Node is unknown, the value from its slice
// (TOPO-001, EP-016).
[[nodiscard]] std::optional<std::string_view> topology_of(const Candidate& candidate, const std::string& key,
                                                          const Nodes& nodes);

// spec.topologyKeys, or `annotation` (ANN-28) if the field is empty. Empty: no constraint; also returned for
// an invalid list, with a notice (TOPO-005).
[[nodiscard]] std::vector<std::string> topology_keys_of(const kube::Service& service,
                                                        std::string_view annotation, Notices& notices);

// Keeps the endpoints that have the gateway's value of the first key for which any endpoint has it. "*"
// matches every endpoint. If no key matches, all endpoints are excluded.
void select_by_keys(Selection& selection, std::span<const std::string> keys, const Origin& origin,
                    const Nodes& nodes);

// Keeps, of the remaining ready endpoints, those that are hinted for this node, otherwise those hinted for
// this zone. Hints are used only if every endpoint has some, and they never exclude all endpoints.
void select_by_hints(Selection& selection, const Origin& origin);

}  // namespace penstock::semantics
