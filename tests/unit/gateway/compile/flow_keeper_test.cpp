// SPDX-License-Identifier: Apache-2.0
// Which flows end after a removal, checked by the flow orders: each rule of sections 13 and 14 alone, on a
// clock that the test advances.
#include "control/gateway/compile/flow_keeper.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "tests/unit/gateway/desired_builder.hpp"

namespace penstock::gateway {
namespace flow_keeper_test {

using std::chrono::seconds;
using Orders = std::vector<std::string>;

// A compiler and a keeper, as driven by the reconciler. Orders read "web 10.0.0.1" (all flows of that
// backend) or "web 10.0.0.1 by 192.0.2.80 80".
class Gateway {
 public:
    explicit Gateway(IdMap ids = IdMap()) : compiler(std::move(ids)) {}

    Orders apply(const std::vector<model::Service>& services) {
        std::vector<model::ServiceKey> touched;
        for (const auto& [key, service] : desired_) {
            touched.push_back(key);
        }
        desired_ = desired(services);
        for (const auto& [key, service] : desired_) {
            touched.push_back(key);
        }
        return run(touched);
    }
    Orders serve_node_ports_on(const std::vector<std::string>& addresses) {
        addresses_.clear();
        for (const auto& address : addresses) {
            addresses_.push_back({"pen0", ip(address), 24, true});
        }
        return run({});
    }
    Orders after(seconds passed) {
        now += passed;
        return texts(keeper.wake(compiler.ids(), flows_of, now));
    }

