// SPDX-License-Identifier: Apache-2.0
// Vocabulary of the semantics: the settings of an operator that apply to every Service, and notices about
// objects.
#pragma once

#include <string>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/kube/objects.hpp"
#include "control/model/desired.hpp"

namespace penstock::semantics {

// A rule that allows external IPs: Services in these namespaces with these labels may use addresses in these
// ranges.
struct ExternalIpRule {
    bool all_namespaces = false;          // if false, only these:
    std::vector<std::string> namespaces;  // exact names
    annotations::Selector services;
    std::vector<Prefix> cidrs;
    bool operator==(const ExternalIpRule&) const = default;
};

// Operator settings for all Services: options of penstock-sync.
struct Policy {
    std::vector<Prefix> allowed_external_cidrs;     // XIP-006; to all namespaces
    std::vector<ExternalIpRule> external_ip_rules;  // XIP-006; an address that neither list allows is refused
    // XIP-008: penstock.io/external-ips has the same effect as spec.externalIPs.
    bool external_ips_annotation = false;
    std::vector<IpAddr> protected_addresses;  // never external IPs, for example the API server's address
    std::string own_proxy_name;               // SVC-004; "" none
    enum class VipScope : uint8_t { Default, Owned, All };
    // LB-003: Default means `owned` in external mode and `all` in node mode.
    VipScope lb_vip_scope = VipScope::Default;
    std::string lb_class = "penstock.io/gateway";  // LB-002
    bool default_lb = false;                       // LB-002: Services without a class belong to Penstock too
    lb::SchedulerKind default_scheduler = lb::SchedulerKind::RoundRobin;
    std::vector<Prefix> node_port_within;  // NODEPORT-002/003
    bool node_port_primary_only = false;
    // ANN-G4: a Service that requests an unsupported setting is not served on its LoadBalancer IPs.
    bool refuse_unsupported_annotations = false;
    bool serve_cluster_ips = false;  // SVC-013
    bool masquerade_all = false;     // NAT-004: source addresses of Pods are translated as well
    // ETP-004: endpoints reply through the gateway for any client address.
    bool symmetric_return = true;
    bool topology_no_match_drops = false;          // TOPO-004: drop silently instead of reject
    bool source_ranges_compat_kube_proxy = false;  // SRC-003
    std::vector<Prefix> cluster_cidrs;         // prefixes of Pods in addition to the Pod CIDRs of the Nodes
    bool rejects_closed_vip_ports = false;     // LB-021
    std::vector<Protocol> disabled_protocols;  // LB-017
    bool serve_health_checks = true;           // healthCheckNodePort (HC-001)
    bool ignore_exclude_label = false;         // PRESENCE-005: VIPs stay on the link of an excluded Node
    // PRESENCE-005: the same for a Node whose network is unavailable.
    bool ignore_network_unavailable = false;
    enum class BackendMode : uint8_t { Pod, Node, Auto };
    BackendMode backend_mode = BackendMode::Pod;  // of gateways in external mode (NODEPORT-009)
    // Default for node backends: weighted by their ready Pods, if the Service does not set a weight.
    bool node_weight_ready_pods = false;
    // Probe port of node backends with policy Cluster (HC-007); 0: not probed.
    L4Port node_probe_port = kNodeProbePortDefault;
    static constexpr L4Port kNodeProbePortDefault = 10256;  // kube-proxy's /healthz
    bool operator==(const Policy&) const = default;
};

// A notice about an object without a service port to attach it to (a slice, a Node, an ExternalName with
// ports, ...).
struct ObjectNotice {
    std::string kind;  // "Service", "EndpointSlice", "Node"
    kube::ObjectName object;
    model::Notice notice;
    auto operator<=>(const ObjectNotice&) const = default;
};

}  // namespace penstock::semantics
