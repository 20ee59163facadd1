// What judging a Service reads besides the Service and its slices, the same for all of them.
#pragma once

#include <map>
#include <string>

#include "control/kube/changes.hpp"
#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/semantics.hpp"

namespace penstock::semantics {

using Nodes = std::map<std::string, kube::NodePtr>;

// Borrowed.
struct Surroundings {
    const model::GatewayIdentity& gateway;
    const Policy& policy;
    const ClusterFacts& facts;
    const Nodes& nodes;
};

}  // namespace penstock::semantics
