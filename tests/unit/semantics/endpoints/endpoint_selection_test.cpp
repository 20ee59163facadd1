// SPDX-License-Identifier: Apache-2.0
// The endpoints that new flows may choose.
#include "control/semantics/endpoints/endpoint_selection.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/semantics/object_world.hpp"

namespace penstock::semantics::testing {
namespace endpoint_selection_test {

constexpr const char* kWeb = "default/web/TCP";

// A Service with an external IP, so that it is part of the gateway's state.
World web_world() {
    World world;
    world.service("default/web").external_ips = {"203.0.113.7"};
    return world;
}

TEST(Slices, BelongByLabelInTheirOwnNamespace_EP002) {
    World world = web_world();
    world.slice("by-label", "default/web", {endpoint("10.244.0.1")});
    world.slice("web", "default/other", {endpoint("10.244.0.2")});
    world.slice("elsewhere", "prod/web", {endpoint("10.244.0.3")});
    world.slice("no-label", "default/web", {endpoint("10.244.0.4")}).meta.labels.clear();
    world.slice("empty-label", "default/web", {endpoint("10.244.0.5")})
        .meta.labels["kubernetes.io/service-name"] = "";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"10.244.0.1 8080"});
    // A changed label moves all endpoints.
    world.objects.slices.at(object_name("default/web")).meta.labels["kubernetes.io/service-name"] = "web";
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.2 8080"}));
}

TEST(Slices, OfNobodyAreNotWorthAWord_EP002) {
    World world;
    world.slice("a", "default/web", {}, 80, "FQDN").meta.labels["kubernetes.io/service-name"] = "";
    world.slice("b", "default/web", {}, 80, "FQDN").meta.labels.clear();
    EXPECT_EQ(world.evaluate(), Outcome{});
}

TEST(Slices, AreJoinedEachWithItsOwnNumber_EP003) {
    World world = web_world();
    world.objects.services.at(object_name("default/web")).ports = {
        {.name = "http", .port = 80}, {.name = "dns", .protocol = "UDP", .port = 53}};
    world.slice("a", "default/web", {endpoint("10.244.0.1")}).ports = {
        {.name = "http", .port = 8080}, {.name = "dns", .protocol = "UDP", .port = 5353}};
    world.slice("b", "default/web", {endpoint("10.244.0.2")}).ports = {{.name = "http", .port = 9090}};
    world.slice("c", "default/web", {endpoint("10.244.0.3")}).ports = {
        {.name = "http", .protocol = "UDP", .port = 9090}};
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, "default/web:http/TCP"), (Lines{"10.244.0.1 8080", "10.244.0.2 9090"}));
    EXPECT_EQ(endpoints(outcome, "default/web:dns/UDP"), Lines{"10.244.0.1 5353"});
}

// The same (address, port) in two slices. The better endpoint is used, in either order of the slice names.
TEST(Duplicates, BetterReadinessThenSmallerSliceName_EP004) {
    const kube::Endpoint ready = endpoint("10.244.0.1", "edge-1");
    const kube::Endpoint leaving = terminating_endpoint("10.244.0.1", "leaving");
    const kube::Endpoint down = unready_endpoint("10.244.0.1", "down");
    kube::Endpoint ready_too = endpoint("10.244.0.1", "edge-2");
    struct Row {
        const char* name;
        std::vector<kube::Endpoint> worse_first;
        const char* node;  // of the endpoint that is used; "" if none is usable
    };
    const Row rows[] = {{"ready beats terminating", {leaving, ready}, "edge-1"},
                        {"ready beats others", {down, ready}, "edge-1"},
                        {"terminating beats others", {down, leaving}, "leaving"},
                        {"three", {down, leaving, ready}, "edge-1"}};
    for (const Row& row : rows) {
        std::vector<size_t> order(row.worse_first.size());
        for (size_t i = 0; i < order.size(); ++i) {
            order[i] = i;
        }
        do {
            World world = web_world();
            for (size_t i = 0; i < order.size(); ++i) {
                world.slice("slice-" + std::to_string(i), "default/web", {row.worse_first[order[i]]});
            }
            const Outcome outcome = world.evaluate();
            const auto& chosen = find(outcome, kWeb)->sets[0].endpoints;
            ASSERT_EQ(chosen.size(), 1U) << row.name;
            EXPECT_EQ(chosen[0].node_name, row.node) << row.name;
        } while (std::ranges::next_permutation(order).found);
    }
    World world = web_world();
    ready_too.zone = "zone-b";
    world.slice("b", "default/web", {ready});
    world.slice("a", "default/web", {ready_too});
    const Outcome outcome = world.evaluate();
    ASSERT_EQ(find(outcome, kWeb)->sets[0].endpoints.size(), 1U);
    EXPECT_EQ(find(outcome, kWeb)->sets[0].endpoints[0].node_name, "edge-2");
    EXPECT_EQ(find(outcome, kWeb)->sets[0].endpoints[0].zone, "zone-b");
}

