// What one change makes different, and what it leaves alone.
#include "control/semantics/engine.hpp"

#include <gtest/gtest.h>

#include "control/semantics/notices.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace {

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
    changes.services[object_name(name)] =
        found == world.objects.services.end() ? nullptr : std::make_shared<const kube::Service>(found->second);
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

// An engine that has been shown `world`.
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
    changes.slices[world.objects.slices.begin()->first] = std::make_shared<const kube::EndpointSlice>(world.objects.slices.begin()->second);
    const Step step = shown.engine.apply(changes);
    EXPECT_EQ(keys_of(step.upsert), Lines{"default/a/TCP"});
    EXPECT_TRUE(step.remove.empty());
    EXPECT_EQ(step.upsert.at(0)->sets.at(0).endpoints.size(), 1U);
    // What stays the same is the same value, not a copy.
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
    world.objects.slices[object_name("default/b-1")].endpoints = {endpoint("203.0.113.5"), endpoint("203.0.113.6")};
    EXPECT_EQ(shown.engine.apply(with_slice(world, object_name("default/b-1"))).upsert.at(0)->sets.at(0).endpoints.size(), 2U);

    // As a VIP of c, then as its ClusterIP, then as neither.
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
    world.objects.slices[object_name("default/a-1")].endpoints = {endpoint("10.244.0.1", "edge-1"), endpoint("10.244.0.2", "edge-2")};
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

// Changed behind the engine's back, as a fault in memory or in its bookkeeping would.
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

}  // namespace
}  // namespace penstock::semantics::testing
