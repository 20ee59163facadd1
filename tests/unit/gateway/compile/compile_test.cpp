// SPDX-License-Identifier: Apache-2.0
// Compilation of desired services to the workers' table: stable ids, isolation of refusals, NodePort address
// sets, cost in proportion to the change.
#include "control/gateway/compile/compile.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace compile_test {

// A gateway over several configurations.
class Gateway {
 public:
    explicit Gateway(IdMap map = IdMap()) : compiler(std::move(map)) {}
    // Touches every key of both versions. Keys with the same object count as unchanged.
    void apply(DesiredServices services) {
        std::vector<model::ServiceKey> touched;
        for (const auto* all : {&wanted, &services}) {
            for (const auto& [key, service] : *all) {
                touched.push_back(key);
            }
        }
        wanted = std::move(services);
        compiler.run({.desired = wanted, .node_ports = node_ports, .addresses = addresses, .shares = shares},
                     touched);
        now = *compiler.compiled();
    }
    // Nothing else has changed.
    void apply_shares(const shares::Plan& plan) {
        shares = std::make_shared<const GatewayShares>(plan, "edge-1");
        apply(wanted);
    }
    const lb::FrontendRow* find(const std::string& address, L4Port port,
                                Protocol protocol = Protocol::Tcp) const {
        return now.table->find(ip(address), port, protocol);
    }
    BackendId backend(const std::string& name, const std::string& address) const {
        for (const auto& set : now.services.at(key(name)).service->sets) {
            for (const auto& backend : set.usable) {
                if (backend.address == ip(address)) {
                    return backend.id;
                }
            }
        }
        return {};
    }
    ServiceId id(const std::string& name) const { return now.services.at(key(name)).service->id; }

    DesiredServices wanted;
    model::NodePortAddresses node_ports;
    std::vector<model::PortAddress> addresses;
    std::shared_ptr<const GatewayShares> shares;
    Compiler compiler;
    Compiled now;
    const IdMap& ids = compiler.ids();
};

TEST(Compile, AServiceBecomesRowsAndBackends) {
    Gateway gateway;
    auto web =
        service("web", {external("192.0.2.8", 80), external("2001:db8::8", 80)}, {"10.0.0.1", "10.0.0.2"});
    web.sets.push_back({.endpoints = {{ip("2001:db8:1::1"), 8080, 3, "", ""}},
                        .source = lb::SourceMode::Keep,
                        .when_empty = lb::EmptyAction::Drop,
                        .family = IpFamily::V6});
    web.frontends[1].set = 1;
    web.scheduler = lb::SchedulerKind::Maglev;
    gateway.apply(desired({web}));
    const auto* row = gateway.find("192.0.2.8", 80);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->service->display_name(), "default/web");
    EXPECT_EQ(row->service->scheduler, lb::SchedulerKind::Maglev);
    ASSERT_EQ(row->backends().usable.size(), 2U);
    EXPECT_EQ(row->backends().usable[0].address, ip("10.0.0.1"));
    EXPECT_EQ(row->backends().source, lb::SourceMode::Translate);
    EXPECT_FALSE(row->backends().ring.empty());
    const auto* v6 = gateway.find("2001:db8::8", 80);
    ASSERT_NE(v6, nullptr);
    EXPECT_EQ(v6->set, 1);
    EXPECT_EQ(v6->backends().usable[0].weight, 3);
    EXPECT_EQ(v6->backends().source, lb::SourceMode::Keep);
    EXPECT_EQ(v6->backends().when_empty, lb::EmptyAction::Drop);
    EXPECT_EQ(gateway.find("192.0.2.8", 80, Protocol::Udp), nullptr);
    EXPECT_TRUE(gateway.now.refusals.empty());
}

