// SPDX-License-Identifier: Apache-2.0
#include "control/semantics/service_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "control/semantics/affinity.hpp"
#include "control/semantics/endpoints/node_backends.hpp"
#include "control/semantics/endpoints/topology.hpp"
#include "control/semantics/endpoints/traffic_policy.hpp"
#include "control/semantics/external_ips.hpp"
#include "control/semantics/text.hpp"

namespace penstock::semantics {
namespace {

Contender contender(const ServicePlan& plan, lb::FrontendClass cls, size_t port_index) {
    return {.cls = cls, .created = plan.created, .service = plan.name, .port_index = port_index};
}

// Whether the Service names frontends. If so, an operator must be notified if it gets none.
bool asks_for_frontends(const kube::Service& service, const Policy& policy) {
    return !named_external_ips(service, policy.external_ips_annotation).empty() || !service.ingress.empty() ||
           std::ranges::any_of(service.ports,
                               [](const kube::ServicePort& port) { return port.node_port != 0; });
}

bool is_owner(const ServicePlan& plan, const Contender& owner, lb::FrontendClass cls, size_t port_index) {
    if (owner.service != plan.name) {
        return false;
    }
    // A Service's ClusterIP never conflicts with its own LoadBalancer IP at the same address.
    return owner.cls == lb::FrontendClass::ClusterIp || (owner.cls == cls && owner.port_index == port_index);
}

// The frontends that port `port_index` requested and owns. For each other one, a notice names the owner
// (SVC-018).
std::vector<model::Frontend> owned_frontends(const ServicePlan& plan, size_t port_index,
                                             const FrontendOwners& owners, Notices& notices) {
    std::vector<model::Frontend> owned;
    for (const AskedFrontend& asked : plan.ports[port_index].frontends) {
        const Contender* owner = owners.owner_of(asked.tuple);
        if (owner != nullptr && !is_owner(plan, *owner, asked.cls, port_index)) {
            notices.warn(reason::kFrontendConflict,
                         asked.tuple.to_string() + " belongs to " + owner->to_string() +
                             "; precedence: ClusterIP, LoadBalancer IP, external IP, then the older Service");
            continue;
        }
        const bool node_port = asked.cls == lb::FrontendClass::NodePort;
        owned.push_back({.cls = asked.cls,
                         .address = node_port ? IpAddr() : asked.tuple.address,
                         .family = asked.family,
                         .port = asked.tuple.port,
                         .filtered = asked.filtered});
    }
    std::ranges::sort(owned, {}, [](const model::Frontend& frontend) {
        return std::tuple(frontend.cls, frontend.family, frontend.address, frontend.port);
    });
    return owned;
}

// The sets that the frontends of one family and origin use.
struct SetUse {
    uint8_t set = 0;
    std::optional<uint8_t> inside_set;
};

// Returns the index of `set` in `sets`, and adds it if it is new. Equal sets are stored once.
uint8_t index_of(model::BackendSet set, std::vector<model::BackendSet>& sets) {
    const auto known = std::ranges::find(sets, set);
    const auto index = static_cast<uint8_t>(known - sets.begin());
    if (known == sets.end()) {
        sets.push_back(std::move(set));
    }
    return index;
}

std::optional<uint8_t> index_of(std::optional<model::BackendSet> set, std::vector<model::BackendSet>& sets) {
    return set ? std::optional(index_of(std::move(*set), sets)) : std::nullopt;
}

bool is_cluster_ip(const model::Frontend& frontend) {
    return frontend.cls == lb::FrontendClass::ClusterIp;
}

// The candidates of the other family if the Service allows them (ANN-32), otherwise null.
const Selection* others_of(const ServicePlan& plan, const std::map<IpFamily, Selection>& candidates,
                           IpFamily family) {
    return plan.settings.translate_family ? &candidates.at(other_family(family)) : nullptr;
}

// Whether the set is stored even without a frontend. Flows stay with endpoints that the Service knows,
// regardless of which endpoints get new flows.
bool is_always_laid(const ServicePlan& plan, IpFamily family, const Selection& candidates) {
    return plan.families.has(family) || !candidates.left.empty() || !candidates.excluded.empty();
}

// Fills the sets of a service port from the candidates of each family that the Service has or may be served
// by, and assigns a set to each frontend. Sets without a frontend are not created, except the first of each
// family (is_always_laid).
void lay_sets(const ServicePlan& plan, const std::map<IpFamily, Selection>& candidates,
              const PolicyRules& rules, model::Service& service) {
    std::map<IpFamily, uint8_t> own;
    for (const auto& [family, selection] : candidates) {
        if (is_always_laid(plan, family, selection)) {
            own[family] = index_of(FamilySets(selection, nullptr, family, rules).external(), service.sets);
        }
    }
    for (const auto& [family, selection] : candidates) {
        const Selection* others = others_of(plan, candidates, family);
        const FamilySets made(selection, others, family, rules);
        const auto has_frontends = [&, family = family](bool cluster_ips) {
            return std::ranges::any_of(service.frontends, [&](const model::Frontend& frontend) {
                return frontend.family == family && is_cluster_ip(frontend) == cluster_ips;
            });
        };
        SetUse external;
        if (has_frontends(false)) {
            external.set = others == nullptr ? own.at(family) : index_of(made.external(), service.sets);
            external.inside_set = index_of(made.external_inside(), service.sets);
        }
        SetUse internal;
        if (has_frontends(true)) {
            internal.set = index_of(made.internal(), service.sets);
            internal.inside_set = index_of(made.internal_inside(), service.sets);
        }
        for (model::Frontend& frontend : service.frontends) {
            if (frontend.family == family) {
                const SetUse& use = is_cluster_ip(frontend) ? internal : external;
                frontend.set = use.set;
                frontend.inside_set = use.inside_set;
            }
        }
    }
}

// Steps 1 to 3 of EP-020.
Selection candidates_of(const ServicePlan& plan, const ValidPort& port, IpFamily family,
                        const FrontendOwners& owners, const ServiceSlices& slices, const Surroundings& around,
                        Notices& notices) {
    Selection selection{.left = merged_endpoints(slices, port.name, port.protocol, family, notices),
                        .excluded = {}};
    drop_forbidden(selection, around.facts.cluster_ips, owners, notices);
    if (plan.settings.node_selector) {
        select_nodes(selection, *plan.settings.node_selector, around.nodes);
    }
    if (!plan.settings.node_weight_label.empty()) {
        weigh_by_node(selection.left, std::string(plan.settings.node_weight_label), around.nodes);
    }
    return selection;
}

// If backends are Nodes: one set for each family, for all clients. The proxy of a Node opens nodePorts only
// in the Service's own families.
void lay_node_sets(const ServicePlan& plan, L4Port node_port, const std::map<IpFamily, Selection>& candidates,
                   TrafficPolicy policy, const ClusterFacts& facts, const FrontendOwners& owners,
                   model::Service& service) {
    const auto made = [&](IpFamily family) {
        return node_backend_set({.family = family, .node_port = node_port, .policy = policy}, plan.settings,
                                candidates.at(family).left, facts, owners);
    };
    const auto made_of_other = [&](IpFamily family) {
        model::BackendSet set = made(other_family(family));
        set.family = family;
        set.translates_family = true;
        set.source = lb::SourceMode::Translate;
        return set;
    };
    std::map<IpFamily, uint8_t> own;
    for (const auto& [family, selection] : candidates) {
        if (plan.families.has(family)) {
            own[family] = index_of(made(family), service.sets);
        }
    }
    for (const auto& [family, selection] : candidates) {
        const auto is_of_family = [family = family](const model::Frontend& frontend) {
            return frontend.family == family;
        };
        if (std::ranges::none_of(service.frontends, is_of_family)) {
            continue;
        }
        uint8_t set = 0;
        if (!plan.families.has(family)) {
            set = index_of(made_of_other(family), service.sets);
        } else if (!plan.settings.translate_family || !plan.families.has(other_family(family))) {
            set = own.at(family);
        } else {
            set = index_of(own_or_other(made(family), made_of_other(family), plan.settings.no_endpoints),
                           service.sets);
        }
        for (model::Frontend& frontend : service.frontends) {
            frontend.set = is_of_family(frontend) ? set : frontend.set;
        }
    }
}

// Policy Local keeps the client's address, which is not possible between families (ANN-32).
void report_lost_sources(const PolicyRules& rules, const model::Service& service, Notices& notices) {
    for (const model::Frontend& frontend : service.frontends) {
        const model::BackendSet& set = service.sets[frontend.set];
        if (rules.external == TrafficPolicy::Local && !is_cluster_ip(frontend) && set.translates_family) {
            notices.warn(reason::kSourceIpNotPreserved,
                         std::string("externalTrafficPolicy Local cannot keep the client's address for ") +
                             to_string(set.family) + " frontends: their endpoints are " +
                             to_string(set.endpoint_family()) + " (penstock.io/translate-family)");
            return;
        }
    }
}

bool owns_health_check(const ServicePlan& plan, const FrontendOwners& owners, Notices& notices) {
    for (const FrontendTuple& tuple : health_check_tuples(plan.health_check)) {
        const Contender* owner = owners.owner_of(tuple);
        if (owner != nullptr && *owner != contender(plan, lb::FrontendClass::NodePort, kHealthCheckIndex)) {
            notices.warn(reason::kFrontendConflict, "healthCheckNodePort " +
                                                        std::to_string(plan.health_check) +
                                                        " is not answered: the port belongs to " +
                                                        owner->to_string() + ", which is older");
            return false;
        }
    }
    return true;
}

}  // namespace

ServicePlan plan_service(const kube::ObjectName& name, const kube::ServicePtr& object,
                         const Surroundings& around, const ExternalIpRights& rights) {
    const kube::Service& service = *object;
    ServicePlan plan;
    plan.name = name;
    plan.object = object;
    plan.created = CreationTime::parse(service.meta.creation_timestamp);
    plan.cluster_ips = cluster_ips_of(service);

    const Standing standing = standing_of(name, service, around.policy);
    Notices port_notices;
    for (ValidPort& port : valid_ports(service, port_notices)) {
        plan.ports.push_back({.port = std::move(port), .frontends = {}});
    }
    if (standing != Standing::Served) {
        if (standing != Standing::Ignored && asks_for_frontends(service, around.policy)) {
            plan.notices.warn(reason::kNotServed, std::string(explanation(standing)));
        }
        return plan;
    }
    port_notices.append_to(plan.notices);
    const ServiceType type = type_of(service, plan.notices);
    plan.families = families_of(service, plan.notices);
    plan.settings = settings_of(service.meta.annotations, around.policy, plan.notices);
    plan.topology_keys = topology_keys_of(service, plan.settings.topology_keys, plan.notices);
    plan.affinity_timeout_s = affinity_timeout_of(service, plan.notices);
    plan.ranges = source_ranges_of(service, type, plan.settings.source_ranges_deny, plan.notices);
    plan.ranges.families = plan.families;
    const Families served = plan.settings.translate_family ? Families::both() : plan.families;
    AskedAddresses addresses =
        asked_addresses_of(name, service, type, served, around.gateway, around.policy, rights, plan.notices);
    plan.concerns_gateway = addresses.any_named;
    if (plan.settings.withholds_load_balancer_ips) {
        addresses.load_balancer.clear();
    }
    for (PortPlan& port : plan.ports) {
        port.frontends = asked_frontends_of(port.port, addresses, plan.ranges, around.policy);
        if (!port.frontends.empty() &&
            !can_be_served(port.port, type, around.facts.through_nodes, around.policy, plan.notices)) {
            port.frontends.clear();
        }
    }
    plan.health_check = health_check_port_of(service, type, around.gateway, around.policy);
    plan.concerns_gateway |= plan.health_check != 0;
    return plan;
}

std::vector<Claim> claims_of(const ServicePlan& plan) {
    std::vector<Claim> claims;
    for (size_t i = 0; i < plan.ports.size(); ++i) {
        const PortPlan& planned = plan.ports[i];
        // A ClusterIP belongs to the cluster, whether or not this gateway serves it.
        for (const IpAddr& address : plan.cluster_ips) {
            claims.push_back(
                {.tuple = {.address = address, .port = planned.port.port, .protocol = planned.port.protocol},
                 .contender = contender(plan, lb::FrontendClass::ClusterIp, i)});
        }
        for (const AskedFrontend& asked : planned.frontends) {
            if (asked.cls == lb::FrontendClass::ClusterIp) {
                continue;  // added above
            }
            claims.push_back({.tuple = asked.tuple, .contender = contender(plan, asked.cls, i)});
        }
    }
    if (plan.health_check != 0) {
        for (const FrontendTuple& tuple : health_check_tuples(plan.health_check)) {
            claims.push_back({.tuple = tuple,
                              .contender = contender(plan, lb::FrontendClass::NodePort, kHealthCheckIndex)});
        }
    }
    std::ranges::sort(claims);
    return claims;
}

bool reads_node_labels(const ServicePlan& plan, const ServiceSlices& slices) {
    const AnnotationSettings& settings = plan.settings;
    return plan.concerns_gateway &&
           (!plan.topology_keys.empty() || settings.node_selector || !settings.node_weight_label.empty() ||
            std::ranges::any_of(slices, [](const NamedSlice& one) { return one.slice->from_endpoints; }));
}

std::vector<model::Service> decide_service(const ServicePlan& plan, const FrontendOwners& owners,
                                           const ServiceSlices& slices, const Surroundings& around) {
    std::vector<model::Service> decided;
    if (!plan.concerns_gateway) {
        return decided;
    }
    Notices of_service;
    plan.notices.append_to(of_service);
    std::vector<Notices> of_port(plan.ports.size());
    std::vector<std::vector<model::Frontend>> frontends;
    bool has_external = false;
    bool has_internal = false;
    for (size_t i = 0; i < plan.ports.size(); ++i) {
        frontends.push_back(owned_frontends(plan, i, owners, of_port[i]));
        for (const model::Frontend& frontend : frontends.back()) {
            (is_cluster_ip(frontend) ? has_internal : has_external) = true;
        }
    }
    // A policy is read only if the Service has frontends that it applies to (ETP-008, ETP-009).
    const PolicyRules rules{
        .external = has_external ? external_policy_of(*plan.object, of_service) : TrafficPolicy::Cluster,
        .internal = has_internal ? internal_policy_of(*plan.object, of_service) : TrafficPolicy::Cluster,
        .topology_keys = plan.topology_keys,
        .no_endpoints = plan.settings.no_endpoints,
        .around = around};
    report_unknown_distribution(*plan.object, of_service);
    report_limits(rules, of_service);
    report_truncated(slices, of_service);
    report_unusable(slices, of_service);

    const bool checked = plan.health_check != 0 && owns_health_check(plan, owners, of_service);
    LocalEndpoints local;

    for (size_t i = 0; i < plan.ports.size(); ++i) {
        const ValidPort& port = plan.ports[i].port;
        model::Service service;
        service.key = {.namespace_name = plan.name.namespace_name,
                       .name = plan.name.name,
                       .port_name = port.name,
                       .protocol = port.protocol};
        service.service_port = port.port;
        service.scheduler = plan.settings.scheduler;
        service.uid = printable(plan.object->meta.uid);
        service.affinity_timeout_s = plan.affinity_timeout_s;
        service.affinity_scope =
            plan.affinity_timeout_s == 0 ? lb::AffinityScope::Port : plan.settings.affinity_scope;
        service.frontends = std::move(frontends[i]);
        service.source_ranges = plan.ranges.listed;
        service.source_ranges_deny = plan.ranges.deny;
        service.idle_timeout_s = plan.settings.idle_timeout_s;
        service.drain_timeout_s = plan.settings.drain_timeout_s;
        service.access_log = {.enabled = plan.settings.access_log,
                              .interval_min = plan.settings.access_log_interval_min,
                              .sink = std::string(plan.settings.access_log_sink),
                              .prefix = std::string(plan.settings.access_log_prefix),
                              .tags = plan.settings.tags};
        service.probe = around.facts.through_nodes
                            ? node_probe_of(*plan.object, rules.external, plan.settings, around.policy)
                            : pod_probe_of(plan.settings);
        std::map<IpFamily, Selection> candidates;
        for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
            if (plan.families.has(family) || plan.settings.translate_family) {
                candidates.emplace(family,
                                   candidates_of(plan, port, family, owners, slices, around, of_port[i]));
                local.add(candidates.at(family).left, around.gateway.node_name);
            }
        }
        if (around.facts.through_nodes) {
            lay_node_sets(plan, port.node_port, candidates, rules.external, around.facts, owners, service);
        } else {
            lay_sets(plan, candidates, rules, service);
        }
        report_lost_sources(rules, service, of_port[i]);
        of_service.append_to(of_port[i]);
        service.notices = of_port[i].sorted();
        decided.push_back(std::move(service));
    }
    std::ranges::sort(decided, {}, &model::Service::key);
    if (checked && !decided.empty()) {
        decided.front().health_check = {.port = plan.health_check, .local_endpoints = local.count()};
    }
    return decided;
}

}  // namespace penstock::semantics
