// SPDX-License-Identifier: Apache-2.0
// One service port inside a snapshot: the backends of new flows, the scheduler that chooses among them, and
// the action if there are none. Immutable once published. Snapshots share it while it does not change, so
// that one changed endpoint rebuilds one Service.
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
#include "dataplane/lb/flow_endpoints.hpp"
#include "dataplane/lb/maglev.hpp"
#include "dataplane/lb/weighted_order.hpp"

namespace penstock::lb {

// Schedulers; scheduler.hpp describes each of them.
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

// How a packet's source address is translated.
enum class SourceMode : uint8_t {
    Translate,  // full NAT: a SNAT address and port of the gateway (externalTrafficPolicy Cluster, NAT-002)
    // DNAT only: the client's own address and port (Local, NAT-003). Hairpin flows are still translated
    // (NAT-005).
    Keep,
};
[[nodiscard]] const char* to_string(SourceMode mode) noexcept;

// The action on a new flow if no backend is usable.
enum class EmptyAction : uint8_t {
    Reject,       // RST or ICMP port unreachable (REJ-001)
    Drop,         // silent drop, configured by annotation
    DropNoLocal,  // silent drop, because usable endpoints exist on other nodes (ETP-003)
};
[[nodiscard]] const char* to_string(EmptyAction action) noexcept;

// The scope of a client's affinity (AFF-002).
enum class AffinityScope : uint8_t {
    Port,     // each service port separately
    Service,  // all ports of the Service together: one Pod, whichever port the client uses first
};
[[nodiscard]] const char* to_string(AffinityScope scope) noexcept;

// Whether the connections of a Service have flow records (ANN-11).
enum class FlowRecords : uint8_t {
    Default,  // as the gateway is configured (--flow-services)
    On,
    Off,
};

// The owner of the entries of one service port.
[[nodiscard]] constexpr AffinityOwner affinity_owner_of(ServiceId service_port) noexcept {
    return {service_port.value};
}
// The owner of the entries shared by all ports of a Service. No two Services have the same epoch.
[[nodiscard]] constexpr AffinityOwner affinity_owner_of_all_ports(uint32_t epoch) noexcept {
    return {uint32_t{1} << 31 | epoch};
}

// The backends that one traffic policy allows. If the external and internal policy of a service port differ,
// its Service has more than one set.
struct BackendSet {
    // Sorted by (address, port): the order is part of the state, and is the same on every gateway. No weight
    // is 0 (EP-018).
    std::vector<Backend> usable;
    MaglevRing ring;      // prepare() fills the member that the scheduler uses: for sh, dh, mh,
    WeightedOrder order;  // for wrr
    // Of the endpoints in affinity entries; built if the Service has session affinity, otherwise empty.
    EndpointPositions positions;
    // Built if clients are pinned for all ports of the Service, otherwise empty.
    BackendPositions by_id;
    SourceMode source = SourceMode::Translate;
    EmptyAction when_empty = EmptyAction::Reject;

    // Builds both indexes for a Service with affinity, once `usable` is complete. Scope Port: each backend's
    // `endpoint` is set to its id. Scope Service: `endpoint` must be set already.
    void index_for_affinity(AffinityScope scope);
    // The position to which an affinity entry of this backend leads, or kNone.
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
    // For connections of other gateways; empty if the gateway has no shares with others.
    FlowEndpoints flow_endpoints;
    // Session affinity by client address (lb/affinity.hpp); 0: none. A new epoch invalidates all entries; no
    // epoch is used twice.
    uint32_t affinity_timeout_s = 0;
    uint32_t affinity_epoch = 0;
    AffinityOwner affinity_owner;  // of the entries, with the epoch; unset without affinity
    FlowRecords flow_records = FlowRecords::Default;

    [[nodiscard]] AffinityScope affinity_scope() const noexcept {
        return has_affinity() && affinity_owner != affinity_owner_of(id) ? AffinityScope::Service
                                                                         : AffinityScope::Port;
    }
    [[nodiscard]] bool has_affinity() const noexcept { return affinity_timeout_s != 0; }
    // "default/web:http", or "default/web" if the port has no name.
    [[nodiscard]] std::string display_name() const;
};

// Which clients may open flows to a frontend (SRC-001..004). A list may be as long as a Kubernetes object
// permits, tens of thousands of CIDRs, and is searched for every SYN. So prefixes inside another one are
// removed, and the rest is sorted for one binary search.
class SourceFilter {
 public:
    SourceFilter() = default;  // allows every client
    // An empty list allows every client only if `restricted` is false. `deny` inverts the list: it then
    // contains the clients that are denied (ANN-04).
    SourceFilter(bool restricted, std::vector<Prefix> listed, bool deny = false);
    [[nodiscard]] bool allows(const IpAddr& client) const noexcept;
    // The prefixes of a list that denies: disjoint and sorted. Empty for a list that allows: its complement
    // would be many prefixes. Control threads.
    [[nodiscard]] std::span<const Prefix> denied(IpFamily family) const noexcept;
    // The prefixes of a list that allows; empty for a list that denies.
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

// (address, port, protocol) -> Service. A NodePort has one row for each address of its address set.
struct Frontend {
    IpAddr address;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    FrontendClass cls = FrontendClass::ExternalIp;
    uint8_t set = 0;  // index into Service::sets
    std::shared_ptr<const Service> service;
    std::shared_ptr<const SourceFilter> filter;  // null: allows every client
    // Replaces `set` for clients inside the cluster (ClusterClients); empty: `set` is used for them too.
    std::optional<uint8_t> inside_set = {};
    uint8_t snat_group = 0;  // nat::SnatAddress::group for its new flows
};

}  // namespace penstock::lb
