// SPDX-License-Identifier: Apache-2.0
// Selection of the endpoints for new flows, in the order of EP-020. Each step maps a Selection to a
// Selection, so a step can be inserted between two others. Each excluded endpoint records the step that
// excluded it.
//
//   merged_endpoints      all slices of the Service, one family and port; one candidate per (address, port)
//   drop_forbidden        addresses that are never forwarded to (EP-006)
//   select_nodes          only endpoints on the nodes that the Service selects (ANN-14)
//   select_cluster        ready endpoints, otherwise terminating ones that still serve (EP-012)
//   select_local          the same rule for the endpoints of this node only (EP-013)
//   select_by_keys/hints  near endpoints before distant ones (topology.hpp)
//
// traffic_policy.hpp defines which steps each policy uses. Health, weight, affinity and the scheduler are
// applied by the gateway.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/semantics/address_count.hpp"
#include "control/semantics/conflicts.hpp"
#include "control/semantics/endpoints/selection.hpp"
#include "control/semantics/endpoints/slices.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/surroundings.hpp"

namespace penstock::semantics {

// The union of the `slices` of one family whose ports contain (port_name, protocol). Each endpoint has the
// port number of its own slice (EP-003). The result is sorted by (address, port) and unique. Of duplicates,
// the best by readiness and then by slice name is kept (EP-004). Invalid entries are skipped one by one, with
// a notice (EP-005, EP-009).
[[nodiscard]] Candidates merged_endpoints(std::span<const NamedSlice> slices, const std::string& port_name,
                                          Protocol protocol, IpFamily family, Notices& notices);

// Excludes the endpoints that EP-006 forbids: by the range of the address, because it is a ClusterIP, or
// because it is the address of a frontend of Penstock.
void drop_forbidden(Selection& selection, const AddressCount& cluster_ips, const FrontendOwners& owners,
                    Notices& notices);

// Keeps the endpoints whose Node is known and matches `selector` (ANN-14).
void select_nodes(Selection& selection, const annotations::Selector& selector, const Nodes& nodes);

// Sets the weights of ANN-27 for endpoints without a weight in their slice. A label value that is not a
// number in 0-65535 is ignored: the weight is 1.
void weigh_by_node(Candidates& candidates, const std::string& label, const Nodes& nodes);

// EP-011, EP-012.
void select_cluster(Selection& selection);

// EP-013. An endpoint is local if its nodeName equals `node_name` exactly. An endpoint without a nodeName is
// never local; if `node_name` is "", no endpoint is.
void select_local(Selection& selection, std::string_view node_name);

// Whether a new flow could go to one of them. If all weights are 0, it cannot (EP-018).
[[nodiscard]] bool has_usable(const Candidates& candidates);

}  // namespace penstock::semantics
