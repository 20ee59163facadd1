#include "control/semantics/semantics.hpp"

#include <algorithm>

#include "control/semantics/cluster_facts.hpp"
#include "control/semantics/node_ports.hpp"
#include "control/semantics/rights.hpp"
#include "control/semantics/service_plan.hpp"
#include "control/semantics/slice_index.hpp"

namespace penstock::semantics {
namespace {

void tell_about_service(const kube::ObjectName& name, std::vector<model::Notice> said, std::vector<ObjectNotice>& notices) {
    for (model::Notice& notice : said) {
        notices.push_back({.kind = "Service", .object = name, .notice = std::move(notice)});
    }
}

}  // namespace

Outcome evaluate(const kube::ObjectSet& objects, const model::GatewayIdentity& gateway, const Policy& policy) {
    Outcome outcome;
    const ClusterFacts facts = gather_cluster_facts(objects, outcome.notices);
    const ExternalIpRights rights(facts, policy);
    const SliceIndex slices(objects.slices, outcome.notices);
    const Surroundings around{.gateway = gateway, .policy = policy, .facts = facts, .rights = rights};

    // All claims are laid before the first is judged, so that it does not matter who came first; and all frontends are known before the
    // first endpoint is chosen, because none of them may be one (EP-006).
    std::vector<ServicePlan> plans;
    plans.reserve(objects.services.size());
    FrontendOwners owners;
    for (const auto& [name, service] : objects.services) {
        plans.push_back(plan_service(name, service, around));
        lay_claims(plans.back(), owners);
    }
    for (const ServicePlan& plan : plans) {
        tell_about_service(plan.name, plan.notices.sorted(), outcome.notices);
        for (model::Service& service : decide_service(plan, owners, slices.of(plan.name), around)) {
            tell_about_service(plan.name, service.notices, outcome.notices);
            outcome.desired.services.emplace(service.key, std::move(service));
        }
    }
    outcome.desired.node_port_addresses = node_port_addresses_of(objects, gateway, policy, outcome.notices);
    std::ranges::sort(outcome.notices);
    const auto [first, last] = std::ranges::unique(outcome.notices);
    outcome.notices.erase(first, last);
    return outcome;
}

}  // namespace penstock::semantics
