// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/endpoints/node_backends.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/semantics/service_port.hpp"

namespace penstock::semantics {
namespace {

// The Pods of one service port on one Node.
struct PodsOnNode {
    uint32_t usable = 0;   // distinct addresses that the Node's proxy offers to new flows
    bool serving = false;  // some Pods may at least keep their existing flows
};

using PodsByNode = std::unordered_map<std::string_view, PodsOnNode>;

PodsByNode count_pods(const Candidates& pods, TrafficPolicy policy) {
    PodsByNode by_node;
    for (const Candidate& pod : pods) {
        if (pod.readiness == Readiness::Terminating) {
            by_node[std::string_view(pod.endpoint->node_name)].serving = true;
        }
    }
    // With policy Local, a Node whose Pods all terminate fails its health check (HC-004) and is no longer a
    // backend.
    const bool any_ready = std::ranges::find(pods, Readiness::Ready, &Candidate::readiness) != pods.end();
    const bool falls_back = policy == TrafficPolicy::Cluster && !any_ready;
    std::unordered_map<std::string_view, std::set<IpAddr>> addresses;
    for (const Candidate& pod : pods) {
        if (pod.readiness == Readiness::Ready || (falls_back && pod.readiness == Readiness::Terminating)) {
            addresses[std::string_view(pod.endpoint->node_name)].insert(pod.address);
        }
    }
    for (const auto& [node, distinct] : addresses) {
        by_node[node] = {.usable = static_cast<uint32_t>(distinct.size()), .serving = true};
    }
    return by_node;
}

// The result for a Node and one service port, best first. If two Nodes have the same address, the better rank
// counts.
enum class Rank : uint8_t { Backend, NotReady, NotLocal, NotEligible, Forbidden };

struct RankedNode {
    IpAddr address;
    Rank rank = Rank::Backend;
    const NodeFact* node = nullptr;
    PodsOnNode pods;
};

// The criteria for all Nodes, for one service port.
struct Judge {
    const ClusterFacts& facts;
    const FrontendOwners& owners;
    const AnnotationSettings& settings;
    bool needs_pods = false;

