// SPDX-License-Identifier: Apache-2.0
// The effect of one change: only the affected parts differ.
#include "control/semantics/engine.hpp"

#include <gtest/gtest.h>

#include "control/semantics/notices.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace engine_test {

kube::Changes everything_in(const World& world) {
    kube::Changes changes;
    for (const auto& [name, service] : world.objects.services) {
        changes.services[name] = std::make_shared<const kube::Service>(service);
    }
    for (const auto& [name, slice] : world.objects.slices) {
        changes.slices[name] = std::make_shared<const kube::EndpointSlice>(slice);
    }
    for (const auto& [name, node] : world.objects.nodes) {
        changes.nodes[name] = std::make_shared<const kube::Node>(node);
    }
    return changes;
}

kube::Changes with_service(const World& world, const std::string& name) {
    kube::Changes changes;
    const auto found = world.objects.services.find(object_name(name));
    changes.services[object_name(name)] = found == world.objects.services.end()
                                              ? nullptr
                                              : std::make_shared<const kube::Service>(found->second);
    return changes;
}

Lines keys_of(const std::vector<std::shared_ptr<const model::Service>>& services) {
    Lines lines;
    for (const auto& service : services) {
        lines.push_back(service->key.to_string());
    }
    return lines;
}

Lines keys_of(const std::vector<model::ServiceKey>& keys) {
    Lines lines;
    for (const model::ServiceKey& key : keys) {
        lines.push_back(key.to_string());
    }
    return lines;
}

// An engine that has applied `world`.
struct Shown {
    explicit Shown(const World& world) : engine(world.policy) {
        engine.apply(everything_in(world));
        first = engine.set_gateway(world.gateway);
    }
    Engine engine;
    Step first;
};

World two_services() {
    World world;
    world.service("default/a").external_ips = {"203.0.113.1"};
    world.service("default/b").external_ips = {"203.0.113.2"};
    world.slice("a-1", "default/a", {endpoint("10.244.0.1"), endpoint("10.244.0.2")});
    world.slice("b-1", "default/b", {endpoint("10.244.0.3")});
    return world;
}

TEST(Engine, RemembersUntilItKnowsTheGateway_GEN012) {
    const World world = two_services();
    Engine engine(world.policy);
    EXPECT_TRUE(engine.apply(everything_in(world)).is_empty());
    EXPECT_TRUE(engine.desired().empty());
    EXPECT_EQ(engine.objects().services.size(), 2U);

    const Step step = engine.set_gateway(world.gateway);
    EXPECT_EQ(keys_of(step.upsert), (Lines{"default/a/TCP", "default/b/TCP"}));
    EXPECT_EQ(step.environment.has_value(), engine.environment() != model::Environment{});
    EXPECT_EQ(engine.desired().size(), 2U);
    EXPECT_TRUE(engine.set_gateway(world.gateway).is_empty());
}

TEST(Engine, OneEndpointChangesOneService) {
    World world = two_services();
    Shown shown(world);
    const auto before = shown.engine.desired();
    world.objects.slices.begin()->second.endpoints[0].ready = false;
    kube::Changes changes;
    changes.slices[world.objects.slices.begin()->first] =
        std::make_shared<const kube::EndpointSlice>(world.objects.slices.begin()->second);
    const Step step = shown.engine.apply(changes);
    EXPECT_EQ(keys_of(step.upsert), Lines{"default/a/TCP"});
    EXPECT_TRUE(step.remove.empty());
    EXPECT_EQ(step.upsert.at(0)->sets.at(0).endpoints.size(), 1U);
    // An unchanged value is the same object, not a copy.
    EXPECT_EQ(shown.engine.desired().rbegin()->second, before.rbegin()->second);
}

TEST(Engine, WhatSemanticsDoesNotReadChangesNothing) {
    World world = two_services();
    Shown shown(world);
    world.service("default/a", "10.96.0.1").external_ips = {"203.0.113.1"};
    world.objects.services[object_name("default/a")].meta.labels["team"] = "blue";
    EXPECT_TRUE(shown.engine.apply(with_service(world, "default/a")).is_empty());
    world.objects.nodes["edge-1"].ready = false;
    kube::Changes heartbeat;
    heartbeat.nodes["edge-1"] = std::make_shared<const kube::Node>(world.objects.nodes["edge-1"]);
    EXPECT_TRUE(shown.engine.apply(heartbeat).is_empty());
}

