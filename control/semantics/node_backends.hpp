// Nodes as backends (NODEPORT-009): a gateway outside the cluster that has no way to Pods sends to nodeIP:nodePort, and the Node's own
// proxy goes on from there. Which Nodes may get a new flow is LB-019's rule, and for policy Local that of ETP-005 as well.
#pragma once

#include <optional>
#include <string>

#include "control/model/desired.hpp"
#include "control/semantics/annotations.hpp"
#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/conflicts.hpp"
#include "control/semantics/endpoint_selection.hpp"
#include "control/semantics/traffic_policy.hpp"

namespace penstock::semantics {

struct BackendChoice {
    bool through_nodes = false;
    std::string why;  // a line for the log
    bool operator==(const BackendChoice&) const = default;
};

// Policy::BackendMode::Auto takes Pods where each of `pod_cidrs` is routed by the gateway, and Nodes otherwise, also while none is known.
// In node mode backends are always Pods.
[[nodiscard]] BackendChoice choose_backends(const model::GatewayIdentity& gateway, const Policy& policy,
                                            const PrefixSet& pod_cidrs);

// One family of one service port. `pods`, its merged endpoints without forbidden addresses, say which Nodes have Pods, and how many.
struct NodeSetRequest {
    IpFamily family = IpFamily::V4;
    L4Port node_port = 0;  // 0: the port is not served, and its set is empty
    TrafficPolicy policy = TrafficPolicy::Cluster;
};
[[nodiscard]] model::BackendSet node_backend_set(const NodeSetRequest& request,
                                                 const AnnotationSettings& settings, const Candidates& pods,
                                                 const ClusterFacts& facts, const FrontendOwners& owners);

// How a gateway finds out whether a Node serves (ETP-005, HC-007): fails closed. Empty: it is not asked.
[[nodiscard]] std::optional<model::Probe> node_probe_of(const kube::Service& service, TrafficPolicy external,
                                                        const AnnotationSettings& settings,
                                                        const Policy& policy);

}  // namespace penstock::semantics
