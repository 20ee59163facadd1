// SPDX-License-Identifier: Apache-2.0
// The environment: facts from Nodes and operator settings that concern the whole gateway.
#include "control/semantics/node_facts.hpp"

#include <gtest/gtest.h>

#include "control/semantics/engine.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace node_facts_test {

TEST(Environment, PodCidrsAreTheNodesAndTheOperators_ETP006) {
    World world;
    world.objects.nodes["a"].pod_cidrs = {"10.244.1.0/24", "fd00:244:1::/64"};
    world.objects.nodes["b"].pod_cidrs = {"10.244.0.0/24", "bad"};
    world.objects.nodes["c"].pod_cidrs = {"10.244.0.0/24"};
    EXPECT_EQ(world.evaluate().desired.environment.pod_cidrs,
              (std::vector{cidr("10.244.0.0/24"), cidr("10.244.1.0/24"), cidr("fd00:244:1::/64")}));
    // A prefix inside another one is omitted.
    world.policy.cluster_cidrs = {cidr("10.244.0.0/16"), cidr("10.245.0.0/16")};
    EXPECT_EQ(world.evaluate().desired.environment.pod_cidrs,
              (std::vector{cidr("10.244.0.0/16"), cidr("10.245.0.0/16"), cidr("fd00:244:1::/64")}));
    world.objects.nodes.clear();
    EXPECT_EQ(world.evaluate().desired.environment.pod_cidrs,
              (std::vector{cidr("10.244.0.0/16"), cidr("10.245.0.0/16")}));
}

TEST(Environment, TheOperatorsPodCidrsAreNoExternalIps_XIP006) {
    World world;
    world.policy.cluster_cidrs = {cidr("203.0.113.0/26")};
    world.service("default/web").external_ips = {"203.0.113.7"};
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web ExternalIPNotAllowed"});
}

TEST(Environment, ClosedPortsOfAVipAreDroppedUnlessTheOperatorSaysSo_LB021) {
    World world;
    EXPECT_FALSE(world.evaluate().desired.environment.rejects_closed_vip_ports);
    world.policy.rejects_closed_vip_ports = true;
    EXPECT_TRUE(world.evaluate().desired.environment.rejects_closed_vip_ports);
}

TEST(Environment, TheOwnNodeIsEligibleUntilItIsTakenAway_HC006) {
    struct Row {
        const char* name;
        void (*change)(World&);
        bool eligible;
    };
    const Row rows[] = {
        {"as it is", [](World&) {}, true},
        {"being deleted", [](World& world) { world.objects.nodes["edge-1"].deleting = true; }, false},
        {"autoscaler",
         [](World& world) { world.objects.nodes["edge-1"].taints = {"ToBeDeletedByClusterAutoscaler"}; },
         false},
        {"another taint",
         [](World& world) { world.objects.nodes["edge-1"].taints = {"node.kubernetes.io/not-ready"}; }, true},
        {"NotReady", [](World& world) { world.objects.nodes["edge-1"].ready = false; }, true},
        {"another Node", [](World& world) { world.objects.nodes["edge-2"].deleting = true; }, true},
        {"unknown", [](World& world) { world.objects.nodes.clear(); }, true},
        {"external",
         [](World& world) {
             world.objects.nodes["edge-1"].deleting = true;
             world.gateway.mode = model::GatewayMode::External;
         },
         true},
    };
    for (const Row& row : rows) {
        World world;
        row.change(world);
        EXPECT_EQ(world.evaluate().desired.environment.node_eligible, row.eligible) << row.name;
    }
}

constexpr const char* kExcludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers";
constexpr const char* kWhyExcluded =
    "Node edge-1 has the label node.kubernetes.io/exclude-from-external-load-balancers";
constexpr const char* kWhyUnavailable = "Node edge-1 has the condition NetworkUnavailable=True";