// Node names and zones are for display. A gateway refuses a whole service port with an invalid one
// (penstock.v1), so invalid ones are not sent.
TEST(Endpoints, OddNamesOfNodesAndZonesCostTheEndpointNothing) {
    struct Row {
        std::string text;
        bool told;
    };
    const Row rows[] = {{"Edge_1.example", true},
                        {std::string(253, 'x'), true},
                        {std::string(254, 'x'), false},
                        {"a b", false},
                        {"a/b", false},
                        {"a:b", false},
                        {"a\tb", false},
                        {"z\xc3\xbcrich", false}};
    for (const Row& row : rows) {
        World world = web_world();
        kube::Endpoint odd = endpoint("10.244.0.1", row.text);
        odd.zone = row.text;
        world.slice("s", "default/web", {odd});
        const Outcome outcome = world.evaluate();
        ASSERT_EQ(find(outcome, kWeb)->sets[0].endpoints.size(), 1U) << row.text;
        const model::Endpoint& told = find(outcome, kWeb)->sets[0].endpoints[0];
        EXPECT_EQ(told.node_name, row.told ? row.text : "");
        EXPECT_EQ(told.zone, row.told ? row.text : "");
    }
}

TEST(Duplicates, AnotherPortIsAnotherEndpoint_EP004) {
    World world = web_world();
    world.slice("a", "default/web", {endpoint("10.244.0.1")}, 8080);
    world.slice("b", "default/web", {endpoint("10.244.0.1")}, 8081);
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), (Lines{"10.244.0.1 8080", "10.244.0.1 8081"}));
}

TEST(Addresses, BadOnesGoAlone_EP005_GEN005) {
    struct Row {
        const char* name;
        kube::EndpointAddress address;
        Lines expected;  // in addition to 10.244.0.9
    };
    const Row rows[] = {
        {"good", "10.244.0.1", {"10.244.0.1 8080"}},
        {"leading zeros", "010.244.000.001", {"10.244.0.1 8080"}},
        {"none", {}, {}},
        {"bad", "nonsense", {}},
        {"not UTF-8", "\xff\xfe", {}},
        {"other family", "fd00::1", {}},
        {"mapped", "::ffff:10.244.0.1", {}},
    };
    for (const Row& row : rows) {
        World world = web_world();
        kube::Endpoint one;
        one.address = row.address;
        world.slice("s", "default/web", {one, endpoint("10.244.0.9")});
        Lines expected = row.expected;
        expected.push_back("10.244.0.9 8080");
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(endpoints(outcome, kWeb), expected) << row.name;
        EXPECT_EQ(reasons(outcome),
                  row.expected.empty() ? Lines{"Service default/web InvalidEndpointAddress"} : Lines{})
            << row.name;
    }
}

