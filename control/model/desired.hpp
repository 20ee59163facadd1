// What one gateway shall do: the output of the semantics room and the payload of the state stream. No Kubernetes type passes this door;
// what is left are addresses, names for people, and decisions. Plain values, comparable, in a canonical order, so that equal object sets
// give equal states (GEN-006) and a difference is a comparison.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
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
static_assert(sizeof(Endpoint) == 40, "a cluster has hundreds of thousands, and both ends of the stream keep them all");

// The endpoints of one family that one traffic policy lets a new flow choose from. Frontend and endpoint are always of one family
// (DUAL-002), so a dual-stack Service has a set for each.
struct BackendSet {
    std::vector<Endpoint> endpoints;  // sorted, unique by (address, port)
    lb::SourceMode source = lb::SourceMode::Translate;
    lb::EmptyAction when_empty = lb::EmptyAction::Reject;
    IpFamily family = IpFamily::V4;  // of every endpoint, and of every frontend that points here
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
    uint8_t set = 0;        // index into Service::sets; the set of the same family
    bool filtered = false;  // Service::source_ranges apply
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

// One service port with everything that a gateway needs; the unit of atomic change (a Kubernetes Service's ports travel together).
struct Service {
    ServiceKey key;
    L4Port service_port = 0;  // spec.ports[].port, for people
    lb::SchedulerKind scheduler = lb::SchedulerKind::RoundRobin;
    // One for each (policy, family), never empty. The external policy's come first: IPv4's where the Service has that family, then IPv6's.
    std::vector<BackendSet> sets;
    std::vector<Frontend> frontends;    // sorted; may be empty (refused, lost a conflict)
    std::vector<Prefix> source_ranges;  // sorted; who may open flows to filtered frontends; empty: nobody
    std::vector<Notice> notices;        // sorted; about this port or its whole Service
    bool operator==(const Service&) const = default;
};

// The whole. Services are sorted by key.
struct Desired {
    std::map<ServiceKey, Service> services;
    NodePortAddresses node_port_addresses;
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

// Who a gateway is: penstockd says it first on the state stream and again on change; an input of the semantics.
struct GatewayIdentity {
    std::string gateway_name;
    GatewayMode mode = GatewayMode::External;
    std::string node_name;  // node mode: the Node object this gateway is; "" in external mode
    std::map<std::string, std::string> labels;
    std::vector<PortAddress> addresses;  // sorted
    bool operator==(const GatewayIdentity&) const = default;
};

}  // namespace penstock::model
