// SPDX-License-Identifier: Apache-2.0
// The steps of EP-020: excluded and remaining endpoints after each step, and their weights.
#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace selection_steps_test {

constexpr const char* kWeb = "default/web/TCP";
constexpr const char* kSelector = "penstock.io/backend-node-selector";
constexpr const char* kWeight = "penstock.io/weight";

kube::Endpoint silent(kube::Endpoint endpoint) {
    endpoint.serving = false;
    return endpoint;
}

// One endpoint for each result: ready on this node and on another one, terminating on this node, not ready
// (serving or not), a ClusterIP, and one on an unknown node.
World world_of_fates() {
    World world;
    world.service("default/web", "10.96.0.1").external_ips = {"203.0.113.7"};
    world.objects.nodes["edge-1"].meta.labels = {{"disk", "ssd"}, {"weight", "5"}};
    world.objects.nodes["edge-2"].meta.labels = {{"disk", "hdd"}, {"weight", "many"}};
    world.slice("s", "default/web",
                {endpoint("10.96.0.1", "edge-1"), endpoint("10.244.0.1", "edge-1"),
                 endpoint("10.244.0.2", "edge-2"), terminating_endpoint("10.244.0.3", "edge-1"),
                 unready_endpoint("10.244.0.4", "edge-2"), silent(unready_endpoint("10.244.0.5", "edge-2")),
                 endpoint("10.244.0.6", "gone"), endpoint("10.244.0.7")});
    return world;
}

kube::Service& web(World& world) {
    return world.objects.services.at(object_name("default/web"));
}

TEST(SelectionSteps, EachSaysWhomItTookOut_EP020_ANN14_EP006_EP010) {
    World world = world_of_fates();
    EXPECT_EQ(endpoints(world.evaluate(), kWeb),
              (Lines{"10.244.0.1 8080", "10.244.0.2 8080", "10.244.0.6 8080", "10.244.0.7 8080"}));
    EXPECT_EQ(excluded(world.evaluate(), kWeb),
              (Lines{"10.96.0.1 forbidden", "10.244.0.3 terminating", "10.244.0.4 not ready",
                     "10.244.0.5 not ready, silent"}));
    // The node selector precedes policy and readiness, and excludes endpoints on unknown nodes.
    web(world).meta.annotations[kSelector] = "disk=ssd";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(excluded(world.evaluate(), kWeb),
              (Lines{"10.96.0.1 forbidden", "10.244.0.2 node selector", "10.244.0.3 terminating",
                     "10.244.0.4 node selector", "10.244.0.5 node selector, silent",
                     "10.244.0.6 node selector", "10.244.0.7 node selector"}));
    web(world).meta.annotations.clear();
    web(world).external_traffic_policy = "Local";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(excluded(world.evaluate(), kWeb),
              (Lines{"10.96.0.1 forbidden", "10.244.0.2 not local", "10.244.0.3 terminating",
                     "10.244.0.4 not ready", "10.244.0.5 not ready, silent", "10.244.0.6 not local",
                     "10.244.0.7 not local"}));
}

TEST(SelectionSteps, WhoeverFallsBackExcludesTheOthers_EP012_EP013_EP020) {
    World world = world_of_fates();
    world.objects.slices.at(object_name("default/s")).endpoints = {
        terminating_endpoint("10.244.0.3", "edge-1"), terminating_endpoint("10.244.0.4", "edge-2"),
        unready_endpoint("10.244.0.5", "edge-1")};
    EXPECT_EQ(excluded(world.evaluate(), kWeb), Lines{"10.244.0.5 not ready"});
    web(world).external_traffic_policy = "Local";
    EXPECT_EQ(excluded(world.evaluate(), kWeb), (Lines{"10.244.0.4 not local", "10.244.0.5 not ready"}));
}

// The complete table of EP-010: usable if no endpoint is ready, usable at all, serving.
TEST(SelectionSteps, ConditionsDecideTwentySevenWays_EP010_EP012) {
    const std::optional<bool> values[] = {std::nullopt, false, true};
    for (const auto& ready : values) {
        for (const auto& serving : values) {
            for (const auto& terminating : values) {
                World world = world_of_fates();
                kube::Endpoint one = endpoint("10.244.0.1", "edge-1");
                one.ready = ready;
                one.serving = serving;
                one.terminating = terminating;
                world.objects.slices.at(object_name("default/s")).endpoints = {one};
                const bool is_ready = ready != false;
                const bool is_serving = serving != false;
                const bool is_usable = is_ready || (is_serving && terminating == true);
                EXPECT_EQ(endpoints(world.evaluate(), kWeb), is_usable ? Lines{"10.244.0.1 8080"} : Lines{});
                EXPECT_EQ(excluded(world.evaluate(), kWeb), is_usable ? Lines{}
                                                            : is_serving
                                                                ? Lines{"10.244.0.1 not ready"}
                                                                : Lines{"10.244.0.1 not ready, silent"});
            }
        }
    }
}

