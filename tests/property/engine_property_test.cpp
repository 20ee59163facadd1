// SPDX-License-Identifier: Apache-2.0
// GEN-006 and APISYNC-021: after any sequence of changes the engine's result equals the evaluation of the
// current objects, and a follower of its Steps reaches the same result. The model is the complete evaluation,
// without memory: plan all, claim all, decide all.
#include <gtest/gtest.h>

#include <set>

#include "control/semantics/engine.hpp"
#include "control/semantics/node_ports.hpp"
#include "control/semantics/standing.hpp"
#include "tests/support/prng.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace engine_property_test {

using test::Prng;

template <typename T>
const T& any_of(Prng& prng, const std::vector<T>& values) {
    return values[prng.below(values.size())];
}

bool chooses_nodes(const kube::Objects& objects, const model::GatewayIdentity& gateway,
                   const Policy& policy) {
    PrefixSet of_nodes;
    std::vector<ObjectNotice> said_elsewhere;
    for (const auto& [name, node] : objects.nodes) {
        for (const Prefix& cidr : pod_cidrs_of(name, *node, said_elsewhere)) {
            of_nodes.add(cidr);
        }
    }
    return choose_backends(gateway, policy, of_nodes.empty() ? PrefixSet(policy.cluster_cidrs) : of_nodes)
        .through_nodes;
}

Outcome from_scratch(const kube::Objects& objects, const model::GatewayIdentity& gateway,
                     const Policy& policy) {
    Outcome outcome;
    ClusterFacts facts;
    for (const auto& [name, service] : objects.services) {
        for (const IpAddr& address : cluster_ips_of(*service)) {
            facts.cluster_ips.add(address);
        }
    }
    std::vector<Prefix> pod_cidrs = policy.cluster_cidrs;
    for (const auto& [name, node] : objects.nodes) {
        for (const Prefix& cidr : pod_cidrs_of(name, *node, outcome.notices)) {
            pod_cidrs.push_back(cidr);
        }
        facts.nodes.put(name, node);
    }
    facts.pod_cidrs = PrefixSet(pod_cidrs);
    facts.through_nodes = chooses_nodes(objects, gateway, policy);
    std::map<kube::ObjectName, ServiceSlices> slices;
    for (const auto& [name, slice] : objects.slices) {
        const std::vector<ObjectNotice> about = notices_about(name, *slice);
        outcome.notices.insert(outcome.notices.end(), about.begin(), about.end());
        if (const auto service = service_of(name, *slice)) {
            slices[*service].push_back({.name = name.name, .slice = slice});
        }
    }
    const ExternalIpRules rules(policy);
    const ExternalIpRights rights(facts, rules);
    const Surroundings around{.gateway = gateway, .policy = policy, .facts = facts, .nodes = objects.nodes};
    std::vector<ServicePlan> plans;
    FrontendOwners owners;
    for (const auto& [name, service] : objects.services) {
        plans.push_back(plan_service(name, service, around, rights));
        for (const Claim& claim : claims_of(plans.back())) {
            owners.lay(claim);
        }
    }
    for (const ServicePlan& plan : plans) {
        const auto tell = [&](const model::Notice& notice) {
            outcome.notices.push_back({.kind = "Service", .object = plan.name, .notice = notice});
        };
        std::ranges::for_each(plan.notices.sorted(), tell);
        for (model::Service& service : decide_service(plan, owners, slices[plan.name], around)) {
            std::ranges::for_each(service.notices, tell);
            outcome.desired.services.emplace(service.key, std::move(service));
        }
    }
    const auto node = objects.nodes.find(gateway.node_name);
    outcome.desired.environment.node_ports = node_port_addresses_of(
        node == objects.nodes.end() ? nullptr : node->second.get(), gateway, policy, outcome.notices);
    std::ranges::sort(pod_cidrs);
    for (const Prefix& one : pod_cidrs) {
        const bool is_outermost = std::ranges::none_of(
            pod_cidrs, [&](const Prefix& other) { return other != one && PrefixSet({other}).covers(one); });
        auto& told = outcome.desired.environment.pod_cidrs;
        if (is_outermost && (told.empty() || told.back() != one)) {
            told.push_back(one);
        }
    }
    outcome.desired.environment.rejects_closed_vip_ports = policy.rejects_closed_vip_ports;
    outcome.desired.environment.node_eligible = gateway.mode == model::GatewayMode::External ||
                                                node == objects.nodes.end() ||
                                                (!node->second->deleting && node->second->taints.empty());
    if (gateway.mode == model::GatewayMode::Node && node != objects.nodes.end()) {
        const bool excluded =
            node->second->meta.labels.contains("node.kubernetes.io/exclude-from-external-load-balancers");
        const std::string about = "Node " + gateway.node_name + " has the ";
        std::string& why = outcome.desired.environment.vips_withheld;
        why += excluded && !policy.ignore_exclude_label
                   ? about + "label node.kubernetes.io/exclude-from-external-load-balancers"
                   : "";
        if (node->second->network_unavailable && !policy.ignore_network_unavailable) {
            why += (why.empty() ? "" : "; ") + about + "condition NetworkUnavailable=True";
        }
    }
    std::ranges::sort(outcome.notices);
    const auto [first, last] = std::ranges::unique(outcome.notices);
    outcome.notices.erase(first, last);
    return outcome;
}

