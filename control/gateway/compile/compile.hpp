// From what the control plane desires to the table that workers read. A service port is accepted or refused alone (GEN-001). The result is
// a function of the desired state, of what was in force before, and of nothing else; the cost follows the change: a run looks at the
// service ports that changed, and at those whose claims they took or gave up.
//
//   Desired services ---+
//   NodePort rule ------+--> Compiler --> ServiceTable (frontends of all, NodePorts filled in) + what is in force of each + refusals
//   own addresses ------+     keeps claims and ids between runs
//
// The order in which claims are granted: service ports that were in force before the run, by key; then the new ones, by key (GEN-009). So a
// service port can only lose to one of better rank, and a run settles in order of rank, each one once:
//
//   changed --> due, by rank --> consider: conflicts with a better one's claim? room for its ids? --> accepted or refused
//                   ^                                                                                      |
//                   +------- those of worse rank that want what it took or gave up <------------------------+
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "control/gateway/compile/affinity_epochs.hpp"
#include "control/gateway/compile/endpoint_health.hpp"
#include "control/gateway/compile/id_map.hpp"
#include "control/gateway/compile/shared_map.hpp"
#include "control/model/desired.hpp"
#include "control/model/refusal.hpp"
#include "dataplane/lb/service_table.hpp"
#include "dataplane/lb/service_table_builder.hpp"

namespace penstock::gateway {

// Service ports are shared, not copied: an unchanged one is the same pointer from the stream to the table.
using DesiredServices = SharedMap<model::ServiceKey, std::shared_ptr<const model::Service>>;

// What probes said last, by service port; those without probes, or without a verdict yet, are not there.
using ProbeResults = SharedMap<model::ServiceKey, SharedHealth>;
inline const ProbeResults kNoProbeResults;

// One service port as it is programmed.
struct Programmed {
    std::shared_ptr<const model::Service> desired;  // the version in force
    std::shared_ptr<const lb::Service> service;
    std::shared_ptr<const lb::SourceFilter> filter;  // of its filtered frontends; null where it has none
    SharedHealth health;                             // that `service` was built with
    bool fails_open = false;                         // a set uses endpoints that are all down (HC-010)
};

// One version of the result; shares with the one before whatever did not change.
struct Compiled {
    std::shared_ptr<const lb::ServiceTable> table = std::make_shared<lb::ServiceTable>();
    SharedMap<model::ServiceKey, Programmed> services;
    SharedMap<model::ServiceKey, model::Refusal> refusals;  // desired, but not programmed as desired
    std::vector<IpAddr> node_port_addresses;                // that serve NodePorts; sorted
};

// What one run looked at; a superset of what it changed.
struct CompileChanges {
    // A tuple of the table, and whose it was and is.
    struct Row {
        IpAddr address;
        L4Port port = 0;
        std::optional<model::ServiceKey> before, after;
    };
    std::vector<model::ServiceKey> services;  // sorted
    std::vector<Row> rows;
};

struct CompileInput {
    const DesiredServices& desired;
    const model::NodePortAddresses& node_ports;
    const std::vector<model::PortAddress>& addresses;  // on all twins
    // Touched ones whose session affinity was off, or which were another Service, at some time since the run before (AFF-007).
    std::span<const model::ServiceKey> forgotten = {};
    const ProbeResults& health = kNoProbeResults;
};

// What a frontend claims for itself. NodePorts are claimed as a whole: (family, number, protocol) on whatever addresses serve them.
struct Claim {
    bool node_port = false;
    IpFamily family = IpFamily::V4;
    IpAddr address;
    L4Port port = 0;
    Protocol protocol = Protocol::Tcp;
    bool operator==(const Claim&) const = default;

    Claim(const model::Frontend& frontend, Protocol of);
    static Claim exact(const IpAddr& address, L4Port port, Protocol protocol);
    static Claim of_node_port(IpFamily family, L4Port port, Protocol protocol);
    [[nodiscard]] std::string to_string() const;

 private:
    Claim() = default;
};
struct ClaimHash {
    size_t operator()(const Claim& claim) const noexcept;
};

class Compiler {
 public:
    explicit Compiler(IdMap ids = IdMap()) : ids_(std::move(ids)) {}
    Compiler(const Compiler&) = delete;
    Compiler& operator=(const Compiler&) = delete;

    // `touched`: every key whose entry of `desired` or `health` is another than in the run before; more do no harm. Where a service port is
    // refused, its version of the run before, if any, stays in force, less those frontends that others own now (SVC-018). Ids of what went
    // are released, and then what capacity refused is tried once more.
    void run(const CompileInput& input, std::span<const model::ServiceKey> touched);

