// SPDX-License-Identifier: Apache-2.0
// Endpoints of the other family: the frontends of a Service with penstock.io/translate-family, and their
// endpoints (ANN-32).
#include <gtest/gtest.h>

#include <set>

#include "control/semantics/engine.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace other_family_test {

constexpr const char* kWeb = "default/web/TCP";
constexpr const char* kTranslate = "penstock.io/translate-family";
constexpr const char* kVip = "203.0.113.7";
constexpr const char* kVip6 = "2001:db8::7";

enum class Client : uint8_t { Outside, Inside };

// The endpoints for a client at the frontend: "kept 10.244.0.1, 10.244.0.2", "translated IPv4 for IPv6
// 10.244.0.1", "reject", "no local", "drop"; "not served" if the frontend does not exist. `where`: an
// address, or "N IPv6" for the family's NodePort.
std::string met_at(const Outcome& outcome, const std::string& where, Client client = Client::Outside) {
    const model::Service* service = find(outcome, kWeb);
    if (service == nullptr) {
        return "not served";
    }
    for (const model::Frontend& frontend : service->frontends) {
        const bool node_port = frontend.cls == lb::FrontendClass::NodePort;
        if ((node_port ? std::string("N ") + to_string(frontend.family) : frontend.address.to_string()) !=
            where) {
            continue;
        }
        const uint8_t index =
            client == Client::Inside ? frontend.inside_set.value_or(frontend.set) : frontend.set;
        const model::BackendSet& set = service->sets.at(index);
        EXPECT_EQ(set.family, frontend.family);
        std::string names;
        for (const model::Endpoint& one : set.endpoints) {
            EXPECT_EQ(one.address.family(), set.endpoint_family());
            names += (names.empty() ? "" : ", ") + one.address.to_string();
        }
        if (names.empty()) {
            return set.when_empty == lb::EmptyAction::Reject        ? "reject"
                   : set.when_empty == lb::EmptyAction::DropNoLocal ? "no local"
                                                                    : "drop";
        }
        const std::string families = set.translates_family ? std::string(to_string(set.endpoint_family())) +
                                                                 " for " + to_string(set.family) + " "
                                                           : "";
        return (set.source == lb::SourceMode::Keep ? "kept " : "translated ") + families + names;
    }
    return "not served";
}

struct Given {
    std::vector<std::string> families = {"IPv4"};
    std::vector<kube::Endpoint> four;
    std::vector<kube::Endpoint> six;
    std::string policy = "Cluster";
    std::string value = "true";  // of the annotation
};

World world_of(const Given& given) {
    World world;
    kube::Service& web =
        world.service("default/web", given.families[0] == "IPv4" ? "10.96.0.1" : "fd00:96::1");
    if (given.families.size() == 2) {
        web.cluster_ips = {"10.96.0.1", "fd00:96::1"};
    }
    web.ip_families = given.families;
    web.type = "LoadBalancer";
    web.external_ips = {kVip, kVip6};
    web.ingress = {{.ip = "203.0.113.8"}, {.ip = "2001:db8::8"}};
    web.ports = {{.port = 80, .node_port = 30080}};
    web.external_traffic_policy = given.policy;
    if (!given.value.empty()) {
        web.meta.annotations[kTranslate] = given.value;
    }
    if (!given.four.empty()) {
        world.slice("four", "default/web", given.four);
    }
    if (!given.six.empty()) {
        world.slice("six", "default/web", given.six, 8080, "IPv6");
    }
    return world;
}

const kube::Endpoint kFourHere = endpoint("10.244.0.1", "edge-1");
const kube::Endpoint kFourThere = endpoint("10.244.0.2", "edge-2");
const kube::Endpoint kSixHere = endpoint("fd00:244::1", "edge-1");
const kube::Endpoint kSixThere = endpoint("fd00:244::2", "edge-2");
constexpr const char* kFourForSix = "translated IPv4 for IPv6 10.244.0.1";
constexpr const char* kSixForFour = "translated IPv6 for IPv4 fd00:244::1";

