// What a traffic policy makes of the candidates: who may be chosen, whether the client's address is kept, and what a new flow meets where
// nobody may be chosen (ETP-001..009, TOPO-004, REJ-001).
//
//                    clients outside                                clients inside (Pods, and the gateway's own host)
//   Cluster, L X N   near before far, translated                    the same
//   Local, L X N     this node's, kept                              node mode: near before far, kept (ETP-006); translated where no
//                                                                   Pod CIDR is known, as only the host is inside then
//   either, C        as internalTrafficPolicy says, translated      the same, kept (NAT-004)
//
// All of that is asked of the endpoints of the frontend's own family. Where they leave nobody to new flows, and the Service asks for it, it
// is asked once more of the other family's (ANN-32), and whatever is kept above is translated then.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/semantics/endpoint_selection.hpp"

namespace penstock::semantics {

enum class TrafficPolicy : uint8_t { Cluster, Local };

// externalTrafficPolicy; an unknown value is Cluster, and said (ETP-008). Ask only where the Service has L, X or N frontends: elsewhere the
// field means nothing.
[[nodiscard]] TrafficPolicy external_policy_of(const kube::Service& service, Notices& notices);
// internalTrafficPolicy; ask only where ClusterIPs are served.
[[nodiscard]] TrafficPolicy internal_policy_of(const kube::Service& service, Notices& notices);

// What the policies of one Service say, and what they read beside the candidates. Borrowed.
struct PolicyRules {
    TrafficPolicy external = TrafficPolicy::Cluster;
    TrafficPolicy internal = TrafficPolicy::Cluster;
    const std::vector<std::string>& topology_keys;
    lb::EmptyAction no_endpoints = lb::EmptyAction::Reject;  // where nobody is usable anywhere
    const Surroundings& around;
};

// Warns about a trafficDistribution that this version does not know (GEN-002). A known one needs no rule here: the cluster's controllers
// translate it into hints (TOPO-008).
void tell_unknown_distribution(const kube::Service& service, Notices& notices);

// Tells what an operator would not expect of these rules: the client's address is lost after all (ETP-004), topologyKeys mean nothing
// (TOPO-007). Ask only where the Service has L, X or N frontends.
void tell_limits(const PolicyRules& rules, Notices& notices);

// Whether a new flow could go to an endpoint of it: with nothing but weight 0 it cannot (EP-018).
[[nodiscard]] bool has_usable(const model::BackendSet& set);

// Of a set with endpoints of the frontends' own family and one with the other's, both of one policy: the one to be used (ANN-32). It is the
// own one as long as that has an endpoint for new flows. Where neither has, it is the one whose endpoints there are, or whose answer tells
// of some that may not be chosen here (ETP-003, TOPO-004): `nobody` is the answer where there are none anywhere.
[[nodiscard]] model::BackendSet own_or_other(model::BackendSet own, model::BackendSet other,
                                             lb::EmptyAction nobody);

// The sets of one service port and one family of frontends, from candidates that have passed the steps before the policy's. Borrowed.
class FamilySets {
 public:
    // `others`: of the other family, where the Service lets them serve (ANN-32), else null.
    FamilySets(const Selection& candidates, const Selection* others, IpFamily family,
               const PolicyRules& rules)
        : candidates_(candidates), others_(others), family_(family), rules_(rules) {}

    // Behind L, X and N frontends.
    [[nodiscard]] model::BackendSet external() const;
    // The same for clients inside; nothing where that makes no difference.
    [[nodiscard]] std::optional<model::BackendSet> external_inside() const;
    // Behind C frontends.
    [[nodiscard]] model::BackendSet internal() const;
    [[nodiscard]] std::optional<model::BackendSet> internal_inside() const;

 private:
    // How a set is made from candidates: of which family, and what becomes of the source address.
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
