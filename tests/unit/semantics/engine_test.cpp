// What one change makes different, and what it leaves alone.
#include "control/semantics/engine.hpp"

#include <gtest/gtest.h>

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
    EXPECT_EQ(step.node_port_addresses.has_value(), engine.node_port_addresses() != model::NodePortAddresses{});
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
