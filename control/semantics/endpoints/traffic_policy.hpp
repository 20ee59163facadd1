// SPDX-License-Identifier: Apache-2.0
// Backend sets for each traffic policy: which candidates may be chosen, whether the client's address is kept,
// and what happens to a new flow if no candidate may be chosen (ETP-001..009, TOPO-004, REJ-001). L, X, N and
// C are the frontend classes LoadBalancer IP, external IP, NodePort and ClusterIP.
//
//                    clients outside                     clients inside (Pods and the gateway's own host)
//   Cluster, L X N   near before distant, translated     the same
//   Local, L X N     this node's, kept                   node mode: near before distant, kept (ETP-006);
//                                                        translated if no Pod CIDR is known, because then
//                                                        only the host is inside
//   either, C        per internalTrafficPolicy,          the same, kept (NAT-004)
//                    translated
//
// The rules apply to the endpoints of the frontend's own family. If none of these can take new flows, and the
// Service requests it, the rules apply to the endpoints of the other family (ANN-32). Sources that are kept
// above are then translated.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/semantics/endpoints/endpoint_selection.hpp"

namespace penstock::semantics {

enum class TrafficPolicy : uint8_t { Cluster, Local };

// externalTrafficPolicy. An unknown value is treated as Cluster, with a notice (ETP-008). Call only if the
// Service has L, X or N frontends; otherwise the field has no meaning.
[[nodiscard]] TrafficPolicy external_policy_of(const kube::Service& service, Notices& notices);
// internalTrafficPolicy. Call only if ClusterIPs are served.
[[nodiscard]] TrafficPolicy internal_policy_of(const kube::Service& service, Notices& notices);

// The policies of one Service, and their inputs besides the candidates. References, without ownership.
struct PolicyRules {
    TrafficPolicy external = TrafficPolicy::Cluster;
    TrafficPolicy internal = TrafficPolicy::Cluster;
    const std::vector<std::string>& topology_keys;
    lb::EmptyAction no_endpoints = lb::EmptyAction::Reject;  // if no endpoint is usable anywhere
    const Surroundings& around;
};

// Adds a notice about an unknown trafficDistribution (GEN-002). Known values need no rule here: the cluster's
// controllers translate them into hints (TOPO-008).
void report_unknown_distribution(const kube::Service& service, Notices& notices);

// Adds notices about unexpected effects: the client's address is not kept (ETP-004), topologyKeys are not
// used (TOPO-007). Call only if the Service has L, X or N frontends.
void report_limits(const PolicyRules& rules, Notices& notices);

// Whether a new flow could go to an endpoint of `set`. If all weights are 0, it cannot (EP-018).
[[nodiscard]] bool has_usable(const model::BackendSet& set);

// Chooses between two sets of the same policy, `own` with endpoints of the frontends' own family and `other`
// with those of the other family (ANN-32). `own` is used as long as it has an endpoint for new flows. If
// neither has one, the set is used that has any endpoints, or whose action shows that endpoints exist but may
// not be chosen here (ETP-003, TOPO-004). `nobody` is the action that applies if no endpoints exist anywhere.
[[nodiscard]] model::BackendSet own_or_other(model::BackendSet own, model::BackendSet other,
                                             lb::EmptyAction nobody);

// The sets of one service port and one family of frontends. The candidates must have passed the steps that
// precede the policy's. References, without ownership.
class FamilySets {
 public:
    // `others`: the candidates of the other family if the Service allows them (ANN-32), otherwise null.
    FamilySets(const Selection& candidates, const Selection* others, IpFamily family,
               const PolicyRules& rules)
        : candidates_(candidates), others_(others), family_(family), rules_(rules) {}

    // For L, X and N frontends.
    [[nodiscard]] model::BackendSet external() const;
    // The set for clients inside; nullopt if it is the same.
    [[nodiscard]] std::optional<model::BackendSet> external_inside() const;
    // For C frontends.
    [[nodiscard]] model::BackendSet internal() const;
    [[nodiscard]] std::optional<model::BackendSet> internal_inside() const;

 private:
    // The inputs of one set: its candidates and their family, and whether the source address is kept.
    struct Making {
        const Selection& candidates;
        lb::SourceMode source = lb::SourceMode::Translate;
        bool translates_family = false;
    };
    [[nodiscard]] model::BackendSet of_policy(TrafficPolicy policy, lb::SourceMode source) const;
    [[nodiscard]] model::BackendSet made(TrafficPolicy policy, const Making& making) const;
    [[nodiscard]] model::BackendSet cluster(const Making& making) const;
    [[nodiscard]] model::BackendSet local(const Making& making) const;
    [[nodiscard]] model::BackendSet set_of(Selection selection, const Making& making,
                                           lb::EmptyAction when_empty) const;

    const Selection& candidates_;
    const Selection* others_;
    IpFamily family_;
    const PolicyRules& rules_;
};

}  // namespace penstock::semantics
