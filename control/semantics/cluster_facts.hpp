// What judging one Service needs to know about all other objects, apart from who owns which frontend (conflicts.hpp). Every object adds its
// share and takes it back when it changes.
#pragma once

#include <string>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/address_count.hpp"
#include "control/semantics/node_facts.hpp"
#include "control/semantics/prefix_set.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

struct ClusterFacts {
    // Every allocated ClusterIP, served or not, of ignored Services too (SVC-014).
    AddressCount cluster_ips;
    // Pod CIDRs of all Nodes, and the operator's.
    PrefixSet pod_cidrs;
    NodeFacts nodes;
    // External mode: traffic goes to Nodes, not to Pods.
    bool through_nodes = false;
};

// Those that can be read; the others are told in `notices`.
[[nodiscard]] std::vector<Prefix> pod_cidrs_of(const std::string& node_name, const kube::Node& node,
                                               std::vector<ObjectNotice>& notices);

}  // namespace penstock::semantics
