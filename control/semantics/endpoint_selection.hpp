// Which endpoints may receive a new flow, in the order of EP-020. Each step goes from a Selection to a Selection, so that a step can be put
// between two others, and whoever asks where an endpoint went is told the step:
//
//   merged_endpoints      all slices of the Service, one family, one service port; one candidate for each (address, port)
//   drop_forbidden        addresses that nothing may ever be forwarded to (EP-006)
//   select_nodes          only on the nodes that the Service wants (ANN-14)
//   select_cluster        the ready ones, or else the terminating ones that still serve (EP-012)
//   select_local          the same question asked of this node alone (EP-013)
//   select_by_keys/hints  near before far (topology.hpp)
//
// What each policy makes of the steps is traffic_policy.hpp's business; health, weight, affinity and the scheduler are the gateway's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/semantics/address_count.hpp"
#include "control/semantics/conflicts.hpp"
#include "control/semantics/notices.hpp"
#include "control/semantics/selection.hpp"
#include "control/semantics/slices.hpp"
#include "control/semantics/surroundings.hpp"

namespace penstock::semantics {

// The union over `slices` of one family whose ports contain (port_name, protocol), each endpoint with its own slice's port number (EP-003).
// Sorted by (address, port) and unique; of duplicates the best by readiness, then by slice name, is kept (EP-004). What cannot be read is
// skipped alone and said (EP-005, EP-009).
[[nodiscard]] Candidates merged_endpoints(std::span<const NamedSlice> slices, const std::string& port_name,
                                          Protocol protocol, IpFamily family, Notices& notices);

// Takes out what EP-006 forbids: by what the address is, because it is a ClusterIP, or because a frontend of Penstock's own is there.
void drop_forbidden(Selection& selection, const AddressCount& cluster_ips, const FrontendOwners& owners,
                    Notices& notices);

// Those whose Node is known and matches (ANN-14).
void select_nodes(Selection& selection, const annotations::Selector& selector, const Nodes& nodes);

// ANN-27, for those that their slice does not weigh. A label that is no number in 0-65535 is none: weight 1.
void weigh_by_node(Candidates& candidates, const std::string& label, const Nodes& nodes);

// EP-011, EP-012.
void select_cluster(Selection& selection);

// EP-013. Local are the endpoints whose nodeName is `node_name`, exactly; an endpoint without one is nowhere, and "" is nobody's name.
void select_local(Selection& selection, std::string_view node_name);

// Whether a new flow could go to one of them: with nothing but weight 0 it cannot (EP-018).
[[nodiscard]] bool has_usable(const Candidates& candidates);

}  // namespace penstock::semantics
