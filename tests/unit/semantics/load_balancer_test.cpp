// SPDX-License-Identifier: Apache-2.0
// LoadBalancer IPs from the status.
#include "control/semantics/load_balancer.hpp"

#include <gtest/gtest.h>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace load_balancer_test {

constexpr const char* kOurClass = "penstock.io/gateway";

kube::Service& load_balancer(World& world, std::vector<kube::LoadBalancerIngress> ingress,
                             const std::string& lb_class = kOurClass) {
    kube::Service& web = world.service("default/web");
    web.type = "LoadBalancer";
    web.load_balancer_class = lb_class;
    web.ingress = std::move(ingress);
    return web;
}

TEST(LoadBalancer, StatusIsAuthoritative_LB001) {
    World world;
    kube::Service& web = load_balancer(world, {{.ip = "146.148.47.155"}});
    web.load_balancer_ip = "78.11.24.19";
    web.ports = {{.name = "http", .port = 80}, {.name = "https", .port = 443}};
    EXPECT_EQ(frontends(world.evaluate()), (Lines{"default/web:http/TCP L 146.148.47.155 80",
                                                  "default/web:https/TCP L 146.148.47.155 443"}));
    web.ingress.clear();
    EXPECT_EQ(world.evaluate(), Outcome{});
}

TEST(LoadBalancer, StatusOfAnotherTypeIsStale_LB001_SVC001) {
    World world;
    load_balancer(world, {{.ip = "198.51.100.7"}}).type = "NodePort";
    EXPECT_EQ(frontends(world.evaluate()), Lines{});
}

TEST(LoadBalancer, ScopeAndOwnership_LB002_LB003) {
    using Scope = Policy::VipScope;
    using Mode = model::GatewayMode;
    struct Row {
        Scope scope;
        Mode mode;
        const char* lb_class;
        bool default_lb;
        bool served;
    };
    const Row rows[] = {
        {Scope::Default, Mode::Node, "", false, true},
        {Scope::Default, Mode::Node, "other.io/lb", false, true},
        {Scope::Default, Mode::Node, kOurClass, false, true},
        {Scope::Default, Mode::External, "", false, false},
        {Scope::Default, Mode::External, "", true, true},
        {Scope::Default, Mode::External, "other.io/lb", true, false},
        {Scope::Default, Mode::External, kOurClass, false, true},
        {Scope::Owned, Mode::Node, "", false, false},
        {Scope::Owned, Mode::Node, "", true, true},
        {Scope::Owned, Mode::Node, kOurClass, false, true},
        {Scope::Owned, Mode::Node, "other.io/lb", true, false},
        {Scope::All, Mode::External, "", false, true},
        {Scope::All, Mode::External, "other.io/lb", false, true},
    };
    for (const Row& row : rows) {
        World world;
        load_balancer(world, {{.ip = "198.51.100.7"}}, row.lb_class);
        world.gateway.mode = row.mode;
        world.policy.lb_vip_scope = row.scope;
        world.policy.default_lb = row.default_lb;
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(frontends(outcome).size(), row.served ? 1U : 0U)
            << static_cast<int>(row.scope) << " " << to_string(row.mode) << " \"" << row.lb_class << "\" "
            << row.default_lb;
        EXPECT_TRUE(outcome.notices.empty());
    }
}

TEST(LoadBalancer, IpMode_LB004_GEN002) {
    struct Row {
        const char* ip_mode;
        const char* lb_class;
        bool served;
        bool told;
    };
    const Row rows[] = {
        {"", kOurClass, true, false},     {"VIP", kOurClass, true, false}, {"Proxy", kOurClass, true, false},
        {"Weird", kOurClass, true, true}, {"", "other", true, false},      {"VIP", "other", true, false},
        {"Proxy", "other", false, false}, {"Weird", "other", false, true}, {"vip", "other", false, true},
    };
    for (const Row& row : rows) {
        World world;
        load_balancer(world, {{.ip = "198.51.100.7", .ip_mode = row.ip_mode}}, row.lb_class);
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(frontends(outcome).size(), row.served ? 1U : 0U) << row.ip_mode << " " << row.lb_class;
        EXPECT_EQ(reasons(outcome), row.told ? Lines{"Service default/web UnknownValue"} : Lines{})
            << row.ip_mode << " " << row.lb_class;
    }
}

TEST(LoadBalancer, EntriesAreJudgedOneByOne_LB004_LB005) {
    World world;
    load_balancer(world,
                  {{.ip = "198.51.100.1", .ip_mode = "VIP"},
                   {.ip = "198.51.100.2", .ip_mode = "Proxy"},
                   {.hostname = "lb.example.com"},
                   {.ip = "198.51.100.3", .hostname = "lb.example.com"},
                   {.ip = "not-an-ip"},
                   {.ip = "127.0.0.1"},
                   {.ip = "2001:db8::1"}},
                  "other");
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/web/TCP L 198.51.100.1 80", "default/web/TCP L 198.51.100.3 80"}));
    EXPECT_EQ(reasons(outcome),
              (Lines{"Service default/web FamilyMismatch", "Service default/web InvalidLoadBalancerIP"}));
}

