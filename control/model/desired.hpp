// SPDX-License-Identifier: Apache-2.0
// The desired state of one gateway: the output of control/semantics and the payload of the state stream. It
// contains no Kubernetes type, only addresses, display names and decisions. All values are plain, comparable
// and in canonical order. Equal object sets therefore give equal states (GEN-006), and differences are found
// by comparison.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/base/interned.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/base/socket_address.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::model {

// Identifies a service port. Endpoints, scheduler state, counters and flows belong to this key, never to a
// bare number.
struct ServiceKey {
    std::string namespace_name;
    std::string name;
    std::string port_name;
    Protocol protocol = Protocol::Tcp;
    auto operator<=>(const ServiceKey&) const = default;
    // "default/web:http/TCP", or "default/web/TCP" if the port has no name.
    [[nodiscard]] std::string to_string() const;
};

struct Endpoint {
    IpAddr address;
    L4Port port = 0;
    uint16_t weight = 1;
    InternedText node_name;  // "" if unknown; for display only
    InternedText zone;       // "" if unknown; for display only
    [[nodiscard]] SocketAddress socket() const noexcept { return {address, port}; }
    bool operator==(const Endpoint&) const = default;
};
static_assert(sizeof(Endpoint) == 40,
              "a cluster has hundreds of thousands, and both ends of the stream keep them all");

// The selection step of EP-020 that excluded an endpoint, in the order of the steps. Exclusions that the
// gateway decides itself (health, weight) are not listed here.
enum class Exclusion : uint8_t {
    ForbiddenAddress,  // (2) never an endpoint (EP-006); its flows end as if it were removed
    NodeSelector,      // (3) its Node does not match the Service's node selector (ANN-14)
    NotReady,          // (4) not ready, and not serving while terminating
    Terminating,       // (4) serving while terminating, but ready endpoints exist (EP-012, EP-013)
    NotLocal,          // (4) the policy is Local and the endpoint is on another node
    TopologyKeys,      // (5) TOPO-002
    TopologyHints,     // (5) TOPO-008
};
inline constexpr size_t kExclusions = 7;

// An endpoint of the service port that a set does not offer to new flows. All excluded endpoints except
// forbidden ones keep their existing flows.
struct ExcludedEndpoint {
    IpAddr address;
    L4Port port = 0;
    Exclusion why = Exclusion::NotReady;
    bool serving = true;  // if false, it keeps its TCP and SCTP flows only (UDP-001, DRAIN-003)
    [[nodiscard]] SocketAddress socket() const noexcept { return {address, port}; }
    bool operator==(const ExcludedEndpoint&) const = default;
};

// The endpoints that one traffic policy offers to new flows of the frontends of one family. A dual-stack
// Service has one set for each family. Frontend and endpoint have the same family (DUAL-002), unless the
// Service requests translation and has no endpoint of the frontend's family (ANN-32).
struct BackendSet {
    std::vector<Endpoint> endpoints;         // sorted, unique by (address, port)
    std::vector<ExcludedEndpoint> excluded;  // sorted, unique by (address, port); disjoint from `endpoints`
    lb::SourceMode source = lb::SourceMode::Translate;
    lb::EmptyAction when_empty = lb::EmptyAction::Reject;
    IpFamily family = IpFamily::V4;  // of every frontend that refers to this set
    // The endpoints, including excluded ones, have the other family (ANN-32). `source` is Translate then,
    // because the client's address is not of the endpoints' family.
    bool translates_family = false;
    [[nodiscard]] IpFamily endpoint_family() const noexcept {
        return translates_family ? other_family(family) : family;
    }
    bool operator==(const BackendSet&) const = default;
};

// The gateway's own addresses that serve NodePorts (NODEPORT-002). penstockd applies this rule to the
// addresses of its ports, also when they change. It never uses loopback or link-local addresses.
struct NodePortAddresses {
    // Only addresses inside these prefixes are used. If the list has no prefix of a family, that family is
    // unrestricted.
    std::vector<Prefix> within;
    // Only the addresses in `node_addresses` are used (the keyword `primary`).
    bool primary_only = false;
    // The Node object's addresses. An address on a twin that is also a VIP serves NodePorts only if it is
    // listed here or was given with the port in penstockd's options. Otherwise it is only a VIP.
    std::vector<IpAddr> node_addresses;
    bool operator==(const NodePortAddresses&) const = default;
};

struct Frontend {
    lb::FrontendClass cls = lb::FrontendClass::ExternalIp;
    IpAddr address;                  // unused for NodePort
    IpFamily family = IpFamily::V4;  // the family served: that of `address`, or of the Service for NodePort
    L4Port port = 0;
    uint8_t set = 0;        // index into Service::sets, of a set of the same family
    bool filtered = false;  // Service::source_ranges apply
    // Replaces `set` for clients inside Environment::pod_cidrs (ETP-006, NAT-004). Empty: `set` applies to
    // them too.
    std::optional<uint8_t> inside_set;
    [[nodiscard]] SocketAddress socket() const noexcept { return {address, port}; }
    bool operator==(const Frontend&) const = default;
};

// Information about an object for the operator: a log line and, in a cluster, an Event about the object.
// `reason` is a CamelCase word of the requirement sheet.
struct Notice {
    enum class Level : uint8_t { Normal, Warning };
    Level level = Level::Warning;
    std::string reason;   // "FrontendConflict", "ExternalIPNotAllowed", "InvalidPort", ...
    std::string message;  // names the object and the rule
    auto operator<=>(const Notice&) const = default;
};

// healthCheckNodePort of a Service, answered on all NodePort addresses (HC-001).
struct HealthCheck {
    L4Port port = 0;
    uint32_t local_endpoints = 0;  // ready endpoints on the gateway's node, counted by address (HC-004)
    bool operator==(const HealthCheck&) const = default;
};

