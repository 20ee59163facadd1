// One service port inside a snapshot: which backends new flows may get, how one is chosen, and what happens when there is none.
// Immutable once published; shared between snapshots while it does not change, so that one changed endpoint rebuilds one Service.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/lb/backend.hpp"
#include "dataplane/lb/backend_positions.hpp"
#include "dataplane/lb/maglev.hpp"
#include "dataplane/lb/weighted_order.hpp"

namespace penstock::lb {

// What each does is told where it is done: scheduler.hpp.
enum class SchedulerKind : uint8_t {
    RoundRobin,
    Random,
    Maglev,
    WeightedRoundRobin,
    LeastConnection,
    WeightedLeastConnection,
    SourceHash,
    DestinationHash,
    ShortestExpectedDelay,
    NeverQueue,
    TwoChoices,
};
inline constexpr std::array kSchedulerKinds{SchedulerKind::RoundRobin,
                                            SchedulerKind::WeightedRoundRobin,
                                            SchedulerKind::LeastConnection,
                                            SchedulerKind::WeightedLeastConnection,
                                            SchedulerKind::SourceHash,
                                            SchedulerKind::DestinationHash,
                                            SchedulerKind::ShortestExpectedDelay,
                                            SchedulerKind::NeverQueue,
                                            SchedulerKind::Random,
                                            SchedulerKind::Maglev,
                                            SchedulerKind::TwoChoices};
// "rr", "wrr", "lc", "wlc", "sh", "dh", "sed", "nq", "random", "mh": the names of SCHED-001, and "p2c".
[[nodiscard]] const char* to_string(SchedulerKind kind) noexcept;

// How a packet's source address leaves the gateway.
enum class SourceMode : uint8_t {
    Translate,  // full NAT: a SNAT address and port of the gateway (externalTrafficPolicy Cluster, NAT-002)
    Keep,  // DNAT only: the client's own address and port (Local, NAT-003); hairpin flows are translated all the same (NAT-005)
};
[[nodiscard]] const char* to_string(SourceMode mode) noexcept;

// What a new flow meets where no backend is usable.
enum class EmptyAction : uint8_t {
    Reject,       // RST or ICMP port unreachable (REJ-001)
    Drop,         // silence: told so by annotation
    DropNoLocal,  // silence, because usable endpoints exist on other nodes (ETP-003)
};
[[nodiscard]] const char* to_string(EmptyAction action) noexcept;

// What a client is pinned for (AFF-002).
enum class AffinityScope : uint8_t {
    Port,     // each service port alone
    Service,  // all ports of the Service together: one Pod, on whichever port the client comes first
};
[[nodiscard]] const char* to_string(AffinityScope scope) noexcept;

// The entries of one service port.
[[nodiscard]] constexpr AffinityOwner affinity_owner_of(ServiceId service_port) noexcept {
    return {service_port.value};
}
// The entries of all ports of a Service. No two Services have the same epoch.
[[nodiscard]] constexpr AffinityOwner affinity_owner_of_all_ports(uint32_t epoch) noexcept {
    return {uint32_t{1} << 31 | epoch};
}

// The backends that one traffic policy allows. External and internal policy of a service port differ, so a Service has one or two sets.
struct BackendSet {
    // Sorted by (address, port): the order is part of the state, and the same on every gateway. No weight is 0 (EP-018).
    std::vector<Backend> usable;
    MaglevRing ring;      // prepare() fills what the scheduler looks at: sh, dh, mh,
    WeightedOrder order;  // wrr
    EndpointPositions
        positions;  // of what affinity entries name; built where the Service has session affinity, else empty
    BackendPositions by_id;  // built where a client is pinned for all ports of the Service, else empty
    SourceMode source = SourceMode::Translate;
    EmptyAction when_empty = EmptyAction::Reject;

    // Fills both for a Service with affinity, once `usable` is complete. Scope Port: each backend is called by its id; else its `endpoint`
    // is set already.
    void index_for_affinity(AffinityScope scope);
    // The position that an affinity entry of this backend leads to, or kNone.
    [[nodiscard]] uint32_t pinned_position(BackendId id) const noexcept;
};

// Makes `set` ready for `scheduler`. Control thread, once `usable` is complete.
void prepare(BackendSet& set, SchedulerKind scheduler);

struct Service {
    ServiceId id;
    std::string namespace_name;  // Kubernetes namespace
    std::string name;            // Service name
    std::string port_name;       // "" for the only, unnamed port
    Protocol protocol = Protocol::Tcp;
    SchedulerKind scheduler = SchedulerKind::RoundRobin;
    std::vector<BackendSet> sets;
    // Session affinity by client address (lb/affinity.hpp); 0: none. A new epoch forgets every entry; none is ever given out twice.
    uint32_t affinity_timeout_s = 0;
    uint32_t affinity_epoch = 0;
    AffinityOwner affinity_owner;  // of the entries, besides the epoch; unset without affinity

    [[nodiscard]] AffinityScope affinity_scope() const noexcept {
        return has_affinity() && affinity_owner != affinity_owner_of(id) ? AffinityScope::Service
                                                                         : AffinityScope::Port;
    }
    [[nodiscard]] bool has_affinity() const noexcept { return affinity_timeout_s != 0; }
    // "default/web:http", or "default/web" where the port has no name.
    [[nodiscard]] std::string display_name() const;
};

// Which clients may open flows to a frontend (SRC-001..004). A list may be as long as a Kubernetes object can be, tens of thousands of
// CIDRs, and is asked for every SYN: so what lies inside another prefix is left out, and the rest, sorted, takes one binary search.
class SourceFilter {
 public:
    SourceFilter() = default;  // everyone
    // An empty list allows everyone only where `restricted` is false. `deny` turns the list round: those who may not (ANN-04).
    SourceFilter(bool restricted, std::vector<Prefix> listed, bool deny = false);
    [[nodiscard]] bool allows(const IpAddr& client) const noexcept;
    // Those who may not, where that is what the list says; disjoint, sorted. Of a list of those who may it is empty: all others are no few
    // prefixes. Control threads.
    [[nodiscard]] std::span<const Prefix> denied(IpFamily family) const noexcept;
    // Those who may, where that is what the list says.
    [[nodiscard]] std::span<const Prefix> allowed(IpFamily family) const noexcept;
    [[nodiscard]] bool allows_everyone() const noexcept { return !restricted_; }
    [[nodiscard]] bool denies() const noexcept { return restricted_ && deny_; }

 private:
    bool restricted_ = false;
    bool deny_ = false;
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
    std::optional<uint8_t> inside_set =
        {};  // instead of `set` for clients inside the cluster (ClusterClients); empty: the same
};

}  // namespace penstock::lb
