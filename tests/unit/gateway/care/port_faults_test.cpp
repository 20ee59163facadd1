// SPDX-License-Identifier: Apache-2.0
// The ports that a configuration needs and that are down: Services compiled by the real compiler, routes as
// from Linux.
#include "control/gateway/care/port_faults.hpp"

#include <gtest/gtest.h>

#include "desired_builder.hpp"

namespace penstock::gateway {
namespace port_faults_test {

using Faults = std::vector<std::string>;

class PortFaultsTest : public testing::Test {
 protected:
    static route::Route route(const std::string& destination, uint8_t port, uint32_t metric = 0) {
        return {.destination = Prefix::parse(destination).value(),
                .egress = NicPortId{port},
                .gateway = {},
                .metric = metric};
    }
    static std::shared_ptr<const route::RouteTable> table(std::vector<route::Route> routes) {
        return route::RouteTable::build(std::move(routes), {}, {}, {});
    }
    void serve(std::vector<model::Service> services) {
        const auto all = desired(std::move(services));
        std::vector<model::ServiceKey> keys;
        for (const auto& [name, one] : all) {
            keys.push_back(name);
        }
        const std::vector<model::PortAddress> own{{"pen0", ip("192.0.2.1"), 24, true},
                                                  {"pen1", ip("10.0.0.1"), 24, true}};
        compiler_.run({all, {}, own}, keys);
    }
    Faults faults(const route::RouteTable& routes, const route::RouteTable* before = nullptr) const {
        return port_faults({.ports = ports_,
                            .twins = twins_,
                            .compiled = *compiler_.compiled(),
                            .routes = routes,
                            .routes_before = before});
    }

    std::vector<PortState> ports_{{NicPortId{0}, "pen0"}, {NicPortId{1}, "pen1"}, {NicPortId{2}, "pen2"}};
    const TwinSubnets twins_{{drivers::InterfaceAddress::parse("192.0.2.1/24").value()},
                             {drivers::InterfaceAddress::parse("10.0.0.1/24").value()},
                             {}};
    const std::shared_ptr<const route::RouteTable> usual_ = table(
        {route("0.0.0.0/0", 0), route("192.0.2.0/24", 0), route("10.0.0.0/24", 1), route("10.1.0.0/16", 1)});
    Compiler compiler_;
};

TEST_F(PortFaultsTest, NoneWhileAllAreUpOrNothingIsServed) {
    EXPECT_EQ(faults(*usual_), Faults{});
    ports_[1].is_up = false;
    EXPECT_EQ(faults(*usual_), Faults{}) << "nothing needs it";
    serve({service("web", {external("192.0.2.80", 80)}, {"10.0.0.10"})});
    ports_[1].is_up = true;
    EXPECT_EQ(faults(*usual_), Faults{});
}

TEST_F(PortFaultsTest, TheWayToEndpoints) {
    serve({service("web", {external("192.0.2.80", 80)}, {"10.0.0.10", "10.1.2.3"})});
    ports_[1].is_up = false;
    EXPECT_EQ(faults(*usual_), Faults{"port pen1 is down, and with it the way to 2 endpoints"});
    ports_[1].is_removed = true;
    EXPECT_EQ(faults(*usual_), Faults{"port pen1 is removed, and with it the way to 2 endpoints"});
}

// Linux removes a route with its link.
TEST_F(PortFaultsTest, RoutesThatWentWithTheLinkAreRemembered) {
    serve({service("web", {external("192.0.2.80", 80)}, {"10.0.0.10", "10.1.2.3"})});
    ports_[1].is_up = false;
    const auto left = table({route("192.0.2.0/24", 0)});
    EXPECT_EQ(faults(*left, usual_.get()), Faults{"port pen1 is down, and with it the way to 2 endpoints"});
    EXPECT_EQ(faults(*left), Faults{"port pen1 is down, and with it the way to 1 endpoint"})
        << "by the twin's subnet alone";
}

TEST_F(PortFaultsTest, AnotherWayThatIsUpWillDo) {
    serve({service("web", {external("192.0.2.80", 80)}, {"10.0.0.10", "10.1.2.3"})});
    ports_[1].is_up = false;
    const auto rerouted = table({route("0.0.0.0/0", 0), route("10.0.0.0/8", 2)});
    EXPECT_EQ(faults(*rerouted, usual_.get()), Faults{});
}

TEST_F(PortFaultsTest, APortThatNothingNeedsMayBeDown) {
    serve({service("web", {external("192.0.2.80", 80)}, {"10.0.0.10"})});
    ports_[2].is_up = false;
    EXPECT_EQ(faults(*usual_, usual_.get()), Faults{});
}

TEST_F(PortFaultsTest, VipsOnALinkNeedIt) {
    serve({service("web", {external("192.0.2.80", 80), load_balancer("192.0.2.81", 80)}, {"10.0.0.10"})});
    ports_[0].is_up = false;
    EXPECT_EQ(faults(*usual_), Faults{"port pen0 is down, and with it the way to 2 frontends"});
}

TEST_F(PortFaultsTest, RoutedVipsNeedADefaultRoute) {
    serve({service("web", {external("203.0.113.80", 80)}, {"10.0.0.10"})});
    ports_[0].is_up = false;
    EXPECT_EQ(faults(*usual_), Faults{"port pen0 is down, and with it the way to 1 frontend"});
    EXPECT_EQ(faults(*table({route("10.0.0.0/24", 1)}), usual_.get()),
              Faults{"port pen0 is down, and with it the way to 1 frontend"});
    EXPECT_EQ(faults(*table({route("0.0.0.0/0", 2), route("10.0.0.0/24", 1)}), usual_.get()), Faults{})
        << "another uplink";
    EXPECT_EQ(faults(*table({route("10.0.0.0/24", 1)})), Faults{}) << "there has never been one";
}

TEST_F(PortFaultsTest, NodePortsNeedOneOfTheirAddresses) {
    serve({service("web", {node_port(30080)}, {"10.1.0.10"})});
    ASSERT_EQ(compiler_.compiled()->node_port_addresses.size(), 2U);
    const auto routes = table({route("10.1.0.0/16", 2)});
    ports_[0].is_up = false;
    EXPECT_EQ(faults(*routes), Faults{}) << "clients may use the other one";
    ports_[1].is_up = false;
    EXPECT_EQ(faults(*routes), (Faults{"port pen0 is down, and with it the way to 1 frontend",
                                       "port pen1 is down, and with it the way to 1 frontend"}));
}

}  // namespace port_faults_test
}  // namespace penstock::gateway