TEST(NodeSelectors, TakeWhatKubectlTakes_ANN14) {
    struct Row {
        const char* selector;
        Lines chosen;
    };
    const Row rows[] = {
        {"disk==ssd", {"10.244.0.1 8080"}},
        {"disk!=ssd", {"10.244.0.2 8080"}},
        {"disk", {"10.244.0.1 8080", "10.244.0.2 8080"}},
        {"!disk", {}},
        {"disk in (ssd, hdd), weight notin (5)", {"10.244.0.2 8080"}},
        {"disk=nvme", {}},
    };
    for (const Row& row : rows) {
        World world = world_of_fates();
        web(world).meta.annotations[kSelector] = row.selector;
        EXPECT_EQ(endpoints(world.evaluate(), kWeb), row.chosen) << row.selector;
        EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].when_empty, lb::EmptyAction::Reject);
    }
    World world = world_of_fates();
    web(world).meta.annotations[kSelector] = "disk in ssd";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb).size(), 4U);
    EXPECT_EQ(reasons(world.evaluate()),
              (Lines{"Service default/web InvalidAnnotation", "Service default/web InvalidEndpointAddress"}));
    web(world).meta.annotations = {
        {"service.kubernetes.io/qcloud-loadbalancer-backends-label", "disk in (ssd)"}};
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});
}

std::vector<int> weights(const Outcome& outcome) {
    std::vector<int> result;
    for (const model::Endpoint& one : find(outcome, kWeb)->sets[0].endpoints) {
        result.push_back(one.weight);
    }
    return result;
}

TEST(Weights, ComeFromTheSlice_EP018) {
    struct Row {
        const char* text;
        int weight;
        bool valid;
    };
    const Row rows[] = {{"0", 0, true},      {"7", 7, true},   {"65535", 65535, true}, {" 7 ", 7, true},
                        {"65536", 1, false}, {"-1", 1, false}, {"+1", 1, false},       {"1.0", 1, false},
                        {"much", 1, false},  {"", 1, true},    {"  ", 1, true}};
    for (const Row& row : rows) {
        World world;
        world.service("default/web").external_ips = {"203.0.113.7"};
        world.slice("a", "default/web", {endpoint("10.244.0.1")}).meta.annotations[kWeight] = row.text;
        world.slice("b", "default/web", {endpoint("10.244.0.2")});
        EXPECT_EQ(weights(world.evaluate()), (std::vector<int>{row.weight, 1})) << row.text;
        EXPECT_EQ(reasons(world.evaluate()),
                  row.valid ? Lines{} : Lines{"Service default/web InvalidAnnotation"})
            << row.text;
    }
}

TEST(Weights, OrFromALabelOfTheNode_ANN27_EP018) {
    World world = world_of_fates();
    web(world).meta.annotations["penstock.io/node-weight-label"] = "weight";
    EXPECT_EQ(weights(world.evaluate()),
              (std::vector<int>{5, 1, 1, 1}));  // "many" is not a number; unknown node; no node
    world.objects.nodes["edge-2"].meta.labels["weight"] = "0";
    EXPECT_EQ(weights(world.evaluate()), (std::vector<int>{5, 0, 1, 1}));
    world.objects.slices.at(object_name("default/s")).meta.annotations[kWeight] = "9";
    EXPECT_EQ(weights(world.evaluate()), (std::vector<int>{9, 9, 9, 9}));
}

TEST(Weights, NothingButZeroHereIsNobodyHere_EP018_ETP003) {
    World world;
    world.service("default/web").external_ips = {"203.0.113.7"};
    web(world).external_traffic_policy = "Local";
    world.slice("here", "default/web", {endpoint("10.244.0.1", "edge-1")}).meta.annotations[kWeight] = "0";
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].when_empty, lb::EmptyAction::Reject);
    world.slice("there", "default/web", {endpoint("10.244.0.2", "edge-2")});
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].when_empty, lb::EmptyAction::DropNoLocal);
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});  // keeps its existing flows
    world.objects.slices.at(object_name("default/there")).meta.annotations[kWeight] = "0";
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].when_empty, lb::EmptyAction::Reject);
}

TEST(LegacyEndpoints, HaveTheirZoneFromTheNodeAndSayWhenTheyAreFull_EP015) {
    World world = world_of_fates();
    world.objects.nodes["edge-1"].meta.labels["topology.kubernetes.io/zone"] = "a";
    kube::EndpointSlice& slice = world.objects.slices.at(object_name("default/s"));
    slice.endpoints = {endpoint("10.244.0.1", "edge-1"), endpoint("10.244.0.2", "gone")};
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].endpoints[0].zone, "");
    slice.from_endpoints = true;
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].endpoints[0].zone, "a");
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets[0].endpoints[1].zone, "");
    slice.meta.annotations["endpoints.kubernetes.io/over-capacity"] = "warning";
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
    slice.meta.annotations["endpoints.kubernetes.io/over-capacity"] = "truncated";
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web EndpointsTruncated"});
}

