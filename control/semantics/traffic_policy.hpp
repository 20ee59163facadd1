// What a traffic policy makes of the candidates: who may be chosen, whether the client's address is kept, and what a new flow meets where
// nobody may be chosen (ETP-001..009, TOPO-004, REJ-001).
//
//                    clients outside                                clients inside (Pods)
//   Cluster, L X N   near before far, translated                    the same
//   Local, L X N     this node's, kept                              node mode: near before far, kept (ETP-006)
//   either, C        as internalTrafficPolicy says, translated      the same, kept (NAT-004)
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

// Tells what an operator would not expect of these rules: the client's address is lost after all (ETP-004), topologyKeys mean nothing
// (TOPO-007). Ask only where the Service has L, X or N frontends.
void tell_limits(const PolicyRules& rules, Notices& notices);

// The sets of one service port and one family, from candidates that have passed the steps before the policy's.
class FamilySets {
 public:
    FamilySets(const Selection& candidates, IpFamily family, const PolicyRules& rules)
        : candidates_(candidates), family_(family), rules_(rules) {}

    // Behind L, X and N frontends.
    [[nodiscard]] model::BackendSet external() const;
    // The same for clients inside; nothing where that makes no difference.
    [[nodiscard]] std::optional<model::BackendSet> external_inside() const;
    // Behind C frontends.
    [[nodiscard]] model::BackendSet internal() const;
    [[nodiscard]] std::optional<model::BackendSet> internal_inside() const;

 private:
    [[nodiscard]] model::BackendSet of_policy(TrafficPolicy policy, lb::SourceMode source) const;
    [[nodiscard]] model::BackendSet cluster(lb::SourceMode source) const;
    [[nodiscard]] model::BackendSet local(lb::SourceMode source) const;
    [[nodiscard]] model::BackendSet set_of(Selection selection, lb::SourceMode source, lb::EmptyAction when_empty) const;

    const Selection& candidates_;
    IpFamily family_;
    const PolicyRules& rules_;
};

}  // namespace penstock::semantics