TEST(OtherFamily, ServesWhereTheFrontendsOwnHasNobody_ANN32_DUAL002) {
    struct Row {
        const char* name;
        Given given;
        const char* at_four;
        const char* at_six;
    };
    const Row rows[] = {
        {"single-stack IPv4", {.four = {kFourHere}}, "translated 10.244.0.1", kFourForSix},
        {"not asked for", {.four = {kFourHere}, .value = ""}, "translated 10.244.0.1", "not served"},
        {"asked for by false",
         {.four = {kFourHere}, .value = "false"},
         "translated 10.244.0.1",
         "not served"},
        {"asked for by nonsense",
         {.four = {kFourHere}, .value = "64"},
         "translated 10.244.0.1",
         "not served"},
        {"in another spelling", {.four = {kFourHere}, .value = " T "}, "translated 10.244.0.1", kFourForSix},
        {"single-stack IPv6",
         {.families = {"IPv6"}, .six = {kSixHere}},
         kSixForFour,
         "translated fd00:244::1"},
        {"IPv6 with hand-made IPv4 slices",
         {.families = {"IPv6"}, .four = {kFourHere}},
         "translated 10.244.0.1",
         kFourForSix},
        {"... not asked for",
         {.families = {"IPv6"}, .four = {kFourHere}, .value = ""},
         "not served",
         "reject"},
        {"dual-stack with both",
         {{"IPv4", "IPv6"}, {kFourHere}, {kSixHere}},
         "translated 10.244.0.1",
         "translated fd00:244::1"},
        {"dual-stack without IPv6",
         {{"IPv4", "IPv6"}, {kFourHere}, {}},
         "translated 10.244.0.1",
         kFourForSix},
        {"... not asked for",
         {{"IPv4", "IPv6"}, {kFourHere}, {}, "Cluster", ""},
         "translated 10.244.0.1",
         "reject"},
        {"dual-stack without IPv4",
         {{"IPv6", "IPv4"}, {}, {kSixHere}},
         kSixForFour,
         "translated fd00:244::1"},
        {"IPv6 is not ready",
         {{"IPv4", "IPv6"}, {kFourHere}, {unready_endpoint("fd00:244::1")}},
         "translated 10.244.0.1",
         kFourForSix},
        {"IPv6 serves while it terminates",
         {{"IPv4", "IPv6"}, {kFourHere}, {terminating_endpoint("fd00:244::1")}},
         "translated 10.244.0.1",
         "translated fd00:244::1"},
        {"IPv6 may never be an endpoint",
         {{"IPv4", "IPv6"}, {kFourHere}, {endpoint("fe80::1")}},
         "translated 10.244.0.1",
         kFourForSix},
        {"nobody", {{"IPv4", "IPv6"}, {}, {}}, "reject", "reject"},
        {"nobody is ready", {.four = {unready_endpoint("10.244.0.1")}}, "reject", "reject"},
        {"Local", {.four = {kFourHere, kFourThere}, .policy = "Local"}, "kept 10.244.0.1", kFourForSix},
        {"Local, all elsewhere", {.four = {kFourThere}, .policy = "Local"}, "no local", "no local"},
        {"Local, dual-stack, IPv6 elsewhere",
         {{"IPv4", "IPv6"}, {kFourHere}, {kSixThere}, "Local"},
         "kept 10.244.0.1",
         kFourForSix},
        {"Local, dual-stack, both elsewhere",
         {{"IPv4", "IPv6"}, {kFourThere}, {kSixThere}, "Local"},
         "no local",
         "no local"},
        {"Local, IPv4 elsewhere, IPv6 not ready",
         {{"IPv4", "IPv6"}, {kFourThere}, {unready_endpoint("fd00:244::1", "edge-1")}, "Local"},
         "no local",
         "no local"},
    };
    for (const Row& row : rows) {
        const Outcome outcome = world_of(row.given).evaluate();
        for (const char* where : {kVip, "203.0.113.8", "N IPv4"}) {
            EXPECT_EQ(met_at(outcome, where), row.at_four) << row.name << " at " << where;
        }
        for (const char* where : {kVip6, "2001:db8::8", "N IPv6"}) {
            EXPECT_EQ(met_at(outcome, where), row.at_six) << row.name << " at " << where;
        }
    }
}

TEST(OtherFamily, FrontendsOfAFamilyThatTheServiceLacksAreServed_ANN32_XIP005_DUAL003) {
    World world = world_of({.four = {kFourHere}});
    EXPECT_EQ(reasons(world.evaluate()), Lines{});
    world.objects.services.begin()->second.meta.annotations.clear();
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web FamilyMismatch"});
    EXPECT_EQ(met_at(world.evaluate(), "N IPv6"), "not served");
}

TEST(OtherFamily, AnInvalidValueIsToldAndFalse_ANN32_ANNG3) {
    const Outcome outcome =
        world_of({.families = {"IPv4", "IPv6"}, .four = {kFourHere}, .value = "maybe"}).evaluate();
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web InvalidAnnotation"});
    EXPECT_EQ(met_at(outcome, kVip6), "reject");
}

