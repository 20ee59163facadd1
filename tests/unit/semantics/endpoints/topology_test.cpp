// SPDX-License-Identifier: Apache-2.0
// Near endpoints before distant ones: topologyKeys and hints (section TOPO of the requirement sheet).
#include "control/semantics/endpoints/topology.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace topology_test {

using lb::EmptyAction;

constexpr const char* kWeb = "default/web/TCP";
constexpr const char* kHost = "kubernetes.io/hostname";
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kRegion = "topology.kubernetes.io/region";
constexpr const char* kKeys = "penstock.io/topology-keys";

const Lines kAll = {"10.244.0.1 8080", "10.244.0.2 8080", "10.244.0.3 8080", "10.244.0.4 8080"};

// Four nodes, one endpoint on each: edge-1 and edge-2 in zone a, edge-3 in zone b of the same region, edge-4
// in another region.
World four_nodes() {
    World world;
    const auto node = [&](const char* name, const char* zone, const char* region) {
        world.objects.nodes[name].meta = {.name = name,
                                          .labels = {{kHost, name}, {kZone, zone}, {kRegion, region}}};
    };
    node("edge-1", "a", "north");
    node("edge-2", "a", "north");
    node("edge-3", "b", "north");
    node("edge-4", "c", "south");
    world.service("default/web").external_ips = {"203.0.113.7"};
    world.slice("s", "default/web",
                {endpoint("10.244.0.1", "edge-1"), endpoint("10.244.0.2", "edge-2"),
                 endpoint("10.244.0.3", "edge-3"), endpoint("10.244.0.4", "edge-4")});
    return world;
}

kube::Service& web(World& world) {
    return world.objects.services.at(object_name("default/web"));
}
std::vector<kube::Endpoint>& endpoints_in(World& world) {
    return world.objects.slices.at(object_name("default/s")).endpoints;
}
void remove_endpoints(World& world, size_t first_n) {
    auto& all = endpoints_in(world);
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first_n));
}

// The four examples of the seed: only this node; this node, else anywhere; zone or region only; node, zone,
// region, else anywhere.
TEST(TopologyKeys, TheFirstThatAnybodyMatchesSelects_TOPO002_TOPO003) {
    struct Row {
        const char* name;
        std::vector<std::string> keys;
        size_t missing;  // the number of nearest endpoints that are missing
        Lines chosen;
    };
    const Row rows[] = {
        {"this node only", {kHost}, 0, {"10.244.0.1 8080"}},
        {"this node only, nobody there", {kHost}, 1, {}},
        {"this node, else anywhere", {kHost, "*"}, 0, {"10.244.0.1 8080"}},
        {"this node, else anywhere, nobody there",
         {kHost, "*"},
         1,
         {"10.244.0.2 8080", "10.244.0.3 8080", "10.244.0.4 8080"}},
        {"zone, else region", {kZone, kRegion}, 0, {"10.244.0.1 8080", "10.244.0.2 8080"}},
        {"zone, else region: nobody in the zone", {kZone, kRegion}, 2, {"10.244.0.3 8080"}},
        {"zone, else region: nobody in either", {kZone, kRegion}, 3, {}},
        {"all four, nearest", {kHost, kZone, kRegion, "*"}, 0, {"10.244.0.1 8080"}},
        {"all four, zone", {kHost, kZone, kRegion, "*"}, 1, {"10.244.0.2 8080"}},
        {"all four, region", {kHost, kZone, kRegion, "*"}, 2, {"10.244.0.3 8080"}},
        {"all four, anywhere", {kHost, kZone, kRegion, "*"}, 3, {"10.244.0.4 8080"}},
        {"a key that the origin lacks is skipped",
         {"example.com/rack", kZone},
         0,
         {"10.244.0.1 8080", "10.244.0.2 8080"}},
        {"none", {}, 0, kAll},
        {"anywhere", {"*"}, 0, kAll},
    };
    for (const Row& row : rows) {
        World world = four_nodes();
        web(world).topology_keys = row.keys;
        remove_endpoints(world, row.missing);
        EXPECT_EQ(endpoints(world.evaluate(), kWeb), row.chosen) << row.name;
    }
}

TEST(TopologyKeys, AnyLabelWillDoAndAnEndpointWithoutItDoesNotMatch_TOPO006_TOPO002) {
    World world = four_nodes();
    web(world).topology_keys = {"example.com/rack"};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{});
    world.objects.nodes["edge-1"].meta.labels["example.com/rack"] = "7";
    world.objects.nodes["edge-3"].meta.labels["example.com/rack"] = "7";
    world.objects.nodes["edge-4"].meta.labels["example.com/rack"] = "8";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.3 8080"}));
}

TEST(TopologyKeys, ThoseLeftOutAreNamed_EP020_TOPO002) {
    World world = four_nodes();
    web(world).topology_keys = {kHost};
    EXPECT_EQ(excluded(world.evaluate(), kWeb),
              (Lines{"10.244.0.2 topology keys", "10.244.0.3 topology keys", "10.244.0.4 topology keys"}));
}