TEST(Engine, TheLoserOfAFrontendIsJudgedAgainWhenItsOwnerGoes_SVC018) {
    World world = two_services();
    world.objects.services[object_name("default/b")].external_ips = {"203.0.113.1"};
    Shown shown(world);
    EXPECT_EQ(shown.first.appeared.size(), 1U);
    world.objects.services.erase(object_name("default/a"));
    const Step step = shown.engine.apply(with_service(world, "default/a"));
    EXPECT_EQ(keys_of(step.remove), Lines{"default/a/TCP"});
    EXPECT_EQ(keys_of(step.upsert), Lines{"default/b/TCP"});
    EXPECT_EQ(step.upsert.at(0)->frontends.size(), 1U);
    EXPECT_EQ(step.gone, shown.first.appeared);
}

kube::Changes with_slice(const World& world, const kube::ObjectName& name) {
    kube::Changes changes;
    changes.slices[name] = std::make_shared<const kube::EndpointSlice>(world.objects.slices.at(name));
    return changes;
}

TEST(Engine, ASliceThatChangesItsServiceChangesBoth_EP002) {
    World world = two_services();
    Shown shown(world);
    const kube::ObjectName slice = object_name("default/a-1");
    world.objects.slices[slice].meta.labels["kubernetes.io/service-name"] = "b";
    const Step step = shown.engine.apply(with_slice(world, slice));
    ASSERT_EQ(keys_of(step.upsert), (Lines{"default/a/TCP", "default/b/TCP"}));
    EXPECT_EQ(step.upsert[0]->sets.at(0).endpoints.size(), 0U);
    EXPECT_EQ(step.upsert[1]->sets.at(0).endpoints.size(), 3U);
}

TEST(Engine, SlicesMayComeBeforeTheirService_GEN006) {
    World world = two_services();
    const kube::Changes service = with_service(world, "default/a");
    world.objects.services.erase(object_name("default/a"));
    Shown shown(world);
    EXPECT_EQ(keys_of(shown.first.upsert), Lines{"default/b/TCP"});
    const Step step = shown.engine.apply(service);
    EXPECT_EQ(keys_of(step.upsert), Lines{"default/a/TCP"});
    EXPECT_EQ(step.upsert.at(0)->sets.at(0).endpoints.size(), 2U);
}

TEST(Engine, AnEndpointIsForbiddenWhileAServiceHasItsAddress_EP006) {
    World world = two_services();
    Shown shown(world);
    world.service("default/c", "10.96.0.3").external_ips = {"203.0.113.5"};
    world.objects.slices[object_name("default/b-1")].endpoints = {endpoint("203.0.113.5"),
                                                                  endpoint("203.0.113.6")};
    EXPECT_EQ(shown.engine.apply(with_slice(world, object_name("default/b-1")))
                  .upsert.at(0)
                  ->sets.at(0)
                  .endpoints.size(),
              2U);

    // As a VIP of c, then as its ClusterIP, then as neither of them.
    Step step = shown.engine.apply(with_service(world, "default/c"));
    ASSERT_EQ(keys_of(step.upsert), (Lines{"default/b/TCP", "default/c/TCP"}));
    EXPECT_EQ(step.upsert[0]->sets.at(0).endpoints.size(), 1U);
    world.service("default/c", "203.0.113.6").external_ips = {};
    step = shown.engine.apply(with_service(world, "default/c"));
    EXPECT_EQ(keys_of(step.remove), Lines{"default/c/TCP"});
    ASSERT_EQ(keys_of(step.upsert), Lines{"default/b/TCP"});
    EXPECT_EQ(step.upsert[0]->sets.at(0).endpoints.at(0).address, ip("203.0.113.5"));
    world.objects.services.erase(object_name("default/c"));
    step = shown.engine.apply(with_service(world, "default/c"));
    ASSERT_EQ(keys_of(step.upsert), Lines{"default/b/TCP"});
    EXPECT_EQ(step.upsert[0]->sets.at(0).endpoints.size(), 2U);
}

