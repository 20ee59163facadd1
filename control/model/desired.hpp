// What one gateway shall do: the output of the semantics room and the payload of the state stream. No Kubernetes type passes this door;
// what is left are addresses, names for people, and decisions. Plain values, comparable, in a canonical order, so that equal object sets
// give equal states (GEN-006) and a difference is a comparison.
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
#include "dataplane/lb/service.hpp"

namespace penstock::model {

// Identifies a service port: endpoints, scheduler state, counters and flows belong to it, never to a bare number.
struct ServiceKey {
    std::string namespace_name;
    std::string name;
    std::string port_name;
    Protocol protocol = Protocol::Tcp;
    auto operator<=>(const ServiceKey&) const = default;
    // "default/web:http/TCP"; "default/web/TCP" where the port has no name.
    [[nodiscard]] std::string to_string() const;
};

struct Endpoint {
    IpAddr address;
    L4Port port = 0;
    uint16_t weight = 1;
    InternedText node_name;  // "" where unknown; for people
    InternedText zone;       // likewise
    bool operator==(const Endpoint&) const = default;
};
static_assert(sizeof(Endpoint) == 40,
              "a cluster has hundreds of thousands, and both ends of the stream keep them all");

// The step of EP-020 that took an endpoint out, in the order of the steps; those that the gateway decides by itself (health, weight) are
// not here.
enum class Exclusion : uint8_t {
    ForbiddenAddress,  // (2) never an endpoint (EP-006): flows that it has end like those of one that is gone
    NodeSelector,      // (3) its node does not match the Service's selector (ANN-14)
    NotReady,          // (4) not ready, and not one that serves while it terminates
    Terminating,       // (4) serves while it terminates, and there are ready ones (EP-012, EP-013)
    NotLocal,          // (4) policy Local, and it is on another node
    TopologyKeys,      // (5) TOPO-002
    TopologyHints,     // (5) TOPO-008
};
inline constexpr size_t kExclusions = 7;

// An endpoint of the service port that a set does not offer to new flows. All but forbidden ones keep the flows that they have.
struct ExcludedEndpoint {
    IpAddr address;
    L4Port port = 0;
    Exclusion why = Exclusion::NotReady;
    bool serving = true;  // where not, it keeps its TCP and SCTP flows only (UDP-001, DRAIN-003)
    bool operator==(const ExcludedEndpoint&) const = default;
};

// The endpoints that one traffic policy lets new flows of one family's frontends choose from, so a dual-stack Service has a set for each.
// Frontend and endpoint are of one family (DUAL-002), unless the Service asks for translation and has no endpoint of the frontend's
// (ANN-32).
struct BackendSet {
    std::vector<Endpoint> endpoints;         // sorted, unique by (address, port)
    std::vector<ExcludedEndpoint> excluded;  // likewise; none of `endpoints`
    lb::SourceMode source = lb::SourceMode::Translate;
    lb::EmptyAction when_empty = lb::EmptyAction::Reject;
    IpFamily family = IpFamily::V4;  // of every frontend that points here
    // Endpoints, excluded ones included, are of the other family (ANN-32); `source` is Translate then: a client's address is none of
    // theirs.
    bool translates_family = false;
    [[nodiscard]] IpFamily endpoint_family() const noexcept {
        return translates_family ? other_family(family) : family;
    }
    bool operator==(const BackendSet&) const = default;
};

// Which of the gateway's own addresses serve NodePorts (NODEPORT-002). penstockd fills the set with its ports' addresses, now and when
// they change; it never takes loopback or link-local ones.
struct NodePortAddresses {
    // Empty: no restriction for the family. Otherwise only addresses inside; a list for one family leaves the other unrestricted.
    std::vector<Prefix> within;
    // Only addresses of `node_addresses` count (the keyword `primary`).
    bool primary_only = false;
    // The Node object's addresses. An address on a twin that is also a VIP serves NodePorts only when it is listed here or was given
    // with the port in penstockd's own options; otherwise it is only a VIP.
    std::vector<IpAddr> node_addresses;
    bool operator==(const NodePortAddresses&) const = default;
};

struct Frontend {
    lb::FrontendClass cls = lb::FrontendClass::ExternalIp;
    IpAddr address;                  // not used for NodePort
    IpFamily family = IpFamily::V4;  // the family served: that of `address`, or of the Service for NodePort
    L4Port port = 0;
    uint8_t set = 0;        // index into Service::sets; a set of the same family
    bool filtered = false;  // Service::source_ranges apply
    // Instead of `set`, for clients inside Environment::pod_cidrs (ETP-006, NAT-004); empty: the same.
    std::optional<uint8_t> inside_set;
    bool operator==(const Frontend&) const = default;
};

// Something that an operator should know about an object: becomes a log line and, in a cluster, an Event about it. `reason` is a
// CamelCase word of the requirement sheet.
struct Notice {
    enum class Level : uint8_t { Normal, Warning };
    Level level = Level::Warning;
    std::string reason;   // "FrontendConflict", "ExternalIPNotAllowed", "InvalidPort", ...
    std::string message;  // names the thing and the rule
    auto operator<=>(const Notice&) const = default;
};

// healthCheckNodePort of a Service, to be answered on all NodePort addresses (HC-001).
struct HealthCheck {
    L4Port port = 0;
    uint32_t local_endpoints = 0;  // ready and on the gateway's node, counted by address (HC-004)
    bool operator==(const HealthCheck&) const = default;
};

// How the gateway finds out whether an endpoint is well (HC-007 to HC-010).
struct Probe {
    enum class Kind : uint8_t { Tcp, Http };
    Kind kind = Kind::Tcp;
    L4Port port = 0;         // 0: the endpoint's own
    std::string path = "/";  // Http: answered by 200, or it is down
    uint32_t interval_s = 10;
    uint32_t timeout_s = 5;  // less than the interval
    uint32_t healthy = 2;    // successes in a row after which it is up
    uint32_t unhealthy = 6;  // failures in a row after which it is down
    // All down, or not probed yet: false: all are used (HC-010); true: none is (HC-007).
    bool fails_closed = false;
    bool operator==(const Probe&) const = default;
};

// One service port with everything that a gateway needs; the unit of atomic change (a Kubernetes Service's ports travel together).
struct Service {
    ServiceKey key;
    L4Port service_port = 0;  // spec.ports[].port, for people
    lb::SchedulerKind scheduler = lb::SchedulerKind::RoundRobin;
    InternedText
        uid;  // of the Kubernetes Service: with another one it is another Service under an old name (GEN-010); "" unknown
    // At least one. What frontends of different classes or clients of different origin may choose from; equal sets are there once. The
    // external policy's come first: IPv4's where the Service has that family, or endpoints of it for the other (ANN-32), then IPv6's
    // likewise, each with endpoints of its own family, whether or not a frontend points there: who is known to the Service keeps flows.
    std::vector<BackendSet> sets;
    std::vector<Frontend> frontends;    // sorted; may be empty (refused, lost a conflict)
    std::vector<Prefix> source_ranges;  // sorted; who may open flows to filtered frontends; empty: nobody
    bool source_ranges_deny = false;  // the other way round: all but those may, and empty: everybody (ANN-04)
    uint32_t affinity_timeout_s = 0;  // session affinity by client address (AFF-003); 0: none
    // What a client is pinned for: the same at all ports of a Service (AFF-002). Without affinity: Port.
    lb::AffinityScope affinity_scope = lb::AffinityScope::Port;
    uint32_t idle_timeout_s = 0;  // of established and two-way flows (ANN-03); 0: NAT-008's
    // What becomes of established flows whose endpoint or frontend is gone (DRAIN-004): unset: they go on until they close or idle;
    // else they are reset after so many seconds, 0 at once.
    std::optional<uint32_t> drain_timeout_s;
    std::optional<HealthCheck> health_check;  // on the first port of the Service, by key
    std::optional<Probe> probe;
    std::vector<Notice> notices;  // sorted; about this port or its whole Service
    bool operator==(const Service&) const = default;
};

// What a gateway must know of the cluster and of its operator's wishes besides Services.
struct Environment {
    NodePortAddresses node_ports;
    std::vector<Prefix> pod_cidrs;  // sorted, unique; clients inside are the cluster's own; empty: unknown
    bool rejects_closed_vip_ports =
        false;                  // what a packet to a VIP's undeclared port gets, silence otherwise (LB-021)
    bool node_eligible = true;  // node mode: the Node is neither being deleted nor tainted for it (HC-006)
    // Why no VIP may be present on the link, for people: the reasons, separated by "; " (PRESENCE-005). "": VIPs may be present.
    std::string vips_withheld;
    bool operator==(const Environment&) const = default;
};

// The whole. Services are sorted by key.
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
    bool configured = false;  // given with the port in penstockd's options, not added to the twin afterwards
    auto operator<=>(const PortAddress&) const = default;
};

// Of GatewayIdentity::routed_prefixes: more than the Pod CIDRs of the largest clusters, one for each of 5,000 Nodes.
inline constexpr size_t kRoutedPrefixesMax = 8'192;

// Who a gateway is: penstockd says it first on the state stream and again on change; an input of the semantics.
struct GatewayIdentity {
    std::string gateway_name;
    GatewayMode mode = GatewayMode::External;
    std::string node_name;  // node mode: the Node object this gateway is; "" in external mode
    std::map<std::string, std::string> labels;
    std::vector<PortAddress> addresses;  // sorted
    // External mode: where it can send without its default routes; sorted, none inside another, at most kRoutedPrefixesMax.
    std::vector<Prefix> routed_prefixes;
    bool operator==(const GatewayIdentity&) const = default;
};

}  // namespace penstock::model