TEST(TopologyKeys, NobodyMatchesIsLikeNoEndpoints_TOPO004) {
    World world = four_nodes();
    web(world).topology_keys = {kHost};
    endpoints_in(world) = {endpoint("10.244.0.2", "edge-2"), terminating_endpoint("10.244.0.1", "edge-1")};
    // If ready endpoints exist elsewhere, the terminating endpoint here is not used.
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{});
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].when_empty, EmptyAction::Reject);
    world.policy.topology_no_match_drops = true;
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].when_empty, EmptyAction::Drop);
    // No usable endpoint anywhere: topology does not matter.
    endpoints_in(world) = {unready_endpoint("10.244.0.2", "edge-2")};
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].when_empty, EmptyAction::Reject);
}

TEST(TopologyKeys, AnInvalidListIsIgnoredAndSaidSo_TOPO005) {
    struct Row {
        const char* name;
        std::vector<std::string> keys;
        bool valid;
    };
    std::vector<std::string> sixteen;
    for (int i = 0; i < 16; ++i) {
        sixteen.push_back("example.com/k" + std::to_string(i));
    }
    std::vector<std::string> seventeen = sixteen;
    seventeen.push_back(kHost);
    const Row rows[] = {
        {"sixteen", sixteen, true},
        {"seventeen", seventeen, false},
        {"* first", {"*", kHost}, false},
        {"* twice", {"*", "*"}, false},
        {"twice", {kHost, kHost}, false},
        {"trailing blank", {"kubernetes.io/hostname "}, false},
        {"empty", {""}, false},
        {"no key", {"-x"}, false},
        {"bad prefix", {"Example.com/x"}, false},
        {"63", {std::string(63, 'x')}, true},
        {"64", {std::string(64, 'x')}, false},
    };
    for (const Row& row : rows) {
        World world = four_nodes();
        web(world).topology_keys = row.keys;
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(reasons(outcome), row.valid ? Lines{} : Lines{"Service default/web InvalidTopologyKeys"})
            << row.name;
        EXPECT_EQ(endpoints(outcome, kWeb), row.valid ? Lines{} : kAll) << row.name;
    }
}

TEST(TopologyKeys, TheAnnotationIsTrimmedAndTheFieldWins_TOPO002_TOPO005_ANN28) {
    World world = four_nodes();
    web(world).meta.annotations[kKeys] = " kubernetes.io/hostname , topology.kubernetes.io/zone ";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
    web(world).topology_keys = {kRegion};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb),
              (Lines{"10.244.0.1 8080", "10.244.0.2 8080", "10.244.0.3 8080"}));
    web(world).topology_keys.clear();
    web(world).meta.annotations[kKeys] = "kubernetes.io/hostname,,x";
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web InvalidTopologyKeys"});
    EXPECT_NE(message(world.evaluate(), "InvalidTopologyKeys").find(kKeys), std::string::npos);
}

TEST(TopologyKeys, AnExternalGatewayStandsWhereItsLabelsSay_TOPO001_TOPO011) {
    World world = four_nodes();
    world.gateway = {.gateway_name = "gw", .mode = model::GatewayMode::External};
    web(world).topology_keys = {kHost, kZone};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{});
    web(world).topology_keys = {kHost, kZone, "*"};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), kAll);  // TOPO-003: an origin without labels
    world.gateway.labels[kZone] = "b";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.3 8080"});
}

TEST(TopologyKeys, OfANodeGatewayItsOwnLabelsMeanNothing_TOPO001) {
    World world = four_nodes();
    world.gateway.labels[kZone] = "b";
    web(world).topology_keys = {kZone};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.2 8080"}));
    world.objects.nodes.erase("edge-1");
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{});
}

TEST(TopologyKeys, TheSliceSpeaksForANodeThatIsNotKnown_TOPO001_EP016) {
    World world = four_nodes();
    web(world).topology_keys = {kZone};
    kube::EndpointSlice& slice = world.objects.slices.at(object_name("default/s"));
    slice.endpoints = {endpoint("10.244.0.1", "unknown"), endpoint("10.244.0.2", "unknown"),
                       endpoint("10.244.0.3", "edge-3")};
    slice.endpoints[0].zone = "a";
    slice.endpoints[2].zone = "a";  // its Node has zone b
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});
    slice.topology = {{}, {"example.com/rack", "7", kZone, "a"}, {kZone, "a"}};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.2 8080"}));
    world.objects.nodes["edge-1"].meta.labels["example.com/rack"] = "7";
    web(world).topology_keys = {"example.com/rack"};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.2 8080"});
}