TEST(Addresses, ForbiddenRanges_EP006) {
    struct Row {
        const char* address;
        bool usable;
    };
    const Row rows[] = {
        {"0.0.0.0", false},
        {"0.0.0.1", true},
        {"126.255.255.255", true},
        {"127.0.0.1", false},
        {"127.255.255.255", false},
        {"128.0.0.0", true},
        {"169.253.255.255", true},
        {"169.254.0.0", false},
        {"169.254.255.255", false},
        {"169.255.0.0", true},
        {"223.255.255.255", true},
        {"224.0.0.0", false},
        {"224.0.1.0", false},
        {"239.255.255.255", false},
        {"240.0.0.0", false},
        {"255.255.255.254", false},
        {"255.255.255.255", false},
        {"::", false},
        {"::1", false},
        {"::2", true},
        {"fe7f::1", true},
        {"fe80::1", false},
        {"fe80:0:0:1::1", false},
        {"febf::1", false},
        {"fec0::1", true},
        {"feff::1", true},
        {"ff00::", false},
        {"ff02::1", false},
        {"fd00::1", true},
    };
    for (const Row& row : rows) {
        World world = web_world();
        const bool v6 = !ip(row.address).is_v4();
        world.objects.services.at(object_name("default/web")).ip_families = {"IPv4", "IPv6"};
        world.slice("s", "default/web", {endpoint(row.address)}, 8080, v6 ? "IPv6" : "IPv4");
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(endpoints(outcome, kWeb, v6 ? 1 : 0).size(), row.usable ? 1U : 0U) << row.address;
        EXPECT_EQ(reasons(outcome),
                  row.usable ? Lines{} : Lines{"Service default/web InvalidEndpointAddress"})
            << row.address;
    }
}

TEST(Addresses, ForbiddenByOtherServicesAndLegalAgainWithoutThem_EP006_SVC014) {
    struct Row {
        const char* name;
        std::function<void(kube::Service&)> shape;
    };
    // Each row makes 203.0.113.50 an address of Service default/clash.
    const Row rows[] = {
        {"ClusterIP", [](auto& s) { s.cluster_ip = "203.0.113.50"; }},
        {"second ClusterIP", [](auto& s) { s.cluster_ips = {"10.96.9.9", "203.0.113.50"}; }},
        {"ClusterIP of an ignored Service",
         [](auto& s) {
             s.cluster_ip = "203.0.113.50",
             s.meta.labels["service.kubernetes.io/service-proxy-name"] = "other";
         }},
        {"external IP", [](auto& s) { s.external_ips = {"203.0.113.50"}; }},
        {"LoadBalancer IP", [](auto& s) { s.type = "LoadBalancer", s.ingress = {{.ip = "203.0.113.50"}}; }},
    };
    for (const Row& row : rows) {
        // Before and after default/web in name order.
        for (const char* clash : {"default/aaa", "default/zzz"}) {
            World world = web_world();
            world.slice("s", "default/web", {endpoint("203.0.113.50"), endpoint("10.244.0.1")});
            row.shape(world.service(clash));
            Outcome outcome = world.evaluate();
            EXPECT_EQ(endpoints(outcome, kWeb), Lines{"10.244.0.1 8080"}) << row.name << " " << clash;
            EXPECT_EQ(reasons(outcome), Lines{"Service default/web InvalidEndpointAddress"}) << row.name;
            world.objects.services.erase(object_name(clash));
            outcome = world.evaluate();
            EXPECT_EQ(endpoints(outcome, kWeb).size(), 2U) << row.name;
            EXPECT_EQ(reasons(outcome), Lines{}) << row.name;
        }
    }
}

TEST(Addresses, RefusedExternalIpForbidsNoEndpoint_EP006) {
    World world = web_world();
    world.service("default/refused").external_ips = {"198.51.100.50"};
    world.slice("s", "default/web", {endpoint("198.51.100.50")});
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"198.51.100.50 8080"});
}

TEST(Addresses, TheNodesOwnAddressIsLegal_EP007) {
    World world = web_world();
    world.objects.nodes["edge-1"].addresses = {{.type = "InternalIP", .address = "192.0.2.9"}};
    world.slice("s", "default/web", {endpoint("192.0.2.9", "edge-1")});
    EXPECT_EQ(endpoints(world.evaluate(), kWeb), Lines{"192.0.2.9 8080"});
}

