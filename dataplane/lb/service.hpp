// One service port inside a snapshot: which backends new flows may get, how one is chosen, and what happens when there is none.
// Immutable once published; shared between snapshots while it does not change, so that one changed endpoint rebuilds one Service.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/lb/backend.hpp"
#include "dataplane/lb/maglev.hpp"

namespace penstock::lb {

enum class SchedulerKind : uint8_t { RoundRobin, Random, Maglev };
// "rr", "random", "mh": the names of SCHED-001.
[[nodiscard]] const char* to_string(SchedulerKind kind) noexcept;

// How a packet's source address leaves the gateway.
enum class SourceMode : uint8_t {
    Translate,  // full NAT: a SNAT address and port of the gateway (externalTrafficPolicy Cluster, NAT-002)
    Keep,       // DNAT only: the client's own address and port (Local, NAT-003); hairpin flows are translated all the same (NAT-005)
};
[[nodiscard]] const char* to_string(SourceMode mode) noexcept;

// What a new flow meets where no backend is usable.
enum class EmptyAction : uint8_t {
    Reject,       // RST or ICMP port unreachable (REJ-001)
    Drop,         // silence: told so by annotation
    DropNoLocal,  // silence, because usable endpoints exist on other nodes (ETP-003)
};
[[nodiscard]] const char* to_string(EmptyAction action) noexcept;

// The backends that one traffic policy allows. External and internal policy of a service port differ, so a Service has one or two sets.
struct BackendSet {
    std::vector<Backend> usable;  // sorted by (address, port): the order is part of the state, and the same on every gateway
    MaglevRing ring;              // built where the scheduler is Maglev, else empty
    SourceMode source = SourceMode::Translate;
    EmptyAction when_empty = EmptyAction::Reject;
};

struct Service {
    ServiceId id;
    std::string namespace_name;  // Kubernetes namespace
    std::string name;            // Service name
    std::string port_name;       // "" for the only, unnamed port
    Protocol protocol = Protocol::Tcp;
    SchedulerKind scheduler = SchedulerKind::RoundRobin;
    std::vector<BackendSet> sets;

    // "default/web:http", or "default/web" where the port has no name.
    [[nodiscard]] std::string display_name() const;
};

// Which clients may open flows to a frontend (SRC-001..004). A list may be as long as a Kubernetes object can be, tens of thousands of
// CIDRs, and is asked for every SYN: so what lies inside another prefix is left out, and the rest, sorted, takes one binary search.
class SourceFilter {
 public:
    SourceFilter() = default;  // everyone
    // An empty list allows everyone only where `restricted` is false.
    SourceFilter(bool restricted, std::vector<Prefix> allowed);
    [[nodiscard]] bool allows(const IpAddr& client) const noexcept;

 private:
    bool restricted_ = false;
    std::vector<Prefix> v4_, v6_;  // sorted and disjoint
};

enum class FrontendClass : uint8_t { ClusterIp, LoadBalancerIp, ExternalIp, NodePort };
[[nodiscard]] const char* to_string(FrontendClass cls) noexcept;

// (address, port, protocol) -> Service. NodePorts arrive here one row for each address of their address set.
struct Frontend {
    IpAddr address;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    FrontendClass cls = FrontendClass::ExternalIp;
    uint8_t set = 0;  // index into Service::sets
    std::shared_ptr<const Service> service;
    std::shared_ptr<const SourceFilter> filter;  // null: everyone
};

}  // namespace penstock::lb
