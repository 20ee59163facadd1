// SPDX-License-Identifier: Apache-2.0
// Nodes as backends (NODEPORT-009): a gateway outside the cluster without a route to Pods sends to
// nodeIP:nodePort, and the Node's own proxy forwards from there. LB-019 defines which Nodes may receive new
// flows; for policy Local, ETP-005 applies as well.
#pragma once

#include <optional>
#include <string>

#include "control/model/desired.hpp"
#include "control/semantics/annotations.hpp"
#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/conflicts.hpp"
#include "control/semantics/endpoints/endpoint_selection.hpp"
#include "control/semantics/endpoints/traffic_policy.hpp"

namespace penstock::semantics {

struct BackendChoice {
    bool through_nodes = false;
    std::string why;  // text for the log
    bool operator==(const BackendChoice&) const = default;
};

// Policy::BackendMode::Auto selects Pods if the gateway has a route to each of `pod_cidrs`, otherwise Nodes.
// It also selects Nodes while no Pod CIDR is known. In node mode the backends are always Pods.
[[nodiscard]] BackendChoice choose_backends(const model::GatewayIdentity& gateway, const Policy& policy,
                                            const PrefixSet& pod_cidrs);

// One family of one service port. `pods` are its merged endpoints without forbidden addresses; they determine
// which Nodes have Pods, and how many.
struct NodeSetRequest {
    IpFamily family = IpFamily::V4;
    L4Port node_port = 0;  // 0: the port is not served; its set is empty
    TrafficPolicy policy = TrafficPolicy::Cluster;
};
[[nodiscard]] model::BackendSet node_backend_set(const NodeSetRequest& request,
                                                 const AnnotationSettings& settings, const Candidates& pods,
                                                 const ClusterFacts& facts, const FrontendOwners& owners);

// How a gateway probes whether a Node serves (ETP-005, HC-007). The probe fails closed. Empty: Nodes are not
// probed.
[[nodiscard]] std::optional<model::Probe> node_probe_of(const kube::Service& service, TrafficPolicy external,
                                                        const AnnotationSettings& settings,
                                                        const Policy& policy);

}  // namespace penstock::semantics
