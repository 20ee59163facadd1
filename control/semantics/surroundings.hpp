// SPDX-License-Identifier: Apache-2.0
// The inputs for evaluating a Service besides the Service and its slices. They are the same for all Services.
#pragma once

#include <map>
#include <string>

#include "control/kube/changes.hpp"
#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/policy.hpp"

namespace penstock::semantics {

using Nodes = std::map<std::string, kube::NodePtr>;

// References, without ownership.
struct Surroundings {
    const model::GatewayIdentity& gateway;
    const Policy& policy;
    const ClusterFacts& facts;
    const Nodes& nodes;
};

}  // namespace penstock::semantics
