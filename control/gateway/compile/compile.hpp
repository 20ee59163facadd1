// SPDX-License-Identifier: Apache-2.0
// Compiles the desired state of the control plane to the table that workers read. Each service port is
// accepted or refused on its own (GEN-001). The result is a function of the desired state and of the state in
// force before, and of nothing else. The cost is proportional to the change: a run examines the service ports
// that changed, and those that want claims taken or released by them.
//
//   Desired services ---+
//   NodePort rule ------+--> Compiler --> ServiceTable (all frontends, NodePorts filled in), the versions in
//   own addresses ------+     keeps claims and ids between runs         force, and the refusals
//   plan of shares -----+
//
// Claims are granted by the arbiter (claim_arbiter.hpp) in order of rank: first service ports that were in
// force before the run, by key; then the new ones, by key (GEN-009). A service port can therefore only lose
// to one of better rank. A run processes service ports in order of rank, each one once:
//
//   changed --> due, by rank --> consider: better claim? room for ids? --> accepted or refused
//                   ^                                                                           |
//                   +------ those of worse rank that want the claims taken or released <--------+
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "control/gateway/compile/affinity_epochs.hpp"
#include "control/gateway/compile/claim_arbiter.hpp"
#include "control/gateway/compile/endpoint_health.hpp"
#include "control/gateway/compile/id_map.hpp"
#include "control/gateway/compile/shared_map.hpp"
#include "control/gateway/shares/gateway_shares.hpp"
#include "control/model/desired.hpp"
#include "control/model/refusal.hpp"
#include "dataplane/lb/service_table.hpp"
#include "dataplane/lb/service_table_builder.hpp"

namespace penstock::gateway {

// Service ports are shared, not copied: an unchanged one is the same pointer from the stream to the table.
using DesiredServices = SharedMap<model::ServiceKey, std::shared_ptr<const model::Service>>;

// The last probe results, by service port. Absent: no probes, or no result yet.
using ProbeResults = SharedMap<model::ServiceKey, SharedHealth>;
inline const ProbeResults kNoProbeResults;

// One service port as it is programmed.
struct Programmed {
    std::shared_ptr<const model::Service> desired;  // the version in force
    std::shared_ptr<const lb::Service> service;
    std::shared_ptr<const lb::SourceFilter> filter;  // of its filtered frontends; null if it has none
    SharedHealth health;                             // the results that `service` was built with
    bool fails_open = false;                         // a set uses endpoints that are all down (HC-010)
};

// One version of the result. Shares all unchanged parts with the previous version.
struct Compiled {
    std::shared_ptr<const lb::ServiceTable> table = std::make_shared<lb::ServiceTable>();
    SharedMap<model::ServiceKey, Programmed> services;
    SharedMap<model::ServiceKey, model::Refusal> refusals;  // desired, but not programmed as desired
    std::vector<IpAddr> node_port_addresses;                // addresses that serve NodePorts; sorted
};

// A tuple of the table, and the service port that owned it before and after a run.
struct ChangedTuple {
    SocketAddress at;
    std::optional<model::ServiceKey> before, after;
};

// The service ports and tuples that one run examined; a superset of those that it changed.
struct CompileChanges {
    std::vector<model::ServiceKey> services;  // sorted
    std::vector<ChangedTuple> tuples;
};

struct CompileInput {
    const DesiredServices& desired;
    const model::NodePortAddresses& node_ports;
    const std::vector<model::PortAddress>& addresses;  // on all twins
    // Touched keys with session affinity off, or that were another Service, at some time since the
    // previous run (AFF-007).
    std::span<const model::ServiceKey> forgotten = {};
    const ProbeResults& health = kNoProbeResults;
    // Null: none. Otherwise each Service lists the endpoints that have flows, and each of them has an id.
    std::shared_ptr<const GatewayShares> shares = nullptr;
};

class Compiler {
 public:
    explicit Compiler(IdMap ids = IdMap()) : ids_(std::move(ids)) {}
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    // `touched`: every key with an entry in `desired` or `health` that differs from the previous run;
    // additional keys are harmless. If a service port is refused, its version of the previous run, if any,
    // stays in force, except for frontends that others own now (SVC-018). Ids of removed service ports and
    // backends are released; then those refused for lack of capacity are tried once more.
    void run(const CompileInput& input, std::span<const model::ServiceKey> touched);

    // The number of a backend that is not in force, as after its removal: it is released, and another
    // backend gets it last. Empty: all numbers are in use.
    std::optional<BackendId> number_of_former(const BackendKey& backend);

    // Results of the last run.
    [[nodiscard]] const std::shared_ptr<const Compiled>& compiled() const noexcept { return compiled_; }
    [[nodiscard]] const IdMap& ids() const noexcept { return ids_; }
    [[nodiscard]] const CompileChanges& changes() const noexcept { return changes_; }

 private:
    // One service port: what is desired, what is in force and why they differ.
    struct PortRecord : Claimant {
        using Claimant::Claimant;
        SharedHealth health;
        Programmed in_force;  // service null: nothing in force
        Programmed former;    // in force before this round
        std::optional<model::Refusal> refusal;
    };
    struct ByKey {
        bool operator()(const PortRecord* a, const PortRecord* b) const noexcept { return a->key < b->key; }
    };
    // The service port that gets the row of a claim, and its frontend; null: none.
    struct Winner {
        const model::Frontend* frontend = nullptr;
        const PortRecord* of = nullptr;
    };

    void begin_round();
    void take_over(const CompileInput& input, const model::ServiceKey& key);
    void consider_due();
    void end_round();
    void consider(PortRecord& port);
    [[nodiscard]] std::optional<model::Refusal> obstacle_of(const PortRecord& port) const;
    [[nodiscard]] std::vector<SocketAddress> listed_endpoints(const model::Service& desired) const;
    [[nodiscard]] std::shared_ptr<const lb::Service> build_service(PortRecord& port);
    void accept(PortRecord& port, std::shared_ptr<const lb::Service> service);
    void refuse(PortRecord& port, model::Refusal refusal);
    void release_ids(const Programmed& before, const Programmed& now);

    void place_rows(const CompileInput& input);
    void place_row(const IpAddr& address, L4Port l4_port, Protocol protocol);
    [[nodiscard]] Winner winner_of(const FrontendKey& claim) const;
    void count_vip(const FrontendKey& claim);
    void declare_node_port(const FrontendKey& claim);
    void count_kept_backends();
    void publish();

    IdMap ids_;
    AffinityEpochs affinity_;
    std::shared_ptr<const Compiled> compiled_ = std::make_shared<Compiled>();
    CompileChanges changes_;
    lb::ServiceTableBuilder table_;

    // By key. Addresses of entries are stable.
    std::unordered_map<model::ServiceKey, PortRecord, ServiceKeyHash> ports_;
    ClaimArbiter arbiter_;
    FrontendKeySet vip_claims_;        // exact claims with a row of class L or X
    std::map<IpAddr, uint32_t> vips_;  // addresses of rows of class L and X, with the number of rows
    // NodePorts that have an owner and an address that serves them.
    FrontendKeySet declared_node_ports_;
    std::vector<IpAddr> node_port_addresses_;  // addresses that serve NodePorts now; sorted
    std::shared_ptr<const GatewayShares> shares_;
    std::unordered_set<PortRecord*> short_of_ids_;
    bool lists_flow_endpoints_ = false;  // in this run
    bool was_released_ = false;          // ids were released since service ports short of ids were considered

    // State of the current run.
    std::set<PortRecord*, ByKey> considered_;  // considered in this round, or removed
    std::set<model::ServiceKey> changed_;
};

}  // namespace penstock::gateway