// Each family separately: readiness, fallback, hints.
TEST(Families, AreJudgedApart_DUAL005_DUAL002_EP012) {
    World world;
    kube::Service& service = world.service("default/web", "10.96.0.1");
    service.cluster_ips = {"10.96.0.1", "fd00:96::1"};
    service.ip_families = {"IPv4", "IPv6"};
    service.external_ips = {"203.0.113.7", "2001:db8::7"};
    world.objects.nodes["edge-1"].meta.labels["topology.kubernetes.io/zone"] = "a";
    kube::Endpoint near = endpoint("10.244.0.1");
    near.hints_for_zones = {"a"};
    kube::Endpoint far = endpoint("10.244.0.2");
    far.hints_for_zones = {"b"};
    world.slice("four", "default/web", {near, far});
    world.slice("six", "default/web",
                {terminating_endpoint("fd00:244::1"), terminating_endpoint("fd00:244::2")}, 8080, "IPv6");
    EXPECT_EQ(endpoints(world.evaluate(), kWeb, 0), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(endpoints(world.evaluate(), kWeb, 1), (Lines{"fd00:244::1 8080", "fd00:244::2 8080"}));
    // The family is removed together with its frontends (DUAL-003).
    service.cluster_ips = {"10.96.0.1"};
    service.ip_families = {"IPv4"};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP X 203.0.113.7 80"});
    EXPECT_EQ(find(world.evaluate(), kWeb)->sets.size(), 1U);
}

TEST(Families, ComeAndGoWithTheService_DUAL003) {
    World world;
    kube::Service& service = world.service("default/web", "10.96.0.1");
    service.external_ips = {"203.0.113.7", "2001:db8::7"};
    service.ip_families = {"IPv4"};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP X 203.0.113.7 80"});
    service.cluster_ips = {"10.96.0.1", "fd00:96::1"};
    service.ip_families = {"IPv4", "IPv6"};
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/web/TCP X 203.0.113.7 80", "default/web/TCP X 2001:db8::7 80"}));
}

TEST(Identity, TheUidTravels_GEN010) {
    World world;
    kube::Service& service = world.service("default/web");
    service.external_ips = {"203.0.113.7"};
    service.meta.uid = "0f0c";
    EXPECT_EQ(find(world.evaluate(), kWeb)->uid, "0f0c");
}

TEST(Affinity, HasATimeoutInItsRange_AFF003) {
    struct Row {
        const char* affinity;
        int64_t asked;
        uint32_t timeout;
        Lines reasons;
    };
    const Row rows[] = {
        {"None", 60, 0, {}},
        {"ClientIP", 10800, 10800, {}},
        {"ClientIP", 1, 1, {}},
        {"ClientIP", 86400, 86400, {}},
        {"ClientIP", 0, 10800, {"Service default/web InvalidAffinityTimeout"}},
        {"ClientIP", 86401, 10800, {"Service default/web InvalidAffinityTimeout"}},
        {"ClientIP", -1, 10800, {"Service default/web InvalidAffinityTimeout"}},
        {"ClientIP", int64_t{1} << 40, 10800, {"Service default/web InvalidAffinityTimeout"}},
        {"clientip", 60, 0, {"Service default/web UnknownValue"}},
        {"ServerIP", 60, 0, {"Service default/web UnknownValue"}},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& service = world.service("default/web");
        service.external_ips = {"203.0.113.7"};
        service.session_affinity = row.affinity;
        service.affinity_timeout_s = row.asked;
        EXPECT_EQ(find(world.evaluate(), kWeb)->affinity_timeout_s, row.timeout)
            << row.affinity << " " << row.asked;
        EXPECT_EQ(reasons(world.evaluate()), row.reasons) << row.affinity << " " << row.asked;
    }
}

TEST(Affinity, TheScopeIsTheAnnotationsWhereThereIsAffinity_AFF002_ANNG3_ANNG6) {
    struct Row {
        const char* affinity;
        const char* value;
        lb::AffinityScope scope;
        Lines reasons;
    };
    using enum lb::AffinityScope;
    const Row rows[] = {
        {"ClientIP", "", Port, {}},
        {"ClientIP", "port", Port, {}},
        {"ClientIP", " service ", Service, {}},
        {"ClientIP", "all", Port, {"Service default/web InvalidAnnotation"}},
        {"None", "service", Port, {}},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& service = world.service("default/web");
        service.external_ips = {"203.0.113.7"};
        service.session_affinity = row.affinity;
        service.meta.annotations["penstock.io/affinity-scope"] = row.value;
        EXPECT_EQ(find(world.evaluate(), kWeb)->affinity_scope, row.scope)
            << row.affinity << " " << row.value;
        EXPECT_EQ(reasons(world.evaluate()), row.reasons) << row.affinity << " " << row.value;
    }
}

}  // namespace selection_steps_test
}  // namespace penstock::semantics::testing
