// Which of the gateway's addresses serve NodePorts (NODEPORT-002): the rule and the Node's addresses; penstockd applies them to its ports.
#pragma once

#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

// `node` is the one that the gateway is; null where there is none of that name. Empty in external mode, where no NodePort is opened.
[[nodiscard]] model::NodePortAddresses node_port_addresses_of(const kube::Node* node,
                                                              const model::GatewayIdentity& gateway,
                                                              const Policy& policy,
                                                              std::vector<ObjectNotice>& notices);

}  // namespace penstock::semantics
