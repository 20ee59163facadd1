// SPDX-License-Identifier: Apache-2.0
// Permission to use external IPs: the administrator's rules, and changes of them in a running engine.
#include "control/semantics/rights.hpp"

#include <gtest/gtest.h>

#include "control/semantics/engine.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace rights_test {

annotations::Selector selector(std::string_view text) {
    return annotations::Selector::parse(text).value();
}

TEST(Rights, RulesGrantByNamespaceAndLabel_XIP006) {
    struct Row {
        const char* name;
        std::vector<ExternalIpRule> rules;
        const char* address;
        bool allowed;
    };
    const Prefix range = cidr("203.0.113.0/24");
    const Row rows[] = {
        {"nothing is allowed by default", {}, "203.0.113.7", false},
        {"its namespace", {{.namespaces = {"shop"}, .cidrs = {range}}}, "203.0.113.7", true},
        {"one of several namespaces", {{.namespaces = {"a", "shop"}, .cidrs = {range}}}, "203.0.113.7", true},
        {"another namespace", {{.namespaces = {"shops"}, .cidrs = {range}}}, "203.0.113.7", false},
        {"all namespaces", {{.all_namespaces = true, .cidrs = {range}}}, "203.0.113.7", true},
        {"no namespace", {{.cidrs = {range}}}, "203.0.113.7", false},
        {"outside the range", {{.namespaces = {"shop"}, .cidrs = {range}}}, "203.0.114.7", false},
        {"the other family", {{.namespaces = {"shop"}, .cidrs = {cidr("0.0.0.0/0")}}}, "2001:db8::7", false},
        {"second range",
         {{.namespaces = {"shop"}, .cidrs = {range, cidr("2001:db8::/64")}}},
         "2001:db8::7",
         true},
        {"its label",
         {{.namespaces = {"shop"}, .services = selector("tier=edge"), .cidrs = {range}}},
         "203.0.113.7",
         true},
        {"another label",
         {{.namespaces = {"shop"}, .services = selector("tier=core"), .cidrs = {range}}},
         "203.0.113.7",
         false},
        {"its label, all namespaces",
         {{.all_namespaces = true, .services = selector("tier"), .cidrs = {range}}},
         "203.0.113.7",
         true},
        {"its label in another namespace",
         {{.namespaces = {"x"}, .services = selector("tier"), .cidrs = {range}}},
         "203.0.113.7",
         false},
        {"one rule's namespace and another's range do not add up",
         {{.namespaces = {"shop"}, .cidrs = {cidr("198.51.100.0/24")}},
          {.namespaces = {"x"}, .cidrs = {range}}},
         "203.0.113.7",
         false},
        {"two rules add up",
         {{.namespaces = {"shop"}, .cidrs = {cidr("198.51.100.0/24")}},
          {.namespaces = {"shop"}, .cidrs = {range}}},
         "203.0.113.7",
         true},
    };
    for (const Row& row : rows) {
        const ExternalIpRules rules({.external_ip_rules = row.rules});
        EXPECT_EQ(rules.allow(ip(row.address), "shop", {{"tier", "edge"}}), row.allowed) << row.name;
    }
}

TEST(Rights, RefusalNamesTheMissingLine_XIP006) {
    World world;
    world.policy = {};
    world.service("shop/web").external_ips = {"80.11.12.10"};
    const Outcome refused = world.evaluate();
    EXPECT_EQ(frontends(refused), Lines{});
    EXPECT_EQ(message(refused, "ExternalIPNotAllowed"),
              "80.11.12.10 is not allowed for namespace shop; add to the file of --external-ip-policy: "
              "- {namespaces: [\"shop\"], "
              "cidrs: [\"80.11.12.10/32\"]}, or for all namespaces: --allowed-external-cidrs=80.11.12.10/32");
    // Either of the two settings allows the address.
    world.policy.external_ip_rules = {{.namespaces = {"shop"}, .cidrs = {cidr("80.11.12.10/32")}}};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"shop/web/TCP X 80.11.12.10 80"});
    world.policy = {.allowed_external_cidrs = {cidr("80.11.12.10/32")}};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"shop/web/TCP X 80.11.12.10 80"});
}

TEST(Rights, NoRuleOpensWhatIsNeverAnExternalIp_XIP006) {
    World world;
    world.policy = {.external_ip_rules = {{.all_namespaces = true, .cidrs = {cidr("0.0.0.0/0")}}},
                    .protected_addresses = {ip("203.0.113.1")}};
    world.objects.nodes["n"].pod_cidrs = {"203.0.113.128/25"};
    world.service("default/db", "203.0.113.2");
    world.service("default/web").external_ips = {"203.0.113.1", "203.0.113.2", "203.0.113.129",
                                                 "203.0.113.3"};
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP X 203.0.113.3 80"});
}