// Connections of another gateway may have any endpoint whose flows stay. The numbers last as long as they do.
TEST(Compile, AGatewayWithSharesListsTheEndpointsWithFlows_DRAIN003) {
    Gateway gateway;
    auto web = service("web", {external("192.0.2.8", 80)}, {"10.0.0.1", "10.0.0.2"});
    web.sets[0].excluded = {{ip("10.0.0.3"), 8080, model::Exclusion::Terminating, true},
                            {ip("10.0.0.4"), 8080, model::Exclusion::NotReady, false},
                            {ip("10.0.0.5"), 8080, model::Exclusion::ForbiddenAddress, true}};
    web.sets[0].endpoints[1].weight = 0;
    auto dns = service("dns", {external("192.0.2.8", 53)}, {});
    dns.key.protocol = Protocol::Udp;
    dns.sets[0].excluded = web.sets[0].excluded;
    const auto listed = [&](L4Port port = 80, Protocol protocol = Protocol::Tcp) {
        std::vector<std::string> all;
        const lb::Service& compiled = *gateway.find("192.0.2.8", port, protocol)->service;
        for (const auto& endpoint : compiled.flow_endpoints.all()) {
            EXPECT_EQ(compiled.flow_endpoints.find(endpoint.address, endpoint.port), endpoint.backend);
            EXPECT_EQ(gateway.ids.backends.key_of(endpoint.backend)->address, endpoint.address);
            EXPECT_TRUE(gateway.ids.backends.is_live(endpoint.backend));
            EXPECT_FALSE(compiled.flow_endpoints.find(endpoint.address, 81).is_set());
            all.push_back(endpoint.address.to_string());
        }
        EXPECT_FALSE(compiled.flow_endpoints.find(ip("10.0.0.9"), 8080).is_set());
        return all;
    };
    using Listed = std::vector<std::string>;
    gateway.apply(desired({web, dns}));
    EXPECT_EQ(listed(), Listed{}) << "no shares";
    EXPECT_EQ(gateway.ids.backends.live(), 2U);
    gateway.apply_shares(
        {.version = 1, .gateways = {{"edge-1"}, {"edge-2"}}, .shares = {{{}, "edge-1", "edge-2"}}});
    EXPECT_EQ(listed(), Listed{}) << "services were not touched";
    gateway.apply(desired({web, dns}));
    EXPECT_EQ(listed(), (Listed{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}));
    EXPECT_EQ(listed(53, Protocol::Udp), Listed{"10.0.0.3"}) << "UDP only at an endpoint that serves";
    EXPECT_EQ(gateway.find("192.0.2.8", 80)->backends().usable.size(), 1U);
    EXPECT_EQ(gateway.ids.backends.live(), 5U);
    const BackendId kept = gateway.find("192.0.2.8", 80)->service->flow_endpoints.find(ip("10.0.0.3"), 8080);
    web.sets[0].endpoints.push_back(web.sets[0].endpoints[0]);
    web.sets[0].endpoints.back().address = ip("10.0.0.3");
    web.sets[0].excluded.erase(web.sets[0].excluded.begin());
    gateway.apply(desired({web, dns}));
    EXPECT_EQ(gateway.backend("web", "10.0.0.3"), kept) << "ready again, under its number";
    web.sets[0].endpoints.pop_back();
    web.sets[0].excluded.clear();
    dns.sets[0].excluded[0].serving = false;
    gateway.apply(desired({web, dns}));
    EXPECT_EQ(listed(), (Listed{"10.0.0.1", "10.0.0.2"}));
    EXPECT_EQ(listed(53, Protocol::Udp), Listed{});
    EXPECT_EQ(gateway.ids.backends.live(), 2U);
    gateway.apply({});
    EXPECT_EQ(gateway.ids.backends.live(), 0U);
}