    Compiler compiler;
    FlowKeeper keeper;
    FlowKeeper::Time now{seconds(1'000)};
    FlowKeeper::FlowsOf flows_of = [](BackendId) { return 1; };
    std::shared_ptr<const GatewayShares> shares;

 private:
    Orders run(const std::vector<model::ServiceKey>& touched) {
        compiler.run({.desired = desired_, .node_ports = {}, .addresses = addresses_, .shares = shares},
                     touched);
        return texts(keeper.follow(compiler.changes(), *compiler.compiled(), compiler.ids(), flows_of, now));
    }
    Orders texts(const std::vector<conn::FlowOrder>& orders) {
        Orders out;
        for (const auto& order : orders) {
            const BackendKey& backend = *compiler.ids().backends.key_of(order.backend);
            std::string text =
                compiler.ids().services.key_of(backend.service)->name + " " + backend.address.to_string();
            if (order.frontend_port != 0) {
                text += " by " + order.frontend.to_string() + " " + std::to_string(order.frontend_port);
            }
            out.push_back(std::move(text));
        }
        std::ranges::sort(out);
        return out;
    }

    DesiredServices desired_;
    std::vector<model::PortAddress> addresses_;
};

model::Service web(Protocol protocol, const std::vector<std::string>& endpoints,
                   std::optional<uint32_t> drain = std::nullopt) {
    auto out = service("web", {external("192.0.2.80", 80)}, endpoints);
    out.key.protocol = protocol;
    out.uid = "u1";
    out.drain_timeout_s = drain;
    return out;
}
model::Service tcp(const std::vector<std::string>& endpoints, std::optional<uint32_t> drain = std::nullopt) {
    return web(Protocol::Tcp, endpoints, drain);
}
model::Service udp(const std::vector<std::string>& endpoints) {
    return web(Protocol::Udp, endpoints);
}
model::Service leave_out(model::Service service, const std::string& endpoint, model::Exclusion why,
                         bool serving) {
    service.sets[0].excluded.push_back({ip(endpoint), 8080, why, serving});
    return service;
}

TEST(FlowKeeper, UdpFlowsOfAnEndpointThatIsGoneEndAtOnce_UDP001) {
    Gateway gateway;
    EXPECT_EQ(gateway.apply({udp({"10.0.0.1", "10.0.0.2"})}), Orders{});
    EXPECT_EQ(gateway.apply({udp({"10.0.0.2"})}), Orders{"web 10.0.0.1"});
    EXPECT_EQ(gateway.apply({udp({"10.0.0.2"})}), Orders{}) << "ordered twice";
}

TEST(FlowKeeper, TheLastEndpointsUdpFlowsEndToo_UDP002) {
    Gateway gateway;
    gateway.apply({udp({"10.0.0.1"})});
    EXPECT_EQ(gateway.apply({udp({})}), Orders{"web 10.0.0.1"});
}

// A changed port is a different endpoint with the same address.
TEST(FlowKeeper, AnEndpointIsItsAddressAndItsPort_UDP001) {
    Gateway gateway;
    gateway.apply({udp({"10.0.0.1"})});
    auto moved = udp({"10.0.0.1"});
    moved.sets[0].endpoints[0].port = 9090;
    EXPECT_EQ(gateway.apply({moved}), Orders{"web 10.0.0.1"});
}

TEST(FlowKeeper, WhoeverStillServesKeepsItsUdpFlows_UDP004_DRAIN002) {
    using enum model::Exclusion;
    for (const auto why : {NodeSelector, Terminating, NotLocal, TopologyKeys, TopologyHints}) {
        Gateway gateway;
        gateway.apply({udp({"10.0.0.1", "10.0.0.2"})});
        EXPECT_EQ(gateway.apply({leave_out(udp({"10.0.0.2"}), "10.0.0.1", why, true)}), Orders{})
            << static_cast<int>(why);
        EXPECT_EQ(gateway.apply({udp({"10.0.0.2"})}), Orders{"web 10.0.0.1"}) << "gone now";
    }
}

TEST(FlowKeeper, NotServingEndsUdpFlowsAndKeepsTcpFlows_UDP001_DRAIN003) {
    Gateway gateway;
    gateway.apply({udp({"10.0.0.1", "10.0.0.2"}), tcp({"10.0.0.1", "10.0.0.2"}, 0)});
    const auto without = [](model::Service service) {
        return leave_out(std::move(service), "10.0.0.1", model::Exclusion::NotReady, false);
    };
    EXPECT_EQ(gateway.apply({without(udp({"10.0.0.2"})), without(tcp({"10.0.0.2"}, 0))}),
              Orders{"web 10.0.0.1"});
    EXPECT_EQ(gateway.apply({without(udp({"10.0.0.2"})), tcp({"10.0.0.2"}, 0)}), Orders{"web 10.0.0.1"})
        << "TCP: gone now";
}

TEST(FlowKeeper, AForbiddenAddressIsNoEndpointAnyMore_EP006) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1"}, 0)});
    EXPECT_EQ(gateway.apply({leave_out(tcp({}, 0), "10.0.0.1", model::Exclusion::ForbiddenAddress, true)}),
              Orders{"web 10.0.0.1"});
}

TEST(FlowKeeper, AnotherSetThatHasTheEndpointKeepsItsFlows_ETP007_UDP004) {
    Gateway gateway;
    auto both = udp({"10.0.0.1", "10.0.0.2"});
    gateway.apply({both});
    both.sets.push_back(both.sets[0]);
    both.sets[0].endpoints.pop_back();
    both.sets[0].source = lb::SourceMode::Keep;
    both.scheduler = lb::SchedulerKind::Maglev;
    both.sets[1].endpoints[0].weight = 7;
    EXPECT_EQ(gateway.apply({both}), Orders{});
}

// The first IPv6 endpoint gets the IPv6 frontend's new flows. Flows to IPv4 endpoints continue, also in the
// other direction, as long as their endpoints exist.
TEST(FlowKeeper, FlowsOfTheOtherFamilyStayWithTheirEndpoint_ANN32_DRAIN001_UDP004) {
    Gateway gateway;
    auto web =
        service("web", {external("192.0.2.80", 80), external("2001:db8::80", 80)}, {"10.0.0.1", "10.0.0.2"});
    web.key.protocol = Protocol::Udp;
    web.uid = "u1";
    web.frontends[1].set = 1;
    const model::BackendSet translated{
        .endpoints = web.sets[0].endpoints, .family = IpFamily::V6, .translates_family = true};
    const model::BackendSet own{.endpoints = {{ip("fd00::1"), 8080, 1, "", ""}}, .family = IpFamily::V6};
    web.sets.push_back(translated);
    EXPECT_EQ(gateway.apply({web}), Orders{});
    web.sets[1] = own;
    EXPECT_EQ(gateway.apply({web}), Orders{});
    // Removed IPv4 endpoints end all their flows, including those by IPv6 frontends.
    web.sets[0].endpoints.erase(web.sets[0].endpoints.begin());
    EXPECT_EQ(gateway.apply({web}), Orders{"web 10.0.0.1"});
    web.sets[1] = translated;
    web.sets[1].endpoints = web.sets[0].endpoints;
    EXPECT_EQ(gateway.apply({web}), Orders{"web fd00::1"});
}

TEST(FlowKeeper, TcpFlowsOfAGoneEndpointGoOnWhereNoTimeoutIsSet_DRAIN004) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2"})});
    EXPECT_EQ(gateway.apply({tcp({"10.0.0.2"})}), Orders{});
    EXPECT_EQ(gateway.keeper.deadline(), std::nullopt);
    EXPECT_EQ(gateway.after(seconds(1'000'000)), Orders{});
}

TEST(FlowKeeper, TcpFlowsEndAtOnceWhereDrainingIsOff_DRAIN004) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 0)});
    EXPECT_EQ(gateway.apply({tcp({"10.0.0.2"}, 0)}), Orders{"web 10.0.0.1"});
}