TEST(Environment, AnExcludedNodeOrOneWithoutNetworkWithholdsVips_PRESENCE005) {
    struct Row {
        const char* name;
        void (*change)(World&);
        std::string why;
    };
    const Row rows[] = {
        {"as it is", [](World&) {}, ""},
        {"label", [](World& world) { world.objects.nodes["edge-1"].meta.labels[kExcludeLabel] = ""; },
         kWhyExcluded},
        {"label, whatever its value",
         [](World& world) { world.objects.nodes["edge-1"].meta.labels[kExcludeLabel] = "false"; },
         kWhyExcluded},
        {"condition", [](World& world) { world.objects.nodes["edge-1"].network_unavailable = true; },
         kWhyUnavailable},
        {"both",
         [](World& world) {
             world.objects.nodes["edge-1"].meta.labels[kExcludeLabel] = "";
             world.objects.nodes["edge-1"].network_unavailable = true;
         },
         std::string(kWhyExcluded) + "; " + kWhyUnavailable},
        {"label ignored",
         [](World& world) {
             world.objects.nodes["edge-1"].meta.labels[kExcludeLabel] = "";
             world.objects.nodes["edge-1"].network_unavailable = true;
             world.policy.ignore_exclude_label = true;
         },
         kWhyUnavailable},
        {"condition ignored",
         [](World& world) {
             world.objects.nodes["edge-1"].meta.labels[kExcludeLabel] = "";
             world.objects.nodes["edge-1"].network_unavailable = true;
             world.policy.ignore_network_unavailable = true;
         },
         kWhyExcluded},
        {"another Node",
         [](World& world) {
             world.objects.nodes["edge-2"].meta.labels[kExcludeLabel] = "";
             world.objects.nodes["edge-2"].network_unavailable = true;
         },
         ""},
        {"being deleted", [](World& world) { world.objects.nodes["edge-1"].deleting = true; }, ""},
        {"unknown", [](World& world) { world.objects.nodes.clear(); }, ""},
        {"external",
         [](World& world) {
             world.objects.nodes["edge-1"].meta.labels[kExcludeLabel] = "";
             world.objects.nodes["edge-1"].network_unavailable = true;
             world.gateway.mode = model::GatewayMode::External;
         },
         ""},
    };
    for (const Row& row : rows) {
        World world;
        row.change(world);
        const model::Environment environment = world.evaluate().desired.environment;
        EXPECT_EQ(environment.vips_withheld, row.why) << row.name;
        EXPECT_EQ(environment.node_eligible, std::string_view(row.name) != "being deleted") << row.name;
    }
}

// Label and condition are set and removed. Other changes of the Node, such as heartbeats, produce no Step.
TEST(Environment, WithheldVipsFollowTheNodeAndOtherChangesCostNothing_PRESENCE005) {
    World world;
    Engine engine(world.policy);
    engine.set_gateway(world.gateway);
    kube::Node node;
    const auto put = [&](const char* name = "edge-1") {
        kube::Changes changes;
        changes.nodes[name] = std::make_shared<const kube::Node>(node);
        return engine.apply(changes);
    };
    EXPECT_FALSE(put().environment);
    node.meta.labels[kExcludeLabel] = "";
    EXPECT_TRUE(put("edge-2").is_empty());
    ASSERT_TRUE(put().environment);
    EXPECT_EQ(engine.environment().vips_withheld, kWhyExcluded);
    EXPECT_TRUE(put().is_empty()) << "a heartbeat";
    node.meta.labels[kExcludeLabel] = "true";
    node.meta.labels["other"] = "label";
    node.ready = false;
    node.unschedulable = true;
    EXPECT_TRUE(put().is_empty()) << "changes of other facts";
    node.meta.labels.clear();
    node.network_unavailable = true;
    ASSERT_TRUE(put().environment);
    EXPECT_EQ(engine.environment().vips_withheld, kWhyUnavailable);
    EXPECT_TRUE(put().is_empty()) << "a heartbeat";
    Policy ignoring = world.policy;
    ignoring.ignore_network_unavailable = true;
    ASSERT_TRUE(engine.set_policy(ignoring).environment);
    EXPECT_EQ(engine.environment().vips_withheld, "");
    ASSERT_TRUE(engine.set_policy(world.policy).environment);
    EXPECT_EQ(engine.environment().vips_withheld, kWhyUnavailable);
    node.network_unavailable = false;
    ASSERT_TRUE(put().environment);
    EXPECT_EQ(engine.environment().vips_withheld, "");
    node.network_unavailable = true;
    put();
    kube::Changes gone;
    gone.nodes["edge-1"] = nullptr;
    ASSERT_TRUE(engine.apply(gone).environment);
    EXPECT_EQ(engine.environment().vips_withheld, "") << "a Node that is gone withholds nothing";
}

// The Nodes change one after the other, and back. Each Step contains the environment exactly if it differs.
TEST(Environment, FollowsNodesByItself_ETP006_HC006) {
    World world;
    Engine engine(world.policy);
    engine.set_gateway(world.gateway);
    kube::Node node;
    const auto put = [&](const char* name) {
        kube::Changes changes;
        changes.nodes[name] = std::make_shared<const kube::Node>(node);
        return engine.apply(changes).environment;
    };
    EXPECT_FALSE(put("edge-1"));
    node.pod_cidrs = {"10.244.0.0/24"};
    ASSERT_TRUE(put("edge-1"));
    EXPECT_EQ(engine.environment().pod_cidrs, std::vector{cidr("10.244.0.0/24")});
    EXPECT_FALSE(put("edge-2"));
    node.deleting = true;
    EXPECT_FALSE(put("edge-2"));
    ASSERT_TRUE(put("edge-1"));
    EXPECT_FALSE(engine.environment().node_eligible);
    node = {};
    EXPECT_TRUE(put("edge-1")->node_eligible);
    ASSERT_TRUE(put("edge-2"));
    EXPECT_TRUE(engine.environment().pod_cidrs.empty());
}

}  // namespace node_facts_test
}  // namespace penstock::semantics::testing
