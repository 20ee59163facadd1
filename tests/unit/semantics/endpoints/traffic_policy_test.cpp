// SPDX-License-Identifier: Apache-2.0
// The effect of the traffic policy on the endpoints.
#include "control/semantics/endpoints/traffic_policy.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace traffic_policy_test {

using lb::EmptyAction;
using lb::SourceMode;
using Mode = model::GatewayMode;

struct PolicyRow {
    const char* name;
    const char* policy;
    Mode mode;
    std::vector<kube::Endpoint> endpoints;
    Lines chosen;
    SourceMode source;
    EmptyAction when_empty;
};

class TrafficPolicies : public ::testing::TestWithParam<PolicyRow> {};

TEST_P(TrafficPolicies, ChooseEndpoints) {
    const PolicyRow& row = GetParam();
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.external_traffic_policy = row.policy;
    world.gateway.mode = row.mode;
    world.gateway.node_name = row.mode == Mode::Node ? "edge-1" : "";
    world.slice("s", "default/web", row.endpoints);
    const Outcome outcome = world.evaluate();
    const model::Service* service = find(outcome, "default/web/TCP");
    ASSERT_NE(service, nullptr);
    EXPECT_EQ(endpoints(outcome, "default/web/TCP"), row.chosen);
    EXPECT_EQ(service->sets[0].source, row.source);
    EXPECT_EQ(service->sets[0].when_empty, row.when_empty);
}

const kube::Endpoint kLocal = endpoint("10.244.0.1", "edge-1");
const kube::Endpoint kRemote = endpoint("10.244.0.2", "edge-2");
const kube::Endpoint kNowhere = endpoint("10.244.0.3", "");
const kube::Endpoint kOtherCase = endpoint("10.244.0.4", "Edge-1");
const kube::Endpoint kLocalLeaving = terminating_endpoint("10.244.0.5", "edge-1");
const kube::Endpoint kRemoteLeaving = terminating_endpoint("10.244.0.6", "edge-2");
const kube::Endpoint kLocalDown = unready_endpoint("10.244.0.7", "edge-1");
const kube::Endpoint kRemoteDown = unready_endpoint("10.244.0.8", "edge-2");

INSTANTIATE_TEST_SUITE_P(
    Table, TrafficPolicies,
    ::testing::Values(PolicyRow{"ClusterTakesAllAndTranslates_ETP001",
                                "Cluster",
                                Mode::Node,
                                {kLocal, kRemote, kNowhere},
                                {"10.244.0.1 8080", "10.244.0.2 8080", "10.244.0.3 8080"},
                                SourceMode::Translate,
                                EmptyAction::Reject},
                      PolicyRow{"ClusterTranslatesASingleLocalOneToo_ETP001",
                                "Cluster",
                                Mode::Node,
                                {kLocal},
                                {"10.244.0.1 8080"},
                                SourceMode::Translate,
                                EmptyAction::Reject},
                      PolicyRow{"ClusterInExternalMode_ETP001",
                                "Cluster",
                                Mode::External,
                                {kLocal, kRemote},
                                {"10.244.0.1 8080", "10.244.0.2 8080"},
                                SourceMode::Translate,
                                EmptyAction::Reject},
                      PolicyRow{"ClusterFallsBackToTerminating_EP012",
                                "Cluster",
                                Mode::Node,
                                {kLocalLeaving, kRemoteLeaving, kLocalDown},
                                {"10.244.0.5 8080", "10.244.0.6 8080"},
                                SourceMode::Translate,
                                EmptyAction::Reject},
                      PolicyRow{"ClusterFirstReadyEndsTheFallback_EP012",
                                "Cluster",
                                Mode::Node,
                                {kLocalLeaving, kRemote},
                                {"10.244.0.2 8080"},
                                SourceMode::Translate,
                                EmptyAction::Reject},
                      PolicyRow{"ClusterEmptyRejects_REJ001",
                                "Cluster",
                                Mode::Node,
                                {},
                                {},
                                SourceMode::Translate,
                                EmptyAction::Reject},
                      PolicyRow{"ClusterOnlyUnreadyRejects_REJ001",
                                "Cluster",
                                Mode::Node,
                                {kLocalDown},
                                {},
                                SourceMode::Translate,
                                EmptyAction::Reject},
                      PolicyRow{"LocalKeepsToThisNode_ETP002",
                                "Local",
                                Mode::Node,
                                {kLocal, kRemote, kNowhere, kOtherCase},
                                {"10.244.0.1 8080"},
                                SourceMode::Keep,
                                EmptyAction::Reject},
                      PolicyRow{"LocalReadyBeforeTerminating_EP013",
                                "Local",
                                Mode::Node,
                                {kLocal, kLocalLeaving, kRemote},
                                {"10.244.0.1 8080"},
                                SourceMode::Keep,
                                EmptyAction::Reject},
                      PolicyRow{"LocalFallsBackAlthoughRemoteIsReady_EP013",
                                "Local",
                                Mode::Node,
                                {kLocalLeaving, kRemote},
                                {"10.244.0.5 8080"},
                                SourceMode::Keep,
                                EmptyAction::Reject},
                      PolicyRow{"LocalNoneButReadyElsewhereDrops_ETP003",
                                "Local",
                                Mode::Node,
                                {kRemote},
                                {},
                                SourceMode::Keep,
                                EmptyAction::DropNoLocal},
                      PolicyRow{"LocalNoneButTerminatingElsewhereDrops_ETP003",
                                "Local",
                                Mode::Node,
                                {kRemoteLeaving, kLocalDown},
                                {},
                                SourceMode::Keep,
                                EmptyAction::DropNoLocal},
                      PolicyRow{"LocalNoneButOneWithoutANodeDrops_ETP003",
                                "Local",
                                Mode::Node,
                                {kNowhere},
                                {},
                                SourceMode::Keep,
                                EmptyAction::DropNoLocal},
                      PolicyRow{"LocalNoneAnywhereRejects_ETP003_REJ001",
                                "Local",
                                Mode::Node,
                                {kRemoteDown, kLocalDown},
                                {},
                                SourceMode::Keep,
                                EmptyAction::Reject},
                      PolicyRow{"LocalOutsideTheClusterTakesAnyReady_ETP004",
                                "Local",
                                Mode::External,
                                {kLocal, kRemote, kNowhere, kRemoteLeaving},
                                {"10.244.0.1 8080", "10.244.0.2 8080", "10.244.0.3 8080"},
                                SourceMode::Keep,
                                EmptyAction::Reject},
                      PolicyRow{"LocalOutsideTheClusterEmptyRejects_ETP004_REJ001",
                                "Local",
                                Mode::External,
                                {kRemoteDown},
                                {},
                                SourceMode::Keep,
                                EmptyAction::Reject}),
    [](const auto& row) { return row.param.name; });

