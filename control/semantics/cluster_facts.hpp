// What judging one Service needs to know about all other objects, apart from who owns which frontend (conflicts.hpp). Gathered once, so
// that one Service can be judged alone while these stay as they are.
#pragma once

#include <unordered_set>
#include <vector>

#include "control/kube/objects.hpp"
#include "control/semantics/prefix_set.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

struct ClusterFacts {
    // Every allocated ClusterIP, served or not, of ignored Services too (SVC-014).
    std::unordered_set<IpAddr> cluster_ips;
    // Pod CIDRs of all Nodes.
    PrefixSet pod_cidrs;
};

// Says into `notices` which Nodes carry a Pod CIDR that is none.
[[nodiscard]] ClusterFacts gather_cluster_facts(const kube::ObjectSet& objects, std::vector<ObjectNotice>& notices);

}  // namespace penstock::semantics
