// SPDX-License-Identifier: Apache-2.0
// Edits of a live Service: a Step contains only the difference.
#include <gtest/gtest.h>

#include "control/semantics/engine.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace service_changes_test {

// One Service, and an engine that follows its changes.
class ServiceChanges : public ::testing::Test {
 protected:
    ServiceChanges() {
        web_ = &world_.service("default/web", "10.96.0.1");
        web_->external_ips = {"203.0.113.7"};
        world_.slice("web-1", "default/web", {endpoint("10.244.0.1")});
        engine_.set_gateway(world_.gateway);
    }
    Step apply() {
        kube::Changes changes;
        changes.services[object_name("default/web")] = std::make_shared<const kube::Service>(*web_);
        for (const auto& [name, slice] : world_.objects.slices) {
            changes.slices[name] = std::make_shared<const kube::EndpointSlice>(slice);
        }
        return engine_.apply(changes);
    }
    [[nodiscard]] Lines frontends() const {
        Outcome outcome;
        for (const auto& [key, service] : engine_.desired()) {
            outcome.desired.services.emplace(key, *service);
        }
        return testing::frontends(outcome);
    }

    World world_;
    kube::Service* web_ = nullptr;
    Engine engine_{world_.policy};
};

TEST_F(ServiceChanges, ATypeKeepsTheFrontendsThatBothHave_SVC015) {
    const Lines external = {"default/web/TCP X 203.0.113.7 80"};
    web_->type = "NodePort";
    web_->ports[0].node_port = 30080;
    apply();
    EXPECT_EQ(frontends(), (Lines{"default/web/TCP X 203.0.113.7 80", "default/web/TCP N IPv4 30080"}));
    web_->type = "LoadBalancer";
    web_->ingress = {{.ip = "198.51.100.7"}};
    Step step = apply();
    // The service port stays the same: flows, affinity and scheduler belong to it.
    EXPECT_TRUE(step.remove.empty());
    EXPECT_EQ(frontends(), (Lines{"default/web/TCP L 198.51.100.7 80", "default/web/TCP X 203.0.113.7 80",
                                  "default/web/TCP N IPv4 30080"}));
    web_->type = "ClusterIP";
    step = apply();
    EXPECT_TRUE(step.remove.empty());
    EXPECT_EQ(frontends(), external);
    web_->type = "ExternalName";
    step = apply();
    EXPECT_EQ(step.remove.size(), 1U);
    EXPECT_EQ(frontends(), Lines{});
}

TEST_F(ServiceChanges, ARenamedPortIsTheSameFrontendOfAnotherServicePort_SVC017) {
    web_->ports[0].name = "http";
    world_.objects.slices.begin()->second.ports[0].name = "http";
    apply();
    web_->ports[0].name = "web";
    Step step = apply();
    // In one change the old port is removed and the new one gets the frontend. No slice has the new name yet,
    // so new flows are rejected.
    ASSERT_EQ(step.remove.size(), 1U);
    ASSERT_EQ(step.upsert.size(), 1U);
    EXPECT_EQ(frontends(), Lines{"default/web:web/TCP X 203.0.113.7 80"});
    EXPECT_TRUE(step.upsert[0]->sets.at(0).endpoints.empty());
    EXPECT_EQ(step.upsert[0]->sets.at(0).when_empty, lb::EmptyAction::Reject);
    world_.objects.slices.begin()->second.ports[0].name = "web";
    step = apply();
    ASSERT_EQ(step.upsert.size(), 1U);
    EXPECT_EQ(step.upsert[0]->sets.at(0).endpoints.size(), 1U);
}

TEST_F(ServiceChanges, TwoPortsSwapTheirNumbersInOneChange_SVC016) {
    web_->ports = {{.name = "a", .port = 80}, {.name = "b", .port = 81}};
    apply();
    std::swap(web_->ports[0].port, web_->ports[1].port);
    const Step step = apply();
    EXPECT_EQ(step.upsert.size(), 2U);
    EXPECT_TRUE(step.remove.empty());
    EXPECT_TRUE(step.appeared.empty());
    EXPECT_EQ(frontends(),
              (Lines{"default/web:a/TCP X 203.0.113.7 81", "default/web:b/TCP X 203.0.113.7 80"}));
}

TEST_F(ServiceChanges, AnotherUidIsAnotherServiceAndIsTold_GEN010) {
    web_->meta.uid = "one";
    apply();
    web_->meta.uid = "two";
    const Step step = apply();
    ASSERT_EQ(step.upsert.size(), 1U);
    EXPECT_EQ(step.upsert[0]->uid, "two");
}

}  // namespace service_changes_test
}  // namespace penstock::semantics::testing