TEST(Rights, AnnotationIsUnitedWithTheField_XIP008_XIP004_XIP005_XIP006) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.meta.annotations["penstock.io/external-ips"] =
        " 203.0.113.8 ,203.0.113.7, x, 127.0.0.1,80.11.12.10,2001:db8::1,";
    // Off by default, with a notice.
    const Outcome off = world.evaluate();
    EXPECT_EQ(frontends(off), Lines{"default/web/TCP X 203.0.113.7 80"});
    EXPECT_EQ(reasons(off), Lines{"Service default/web UnsupportedAnnotation"});
    world.policy.external_ips_annotation = true;
    const Outcome on = world.evaluate();
    EXPECT_EQ(frontends(on), (Lines{"default/web/TCP X 203.0.113.7 80", "default/web/TCP X 203.0.113.8 80"}));
    EXPECT_EQ(reasons(on),
              (Lines{"Service default/web ExternalIPNotAllowed", "Service default/web FamilyMismatch",
                     "Service default/web InvalidExternalIP"}));
    // The annotation alone is sufficient. The Service is part of the desired state even if all addresses are
    // refused.
    web.external_ips.clear();
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/web/TCP X 203.0.113.7 80", "default/web/TCP X 203.0.113.8 80"}));
    world.policy.allowed_external_cidrs.clear();
    EXPECT_EQ(keys(world.evaluate()), Lines{"default/web/TCP"});
}

TEST(Rights, AddressIsSharedByPortAndStaysForTheOther_XIP007) {
    World world;
    world.service("default/web").external_ips = {"203.0.113.7"};
    kube::Service& dns = world.service("default/dns");
    dns.external_ips = {"203.0.113.7"};
    dns.ports = {{.protocol = "UDP", .port = 53}};
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/dns/UDP X 203.0.113.7 53", "default/web/TCP X 203.0.113.7 80"}));
    world.objects.services.erase(object_name("default/web"));
    const Outcome left = world.evaluate();
    EXPECT_EQ(frontends(left), Lines{"default/dns/UDP X 203.0.113.7 53"});
    EXPECT_EQ(reasons(left), Lines{});
}

kube::Changes all_of(const World& world) {
    kube::Changes changes;
    for (const auto& [name, service] : world.objects.services) {
        changes.services[name] = std::make_shared<const kube::Service>(service);
    }
    for (const auto& [name, node] : world.objects.nodes) {
        changes.nodes[name] = std::make_shared<const kube::Node>(node);
    }
    return changes;
}

TEST(Rights, NewRulesReachTheServicesThatNameExternalIpsAndNoOthers_XIP006) {
    World world;
    world.service("shop/web").external_ips = {"203.0.113.7"};
    world.service("shop/plain").type = "NodePort";
    world.objects.services[object_name("shop/plain")].ports[0].node_port = 30080;
    Engine engine({});
    engine.set_gateway(world.gateway);
    engine.apply(all_of(world));
    const auto plain = engine.desired().at({"shop", "plain", "", Protocol::Tcp});
    ASSERT_TRUE(engine.desired().at({"shop", "web", "", Protocol::Tcp})->frontends.empty());

    Policy policy = engine.policy();
    policy.external_ip_rules = {{.namespaces = {"shop"}, .cidrs = {cidr("203.0.113.0/24")}}};
    const Step granted = engine.set_policy(policy);
    ASSERT_EQ(granted.upsert.size(), 1U);
    EXPECT_EQ(granted.upsert[0]->frontends.size(), 1U);
    ASSERT_EQ(granted.gone.size(), 1U);
    EXPECT_EQ(granted.gone[0].notice.reason, "ExternalIPNotAllowed");
    EXPECT_EQ(engine.desired().at({"shop", "plain", "", Protocol::Tcp}), plain);
    EXPECT_TRUE(engine.set_policy(policy).is_empty());

    policy.external_ip_rules.clear();
    const Step withdrawn = engine.set_policy(policy);
    ASSERT_EQ(withdrawn.upsert.size(), 1U);
    EXPECT_TRUE(withdrawn.upsert[0]->frontends.empty());
    EXPECT_EQ(withdrawn.appeared.size(), 1U);
    EXPECT_TRUE(engine.audit().empty());
}

TEST(Rights, NewRulesBeforeTheGatewayIsKnownCount_XIP006) {
    World world;
    world.service("shop/web").external_ips = {"203.0.113.7"};
    Engine engine({});
    EXPECT_TRUE(engine.set_policy({.allowed_external_cidrs = {cidr("203.0.113.0/24")}}).is_empty());
    engine.apply(all_of(world));
    engine.set_gateway(world.gateway);
    EXPECT_EQ(engine.desired().at({"shop", "web", "", Protocol::Tcp})->frontends.size(), 1U);
}

TEST(Rights, ClusterIpAllocatedLaterTakesTheFrontendAway_XIP006_SVC014) {
    World world;
    world.service("shop/web").external_ips = {"203.0.113.7"};
    Engine engine(world.policy);
    engine.set_gateway(world.gateway);
    engine.apply(all_of(world));
    ASSERT_EQ(engine.desired().at({"shop", "web", "", Protocol::Tcp})->frontends.size(), 1U);
    kube::Changes later;
    world.service("shop/db", "203.0.113.7");
    later.services[object_name("shop/db")] =
        std::make_shared<const kube::Service>(world.objects.services[object_name("shop/db")]);
    const Step step = engine.apply(later);
    ASSERT_EQ(step.upsert.size(), 1U);
    EXPECT_TRUE(step.upsert[0]->frontends.empty());
    ASSERT_EQ(step.appeared.size(), 1U);
    EXPECT_EQ(step.appeared[0].notice.reason, "ExternalIPNotAllowed");
}

}  // namespace rights_test
}  // namespace penstock::semantics::testing