TEST(TopologyKeys, PolicyLocalDoesNotAskThemAndSaysSo_TOPO007) {
    World world = four_nodes();
    web(world).topology_keys = {"example.com/rack"};
    web(world).external_traffic_policy = "Local";
    world.policy.serve_cluster_ips = true;
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web TopologyKeysIgnored"});
    const model::Service& service = *find(outcome, kWeb);
    for (const model::Frontend& frontend : service.frontends) {
        const bool internal = frontend.cls == lb::FrontendClass::ClusterIp;
        EXPECT_EQ(service.sets.at(frontend.set).endpoints.size(), internal ? 0U : 1U);
    }
    EXPECT_EQ(service.frontends.size(), 2U);
}

kube::Endpoint hinted(kube::Endpoint endpoint, InternedTexts zones, InternedTexts nodes = {}) {
    endpoint.hints_for_zones = std::move(zones);
    endpoint.hints_for_nodes = std::move(nodes);
    return endpoint;
}

TEST(Hints, CountWhereEveryReadyEndpointHasThem_TOPO008_TOPO010) {
    const kube::Endpoint one = endpoint("10.244.0.1", "edge-4");
    const kube::Endpoint two = endpoint("10.244.0.2", "edge-4");
    const kube::Endpoint down = unready_endpoint("10.244.0.9", "edge-1");
    const kube::Endpoint leaving = terminating_endpoint("10.244.0.8", "edge-1");
    const Lines first = {"10.244.0.1 8080"};
    const Lines both = {"10.244.0.1 8080", "10.244.0.2 8080"};
    struct Row {
        const char* name;
        std::vector<kube::Endpoint> endpoints;
        Lines chosen;
    };
    const Row rows[] = {
        {"zone", {hinted(one, {"a"}), hinted(two, {"b"})}, first},
        {"two zones for one", {hinted(one, {"b", "a"}), hinted(two, {"b"})}, first},
        {"nobody for our zone", {hinted(one, {"b"}), hinted(two, {"b"})}, both},
        {"one without", {hinted(one, {"a"}), two}, both},
        {"not ready ones are not asked", {hinted(one, {"a"}), hinted(two, {"b"}), down, leaving}, first},
        {"only a not ready one in our zone",
         {hinted(one, {"b"}), hinted(two, {"b"}), hinted(down, {"a"})},
         both},
        {"node before zone", {hinted(one, {"b"}, {"edge-1"}), hinted(two, {"a"}, {"edge-2"})}, first},
        {"no node hint for us: zone",
         {hinted(one, {"a"}, {"edge-3"}), hinted(two, {"b"}, {"edge-2"})},
         first},
        {"one without a node hint: zone", {hinted(one, {"a"}), hinted(two, {"b"}, {"edge-1"})}, first},
        {"fallback",
         {hinted(leaving, {"b"}), hinted(terminating_endpoint("10.244.0.7"), {"a"})},
         {"10.244.0.7 8080", "10.244.0.8 8080"}},
    };
    for (const Row& row : rows) {
        World world = four_nodes();
        endpoints_in(world) = row.endpoints;
        EXPECT_EQ(endpoints(world.evaluate(), kWeb), row.chosen) << row.name;
    }
}

TEST(Hints, AreNothingToLocalAndToKeys_TOPO008_TOPO010) {
    World world = four_nodes();
    endpoints_in(world) = {hinted(endpoint("10.244.0.1", "edge-1"), {"b"}),
                           hinted(endpoint("10.244.0.2", "edge-1"), {"a"})};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.2 8080"});
    EXPECT_EQ(excluded(world.evaluate(), kWeb), Lines{"10.244.0.1 topology hints"});
    web(world).external_traffic_policy = "Local";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.2 8080"}));
    web(world).external_traffic_policy = "Cluster";
    web(world).topology_keys = {"*"};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.2 8080"}));
}

TEST(Hints, AloneDecide_TOPO009) {
    World world = four_nodes();
    endpoints_in(world) = {hinted(endpoint("10.244.0.1"), {"b"}), hinted(endpoint("10.244.0.2"), {"a"})};
    web(world).meta.annotations["service.kubernetes.io/topology-mode"] = "Disabled";
    web(world).meta.annotations["service.kubernetes.io/topology-aware-hints"] = "Disabled";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.2 8080"});
}

TEST(Hints, NeedAZoneOfTheGateway_TOPO011_TOPO001) {
    World world = four_nodes();
    endpoints_in(world) = {hinted(endpoint("10.244.0.1"), {"b"}, {"gw"}),
                           hinted(endpoint("10.244.0.2"), {"a"}, {"x"})};
    world.gateway = {.gateway_name = "gw", .mode = model::GatewayMode::External};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.2 8080"}));
    world.gateway.labels[kZone] = "b";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});
    // A hint for an empty zone name matches no gateway, not even one without a zone.
    world.gateway.labels.clear();
    endpoints_in(world)[0].hints_for_zones = {""};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.2 8080"}));
}

}  // namespace topology_test
}  // namespace penstock::semantics::testing
