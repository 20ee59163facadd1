// The frontends that a Service asks for, before it is known who else asks for the same (SVC-001): LoadBalancer IPs and external IPs on each
// service port, NodePorts on the set of the gateway's own addresses, ClusterIPs where the operator wants them served here.
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

// What all ports of a Service have in common.
struct AskedAddresses {
    std::vector<IpAddr>
        cluster;  // SVC-013: only where they are served; none that is in load_balancer as well
    std::vector<LoadBalancerAddress> load_balancer;
    std::vector<IpAddr> external;  // none that is in load_balancer as well (SVC-019)
    Families node_port_families;   // none where NodePorts are not opened
    // The object names something that this gateway may serve, served or refused: somebody will ask what became of it.
    bool any_named = false;
};

[[nodiscard]] AskedAddresses asked_addresses_of(const kube::ObjectName& name, const kube::Service& service,
                                                ServiceType type, Families families,
                                                const model::GatewayIdentity& gateway, const Policy& policy,
                                                const ExternalIpRights& rights, Notices& notices);

// Every tuple once.
[[nodiscard]] std::vector<AskedFrontend> asked_frontends_of(const ServicePort& port,
                                                            const AskedAddresses& addresses,
                                                            const SourceRanges& ranges, const Policy& policy);

// Whether a port that asks for frontends can have any: not where its protocol is switched off (LB-017), nor where backends are Nodes and it
// has no nodePort there (LB-016).
[[nodiscard]] bool can_be_served(const ServicePort& port, ServiceType type, bool through_nodes,
                                 const Policy& policy, Notices& notices);

}  // namespace penstock::semantics