TEST(OtherFamily, PolicyLocalLosesTheClientsAddressAndSaysSo_ANN32_NAT003) {
    const Outcome outcome = world_of({.four = {kFourHere, kFourThere}, .policy = "Local"}).evaluate();
    EXPECT_EQ(met_at(outcome, kVip6), kFourForSix);
    EXPECT_EQ(message(outcome, "SourceIPNotPreserved"),
              "externalTrafficPolicy Local cannot keep the client's address for IPv6 frontends: their "
              "endpoints are IPv4 "
              "(penstock.io/translate-family)");
    EXPECT_EQ(reasons(world_of({.four = {kFourHere}}).evaluate()), Lines{});
    EXPECT_EQ(reasons(world_of({{"IPv4", "IPv6"}, {kFourHere}, {kSixHere}, "Local"}).evaluate()), Lines{});
}

TEST(OtherFamily, ClientsInsideAreTranslatedToo_ANN32_ETP006_NAT004) {
    World world = world_of({.four = {kFourHere, kFourThere}, .policy = "Local"});
    world.objects.nodes["edge-1"].pod_cidrs = {"10.244.0.0/24", "fd00:244::/64"};
    world.policy.serve_cluster_ips = true;
    EXPECT_EQ(met_at(world.evaluate(), kVip, Client::Inside), "kept 10.244.0.1, 10.244.0.2");
    EXPECT_EQ(met_at(world.evaluate(), kVip6, Client::Inside),
              "translated IPv4 for IPv6 10.244.0.1, 10.244.0.2");
    EXPECT_EQ(met_at(world.evaluate(), "10.96.0.1", Client::Inside), "kept 10.244.0.1, 10.244.0.2");
    // Frontends of the internal policy: an IPv6 ClusterIP with only IPv4 endpoints.
    world = world_of({.families = {"IPv6"}, .four = {kFourHere, kFourThere}});
    world.objects.nodes["edge-1"].pod_cidrs = {"fd00:244::/64"};
    world.policy.serve_cluster_ips = true;
    for (const Client client : {Client::Outside, Client::Inside}) {
        EXPECT_EQ(met_at(world.evaluate(), "fd00:96::1", client),
                  "translated IPv4 for IPv6 10.244.0.1, 10.244.0.2");
    }
    world.objects.services.begin()->second.internal_traffic_policy = "Local";
    for (const Client client : {Client::Outside, Client::Inside}) {
        EXPECT_EQ(met_at(world.evaluate(), "fd00:96::1", client), kFourForSix);
    }
}

// kube-proxy leaves families open only if the Service has them. It does not serve the other family at all.
TEST(OtherFamily, SourceRangesAreThoseOfTheClientsFamily_ANN32_SRC003) {
    World world = world_of({.four = {kFourHere}});
    world.objects.services.begin()->second.load_balancer_source_ranges = {"198.51.100.0/24"};
    for (const bool compat : {false, true}) {
        world.policy.source_ranges_compat_kube_proxy = compat;
        const Outcome outcome = world.evaluate();
        const Lines lines = frontends(outcome);
        EXPECT_EQ(std::ranges::count(lines, std::string(kWeb) + " L 2001:db8::8 80 filtered"), 1);
        EXPECT_EQ(std::ranges::count(lines, std::string(kWeb) + " L 203.0.113.8 80 filtered"), 1);
    }
}

TEST(OtherFamily, WeightsAndHintsAreAskedOfTheFamilyThatServes_ANN32_DUAL005_EP018) {
    World world = world_of({{"IPv4", "IPv6"}, {kFourHere, kFourThere}, {kSixHere}});
    world.objects.slices.at(object_name("default/six")).meta.annotations["penstock.io/weight"] = "0";
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "translated IPv4 for IPv6 10.244.0.1, 10.244.0.2");
    world.objects.nodes["edge-1"].meta.labels["topology.kubernetes.io/zone"] = "a";
    auto& four = world.objects.slices.at(object_name("default/four")).endpoints;
    four[0].hints_for_zones = {"b"};
    four[1].hints_for_zones = {"a"};
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "translated IPv4 for IPv6 10.244.0.2");
}

TEST(OtherFamily, NoTopologyKeyMatchesIsTheAnswerOfBothFamilies_ANN32_TOPO004) {
    World world = world_of({.four = {kFourHere}});
    world.objects.services.begin()->second.topology_keys = {"absent"};
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "reject");
    world.policy.topology_no_match_drops = true;
    EXPECT_EQ(met_at(world.evaluate(), kVip), "drop");
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "drop");
}

