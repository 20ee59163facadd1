// SPDX-License-Identifier: Apache-2.0
// External mode with Nodes as backends: the Nodes, their addresses and weights, and their probes.
#include "control/semantics/endpoints/node_backends.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace node_backends_test {

using Mode = Policy::BackendMode;

constexpr const char* kKey = "default/web/TCP";

// An external gateway, Nodes a, b and c at 192.0.2.1 to .3, and a LoadBalancer Service with one Pod on a and
// two on b.
World outside() {
    World world;
    world.gateway = {.gateway_name = "gw", .mode = model::GatewayMode::External};
    world.policy.backend_mode = Mode::Node;
    world.policy.default_lb = true;
    world.objects.nodes.clear();
    for (const char* name : {"a", "b", "c"}) {
        kube::Node& node = world.objects.nodes[name];
        node.meta.name = name;
        node.addresses = {{.type = "InternalIP",
                           .address = std::string("192.0.2.") + static_cast<char>('1' + (*name - 'a'))}};
    }
    kube::Service& web = world.service("default/web");
    web.type = "LoadBalancer";
    web.ports[0].node_port = 30080;
    web.health_check_node_port = 31000;
    web.ingress = {{.ip = "198.51.100.7"}};
    world.slice("web-1", "default/web",
                {endpoint("10.244.0.1", "a"), endpoint("10.244.1.1", "b"), endpoint("10.244.1.2", "b")});
    return world;
}
kube::Service& web_of(World& world) {
    return world.objects.services[object_name("default/web")];
}
std::vector<kube::Endpoint>& pods_of(World& world) {
    return world.objects.slices[object_name("default/web-1")].endpoints;
}

// "192.0.2.1 30080 NotReady", followed by " not serving" if UDP flows move to another Node.
Lines left_out(const Outcome& outcome, size_t set = 0) {
    static constexpr const char* kNames[] = {"ForbiddenAddress", "NodeSelector", "NotReady",
                                             "Terminating",      "NotLocal",     "TopologyKeys",
                                             "TopologyHints"};
    Lines lines;
    for (const model::ExcludedEndpoint& one : find(outcome, kKey)->sets.at(set).excluded) {
        lines.push_back(one.address.to_string() + " " + std::to_string(one.port) + " " +
                        kNames[static_cast<size_t>(one.why)] + (one.serving ? "" : " not serving"));
    }
    return lines;
}

std::vector<int> weights(const Outcome& outcome) {
    std::vector<int> found;
    for (const model::Endpoint& one : find(outcome, kKey)->sets.at(0).endpoints) {
        found.push_back(one.weight);
    }
    return found;
}

const Lines kAllNodes = {"192.0.2.1 30080", "192.0.2.2 30080", "192.0.2.3 30080"};

TEST(NodeBackends, AreAllNodesAtTheNodePortAndOpenNoNodePortHere_NODEPORT009) {
    World world = outside();
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kKey), kAllNodes);
    EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP L 198.51.100.7 80"});
    EXPECT_EQ(find(outcome, kKey)->sets[0].source, lb::SourceMode::Translate);
    EXPECT_EQ(find(outcome, kKey)->sets[0].endpoints[1].node_name, "b");
    EXPECT_EQ(weights(outcome), (std::vector{1, 1, 1}));
    EXPECT_TRUE(outcome.notices.empty());
    world.policy.backend_mode = Mode::Pod;
    EXPECT_EQ(endpoints(world.evaluate(), kKey),
              (Lines{"10.244.0.1 8080", "10.244.1.1 8080", "10.244.1.2 8080"}));
}

TEST(NodeBackends, NeverOfAGatewayThatIsANode_NODEPORT009) {
    World world = outside();
    world.gateway.mode = model::GatewayMode::Node;
    world.gateway.node_name = "a";
    EXPECT_EQ(endpoints(world.evaluate(), kKey),
              (Lines{"10.244.0.1 8080", "10.244.1.1 8080", "10.244.1.2 8080"}));
}

TEST(NodeBackends, AddressIsOfTheFamilyAndInternalBeforeExternal_NODEPORT009) {
    World world = outside();
    world.objects.nodes["a"].addresses = {{.type = "ExternalIP", .address = "198.51.100.1"},
                                          {.type = "Hostname", .address = "a"},
                                          {.type = "InternalIP", .address = "2001:db8:1::1"},
                                          {.type = "InternalIP", .address = "192.0.2.1"}};
    world.objects.nodes["b"].addresses = {{.type = "InternalIP", .address = "2001:db8:1::2"},
                                          {.type = "ExternalIP", .address = "198.51.100.2"}};
    // Addresses that no endpoint may have are skipped.
    world.objects.nodes["c"].addresses = {{.type = "InternalIP", .address = "127.0.0.1"},
                                          {.type = "ExternalIP", .address = "x"}};
    web_of(world).ip_families = {"IPv4", "IPv6"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kKey, 0), (Lines{"192.0.2.1 30080", "198.51.100.2 30080"}));
    EXPECT_EQ(endpoints(outcome, kKey, 1), (Lines{"2001:db8:1::1 30080", "2001:db8:1::2 30080"}));
}

