// SPDX-License-Identifier: Apache-2.0
// Services with frontends, by type, ClusterIP and label.
#include "control/semantics/standing.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace standing_test {

TEST(Frontends, TypesNest_SVC001) {
    struct Row {
        const char* type;
        Lines expected;
    };
    const Row rows[] = {
        {"ClusterIP", {"default/web/TCP X 203.0.113.7 80"}},
        {"NodePort", {"default/web/TCP X 203.0.113.7 80", "default/web/TCP N IPv4 30080"}},
        {"LoadBalancer",
         {"default/web/TCP L 198.51.100.7 80", "default/web/TCP X 203.0.113.7 80",
          "default/web/TCP N IPv4 30080"}},
        {"ExternalName", {}},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.type = row.type;
        web.external_ips = {"203.0.113.7"};
        web.ports[0].node_port = 30080;
        web.ingress = {{.ip = "198.51.100.7"}};
        EXPECT_EQ(frontends(world.evaluate()), row.expected) << row.type;
    }
}

TEST(Frontends, UnknownTypeIsAClusterIpAndSaidSo_GEN002) {
    World world;
    kube::Service& web = world.service("default/web");
    web.type = "Weird";
    web.external_ips = {"203.0.113.7"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP X 203.0.113.7 80"});
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web UnknownValue"});
}

// Each row invalidates a Service that would otherwise have an X, an L and an N frontend.
TEST(Frontends, WithheldAltogether_SVC002_SVC003_SVC004_SVC005) {
    struct Row {
        const char* name;
        std::function<void(kube::Service&)> spoil;
        bool told;
    };
    const Row rows[] = {
        {"headless", [](auto& s) { s.cluster_ip = "None", s.cluster_ips = {"None"}; }, true},
        {"headless by the list alone", [](auto& s) { s.cluster_ip = "", s.cluster_ips = {"None"}; }, true},
        {"not yet allocated", [](auto& s) { s.cluster_ip = "", s.cluster_ips = {}; }, true},
        {"ClusterIP unreadable", [](auto& s) { s.cluster_ip = "10.96.0.300", s.cluster_ips = {}; }, true},
        {"ExternalName with a stale ClusterIP", [](auto& s) { s.type = "ExternalName"; }, true},
        {"impossible name", [](auto&) {}, true},
        {"another proxy's",
         [](auto& s) { s.meta.labels["service.kubernetes.io/service-proxy-name"] = "other"; }, false},
        {"a proxy without a name",
         [](auto& s) { s.meta.labels["service.kubernetes.io/service-proxy-name"] = ""; }, false},
        {"headless label", [](auto& s) { s.meta.labels["service.kubernetes.io/headless"] = ""; }, false},
        {"headless label with a value",
         [](auto& s) { s.meta.labels["service.kubernetes.io/headless"] = "false"; }, false},
    };
    for (const Row& row : rows) {
        World world;
        const bool bad_name = std::string(row.name) == "impossible name";
        kube::Service& web = world.service(bad_name ? "default/we b\xff" : "default/web");
        web.type = "LoadBalancer";
        web.external_ips = {"203.0.113.7"};
        web.ingress = {{.ip = "198.51.100.7"}};
        web.ports[0].node_port = 30080;
        row.spoil(web);
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(keys(outcome), Lines{}) << row.name;
        EXPECT_EQ(outcome.notices.size(), row.told ? 1U : 0U) << row.name;
        EXPECT_TRUE(outcome.notices.empty() || outcome.notices[0].notice.reason == reason::kNotServed)
            << row.name;
    }
}

TEST(Frontends, PlainHeadlessServiceIsNotWorthAWord_SVC002) {
    World world;
    world.service("default/db", "None");
    EXPECT_EQ(world.evaluate(), Outcome{});
}

TEST(Frontends, ClusterIpAssignedLaterOpensThem_SVC002) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.cluster_ip = "";
    web.cluster_ips = {};
    EXPECT_EQ(frontends(world.evaluate()), Lines{});
    web.cluster_ip = "10.96.0.9";
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP X 203.0.113.7 80"});
}

TEST(Frontends, ManifestWithoutClusterIpIsServed_SVC002) {
    World world;
    kube::Service& web = world.service("default/web");
    web.cluster_ip = "";
    web.cluster_ips = {};
    web.awaits_cluster_ip = false;
    web.external_ips = {"203.0.113.7", "2001:db8::7"};
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/web/TCP X 203.0.113.7 80", "default/web/TCP X 2001:db8::7 80"}));
}

TEST(Frontends, OwnProxyNameIsOurs_SVC004) {
    struct Row {
        const char* label;
        const char* own;
        bool served;
    };
    const Row rows[] = {{"penstock", "penstock", true},
                        {"Penstock", "penstock", false},
                        {"penstock", "", false},
                        {"", "", false}};
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.external_ips = {"203.0.113.7"};
        web.meta.labels["service.kubernetes.io/service-proxy-name"] = row.label;
        world.policy.own_proxy_name = row.own;
        EXPECT_EQ(!frontends(world.evaluate()).empty(), row.served) << row.label << " / " << row.own;
    }
}

TEST(Frontends, SelectorMakesNoDifference_SVC006) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    world.slice("by-hand", "default/web", {endpoint("10.244.0.1")});
    const Outcome without = world.evaluate();
    web.selector = {{"app", "web"}};
    EXPECT_EQ(world.evaluate(), without);
    EXPECT_EQ(endpoints(without, "default/web/TCP"), Lines{"10.244.0.1 8080"});
}

TEST(Frontends, PlainClusterIpIsNothingToAGateway_ETP008) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_traffic_policy = "Sideways";
    world.slice("s", "default/web", {endpoint("10.244.0.1")});
    EXPECT_EQ(world.evaluate(), Outcome{});
}

TEST(Families, FromFamiliesElseClusterIpsElseAddresses_DUAL001) {
    struct Row {
        const char* name;
        std::vector<std::string> ip_families;
        std::vector<std::string> cluster_ips;
        std::vector<std::string> external_ips;
        Families expected;
    };
    const Row rows[] = {
        {"ipFamilies decide", {"IPv6"}, {"10.96.0.1"}, {}, {.v4 = false, .v6 = true}},
        {"order does not matter", {"IPv6", "IPv4"}, {"fd00::1", "10.96.0.1"}, {}, {.v4 = true, .v6 = true}},
        {"else the ClusterIPs", {}, {"fd00::1"}, {"203.0.113.7"}, {.v4 = false, .v6 = true}},
        {"unknown family left out", {"IPv4", "IPv5"}, {"fd00::1"}, {}, {.v4 = true, .v6 = false}},
        {"else what it names", {}, {}, {"2001:db8::7"}, {.v4 = false, .v6 = true}},
        {"else IPv4", {}, {}, {}, {.v4 = true, .v6 = false}},
    };
    for (const Row& row : rows) {
        kube::Service service;
        service.ip_families = row.ip_families;
        service.cluster_ips = row.cluster_ips;
        service.external_ips = row.external_ips;
        Notices notices;
        EXPECT_EQ(families_of(service, notices), row.expected) << row.name;
    }
}

}  // namespace standing_test
}  // namespace penstock::semantics::testing
