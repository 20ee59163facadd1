#include "control/semantics/traffic_policy.hpp"

#include "control/semantics/text.hpp"

namespace penstock::semantics {

TrafficPolicy external_policy_of(const kube::Service& service, Notices& notices) {
    if (service.external_traffic_policy == "Local") {
        return TrafficPolicy::Local;
    }
    if (service.external_traffic_policy != "Cluster") {
        notices.warn(reason::kUnknownValue,
                     "spec.externalTrafficPolicy " + quoted(service.external_traffic_policy) + " is not known; Cluster is used");
    }
    return TrafficPolicy::Cluster;
}

model::BackendSet external_backend_set(const Candidates& candidates, IpFamily family, TrafficPolicy policy,
                                       const model::GatewayIdentity& gateway, lb::EmptyAction no_endpoints) {
    model::BackendSet set;
    set.family = family;
    set.when_empty = no_endpoints;
    Candidates chosen = cluster_set(candidates);
    if (policy == TrafficPolicy::Local) {
        set.source = lb::SourceMode::Keep;
        // An external gateway is no node, so nothing is local to it and nothing is remote either (ETP-004).
        if (gateway.mode == model::GatewayMode::Node) {
            Candidates local = local_set(candidates, gateway.node_name);
            // Somebody upstream may try another node, so silence is kinder than a reset (ETP-003).
            if (local.empty() && !chosen.empty()) {
                set.when_empty = lb::EmptyAction::DropNoLocal;
            }
            chosen = std::move(local);
        }
    }
    set.endpoints.reserve(chosen.size());
    for (const Candidate& candidate : chosen) {
        set.endpoints.push_back({.address = candidate.address,
                                 .port = candidate.port,
                                 .node_name = printable_interned(candidate.endpoint->node_name, 253),
                                 .zone = printable_interned(candidate.endpoint->zone, 253)});
    }
    return set;
}

}  // namespace penstock::semantics
