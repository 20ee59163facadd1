// SPDX-License-Identifier: Apache-2.0
// Facts about all other objects that the evaluation of one Service needs, except the owners of frontends
// (conflicts.hpp). Each object adds its facts and removes them when it changes.
#pragma once

#include <string>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/address_count.hpp"
#include "control/semantics/node_facts.hpp"
#include "control/semantics/policy.hpp"
#include "control/semantics/prefix_set.hpp"

namespace penstock::semantics {

struct ClusterFacts {
    // Every allocated ClusterIP, served or not, including those of ignored Services (SVC-014).
    AddressCount cluster_ips;
    // Pod CIDRs of all Nodes and those configured by the operator.
    PrefixSet pod_cidrs;
    NodeFacts nodes;
    // External mode: traffic goes to Nodes, not to Pods.
    bool through_nodes = false;
};

// The valid Pod CIDRs of the Node. Each invalid one adds a notice to `notices`.
[[nodiscard]] std::vector<Prefix> pod_cidrs_of(const std::string& node_name, const kube::Node& node,
                                               std::vector<ObjectNotice>& notices);

}  // namespace penstock::semantics