TEST(Slices, AddressTypesOtherThanTheFamiliesAreIgnored_EP008_GEN002) {
    for (const char* type : {"FQDN", "IP", "ipv4", "", "IPv5"}) {
        World world = web_world();
        world.slice("good", "default/web", {endpoint("10.244.0.1")});
        world.slice("odd", "default/web", {endpoint("10.244.0.2"), endpoint("example.com")}, 8080, type);
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(endpoints(outcome, kWeb), Lines{"10.244.0.1 8080"}) << type;
        EXPECT_EQ(reasons(outcome), (Lines{"EndpointSlice default/odd UnsupportedAddressType",
                                           "Service default/web UnsupportedAddressType"}))
            << type << ": `describe service` shows what is said about the Service";
    }
}

TEST(Slices, FamiliesAreApart_EP008_DUAL002_DUAL005) {
    World world = web_world();
    kube::Service& web = world.objects.services.at(object_name("default/web"));
    web.ip_families = {"IPv4", "IPv6"};
    web.external_ips = {"203.0.113.7", "2001:db8::7"};
    world.slice("four", "default/web", {endpoint("10.244.0.1"), terminating_endpoint("10.244.0.2")});
    world.slice("six", "default/web", {terminating_endpoint("fd00::1")}, 8080, "IPv6");
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kWeb, 0), Lines{"10.244.0.1 8080"});
    EXPECT_EQ(endpoints(outcome, kWeb, 1), Lines{"fd00::1 8080"});
    const model::Service* service = find(outcome, kWeb);
    EXPECT_EQ(service->sets[0].family, IpFamily::V4);
    EXPECT_EQ(service->sets[1].family, IpFamily::V6);
    for (const model::Frontend& frontend : service->frontends) {
        EXPECT_EQ(service->sets[frontend.set].family, frontend.address.family());
    }
}

TEST(Slices, SingleStackIpv6UsesItsOnlySet_DUAL001) {
    World world;
    kube::Service& web = world.service("default/web", "fd00:96::1");
    web.external_ips = {"2001:db8::7"};
    world.slice("six", "default/web", {endpoint("fd00::1")}, 8080, "IPv6");
    world.slice("four", "default/web", {endpoint("10.244.0.1")});
    const Outcome outcome = world.evaluate();
    EXPECT_EQ(endpoints(outcome, kWeb, 0), Lines{"fd00::1 8080"});
    ASSERT_EQ(find(outcome, kWeb)->sets.size(), 1U);
    EXPECT_EQ(find(outcome, kWeb)->frontends.at(0).set, 0);
}

TEST(SlicePorts, EntriesThatCannotBeUsed_EP009_SVC010_SVC012) {
    struct Row {
        const char* name;
        std::vector<kube::EndpointPort> ports;
        Lines expected;
        Lines reasons;
    };
    const Lines invalid_port = {"Service default/web InvalidPort"};
    const Row rows[] = {
        {"null", {{.port = std::nullopt}}, {}, invalid_port},
        {"zero", {{.port = 0}}, {}, invalid_port},
        {"negative", {{.port = -5}}, {}, invalid_port},
        {"too large", {{.port = 65536}}, {}, invalid_port},
        {"highest", {{.port = 65535}}, {"10.244.0.1 65535"}, {}},
        {"absent list", {}, {}, {}},
        {"duplicate name", {{.port = 8080}, {.port = 9090}}, {"10.244.0.1 8080"}, {}},
        {"null, then good", {{.port = std::nullopt}, {.port = 9090}}, {"10.244.0.1 9090"}, invalid_port},
        {"null under another name",
         {{.name = "x", .port = std::nullopt}, {.port = 8080}},
         {"10.244.0.1 8080"},
         {}},
        {"unknown protocol",
         {{.protocol = "tcp", .port = 1}, {.port = 8080}},
         {"10.244.0.1 8080"},
         {"EndpointSlice default/s UnsupportedProtocol"}},
    };
    for (const Row& row : rows) {
        World world = web_world();
        world.slice("s", "default/web", {endpoint("10.244.0.1")}).ports = row.ports;
        const Outcome outcome = world.evaluate();
        EXPECT_EQ(endpoints(outcome, kWeb), row.expected) << row.name;
        EXPECT_EQ(reasons(outcome), row.reasons) << row.name;
    }
}