    // Of the last run.
    [[nodiscard]] const std::shared_ptr<const Compiled>& compiled() const noexcept { return compiled_; }
    [[nodiscard]] const IdMap& ids() const noexcept { return ids_; }
    [[nodiscard]] const CompileChanges& changes() const noexcept { return changes_; }

 private:
    struct ServicePort {
        model::ServiceKey key;
        std::shared_ptr<const model::Service> desired;  // null: no longer
        SharedHealth health;
        std::shared_ptr<const model::Service>
            owned;  // the version whose claims it was granted; null: refused
        std::shared_ptr<const model::Service>
            held;             // refused: the version whose claims it keeps as far as nobody owns them
        Programmed in_force;  // service null: nothing
        Programmed former;    // in force before this round
        std::optional<model::Refusal> refusal;
    };
    struct ByRank {
        bool operator()(const ServicePort* a, const ServicePort* b) const noexcept;
    };
    struct ByKey {
        bool operator()(const ServicePort* a, const ServicePort* b) const noexcept { return a->key < b->key; }
    };
    // Who is interested in one claim. The owner is an accepted one of those that want it; where there is none, the first of those that hold
    // it has the row.
    struct Interest {
        std::vector<ServicePort*> wanting;  // it is in their desired version
        std::vector<ServicePort*> holding;  // it is in the former version that a refused one keeps
        ServicePort* owner = nullptr;
        bool counts_as_vip = false;  // has a row of class L or X
        bool is_declared = false;    // NodePorts: has an owner, and an address to be served on
    };
    using Interests = std::unordered_map<Claim, Interest, ClaimHash>;
    struct Row {
        const model::Frontend* frontend = nullptr;
        const ServicePort* of = nullptr;
    };

    void begin_round();
    void take_over(const CompileInput& input, const model::ServiceKey& key);
    void settle();
    void end_round();
    void consider(ServicePort& port);
    [[nodiscard]] std::optional<model::Refusal> obstacle_of(const ServicePort& port) const;
    [[nodiscard]] std::shared_ptr<const lb::Service> build_service(ServicePort& port);
    [[nodiscard]] lb::BackendSet build_set(ServiceId id, const ServicePort& port,
                                           const model::BackendSet& desired) const;
    void accept(ServicePort& port, std::shared_ptr<const lb::Service> service);
    void refuse(ServicePort& port, model::Refusal refusal);
    void want(ServicePort& port);
    void want_no_longer(ServicePort& port);
    void hold(ServicePort& port);
    void hold_no_longer(ServicePort& port);
    void let_go(ServicePort& port, bool only_unwanted, bool only_worse);
    void make_due(const Interest& interest, const ServicePort& of, bool only_worse);
    void note_change(const ServicePort& port);
    void release_ids(const Programmed& before, const Programmed& now);

    void place_rows(const CompileInput& input);
    void place_row(const IpAddr& address, L4Port l4_port, Protocol protocol);
    [[nodiscard]] Row row_of(const Claim& claim) const;
    void count_vip(const Claim& claim);
    void declare_node_port(const Claim& claim);
    void count_kept_backends();
    void forget_unused();
    void publish();

    Interests& interests_of(const Claim& claim) noexcept { return claim.node_port ? node_ports_ : exact_; }
    [[nodiscard]] const Interest* find(const Claim& claim) const;

    IdMap ids_;
    AffinityEpochs affinity_;
    std::shared_ptr<const Compiled> compiled_ = std::make_shared<Compiled>();
    CompileChanges changes_;
    lb::ServiceTableBuilder table_;

    std::unordered_map<model::ServiceKey, ServicePort, ServiceKeyHash>
        ports_;  // by key; never moves while it is there
    Interests exact_;
    Interests node_ports_;
    std::map<IpAddr, uint32_t> vips_;          // addresses of rows of class L and X, and how many rows
    std::vector<IpAddr> node_port_addresses_;  // that serve NodePorts now; sorted
    std::unordered_set<ServicePort*> short_of_ids_;
    bool was_released_ = false;  // ids have become free since what is short of them was considered

    // Of the run under way.
    std::set<ServicePort*, ByRank> due_;
    std::set<ServicePort*, ByKey> considered_;  // in this round, or gone
    std::map<model::ServiceKey, std::shared_ptr<const lb::Service>>
        changed_;  // and what the last run had of it
    std::unordered_set<Claim, ClaimHash> touched_;
    std::vector<model::ServiceKey>
        newly_in_force_;  // of the round before: their rank has become better since
};

}  // namespace penstock::gateway
