// Step 5 of EP-020: endpoints near the gateway before others, by the Service's topologyKeys (TOPO-002..006) or else by the hints in its
// slices (TOPO-008..010). Places are compared as labels: the gateway's Node's, or those that an external gateway was configured with, with
// those of each endpoint's Node.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/selection.hpp"
#include "control/semantics/surroundings.hpp"

namespace penstock::semantics {

inline constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

// Null where no Node of this name is known.
[[nodiscard]] const kube::Node* node_called(std::string_view name, const Nodes& nodes);

// The label's value, or nothing where the object is null or lacks it.
[[nodiscard]] std::optional<std::string_view> label_of(const kube::Node* node, const std::string& key);

// Where the gateway stands (TOPO-001). Borrowed.
struct Origin {
    std::string_view node_name;  // "" for a gateway that is no node
    const annotations::Labels& labels;
};
[[nodiscard]] Origin origin_of(const model::GatewayIdentity& gateway, const Nodes& nodes);

// Where an endpoint stands: what its Node says, or what its slice says of it as long as its Node is unknown (TOPO-001, EP-016).
[[nodiscard]] std::optional<std::string_view> topology_of(const Candidate& candidate, const std::string& key,
                                                          const Nodes& nodes);

// spec.topologyKeys, or `annotation` (ANN-28) where the field is empty. Empty: no constraint, also where the list is not valid, which is
// said (TOPO-005).
[[nodiscard]] std::vector<std::string> topology_keys_of(const kube::Service& service,
                                                        std::string_view annotation, Notices& notices);

// Leaves those that agree with the origin in the first key in which any does; "*" agrees with everyone; without such a key, nobody.
void select_by_keys(Selection& selection, std::span<const std::string> keys, const Origin& origin,
                    const Nodes& nodes);

// Of the ready endpoints that are left, those that the slices' author meant for this node, or else for this zone. Hints count only where
// every one of them has some, and never leave nobody.
void select_by_hints(Selection& selection, const Origin& origin);

}  // namespace penstock::semantics
