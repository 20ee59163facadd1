// SPDX-License-Identifier: Apache-2.0
// Incremental Kubernetes Service semantics: the desired state of one gateway, updated as the objects and the
// gateway change. After any sequence of changes the state equals that of a new engine for the current objects
// (GEN-006). The cost of an update is proportional to the change.
//
//   Changes ─┬─ Node ─┬─ addresses, health ──> if Nodes are the backends: decide every Service again
//            │        └─ Pod CIDRs ─────────┐
//            ├─ Service ─┬─ ClusterIPs ─────┴─> changed facts ──> plan again: users of these external IPs
//            │           └─> plan it                                          │
//            │                                                                v
//            │        other contenders <── changed owners of frontends <── claims: withdrawn, added
//            │               │                                                │
//            │               v                                                v
//            └─ slice ──> decide its Service again <── endpoint users <── changed VIPs and ClusterIPs
//                            │
//                            v
//                 decision compared with the current one ──> Step
//
// All plans are made and all claims added before the first Service is decided, and facts depend on objects
// only. One pass in this order is therefore sufficient. An unnecessary mark costs one evaluation, because a
// Step contains only real differences. A missing mark is an error: the property tests search for it
// (tests/property/engine_property_test.cpp) and the audit repairs it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/kube/changes.hpp"
#include "control/model/desired.hpp"
#include "control/semantics/address_users.hpp"
#include "control/semantics/endpoints/node_backends.hpp"
#include "control/semantics/prefix_set.hpp"
#include "control/semantics/service_plan.hpp"

namespace penstock::semantics {

// The differences that one call produced.
struct Step {
    std::vector<std::shared_ptr<const model::Service>> upsert;  // new or changed, sorted by key
    // The previous value of each Service in `upsert`; null if new.
    std::vector<std::shared_ptr<const model::Service>> former;
    std::vector<model::ServiceKey> remove;          // sorted
    std::optional<model::Environment> environment;  // if changed
    std::optional<BackendChoice> backends;          // external mode: Pods or Nodes, if that changed
    std::vector<ObjectNotice> appeared;             // sorted; includes the notices inside `upsert`
    std::vector<ObjectNotice> gone;                 // sorted
    [[nodiscard]] bool is_empty() const noexcept {
        return upsert.empty() && remove.empty() && !environment && !backends && appeared.empty() &&
               gone.empty();
    }
};

// Semantics of one gateway. Single-threaded.
class Engine {
 public:
    using Services = std::map<model::ServiceKey, std::shared_ptr<const model::Service>>;

    explicit Engine(Policy policy);

    // Before the first call of set_gateway() nothing is evaluated; apply() only stores the objects.
    Step set_gateway(const model::GatewayIdentity& gateway);
    Step apply(const kube::Changes& changes);
    // If only the rights to external IPs change, only the Services that name external IPs are evaluated
    // again.
    Step set_policy(Policy policy);

    // An unchanged value keeps its pointer.
    [[nodiscard]] const Services& desired() const noexcept { return desired_; }
    [[nodiscard]] const model::Environment& environment() const noexcept { return environment_; }
    [[nodiscard]] const kube::Objects& objects() const noexcept { return objects_; }
    [[nodiscard]] const Policy& policy() const noexcept { return policy_; }

    // Evaluates everything from scratch and compares it with the current state (APISYNC-021). Returns the
    // keys that differ, sorted. Afterwards all errors are repaired, including those in environment() and in
    // the engine's internal state. Costs the same as set_gateway().
    std::vector<model::ServiceKey> audit();

 private:
    enum class Due : uint8_t { Nothing, Decision, Plan };

    // The inputs and results of one Service. A record also exists for slices without a Service.
    struct Record {
        const kube::ObjectName* name = nullptr;
        kube::ServicePtr object;
        ServiceSlices slices;
        ServicePlan plan;                                            // empty if `object` is null
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

    // Makes all plans and decisions that are due.
    void process_due(Step& step);
    void choose_between_pods_and_nodes(Step& step);
    void mark_all(Due due);
    void make_plans();
    void make_decisions(Step& step);
    void decide(Record& record, Step& step);
    void read_environment(Step& step);

    Policy policy_;
    ExternalIpRules external_ip_rules_;  // derived from policy_
    std::optional<model::GatewayIdentity> gateway_;
    kube::Objects objects_;

    std::map<kube::ObjectName, Record> records_;
    ClusterFacts facts_;
    FrontendOwners owners_;
    AddressUsers<Record> endpoint_users_;  // Services by the addresses in their slices
    // Services by the external IPs that they name, in field or annotation.
    AddressUsers<Record> external_ip_users_;

    std::vector<Record*> due_;
    std::vector<IpAddr> changed_cluster_ips_;
    PrefixSet node_cidrs_;  // the part of facts_.pod_cidrs that comes from Nodes
    bool pod_cidrs_changed_ = false;
    bool pod_cidrs_known_changed_ = false;  // facts_.pod_cidrs became empty or non-empty
    bool node_labels_changed_ = false;
    bool origin_moved_ = false;   // the zone of the gateway's own Node changed: hints have another effect
    bool nodes_changed_ = false;  // facts_.nodes
    bool choice_due_ = false;
    bool environment_due_ = false;

    // The last reported BackendChoice::through_nodes. Empty: none reported yet, or none to report in node
    // mode.
    std::optional<bool> reported_backends_;
    Services desired_;
    model::Environment environment_;
    std::vector<ObjectNotice> node_port_notices_;  // sorted, unique
};

}  // namespace penstock::semantics
