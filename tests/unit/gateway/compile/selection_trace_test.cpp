// SPDX-License-Identifier: Apache-2.0
// The text of `explain` about the endpoints of a Service.
#include "control/gateway/compile/selection_trace.hpp"

#include <gtest/gtest.h>

namespace penstock::gateway {
namespace selection_trace_test {

using Lines = std::vector<std::string>;

IpAddr ip(const std::string& text) {
    return IpAddr::parse(text).value();
}

TEST(SelectionTrace, CountsDownStepByStep_EP020) {
    using enum model::Exclusion;
    model::BackendSet set;
    set.endpoints = {{.address = ip("10.0.0.1"), .port = 80},
                     {.address = ip("10.0.0.2"), .port = 80, .weight = 0}};
    set.excluded = {{.address = ip("10.0.0.3"), .port = 80, .why = NodeSelector},
                    {.address = ip("10.0.0.4"), .port = 80, .why = NotReady},
                    {.address = ip("10.0.0.5"), .port = 80, .why = NotLocal},
                    {.address = ip("10.0.0.6"), .port = 80, .why = Terminating},
                    {.address = ip("10.0.0.7"), .port = 80, .why = TopologyKeys},
                    {.address = ip("10.0.0.8"), .port = 80, .why = TopologyHints},
                    {.address = ip("127.0.0.1"), .port = 80, .why = ForbiddenAddress},
                    {.address = ip("fd00::1"), .port = 80, .why = NotReady}};
    EXPECT_EQ(selection_trace(set),
              (Lines{"endpoints: 10 known, each (address, port) once",
                     "address filter: 9 of 10 left; forbidden as an endpoint: 127.0.0.1:80",
                     "node selector: 8 of 9 left; on a node excluded by the Service: 10.0.0.3:80",
                     "readiness: 6 of 8 left; not ready: 10.0.0.4:80, [fd00::1]:80",
                     "policy Local: 5 of 6 left; not on this node: 10.0.0.5:80",
                     "terminating: 4 of 5 left; terminating while others are ready: 10.0.0.6:80",
                     "topology keys: 3 of 4 left; not the nearest: 10.0.0.7:80",
                     "topology hints: 2 of 3 left; hinted for other zones or nodes: 10.0.0.8:80",
                     "weight: 1 of 2 left; of weight 0: 10.0.0.2:80"}));
}

TEST(SelectionTrace, IsShortWhereNothingHappened_EP020) {
    EXPECT_EQ(selection_trace({}),
              (Lines{"endpoints: 0 known, each (address, port) once", "address filter: 0 of 0 left",
                     "readiness: 0 of 0 left", "weight: 0 of 0 left"}));
}

TEST(SelectionTrace, SaysThatTheOtherFamilyServes_ANN32) {
    EXPECT_EQ(
        selection_trace({.endpoints = {{.address = ip("10.0.0.1"), .port = 80}},
                         .family = IpFamily::V6,
                         .translates_family = true}),
        (Lines{"families: no IPv6 endpoint for new flows; IPv4 ones serve (penstock.io/translate-family)",
               "endpoints: 1 known, each (address, port) once", "address filter: 1 of 1 left",
               "readiness: 1 of 1 left", "weight: 1 of 1 left"}));
}

TEST(SelectionTrace, NamesNoMoreThanAPersonReads_EP020) {
    model::BackendSet set;
    for (int i = 1; i <= 10; ++i) {
        set.excluded.push_back(
            {.address = ip("10.0.0." + std::to_string(i)), .port = 80, .why = model::Exclusion::NotReady});
    }
    const std::string told = selection_trace(set).at(2);
    EXPECT_TRUE(told.ends_with("10.0.0.8:80 and 2 more")) << told;
    set.excluded.resize(kNamesMax);
    EXPECT_TRUE(selection_trace(set).at(2).ends_with("10.0.0.8:80")) << selection_trace(set).at(2);
}

DesiredServices services(std::vector<model::Frontend> frontends) {
    auto service = std::make_shared<model::Service>();
    service->key = {.namespace_name = "default", .name = "web", .port_name = "", .protocol = Protocol::Tcp};
    service->sets.resize(2);
    service->sets[1].source = lb::SourceMode::Keep;
    service->frontends = std::move(frontends);
    DesiredServices result;
    result.insert_or_assign(service->key, service);
    return result;
}

TEST(FrontendAt, IsByAddressOrForNodePortsByFamily) {
    const DesiredServices state =
        services({{.cls = lb::FrontendClass::ExternalIp, .address = ip("203.0.113.7"), .port = 80},
                  {.cls = lb::FrontendClass::NodePort, .family = IpFamily::V4, .port = 30080}});
    const auto found = [&](lb::FrontendClass cls, const char* address, L4Port port,
                           Protocol protocol = Protocol::Tcp) {
        return frontend_at(state, cls, ip(address), port, protocol).has_value();
    };
    EXPECT_TRUE(found(lb::FrontendClass::ExternalIp, "203.0.113.7", 80));
    EXPECT_FALSE(found(lb::FrontendClass::ExternalIp, "203.0.113.8", 80));
    EXPECT_FALSE(found(lb::FrontendClass::ExternalIp, "203.0.113.7", 81));
    EXPECT_FALSE(found(lb::FrontendClass::ExternalIp, "203.0.113.7", 80, Protocol::Udp));
    EXPECT_FALSE(found(lb::FrontendClass::LoadBalancerIp, "203.0.113.7", 80));
    EXPECT_TRUE(found(lb::FrontendClass::NodePort, "192.0.2.1", 30080));
    EXPECT_FALSE(found(lb::FrontendClass::NodePort, "2001:db8::1", 30080));
}

TEST(FrontendAt, ClientsInsideHaveASetOfTheirOwn_ETP006_NAT004) {
    const DesiredServices state = services(
        {{.cls = lb::FrontendClass::ExternalIp, .address = ip("203.0.113.7"), .port = 80, .inside_set = 1}});
    const auto met =
        frontend_at(state, lb::FrontendClass::ExternalIp, ip("203.0.113.7"), 80, Protocol::Tcp).value();
    const std::vector<Prefix> pods = {Prefix::parse("10.244.0.0/16").value()};
    EXPECT_EQ(set_for(met, pods, ip("10.244.3.4")).source, lb::SourceMode::Keep);
    EXPECT_EQ(set_for(met, pods, ip("192.0.2.9")).source, lb::SourceMode::Translate);
    EXPECT_EQ(set_for(met, {}, ip("10.244.3.4")).source, lb::SourceMode::Translate);
}

}  // namespace selection_trace_test
}  // namespace penstock::gateway
