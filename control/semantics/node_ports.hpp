// SPDX-License-Identifier: Apache-2.0
// The rule for which of the gateway's addresses serve NodePorts (NODEPORT-002), and the Node's addresses.
// penstockd applies the rule to its ports.
#pragma once

#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::semantics {

// `node` is the gateway's own Node, or null if no Node of that name exists. Returns an empty rule in external
// mode, where no NodePort is opened.
[[nodiscard]] model::NodePortAddresses node_port_addresses_of(const kube::Node* node,
                                                              const model::GatewayIdentity& gateway,
                                                              const Policy& policy,
                                                              std::vector<ObjectNotice>& notices);

}  // namespace penstock::semantics