// How the gateway probes an endpoint (HC-007 to HC-010).
struct Probe {
    enum class Kind : uint8_t { Tcp, Http };
    Kind kind = Kind::Tcp;
    L4Port port = 0;         // 0: the endpoint's own port
    std::string path = "/";  // Http: any answer other than 200 is a failure
    uint32_t interval_s = 10;
    uint32_t timeout_s = 5;  // less than the interval
    uint32_t healthy = 2;    // consecutive successes until the endpoint is up
    uint32_t unhealthy = 6;  // consecutive failures until the endpoint is down
    // Behaviour while all endpoints are down or not probed yet: if false, all are used (HC-010); if true,
    // none (HC-007).
    bool fails_closed = false;
    bool operator==(const Probe&) const = default;
};

// Flow records of a Service, as its annotations request them.
struct AccessLog {
    std::optional<bool> enabled;  // unset: as the gateway is configured (ANN-11)
    uint32_t interval_min = 60;   // 5 or 60: rotation of the file
    InternedText sink;            // is_log_sink(), or "": default (ANN-12)
    InternedText prefix;          // is_log_prefix(), or ""
    InternedText tags;            // is_log_tags(), or "" (ANN-21)
    bool operator==(const AccessLog&) const = default;
};

// One service port with all that a gateway needs. This is the unit of atomic change; the ports of one
// Kubernetes Service are sent together.
struct Service {
    ServiceKey key;
    L4Port service_port = 0;  // spec.ports[].port, for display only
    lb::SchedulerKind scheduler = lb::SchedulerKind::RoundRobin;
    // UID of the Kubernetes Service. Another UID means a new Service under an old name (GEN-010). "" if
    // unknown.
    InternedText uid;
    // At least one. The backend sets for the different frontend classes and client origins; equal sets are
    // stored once. The sets of the external policy come first, each with endpoints of its own family: IPv4,
    // if the Service has that family or has IPv4 endpoints for IPv6 frontends (ANN-32), then IPv6 by the same
    // rule. They are present even if no frontend refers to them, because endpoints that are known to the
    // Service keep their flows.
    std::vector<BackendSet> sets;
    std::vector<Frontend> frontends;  // sorted; may be empty (all refused or lost in conflicts)
    // The clients that may open flows to filtered frontends, sorted. If empty, none may.
    std::vector<Prefix> source_ranges;
    // Inverts source_ranges: all other clients may open flows. If empty, all may (ANN-04).
    bool source_ranges_deny = false;
    uint32_t affinity_timeout_s = 0;  // session affinity by client address (AFF-003); 0: off
    // Scope of session affinity (AFF-002), the same for all ports of a Service. Without affinity: Port.
    lb::AffinityScope affinity_scope = lb::AffinityScope::Port;
    uint32_t idle_timeout_s = 0;  // of established and two-way flows (ANN-03); 0: the default of NAT-008
    // Drain time of established flows whose endpoint or frontend is gone (DRAIN-004). Unset: they continue
    // until they close or idle out. Otherwise they are reset after this time in seconds, 0: at once.
    std::optional<uint32_t> drain_timeout_s;
    std::optional<HealthCheck> health_check;  // only on the Service's first port, by key
    std::optional<Probe> probe;
    AccessLog access_log;
    std::vector<Notice> notices;  // sorted; about this port or the whole Service
    bool operator==(const Service&) const = default;
};

// Cluster facts and operator policy that a gateway needs besides the Services.
struct Environment {
    NodePortAddresses node_ports;
    std::vector<Prefix> pod_cidrs;  // sorted, unique; clients inside are the cluster's own; empty: unknown
    // Reject packets to undeclared ports of a VIP; if false, they are dropped silently (LB-021).
    bool rejects_closed_vip_ports = false;
    // Node mode: the Node is neither being deleted nor tainted for deletion (HC-006).
    bool node_eligible = true;
    // The reasons why no VIP may be present on the link, for display, separated by "; " (PRESENCE-005). "":
    // VIPs may be present.
    std::string vips_withheld;
    bool operator==(const Environment&) const = default;
};

// The complete state. Services are sorted by key.
struct Desired {
    std::map<ServiceKey, Service> services;
    Environment environment;
    bool operator==(const Desired&) const = default;
};

enum class GatewayMode : uint8_t { Node, External };
[[nodiscard]] const char* to_string(GatewayMode mode) noexcept;

// One address of a TAP twin.
struct PortAddress {
    std::string port_name;  // the twin's interface name
    IpAddr address;
    uint8_t prefix_length = 0;
    bool configured = false;  // given with the port in penstockd's options, not added to the twin later
    auto operator<=>(const PortAddress&) const = default;
};

// Limit of GatewayIdentity::routed_prefixes. It exceeds the Pod CIDRs of the largest clusters, one for each
// of 5,000 Nodes.
inline constexpr size_t kRoutedPrefixesMax = 8'192;

// The identity of a gateway, an input of the semantics. penstockd sends it first on the state stream, and
// again when it changes.
struct GatewayIdentity {
    std::string gateway_name;
    GatewayMode mode = GatewayMode::External;
    std::string node_name;  // node mode: the name of this gateway's Node object; "" in external mode
    std::map<std::string, std::string> labels;
    std::vector<PortAddress> addresses;  // sorted
    // External mode: prefixes with a route other than the default routes. Sorted, none inside another, at
    // most kRoutedPrefixesMax.
    std::vector<Prefix> routed_prefixes;
    bool operator==(const GatewayIdentity&) const = default;
};

}  // namespace penstock::model