TEST(NodeBackends, NodesThatAreLeftOut_LB019) {
    struct Row {
        const char* name;
        void (*change)(kube::Node&);
        bool stays;
        const char* excluded;
    };
    const Row rows[] = {
        {"label",
         [](kube::Node& node) {
             node.meta.labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "";
         },
         false, "192.0.2.1 30080 NodeSelector"},
        {"label false",
         [](kube::Node& node) {
             node.meta.labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "false";
         },
         false, "192.0.2.1 30080 NodeSelector"},
        {"deletionTimestamp", [](kube::Node& node) { node.deleting = true; }, false,
         "192.0.2.1 30080 NodeSelector"},
        {"autoscaler", [](kube::Node& node) { node.taints = {"other", "ToBeDeletedByClusterAutoscaler"}; },
         false, "192.0.2.1 30080 NodeSelector"},
        {"another taint", [](kube::Node& node) { node.taints = {"node.kubernetes.io/unschedulable"}; }, true,
         ""},
        {"unschedulable", [](kube::Node& node) { node.unschedulable = true; }, true, ""},
        {"NotReady", [](kube::Node& node) { node.ready = false; }, false,
         "192.0.2.1 30080 NotReady not serving"},
    };
    for (const Row& row : rows) {
        World world = outside();
        row.change(world.objects.nodes["a"]);
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(endpoints(outcome, kKey),
                  row.stays ? kAllNodes : (Lines{"192.0.2.2 30080", "192.0.2.3 30080"}))
            << row.name;
        EXPECT_EQ(left_out(outcome), row.stays ? Lines{} : Lines{row.excluded}) << row.name;
    }
}

TEST(NodeBackends, NotReadyNodesServeWhereNoReadyOneMay_LB019) {
    World world = outside();
    world.objects.nodes["a"].ready = false;
    world.objects.nodes["b"].ready = false;
    world.objects.nodes["c"].meta.labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "true";
    Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kKey), (Lines{"192.0.2.1 30080", "192.0.2.2 30080"}));
    // The label is on the last Node: no backend is left, and new flows are rejected.
    for (const char* name : {"a", "b"}) {
        world.objects.nodes[name].deleting = true;
    }
    outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kKey), Lines{});
    EXPECT_EQ(find(outcome, kKey)->sets[0].when_empty, lb::EmptyAction::Reject);
    EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP L 198.51.100.7 80"});
}

TEST(NodeBackends, PolicyLocalTakesNodesWithReadyPodsAndKeepsTheSource_ETP005) {
    World world = outside();
    web_of(world).external_traffic_policy = "Local";
    pods_of(world)[0] = terminating_endpoint("10.244.0.1", "a");
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kKey), Lines{"192.0.2.2 30080"});
    EXPECT_EQ(left_out(outcome), (Lines{"192.0.2.1 30080 NotLocal", "192.0.2.3 30080 NotLocal not serving"}));
    EXPECT_EQ(find(outcome, kKey)->sets[0].source, lb::SourceMode::Keep);
    for (kube::Endpoint& pod : pods_of(world)) {
        pod.ready = false;
    }
    // Also if Pods still serve while terminating, because the health check of their Node already fails.
    EXPECT_EQ(endpoints(world.evaluate(), kKey), Lines{});
    EXPECT_EQ(find(world.evaluate(), kKey)->sets[0].when_empty, lb::EmptyAction::Reject);
}

TEST(NodeBackends, PolicyLocalPrefersReadyNodesAmongThoseWithPods_ETP005_LB019) {
    World world = outside();
    web_of(world).external_traffic_policy = "Local";
    world.objects.nodes["b"].ready = false;
    EXPECT_EQ(endpoints(world.evaluate(), kKey), Lines{"192.0.2.1 30080"});
    world.objects.nodes["a"].ready = false;
    EXPECT_EQ(endpoints(world.evaluate(), kKey), (Lines{"192.0.2.1 30080", "192.0.2.2 30080"}));
}