// The compared contents as text: each service port and notice as lines.
Lines lines_of(const Outcome& outcome) {
    Lines lines = frontends(outcome);
    for (const auto& [key, service] : outcome.desired.services) {
        for (size_t set = 0; set < service.sets.size(); ++set) {
            for (const std::string& line : endpoints(outcome, key.to_string(), set)) {
                lines.push_back(key.to_string() + " set " + std::to_string(set) + ": " + line);
            }
        }
    }
    for (const ObjectNotice& notice : outcome.notices) {
        lines.push_back(notice.kind + " " + notice.object.namespace_name + "/" + notice.object.name + " " +
                        notice.notice.message);
    }
    return lines;
}

// Few addresses, so that ClusterIPs, VIPs, external IPs, endpoints and Pod CIDRs often coincide.
const std::vector<std::string> kAddresses = {"203.0.113.1",  "203.0.113.2", "203.0.113.3",
                                             "203.0.113.65", "10.96.0.1",   "2001:db8::1",
                                             "198.51.100.1", "127.0.0.1",   "x"};
const std::vector<std::string> kServices = {"one", "two", "three", "four"};
const std::vector<std::string> kNodes = {"edge-1", "edge-2", "other"};

std::string any_address(Prng& prng) {
    return any_of(prng, kAddresses);
}

