// Kubernetes Service semantics, kept up to date: what one gateway shall do, as the objects and the gateway change. What it holds after any
// sequence of changes is what evaluate() makes of the objects that are left (GEN-006); what a change costs follows the change.
//
//   Changes ─┬─ Node ─┬──── Pod CIDRs ───────────┐                        ┌─ who names an address as external IP
//            │        └──── addresses, health ──── where Nodes are the backends, every Service is decided again
//            ├─ Service ─┬─ ClusterIPs ──────────┴─ changed facts ────────┴─> those Services are planned again
//            │           └─> it is planned                                                   │
//            │                                                                               v
//            │                      changed owners of frontends: the other claimants <── claims: withdrawn, laid
//            │                                  │                                            │
//            │                                  v                                            v
//            └─ slice ──> its Service is decided again <── who has an endpoint there <── changed VIPs and ClusterIPs
//                                               │
//                                               v
//                             what it is now, against what is held ──> Step
//
// All plans are made and all claims laid before the first Service is decided, and facts depend on objects alone: so one pass in this order
// settles everything. A mark too many costs one evaluation, because a Step has only what really differs; a mark too few would be a fault,
// which the property tests look for (tests/property/engine_property_test.cpp) and the audit repairs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/address_users.hpp"
#include "control/semantics/node_backends.hpp"
#include "control/semantics/prefix_set.hpp"
#include "control/semantics/service_plan.hpp"

namespace penstock::semantics {

// What became different by one call.
struct Step {
    std::vector<std::shared_ptr<const model::Service>>
        upsert;  // new, or different in anything; sorted by key
    std::vector<std::shared_ptr<const model::Service>>
        former;                                     // of each in `upsert`: what it was; null where it is new
    std::vector<model::ServiceKey> remove;          // sorted
    std::optional<model::Environment> environment;  // where they differ
    std::optional<BackendChoice> backends;          // external mode: Pods or Nodes, where it is the other now
    std::vector<ObjectNotice> appeared;             // sorted; those inside `upsert` included
    std::vector<ObjectNotice> gone;                 // sorted
    [[nodiscard]] bool is_empty() const noexcept {
        return upsert.empty() && remove.empty() && !environment && !backends && appeared.empty() &&
               gone.empty();
    }
};

// For one gateway; one thread.
class Engine {
 public:
    using Services = std::map<model::ServiceKey, std::shared_ptr<const model::Service>>;

    explicit Engine(Policy policy);

    // Before the first call nothing is evaluated: apply() only remembers.
    Step set_gateway(const model::GatewayIdentity& gateway);
    Step apply(const kube::Changes& changes);
    // Who may have external IPs costs those Services alone that name some.
    Step set_policy(Policy policy);

    // A value that stays the same keeps its pointer.
    [[nodiscard]] const Services& desired() const noexcept { return desired_; }
    [[nodiscard]] const model::Environment& environment() const noexcept { return environment_; }
    [[nodiscard]] const kube::Objects& objects() const noexcept { return objects_; }
    [[nodiscard]] const Policy& policy() const noexcept { return policy_; }

    // Evaluates everything from scratch and compares it with what is held (APISYNC-021): the keys that differ, sorted. What was wrong is
    // right afterwards, in environment() and the engine's bookkeeping too. Costs what set_gateway() does.
    std::vector<model::ServiceKey> audit();

 private:
    enum class Due : uint8_t { Nothing, Decision, Plan };

    // One Service: what came in, what was made of it. Also for slices whose Service is not there.
    struct Record {
        const kube::ObjectName* name = nullptr;
        kube::ServicePtr object;
        ServiceSlices slices;
        ServicePlan plan;                                            // of nothing where `object` is null
        std::vector<std::shared_ptr<const model::Service>> decided;  // sorted by key; all in desired_
        std::vector<ObjectNotice> notices;                           // sorted, unique
        Due due = Due::Nothing;
    };

    void take_in(const kube::Changes& changes, Step& step);
    void take_in_node(const std::string& name, const kube::NodePtr& node, Step& step);
    void take_in_slice(const kube::ObjectName& name, const kube::EndpointSlicePtr& slice, Step& step);
    void take_in_service(const kube::ObjectName& name, const kube::ServicePtr& service);

    Record& record_of(const kube::ObjectName& service);
    void mark(Record& record, Due due);

    // Does what is due.
    void settle(Step& step);
    void choose_between_pods_and_nodes(Step& step);
    void mark_all(Due due);
    void make_plans();
    void make_decisions(Step& step);
    void decide(Record& record, Step& step);
    void read_environment(Step& step);

    Policy policy_;
    ExternalIpRules external_ip_rules_;  // those of policy_
    std::optional<model::GatewayIdentity> gateway_;
    kube::Objects objects_;

    std::map<kube::ObjectName, Record> records_;
    ClusterFacts facts_;
    FrontendOwners owners_;
    AddressUsers<Record> endpoint_users_;  // Services by the addresses in their slices
    AddressUsers<Record>
        external_ip_users_;  // Services by the external IPs that they name, in field or annotation

    std::vector<Record*> due_;
    std::vector<IpAddr> changed_cluster_ips_;
    PrefixSet node_cidrs_;  // those of facts_.pod_cidrs that Nodes carry
    bool pod_cidrs_changed_ = false;
    bool pod_cidrs_known_changed_ = false;  // they were, or are, none
    bool node_labels_changed_ = false;
    bool origin_moved_ = false;   // the gateway's own Node is in another zone: hints mean something else
    bool nodes_changed_ = false;  // facts_.nodes
    bool choice_due_ = false;
    bool environment_due_ = false;

    std::optional<bool>
        told_backends_;  // BackendChoice::through_nodes; empty: not said yet, or not worth a word
    Services desired_;
    model::Environment environment_;
    std::vector<ObjectNotice> node_port_notices_;  // sorted, unique
};

}  // namespace penstock::semantics
