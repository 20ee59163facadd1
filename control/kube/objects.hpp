// SPDX-License-Identifier: Apache-2.0
// Service, EndpointSlice, Node and Namespace as defined by the Kubernetes API, and Penstock's own
// AddressPool: only the fields that Penstock's semantics read, with the API's defaults for absent fields
// (GEN-004). Values that the semantics room validates are kept as text (a malformed externalIP must reach it,
// to be refused by name). Both sources, manifests and the API server, fill these structs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/interned.hpp"
#include "control/ipam/pool.hpp"
#include "control/kube/endpoint_address.hpp"
#include "control/kube/object_id.hpp"

namespace penstock::kube {

struct ObjectMeta {
    std::string namespace_name;  // "default" if a manifest names none; "" for cluster-scoped objects
    std::string name;
    std::string uid;  // of Services and AddressPools; "" from manifests
    // RFC 3339 as written; "" if absent, which sorts as oldest-unknown (see semantics/conflicts).
    std::string creation_timestamp;
    std::map<std::string, std::string> labels;
    std::map<std::string, std::string> annotations;
    bool operator==(const ObjectMeta&) const = default;
};

struct ServicePort {
    std::string name;
    std::string protocol = "TCP";
    int64_t port = 0;         // any number from the object; validated by semantics (SVC-010)
    int64_t node_port = 0;    // 0: none
    std::string target_port;  // informative only (SVC-009)
    bool operator==(const ServicePort&) const = default;
};

struct LoadBalancerIngress {
    std::string ip;
    std::string hostname;
    std::string ip_mode;  // "", "VIP", "Proxy", or anything (LB-004)
    struct PortStatus {
        int64_t port = 0;
        std::string protocol = "TCP";
        std::string error;  // non-empty: written because the port could not be served (LB-006)
        bool operator==(const PortStatus&) const = default;
    };
    std::vector<PortStatus> ports;
    bool operator==(const LoadBalancerIngress&) const = default;
};

// A condition of status.conditions that Penstock wrote (STATUS-003). Conditions of other writers are not
// kept.
struct Condition {
    std::string type;    // begins with "penstock.io/"
    std::string status;  // "True", "False" or "Unknown"
    std::string reason;
    std::string message;
    bool operator==(const Condition&) const = default;
};
// Ownership marker: while it is True, status.loadBalancer.ingress is Penstock's (STATUS-003). False: no
// address was given, and any ingress is foreign.
inline constexpr std::string_view kAllocatedCondition = "penstock.io/Allocated";

struct Service {
    ObjectMeta meta;
    std::string type = "ClusterIP";
    std::string cluster_ip;  // "" not allocated, "None" headless
    // An empty cluster_ip means "not yet allocated" if an API server will fill it in; nothing is served until
    // then (SVC-002). For a manifest without the field this is false, because no such server exists: the
    // Service is served on its other frontends. For a manifest with `clusterIP: ""` this is true: it was
    // copied from a server that had not allocated the address yet.
    bool awaits_cluster_ip = true;
    std::vector<std::string> cluster_ips;
    std::vector<std::string> ip_families;  // "IPv4", "IPv6"
    std::string ip_family_policy;  // "SingleStack", "PreferDualStack", "RequireDualStack"; "" if absent
    std::vector<std::string> external_ips;
    std::vector<ServicePort> ports;
    std::map<std::string, std::string> selector;
    std::string external_traffic_policy = "Cluster";
    std::string internal_traffic_policy = "Cluster";
    std::string session_affinity = "None";
    std::string traffic_distribution;  // "", "PreferClose", or anything (GEN-002)
    int64_t affinity_timeout_s = 10800;
    std::string load_balancer_ip;
    std::string load_balancer_class;
    std::vector<std::string> load_balancer_source_ranges;
    std::optional<bool> allocate_load_balancer_node_ports;
    int64_t health_check_node_port = 0;
    bool publish_not_ready_addresses = false;
    std::string external_name;
    std::vector<std::string> topology_keys;    // until 1.21 (TOPO-002)
    std::vector<LoadBalancerIngress> ingress;  // status.loadBalancer.ingress
    std::vector<Condition> conditions;         // Penstock's own, of status.conditions
    bool operator==(const Service&) const = default;
};

// True if the ingress is Penstock's.
[[nodiscard]] inline bool has_marker(const Service& service) noexcept {
    for (const Condition& condition : service.conditions) {
        if (condition.type == kAllocatedCondition) {
            return condition.status == "True";
        }
    }
    return false;
}
// The conditions of a Service whose only condition is the marker, or none.
[[nodiscard]] inline std::vector<Condition> marker(const std::string& status) {
    return {{.type = std::string(kAllocatedCondition), .status = status, .reason = {}, .message = {}}};
}

struct EndpointPort {
    std::string name;  // "" if absent
    std::string protocol = "TCP";
    std::optional<int64_t> port;  // absent or null: "all ports", unsupported (EP-009)
    bool operator==(const EndpointPort&) const = default;
};

// A cluster has hundreds of thousands, so each field must be small: repeated values are shared. All
// `addresses` after the first, and the hostname, are not read and not kept.
struct Endpoint {
    EndpointAddress address;
    std::optional<bool> ready;  // null is distinct from false (EP-010)
    std::optional<bool> serving;
    std::optional<bool> terminating;
    InternedText node_name;
    InternedText zone;
    InternedTexts hints_for_zones;
    InternedTexts hints_for_nodes;
    bool operator==(const Endpoint&) const = default;
};
static_assert(sizeof(Endpoint) == 72,
              "250,000 of them are kept; perf/control/objects_memory prints what they come to");

struct EndpointSlice {
    ObjectMeta meta;
    std::string address_type;  // "IPv4", "IPv6", "FQDN", ...
    std::vector<Endpoint> endpoints;
    std::vector<EndpointPort> ports;
    // v1beta1 only: key, value, key, value of each endpoint's `topology`, sorted by key. One entry for each
    // of `endpoints`, or empty if no endpoint has any (EP-016). Stored here so that endpoints of v1 do not
    // carry it.
    std::vector<InternedTexts> topology;
    bool from_endpoints = false;  // created from a subset of core Endpoints (EP-015)
    bool operator==(const EndpointSlice&) const = default;
};

struct NodeAddress {
    std::string type;  // "InternalIP", "ExternalIP", "Hostname", ...
    std::string address;
    bool operator==(const NodeAddress&) const = default;
};

struct Node {
    ObjectMeta meta;
    std::vector<NodeAddress> addresses;  // status.addresses
    std::vector<std::string> pod_cidrs;  // spec.podCIDRs
    bool ready = true;                   // the Ready condition is not False or Unknown
    bool network_unavailable = false;    // the NetworkUnavailable condition is True (PRESENCE-005)
    bool unschedulable = false;
    bool deleting = false;            // metadata.deletionTimestamp is set: a finalizer delays the deletion
    std::vector<std::string> taints;  // keys of spec.taints
    bool operator==(const Node&) const = default;
};

// AddressPool of penstock.io/v1alpha1. Its fields are validated by the schema (pool_schema.hpp): a pool with
// a malformed field is quarantined as a whole. Rules about several pools (LB-015) are the allocator's.
struct AddressPool {
    ObjectMeta meta;         // without labels and annotations
    int64_t generation = 0;  // version of the spec, for the conditions in the status; 0 from manifests
    ipam::Pool pool;
    bool operator==(const AddressPool&) const = default;
};

// Its labels, by which pools select namespaces.
struct Namespace {
    ObjectMeta meta;
    bool operator==(const Namespace&) const = default;
};

// All objects known at one moment, from either source. The input of semantics.
struct ObjectSet {
    std::map<ObjectName, Service> services;
    std::map<ObjectName, EndpointSlice> slices;
    std::map<std::string, Node> nodes;
    std::map<std::string, AddressPool> pools;
    std::map<std::string, Namespace> namespaces;
    bool operator==(const ObjectSet&) const = default;
};

}  // namespace penstock::kube
