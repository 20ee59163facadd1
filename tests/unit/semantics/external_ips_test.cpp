// SPDX-License-Identifier: Apache-2.0
// spec.externalIPs: the served addresses, and notices about the others.
#include <gtest/gtest.h>

#include <functional>

#include "control/semantics/prefix_set.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace external_ips_test {

TEST(ExternalIps, EveryAddressTimesEveryPortInBothModes_XIP001) {
    for (const model::GatewayMode mode : {model::GatewayMode::Node, model::GatewayMode::External}) {
        World world;
        world.gateway.mode = mode;
        kube::Service& web = world.service("default/web");
        web.external_ips = {"203.0.113.250", "203.0.113.7"};
        web.ports = {{.name = "http", .port = 80, .node_port = 30080},
                     {.name = "dns", .protocol = "UDP", .port = 53}};
        EXPECT_EQ(frontends(world.evaluate()),
                  (Lines{"default/web:dns/UDP X 203.0.113.7 53", "default/web:dns/UDP X 203.0.113.250 53",
                         "default/web:http/TCP X 203.0.113.7 80", "default/web:http/TCP X 203.0.113.250 80"}))
            << to_string(mode);
    }
}

TEST(ExternalIps, PolicyAppliesAndSourceRangesDoNot_XIP002) {
    World world;
    kube::Service& web = world.service("default/web");
    web.type = "LoadBalancer";
    web.external_ips = {"203.0.113.7"};
    web.external_traffic_policy = "Local";
    web.load_balancer_source_ranges = {"10.0.0.0/8"};
    world.slice("s", "default/web", {endpoint("10.244.0.1", "edge-1"), endpoint("10.244.0.2", "other")});
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP X 203.0.113.7 80"});
    EXPECT_EQ(endpoints(outcome, "default/web/TCP"), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(find(outcome, "default/web/TCP")->sets[0].source, lb::SourceMode::Keep);
}

TEST(ExternalIps, NodeAddressCapturesDeclaredPortsOnly_XIP003) {
    World world;
    world.objects.nodes["edge-1"].addresses = {{.type = "InternalIP", .address = "203.0.113.7"}};
    world.gateway.addresses = {
        {.port_name = "wan", .address = ip("203.0.113.7"), .prefix_length = 24, .configured = true}};
    world.service("default/web").external_ips = {"203.0.113.7"};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP X 203.0.113.7 80"});
}

// One address at a time next to a valid one, allowed or not.
TEST(ExternalIps, BadAddressGoesAloneAndByName_XIP004_XIP005_XIP006_GEN001_GEN005) {
    struct Row {
        const char* address;
        const char* reason;
        const char* in_message;
    };
    const Row rows[] = {
        {"", "InvalidExternalIP", "\"\""},
        {"example.com", "InvalidExternalIP", "example.com"},
        {"203.0.113.256", "InvalidExternalIP", "203.0.113.256"},
        {"203.0.113.7/32", "InvalidExternalIP", "203.0.113.7/32"},
        {" 203.0.113.8", "InvalidExternalIP", " 203.0.113.8"},
        {"203.0.113.9%eth0", "InvalidExternalIP", "eth0"},
        {"\xff\x1b[2J", "InvalidExternalIP", "\\xff\\x1b[2J"},
        {"::ffff:203.0.113.8", "InvalidExternalIP", "IPv4-mapped"},
        {"0.0.0.0", "InvalidExternalIP", "unspecified"},
        {"::", "InvalidExternalIP", "unspecified"},
        {"127.0.0.1", "InvalidExternalIP", "loopback"},
        {"127.255.0.1", "InvalidExternalIP", "loopback"},
        {"::1", "InvalidExternalIP", "loopback"},
        {"169.254.169.254", "InvalidExternalIP", "link-local"},
        {"fe80::1", "InvalidExternalIP", "link-local"},
        {"febf::1", "InvalidExternalIP", "link-local"},
        {"224.0.0.1", "InvalidExternalIP", "multicast"},
        {"239.255.255.255", "InvalidExternalIP", "multicast"},
        {"ff02::1", "InvalidExternalIP", "multicast"},
        {"255.255.255.255", "InvalidExternalIP", "broadcast"},
        {"2001:db8::7", "FamilyMismatch", "2001:db8::7"},
        {"80.11.12.10", "ExternalIPNotAllowed", "80.11.12.10 is not allowed for namespace default"},
        {"240.0.0.1", "ExternalIPNotAllowed", "240.0.0.1/32"},
    };
    for (const Row& row : rows) {
        World world;
        world.service("default/web").external_ips = {row.address, "203.0.113.7"};
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP X 203.0.113.7 80"}) << row.address;
        EXPECT_EQ(reasons(outcome), Lines{std::string("Service default/web ") + row.reason}) << row.address;
        EXPECT_NE(message(outcome, row.reason).find(row.in_message), std::string::npos)
            << message(outcome, row.reason);
    }
}

TEST(ExternalIps, SpellingsOfOneAddressAreOne_GEN005) {
    struct Row {
        const char* written;
        const char* canonical;
    };
    const Row rows[] = {{"203.000.113.010", "203.0.113.10"},
                        {"2001:DB8:0::1", "2001:db8::1"},
                        {"2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1"}};
    for (const Row& row : rows) {
        World world;
        kube::Service& web = world.service("default/web");
        web.ip_families = {"IPv4", "IPv6"};
        web.external_ips = {row.written, row.canonical};
        EXPECT_EQ(frontends(world.evaluate()),
                  Lines{std::string("default/web/TCP X ") + row.canonical + " 80"})
            << row.written;
    }
}

TEST(ExternalIps, FamilyAddedLaterIsServed_XIP005) {
    World world;
    kube::Service& web = world.service("default/web");
    web.ip_families = {"IPv4"};
    web.external_ips = {"2001:db8::7"};
    EXPECT_EQ(frontends(world.evaluate()), Lines{});
    web.ip_families = {"IPv4", "IPv6"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP X 2001:db8::7 80"});
    EXPECT_EQ(reasons(outcome), Lines{});
}

TEST(ExternalIps, NothingIsAllowedByDefaultAndTheServiceTellsWhy_XIP006) {
    World world;
    world.policy = {};
    world.service("default/web").external_ips = {"80.11.12.10"};
    const Outcome outcome = world.evaluate();
    const model::Service* web = find(outcome, "default/web/TCP");
    ASSERT_NE(web, nullptr);
    EXPECT_TRUE(web->frontends.empty());
    ASSERT_EQ(web->sets.size(), 1U);
    ASSERT_EQ(web->notices.size(), 1U);
    EXPECT_EQ(web->notices[0].reason, "ExternalIPNotAllowed");
    EXPECT_NE(web->notices[0].message.find("--allowed-external-cidrs=80.11.12.10/32"), std::string::npos)
        << web->notices[0].message;
}

TEST(ExternalIps, SomeAddressesNoPermissionOpens_XIP006_SVC014) {
    struct Row {
        const char* name;
        std::function<void(World&)> add;
        const char* in_message;
    };
    const Row rows[] = {
        {"another's ClusterIP", [](World& w) { w.service("default/db", "203.0.113.7"); },
         "allocated ClusterIP"},
        {"a second ClusterIP",
         [](World& w) { w.service("default/db").cluster_ips = {"10.96.0.2", "203.0.113.7"}; },
         "allocated ClusterIP"},
        {"an ignored Service's ClusterIP",
         [](World& w) {
             w.service("default/db", "203.0.113.7").meta.labels["service.kubernetes.io/headless"] = "";
         },
         "allocated ClusterIP"},
        {"its own ClusterIP",
         [](World& w) { w.service("default/web", "203.0.113.7").external_ips = {"203.0.113.7"}; },
         "allocated ClusterIP"},
        {"a Pod CIDR", [](World& w) { w.objects.nodes["n"].pod_cidrs = {"10.244.0.0/16", "203.0.113.0/28"}; },
         "Pod CIDR 203.0.113.0/28"},
        {"a protected address", [](World& w) { w.policy.protected_addresses = {ip("203.0.113.7")}; },
         "protected"},
    };
    for (const Row& row : rows) {
        World world;
        world.service("default/web").external_ips = {"203.0.113.7"};
        EXPECT_EQ(frontends(world.evaluate()).size(), 1U);
        row.add(world);
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(frontends(outcome), Lines{}) << row.name;
        EXPECT_NE(message(outcome, "ExternalIPNotAllowed").find(row.in_message), std::string::npos)
            << row.name;
    }
}

TEST(ExternalIps, StaleClusterIpOfAnExternalNameProtectsNothing_SVC014) {
    World world;
    world.service("default/web").external_ips = {"203.0.113.7"};
    world.service("default/alias", "203.0.113.7").type = "ExternalName";
    EXPECT_EQ(frontends(world.evaluate()).size(), 1U);
}

TEST(ExternalIps, UnreadablePodCidrCostsOnlyItself_GEN001) {
    World world;
    world.objects.nodes["n"].pod_cidrs = {"nonsense", "203.0.113.0/28"};
    world.service("default/web").external_ips = {"203.0.113.7"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{});
    EXPECT_EQ(reasons(outcome), (Lines{"Node n InvalidPodCIDR", "Service default/web ExternalIPNotAllowed"}));
}

TEST(ExternalIps, DuplicatesCollapseInSilence_SVC019) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7", "203.0.113.7", "203.0.113.007"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{"default/web/TCP X 203.0.113.7 80"});
    EXPECT_EQ(reasons(outcome), Lines{});
}

}  // namespace external_ips_test
}  // namespace penstock::semantics::testing