kube::ServicePtr random_service(Prng& prng) {
    kube::Service service;
    service.type = any_of<std::string>(
        prng, {"ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer", "ExternalName", "?"});
    service.cluster_ip = any_of<std::string>(
        prng, {"", "None", "203.0.113.1", "203.0.113.3", "10.96.0.1", "10.96.0.2", "10.96.0.3"});
    service.cluster_ips = {service.cluster_ip};
    service.awaits_cluster_ip = prng.one_in(2);
    service.ip_families = any_of<std::vector<std::string>>(prng, {{"IPv4"}, {"IPv4", "IPv6"}, {}});
    service.meta.creation_timestamp =
        any_of<std::string>(prng, {"", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"});
    service.health_check_node_port = any_of<int64_t>(prng, {0, 30080, 31000, 31001});
    if (prng.one_in(3)) {
        service.meta.annotations["penstock.io/node-weight"] =
            any_of<std::string>(prng, {"ready-pods", "equal", "?"});
    }
    service.external_traffic_policy = any_of<std::string>(prng, {"Cluster", "Local", "?"});
    service.internal_traffic_policy = any_of<std::string>(prng, {"Cluster", "Local", "?"});
    service.meta.labels["team"] = any_of<std::string>(prng, {"blue", "red"});
    service.traffic_distribution = any_of<std::string>(prng, {"", "PreferClose", "?"});
    service.topology_keys =
        any_of<std::vector<std::string>>(prng, {{}, {}, {}, {"rack"}, {"rack", "*"}, {"*", "rack"}});
    if (prng.one_in(4)) {
        service.meta.annotations["penstock.io/backend-node-selector"] =
            any_of<std::string>(prng, {"rack=1", "!rack", "("});
    }
    if (prng.one_in(4)) {
        service.meta.annotations["penstock.io/node-weight-label"] = "weight";
    }
    if (prng.one_in(3)) {
        service.meta.annotations["penstock.io/translate-family"] =
            any_of<std::string>(prng, {"true", "true", "false", "?"});
    }
    for (uint64_t i = prng.below(3); i > 0; --i) {
        service.external_ips.push_back(any_address(prng));
    }
    if (prng.one_in(4)) {
        service.meta.annotations["penstock.io/external-ips"] = any_address(prng) + "," + any_address(prng);
    }
    for (uint64_t i = prng.below(3); i > 0; --i) {
        service.ingress.push_back({.ip = any_address(prng)});
    }
    service.ports.push_back({.name = "p",
                             .port = any_of<int64_t>(prng, {80, 81}),
                             .node_port = any_of<int64_t>(prng, {0, 30080, 30081})});
    if (prng.one_in(2)) {
        service.ports.push_back({.name = any_of<std::string>(prng, {"q", "a"}),
                                 .protocol = any_of<std::string>(prng, {"TCP", "UDP", "QUIC"}),
                                 .port = 81,
                                 .node_port = any_of<int64_t>(prng, {0, 30080, 30081})});
    }
    return std::make_shared<const kube::Service>(std::move(service));
}

kube::EndpointSlicePtr random_slice(Prng& prng) {
    kube::EndpointSlice slice;
    slice.address_type = any_of<std::string>(prng, {"IPv4", "IPv4", "IPv4", "IPv6", "FQDN"});
    if (!prng.one_in(8)) {
        slice.meta.labels["kubernetes.io/service-name"] = any_of(prng, kServices);
    }
    slice.from_endpoints = prng.one_in(4);
    slice.ports = {
        {.name = "p", .port = any_of<int64_t>(prng, {8080, 8081})},
        {.name = "q", .protocol = any_of<std::string>(prng, {"TCP", "UDP", "QUIC"}), .port = 8081}};
    for (uint64_t i = prng.below(4); i > 0; --i) {
        const std::string pods = slice.address_type == "IPv6" ? "fd00:244::" : "10.244.0.";
        slice.endpoints.push_back(
            endpoint(prng.one_in(3) ? any_address(prng) : pods + std::to_string(prng.between(1, 4)),
                     any_of<std::string>(prng, {"edge-1", "edge-2", "other", ""})));
        slice.endpoints.back().ready = !prng.one_in(3);
        slice.endpoints.back().terminating = prng.one_in(3);
        slice.endpoints.back().hints_for_zones = any_of<InternedTexts>(prng, {{"a"}, {"b"}, {"a", "b"}, {}});
    }
    return std::make_shared<const kube::EndpointSlice>(std::move(slice));
}

// A change often differs little from the previous object: one endpoint's condition.
kube::EndpointSlicePtr flipped(Prng& prng, const kube::EndpointSlice& old) {
    kube::EndpointSlice slice = old;
    if (!slice.endpoints.empty()) {
        kube::Endpoint& one = slice.endpoints[prng.below(slice.endpoints.size())];
        one.ready = !one.ready.value_or(true);
    }
    return std::make_shared<const kube::EndpointSlice>(std::move(slice));
}

kube::NodePtr random_node(Prng& prng) {
    kube::Node node;
    node.ready = prng.one_in(2);
    node.meta.labels =
        any_of<std::map<std::string, std::string>>(prng, {{},
                                                          {{"rack", "1"}, {"weight", "3"}},
                                                          {{"rack", "2"}},
                                                          {{"topology.kubernetes.io/zone", "a"}},
                                                          {{"weight", "0"}}});
    node.deleting = prng.one_in(8);
    node.network_unavailable = prng.one_in(4);
    if (prng.one_in(8)) {
        node.taints = {"ToBeDeletedByClusterAutoscaler"};
    }
    if (prng.one_in(8)) {
        node.meta.labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "";
    }
    node.pod_cidrs = any_of<std::vector<std::string>>(
        prng, {{}, {"10.244.0.0/24"}, {"203.0.113.0/26"}, {"203.0.113.64/26", "?"}, {"?"}});
    node.addresses =
        any_of<std::vector<kube::NodeAddress>>(prng, {{},
                                                      {{.type = "InternalIP", .address = "192.0.2.1"}},
                                                      {{.type = "InternalIP", .address = "192.0.2.2"}},
                                                      {{.type = "InternalIP", .address = "2001:db8::5"}},
                                                      {{.type = "ExternalIP", .address = "203.0.113.2"}},
                                                      {{.type = "InternalIP", .address = "?"}}});
    return std::make_shared<const kube::Node>(std::move(node));
}

kube::Changes random_changes(Prng& prng, const kube::Objects& objects) {
    kube::Changes changes;
    for (uint64_t i = prng.between(1, 3); i > 0; --i) {
        const kube::ObjectName service{.namespace_name = any_of<std::string>(prng, {"a", "b"}),
                                       .name = any_of(prng, kServices)};
        const kube::ObjectName slice{.namespace_name = service.namespace_name,
                                     .name = "s" + std::to_string(prng.below(6))};
        switch (prng.below(8)) {
            case 0:
                changes.services[service] = nullptr;
                break;
            case 1:
            case 2:
                changes.services[service] = random_service(prng);
                break;
            case 3:
                changes.slices[slice] = nullptr;
                break;
            case 4:
                changes.slices[slice] = random_slice(prng);
                break;
            case 5:
            case 6: {
                const auto known = objects.slices.find(slice);
                changes.slices[slice] =
                    known == objects.slices.end() ? random_slice(prng) : flipped(prng, *known->second);
                break;
            }
            default:
                changes.nodes[any_of(prng, kNodes)] = prng.one_in(4) ? nullptr : random_node(prng);
        }
    }
    return changes;
}

model::GatewayIdentity random_gateway(Prng& prng) {
    model::GatewayIdentity gateway{
        .gateway_name = "gw",
        .mode = prng.one_in(3) ? model::GatewayMode::External : model::GatewayMode::Node};
    if (gateway.mode == model::GatewayMode::Node) {
        gateway.node_name = any_of<std::string>(prng, {"edge-1", "edge-2", "nowhere"});
    }
    gateway.labels["rack"] = any_of<std::string>(prng, {"1", "2"});
    gateway.labels["topology.kubernetes.io/zone"] = any_of<std::string>(prng, {"a", "b"});
    if (gateway.mode == model::GatewayMode::External) {
        gateway.routed_prefixes =
            any_of<std::vector<Prefix>>(prng, {{},
                                               {cidr("10.244.0.0/16")},
                                               {cidr("10.244.0.0/16"), cidr("203.0.113.0/24")},
                                               {cidr("203.0.113.0/24")}});
    }
    if (prng.one_in(2)) {
        gateway.addresses = {{.port_name = "pen0", .address = ip("203.0.113.2"), .prefix_length = 24}};
    }
    return gateway;
}

// Has no information about the engine except its Steps.
class Follower {
 public:
    void follow(const Step& step, const Engine& engine) {
        ASSERT_TRUE(
            std::ranges::is_sorted(step.upsert, {}, [](const auto& service) { return service->key; }));
        ASSERT_TRUE(std::ranges::is_sorted(step.remove));
        for (const auto& service : step.upsert) {
            const auto [held, is_new] = held_.desired.services.try_emplace(service->key, *service);
            ASSERT_TRUE(is_new || held->second != *service) << service->key.to_string() << " did not change";
            held->second = *service;
            ASSERT_EQ(engine.desired().at(service->key), service);
        }
        for (const model::ServiceKey& key : step.remove) {
            ASSERT_EQ(held_.desired.services.erase(key), 1U) << key.to_string();
        }
        if (step.environment) {
            ASSERT_NE(held_.desired.environment, *step.environment);
            held_.desired.environment = *step.environment;
        }
        if (step.backends) {
            through_nodes_ = step.backends->through_nodes;
        }
        for (const ObjectNotice& notice : step.gone) {
            ASSERT_EQ(notices_.erase(notice), 1U) << notice.notice.message;
        }
        for (const ObjectNotice& notice : step.appeared) {
            ASSERT_TRUE(notices_.insert(notice).second) << notice.notice.message;
        }
        held_.notices.assign(notices_.begin(), notices_.end());
    }
    [[nodiscard]] const Outcome& held() const { return held_; }
    // As last reported; without meaning in node mode.
    [[nodiscard]] std::optional<bool> through_nodes() const { return through_nodes_; }

 private:
    Outcome held_;
    std::set<ObjectNotice> notices_;
    std::optional<bool> through_nodes_;
};

Policy random_policy(Prng& prng) {
    Policy policy{.allowed_external_cidrs = {cidr("203.0.113.0/24"), cidr("2001:db8::/32")}};
    policy.lb_vip_scope = prng.one_in(2) ? Policy::VipScope::All : Policy::VipScope::Default;
    policy.node_port_primary_only = prng.one_in(4);
    policy.serve_cluster_ips = prng.one_in(2);
    policy.topology_no_match_drops = prng.one_in(2);
    policy.backend_mode = any_of<Policy::BackendMode>(
        prng, {Policy::BackendMode::Pod, Policy::BackendMode::Node, Policy::BackendMode::Auto});
    policy.node_weight_ready_pods = prng.one_in(2);
    policy.serve_health_checks = !prng.one_in(4);
    policy.rejects_closed_vip_ports = prng.one_in(2);
    policy.ignore_exclude_label = prng.one_in(4);
    policy.ignore_network_unavailable = prng.one_in(4);
    if (prng.one_in(4)) {
        policy.cluster_cidrs = {cidr("10.244.0.0/16")};
    }
    if (prng.one_in(4)) {
        policy.disabled_protocols = {Protocol::Udp, Protocol::Sctp};
    }
    policy.external_ips_annotation = prng.one_in(2);
    if (prng.one_in(2)) {
        policy.allowed_external_cidrs.clear();
    }
    for (uint64_t i = prng.below(3); i > 0; --i) {
        ExternalIpRule& rule = policy.external_ip_rules.emplace_back();
        rule.all_namespaces = prng.one_in(4);
        rule.namespaces = {any_of<std::string>(prng, {"a", "b"})};
        rule.cidrs = {
            cidr(any_of<std::string>(prng, {"203.0.113.0/24", "203.0.113.0/30", "198.51.100.1/32"}))};
        if (prng.one_in(2)) {
            rule.services =
                annotations::Selector::parse(any_of<std::string>(prng, {"team=blue", "team!=blue"})).value();
        }
    }
    return policy;
}

TEST(Engine, HoldsWhatTheObjectsComeTo_GEN006_SVC018_EP006_XIP006) {
    Prng prng;
    size_t changed_by_one_object = 0;
    for (int sequence = 0; sequence < 1'500; ++sequence) {
        Policy policy = random_policy(prng);
        Engine engine(policy);
        Follower follower;
        std::optional<model::GatewayIdentity> gateway;
        for (int step = 0; step < 40; ++step) {
            SCOPED_TRACE("sequence " + std::to_string(sequence) + ", step " + std::to_string(step));
            if (prng.one_in(gateway ? 20 : 5)) {
                gateway = random_gateway(prng);
                ASSERT_NO_FATAL_FAILURE(follower.follow(engine.set_gateway(*gateway), engine));
            } else if (prng.one_in(10)) {
                Policy other = random_policy(prng);
                if (!prng.one_in(4)) {  // as when only the file of rules changes
                    other.lb_vip_scope = policy.lb_vip_scope;
                    other.node_port_primary_only = policy.node_port_primary_only;
                    other.external_ips_annotation = policy.external_ips_annotation;
                }
                policy = std::move(other);
                ASSERT_NO_FATAL_FAILURE(follower.follow(engine.set_policy(policy), engine));
            } else {
                const kube::Changes changes = random_changes(prng, engine.objects());
                const Step made = engine.apply(changes);
                ASSERT_NO_FATAL_FAILURE(follower.follow(made, engine));
                const bool is_one =
                    changes.services.size() + changes.slices.size() + changes.nodes.size() == 1;
                changed_by_one_object += is_one && made.upsert.size() + made.remove.size() > 1 ? 1U : 0U;
            }
            if (!gateway) {
                ASSERT_EQ(follower.held(), Outcome());
                continue;
            }
            const Outcome expected = from_scratch(engine.objects(), *gateway, policy);
            ASSERT_EQ(lines_of(follower.held()), lines_of(expected));
            ASSERT_EQ(follower.held(), expected);
            ASSERT_EQ(engine.desired().size(), expected.desired.services.size());
            ASSERT_EQ(engine.environment(), expected.desired.environment);
            if (gateway->mode == model::GatewayMode::External) {
                ASSERT_EQ(follower.through_nodes(), chooses_nodes(engine.objects(), *gateway, policy));
            }
            if (prng.one_in(20)) {
                const auto before = engine.desired();
                ASSERT_TRUE(engine.audit().empty());
                ASSERT_EQ(engine.desired(), before);  // the same pointers
            }
        }
    }
    // The sequences include changes of one Service that affect another.
    EXPECT_GT(changed_by_one_object, 1'000U);
}

// The same objects give the same result and the same audit in any order of arrival.
TEST(Engine, OrderOfArrivalMeansNothing_GEN006) {
    Prng prng;
    for (int i = 0; i < 1'000; ++i) {
        const Policy policy = random_policy(prng);
        const model::GatewayIdentity gateway = random_gateway(prng);
        Engine first(policy);
        first.set_gateway(gateway);
        for (int step = 0; step < 20; ++step) {
            first.apply(random_changes(prng, first.objects()));
        }
        std::vector<kube::Changes> pieces;
        for (const auto& [name, service] : first.objects().services) {
            pieces.emplace_back().services[name] = service;
        }
        for (const auto& [name, slice] : first.objects().slices) {
            pieces.emplace_back().slices[name] = slice;
        }
        for (const auto& [name, node] : first.objects().nodes) {
            pieces.emplace_back().nodes[name] = node;
        }
        Engine second(policy);
        second.set_gateway(gateway);
        for (size_t left = pieces.size(); left > 0; --left) {
            std::swap(pieces[left - 1], pieces[prng.below(left)]);
            second.apply(pieces[left - 1]);
        }
        ASSERT_EQ(first.desired().size(), second.desired().size()) << "input " << i;
        for (const auto& [key, service] : first.desired()) {
            ASSERT_TRUE(second.desired().contains(key)) << "input " << i << ": " << key.to_string();
            ASSERT_EQ(*second.desired().at(key), *service) << "input " << i << ": " << key.to_string();
        }
        ASSERT_EQ(first.environment(), second.environment()) << "input " << i;
    }
}

}  // namespace engine_property_test
}  // namespace penstock::semantics::testing