TEST(Engine, AnExternalIpIsWithdrawnWhenTheClusterTakesItsAddress_XIP006) {
    World world = two_services();
    Shown shown(world);
    world.service("other/db", "203.0.113.1");
    Step step = shown.engine.apply(with_service(world, "other/db"));
    ASSERT_EQ(keys_of(step.upsert), Lines{"default/a/TCP"});
    EXPECT_TRUE(step.upsert[0]->frontends.empty());
    ASSERT_EQ(step.appeared.size(), 1U);
    EXPECT_EQ(step.appeared[0].notice.reason, reason::kExternalIpNotAllowed);

    kube::Node node;
    node.pod_cidrs = {"203.0.113.2/31"};
    kube::Changes changes;
    changes.nodes["n"] = std::make_shared<const kube::Node>(node);
    step = shown.engine.apply(changes);
    ASSERT_EQ(keys_of(step.upsert), Lines{"default/b/TCP"});
    EXPECT_TRUE(step.upsert[0]->frontends.empty());
    changes.nodes["n"] = nullptr;
    EXPECT_EQ(shown.engine.apply(changes).upsert.at(0)->frontends.size(), 1U);
}

TEST(Engine, AnotherGatewayGetsAnotherState_NODEPORT002) {
    World world = two_services();
    world.objects.services[object_name("default/a")].external_traffic_policy = "Local";
    world.objects.slices[object_name("default/a-1")].endpoints = {endpoint("10.244.0.1", "edge-1"),
                                                                  endpoint("10.244.0.2", "edge-2")};
    world.objects.nodes["edge-2"].addresses = {{.type = "InternalIP", .address = "192.0.2.2"}};
    Shown shown(world);
    model::GatewayIdentity other = world.gateway;
    other.labels["rack"] = "2";  // nothing depends on it
    EXPECT_TRUE(shown.engine.set_gateway(other).is_empty());
    other.node_name = "edge-2";
    const Step step = shown.engine.set_gateway(other);
    ASSERT_EQ(keys_of(step.upsert), Lines{"default/a/TCP"});
    EXPECT_EQ(step.upsert[0]->sets.at(0).endpoints.at(0).address, ip("10.244.0.2"));
    ASSERT_TRUE(step.environment);
    EXPECT_EQ(step.environment->node_ports.node_addresses, std::vector{ip("192.0.2.2")});
}

// Changed without the engine's knowledge, like a memory error or a bookkeeping error.
TEST(Engine, AuditFindsAndRepairsWhatIsWrong_APISYNC021) {
    const World world = two_services();
    Engine engine(world.policy);
    const auto changed = std::make_shared<kube::Service>(world.objects.services.at(object_name("default/a")));
    kube::Changes changes = everything_in(world);
    changes.services[object_name("default/a")] = changed;
    engine.apply(changes);
    engine.set_gateway(world.gateway);
    EXPECT_TRUE(engine.audit().empty());
    const auto untouched = engine.desired().rbegin()->second;

    changed->external_ips = {"203.0.113.77"};
    EXPECT_EQ(keys_of(engine.audit()), Lines{"default/a/TCP"});
    EXPECT_EQ(engine.desired().begin()->second->frontends.at(0).address, ip("203.0.113.77"));
    EXPECT_EQ(engine.desired().rbegin()->second, untouched);
    EXPECT_TRUE(engine.audit().empty());
}

kube::Changes with_node(const World& world, const std::string& name) {
    kube::Changes changes;
    changes.nodes[name] = std::make_shared<const kube::Node>(world.objects.nodes.at(name));
    return changes;
}

kube::Changes with_slice(const World& world, const std::string& name) {
    kube::Changes changes;
    const auto found = world.objects.slices.find(object_name(name));
    changes.slices[object_name(name)] = found == world.objects.slices.end()
                                            ? nullptr
                                            : std::make_shared<const kube::EndpointSlice>(found->second);
    return changes;
}

