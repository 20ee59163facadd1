// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/frontends.hpp"

#include <algorithm>

#include "control/semantics/external_ips.hpp"

namespace penstock::semantics {

AskedAddresses asked_addresses_of(const kube::ObjectName& name, const kube::Service& service,
                                  ServiceType type, Families families, const model::GatewayIdentity& gateway,
                                  const Policy& policy, const ExternalIpRights& rights, Notices& notices) {
    AskedAddresses asked;
    if (type == ServiceType::LoadBalancer && in_vip_scope(service, gateway.mode, policy)) {
        asked.load_balancer = load_balancer_addresses_of(service, families, policy, notices);
        asked.any_named = !service.ingress.empty();
    }
    asked.external = external_ips_of(name, service, families, policy, rights, notices);
    asked.any_named |= !named_external_ips(service, policy.external_ips_annotation).empty();
    const auto is_load_balancer = [&](const IpAddr& address) {
        return std::ranges::find(asked.load_balancer, address, &LoadBalancerAddress::address) !=
               asked.load_balancer.end();
    };
    // An address that is both is served as a LoadBalancer IP. Only LoadBalancer IPs are filtered, so this is
    // the stricter of the two (SVC-019).
    std::erase_if(asked.external, is_load_balancer);
    if (policy.serve_cluster_ips) {
        for (const IpAddr& address : cluster_ips_of(service)) {
            // If a LoadBalancer IP equals the ClusterIP, the LoadBalancer IP is kept: it is filtered and
            // therefore stricter.
            if (families.has(address.family()) && !is_load_balancer(address)) {
                asked.cluster.push_back(address);
            }
        }
        asked.any_named |= !asked.cluster.empty();
    }
    if (has_node_ports(type) && gateway.mode == model::GatewayMode::Node) {
        asked.node_port_families = families;
        asked.any_named |= std::ranges::any_of(
            service.ports, [](const kube::ServicePort& port) { return port.node_port != 0; });
    }
    return asked;
}

std::vector<AskedFrontend> asked_frontends_of(const ValidPort& port, const AskedAddresses& addresses,
                                              const SourceRanges& ranges, const Policy& policy) {
    std::vector<AskedFrontend> asked;
    for (const IpAddr& address : addresses.cluster) {
        asked.push_back({.cls = lb::FrontendClass::ClusterIp,
                         .family = address.family(),
                         .tuple = {.address = address, .port = port.port, .protocol = port.protocol}});
    }
    for (const LoadBalancerAddress& entry : addresses.load_balancer) {
        if (std::ranges::find(entry.closed, std::pair{port.port, port.protocol}) != entry.closed.end()) {
            continue;
        }
        const IpFamily family = entry.address.family();
        asked.push_back({.cls = lb::FrontendClass::LoadBalancerIp,
                         .family = family,
                         .tuple = {.address = entry.address, .port = port.port, .protocol = port.protocol},
                         .filtered = ranges.filters(family, policy.source_ranges_compat_kube_proxy)});
    }
    for (const IpAddr& address : addresses.external) {
        asked.push_back({.cls = lb::FrontendClass::ExternalIp,
                         .family = address.family(),
                         .tuple = {.address = address, .port = port.port, .protocol = port.protocol}});
    }
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        if (port.node_port != 0 && addresses.node_port_families.has(family)) {
            asked.push_back({.cls = lb::FrontendClass::NodePort,
                             .family = family,
                             .tuple = node_port_tuple(family, port.node_port, port.protocol)});
        }
    }
    return asked;
}

bool can_be_served(const ValidPort& port, ServiceType type, bool through_nodes, const Policy& policy,
                   Notices& notices) {
    const std::string what = "port " + std::to_string(port.port) + "/" + to_string(port.protocol);
    if (std::ranges::find(policy.disabled_protocols, port.protocol) != policy.disabled_protocols.end()) {
        notices.warn(reason::kLoadBalancerPortsError,
                     what + " is not served: the gateways' operator has switched " +
                         to_string(port.protocol) + " off (--protocols)");
        return false;
    }
    if (through_nodes && (port.node_port == 0 || !has_node_ports(type))) {
        notices.warn(reason::kNodePortRequired,
                     what + " is not served: backends are Nodes, and the port has no nodePort");
        return false;
    }
    return true;
}

}  // namespace penstock::semantics