TEST(Compile, FlowsOfAVipUseTheSnatAddressesOfItsShare_NAT002) {
    Gateway gateway;
    gateway.addresses = {{"up", ip("198.51.100.7"), 24, true}};
    auto web = service("web",
                       {load_balancer("192.0.2.8", 80), external("192.0.2.9", 80), external("192.0.2.10", 80),
                        external("192.0.2.11", 80), node_port(30'080)},
                       {"10.0.0.1"});
    web.frontends.push_back(external("192.0.2.12", 80));
    web.frontends.back().cls = lb::FrontendClass::ClusterIp;
    const auto groups = [&] {
        std::vector<int> all;
        for (const char* const vip : {"192.0.2.8", "192.0.2.9", "192.0.2.10", "192.0.2.11", "192.0.2.12"}) {
            all.push_back(gateway.find(vip, 80)->snat_group);
        }
        all.push_back(gateway.find("198.51.100.7", 30'080)->snat_group);
        return all;
    };
    gateway.apply(desired({web}));
    EXPECT_EQ(groups(), (std::vector{0, 0, 0, 0, 0, 0})) << "without a plan";
    shares::Plan plan{.version = 1,
                      .gateways = {{"edge-1"}, {"edge-2"}, {"edge-3"}},
                      .shares = {{{net("192.0.2.8/32")}, "edge-1", "edge-2", {ip("203.0.113.1")}},
                                 {{net("192.0.2.9/32")}, "edge-2", "edge-1", {ip("2001:db8::1")}},
                                 {{net("192.0.2.10/32")}, "edge-2", "edge-3", {ip("203.0.113.3")}},
                                 {{net("192.0.2.11/32"), net("198.51.100.0/24")}, "edge-1", "edge-3"}}};
    plan.shares[0].vips.push_back(net("192.0.2.12/32"));
    gateway.apply_shares(plan);
    EXPECT_EQ(groups(), (std::vector{1, 2, 0, 0, 0, 0}))
        << "primary, heir, no role, no SNAT address, a ClusterIP and a NodePort";
    gateway.apply(gateway.wanted);
    EXPECT_EQ(groups(), (std::vector{1, 2, 0, 0, 0, 0})) << "the same plan again";
    plan.version = 2;
    plan.shares[0].primary = "edge-3";
    plan.shares[2].heir = "edge-1";
    plan.shares[3].snat = {ip("203.0.113.4")};
    gateway.apply_shares(plan);
    EXPECT_EQ(groups(), (std::vector{0, 2, 3, 4, 0, 0}));
    gateway.shares = nullptr;
    gateway.apply(gateway.wanted);
    EXPECT_EQ(groups(), (std::vector{0, 0, 0, 0, 0, 0}));
}

// An IPv6 frontend's set of IPv4 endpoints: the same backends as IPv4's own, with full NAT.
TEST(Compile, FlowRecordsFollowTheServicesSetting_ANN11) {
    Gateway gateway;
    auto web = service("web", {external("192.0.2.8", 80)}, {"10.0.0.1"});
    gateway.apply(desired({web}));
    EXPECT_EQ(gateway.find("192.0.2.8", 80)->service->flow_records, lb::FlowRecords::Default);
    for (const bool enabled : {true, false}) {
        web.access_log.enabled = enabled;
        gateway.apply(desired({web}));
        EXPECT_EQ(gateway.find("192.0.2.8", 80)->service->flow_records,
                  enabled ? lb::FlowRecords::On : lb::FlowRecords::Off);
    }
    // Names of files concern no worker.
    const auto before = gateway.now.services.at(key("web")).service;
    web.access_log.sink = "audit";
    gateway.apply(desired({web}));
    EXPECT_EQ(gateway.now.services.at(key("web")).service, before);
    EXPECT_EQ(gateway.now.services.at(key("web")).desired->access_log.sink, "audit");
}

TEST(Compile, EndpointsOfTheOtherFamilyAreTheServicesOwn_ANN32) {
    Gateway gateway;
    auto web =
        service("web", {external("192.0.2.8", 80), external("2001:db8::8", 80)}, {"10.0.0.1", "10.0.0.2"});
    web.sets[0].source = lb::SourceMode::Keep;
    web.sets.push_back(
        {.endpoints = web.sets[0].endpoints, .family = IpFamily::V6, .translates_family = true});
    web.frontends[1].set = 1;
    web.affinity_timeout_s = 60;
    gateway.apply(desired({web}));
    const auto* row = gateway.find("2001:db8::8", 80);
    ASSERT_NE(row, nullptr);
    ASSERT_EQ(row->backends().usable.size(), 2U);
    EXPECT_EQ(row->backends().usable, gateway.find("192.0.2.8", 80)->backends().usable);
    EXPECT_EQ(row->backends().source, lb::SourceMode::Translate);
    const BackendId first = gateway.backend("web", "10.0.0.1");
    // The first IPv6 endpoint takes over; the backends for IPv4 keep their ids.
    web.sets[1] = {.endpoints = {{ip("2001:db8:1::1"), 8080, 1, "", ""}}, .family = IpFamily::V6};
    gateway.apply(desired({web}));
    EXPECT_EQ(gateway.find("2001:db8::8", 80)->backends().usable[0].address, ip("2001:db8:1::1"));
    EXPECT_EQ(gateway.backend("web", "10.0.0.1"), first);
}

TEST(Compile, WeightZeroTakesNoNewFlowsAndKeepsItsId_EP018) {
    Gateway gateway;
    auto web = service("web", {external("192.0.2.8", 80)}, {"10.0.0.1", "10.0.0.2"});
    gateway.apply(desired({web}));
    const BackendId before = gateway.backend("web", "10.0.0.1");
    web.sets[0].endpoints[0].weight = 0;
    gateway.apply(desired({web}));
    EXPECT_EQ(gateway.find("192.0.2.8", 80)->backends().usable.size(), 1U);
    EXPECT_TRUE(gateway.ids.backends.is_live(before));
    web.sets[0].endpoints[0].weight = 1;
    gateway.apply(desired({web}));
    EXPECT_EQ(gateway.backend("web", "10.0.0.1"), before);
}

TEST(Compile, IdsStayTheSameOverConfigurations) {
    Gateway gateway;
    gateway.apply(desired({service("a", {external("192.0.2.1", 80)}, {"10.0.0.1", "10.0.0.2"}),
                           service("b", {external("192.0.2.2", 80)}, {"10.0.0.1"})}));
    const ServiceId a = gateway.id("a"), b = gateway.id("b");
    const BackendId a1 = gateway.backend("a", "10.0.0.1"), a2 = gateway.backend("a", "10.0.0.2"),
                    b1 = gateway.backend("b", "10.0.0.1");
    EXPECT_EQ((std::set{a1, a2, b1}).size(), 3U);  // an endpoint of two service ports is two backends
    // a loses one endpoint and gains another, b is removed, c is added.
    gateway.apply(desired({service("a", {external("192.0.2.1", 80)}, {"10.0.0.2", "10.0.0.3"}),
                           service("c", {external("192.0.2.3", 80)}, {"10.0.0.1"})}));
    EXPECT_EQ(gateway.id("a"), a);
    EXPECT_EQ(gateway.backend("a", "10.0.0.2"), a2);
    EXPECT_FALSE(gateway.ids.backends.is_live(a1));
    EXPECT_FALSE(gateway.ids.services.is_live(b));
    const BackendId a3 = gateway.backend("a", "10.0.0.3"), c1 = gateway.backend("c", "10.0.0.1");
    EXPECT_FALSE((std::set{a1, a2, b1}).contains(a3))
        << "a freed id was given out while fresh ones were left";
    EXPECT_FALSE((std::set{a1, a2, b1, a3}).contains(c1));
    // A service port that comes back gets its former id.
    gateway.apply(desired({service("a", {external("192.0.2.1", 80)}, {"10.0.0.1"}),
                           service("b", {external("192.0.2.2", 80)}, {"10.0.0.1"})}));
    EXPECT_EQ(gateway.id("b"), b);
    EXPECT_EQ(gateway.backend("a", "10.0.0.1"), a1);
    EXPECT_EQ(gateway.backend("b", "10.0.0.1"), b1);
}

TEST(Compile, AFreedIdStillNamesWhoHadIt) {
    Gateway gateway;
    gateway.apply(desired({service("a", {external("192.0.2.1", 80)}, {"10.0.0.1"})}));
    const ServiceId id = gateway.id("a");
    gateway.apply({});
    EXPECT_EQ(*gateway.ids.services.key_of(id), key("a"));
    EXPECT_EQ(gateway.ids.services.live(), 0U);
    EXPECT_EQ(gateway.ids.backends.live(), 0U);
}

TEST(Compile, FreedIdsAreReusedOnlyWhenNothingElseIsLeftOldestFirst) {
    IdPool<int, ServiceId> pool(3);
    EXPECT_EQ(pool.take(10)->value, 0U);
    EXPECT_EQ(pool.take(11)->value, 1U);
    pool.release({0});
    pool.release({1});
    EXPECT_EQ(pool.take(12)->value, 2U);  // fresh before freed
    EXPECT_EQ(pool.take(11)->value, 1U);  // its former id
    EXPECT_EQ(pool.take(13)->value, 0U);  // the only freed one
    EXPECT_FALSE(pool.take(14));
    EXPECT_EQ(pool.room(), 0U);
    pool.release({1});
    pool.release({2});
    EXPECT_EQ(pool.take(15)->value, 1U);  // freed longer ago than 2
    EXPECT_FALSE(pool.find(11));
    EXPECT_EQ(*pool.key_of({1}), 15);
}

TEST(Compile, UnchangedServicesKeepTheirVeryObject) {
    Gateway gateway;
    const auto a = service("a", {external("192.0.2.1", 80, true)}, {"10.0.0.1"});
    auto b = service("b", {external("192.0.2.2", 80)}, {"10.0.0.2"});
    gateway.apply(desired({a, b}));
    const auto was_a = gateway.now.services.at(key("a"));
    const auto was_b = gateway.now.services.at(key("b"));
    b.sets[0].endpoints.push_back({ip("10.0.0.3"), 8080, 1, "", ""});
    gateway.apply(desired({a, b}));
    EXPECT_EQ(gateway.now.services.at(key("a")).service, was_a.service);
    EXPECT_EQ(gateway.now.services.at(key("a")).filter, was_a.filter);
    EXPECT_NE(gateway.now.services.at(key("b")).service, was_b.service);
    // Display names and frontends do not cause rings to be rebuilt.
    const auto now_b = gateway.now.services.at(key("b")).service;
    b.sets[0].endpoints[0].zone = "z";
    b.frontends.push_back(external("192.0.2.3", 80));
    gateway.apply(desired({a, b}));
    EXPECT_EQ(gateway.now.services.at(key("b")).service, now_b);
    EXPECT_NE(gateway.find("192.0.2.3", 80), nullptr);
}

TEST(Compile, SourceRangesGuardFilteredFrontendsOnly_SRC001) {
    Gateway gateway;
    auto web = service("web", {external("192.0.2.1", 80, true), external("192.0.2.2", 80)}, {"10.0.0.1"});
    web.source_ranges = {net("198.51.100.0/24")};
    gateway.apply(desired({web}));
    const auto* guarded = gateway.find("192.0.2.1", 80)->filter;
    ASSERT_NE(guarded, nullptr);
    EXPECT_TRUE(guarded->allows(ip("198.51.100.7")));
    EXPECT_FALSE(guarded->allows(ip("203.0.113.7")));
    EXPECT_EQ(gateway.find("192.0.2.2", 80)->filter, nullptr);
    web.source_ranges.clear();  // no source is allowed, instead of all (SRC-002)
    gateway.apply(desired({web}));
    EXPECT_FALSE(gateway.find("192.0.2.1", 80)->filter->allows(ip("198.51.100.7")));
}

TEST(Compile, NodePortsAreServedOnTheTwinsAddresses_NODEPORT001_NODEPORT002) {
    Gateway gateway;
    gateway.addresses = {{"pen0", ip("192.0.2.1"), 24, true}, {"pen0", ip("2001:db8::1"), 64, true},
                         {"pen1", ip("10.0.0.1"), 24, false}, {"pen1", ip("169.254.1.1"), 16, false},
                         {"pen1", ip("fe80::1"), 64, false},  {"pen1", ip("127.0.0.1"), 8, false}};
    gateway.apply(desired({service("web", {node_port(30080)}, {"10.0.0.9"})}));
    EXPECT_NE(gateway.find("192.0.2.1", 30080), nullptr);
    EXPECT_NE(gateway.find("10.0.0.1", 30080), nullptr);
    EXPECT_EQ(gateway.find("2001:db8::1", 30080), nullptr) << "an IPv4 NodePort on an IPv6 address";
    EXPECT_EQ(gateway.find("169.254.1.1", 30080), nullptr);
    EXPECT_EQ(gateway.find("127.0.0.1", 30080), nullptr);
    EXPECT_TRUE(gateway.now.table->is_node_port(30080, Protocol::Tcp));
    // Addresses change: the next compilation follows.
    gateway.addresses = {{"pen0", ip("192.0.2.77"), 24, false}};
    gateway.apply(gateway.wanted);
    EXPECT_NE(gateway.find("192.0.2.77", 30080), nullptr);
    EXPECT_EQ(gateway.find("192.0.2.1", 30080), nullptr);
}

TEST(Compile, NodePortAddressesFollowCidrsAndPrimary_NODEPORT002_NODEPORT003) {
    Gateway gateway;
    gateway.addresses = {{"pen0", ip("192.0.2.1"), 24, true},
                         {"pen1", ip("10.0.0.1"), 24, true},
                         {"pen1", ip("2001:db8::1"), 64, true}};
    auto web = service("web", {node_port(30080)}, {"10.0.0.9"});
    web.frontends.push_back(node_port(30080, IpFamily::V6));
    web.sets.push_back({.family = IpFamily::V6});
    web.frontends[1].set = 1;
    gateway.node_ports.within = {net("10.0.0.0/8")};
    gateway.apply(desired({web}));
    EXPECT_EQ(gateway.find("192.0.2.1", 30080), nullptr);
    EXPECT_NE(gateway.find("10.0.0.1", 30080), nullptr);
    EXPECT_NE(gateway.find("2001:db8::1", 30080), nullptr) << "a list of IPv4 CIDRs leaves IPv6 unrestricted";
    gateway.node_ports = {.within = {}, .primary_only = true, .node_addresses = {ip("192.0.2.1")}};
    gateway.apply(desired({web}));
    EXPECT_NE(gateway.find("192.0.2.1", 30080), nullptr);
    EXPECT_EQ(gateway.find("10.0.0.1", 30080), nullptr);
    EXPECT_EQ(gateway.find("2001:db8::1", 30080), nullptr);
    gateway.node_ports = {.within = {net("127.0.0.0/8")}};
    gateway.apply(desired({web}));
    EXPECT_EQ(gateway.find("192.0.2.1", 30080), nullptr);
}

TEST(Compile, AnAddressThatIsOnlyAVipServesNoNodePort_NODEPORT004) {
    Gateway gateway;
    const DesiredServices services = desired({service("lb", {load_balancer("192.0.2.50", 80)}, {"10.0.0.8"}),
                                              service("web", {node_port(30080)}, {"10.0.0.9"})});
    gateway.addresses = {{"pen0", ip("192.0.2.50"), 32, false}, {"pen0", ip("192.0.2.1"), 24, true}};
    gateway.apply(services);
    EXPECT_EQ(gateway.find("192.0.2.50", 30080), nullptr) << "on the twin for the VIP's sake";
    EXPECT_NE(gateway.find("192.0.2.1", 30080), nullptr);
    gateway.node_ports.node_addresses = {ip("192.0.2.50")};
    gateway.apply(services);
    EXPECT_NE(gateway.find("192.0.2.50", 30080), nullptr) << "the Node's own address";
    gateway.node_ports.node_addresses.clear();
    gateway.addresses[0].configured = true;
    gateway.apply(services);
    EXPECT_NE(gateway.find("192.0.2.50", 30080), nullptr) << "given with the port";
    EXPECT_NE(gateway.find("192.0.2.50", 80), nullptr);
}

TEST(Compile, AnExactFrontendHidesANodePortOfTheSameNumber_NODEPORT004) {
    Gateway gateway;
    gateway.addresses = {{"pen0", ip("192.0.2.1"), 24, true}};
    gateway.apply(desired({service("exact", {external("192.0.2.1", 30080)}, {"10.0.0.8"}),
                           service("web", {node_port(30080)}, {"10.0.0.9"})}));
    EXPECT_TRUE(gateway.now.refusals.empty());
    EXPECT_EQ(gateway.find("192.0.2.1", 30080)->service->name, "exact");
}

TEST(Compile, AConflictRefusesOneServiceByNameAndNoOther_GEN001_SVC018) {
    Gateway gateway;
    gateway.apply(desired({service("a", {external("192.0.2.1", 80)}, {"10.0.0.1"})}));
    gateway.apply(desired({service("a", {external("192.0.2.1", 80)}, {"10.0.0.1"}),
                           service("0-newer", {external("192.0.2.1", 80)}, {"10.0.0.2"}),
                           service("z", {external("192.0.2.3", 80)}, {"10.0.0.3"})}));
    EXPECT_EQ(gateway.find("192.0.2.1", 80)->service->name, "a")
        << "a service port in force keeps its tuple, regardless of the order of names";
    ASSERT_EQ(gateway.now.refusals.size(), 1U);
    EXPECT_EQ(gateway.now.refusals.at(key("0-newer")),
              (model::Refusal{
                  model::kFrontendConflict,
                  "service default/0-newer/TCP: TCP 192.0.2.1 port 80 belongs to service default/a/TCP"}));
    EXPECT_NE(gateway.find("192.0.2.3", 80), nullptr);
    // The owner is removed: the other one takes over without being sent again.
    auto services = gateway.wanted;
    services.erase(key("a"));
    gateway.apply(services);
    EXPECT_TRUE(gateway.now.refusals.empty());
    EXPECT_EQ(gateway.find("192.0.2.1", 80)->service->name, "0-newer");
}

TEST(Compile, TwoServicesMayNotShareANodePort_SVC018) {
    Gateway gateway;
    gateway.addresses = {{"pen0", ip("192.0.2.1"), 24, true}};
    gateway.apply(desired(
        {service("a", {node_port(30080)}, {"10.0.0.1"}), service("b", {node_port(30080)}, {"10.0.0.2"})}));
    EXPECT_NE(gateway.now.refusals.at(key("b")).why.find(
                  "TCP IPv4 NodePort 30080 belongs to service default/a/TCP"),
              std::string::npos);
    EXPECT_EQ(gateway.find("192.0.2.1", 30080)->service->name, "a");
}

TEST(Compile, AFrontendMayMoveBetweenServicesInOneState_GEN007) {
    Gateway gateway;
    gateway.apply(desired({service("a", {external("192.0.2.1", 80)}, {"10.0.0.1"}),
                           service("b", {external("192.0.2.2", 80)}, {"10.0.0.2"})}));
    gateway.apply(desired({service("a", {external("192.0.2.2", 80)}, {"10.0.0.1"}),
                           service("b", {external("192.0.2.1", 80)}, {"10.0.0.2"})}));
    EXPECT_TRUE(gateway.now.refusals.empty());
    EXPECT_EQ(gateway.find("192.0.2.2", 80)->service->name, "a");
    EXPECT_EQ(gateway.find("192.0.2.1", 80)->service->name, "b");
}

TEST(Compile, ARefusedVersionLeavesTheFormerOneInForceLessWhatOthersOwnNow_SVC018) {
    Gateway gateway;
    gateway.apply(desired({service("a", {external("192.0.2.1", 80), external("192.0.2.5", 80)}, {"10.0.0.1"}),
                           service("b", {external("192.0.2.2", 80)}, {"10.0.0.2"})}));
    const auto a_before = gateway.now.services.at(key("a")).service;
    // a's new version wants the frontend of b; b's new version wants one of a's former frontends.
    gateway.apply(desired(
        {service("b", {external("192.0.2.2", 80), external("192.0.2.5", 80)}, {"10.0.0.2"}),
         service("a", {external("192.0.2.1", 80), external("192.0.2.7", 80), external("192.0.2.2", 80)},
                 {"10.0.0.9"})}));
    // Both were in force. a is first by name, so b conflicts with a's claim.
    ASSERT_TRUE(gateway.now.refusals.contains(key("b")));
    EXPECT_EQ(gateway.find("192.0.2.2", 80)->service->name, "a");
    EXPECT_EQ(gateway.find("192.0.2.7", 80)->service->name, "a");
    EXPECT_NE(gateway.now.services.at(key("a")).service, a_before);
    // b's former version keeps no row, because a owns its only tuple now. b still exists with its backend.
    EXPECT_EQ(gateway.now.services.at(key("b")).desired->frontends.size(), 1U);
    EXPECT_TRUE(gateway.backend("b", "10.0.0.2").is_set());
    EXPECT_EQ(gateway.find("192.0.2.5", 80), nullptr);
}

TEST(Compile, AFullTableRefusesTheNewestAndKeepsTheOlder_GEN009) {
    Gateway gateway(IdMap(2, 3));
    gateway.apply(desired({service("m", {external("192.0.2.1", 80)}, {"10.0.0.1"}),
                           service("n", {external("192.0.2.2", 80)}, {"10.0.0.2"})}));
    gateway.apply(desired({service("m", {external("192.0.2.1", 80)}, {"10.0.0.1"}),
                           service("n", {external("192.0.2.2", 80)}, {"10.0.0.2"}),
                           service("a", {external("192.0.2.3", 80)}, {"10.0.0.3"})}));
    EXPECT_EQ(gateway.now.refusals.at(key("a")).reason, model::kCapacityExceeded);
    EXPECT_NE(gateway.now.refusals.at(key("a")).why.find("no room for another service port"),
              std::string::npos);
    EXPECT_NE(gateway.find("192.0.2.1", 80), nullptr);
    EXPECT_NE(gateway.find("192.0.2.2", 80), nullptr);
    EXPECT_EQ(gateway.find("192.0.2.3", 80), nullptr);
    // n exceeds the remaining capacity: its former version stays.
    gateway.apply(desired({service("m", {external("192.0.2.1", 80)}, {"10.0.0.1"}),
                           service("n", {external("192.0.2.2", 80)}, {"10.0.0.2", "10.0.0.3", "10.0.0.4"})}));
    EXPECT_EQ(gateway.now.refusals.at(key("n")).reason, model::kCapacityExceeded);
    EXPECT_NE(gateway.now.refusals.at(key("n")).why.find("no room for 2 more endpoints, only for 1"),
              std::string::npos);
    EXPECT_EQ(gateway.find("192.0.2.2", 80)->backends().usable.size(), 1U);
    // Capacity is released in the same state that requests it again.
    gateway.apply(desired({service("n", {external("192.0.2.2", 80)}, {"10.0.0.2", "10.0.0.3", "10.0.0.4"})}));
    EXPECT_TRUE(gateway.now.refusals.empty());
    EXPECT_EQ(gateway.find("192.0.2.2", 80)->backends().usable.size(), 3U);
}

}  // namespace compile_test
}  // namespace penstock::gateway
