// SPDX-License-Identifier: Apache-2.0
// The whole function: isolation, purity, and the shape of its result.
#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace evaluate_test {

// Errors in one Service, its slice and a Node, next to 100 valid ones.
World world_of_a_hundred() {
    World world;
    for (int i = 0; i < 100; ++i) {
        const std::string name = "default/good-" + std::to_string(i);
        world.service(name, "10.96.1." + std::to_string(i)).external_ips = {"203.0.113." +
                                                                            std::to_string(i + 1)};
        world.slice("good-" + std::to_string(i), name, {endpoint("10.244.1." + std::to_string(i))});
    }
    return world;
}

TEST(Evaluate, BadObjectsCostOnlyThemselves_GEN001_GEN002) {
    World world = world_of_a_hundred();
    const Outcome clean = world.evaluate();
    ASSERT_EQ(frontends(clean).size(), 100U);
    ASSERT_TRUE(clean.notices.empty());

    kube::Service& bad = world.service("default/aaa-bad");
    bad.type = "Weird";
    bad.ip_families = {"IPv4", "IPv9"};
    bad.external_ips = {"nonsense", "203.0.113.300", std::string(100'000, '9')};
    bad.ports = {{.name = "UPPER", .port = 80},
                 {.name = "p", .protocol = "QUIC", .port = 80},
                 {.name = "n", .port = -1}};
    bad.external_traffic_policy = "Neither";
    bad.load_balancer_source_ranges = {"x"};
    bad.meta.annotations = {{"penstock.io/scheduler", "\xff"}, {"penstock.io/no-endpoints-action", "?"}};
    bad.meta.creation_timestamp = "0000-99-99";
    world.slice("bad", "default/aaa-bad", {kube::Endpoint{}}, -1, "IPv4");
    world.slice("worse", "default/aaa-bad", {}, 1, "Carrier pigeon");
    world.objects.nodes["bad"].pod_cidrs = {"/", "1.2.3.4"};
    world.objects.nodes["bad"].addresses = {{.type = "InternalIP", .address = "?"}};

    const Outcome outcome = world.evaluate();
    EXPECT_EQ(outcome.desired, clean.desired);
    EXPECT_FALSE(outcome.notices.empty());
    for (const ObjectNotice& notice : outcome.notices) {
        EXPECT_EQ(notice.object.name.find("good"), std::string::npos) << notice.notice.message;
        EXPECT_LE(notice.notice.message.size(), 1024U);  // EVT-001
    }
    // After the repair it is served like any other Service.
    bad = kube::Service();
    bad.cluster_ip = "10.96.2.1";
    bad.external_ips = {"203.0.113.201"};
    bad.ports = {{.port = 80}};
    EXPECT_EQ(frontends(world.evaluate()).size(), 101U);
}

TEST(Evaluate, EveryNoticeOfAServicePortIsAlsoTheServices) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"198.51.100.7"};
    web.ports = {{.name = "a", .port = 80}, {.name = "b", .port = 81}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(keys(outcome), (Lines{"default/web:a/TCP", "default/web:b/TCP"}));
    for (const auto& [key, service] : outcome.desired.services) {
        ASSERT_EQ(service.notices.size(), 1U);
        EXPECT_EQ(service.notices[0].reason, "ExternalIPNotAllowed");
    }
    // One notice, although two ports have the error.
    EXPECT_EQ(outcome.notices.size(), 1U);
}

TEST(Evaluate, ThousandsOfBadEndpointsStayBounded_EVT001) {
    World world;
    world.service("default/web").external_ips = {"203.0.113.7"};
    std::vector<kube::Endpoint> many;
    for (int i = 0; i < 5'000; ++i) {
        many.push_back(endpoint("127.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)));
    }
    world.slice("s", "default/web", many);
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, "default/web/TCP"), Lines{});
    EXPECT_LT(outcome.notices.size(), 50U);
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web InvalidEndpointAddress"});
}

TEST(Evaluate, ResultIsCanonical_GEN006) {
    World world;
    kube::Service& web = world.service("default/web");
    web.type = "LoadBalancer";
    web.ip_families = {"IPv6", "IPv4"};
    web.ingress = {{.ip = "2001:db8::9"}, {.ip = "198.51.100.7"}};
    web.external_ips = {"203.0.113.9", "2001:db8::7", "203.0.113.10"};
    web.ports = {{.name = "z", .port = 81, .node_port = 30081},
                 {.name = "a", .port = 80, .node_port = 30080}};
    world.slice("s", "default/web", {endpoint("10.244.0.9"), endpoint("10.244.0.10"), endpoint("10.244.0.1")})
        .ports = {{.name = "a", .port = 80}, {.name = "z", .port = 81}};
    const Outcome first = world.evaluate();
    EXPECT_EQ(world.evaluate(), first);
    EXPECT_EQ(endpoints(first, "default/web:a/TCP"),
              (Lines{"10.244.0.1 80", "10.244.0.9 80", "10.244.0.10 80"}));

    std::ranges::reverse(web.ip_families);
    std::ranges::reverse(web.ingress);
    std::ranges::reverse(web.external_ips);
    std::ranges::reverse(web.ports);
    kube::EndpointSlice& slice = world.objects.slices.begin()->second;
    std::ranges::reverse(slice.endpoints);
    std::ranges::reverse(slice.ports);
    EXPECT_EQ(world.evaluate(), first);
}

TEST(Evaluate, TheKubernetesDocumentationsExternalIp_XIP001) {
    World world;
    world.policy.allowed_external_cidrs = {cidr("80.11.12.10/32")};
    kube::Service& service = world.service("default/my-service");
    service.cluster_ip.clear();
    service.cluster_ips.clear();
    service.awaits_cluster_ip = false;
    service.selector = {{"app.kubernetes.io/name", "MyApp"}};
    service.ports = {{.name = "http", .protocol = "TCP", .port = 80, .target_port = "9376"}};
    service.external_ips = {"80.11.12.10"};
    world.slice("my-service-1", "default/my-service", {endpoint("10.244.0.1"), endpoint("10.244.0.2")})
        .ports = {{.name = "http", .port = 9376}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/my-service:http/TCP X 80.11.12.10 80"});
    EXPECT_EQ(endpoints(outcome, "default/my-service:http/TCP"),
              (Lines{"10.244.0.1 9376", "10.244.0.2 9376"}));
    EXPECT_TRUE(outcome.notices.empty());
}

}  // namespace evaluate_test
}  // namespace penstock::semantics::testing