TEST(Engine, ARelabelledNodeIsReadByThoseThatAskForLabels_TOPO001_ANN14_ANN27_EP015) {
    World world;
    for (const char* name :
         {"default/indifferent", "default/keys", "default/legacy", "default/selector", "default/weight"}) {
        const std::string number = std::to_string(world.objects.services.size() + 1);
        world.service(name).external_ips = {"203.0.113." + number};
        world.slice(std::string(name).substr(8), name, {endpoint("10.244.0." + number, "edge-2")});
    }
    world.objects.nodes["edge-1"].meta.labels["rack"] = "1";
    world.objects.nodes["edge-2"].meta.name = "edge-2";
    world.objects.services[object_name("default/keys")].topology_keys = {"rack"};
    world.objects.services[object_name("default/selector")]
        .meta.annotations["penstock.io/backend-node-selector"] = "rack=1";
    world.objects.services[object_name("default/weight")].meta.annotations["penstock.io/node-weight-label"] =
        "weight";
    world.objects.slices[object_name("default/legacy")].from_endpoints = true;
    Shown shown(world);
    world.objects.nodes["edge-2"].meta.labels = {
        {"rack", "1"}, {"weight", "7"}, {"topology.kubernetes.io/zone", "a"}};
    EXPECT_EQ(
        keys_of(shown.engine.apply(with_node(world, "edge-2")).upsert),
        (Lines{"default/keys/TCP", "default/legacy/TCP", "default/selector/TCP", "default/weight/TCP"}));
    // The gateway's own Node moves to a rack without endpoints.
    world.objects.nodes["edge-1"].meta.labels["rack"] = "2";
    EXPECT_EQ(keys_of(shown.engine.apply(with_node(world, "edge-1")).upsert), Lines{"default/keys/TCP"});
    EXPECT_TRUE(shown.engine.audit().empty());
}

TEST(Engine, AGatewayInAnotherZoneFollowsOtherHints_TOPO001_TOPO008) {
    World world = two_services();
    std::vector<kube::Endpoint>& endpoints_of_a = world.objects.slices[object_name("default/a-1")].endpoints;
    endpoints_of_a[0].hints_for_zones = {"a"};
    endpoints_of_a[1].hints_for_zones = {"b"};
    Shown shown(world);
    for (const auto& [zone, left] :
         std::map<std::string, std::string>{{"a", "10.244.0.1"}, {"b", "10.244.0.2"}}) {
        world.objects.nodes["edge-1"].meta.labels["topology.kubernetes.io/zone"] = zone;
        const Step step = shown.engine.apply(with_node(world, "edge-1"));
        ASSERT_EQ(keys_of(step.upsert), Lines{"default/a/TCP"});
        ASSERT_EQ(step.upsert[0]->sets[0].endpoints.size(), 1U);
        EXPECT_EQ(step.upsert[0]->sets[0].endpoints[0].address, ip(left));
    }
    // An external gateway has its own labels.
    const Step moved =
        shown.engine.set_gateway({.gateway_name = "gw", .mode = model::GatewayMode::External, .labels = {}});
    EXPECT_EQ(keys_of(moved.upsert), Lines{"default/a/TCP"});
    const Step labelled = shown.engine.set_gateway({.gateway_name = "gw",
                                                    .mode = model::GatewayMode::External,
                                                    .labels = {{"topology.kubernetes.io/zone", "a"}}});
    EXPECT_EQ(keys_of(labelled.upsert), Lines{"default/a/TCP"});
}

TEST(Engine, TheFirstPodCidrOpensTheWayInside_ETP006_NAT004) {
    World world = two_services();
    world.objects.services[object_name("default/a")].external_traffic_policy = "Local";
    Shown shown(world);
    const auto source_inside = [](const Step& step) {
        const model::Service& service = *step.upsert.at(0);
        return service.sets.at(service.frontends.at(0).inside_set.value()).source;
    };
    world.objects.nodes["edge-1"].pod_cidrs = {"10.245.0.0/24"};
    const Step step = shown.engine.apply(with_node(world, "edge-1"));
    ASSERT_EQ(keys_of(step.upsert), Lines{"default/a/TCP"});
    EXPECT_EQ(source_inside(step), lb::SourceMode::Keep);
    world.objects.nodes["edge-1"].pod_cidrs.clear();
    EXPECT_EQ(source_inside(shown.engine.apply(with_node(world, "edge-1"))), lb::SourceMode::Translate)
        << "for the host alone";
}

