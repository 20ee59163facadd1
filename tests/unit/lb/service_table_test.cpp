// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lb/service_table.hpp"

#include <gtest/gtest.h>

#include "tests/unit/lb/lb_fixture.hpp"

namespace penstock::lb {
namespace service_table_test {

using enum FrontendClass;
using test::frontend;
using test::ip;
using test::make_service;

std::shared_ptr<const ServiceTable> build(std::vector<Frontend> frontends) {
    std::vector<std::shared_ptr<const Service>> services;
    for (const Frontend& f : frontends) {
        services.push_back(f.service);
    }
    auto table = ServiceTable::build(std::move(frontends), std::move(services));
    EXPECT_TRUE(table.has_value()) << table.error().what;
    return table.value();
}

const Service* service_at(const ServiceTable& table, const char* address, L4Port port, Protocol protocol) {
    const FrontendRow* row = table.find(ip(address), port, protocol);
    return row == nullptr ? nullptr : row->service;
}

TEST(ServiceTable, AnEmptyOneKnowsNothing) {
    const ServiceTable table;
    EXPECT_EQ(table.find(ip("80.11.12.10"), 80, Protocol::Tcp), nullptr);
    EXPECT_FALSE(table.is_vip(ip("80.11.12.10")));
    EXPECT_FALSE(table.is_node_port(30000, Protocol::Tcp));
    EXPECT_FALSE(table.is_kept_backend(ip("10.2.0.1"), 80, Protocol::Tcp));
    ASSERT_NE(table.node_port_bits(Protocol::Udp), nullptr);
    EXPECT_EQ(table.node_port_bits(Protocol::Udp)[1023], 0u);
}

TEST(ServiceTable, OnePortNumberPerProtocol_SVC008) {
    const auto tcp = make_service(1, "dns-tcp");
    const auto udp = make_service(2, "dns-udp");
    const auto sctp = make_service(3, "dns-sctp");
    const auto table = build({frontend(ExternalIp, "80.11.12.10", 53, Protocol::Tcp, tcp),
                              frontend(ExternalIp, "80.11.12.10", 53, Protocol::Udp, udp),
                              frontend(ExternalIp, "80.11.12.10", 53, Protocol::Sctp, sctp)});
    EXPECT_EQ(service_at(*table, "80.11.12.10", 53, Protocol::Tcp), tcp.get());
    EXPECT_EQ(service_at(*table, "80.11.12.10", 53, Protocol::Udp), udp.get());
    EXPECT_EQ(service_at(*table, "80.11.12.10", 53, Protocol::Sctp), sctp.get());
}

// The exact frontend wins in either order, and the NodePort keeps its other addresses.
TEST(ServiceTable, ExactFrontendsRankAboveNodePorts_NODEPORT004) {
    const auto exact = make_service(1, "exact");
    const auto node = make_service(2, "node");
    for (const FrontendClass cls : {ClusterIp, LoadBalancerIp, ExternalIp}) {
        for (const bool exact_first : {true, false}) {
            std::vector<Frontend> frontends{frontend(cls, "192.0.2.1", 30080, Protocol::Tcp, exact),
                                            frontend(NodePort, "192.0.2.1", 30080, Protocol::Tcp, node),
                                            frontend(NodePort, "192.0.2.2", 30080, Protocol::Tcp, node)};
            if (!exact_first) {
                std::swap(frontends[0], frontends[1]);
            }
            const auto table = build(std::move(frontends));
            EXPECT_EQ(service_at(*table, "192.0.2.1", 30080, Protocol::Tcp), exact.get());
            EXPECT_EQ(service_at(*table, "192.0.2.2", 30080, Protocol::Tcp), node.get());
        }
    }
}

TEST(ServiceTable, NodePortsLeaveVipsAlone_NODEPORT004) {
    const auto table =
        build({frontend(LoadBalancerIp, "80.11.12.10", 80, Protocol::Tcp, make_service(1, "web")),
               frontend(NodePort, "192.0.2.1", 30080, Protocol::Tcp, make_service(2, "node"))});
    EXPECT_EQ(service_at(*table, "80.11.12.10", 30080, Protocol::Tcp), nullptr);
    EXPECT_TRUE(table->is_vip(ip("80.11.12.10")));
    EXPECT_FALSE(table->is_vip(ip("192.0.2.1")));
}

TEST(ServiceTable, NodePortsMayBeAnyNumber_NODEPORT005) {
    const auto service = make_service(1, "node");
    std::vector<Frontend> frontends;
    for (const L4Port port : std::initializer_list<L4Port>{1, 63, 64, 80, 29999, 32768, 65535}) {
        frontends.push_back(frontend(NodePort, "192.0.2.1", port, Protocol::Udp, service));
    }
    const auto table = build(frontends);
    for (const Frontend& f : frontends) {
        EXPECT_EQ(service_at(*table, "192.0.2.1", f.port, Protocol::Udp), service.get()) << f.port;
        EXPECT_TRUE(table->is_node_port(f.port, Protocol::Udp)) << f.port;
        EXPECT_FALSE(table->is_node_port(f.port, Protocol::Tcp)) << f.port;
    }
    // A port is not captured merely because it is in the usual NodePort range.
    EXPECT_EQ(service_at(*table, "192.0.2.1", 30000, Protocol::Udp), nullptr);
    uint64_t declared = 0;
    for (size_t word = 0; word < 1024; ++word) {
        declared += static_cast<uint64_t>(__builtin_popcountll(table->node_port_bits(Protocol::Udp)[word]));
    }
    EXPECT_EQ(declared, frontends.size());
}

TEST(ServiceTable, AnAddressCapturesOnlyDeclaredPorts_XIP003) {
    const auto web = make_service(1, "web");
    const auto node = make_service(2, "node");
    // 192.0.2.1 is both an external IP and the gateway's own address.
    const auto table = build({frontend(ExternalIp, "192.0.2.1", 80, Protocol::Tcp, web),
                              frontend(NodePort, "192.0.2.1", 30080, Protocol::Tcp, node)});
    EXPECT_EQ(service_at(*table, "192.0.2.1", 80, Protocol::Tcp), web.get());
    EXPECT_EQ(service_at(*table, "192.0.2.1", 30080, Protocol::Tcp), node.get())
        << "other ports keep going to N lookup";
    EXPECT_EQ(service_at(*table, "192.0.2.1", 22, Protocol::Tcp), nullptr)
        << "other ports keep going to the host";
    EXPECT_EQ(service_at(*table, "192.0.2.1", 80, Protocol::Udp), nullptr) << "the protocol is part of it";
}

TEST(ServiceTable, OneAddressServesManyServices_XIP007) {
    const auto web = make_service(1, "web");
    const auto mail = make_service(2, "mail");
    const auto dns = make_service(3, "dns");
    const auto table = build({frontend(ExternalIp, "80.11.12.10", 80, Protocol::Tcp, web),
                              frontend(ExternalIp, "80.11.12.10", 25, Protocol::Tcp, mail),
                              frontend(ExternalIp, "80.11.12.10", 80, Protocol::Udp, dns)});
    EXPECT_EQ(service_at(*table, "80.11.12.10", 80, Protocol::Tcp), web.get());
    EXPECT_EQ(service_at(*table, "80.11.12.10", 25, Protocol::Tcp), mail.get());
    EXPECT_EQ(service_at(*table, "80.11.12.10", 80, Protocol::Udp), dns.get());
}

// Two exact frontends on one tuple mean that the semantics room has not resolved SVC-018. The owner of the
// flows is then ambiguous.
TEST(ServiceTable, RefusesTwoOwnersOfOneTupleByName_XIP007) {
    const auto result = ServiceTable::build(
        {frontend(ExternalIp, "80.11.12.10", 80, Protocol::Tcp, make_service(1, "first")),
         frontend(LoadBalancerIp, "80.11.12.10", 80, Protocol::Tcp, make_service(2, "second"))},
        {});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Errc::Internal);
    EXPECT_EQ(
        result.error().what,
        "frontend TCP 80.11.12.10 port 80 is claimed by service default/first and by service default/second");
}

TEST(ServiceTable, RefusesOneNodePortOfTwoServices) {
    const auto one = make_service(1, "one");
    const auto two = make_service(2, "two");
    EXPECT_FALSE(ServiceTable::build({frontend(NodePort, "192.0.2.1", 30080, Protocol::Tcp, one),
                                      frontend(NodePort, "192.0.2.1", 30080, Protocol::Tcp, two)},
                                     {})
                     .has_value());
    EXPECT_TRUE(ServiceTable::build({frontend(NodePort, "192.0.2.1", 30080, Protocol::Tcp, one),
                                     frontend(NodePort, "192.0.2.1", 30080, Protocol::Tcp, one)},
                                    {})
                    .has_value())
        << "one address on two twins";
}

TEST(ServiceTable, RefusesAFrontendThatLeadsNowhere) {
    EXPECT_FALSE(ServiceTable::build({frontend(ExternalIp, "80.11.12.10", 80, Protocol::Tcp, nullptr)}, {})
                     .has_value());
    Frontend no_such_set = frontend(ExternalIp, "80.11.12.10", 80, Protocol::Tcp, make_service(1, "web"));
    no_such_set.set = 1;
    EXPECT_FALSE(ServiceTable::build({no_such_set}, {}).has_value());
}

TEST(ServiceTable, KnowsTheEndpointsThatSeeTheirClients) {
    const auto translated =
        make_service(1, "translated", SchedulerKind::RoundRobin, test::make_backends(2, 0));
    const auto kept = make_service(2, "kept", SchedulerKind::RoundRobin, test::make_backends(2, 10));
    kept->sets[0].source = SourceMode::Keep;
    const auto kept_too = make_service(3, "kept-too", SchedulerKind::RoundRobin,
                                       test::make_backends(2, 11));  // shares 10.2.0.11
    kept_too->sets[0].source = SourceMode::Keep;
    const auto table = ServiceTable::build({}, {translated, kept, kept_too}).value();
    EXPECT_FALSE(table->is_kept_backend(ip("10.2.0.0"), 8080, Protocol::Tcp));
    EXPECT_TRUE(table->is_kept_backend(ip("10.2.0.10"), 8080, Protocol::Tcp));
    EXPECT_TRUE(table->is_kept_backend(ip("10.2.0.11"), 8080, Protocol::Tcp));
    EXPECT_TRUE(table->is_kept_backend(ip("10.2.0.12"), 8080, Protocol::Tcp));
    EXPECT_FALSE(table->is_kept_backend(ip("10.2.0.10"), 8081, Protocol::Tcp));
    EXPECT_FALSE(table->is_kept_backend(ip("10.2.0.10"), 8080, Protocol::Udp));
}

TEST(ServiceTable, KnowsThePortsThatEndpointsHaveOrHad) {
    const auto web = make_service(1, "web", SchedulerKind::RoundRobin, test::make_backends(2, 0));
    const auto with = ServiceTable::build({}, {web}).value();
    EXPECT_TRUE(with->is_endpoint_port(8080, Protocol::Tcp));
    EXPECT_FALSE(with->is_endpoint_port(8080, Protocol::Udp));
    EXPECT_FALSE(with->is_endpoint_port(8081, Protocol::Tcp));
    const auto without = ServiceTable::build({}, {}, with.get()).value();
    EXPECT_TRUE(without->is_endpoint_port(8080, Protocol::Tcp)) << "its flows may outlive it";
}

}  // namespace service_table_test
}  // namespace penstock::lb