TEST(NodeBackends, ProbesOfThePolicy_HC007_ETP005) {
    using Kind = model::Probe::Kind;
    World world = outside();
    EXPECT_EQ(find(world.evaluate(), kKey)->probe,
              (model::Probe{.kind = Kind::Http, .port = 10256, .path = "/healthz", .fails_closed = true}));
    world.policy.node_probe_port = 10300;
    EXPECT_EQ(find(world.evaluate(), kKey)->probe->port, 10300);
    world.policy.node_probe_port = 0;
    EXPECT_FALSE(find(world.evaluate(), kKey)->probe);

    web_of(world).external_traffic_policy = "Local";
    EXPECT_EQ(find(world.evaluate(), kKey)->probe,
              (model::Probe{.kind = Kind::Http, .port = 31000, .path = "/", .fails_closed = true}));
    web_of(world).health_check_node_port = 0;
    EXPECT_FALSE(find(world.evaluate(), kKey)->probe);
    world.policy.backend_mode = Mode::Pod;
    web_of(world).health_check_node_port = 31000;
    EXPECT_FALSE(find(world.evaluate(), kKey)->probe);
}

TEST(NodeBackends, AreWeightedByTheirReadyPodsWhereAsked_NODEPORT009) {
    World world = outside();
    pods_of(world).push_back(unready_endpoint("10.244.2.1", "c"));
    // The same Pod in a second slice counts once.
    world.slice("web-2", "default/web", {endpoint("10.244.1.2", "b")}, 8081);
    world.policy.node_weight_ready_pods = true;
    EXPECT_EQ(weights(world.evaluate()), (std::vector{1, 2, 0}));
    web_of(world).meta.annotations["penstock.io/node-weight"] = "equal";
    EXPECT_EQ(weights(world.evaluate()), (std::vector{1, 1, 1}));
    world.policy.node_weight_ready_pods = false;
    web_of(world).meta.annotations["penstock.io/node-weight"] = " ready-pods ";
    EXPECT_EQ(weights(world.evaluate()), (std::vector{1, 2, 0}));
    // No Pod is ready: the Nodes' proxies use terminating Pods, so the weights count these as well (EP-012).
    for (kube::Endpoint& pod : pods_of(world)) {
        pod =
            terminating_endpoint(pod.address.ip()->to_string(), std::string(std::string_view(pod.node_name)));
    }
    world.objects.slices.erase(object_name("default/web-2"));
    EXPECT_EQ(weights(world.evaluate()), (std::vector{1, 2, 1}));
    web_of(world).external_traffic_policy = "Local";
    EXPECT_EQ(weights(world.evaluate()), std::vector<int>{});

    web_of(world).meta.annotations["penstock.io/node-weight"] = "heavy";
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web InvalidAnnotation"});
}

TEST(NodeBackends, AnnotationsChooseNodesAndProbes_ANN14_ANN16_ANN05) {
    World world = outside();
    auto& annotations = web_of(world).meta.annotations;
    world.objects.nodes["b"].meta.labels["pool"] = "edge";
    annotations["penstock.io/backend-node-selector"] = "pool=edge";
    EXPECT_EQ(endpoints(world.evaluate(), kKey), Lines{"192.0.2.2 30080"});
    EXPECT_EQ(left_out(world.evaluate()),
              (Lines{"192.0.2.1 30080 NodeSelector", "192.0.2.3 30080 NodeSelector"}));
    annotations = {{"penstock.io/only-nodes-with-endpoints", "true"}};
    EXPECT_EQ(endpoints(world.evaluate(), kKey), (Lines{"192.0.2.1 30080", "192.0.2.2 30080"}));
    EXPECT_EQ(find(world.evaluate(), kKey)->sets[0].source, lb::SourceMode::Translate);
    // Policy Local requires endpoints on the Node, regardless of the annotation.
    web_of(world).external_traffic_policy = "Local";
    annotations = {{"penstock.io/only-nodes-with-endpoints", "false"}};
    EXPECT_EQ(endpoints(world.evaluate(), kKey), (Lines{"192.0.2.1 30080", "192.0.2.2 30080"}));

    annotations = {{"penstock.io/health-check-interval", "20"},
                   {"penstock.io/health-check-unhealthy-threshold", "3"}};
    EXPECT_EQ(find(world.evaluate(), kKey)->probe, (model::Probe{.kind = model::Probe::Kind::Http,
                                                                 .port = 31000,
                                                                 .interval_s = 20,
                                                                 .unhealthy = 3,
                                                                 .fails_closed = true}));
    annotations = {{"penstock.io/health-check", "off"}};
    EXPECT_FALSE(find(world.evaluate(), kKey)->probe);
    annotations = {{"penstock.io/health-check", "tcp"}};
    EXPECT_EQ(find(world.evaluate(), kKey)->probe,
              (model::Probe{.kind = model::Probe::Kind::Tcp, .fails_closed = true}));
    annotations = {{"penstock.io/health-check-port", "8081"}, {"penstock.io/health-check-path", "/up"}};
    EXPECT_EQ(
        find(world.evaluate(), kKey)->probe,
        (model::Probe{.kind = model::Probe::Kind::Http, .port = 8081, .path = "/up", .fails_closed = true}));
}