TEST(OtherFamily, TheHealthCheckCountsWhoeverIsReadyHere_ANN32_HC004) {
    World world = world_of({.families = {"IPv6"}, .four = {kFourHere, kFourThere}, .policy = "Local"});
    world.objects.services.begin()->second.health_check_node_port = 31000;
    ASSERT_TRUE(find(world.evaluate(), kWeb)->health_check.has_value());
    EXPECT_EQ(find(world.evaluate(), kWeb)->health_check->local_endpoints, 1U);
}

// The addresses in `endpoints` or `excluded` of any set: flows to these endpoints stay (flow_keeper).
std::set<std::string> known(const Outcome& outcome) {
    std::set<std::string> addresses;
    for (const model::BackendSet& set : find(outcome, kWeb)->sets) {
        for (const auto& one : set.endpoints) {
            addresses.insert(one.address.to_string());
        }
        for (const auto& one : set.excluded) {
            addresses.insert(one.address.to_string());
        }
    }
    return addresses;
}

TEST(OtherFamily, AFlipMovesNewFlowsAndEverybodyStaysKnown_ANN32_DRAIN001_UDP004) {
    const std::set<std::string> both = {"10.244.0.1", "fd00:244::1"};
    const auto flip = [&](const std::vector<std::string>& families) {
        World world = world_of({families, {kFourHere}, {unready_endpoint("fd00:244::1")}});
        EXPECT_EQ(met_at(world.evaluate(), kVip6), kFourForSix);
        EXPECT_EQ(known(world.evaluate()), both);
        kube::Endpoint& six = world.objects.slices.at(object_name("default/six")).endpoints[0];
        six.ready = true;
        EXPECT_EQ(met_at(world.evaluate(), kVip6), "translated fd00:244::1");
        EXPECT_EQ(met_at(world.evaluate(), kVip), "translated 10.244.0.1");
        EXPECT_EQ(known(world.evaluate()), both);
        world.objects.slices.at(object_name("default/four")).endpoints[0].ready = false;
        EXPECT_EQ(met_at(world.evaluate(), kVip), kSixForFour);
        EXPECT_EQ(known(world.evaluate()), both);
        six.ready = false;
        EXPECT_EQ(met_at(world.evaluate(), kVip6), "reject");
        EXPECT_EQ(known(world.evaluate()), both);
    };
    flip({"IPv4", "IPv6"});
    flip({"IPv4"});
    flip({"IPv6"});
    // Also if the annotation is removed from a dual-stack Service: flows of IPv6 clients stay with their IPv4
    // endpoints.
    World world = world_of({{"IPv4", "IPv6"}, {kFourHere}, {}});
    world.objects.services.begin()->second.meta.annotations.clear();
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "reject");
    EXPECT_EQ(known(world.evaluate()), std::set<std::string>{"10.244.0.1"});
}

TEST(OtherFamily, NodesAreBackendsInTheServicesOwnFamiliesOnly_ANN32_NODEPORT009) {
    World world = world_of({.four = {kFourHere}});
    world.gateway = {.gateway_name = "gw", .mode = model::GatewayMode::External};
    world.policy.backend_mode = Policy::BackendMode::Node;
    world.policy.lb_vip_scope = Policy::VipScope::All;
    kube::Node& node = world.objects.nodes["edge-1"];
    node.ready = true;
    node.addresses = {{.type = "InternalIP", .address = "192.0.2.11"},
                      {.type = "InternalIP", .address = "2001:db8:1::11"}};
    // The Node has an IPv6 address, but its proxy opens no IPv6 nodePort for this Service.
    EXPECT_EQ(met_at(world.evaluate(), kVip), "translated 192.0.2.11");
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "translated IPv4 for IPv6 192.0.2.11");
    kube::Service& web = world.objects.services.begin()->second;
    web.ip_families = {"IPv4", "IPv6"};
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "translated 2001:db8:1::11");
    node.addresses.pop_back();
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "translated IPv4 for IPv6 192.0.2.11");
    web.external_traffic_policy = "Local";
    EXPECT_EQ(met_at(world.evaluate(), kVip), "kept 192.0.2.11");
    EXPECT_EQ(met_at(world.evaluate(), kVip6), "translated IPv4 for IPv6 192.0.2.11");
    EXPECT_EQ(reasons(world.evaluate()), Lines{"Service default/web SourceIPNotPreserved"});
}

}  // namespace other_family_test
}  // namespace penstock::semantics::testing
