// SPDX-License-Identifier: Apache-2.0
// NodePort frontends and the addresses that serve them.
#include "control/semantics/node_ports.hpp"

#include <gtest/gtest.h>

#include "control/semantics/engine.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace node_ports_test {

kube::Service& node_port_service(World& world, const std::string& name, int64_t node_port) {
    kube::Service& service = world.service(name);
    service.type = "NodePort";
    service.ports[0].node_port = node_port;
    return service;
}

TEST(NodePorts, ServedForBothTypesInNodeMode_NODEPORT001) {
    struct Row {
        const char* type;
        int64_t node_port;
        model::GatewayMode mode;
        Lines expected;
    };
    const Row rows[] = {
        {"NodePort", 30080, model::GatewayMode::Node, {"default/web/TCP N IPv4 30080"}},
        {"LoadBalancer", 30080, model::GatewayMode::Node, {"default/web/TCP N IPv4 30080"}},
        {"ClusterIP", 30080, model::GatewayMode::Node, {}},
        {"NodePort", 0, model::GatewayMode::Node, {}},
        {"NodePort", 30080, model::GatewayMode::External, {}},
        {"LoadBalancer", 30080, model::GatewayMode::External, {}},
    };
    for (const Row& row : rows) {
        World world;
        node_port_service(world, "default/web", row.node_port).type = row.type;
        world.gateway.mode = row.mode;
        EXPECT_EQ(frontends(world.evaluate()), row.expected)
            << row.type << " " << row.node_port << " " << to_string(row.mode);
    }
}

TEST(NodePorts, OneForEachFamilyEachWithItsOwnEndpoints_NODEPORT001_DUAL002) {
    World world;
    kube::Service& web = node_port_service(world, "default/web", 30080);
    web.ip_families = {"IPv6", "IPv4"};
    world.slice("four", "default/web", {endpoint("10.244.0.1")});
    world.slice("six", "default/web", {endpoint("fd00::1")}, 8080, "IPv6");
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), (Lines{"default/web/TCP N IPv4 30080", "default/web/TCP N IPv6 30080"}));
    const model::Service* found = find(outcome, "default/web/TCP");
    ASSERT_EQ(found->sets.size(), 2U);
    EXPECT_EQ(endpoints(outcome, "default/web/TCP", 0), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(endpoints(outcome, "default/web/TCP", 1), Lines{"fd00::1 8080"});
    for (const model::Frontend& frontend : found->frontends) {
        EXPECT_EQ(found->sets[frontend.set].family, frontend.family);
        EXPECT_EQ(frontend.address, IpAddr());
    }
}

TEST(NodePorts, AnyNumberAndProtocol_NODEPORT005) {
    for (const int64_t number : {1, 80, 29999, 32768, 65535}) {
        World world;
        node_port_service(world, "default/web", number).ports[0].protocol = "SCTP";
        EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/SCTP N IPv4 " + std::to_string(number)});
    }
}

TEST(NodePorts, OneNumberForThreeProtocols_NODEPORT001_SVC008) {
    World world;
    kube::Service& web = node_port_service(world, "default/web", 0);
    web.ports = {{.name = "t", .protocol = "TCP", .port = 53, .node_port = 30053},
                 {.name = "u", .protocol = "UDP", .port = 53, .node_port = 30053},
                 {.name = "s", .protocol = "SCTP", .port = 53, .node_port = 30053}};
    EXPECT_EQ(frontends(world.evaluate()).size(), 3U);
}

TEST(NodePorts, NumberTakenTwiceBelongsToTheOlder_SVC018) {
    World world;
    node_port_service(world, "default/a", 30080).meta.creation_timestamp = "2024-05-02T10:00:00Z";
    node_port_service(world, "default/b", 30080).meta.creation_timestamp = "2024-05-01T10:00:00Z";
    node_port_service(world, "default/c", 30080).ports[0].protocol = "UDP";
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), (Lines{"default/b/TCP N IPv4 30080", "default/c/UDP N IPv4 30080"}));
    EXPECT_EQ(reasons(outcome), Lines{"Service default/a FrontendConflict"});
}

TEST(NodePorts, NumberTakenTwiceInsideOneService_SVC018) {
    World world;
    kube::Service& web = node_port_service(world, "default/web", 0);
    web.ports = {{.name = "a", .port = 80, .node_port = 30080},
                 {.name = "b", .port = 81, .node_port = 30080}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/web:a/TCP N IPv4 30080"});
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web FrontendConflict"});
}

TEST(NodePorts, NeverMeetAddressesOfOtherClasses_NODEPORT004) {
    World world;
    node_port_service(world, "default/a", 80);
    world.service("default/b").external_ips = {"203.0.113.7"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), (Lines{"default/a/TCP N IPv4 80", "default/b/TCP X 203.0.113.7 80"}));
    EXPECT_EQ(reasons(outcome), Lines{});
}

