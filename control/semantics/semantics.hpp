// Kubernetes Service semantics as one pure function: (Services, EndpointSlices, Nodes, gateway identity, policy) -> desired state.
// Everything that the requirement sheet says about objects is decided here and tested as a table. engine.hpp is the same function for a
// world that changes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "control/annotations/selector.hpp"
#include "control/kube/objects.hpp"
#include "control/model/desired.hpp"

namespace penstock::semantics {

// Who may have which external IPs: Services in these namespaces with these labels, addresses in these ranges.
struct ExternalIpRule {
    bool all_namespaces = false;          // else only those of:
    std::vector<std::string> namespaces;  // exact names
    annotations::Selector services;
    std::vector<Prefix> cidrs;
    bool operator==(const ExternalIpRule&) const = default;
};

// What the operator decided for all Services; options of penstock-sync.
struct Policy {
    std::vector<Prefix> allowed_external_cidrs;     // XIP-006; to all namespaces
    std::vector<ExternalIpRule> external_ip_rules;  // likewise; what neither of the two allows is refused
    bool external_ips_annotation =
        false;  // XIP-008: penstock.io/external-ips counts as spec.externalIPs does
    std::vector<IpAddr> protected_addresses;  // never an external IP: the API server's address, for one
    std::string own_proxy_name;               // SVC-004; "" none
    enum class VipScope : uint8_t { Default, Owned, All };
    VipScope lb_vip_scope =
        VipScope::Default;  // LB-003: Default is `owned` in external mode and `all` in node mode
    std::string lb_class = "penstock.io/gateway";  // LB-002
    bool default_lb = false;                       // LB-002: a Service without a class is ours too
    lb::SchedulerKind default_scheduler = lb::SchedulerKind::RoundRobin;
    std::vector<Prefix> node_port_within;  // NODEPORT-002/003
    bool node_port_primary_only = false;
    bool refuse_unsupported_annotations =
        false;  // ANN-G4: LoadBalancer IPs of a Service that asks for what we cannot do are withheld
    bool serve_cluster_ips = false;  // SVC-013
    bool masquerade_all = false;     // NAT-004: Pods' addresses are translated as well
    bool symmetric_return =
        true;  // ETP-004: endpoints answer through the gateway whatever the client's address
    bool topology_no_match_drops = false;          // TOPO-004: silence instead of a rejection
    bool source_ranges_compat_kube_proxy = false;  // SRC-003
    std::vector<Prefix> cluster_cidrs;             // where Pods are, besides the Pod CIDRs of the Nodes
    bool rejects_closed_vip_ports = false;         // LB-021
    std::vector<Protocol> disabled_protocols;      // LB-017
    bool serve_health_checks = true;               // healthCheckNodePort (HC-001)
    bool ignore_exclude_label = false;             // PRESENCE-005: VIPs stay on the link of an excluded Node
    bool ignore_network_unavailable = false;       // likewise, of a Node whose network is unavailable
    enum class BackendMode : uint8_t { Pod, Node, Auto };
    BackendMode backend_mode = BackendMode::Pod;  // of gateways in external mode (NODEPORT-009)
    bool node_weight_ready_pods = false;  // node backends: by their ready Pods, where a Service does not say
    L4Port node_probe_port =
        kNodeProbePortDefault;  // of node backends of policy Cluster (HC-007); 0: not probed
    static constexpr L4Port kNodeProbePortDefault = 10256;  // kube-proxy's /healthz
    bool operator==(const Policy&) const = default;
};

// A notice about an object that yields no service port to hang it on (a slice, a Node, an ExternalName with ports, ...).
struct ObjectNotice {
    std::string kind;  // "Service", "EndpointSlice", "Node"
    kube::ObjectName object;
    model::Notice notice;
    auto operator<=>(const ObjectNotice&) const = default;
};

struct Outcome {
    model::Desired desired;
    std::vector<ObjectNotice>
        notices;  // sorted; every notice, those inside `desired` included, for logs and Events
    bool operator==(const Outcome&) const = default;
};

// All at once, as a fresh engine sees it. Any thread.
[[nodiscard]] Outcome evaluate(const kube::ObjectSet& objects, const model::GatewayIdentity& gateway,
                               const Policy& policy);

}  // namespace penstock::semantics
