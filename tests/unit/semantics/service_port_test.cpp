// SPDX-License-Identifier: Apache-2.0
// Port entries, the defaults of the structs, and the port that packets are forwarded to.
#include "control/semantics/service_port.hpp"

#include <gtest/gtest.h>

#include "control/semantics/endpoints/endpoint_selection.hpp"
#include "control/semantics/text.hpp"
#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace service_port_test {

TEST(Objects, DefaultsOfAbsentFields_GEN004) {
    const kube::ServicePort port;
    EXPECT_EQ(port.protocol, "TCP");
    EXPECT_EQ(port.node_port, 0);
    const kube::Service service;
    EXPECT_EQ(service.type, "ClusterIP");
    EXPECT_EQ(service.session_affinity, "None");
    EXPECT_EQ(service.affinity_timeout_s, 10'800);
    EXPECT_EQ(service.external_traffic_policy, "Cluster");
    EXPECT_EQ(service.internal_traffic_policy, "Cluster");
    const kube::EndpointPort slice_port;
    EXPECT_EQ(slice_port.name, "");
    EXPECT_EQ(slice_port.protocol, "TCP");
    EXPECT_FALSE(slice_port.port.has_value());
    EXPECT_EQ(readiness_of(kube::Endpoint{}), Readiness::Ready);
}

struct PortRow {
    const char* name;
    std::vector<kube::ServicePort> entries;
    std::vector<std::string> kept;  // name:port/protocol
    std::vector<std::string> reasons;
};

class ValidPorts : public ::testing::TestWithParam<PortRow> {};

TEST_P(ValidPorts, BadEntryGoesAlone) {
    kube::Service service;
    service.ports = GetParam().entries;
    Notices notices;
    std::vector<std::string> kept;
    for (const ValidPort& port : valid_ports(service, notices)) {
        kept.push_back(port.name + ":" + std::to_string(port.port) + "/" + to_string(port.protocol));
    }
    std::vector<std::string> said;
    for (const model::Notice& notice : notices.sorted()) {
        said.push_back(notice.reason);
    }
    EXPECT_EQ(kept, GetParam().kept);
    EXPECT_EQ(said, GetParam().reasons);
}

const std::string kLabel63(63, 'a');
const std::string kLabel64(64, 'a');

INSTANTIATE_TEST_SUITE_P(
    All, ValidPorts,
    ::testing::Values(
        PortRow{"Lowest_SVC010", {{.port = 1}}, {":1/TCP"}, {}},
        PortRow{"Highest_SVC010", {{.port = 65535}}, {":65535/TCP"}, {}},
        PortRow{"Zero_SVC010",
                {{.name = "a", .port = 0}, {.name = "b", .port = 81}},
                {"b:81/TCP"},
                {"InvalidPort"}},
        PortRow{"Negative_SVC010",
                {{.name = "a", .port = -1}, {.name = "b", .port = 81}},
                {"b:81/TCP"},
                {"InvalidPort"}},
        PortRow{"TooLarge_SVC010",
                {{.name = "a", .port = 65536}, {.name = "b", .port = 81}},
                {"b:81/TCP"},
                {"InvalidPort"}},
        PortRow{"WrapsIn16Bits_SVC010", {{.port = 65536 + 80}}, {}, {"InvalidPort"}},
        PortRow{"NodePortNegative_SVC010",
                {{.name = "a", .port = 80, .node_port = -1}, {.name = "b", .port = 81}},
                {"b:81/TCP"},
                {"InvalidPort"}},
        PortRow{"NodePortTooLarge_SVC010", {{.port = 80, .node_port = 65536}}, {}, {"InvalidPort"}},
        PortRow{"NodePortHighest_SVC010", {{.port = 80, .node_port = 65535}}, {":80/TCP"}, {}},
        PortRow{
            "NamesThatAreLabels_SVC011",
            {{.name = "123-abc", .port = 80}, {.name = "web", .port = 81}, {.name = kLabel63, .port = 82}},
            {"123-abc:80/TCP", "web:81/TCP", kLabel63 + ":82/TCP"},
            {}},
        PortRow{"NamesThatAreNone_SVC011",
                {{.name = "123_abc", .port = 80},
                 {.name = "-web", .port = 81},
                 {.name = "web-", .port = 82},
                 {.name = "Web", .port = 83},
                 {.name = kLabel64, .port = 84},
                 {.name = "good", .port = 85}},
                {"good:85/TCP"},
                {"InvalidPort", "InvalidPort", "InvalidPort", "InvalidPort", "InvalidPort"}},
        PortRow{"DuplicateName_SVC011",
                {{.name = "web", .port = 80}, {.name = "web", .port = 81}},
                {"web:80/TCP"},
                {"InvalidPort"}},
        PortRow{"TwoUnnamed_SVC011", {{.port = 80}, {.port = 81}}, {":80/TCP"}, {"InvalidPort"}},
        PortRow{"BadEntryHoldsNoName_SVC011",
                {{.name = "web", .port = 0}, {.name = "web", .port = 81}},
                {"web:81/TCP"},
                {"InvalidPort"}},
        PortRow{"SamePortPerProtocol_SVC008",
                {{.name = "t", .protocol = "TCP", .port = 53},
                 {.name = "u", .protocol = "UDP", .port = 53},
                 {.name = "s", .protocol = "SCTP", .port = 53}},
                {"t:53/TCP", "u:53/UDP", "s:53/SCTP"},
                {}},
        PortRow{"SamePortAndProtocolTwice_SVC008",
                {{.name = "a", .port = 53}, {.name = "b", .port = 53}},
                {"a:53/TCP"},
                {"InvalidPort"}},
        PortRow{"LowerCaseProtocol_SVC012",
                {{.name = "a", .protocol = "tcp", .port = 80}, {.name = "b", .port = 81}},
                {"b:81/TCP"},
                {"UnsupportedProtocol"}},
        PortRow{"ForeignProtocol_SVC012", {{.protocol = "HTTP", .port = 80}}, {}, {"UnsupportedProtocol"}},
        PortRow{"BlankProtocol_SVC012", {{.protocol = " TCP", .port = 80}}, {}, {"UnsupportedProtocol"}}),
    [](const auto& row) { return row.param.name; });

TEST(Ports, SiblingsAreIndependent_SVC007) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.ports = {{.name = "http", .port = 80}, {.name = "metrics", .port = 9090}, {.name = "bad", .port = 0}};
    kube::EndpointSlice& slice = world.slice("s", "default/web", {endpoint("10.244.0.1")});
    slice.ports = {{.name = "http", .port = 8080}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/web:http/TCP X 203.0.113.7 80", "default/web:metrics/TCP X 203.0.113.7 9090"}));
    EXPECT_EQ(endpoints(outcome, "default/web:http/TCP"), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(endpoints(outcome, "default/web:metrics/TCP"), Lines{});
    EXPECT_EQ(reasons(outcome), Lines{"Service default/web InvalidPort"});
}

TEST(Ports, UnnamedPortMatchesUnnamedSlicePortOnly_SVC007) {
    World world;
    world.service("default/web").external_ips = {"203.0.113.7"};
    world.slice("named", "default/web", {endpoint("10.244.0.1")}).ports = {{.name = "http", .port = 8080}};
    world.slice("unnamed", "default/web", {endpoint("10.244.0.2")}).ports = {{.name = "", .port = 8080}};
    EXPECT_EQ(endpoints(world.evaluate(), "default/web/TCP"), Lines{"10.244.0.2 8080"});
}

TEST(Ports, OneAddressManyProtocolsAndServices_SVC008_XIP007) {
    World world;
    kube::Service& dns = world.service("default/dns");
    dns.external_ips = {"203.0.113.7"};
    dns.ports = {{.name = "t", .protocol = "TCP", .port = 53}, {.name = "u", .protocol = "UDP", .port = 53}};
    kube::Service& other = world.service("default/other");
    other.external_ips = {"203.0.113.7"};
    other.ports = {{.name = "s", .protocol = "SCTP", .port = 53}, {.name = "w", .port = 80}};
    Outcome outcome = world.evaluate();
    EXPECT_EQ(frontends(outcome),
              (Lines{"default/dns:t/TCP X 203.0.113.7 53", "default/dns:u/UDP X 203.0.113.7 53",
                     "default/other:s/SCTP X 203.0.113.7 53", "default/other:w/TCP X 203.0.113.7 80"}));
    EXPECT_EQ(reasons(outcome), Lines{});
    dns.ports.pop_back();
    EXPECT_EQ(frontends(world.evaluate()),
              (Lines{"default/dns:t/TCP X 203.0.113.7 53", "default/other:s/SCTP X 203.0.113.7 53",
                     "default/other:w/TCP X 203.0.113.7 80"}));
}

TEST(Ports, TheSliceNamesTheNumber_SVC009) {
    World world;
    kube::Service& web = world.service("default/web");
    web.external_ips = {"203.0.113.7"};
    web.ports[0].target_port = "1234";
    world.slice("a", "default/web", {endpoint("10.244.0.1")}, 8080);
    world.slice("b", "default/web", {endpoint("10.244.0.2")}, 9090);
    EXPECT_EQ(endpoints(world.evaluate(), "default/web/TCP"), (Lines{"10.244.0.1 8080", "10.244.0.2 9090"}));
}

TEST(Ports, NamesAreDnsLabels_SVC011) {
    EXPECT_TRUE(is_dns_label("a"));
    EXPECT_TRUE(is_dns_label("0-9"));
    EXPECT_FALSE(is_dns_label(""));
    EXPECT_FALSE(is_dns_label("a.b"));
    EXPECT_TRUE(is_dns_name("a.b-c.d"));
    EXPECT_FALSE(is_dns_name("a..b"));
    EXPECT_FALSE(is_dns_name(".a"));
    EXPECT_FALSE(is_dns_name(""));
}

}  // namespace service_port_test
}  // namespace penstock::semantics::testing
