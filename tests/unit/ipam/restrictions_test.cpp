// SPDX-License-Identifier: Apache-2.0
// Reservations, fences, internal and disabled pools, avoided addresses, usage.
#include <gtest/gtest.h>

#include "control/ipam/allocator.hpp"
#include "tests/unit/ipam/cluster.hpp"

namespace penstock::ipam::testing {
namespace restrictions_test {

Pool with_reservation(Pool pool, const char* address, const char* service) {
    pool.reservations.push_back({.address = ip(address), .service = Cluster::name_of(service)});
    return pool;
}

TEST(Restrictions, AReservedAddressIsForItsServiceOnly_LB022) {
    Cluster cluster({with_reservation(pool("a", {"192.0.2.1-192.0.2.2"}), "192.0.2.1", "web")});
    cluster.add("other");
    EXPECT_EQ(cluster.of("other"), "192.0.2.2(a)");
    cluster.add("third");
    EXPECT_EQ(cluster.of("third"), "PoolExhausted");
    Cluster::annotate(cluster.at("third"), "load-balancer-ips", "192.0.2.1");
    EXPECT_EQ(cluster.of("third"), "AddressTaken");
    cluster.add("web");
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
    cluster.remove("web");
    EXPECT_EQ(cluster.of("third"), "AddressTaken");
    cluster.add("web");
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
}

TEST(Restrictions, AReservationSelectsItsPool_LB022) {
    Pool second = with_reservation(pool("b", {"198.51.100.0/28"}), "198.51.100.9", "web");
    second.auto_assign = false;
    Cluster cluster({pool("a", {"192.0.2.1"}), second});
    cluster.add("web");
    EXPECT_EQ(cluster.of("web"), "198.51.100.9(b)");
}

TEST(Restrictions, AnAddressInUseStaysWhenItIsReserved_LB022) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.2"})});
    cluster.add("user");
    cluster.echo();
    cluster.set_pools({with_reservation(pool("a", {"192.0.2.1-192.0.2.2"}), "192.0.2.1", "web")});
    EXPECT_EQ(cluster.of("user"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.allocator().usage().front().reservations_in_use.size(), 1U);
    cluster.restart();
    EXPECT_EQ(cluster.of("user"), "192.0.2.1(a)");
    cluster.add("web");
    EXPECT_EQ(cluster.of("web"), "192.0.2.2(a)");  // until its own address is free, another one
    cluster.remove("user");
    cluster.add("third");
    EXPECT_EQ(cluster.of("third"), "PoolExhausted");
    EXPECT_TRUE(cluster.allocator().usage().front().reservations_in_use.empty());
}

TEST(Restrictions, FencesHoldBothWays_LB023) {
    std::vector<Pool> pools = {pool("a", {"192.0.2.1-192.0.2.9"}), pool("f", {"198.51.100.1"}),
                               pool("g", {"198.51.100.2"})};
    for (const size_t fenced : {1U, 2U}) {
        pools[fenced].enforce = true;
        pools[fenced].namespaces = {"bank"};
    }
    pools[2].namespace_selector = annotations::Selector::parse("money=yes").value();
    Cluster cluster(pools);
    cluster.set_labels("vault", {{"money", "yes"}});
    const struct {
        const char* service;
        const char* pool;
        const char* address;
        const char* expected;
    } rows[] = {{"bank/one", "", "", "198.51.100.1(f)"},
                {"bank/two", "a", "", "NotAllowedForNamespace"},
                {"bank/three", "", "192.0.2.5", "NotAllowedForNamespace"},
                {"bank/four", "", "", "198.51.100.2(g)"},
                {"bank/five", "", "", "PoolExhausted"},
                {"vault/one", "", "", "PoolExhausted"},
                {"vault/two", "f", "", "NotAllowedForNamespace"},
                {"shop/one", "f", "", "NotAllowedForNamespace"},
                {"shop/two", "", "198.51.100.1", "NotAllowedForNamespace"},
                {"shop/three", "", "", "192.0.2.1(a)"}};
    for (const auto& row : rows) {
        kube::Service& service = cluster.add(row.service);
        Cluster::annotate(service, "address-pool", row.pool);
        Cluster::annotate(service, "load-balancer-ips", row.address);
        EXPECT_EQ(cluster.of(row.service), row.expected)
            << row.service << ": " << cluster.message(row.service);
    }
    // Nor is an address of another controller adopted across the fence.
    Cluster::show(cluster.add("shop/four"), {"198.51.100.2"}, false);
    cluster.remove("bank/four");
    EXPECT_EQ(cluster.of("shop/four"), "192.0.2.2(a)");
}

TEST(Restrictions, LabelsOfANamespaceOpenAPool_LB007_LB023) {
    Pool pinned = pool("a", {"192.0.2.1"});
    pinned.namespace_selector = annotations::Selector::parse("tier=gold").value();
    Cluster cluster({pinned});
    cluster.add("web");
    EXPECT_EQ(cluster.of("web"), "NoPool");
    cluster.set_labels("default", {{"tier", "gold"}});
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
    cluster.set_labels("default", {});
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
}

TEST(Restrictions, InternalPoolsServeInternalServicesOnly_LB025_ANN17) {
    std::vector<Pool> pools = {pool("in", {"10.9.0.1-10.9.0.9"}), pool("net-7", {"10.9.1.1"}),
                               pool("out", {"192.0.2.1-192.0.2.9"})};
    pools[0].internal = pools[1].internal = true;
    const struct {
        const char* key;
        const char* value;
        const char* expected;
    } rows[] = {{"penstock.io/scope", "internal", "10.9.0.1(in)"},
                {"penstock.io/scope", "external", "192.0.2.1(out)"},
                {"penstock.io/scope", "inside", "192.0.2.1(out)"},
                {"cloud.google.com/load-balancer-type", "Internal", "10.9.0.1(in)"},
                {"networking.gke.io/load-balancer-type", "INTERNAL", "10.9.0.1(in)"},
                {"service.beta.kubernetes.io/aws-load-balancer-internal", "0.0.0.0/0", "10.9.0.1(in)"},
                {"service.beta.kubernetes.io/aws-load-balancer-internal", "false", "192.0.2.1(out)"},
                {"service.beta.kubernetes.io/azure-load-balancer-internal", "true", "10.9.0.1(in)"},
                {"service.beta.kubernetes.io/openstack-internal-load-balancer", "T", "10.9.0.1(in)"},
                {"service.beta.kubernetes.io/cce-load-balancer-internal-vpc", "0", "192.0.2.1(out)"},
                {"service.kubernetes.io/qcloud-loadbalancer-internal-subnetid", "net-7", "10.9.1.1(net-7)"},
                {"service.kubernetes.io/qcloud-loadbalancer-internal-subnetid", "net-8", "10.9.0.1(in)"}};
    for (const auto& row : rows) {
        Cluster cluster(pools);
        cluster.add("web").meta.annotations[row.key] = row.value;
        EXPECT_EQ(cluster.of("web"), row.expected) << row.key << " " << row.value;
    }
    Cluster cluster({pools[2]});
    Cluster::annotate(cluster.add("web"), "scope", "internal");
    EXPECT_EQ(cluster.of("web"), "NoPool");
}

TEST(Restrictions, AToggledScopeMovesTheService_LB025) {
    std::vector<Pool> pools = {pool("in", {"10.9.0.1"}), pool("out", {"192.0.2.1"})};
    pools[0].internal = true;
    Cluster cluster(pools);
    cluster.add("web");
    cluster.echo();
    Cluster::annotate(cluster.at("web"), "scope", "internal");
    EXPECT_EQ(cluster.of("web"), "10.9.0.1(in)");
    // Changed while no allocator ran: an internal Service never keeps an external address.
    cluster.at("web").meta.annotations.clear();
    cluster.restart();
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(out)");
}

TEST(Restrictions, ADisabledPoolKeepsWhatItGave_LB025) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    cluster.add("web");
    cluster.echo();
    Pool disabled = pool("a", {"192.0.2.1-192.0.2.9"});
    disabled.disabled = true;
    cluster.set_pools({disabled});
    cluster.restart();
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
    cluster.add("new");
    EXPECT_EQ(cluster.of("new"), "NoPool");
    Cluster::annotate(cluster.at("new"), "load-balancer-ips", "192.0.2.2");
    EXPECT_EQ(cluster.of("new"), "NoPool");
}

TEST(Restrictions, AvoidedAddresses_LB012) {
    const struct {
        const char* name;
        const char* range;
        const char* request;
        const char* expected;
    } rows[] = {{"skips .0", "192.0.2.0-192.0.2.9", "", "192.0.2.1(a)"},
                {"skips .255 and .0", "192.0.2.255-192.0.3.9", "", "192.0.3.1(a)"},
                {"one address", "192.0.2.0/32", "", "PoolExhausted"},
                {"requested", "192.0.2.0/24", "192.0.2.255", "AddressOutsidePools"},
                {"requested otherwise", "192.0.2.0/24", "192.0.2.254", "192.0.2.254(a)"}};
    for (const auto& row : rows) {
        Pool avoiding = pool("a", {row.range});
        avoiding.avoid_buggy_ips = true;
        Cluster cluster({avoiding});
        Cluster::annotate(cluster.add("web"), "load-balancer-ips", row.request);
        EXPECT_EQ(cluster.of("web"), row.expected) << row.name;
    }
    Pool six = pool("a", {"2001:db8::/112"});
    six.avoid_buggy_ips = true;
    Cluster cluster({six});
    cluster.add("web").ip_families = {"IPv6"};
    EXPECT_EQ(cluster.of("web"), "2001:db8::(a)");
}

TEST(Restrictions, UsageCountsByFamily_LB012_LB022) {
    Pool mixed = with_reservation(pool("a", {"192.0.2.0/24", "2001:db8::/64"}), "192.0.2.9", "vip");
    Pool avoiding = pool("b", {"198.51.100.128-198.51.101.255"});
    avoiding.avoid_buggy_ips = true;
    Cluster cluster({mixed, avoiding});
    for (const char* name : {"one", "two"}) {
        kube::Service& service = cluster.add_dual(name, "RequireDualStack");
        Cluster::annotate(service, "allow-shared-ip", "k");
        service.ports.front().port = name[0];
    }
    cluster.add("three");
    std::vector<PoolUsage> usage = cluster.allocator().usage();
    ASSERT_EQ(usage.size(), 2U);
    EXPECT_EQ(usage[0].v4, (AddressCounts{.total = 256, .used = 2, .free = 253}));
    EXPECT_EQ(usage[0].v6, (AddressCounts{.total = UINT64_MAX, .used = 1, .free = UINT64_MAX}));
    EXPECT_EQ(usage[1].v4, (AddressCounts{.total = 381, .used = 0, .free = 381}));
    EXPECT_EQ(usage[1].v6, AddressCounts{});
    cluster.add("vip");
    usage = cluster.allocator().usage();
    EXPECT_EQ(usage[0].v4, (AddressCounts{.total = 256, .used = 3, .free = 253}));
}

}  // namespace restrictions_test
}  // namespace penstock::ipam::testing