// An endpoint in two slices is removed from one of them; another moves between slices, with the events in
// either order.
TEST(Engine, AnEndpointStaysAsLongAsASliceHasIt_EP017) {
    World world = two_services();
    world.slice("a-2", "default/a", {endpoint("10.244.0.2"), endpoint("10.244.0.9")});
    Shown shown(world);
    const auto addresses = [&] {
        Lines lines;
        for (const model::Endpoint& one : shown.engine.desired().begin()->second->sets[0].endpoints) {
            lines.push_back(one.address.to_string());
        }
        return lines;
    };
    EXPECT_EQ(addresses(), (Lines{"10.244.0.1", "10.244.0.2", "10.244.0.9"}));
    world.objects.slices.erase(object_name("default/a-2"));
    shown.engine.apply(with_slice(world, "default/a-2"));
    EXPECT_EQ(addresses(), (Lines{"10.244.0.1", "10.244.0.2"}));
    world.slice("a-3", "default/a", {endpoint("10.244.0.2")});
    EXPECT_TRUE(
        shown.engine.apply(with_slice(world, "default/a-3")).upsert.empty());  // added before it is removed
    world.objects.slices[object_name("default/a-1")].endpoints.pop_back();
    EXPECT_TRUE(shown.engine.apply(with_slice(world, "default/a-1")).upsert.empty());
    EXPECT_EQ(addresses(), (Lines{"10.244.0.1", "10.244.0.2"}));
}

Lines frontends_of(const Step& step) {
    Lines lines;
    for (const auto& service : step.upsert) {
        for (const model::Frontend& frontend : service->frontends) {
            lines.push_back(service->key.to_string() + " " + class_letter(frontend.cls) + " " +
                            std::to_string(frontend.port));
        }
    }
    return lines;
}

// Frontends that the old and the new type have in common keep their key, and with it their flows, affinity
// and scheduler state.
TEST(Engine, AChangedTypeIsADifferenceOfFrontends_SVC015) {
    World world;
    kube::Service& web = world.service("default/web");
    web.type = "NodePort";
    web.external_ips = {"203.0.113.1"};
    web.ports[0].node_port = 30080;
    Shown shown(world);
    EXPECT_EQ(frontends_of(shown.first), (Lines{"default/web/TCP X 80", "default/web/TCP N 30080"}));
    web.type = "LoadBalancer";
    web.ingress = {{.ip = "203.0.113.9"}};
    Step step = shown.engine.apply(with_service(world, "default/web"));
    EXPECT_EQ(frontends_of(step),
              (Lines{"default/web/TCP L 80", "default/web/TCP X 80", "default/web/TCP N 30080"}));
    EXPECT_TRUE(step.remove.empty());
    web.type = "ClusterIP";
    step = shown.engine.apply(with_service(world, "default/web"));
    EXPECT_EQ(frontends_of(step), Lines{"default/web/TCP X 80"});
    EXPECT_TRUE(step.remove.empty());
    web.type = "ExternalName";
    step = shown.engine.apply(with_service(world, "default/web"));
    EXPECT_EQ(keys_of(step.remove), Lines{"default/web/TCP"});
    EXPECT_TRUE(step.upsert.empty());
}

// The same port number under another name: in one step the frontend moves to the endpoints with the new name.
TEST(Engine, ARenamedPortIsTheSameFrontendOfAnotherServicePort_SVC017) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.1"};
    web.ports[0].name = "http";
    world.slice("s", "default/web", {endpoint("10.244.0.1")}).ports[0].name = "http";
    Shown shown(world);
    web.ports[0].name = "web";
    Step step = shown.engine.apply(with_service(world, "default/web"));
    EXPECT_EQ(keys_of(step.remove), Lines{"default/web:http/TCP"});
    EXPECT_EQ(frontends_of(step), Lines{"default/web:web/TCP X 80"});
    EXPECT_TRUE(step.upsert.at(0)->sets[0].endpoints.empty());
    EXPECT_EQ(step.upsert.at(0)->sets[0].when_empty, lb::EmptyAction::Reject);
    world.objects.slices[object_name("default/s")].ports[0].name = "web";
    step = shown.engine.apply(with_slice(world, "default/s"));
    EXPECT_EQ(step.upsert.at(0)->sets[0].endpoints.size(), 1U);
}

}  // namespace engine_test
}  // namespace penstock::semantics::testing
