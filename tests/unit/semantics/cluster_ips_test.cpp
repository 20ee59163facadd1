// SPDX-License-Identifier: Apache-2.0
// Served ClusterIPs, and clients inside the cluster: the backend set for each.
#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace cluster_ips_test {

using lb::EmptyAction;
using lb::SourceMode;

constexpr const char* kWeb = "default/web/TCP";

// One line for each frontend and origin with a set: "C outside: translated 10.244.0.1 10.244.0.2", "X inside:
// kept no local".
Lines ways(const Outcome& outcome) {
    const model::Service* service = find(outcome, kWeb);
    if (service == nullptr) {
        return {"no such service port"};
    }
    Lines lines;
    const auto tell = [&](const model::Frontend& frontend, const char* origin, uint8_t index) {
        const model::BackendSet& set = service->sets.at(index);
        std::string line = class_letter(frontend.cls) + " " + origin +
                           (set.source == SourceMode::Keep ? ": kept" : ": translated");
        for (const model::Endpoint& one : set.endpoints) {
            line += " " + one.address.to_string();
        }
        if (set.endpoints.empty()) {
            line += set.when_empty == EmptyAction::Reject ? " reject"
                    : set.when_empty == EmptyAction::Drop ? " drop"
                                                          : " no local";
        }
        lines.push_back(line);
    };
    for (const model::Frontend& frontend : service->frontends) {
        tell(frontend, "outside", frontend.set);
        if (frontend.inside_set) {
            tell(frontend, "inside", *frontend.inside_set);
        }
    }
    return lines;
}

// ClusterIP and external IP, endpoints on this node and on others, known Pod CIDRs.
World served_world() {
    World world;
    world.policy.serve_cluster_ips = true;
    world.objects.nodes["edge-1"].pod_cidrs = {"10.244.0.0/16"};
    world.service("default/web", "10.96.0.1").external_ips = {"203.0.113.7"};
    world.slice("s", "default/web", {endpoint("10.244.0.1", "edge-1"), endpoint("10.244.0.2", "edge-2")});
    return world;
}

kube::Service& web(World& world) {
    return world.objects.services.at(object_name("default/web"));
}

TEST(ClusterIps, AreServedOnlyWhenAsked_SVC013) {
    World world = served_world();
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/web/TCP C 10.96.0.1 80", "default/web/TCP X 203.0.113.7 80"}));
    world.policy.serve_cluster_ips = false;
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP X 203.0.113.7 80"});
    web(world).external_ips.clear();
    EXPECT_EQ(keys(world.evaluate()), Lines{});
    world.policy.serve_cluster_ips = true;
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP C 10.96.0.1 80"});
    EXPECT_EQ(ways(world.evaluate()),
              (Lines{"C outside: translated 10.244.0.1 10.244.0.2", "C inside: kept 10.244.0.1 10.244.0.2"}));
}

TEST(ClusterIps, OfHeadlessAndForeignServicesAreNot_SVC013_SVC002_SVC004) {
    World world = served_world();
    web(world).external_ips.clear();
    web(world).cluster_ip = "None";
    web(world).cluster_ips = {"None"};
    EXPECT_EQ(keys(world.evaluate()), Lines{});
    World foreign = served_world();
    web(foreign).meta.labels["service.kubernetes.io/service-proxy-name"] = "other";
    EXPECT_EQ(keys(foreign.evaluate()), Lines{});
}

TEST(ClusterIps, OfBothFamilies_SVC013_DUAL001) {
    World world = served_world();
    web(world).external_ips.clear();
    web(world).cluster_ips = {"10.96.0.1", "fd00:96::1"};
    web(world).ip_families = {"IPv4", "IPv6"};
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/web/TCP C 10.96.0.1 80", "default/web/TCP C fd00:96::1 80"}));
    const Outcome outcome = world.evaluate();
    const model::Service& service = *find(outcome, kWeb);
    for (const model::Frontend& frontend : service.frontends) {
        EXPECT_EQ(service.sets.at(frontend.set).family, frontend.family);
        EXPECT_EQ(service.sets.at(frontend.inside_set.value()).family, frontend.family);
    }
}

TEST(ClusterIps, AreProtectedEvenWhenNotServed_SVC014_XIP006_EP006) {
    World world = served_world();
    world.policy.serve_cluster_ips = false;
    kube::Service& other = world.service("default/other", "203.0.113.9");
    other.meta.labels["service.kubernetes.io/headless"] = "";
    web(world).external_ips = {"203.0.113.9"};
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web ExternalIPNotAllowed"});
    world.slice("t", "default/web", {endpoint("203.0.113.9")});
    EXPECT_EQ(excluded(world.evaluate(), kWeb), Lines{"203.0.113.9 forbidden"});
}

TEST(ClusterIps, ALoadBalancerIpAtTheSamePlaceIsTheStricter_SVC019) {
    World world = served_world();
    web(world).external_ips.clear();
    web(world).type = "LoadBalancer";
    web(world).ingress = {{.ip = "10.96.0.1"}};
    web(world).load_balancer_source_ranges = {"192.0.2.0/24"};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP L 10.96.0.1 80 filtered"});
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
}

struct WayRow {
    const char* name;
    const char* external;
    const char* internal;
    std::vector<kube::Endpoint> endpoints;
    Lines ways;
};