TEST(TrafficPolicy, UnknownTrafficDistributionIsIgnoredAndReported_GEN002) {
    for (const char* known : {"", "PreferClose", "PreferSameZone", "PreferSameNode"}) {
        World world;
        world.service("default/web").external_ips = {"203.0.113.1"};
        world.slice("s", "default/web", {endpoint("10.244.0.1")});
        const Outcome without = world.evaluate();
        world.objects.services.begin()->second.traffic_distribution = known;
        EXPECT_EQ(world.evaluate(), without) << known;
    }
    for (const char* unknown : {"PreferMoon", "preferclose", " PreferClose"}) {
        World world;
        world.service("default/web").external_ips = {"203.0.113.1"};
        world.objects.services.begin()->second.ports.push_back({.name = "second", .port = 81});
        world.slice("s", "default/web", {endpoint("10.244.0.1")});
        const Outcome without = world.evaluate();
        world.objects.services.begin()->second.traffic_distribution = unknown;
        Outcome outcome = world.evaluate();
        EXPECT_EQ(reasons(outcome), Lines{"Service default/web UnknownValue"}) << "one for all ports";
        EXPECT_EQ(outcome.notices.at(0).notice.level, model::Notice::Level::Warning);
        EXPECT_NE(outcome.notices.at(0).notice.message.find("spec.trafficDistribution \"" +
                                                            std::string(unknown) + "\""),
                  std::string::npos)
            << outcome.notices.at(0).notice.message;
        for (auto& [key, service] : outcome.desired.services) {
            service.notices.clear();
        }
        EXPECT_EQ(outcome.desired, without.desired)
            << "the rest of the Service is served as if the field was absent";
    }
    World world;
    world.service("default/web").traffic_distribution = "PreferMoon";
    EXPECT_EQ(reasons(world.evaluate()), Lines{})
        << "a Service without frontends here does not concern the gateway";
}

TEST(TrafficPolicy, UnknownValueIsClusterAndSaidSo_ETP008_GEN002) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.external_traffic_policy = "local";
    world.slice("s", "default/web", {kRemote});
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, "default/web/TCP"), Lines{"10.244.0.2 8080"});
    EXPECT_EQ(find(outcome, "default/web/TCP")->sets[0].source, SourceMode::Translate);
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web UnknownValue"});
}

TEST(TrafficPolicy, IgnoredWhereEveryFrontendWasRefused_ETP008) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"198.51.100.7"};  // not allowed
    web.external_traffic_policy = "Local";
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(find(outcome, "default/web/TCP")->sets[0].source, SourceMode::Translate);
    web.external_traffic_policy = "Sideways";
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web ExternalIPNotAllowed"});
}

TEST(TrafficPolicy, InternalPolicyIsNotForOutsiders_ETP009) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.internal_traffic_policy = "Local";
    world.slice("s", "default/web", {kRemote});
    EXPECT_EQ(endpoints(world.evaluate(), "default/web/TCP"), Lines{"10.244.0.2 8080"});
}

TEST(EmptySets, AnnotationTurnsRejectIntoDropAndLeavesNoLocalAlone_REJ001_ANN29) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.meta.annotations["penstock.io/no-endpoints-action"] = "drop";
    EXPECT_EQ(find(world.evaluate(), "default/web/TCP")->sets[0].when_empty, EmptyAction::Drop);
    web.external_traffic_policy = "Local";
    EXPECT_EQ(find(world.evaluate(), "default/web/TCP")->sets[0].when_empty, EmptyAction::Drop);
    world.slice("s", "default/web", {kRemote});
    EXPECT_EQ(find(world.evaluate(), "default/web/TCP")->sets[0].when_empty, EmptyAction::DropNoLocal);
}

TEST(EmptySets, OnePortWithoutEndpointsLeavesItsSiblingAlone_REJ001) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.external_traffic_policy = "Local";
    web.ports = {{.name = "a", .port = 80}, {.name = "b", .port = 81}};
    world.slice("a", "default/web", {kLocal}).ports = {{.name = "a", .port = 8080}};
    world.slice("b", "default/web", {kRemote}).ports = {{.name = "b", .port = 8081}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, "default/web:a/TCP"), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(endpoints(outcome, "default/web:b/TCP"), Lines{});
    EXPECT_EQ(find(outcome, "default/web:b/TCP")->sets[0].when_empty, EmptyAction::DropNoLocal);
}

}  // namespace traffic_policy_test
}  // namespace penstock::semantics::testing