TEST(NodePortAddresses, AreTheNodesOwnAndThePolicys_NODEPORT002) {
    World world;
    world.objects.nodes["edge-1"].addresses = {{.type = "Hostname", .address = "edge-1"},
                                               {.type = "ExternalIP", .address = "198.51.100.9"},
                                               {.type = "InternalIP", .address = "192.0.2.9"},
                                               {.type = "InternalIP", .address = "2001:DB8::9"},
                                               {.type = "InternalIP", .address = "bad"}};
    world.objects.nodes["edge-2"].addresses = {{.type = "InternalIP", .address = "192.0.2.10"}};
    world.policy.node_port_within = {cidr("192.0.2.0/24"), cidr("10.0.0.0/8"), cidr("192.0.2.0/24")};
    Outcome outcome = world.evaluate();
    EXPECT_EQ(outcome.desired.environment.node_ports.node_addresses,
              (std::vector{ip("192.0.2.9"), ip("198.51.100.9"), ip("2001:db8::9")}));
    EXPECT_EQ(outcome.desired.environment.node_ports.within,
              (std::vector{cidr("10.0.0.0/8"), cidr("192.0.2.0/24")}));
    EXPECT_FALSE(outcome.desired.environment.node_ports.primary_only);
    EXPECT_EQ(reasons(outcome), Lines{"Node edge-1 InvalidNodeAddress"});

    world.policy.node_port_primary_only = true;
    outcome = world.evaluate();
    EXPECT_TRUE(outcome.desired.environment.node_ports.primary_only);
    EXPECT_EQ(outcome.desired.environment.node_ports.node_addresses,
              (std::vector{ip("192.0.2.9"), ip("2001:db8::9")}));
}

TEST(NodePortAddresses, MissingNodeIsSaid_NODEPORT002) {
    World world;
    world.gateway.node_name = "edge-7";
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Node edge-7 NodeNotFound"});
}

TEST(NodePortAddresses, NoneInExternalMode_NODEPORT002) {
    World world;
    world.gateway.mode = model::GatewayMode::External;
    world.objects.nodes["edge-1"].addresses = {{.type = "InternalIP", .address = "192.0.2.9"}};
    world.policy.node_port_within = {cidr("192.0.2.0/24")};
    EXPECT_EQ(world.evaluate().desired.environment.node_ports, model::NodePortAddresses{});
}

TEST(NodePortAddresses, AZeroCidrSwallowsTheOthersOfItsFamily_NODEPORT003) {
    World world;
    world.policy.node_port_within = {cidr("192.0.2.0/24"), cidr("0.0.0.0/0"), cidr("2001:db8::/32"),
                                     cidr("10.0.0.0/8")};
    EXPECT_EQ(world.evaluate().desired.environment.node_ports.within,
              (std::vector{cidr("0.0.0.0/0"), cidr("2001:db8::/32")}));
}

TEST(NodePorts, SourceRangesNeverFilterThem_NODEPORT007) {
    World world;
    kube::Service& web = node_port_service(world, "default/web", 30080);
    web.type = "LoadBalancer";
    web.ingress = {{.ip = "198.51.100.7"}};
    web.load_balancer_source_ranges = {"10.0.0.0/8"};
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/web/TCP L 198.51.100.7 80 filtered", "default/web/TCP N IPv4 30080"}));
}

// Once to an older and once to a younger Service. The age does not matter as long as only one of them
// requests the number.
TEST(NodePorts, ANumberMovesToAnotherServiceInOneChange_NODEPORT006_SVC016) {
    for (const bool to_the_older : {false, true}) {
        World world;
        kube::Service& a = node_port_service(world, "default/a", 30080);
        kube::Service& b = node_port_service(world, "default/b", 30081);
        (to_the_older ? b : a).meta.creation_timestamp = "2024-05-01T10:00:00Z";
        (to_the_older ? a : b).meta.creation_timestamp = "2024-05-02T10:00:00Z";
        Engine engine(world.policy);
        engine.set_gateway(world.gateway);
        const auto both = [&] {
            kube::Changes changes;
            changes.services[object_name("default/a")] = std::make_shared<const kube::Service>(a);
            changes.services[object_name("default/b")] = std::make_shared<const kube::Service>(b);
            return changes;
        };
        engine.apply(both());
        a.ports[0].node_port = 0;
        b.ports[0].node_port = 30080;
        const Step step = engine.apply(both());
        // Service a requests no frontend any more and is removed; b has one frontend, the new one.
        ASSERT_EQ(step.remove.size(), 1U);
        EXPECT_EQ(step.remove[0].to_string(), "default/a/TCP");
        ASSERT_EQ(step.upsert.size(), 1U);
        ASSERT_EQ(step.upsert[0]->frontends.size(), 1U);
        EXPECT_EQ(step.upsert[0]->frontends[0].port, 30080);
        EXPECT_TRUE(step.appeared.empty());
    }
}

}  // namespace node_ports_test
}  // namespace penstock::semantics::testing
