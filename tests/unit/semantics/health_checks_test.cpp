// SPDX-License-Identifier: Apache-2.0
// healthCheckNodePort: which Services have one, its endpoint count, and the owner of a port that two Services
// request.
#include "control/semantics/health_checks.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace health_checks_test {

kube::Service& local_service(World& world, const std::string& name, int64_t health_check_port = 31000) {
    kube::Service& service = world.service(name);
    service.type = "LoadBalancer";
    service.external_traffic_policy = "Local";
    service.health_check_node_port = health_check_port;
    service.ports[0].node_port = 30080 + static_cast<int64_t>(world.objects.services.size());
    return service;
}

// {"default/web:a/TCP 31000 2"}: the service port, its health check port and the endpoint count.
Lines checks(const Outcome& outcome) {
    Lines lines;
    for (const auto& [key, service] : outcome.desired.services) {
        if (service.health_check) {
            lines.push_back(key.to_string() + " " + std::to_string(service.health_check->port) + " " +
                            std::to_string(service.health_check->local_endpoints));
        }
    }
    return lines;
}

TEST(HealthChecks, OnlyForLoadBalancersOfPolicyLocalOnANode_HC001) {
    struct Row {
        const char* name;
        void (*change)(World&, kube::Service&);
        bool served;
    };
    const Row rows[] = {
        {"as it should be", [](World&, kube::Service&) {}, true},
        {"NodePort", [](World&, kube::Service& web) { web.type = "NodePort"; }, false},
        {"ClusterIP", [](World&, kube::Service& web) { web.type = "ClusterIP"; }, false},
        {"policy Cluster", [](World&, kube::Service& web) { web.external_traffic_policy = "Cluster"; },
         false},
        {"no port", [](World&, kube::Service& web) { web.health_check_node_port = 0; }, false},
        {"no port number", [](World&, kube::Service& web) { web.health_check_node_port = 70'000; }, false},
        {"switched off", [](World& world, kube::Service&) { world.policy.serve_health_checks = false; },
         false},
        {"external", [](World& world, kube::Service&) { world.gateway.mode = model::GatewayMode::External; },
         false},
        {"headless", [](World&, kube::Service& web) { web.cluster_ip = "None"; }, false},
        {"of another class", [](World&, kube::Service& web) { web.load_balancer_class = "other.io/lb"; },
         true},
        {"without any other frontend", [](World&, kube::Service& web) { web.ports[0].node_port = 0; }, true},
    };
    for (const Row& row : rows) {
        World world;
        row.change(world, local_service(world, "default/web"));
        EXPECT_EQ(checks(world.evaluate()), row.served ? Lines{"default/web/TCP 31000 0"} : Lines{})
            << row.name;
    }
}

TEST(HealthChecks, StandsOnTheFirstPortByKey_HC001) {
    World world;
    local_service(world, "default/web").ports = {{.name = "z", .port = 80},
                                                 {.name = "a", .protocol = "UDP", .port = 81}};
    EXPECT_EQ(checks(world.evaluate()), Lines{"default/web:a/UDP 31000 0"});
}

TEST(HealthChecks, CountsReadyLocalAddressesOverPortsAndFamilies_EP019_HC004) {
    World world;
    kube::Service& web = local_service(world, "default/web");
    web.ip_families = {"IPv4", "IPv6"};
    web.ports = {{.name = "http", .port = 80}, {.name = "https", .port = 443}};
    kube::EndpointSlice& both =
        world.slice("four", "default/web",
                    {endpoint("10.0.0.1", "edge-1"), endpoint("10.0.0.2", "edge-2"),
                     unready_endpoint("10.0.0.3", "edge-1"), endpoint("10.0.0.4", "edge-1"),
                     endpoint("10.0.0.5"), endpoint("127.0.0.1", "edge-1")});
    both.ports = {{.name = "http", .port = 8080}, {.name = "https", .port = 8443}};
    world.slice("six", "default/web", {endpoint("fd00::1", "edge-1")}, 8080, "IPv6").ports = {
        {.name = "https", .port = 8443}};
    EXPECT_EQ(checks(world.evaluate()), Lines{"default/web:http/TCP 31000 3"});
}

TEST(HealthChecks, TheTerminatingFallbackServesButCountsNothing_HC004_EP019) {
    World world;
    local_service(world, "default/web");
    world.slice("web-1", "default/web",
                {terminating_endpoint("10.0.0.1", "edge-1"), endpoint("10.0.0.2", "edge-2")});
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(checks(outcome), Lines{"default/web/TCP 31000 0"});
    EXPECT_EQ(endpoints(outcome, "default/web/TCP"), Lines{"10.0.0.1 8080"});
}

TEST(HealthChecks, OfTwoServicesTheOlderHasThePort_HC005_SVC018) {
    World world;
    local_service(world, "default/a").meta.creation_timestamp = "2024-05-02T10:00:00Z";
    local_service(world, "default/b").meta.creation_timestamp = "2024-05-01T10:00:00Z";
    Outcome outcome = world.evaluate();
    EXPECT_EQ(checks(outcome), Lines{"default/b/TCP 31000 0"});
    EXPECT_EQ(reasons(outcome), Lines{"Service default/a FrontendConflict"});
    EXPECT_EQ(message(outcome, reason::kFrontendConflict),
              "healthCheckNodePort 31000 is not answered: the port belongs to default/b "
              "(healthCheckNodePort), which is older");
    // The other frontends of both are not affected. When the owner is removed, the loser becomes the owner.
    EXPECT_EQ(frontends(outcome).size(), 2U);
    world.objects.services.erase(object_name("default/b"));
    outcome = world.evaluate();
    EXPECT_EQ(checks(outcome), Lines{"default/a/TCP 31000 0"});
    EXPECT_EQ(reasons(outcome), Lines{});
}

TEST(HealthChecks, ANodePortOfTheSameNumberIsTheSamePort_HC005_SVC018) {
    World world;
    local_service(world, "default/a").meta.creation_timestamp = "2024-05-02T10:00:00Z";
    kube::Service& other = world.service("default/b");
    other.type = "NodePort";
    other.ports[0].node_port = 31000;
    other.meta.creation_timestamp = "2024-05-01T10:00:00Z";
    EXPECT_EQ(checks(world.evaluate()), Lines{});
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/a FrontendConflict"});
    other.ports[0].protocol = "UDP";
    EXPECT_EQ(checks(world.evaluate()), Lines{"default/a/TCP 31000 0"});
    // The Service's own NodePort has precedence over its health check.
    world.objects.services[object_name("default/a")].ports[0].node_port = 31000;
    EXPECT_EQ(checks(world.evaluate()), Lines{});
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/a/TCP N IPv4 31000", "default/b/UDP N IPv4 31000"}));
}

}  // namespace health_checks_test
}  // namespace penstock::semantics::testing