TEST(LoadBalancer, HostNameAloneOpensNothingInSilence_LB005) {
    World world;
    load_balancer(world, {{.hostname = "lb.example.com"}});
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome), Lines{});
    EXPECT_TRUE(outcome.notices.empty());
}

TEST(LoadBalancer, PortsInStatusAreInformationUnlessOurOwnError_LB006) {
    struct Row {
        const char* name;
        const char* lb_class;
        std::vector<kube::LoadBalancerIngress::PortStatus> ports;
        Lines expected;
    };
    const Lines both = {"default/web:a/TCP L 198.51.100.7 80", "default/web:b/UDP L 198.51.100.7 80"};
    const Lines only_b = {"default/web:b/UDP L 198.51.100.7 80"};
    const Row rows[] = {
        {"shorter than the spec", kOurClass, {{.port = 80}}, both},
        {"no error", kOurClass, {{.port = 80, .error = ""}}, both},
        {"our error on our Service", kOurClass, {{.port = 80, .error = "NodePortRequired"}}, only_b},
        {"our error on a Service that was ours",
         "other",
         {{.port = 80, .error = "penstock.io/NodePortRequired"}},
         only_b},
        {"somebody else's error", "other", {{.port = 80, .error = "example.com/Broken"}}, both},
        {"error of a port that is not there", kOurClass, {{.port = 81, .error = "NodePortRequired"}}, both},
    };
    for (const Row& row : rows) {
        World world;
        kube::Service& web = load_balancer(world, {{.ip = "198.51.100.7", .ports = row.ports}}, row.lb_class);
        web.ports = {{.name = "a", .port = 80}, {.name = "b", .protocol = "UDP", .port = 80}};
        EXPECT_EQ(frontends(world.evaluate()), row.expected) << row.name;
    }
}

TEST(LoadBalancer, NoPermissionIsNeededForWhatTheStatusSays_XIP006) {
    World world;
    world.policy = {};
    load_balancer(world, {{.ip = "198.51.100.7"}});
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP L 198.51.100.7 80"});
}

TEST(LoadBalancer, SameAddressAsExternalIpIsOneFilteredFrontend_SVC019) {
    World world;
    kube::Service& web = load_balancer(world, {{.ip = "203.0.113.7"}});
    web.external_ips = {"203.0.113.7", "203.0.113.8"};
    web.load_balancer_source_ranges = {"10.0.0.0/8"};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/web/TCP L 203.0.113.7 80 filtered", "default/web/TCP X 203.0.113.8 80"}));
    EXPECT_EQ(reasons(outcome), Lines{});
}

TEST(LoadBalancer, AddressListedTwiceIsOneFrontend_SVC019) {
    World world;
    load_balancer(world, {{.ip = "198.51.100.7"}, {.ip = "198.51.100.007"}});
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP L 198.51.100.7 80"});
}

TEST(LoadBalancer, WithoutNodePortsPodsAreStillReached_LB016_SVC001) {
    World world;
    kube::Service& web = load_balancer(world, {{.ip = "198.51.100.7"}});
    web.allocate_load_balancer_node_ports = false;
    EXPECT_EQ(frontends(world.evaluate()), Lines{"default/web/TCP L 198.51.100.7 80"});
    // A nodePort that is still in the spec is served until it is removed.
    web.ports[0].node_port = 30080;
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/web/TCP L 198.51.100.7 80", "default/web/TCP N IPv4 30080"}));
}

TEST(LoadBalancer, AProtocolThatIsSwitchedOffCostsItsPortsAlone_LB017_SCTP004) {
    World world;
    kube::Service& web = load_balancer(world, {{.ip = "198.51.100.7"}});
    web.external_ips = {"203.0.113.7"};
    web.ports = {{.name = "t", .port = 443, .node_port = 30443},
                 {.name = "u", .protocol = "UDP", .port = 443},
                 {.name = "s", .protocol = "SCTP", .port = 443, .node_port = 30443}};
    EXPECT_EQ(frontends(world.evaluate()).size(), 8U);
    EXPECT_TRUE(world.evaluate().notices.empty());
    world.policy.disabled_protocols = {Protocol::Sctp};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/web:t/TCP L 198.51.100.7 443", "default/web:t/TCP X 203.0.113.7 443",
                     "default/web:t/TCP N IPv4 30443", "default/web:u/UDP L 198.51.100.7 443",
                     "default/web:u/UDP X 203.0.113.7 443"}));
    EXPECT_EQ(message(outcome, reason::kLoadBalancerPortsError),
              "port 443/SCTP is not served: the gateways' operator has switched SCTP off (--protocols)");
}

}  // namespace load_balancer_test
}  // namespace penstock::semantics::testing