TEST(NodeBackends, APortWithoutNodePortIsNotServedAndItsSiblingIs_LB016) {
    World world = outside();
    kube::Service& web = web_of(world);
    web.allocate_load_balancer_node_ports = false;
    web.ports = {{.name = "a", .port = 80, .node_port = 30080}, {.name = "b", .port = 81}};
    web.external_ips = {"203.0.113.7"};
    Outcome outcome = world.evaluate();
    // The flag alone has no effect: an existing nodePort is still served.
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/web:a/TCP L 198.51.100.7 80", "default/web:a/TCP X 203.0.113.7 80"}));
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web NodePortRequired"});
    EXPECT_NE(message(outcome, reason::kNodePortRequired).find("port 81/TCP"), std::string::npos);
    EXPECT_EQ(endpoints(outcome, "default/web:b/TCP"), Lines{});
    // A Service of another type has no nodePort either, even if a value is left over in the spec.
    web.type = "ClusterIP";
    outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{});
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web NodePortRequired"});
    // With Pods as backends no nodePort is required.
    web.type = "LoadBalancer";
    world.policy.backend_mode = Mode::Pod;
    outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome).size(), 4U);
    EXPECT_EQ(reasons(outcome), Lines{});
}

TEST(NodeBackends, AVipOnANodeIsNoBackend_EP006) {
    World world = outside();
    web_of(world).external_ips = {"203.0.113.7"};
    world.objects.nodes["b"].addresses = {{.type = "ExternalIP", .address = "203.0.113.7"}};
    world.service("default/other", "192.0.2.3");
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kKey), Lines{"192.0.2.1 30080"});
    EXPECT_EQ(left_out(outcome), (Lines{"192.0.2.3 30080 ForbiddenAddress not serving",
                                        "203.0.113.7 30080 ForbiddenAddress not serving"}));
}

TEST(NodeBackends, TwoNodesAtOneAddressAreOneBackendTheBetterOne_NODEPORT009) {
    World world = outside();
    world.objects.nodes["a"].ready = false;
    world.objects.nodes["b"].addresses = world.objects.nodes["a"].addresses;
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kKey), (Lines{"192.0.2.1 30080", "192.0.2.3 30080"}));
    EXPECT_EQ(find(outcome, kKey)->sets[0].endpoints[0].node_name, "b");
    EXPECT_EQ(left_out(outcome), Lines{});
}

TEST(NodeBackends, AutoTakesPodsWhereTheirCidrsAreRouted_NODEPORT009) {
    struct Row {
        const char* name;
        std::vector<const char*> of_nodes;
        std::vector<const char*> of_operator;
        std::vector<const char*> routed;
        bool through_nodes;
    };
    const Row rows[] = {
        {"no Pod CIDR is known", {}, {}, {"10.0.0.0/8"}, true},
        {"nothing is routed", {"10.244.0.0/24"}, {}, {}, true},
        {"each by its own route",
         {"10.244.0.0/24", "10.244.1.0/24"},
         {},
         {"10.244.0.0/24", "10.244.1.0/24"},
         false},
        {"one of them is not", {"10.244.0.0/24", "10.244.1.0/24"}, {}, {"10.244.0.0/24"}, true},
        {"by a wider one", {"10.244.0.0/24", "10.244.1.0/24"}, {}, {"10.244.0.0/16"}, false},
        {"only a part", {"10.244.0.0/24"}, {}, {"10.244.0.0/25"}, true},
        {"the other family is not", {"10.244.0.0/24", "fd00::/64"}, {}, {"10.244.0.0/16"}, true},
        {"the operator's", {}, {"10.244.0.0/16"}, {"10.244.0.0/16"}, false},
        {"the operator's is not", {}, {"10.244.0.0/16"}, {"10.244.0.0/24"}, true},
        {"Nodes know better", {"10.244.0.0/24"}, {"10.244.0.0/16"}, {"10.244.0.0/24"}, false},
    };
    for (const Row& row : rows) {
        World world = outside();
        world.policy.backend_mode = Mode::Auto;
        auto node = world.objects.nodes.begin();
        for (const char* text : row.of_nodes) {
            (node++)->second.pod_cidrs = {text};
        }
        for (const char* text : row.of_operator) {
            world.policy.cluster_cidrs.push_back(cidr(text));
        }
        for (const char* text : row.routed) {
            world.gateway.routed_prefixes.push_back(cidr(text));
        }
        EXPECT_EQ(endpoints(world.evaluate(), kKey) == kAllNodes, row.through_nodes) << row.name;
    }
}

}  // namespace node_backends_test
}  // namespace penstock::semantics::testing