TEST(Conditions, TruthTable_EP010_EP011_EP012) {
    constexpr std::optional<bool> null = std::nullopt;
    constexpr Readiness kReady = Readiness::Ready;
    constexpr Readiness kLeaving = Readiness::Terminating;
    constexpr Readiness kNo = Readiness::Unusable;
    struct Row {
        std::optional<bool> ready, serving, terminating;
        Readiness expected;
    };
    const Row rows[] = {
        {null, null, null, kReady},  {null, null, false, kReady},  {null, null, true, kReady},
        {null, false, null, kReady}, {null, false, false, kReady}, {null, false, true, kReady},
        {null, true, null, kReady},  {null, true, false, kReady},  {null, true, true, kReady},
        {true, null, null, kReady},  {true, null, false, kReady},  {true, null, true, kReady},
        {true, false, null, kReady}, {true, false, false, kReady}, {true, false, true, kReady},
        {true, true, null, kReady},  {true, true, false, kReady},  {true, true, true, kReady},
        {false, null, null, kNo},    {false, null, false, kNo},    {false, null, true, kLeaving},
        {false, false, null, kNo},   {false, false, false, kNo},   {false, false, true, kNo},
        {false, true, null, kNo},    {false, true, false, kNo},    {false, true, true, kLeaving},
    };
    static_assert(std::size(rows) == 27);
    for (const Row& row : rows) {
        kube::Endpoint one = endpoint("10.244.0.1");
        one.ready = row.ready;
        one.serving = row.serving;
        one.terminating = row.terminating;
        EXPECT_EQ(readiness_of(one), row.expected) << (&row - rows);
        // Alone in its Service, the endpoint is used unless it is unusable. Next to a ready endpoint, it is
        // used only if ready.
        World world = web_world();
        world.slice("s", "default/web", {one});
        EXPECT_EQ(endpoints(world.evaluate(), kWeb).size(), row.expected == kNo ? 0U : 1U) << (&row - rows);
        world.slice("t", "default/web", {endpoint("10.244.0.2")});
        EXPECT_EQ(endpoints(world.evaluate(), kWeb).size(), row.expected == kReady ? 2U : 1U)
            << (&row - rows);
    }
}

// The remaining endpoints after each step, in the order of EP-020.
TEST(Pipeline, TraceOfSurvivors_EP020) {
    World world;
    world.slice("a", "default/web",
                {endpoint("10.244.0.1", "edge-1"), unready_endpoint("10.244.0.2", "edge-1"),
                 endpoint("127.0.0.1", "edge-1")});
    world.slice("b", "default/web",
                {terminating_endpoint("10.244.0.1"), terminating_endpoint("10.244.0.3", "edge-2"),
                 endpoint("10.96.0.1")});
    ServiceSlices slices;
    for (const auto& [name, slice] : world.objects.slices) {
        put(slices, name.name, std::make_shared<const kube::EndpointSlice>(slice));
    }
    const auto shown = [](const Candidates& candidates) {
        Lines lines;
        for (const Candidate& candidate : candidates) {
            lines.push_back(candidate.address.to_string());
        }
        return lines;
    };
    Notices notices;
    Selection all{.left = merged_endpoints(slices, "", Protocol::Tcp, IpFamily::V4, notices), .excluded = {}};
    EXPECT_EQ(shown(all.left), (Lines{"10.96.0.1", "10.244.0.1", "10.244.0.2", "10.244.0.3", "127.0.0.1"}));
    AddressCount cluster_ips;
    cluster_ips.add(ip("10.96.0.1"));
    drop_forbidden(all, cluster_ips, FrontendOwners(), notices);
    EXPECT_EQ(shown(all.left), (Lines{"10.244.0.1", "10.244.0.2", "10.244.0.3"}));
    const auto local_to = [&](const char* node) {
        Selection local = all;
        select_local(local, node);
        return shown(local.left);
    };
    EXPECT_EQ(local_to("edge-1"), Lines{"10.244.0.1"});
    EXPECT_EQ(local_to("edge-2"), Lines{"10.244.0.3"});
    EXPECT_EQ(local_to(""), Lines{});
    select_cluster(all);
    EXPECT_EQ(shown(all.left), Lines{"10.244.0.1"});
}

}  // namespace endpoint_selection_test
}  // namespace penstock::semantics::testing