TEST(FlowKeeper, TcpFlowsEndAfterTheTimeoutAndNotBefore_DRAIN004) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 300)});
    const auto began = gateway.now;
    EXPECT_EQ(gateway.apply({tcp({"10.0.0.2"}, 300)}), Orders{});
    EXPECT_EQ(gateway.keeper.deadline(), began + seconds(300));
    EXPECT_EQ(gateway.after(seconds(299)), Orders{});
    EXPECT_EQ(gateway.after(seconds(1)), Orders{"web 10.0.0.1"});
    EXPECT_EQ(gateway.keeper.deadline(), std::nullopt);
    EXPECT_EQ(gateway.after(seconds(1'000)), Orders{});
}

TEST(FlowKeeper, AnEndpointThatReturnsInTimeKeepsItsFlows_DRAIN004) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 300)});
    gateway.apply({tcp({"10.0.0.2"}, 300)});
    gateway.after(seconds(200));
    EXPECT_EQ(gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 300)}), Orders{});
    EXPECT_EQ(gateway.keeper.deadline(), std::nullopt);
    EXPECT_EQ(gateway.after(seconds(1'000)), Orders{});
    // When it is removed again, the time starts anew.
    gateway.apply({tcp({"10.0.0.2"}, 300)});
    EXPECT_EQ(gateway.keeper.deadline(), gateway.now + seconds(300));
}

// Same as an endpoint that is not ready: its flows continue, regardless of other changes.
TEST(FlowKeeper, AnEndpointThatReturnsWithoutBeingReadyKeepsItsFlows_DRAIN004_DRAIN003) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 300)});
    gateway.apply({tcp({"10.0.0.2"}, 300)});
    gateway.apply({leave_out(tcp({"10.0.0.2"}, 300), "10.0.0.1", model::Exclusion::NotReady, false)});
    EXPECT_EQ(gateway.after(seconds(1'000)), Orders{});
}

// With shares, an endpoint gets flows of another gateway although it has never been offered here. They end by
// the same rules. Without shares it never has any.
TEST(FlowKeeper, FlowsOfOtherGatewaysEndWithTheirEndpoint_UDP001_DRAIN004) {
    const auto left_out = [](model::Service service) {
        return leave_out(std::move(service), "10.0.0.1", model::Exclusion::Terminating, true);
    };
    for (const bool has_shares : {false, true}) {
        Gateway gateway;
        if (has_shares) {
            shares::Plan plan{
                .version = 1, .gateways = {{"edge-1"}, {"edge-2"}}, .shares = {{{}, "edge-1", "edge-2"}}};
            gateway.shares = std::make_shared<const GatewayShares>(plan, "edge-1");
        }
        gateway.apply({left_out(udp({"10.0.0.2"})), left_out(tcp({"10.0.0.2"}, 30))});
        EXPECT_EQ(gateway.apply({left_out(udp({})), left_out(tcp({}, 30))}), Orders{"web 10.0.0.2"});
        EXPECT_EQ(gateway.after(seconds(1'000)), Orders{"web 10.0.0.2"});
        EXPECT_EQ(gateway.apply({udp({}), tcp({}, 30)}), has_shares ? Orders{"web 10.0.0.1"} : Orders{});
        EXPECT_EQ(gateway.after(seconds(30)), has_shares ? Orders{"web 10.0.0.1"} : Orders{});
        EXPECT_EQ(gateway.after(seconds(1'000)), Orders{});
    }
}

TEST(FlowKeeper, AChangedTimeoutAppliesToDrainsUnderWayFromTheirBeginning_DRAIN004) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2", "10.0.0.3"}, 300)});
    const auto began = gateway.now;
    gateway.apply({tcp({"10.0.0.2", "10.0.0.3"}, 300)});
    gateway.after(seconds(10));
    gateway.apply({tcp({"10.0.0.2", "10.0.0.3"}, 60)});
    EXPECT_EQ(gateway.keeper.deadline(), began + seconds(60));
    gateway.apply({tcp({"10.0.0.2", "10.0.0.3"})});
    EXPECT_EQ(gateway.keeper.deadline(), std::nullopt);
    EXPECT_EQ(gateway.apply({tcp({"10.0.0.2", "10.0.0.3"}, 5)}), Orders{"web 10.0.0.1"})
        << "ten seconds are more than five";
    gateway.apply({tcp({"10.0.0.3"}, 5)});
    EXPECT_EQ(gateway.apply({tcp({"10.0.0.3"}, 0)}), Orders{"web 10.0.0.2"});
}

TEST(FlowKeeper, AFrontendThatGoesTakesItsOwnFlowsOnly_DRAIN007_SVC016) {
    Gateway gateway;
    auto before = tcp({"10.0.0.1", "10.0.0.2"}, 30);
    auto before_udp = udp({"10.0.0.1"});
    before.frontends.push_back(external("192.0.2.80", 81));
    before_udp.frontends.push_back(external("192.0.2.80", 81));
    gateway.apply({before, before_udp});
    EXPECT_EQ(gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 30), udp({"10.0.0.1"})}),
              Orders{"web 10.0.0.1 by 192.0.2.80 81"})
        << "UDP";
    EXPECT_EQ(gateway.after(seconds(30)),
              (Orders{"web 10.0.0.1 by 192.0.2.80 81", "web 10.0.0.2 by 192.0.2.80 81"}));
    EXPECT_EQ(gateway.after(seconds(1'000)), Orders{});
}

TEST(FlowKeeper, AFrontendThatComesBackKeepsItsFlows_DRAIN007) {
    Gateway gateway;
    auto both = tcp({"10.0.0.1"}, 30);
    both.frontends.push_back(external("192.0.2.80", 81));
    gateway.apply({both});
    gateway.apply({tcp({"10.0.0.1"}, 30)});
    gateway.after(seconds(20));
    gateway.apply({both});
    EXPECT_EQ(gateway.after(seconds(1'000)), Orders{});
}

TEST(FlowKeeper, ADeletedServicesFlowsEndAsIfEveryEndpointWereGone_DRAIN007) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 30), udp({"10.0.0.1"})});
    EXPECT_EQ(gateway.apply({}), Orders{"web 10.0.0.1"}) << "UDP";
    EXPECT_EQ(gateway.after(seconds(30)), (Orders{"web 10.0.0.1", "web 10.0.0.2"}));
}

TEST(FlowKeeper, AnotherUidIsAnotherService_GEN010) {
    Gateway gateway;
    gateway.apply({tcp({"10.0.0.1"}, 30), udp({"10.0.0.1"})});
    const BackendId old_udp = *gateway.compiler.ids().backends.find(
        {*gateway.compiler.ids().services.find(key("web", Protocol::Udp)), ip("10.0.0.1"), 8080, "u1"});
    auto next = tcp({"10.0.0.1"}, 30), next_udp = udp({"10.0.0.1"});
    next.uid = next_udp.uid = "u2";
    gateway.compiler.run({desired({next, next_udp}), {}, {}}, std::vector{next.key, next_udp.key});
    const auto orders = gateway.keeper.follow(gateway.compiler.changes(), *gateway.compiler.compiled(),
                                              gateway.compiler.ids(), gateway.flows_of, gateway.now);
    EXPECT_EQ(orders, (std::vector<conn::FlowOrder>{{old_udp, {}, 0}}))
        << "the old object's UDP flows and no others";
    // The drain ends the flows of the old object, and none of the new one: their backends differ.
    const BackendId old_tcp = *gateway.compiler.ids().backends.find(
        {*gateway.compiler.ids().services.find(key("web")), ip("10.0.0.1"), 8080, "u2"});
    gateway.now += seconds(30);
    const auto late = gateway.keeper.wake(gateway.compiler.ids(), gateway.flows_of, gateway.now);
    ASSERT_EQ(late.size(), 1U);
    EXPECT_NE(late[0].backend, old_tcp);
    EXPECT_EQ(gateway.compiler.ids().backends.key_of(late[0].backend)->uid, "u1");
}

TEST(FlowKeeper, ATupleThatAnotherServiceTakesOverIsAFrontendThatWent_DRAIN007_SVC018) {
    Gateway gateway;
    auto other = service("other", {external("192.0.2.90", 53)}, {"10.0.0.9"});
    other.key.protocol = Protocol::Udp;
    gateway.apply({udp({"10.0.0.1"}), other});
    auto loses = udp({"10.0.0.1"});
    loses.frontends = {external("192.0.2.81", 80)};
    other.frontends.push_back(external("192.0.2.80", 80));
    EXPECT_EQ(gateway.apply({loses, other}), Orders{"web 10.0.0.1 by 192.0.2.80 80"});
}

TEST(FlowKeeper, ANodePortsFlowsGoWithItsNumberAndItsAddress_NODEPORT006_DRAIN007) {
    Gateway gateway;
    auto with_number = udp({"10.0.0.1"});
    with_number.frontends.push_back(node_port(30'080));
    gateway.serve_node_ports_on({"192.0.2.1", "192.0.2.2"});
    gateway.apply({with_number});
    EXPECT_EQ(gateway.serve_node_ports_on({"192.0.2.1"}), Orders{"web 10.0.0.1 by 192.0.2.2 30080"});
    with_number.frontends[1].port = 30'081;
    EXPECT_EQ(gateway.apply({with_number}), Orders{"web 10.0.0.1 by 192.0.2.1 30080"});
}

// The gateway does not receive the Service type. Frontends of both types stay, those of only one are removed.
TEST(FlowKeeper, AChangedTypeEndsTheFlowsOfTheFrontendsThatItTakesAway_SVC015) {
    Gateway gateway;
    auto balanced = udp({"10.0.0.1"});
    balanced.frontends = {load_balancer("192.0.2.80", 80), node_port(30'080)};
    gateway.serve_node_ports_on({"192.0.2.1"});
    gateway.apply({balanced});
    balanced.frontends.erase(balanced.frontends.begin());
    EXPECT_EQ(gateway.apply({balanced}), Orders{"web 10.0.0.1 by 192.0.2.80 80"});
}

model::Service named(model::Service service, const std::string& port_name) {
    service.key.port_name = port_name;
    return service;
}

TEST(FlowKeeper, ARenamedPortKeepsFlowsToEndpointsOfBothNames_SVC017) {
    Gateway gateway;
    gateway.apply({named(udp({"10.0.0.1", "10.0.0.2"}), "http")});
    EXPECT_EQ(gateway.apply({named(udp({"10.0.0.2", "10.0.0.3"}), "web")}), Orders{"web 10.0.0.1"});
    // They have the ids of the old name, and end when the endpoint under the new name is removed.
    EXPECT_EQ(gateway.apply({named(udp({"10.0.0.3"}), "web")}), (Orders{"web 10.0.0.2", "web 10.0.0.2"}))
        << "of both names";
}

TEST(FlowKeeper, TwoPortsThatSwapTheirNumbersKeepWhatBothServe_SVC016_SVC017) {
    Gateway gateway;
    const auto at = [](const std::string& name, L4Port port, const std::vector<std::string>& endpoints) {
        auto out = named(tcp(endpoints, 0), name);
        out.frontends = {external("192.0.2.80", port)};
        return out;
    };
    gateway.apply({at("a", 80, {"10.0.0.1", "10.0.0.2"}), at("b", 81, {"10.0.0.2", "10.0.0.3"})});
    EXPECT_EQ(gateway.apply({at("a", 81, {"10.0.0.1", "10.0.0.2"}), at("b", 80, {"10.0.0.2", "10.0.0.3"})}),
              (Orders{"web 10.0.0.1 by 192.0.2.80 80", "web 10.0.0.3 by 192.0.2.80 81"}));
}

TEST(FlowKeeper, TheSameStateAgainEndsNothing_UDP005) {
    Gateway gateway;
    auto with_number = udp({"10.0.0.1"});
    with_number.frontends.push_back(node_port(30'080));
    gateway.serve_node_ports_on({"192.0.2.1"});
    gateway.apply({with_number, tcp({"10.0.0.1"}, 0)});
    EXPECT_EQ(gateway.apply({with_number, tcp({"10.0.0.1"}, 0)}), Orders{});
}

TEST(FlowKeeper, AnIdThatIsAnotherBackendsNowIsNotEnded_DRAIN004) {
    Gateway gateway(IdMap(8, 2));  // two backends at once: the one freed first is reused at once
    gateway.apply({tcp({"10.0.0.1", "10.0.0.2"}, 30)});
    gateway.apply({tcp({"10.0.0.2"}, 30)});
    gateway.apply({tcp({"10.0.0.2", "10.0.0.3"}, 30)});
    EXPECT_EQ(gateway.after(seconds(30)), Orders{});
}

TEST(FlowKeeper, WhatHasNoFlowsIsForgotten) {
    Gateway gateway;
    bool busy = true;
    gateway.flows_of = [&](BackendId) { return busy ? 1 : 0; };
    std::vector<std::string> endpoints;
    for (int n = 1; n <= 40; ++n) {
        endpoints.push_back("10.0.1." + std::to_string(n));
    }
    gateway.apply({tcp(endpoints)});
    gateway.apply({tcp({"10.0.0.1"})});
    gateway.apply({tcp({"10.0.0.2"})});
    EXPECT_EQ(gateway.keeper.backends(), 42U);
    busy = false;
    gateway.apply({tcp({"10.0.0.3"})});
    EXPECT_EQ(gateway.keeper.backends(), 2U)
        << "what is offered, and what went with this run: workers may be about to open flows to it";
    gateway.apply({});
    gateway.apply({});
    EXPECT_EQ(gateway.keeper.backends(), 0U);
}

// The keeper must not accumulate all former addresses of a Service that never keeps an address.
TEST(FlowKeeper, RemembersTheLastLostFrontendsOnly_DRAIN007) {
    Gateway gateway;
    Orders early;
    const auto at = [](size_t n, std::optional<uint32_t> drain) {
        auto out = tcp({"10.0.0.1"}, drain);
        out.frontends = {external("192.0.2.80", static_cast<L4Port>(1'000 + n))};
        return out;
    };
    for (size_t n = 0; n <= FlowKeeper::kLostFrontendsMax + 1; ++n) {
        gateway.now += seconds(1);
        std::ranges::copy(gateway.apply({at(n, 3'600)}), std::back_inserter(early));
    }
    EXPECT_EQ(early, Orders{"web 10.0.0.1 by 192.0.2.80 1000"}) << "ended before its time";
    EXPECT_EQ(gateway.after(seconds(3'600)).size(), FlowKeeper::kLostFrontendsMax);
}

}  // namespace flow_keeper_test
}  // namespace penstock::gateway