const kube::Endpoint kLocal = endpoint("10.244.0.1", "edge-1");
const kube::Endpoint kRemote = endpoint("10.244.0.2", "edge-2");

TEST(ClusterIps, EachPolicyForItsOwnFrontends_ETP009_ETP006_NAT004_ETP002) {
    const WayRow rows[] = {
        {"both Cluster",
         "Cluster",
         "Cluster",
         {kLocal, kRemote},
         {"C outside: translated 10.244.0.1 10.244.0.2", "C inside: kept 10.244.0.1 10.244.0.2",
          "X outside: translated 10.244.0.1 10.244.0.2"}},
        {"internal Local",
         "Cluster",
         "Local",
         {kLocal, kRemote},
         {"C outside: translated 10.244.0.1", "C inside: kept 10.244.0.1",
          "X outside: translated 10.244.0.1 10.244.0.2"}},
        {"internal Local, only elsewhere",
         "Cluster",
         "Local",
         {kRemote},
         {"C outside: translated no local", "C inside: kept no local", "X outside: translated 10.244.0.2"}},
        {"internal Local, nobody",
         "Cluster",
         "Local",
         {},
         {"C outside: translated reject", "C inside: kept reject", "X outside: translated reject"}},
        {"external Local",
         "Local",
         "Cluster",
         {kLocal, kRemote},
         {"C outside: translated 10.244.0.1 10.244.0.2", "C inside: kept 10.244.0.1 10.244.0.2",
          "X outside: kept 10.244.0.1", "X inside: kept 10.244.0.1 10.244.0.2"}},
        {"external Local, only elsewhere",
         "Local",
         "Cluster",
         {kRemote},
         {"C outside: translated 10.244.0.2", "C inside: kept 10.244.0.2", "X outside: kept no local",
          "X inside: kept 10.244.0.2"}},
    };
    for (const WayRow& row : rows) {
        World world = served_world();
        web(world).external_traffic_policy = row.external;
        web(world).internal_traffic_policy = row.internal;
        world.objects.slices.at(object_name("default/s")).endpoints = row.endpoints;
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(ways(outcome), row.ways) << row.name;
        const auto& sets = find(outcome, kWeb)->sets;
        for (size_t i = 0; i < sets.size(); ++i) {
            EXPECT_EQ(std::ranges::count(sets, sets[i]), 1) << row.name << ": a set twice";
        }
    }
}

// Without Pod CIDRs no client counts as a Pod. The set for clients inside serves the gateway's own host,
// which also reaches endpoints on other nodes.
TEST(ClusterIps, UnknownPodCidrsKeepNobodysAddress_NAT004_ETP006) {
    World world = served_world();
    world.objects.nodes["edge-1"].pod_cidrs.clear();
    web(world).external_traffic_policy = "Local";
    EXPECT_EQ(ways(world.evaluate()),
              (Lines{"C outside: translated 10.244.0.1 10.244.0.2", "X outside: kept 10.244.0.1",
                     "X inside: translated 10.244.0.1 10.244.0.2"}));
}

TEST(ClusterIps, MasqueradeAllTranslatesPodsToo_NAT004) {
    World world = served_world();
    world.policy.masquerade_all = true;
    web(world).external_traffic_policy = "Local";
    EXPECT_EQ(ways(world.evaluate()),
              (Lines{"C outside: translated 10.244.0.1 10.244.0.2", "X outside: kept 10.244.0.1",
                     "X inside: kept 10.244.0.1 10.244.0.2"}));
}

TEST(ClusterIps, InternalPolicyIsReadOnlyWhereTheyAreServed_ETP009_GEN002) {
    World world = served_world();
    web(world).internal_traffic_policy = "Sideways";
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web UnknownValue"});
    EXPECT_EQ(ways(world.evaluate())[0], "C outside: translated 10.244.0.1 10.244.0.2");
    world.policy.serve_cluster_ips = false;
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
}

TEST(ClusterIps, AloneLeaveTheExternalPolicyUnread_ETP008) {
    World world = served_world();
    web(world).external_ips.clear();
    web(world).external_traffic_policy = "Local";
    EXPECT_EQ(ways(world.evaluate()),
              (Lines{"C outside: translated 10.244.0.1 10.244.0.2", "C inside: kept 10.244.0.1 10.244.0.2"}));
    web(world).external_traffic_policy = "Sideways";
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
}

TEST(ExternalMode, WithoutSymmetricReturnTheAddressIsLostAndSaidSo_ETP004) {
    World world = served_world();
    world.policy.serve_cluster_ips = false;
    world.policy.symmetric_return = false;
    web(world).external_traffic_policy = "Local";
    // Endpoints on the gateway's own node reply through the gateway in any network.
    EXPECT_EQ(ways(world.evaluate())[0], "X outside: kept 10.244.0.1");
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
    world.gateway = {.gateway_name = "gw", .mode = model::GatewayMode::External};
    EXPECT_EQ(ways(world.evaluate()), Lines{"X outside: translated 10.244.0.1 10.244.0.2"});
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web SourceIPNotPreserved"});
    world.policy.symmetric_return = true;
    EXPECT_EQ(ways(world.evaluate()), Lines{"X outside: kept 10.244.0.1 10.244.0.2"});
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
}

}  // namespace cluster_ips_test
}  // namespace penstock::semantics::testing