    [[nodiscard]] Rank rank_of(const NodeFact& node, const IpAddr& address, const PodsOnNode& pods) const {
        if (facts.cluster_ips.contains(address) || owners.owns_vip(address)) {
            return Rank::Forbidden;  // EP-006: the packet would return to the gateway, or reach no host
        }
        if (!node.eligible || (settings.node_selector && !settings.node_selector->matches(node.labels()))) {
            return Rank::NotEligible;
        }
        if (needs_pods && pods.usable == 0) {
            return Rank::NotLocal;
        }
        return node.ready ? Rank::Backend : Rank::NotReady;
    }
};

model::ExcludedEndpoint excluded(const RankedNode& node, L4Port node_port) {
    switch (node.rank) {
        case Rank::NotReady:
            // The kubelet does not report: flows that can move to another Node should do so.
            return {.address = node.address,
                    .port = node_port,
                    .why = model::Exclusion::NotReady,
                    .serving = false};
        case Rank::NotLocal:
            return {.address = node.address,
                    .port = node_port,
                    .why = model::Exclusion::NotLocal,
                    .serving = node.pods.serving};
        case Rank::NotEligible:
            return {.address = node.address,
                    .port = node_port,
                    .why = model::Exclusion::NodeSelector,
                    .serving = true};
        case Rank::Backend:
        case Rank::Forbidden:
            break;
    }
    return {.address = node.address,
            .port = node_port,
            .why = model::Exclusion::ForbiddenAddress,
            .serving = false};
}

uint16_t node_weight(const AnnotationSettings& settings, const PodsOnNode& pods) {
    return settings.node_weight_ready_pods
               ? static_cast<uint16_t>(std::min<uint32_t>(pods.usable, std::numeric_limits<uint16_t>::max()))
               : uint16_t{1};
}

}  // namespace

BackendChoice choose_backends(const model::GatewayIdentity& gateway, const Policy& policy,
                              const PrefixSet& pod_cidrs) {
    using Mode = Policy::BackendMode;
    if (gateway.mode == model::GatewayMode::Node) {
        return {.through_nodes = false, .why = "backends are Pods: the gateway is a node of the cluster"};
    }
    if (policy.backend_mode != Mode::Auto) {
        const bool nodes = policy.backend_mode == Mode::Node;
        return {.through_nodes = nodes,
                .why = nodes ? "backends are Nodes, at their nodePorts: --backend-mode=node"
                             : "backends are Pods: --backend-mode=pod"};
    }
    const std::vector<Prefix> wanted = pod_cidrs.outermost();
    if (wanted.empty()) {
        return {.through_nodes = true, .why = "backends are Nodes, at their nodePorts: no Pod CIDR is known"};
    }
    const PrefixSet routed(gateway.routed_prefixes);
    const auto missing =
        std::ranges::find_if_not(wanted, [&](const Prefix& cidr) { return routed.covers(cidr); });
    if (missing != wanted.end()) {
        return {.through_nodes = true,
                .why = "backends are Nodes, at their nodePorts: the gateway has no route to Pod CIDR " +
                       missing->to_string()};
    }
    return {.through_nodes = false, .why = "backends are Pods: the gateway has routes to all Pod CIDRs"};
}

model::BackendSet node_backend_set(const NodeSetRequest& request, const AnnotationSettings& settings,
                                   const Candidates& pods, const ClusterFacts& facts,
                                   const FrontendOwners& owners) {
    model::BackendSet set;
    set.family = request.family;
    set.source = request.policy == TrafficPolicy::Local ? lb::SourceMode::Keep : lb::SourceMode::Translate;
    set.when_empty = settings.no_endpoints;
    if (request.node_port == 0) {
        return set;
    }
    const PodsByNode by_node = count_pods(pods, request.policy);
    const bool is_local = request.policy == TrafficPolicy::Local;
    const Judge judge{.facts = facts,
                      .owners = owners,
                      .settings = settings,
                      .needs_pods = settings.only_nodes_with_endpoints.value_or(is_local) || is_local};
    std::vector<RankedNode> nodes;
    bool any_ready = false;
    for (const auto& [name, node] : facts.nodes.all()) {
        if (const auto& address = node.address(request.family)) {
            const auto found = by_node.find(name);
            const PodsOnNode on_node = found == by_node.end() ? PodsOnNode() : found->second;
            const Rank rank = judge.rank_of(node, *address, on_node);
            nodes.push_back({.address = *address, .rank = rank, .node = &node, .pods = on_node});
            any_ready |= rank == Rank::Backend;
        }
    }
    // LB-019: if no Node is ready, unready Nodes are used.
    for (RankedNode& node : nodes) {
        if (!any_ready && node.rank == Rank::NotReady) {
            node.rank = Rank::Backend;
        }
    }
    std::ranges::stable_sort(nodes, {},
                             [](const RankedNode& node) { return std::tuple(node.address, node.rank); });
    const auto [same, end] = std::ranges::unique(nodes, {}, &RankedNode::address);
    nodes.erase(same, end);
    for (const RankedNode& node : nodes) {
        if (node.rank == Rank::Backend) {
            set.endpoints.push_back({.address = node.address,
                                     .port = request.node_port,
                                     .weight = node_weight(settings, node.pods),
                                     .node_name = node.node->name,
                                     .zone = node.node->zone});
        } else {
            set.excluded.push_back(excluded(node, request.node_port));
        }
    }
    return set;
}

std::optional<model::Probe> node_probe_of(const kube::Service& service, TrafficPolicy external,
                                          const AnnotationSettings& settings, const Policy& policy) {
    using enum AnnotationSettings::HealthCheck;
    if (settings.health_check == Off) {
        return std::nullopt;
    }
    model::Probe probe = settings.probe;
    probe.fails_closed = true;
    if (settings.health_check == Tcp) {
        probe.kind = model::Probe::Kind::Tcp;
        return probe;
    }
    probe.kind = model::Probe::Kind::Http;
    if (probe.port != 0) {
        return probe;  // a configured port implies a configured path
    }
    if (external == TrafficPolicy::Local) {
        // Only type LoadBalancer has a healthCheckNodePort.
        const bool has_port = service.type == "LoadBalancer" && is_l4_port(service.health_check_node_port);
        probe.port = has_port ? static_cast<L4Port>(service.health_check_node_port) : L4Port{0};
        probe.path = "/";
    } else {
        probe.port = policy.node_probe_port;
        probe.path = "/healthz";
    }
    return probe.port == 0 ? std::nullopt : std::optional(probe);
}

}  // namespace penstock::semantics
