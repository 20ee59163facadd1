// SPDX-License-Identifier: Apache-2.0
// The frontends that a Service requests, before conflicts with other Services are resolved (SVC-001):
// LoadBalancer IPs and external IPs on each service port, NodePorts on the gateway's own addresses, and
// ClusterIPs if the operator enabled them.
#pragma once

#include <vector>

#include "control/semantics/conflicts.hpp"
#include "control/semantics/load_balancer.hpp"
#include "control/semantics/rights.hpp"
#include "control/semantics/service_port.hpp"
#include "control/semantics/source_ranges.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {

struct AskedFrontend {
    lb::FrontendClass cls = lb::FrontendClass::ExternalIp;
    IpFamily family = IpFamily::V4;
    FrontendTuple tuple;
    bool filtered = false;  // the Service's source ranges apply (SRC-001)
};

// The addresses that all ports of a Service have in common.
struct AskedAddresses {
    // SVC-013: only if ClusterIPs are served; without the addresses that are in load_balancer as well.
    std::vector<IpAddr> cluster;
    std::vector<LoadBalancerAddress> load_balancer;
    std::vector<IpAddr> external;  // without the addresses that are in load_balancer as well (SVC-019)
    Families node_port_families;   // empty if NodePorts are not opened
    // The object names at least one address or NodePort that this gateway may serve, whether it is served or
    // refused. The Service's result must be visible on this gateway then.
    bool any_named = false;
};

[[nodiscard]] AskedAddresses asked_addresses_of(const kube::ObjectName& name, const kube::Service& service,
                                                ServiceType type, Families families,
                                                const model::GatewayIdentity& gateway, const Policy& policy,
                                                const ExternalIpRights& rights, Notices& notices);

// Each tuple occurs once.
[[nodiscard]] std::vector<AskedFrontend> asked_frontends_of(const ValidPort& port,
                                                            const AskedAddresses& addresses,
                                                            const SourceRanges& ranges, const Policy& policy);

// Whether a port that requests frontends can have any. It cannot if its protocol is disabled (LB-017), or if
// backends are Nodes and the port has no nodePort (LB-016).
[[nodiscard]] bool can_be_served(const ValidPort& port, ServiceType type, bool through_nodes,
                                 const Policy& policy, Notices& notices);

}  // namespace penstock::semantics
