// SPDX-License-Identifier: Apache-2.0
#include "control/sync/stream/held_losses.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace penstock::sync {
namespace held_losses_test {

using namespace std::chrono_literals;
using Time = HeldLosses::Time;
using Keys = std::vector<std::pair<model::ServiceKey, Time>>;

constexpr Time kStart{1h};
const IpAddr kVip = IpAddr::v4(192, 0, 2, 80);

model::Endpoint endpoint(uint8_t last) {
    return {.address = IpAddr::v4(10, 0, 0, last), .port = 8080};
}

// One frontend for outside clients (set 0); clients inside the cluster use set 1.
model::Service web(std::vector<model::Endpoint> outside, std::vector<model::Endpoint> inside) {
    model::Service service{.key = {.namespace_name = "default", .name = "web"}};
    service.sets.resize(2);
    service.sets[0].endpoints = std::move(outside);
    service.sets[1].endpoints = std::move(inside);
    service.frontends = {{.address = kVip, .port = 80, .set = 0, .inside_set = 1}};
    return service;
}
model::Service web(std::vector<model::Endpoint> endpoints) {
    return web(endpoints, endpoints);
}

HeldLosses::ServicePtr shared(const model::Service& service) {
    return std::make_shared<const model::Service>(service);
}

TEST(HeldLosses, OnlyTheLossOfALastEndpointIsOne_GEN008_EP017) {
    const model::Service full = web({endpoint(1), endpoint(2)});
    const model::Service empty = web({});
    EXPECT_TRUE(loses_last_endpoint(full, empty));
    EXPECT_TRUE(loses_last_endpoint(full, web({}, {endpoint(1)})))
        << "policy Local: the endpoint of this node";
    EXPECT_TRUE(loses_last_endpoint(full, web({endpoint(1)}, {})));
    EXPECT_FALSE(loses_last_endpoint(full, web({endpoint(2)})));
    EXPECT_FALSE(loses_last_endpoint(empty, empty));
    EXPECT_FALSE(loses_last_endpoint(empty, full));
    model::Service unserved = full;
    unserved.frontends.clear();
    model::Service unserved_empty = empty;
    unserved_empty.frontends.clear();
    EXPECT_FALSE(loses_last_endpoint(unserved, unserved_empty)) << "no client can notice";
}

TEST(HeldLosses, WhatChangesBesidesIsNotHeldBack) {
    const std::vector<std::pair<const char*, std::function<void(model::Service&)>>> changes = {
        {"frontend", [](auto& service) { service.frontends[0].address = IpAddr::v4(192, 0, 2, 81); }},
        {"frontend lost", [](auto& service) { service.frontends.clear(); }},
        {"filter", [](auto& service) { service.frontends[0].filtered = true; }},
        {"source range", [](auto& service) { service.source_ranges = {*Prefix::parse("198.51.100.0/24")}; }},
        {"deny", [](auto& service) { service.source_ranges_deny = true; }},
        {"another life", [](auto& service) { service.uid = "two"; }},
        {"drain", [](auto& service) { service.drain_timeout_s = 0; }},
        {"access log", [](auto& service) { service.access_log.enabled = true; }},
        {"affinity", [](auto& service) { service.affinity_timeout_s = 10; }},
        {"affinity scope", [](auto& service) { service.affinity_scope = lb::AffinityScope::Service; }},
        {"forbidden address",
         [](auto& service) {
             service.sets[0].excluded = {{.address = IpAddr::v4(10, 0, 0, 1),
                                          .port = 8080,
                                          .why = model::Exclusion::ForbiddenAddress}};
         }},
    };
    for (const auto& [name, change] : changes) {
        model::Service empty = web({});
        change(empty);
        EXPECT_FALSE(loses_last_endpoint(web({endpoint(1)}), empty)) << name;
    }
    model::Service terminating = web({});
    terminating.sets[0].excluded = {
        {.address = IpAddr::v4(10, 0, 0, 1), .port = 8080, .why = model::Exclusion::NotReady}};
    terminating.health_check = model::HealthCheck{.port = 30'000};
    EXPECT_TRUE(loses_last_endpoint(web({endpoint(1)}), terminating))
        << "what follows from the loss is no other change";
}

TEST(HeldLosses, ALossIsSentWhenNothingCame_GEN008) {
    HeldLosses held(kLossWait);
    const auto full = shared(web({endpoint(1)}));
    EXPECT_EQ(held.on_change(nullptr, full, kStart, kStart), kStart) << "new";
    EXPECT_EQ(held.on_change(full, shared(web({})), kStart, kStart + 3ms), std::nullopt);
    EXPECT_EQ(held.due(), kStart + 3ms + kLossWait);
    EXPECT_EQ(held.oldest(), kStart);
    EXPECT_EQ(held.former_of(full->key), full);
    EXPECT_EQ(held.take_due(kStart + 2ms + kLossWait), Keys{});
    EXPECT_EQ(held.take_due(kStart + 3ms + kLossWait), (Keys{{full->key, kStart}}));
    EXPECT_EQ(held.due(), std::nullopt);
    EXPECT_EQ(held.former_of(full->key), nullptr);
}

TEST(HeldLosses, FurtherLossesDoNotExtendTheWait_GEN008) {
    HeldLosses held(kLossWait);
    const auto full = shared(web({endpoint(1)}));
    const auto local = shared(web({}, {endpoint(1)}));
    EXPECT_EQ(held.on_change(full, local, kStart, kStart), std::nullopt);
    EXPECT_EQ(held.on_change(local, shared(web({})), kStart + 50ms, kStart + 50ms), std::nullopt);
    EXPECT_EQ(held.due(), kStart + kLossWait);
    EXPECT_EQ(held.former_of(full->key), full);
}

TEST(HeldLosses, AReplacementIsSentAtOnceAndTheSameEndpointNotAtAll_EP017) {
    HeldLosses held(kLossWait);
    const auto full = shared(web({endpoint(1)}));
    const auto empty = shared(web({}));
    EXPECT_EQ(held.on_change(full, empty, kStart, kStart), std::nullopt);
    EXPECT_EQ(held.on_change(empty, shared(web({endpoint(1)})), kStart + 20ms, kStart + 20ms), std::nullopt)
        << "nothing is new";
    EXPECT_EQ(held.former_of(full->key), nullptr);
    EXPECT_EQ(held.on_change(full, empty, kStart + 1s, kStart + 1s), std::nullopt);
    EXPECT_EQ(held.on_change(empty, shared(web({endpoint(2)})), kStart + 1020ms, kStart + 1020ms),
              kStart + 1s)
        << "heard with the loss that it belongs to";
    EXPECT_EQ(held.due(), std::nullopt);
}

TEST(HeldLosses, ARemovedServiceIsForgotten) {
    HeldLosses held(kLossWait);
    const auto full = shared(web({endpoint(1)}));
    EXPECT_EQ(held.on_change(full, shared(web({})), kStart, kStart), std::nullopt);
    held.on_removed(full->key);
    EXPECT_EQ(held.due(), std::nullopt);
    EXPECT_EQ(held.take_due(kStart + 1h), Keys{});
}

TEST(HeldLosses, WithoutAWaitNothingIsHeldBack) {
    HeldLosses held(0ms);
    EXPECT_EQ(held.on_change(shared(web({endpoint(1)})), shared(web({})), kStart, kStart), kStart);
}

}  // namespace held_losses_test
}  // namespace penstock::sync
