// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/health_checks.hpp"

#include "control/semantics/service_port.hpp"

namespace penstock::semantics {

L4Port health_check_port_of(const kube::Service& service, ServiceType type,
                            const model::GatewayIdentity& gateway, const Policy& policy) {
    const bool asked = type == ServiceType::LoadBalancer && service.external_traffic_policy == "Local" &&
                       is_l4_port(service.health_check_node_port);
    const bool served = policy.serve_health_checks && gateway.mode == model::GatewayMode::Node;
    return asked && served ? static_cast<L4Port>(service.health_check_node_port) : L4Port{0};
}

std::vector<FrontendTuple> health_check_tuples(L4Port port) {
    return {node_port_tuple(IpFamily::V4, port, Protocol::Tcp),
            node_port_tuple(IpFamily::V6, port, Protocol::Tcp)};
}

void LocalEndpoints::add(std::span<const Candidate> candidates, const std::string& node_name) {
    for (const Candidate& candidate : candidates) {
        if (candidate.readiness == Readiness::Ready && !node_name.empty() &&
            candidate.endpoint->node_name == node_name) {
            addresses_.insert(candidate.address);
        }
    }
}

}  // namespace penstock::semantics
