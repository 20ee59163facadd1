// SPDX-License-Identifier: Apache-2.0
// Requested addresses and pools, sharing.
#include <gtest/gtest.h>

#include "control/ipam/allocator.hpp"
#include "tests/unit/ipam/cluster.hpp"

namespace penstock::ipam::testing {
namespace requests_test {

std::vector<Pool> two_pools() {
    return {pool("a", {"192.0.2.0-192.0.2.9", "2001:db8:a::/64"}), pool("b", {"198.51.100.0/24"})};
}

TEST(Requests, AddressesArePickedOrTheServiceWaits_LB009_ANN22) {
    const struct {
        const char* name;
        const char* annotation;
        const char* field;
        const char* families;
        const char* expected;
    } rows[] = {
        {"annotation", "192.0.2.7", "", "4", "192.0.2.7(a)"},
        {"field", "", "192.0.2.7", "4", "192.0.2.7(a)"},
        {"both equal", "192.0.2.7", "192.0.2.7", "4", "192.0.2.7(a)"},
        {"both different", "192.0.2.7", "192.0.2.8", "4", "LoadBalancerIPConflict"},
        {"of two families", "192.0.2.7", "2001:db8:a::1", "46", "LoadBalancerIPConflict"},
        {"two families", "2001:db8:a::9, 192.0.2.7", "", "46", "192.0.2.7(a) 2001:db8:a::9(a)"},
        {"one of two families", "2001:db8:a::9", "", "46", "192.0.2.0(a) 2001:db8:a::9(a)"},
        {"in two pools", "2001:db8:a::9,198.51.100.1", "", "46", "AddressOutsidePools"},
        {"two of a family", "192.0.2.7,192.0.2.8", "", "4", "AddressOutsidePools"},
        {"no address", "any", "", "4", "AddressOutsidePools"},
        {"no address in the field", "", "any", "4", "AddressOutsidePools"},
        {"blank", "  ", "", "4", "192.0.2.0(a)"},
        {"outside", "203.0.113.1", "", "4", "AddressOutsidePools"},
        {"other family", "2001:db8:a::1", "", "4", "FamilyMissing"},
        {"reserved form", "0.0.0.0", "", "4", "AddressOutsidePools"},
    };
    for (const auto& row : rows) {
        Cluster cluster(two_pools());
        kube::Service& web =
            row.families[1] != '\0' ? cluster.add_dual("web", "RequireDualStack") : cluster.add("web");
        if (row.annotation[0] != '\0') {
            Cluster::annotate(web, "load-balancer-ips", row.annotation);
        }
        web.load_balancer_ip = row.field;
        EXPECT_EQ(cluster.of("web"), row.expected) << row.name << ": " << cluster.message("web");
    }
}

TEST(Requests, AliasesOfTheAnnotations_ANN22_ANN23_ANN24) {
    for (const char* key :
         {"metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs", "lbipam.cilium.io/ips",
          "io.cilium/lb-ipam-ips", "penstock.io/load-balancer-ips"}) {
        Cluster cluster(two_pools());
        cluster.add("web").meta.annotations[key] = "192.0.2.7";
        EXPECT_EQ(cluster.of("web"), "192.0.2.7(a)") << key;
    }
    for (const char* key :
         {"metallb.io/address-pool", "metallb.universe.tf/address-pool", "penstock.io/address-pool"}) {
        Cluster cluster(two_pools());
        cluster.add("web").meta.annotations[key] = "b";
        EXPECT_EQ(cluster.of("web"), "198.51.100.0(b)") << key;
    }
    for (const char* key : {"metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip",
                            "lbipam.cilium.io/sharing-key", "penstock.io/allow-shared-ip"}) {
        Cluster cluster(two_pools());
        cluster.add("one").meta.annotations[key] = "k";
        kube::Service& two = cluster.add("two");
        two.meta.annotations[key] = "k";
        two.ports.front().port = 81;
        EXPECT_EQ(cluster.of("two"), "192.0.2.0(a)") << key;
    }
}

TEST(Requests, RequestsComeBeforeFreeChoice_LB009) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    cluster.add("old");
    Cluster::annotate(cluster.add("young"), "load-balancer-ips", "192.0.2.1");
    EXPECT_EQ(cluster.of("young"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("old"), "192.0.2.2(a)");
}

TEST(Requests, ATakenAddressIsGivenWhenItIsReleased_LB009) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    cluster.add("one");
    cluster.apply();
    Cluster::annotate(cluster.add("two"), "load-balancer-ips", "192.0.2.1");
    EXPECT_EQ(cluster.of("two"), "AddressTaken");
    EXPECT_NE(cluster.message("two").find("used by default/one"), std::string::npos)
        << cluster.message("two");
    cluster.remove("one");
    EXPECT_EQ(cluster.of("two"), "192.0.2.1(a)");
}

TEST(Requests, AnotherRequestMovesALiveServiceInOneStep_LB009) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    cluster.add("web");
    cluster.echo();
    Cluster::annotate(cluster.at("web"), "load-balancer-ips", "192.0.2.5");
    EXPECT_EQ(cluster.of("web"), "192.0.2.5(a)");
    cluster.echo();
    // A request that is granted already, or removed, moves nothing.
    cluster.at("web").meta.annotations.clear();
    EXPECT_EQ(cluster.of("web"), "192.0.2.5(a)");
    Cluster::annotate(cluster.at("web"), "load-balancer-ips", "203.0.113.1");
    EXPECT_EQ(cluster.of("web"), "AddressOutsidePools");
}

TEST(Requests, AMalformedRequestClearsNothing_LB009_ANN22) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    cluster.add("web");
    cluster.echo();
    Cluster::annotate(cluster.at("web"), "load-balancer-ips", "192.0.2.");
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) AddressOutsidePools");
    cluster.restart();
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) AddressOutsidePools");
}

TEST(Requests, Pools_LB010_ANN23) {
    std::vector<Pool> pools = two_pools();
    pools.push_back(pool("c", {"203.0.113.0/28"}));
    pools[2].namespaces = {"shop"};
    pools.push_back(pool("d", {"203.0.113.16/28"}));
    pools[3].auto_assign = false;
    const struct {
        const char* name;
        const char* pool;
        const char* address;
        const char* expected;
    } rows[] = {{"known", "b", "", "198.51.100.0(b)"},
                {"not automatic", "d", "", "203.0.113.16(d)"},
                {"unknown", "x", "", "NoPool"},
                {"invalid", "X_Y", "", "NoPool"},
                {"of another namespace", "c", "", "NotAllowedForNamespace"},
                {"with its address", "b", "198.51.100.9", "198.51.100.9(b)"},
                {"with an address elsewhere", "b", "192.0.2.7", "AddressOutsidePools"},
                {"address of another namespace", "", "203.0.113.1", "NotAllowedForNamespace"},
                {"address of a pool that is not automatic", "", "203.0.113.17", "203.0.113.17(d)"}};
    for (const auto& row : rows) {
        Cluster cluster(pools);
        kube::Service& web = cluster.add("web");
        Cluster::annotate(web, "address-pool", row.pool);
        Cluster::annotate(web, "load-balancer-ips", row.address);
        EXPECT_EQ(cluster.of("web"), row.expected) << row.name << ": " << cluster.message("web");
    }
}

TEST(Requests, AnotherPoolMovesTheService_LB010) {
    Cluster cluster(two_pools());
    cluster.add("web");
    cluster.echo();
    Cluster::annotate(cluster.at("web"), "address-pool", "b");
    EXPECT_EQ(cluster.of("web"), "198.51.100.0(b)");
    // The pool of this name may be missing for a moment only.
    Cluster::annotate(cluster.at("web"), "address-pool", "x");
    EXPECT_EQ(cluster.of("web"), "198.51.100.0(b)");
}

TEST(Requests, SharingMatrix_LB011_ANN24) {
    struct Side {
        const char* key;
        const char* protocol;
        int port;
        const char* policy;
        const char* app;
    };
    const struct {
        const char* name;
        Side a;
        Side b;
        const char* expected;  // of b, that requests the address of a
    } rows[] = {
        {"disjoint ports",
         {"k", "TCP", 80, "Cluster", "x"},
         {"k", "TCP", 81, "Cluster", "y"},
         "192.0.2.1(a)"},
        {"other protocol",
         {"k", "TCP", 80, "Cluster", "x"},
         {"k", "UDP", 80, "Cluster", "y"},
         "192.0.2.1(a)"},
        {"same port", {"k", "TCP", 80, "Cluster", "x"}, {"k", "TCP", 80, "Cluster", "x"}, "SharingRefused"},
        {"other key", {"k", "TCP", 80, "Cluster", "x"}, {"l", "TCP", 81, "Cluster", "x"}, "SharingRefused"},
        {"no key", {"k", "TCP", 80, "Cluster", "x"}, {"", "TCP", 81, "Cluster", "x"}, "AddressTaken"},
        {"owner has no key",
         {"", "TCP", 80, "Cluster", "x"},
         {"k", "TCP", 81, "Cluster", "x"},
         "AddressTaken"},
        {"blank key", {" ", "TCP", 80, "Cluster", "x"}, {" ", "TCP", 81, "Cluster", "x"}, "AddressTaken"},
        {"Local, same selector",
         {"k", "TCP", 80, "Local", "x"},
         {"k", "TCP", 81, "Local", "x"},
         "192.0.2.1(a)"},
        {"Local, other selector",
         {"k", "TCP", 80, "Local", "x"},
         {"k", "TCP", 81, "Local", "y"},
         "SharingRefused"},
        {"one Local", {"k", "TCP", 80, "Cluster", "x"}, {"k", "TCP", 81, "Local", "y"}, "SharingRefused"},
    };
    const auto fill = [](kube::Service& service, const Side& side) {
        Cluster::annotate(service, "allow-shared-ip", side.key);
        service.ports = {{.protocol = side.protocol, .port = side.port}};
        service.external_traffic_policy = side.policy;
        service.selector = {{"app", side.app}};
    };
    for (const auto& row : rows) {
        Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
        fill(cluster.add("a"), row.a);
        cluster.apply();
        kube::Service& b = cluster.add("b");
        fill(b, row.b);
        Cluster::annotate(b, "load-balancer-ips", "192.0.2.1");
        EXPECT_EQ(cluster.of("b"), row.expected) << row.name << ": " << cluster.message("b");
    }
}

TEST(Requests, NamespacesShareOnlyWhereBothPermitIt_LB011_LB024_ANN24) {
    const struct {
        const char* name;
        const char* holder;  // in namespace shop
        const char* asking;  // in namespace spy, or shop
        const char* space;
        const char* expected;
        const char* message;
    } rows[] = {
        {"one namespace", "", "", "shop", "192.0.2.1(a)", ""},
        {"the key alone", "", "", "spy", "SharingRefused", "in namespace shop does not permit namespace spy"},
        {"the asking one alone", "", "*", "spy", "SharingRefused",
         "namespace shop does not permit namespace spy"},
        {"the holder alone", "*", "", "spy", "SharingRefused",
         "namespace spy does not permit namespace shop"},
        {"both", "spy", "shop", "spy", "192.0.2.1(a)", ""},
        {"both, all", "*", "*", "spy", "192.0.2.1(a)", ""},
        {"lists", "one, spy", "two,shop", "spy", "192.0.2.1(a)", ""},
        {"other namespaces", "spy2,sp", "*", "spy", "SharingRefused", "does not permit namespace spy"},
        {"malformed", "spy;shop", "*", "spy", "SharingRefused", "does not permit namespace spy"},
    };
    for (const auto& row : rows) {
        Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
        const auto fill = [](kube::Service& service, const char* namespaces, int port) {
            Cluster::annotate(service, "allow-shared-ip", "k");
            Cluster::annotate(service, "allow-shared-ip-namespaces", namespaces);
            service.ports.front().port = port;
        };
        fill(cluster.add("shop/web"), row.holder, 80);
        cluster.apply();
        const std::string other = std::string(row.space) + "/other";
        kube::Service& asking = cluster.add(other);
        fill(asking, row.asking, 81);
        Cluster::annotate(asking, "load-balancer-ips", "192.0.2.1");
        EXPECT_EQ(cluster.of(other), row.expected) << row.name;
        EXPECT_NE(cluster.message(other).find(row.message), std::string::npos)
            << row.name << ": " << cluster.message(other);
        // Without a request it gets an address of its own.
        const bool shares = row.expected[0] == '1';
        cluster.at(other).meta.annotations.erase("penstock.io/load-balancer-ips");
        EXPECT_EQ(cluster.of(other), shares ? "192.0.2.1(a)" : "192.0.2.2(a)") << row.name;
    }
}

TEST(Requests, AWithdrawnPermissionEndsTheSharing_LB011_ANN24) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    for (const char* path : {"shop/web", "spy/other"}) {
        kube::Service& service = cluster.add(path);
        Cluster::annotate(service, "allow-shared-ip", "k");
        Cluster::annotate(service, "allow-shared-ip-namespaces", "*");
        service.ports.front().port = path[1];
    }
    EXPECT_EQ(cluster.of("spy/other"), "192.0.2.1(a)");
    // The Service that changes loses the address, not the one that relied on it.
    Cluster::annotate(cluster.at("spy/other"), "allow-shared-ip-namespaces", "elsewhere");
    EXPECT_EQ(cluster.of("spy/other"), "192.0.2.2(a)");
    EXPECT_EQ(cluster.of("shop/web"), "192.0.2.1(a)");
}

TEST(Requests, TheServiceThatChangesLosesASharedAddress_LB011) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    for (const char* name : {"old", "young"}) {
        kube::Service& service = cluster.add(name);
        Cluster::annotate(service, "allow-shared-ip", "k");
        service.ports.front().port = name[0];
    }
    EXPECT_EQ(cluster.of("young"), "192.0.2.1(a)");
    cluster.at("old").ports.front().port = 'y';
    EXPECT_EQ(cluster.of("old"), "192.0.2.2(a)");
    EXPECT_EQ(cluster.of("young"), "192.0.2.1(a)");
}

TEST(Requests, TheOnlyUserMayChangeItsKey_LB011) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    cluster.add("low");
    Cluster::annotate(cluster.add("web"), "allow-shared-ip", "k");
    EXPECT_EQ(cluster.of("web"), "192.0.2.2(a)");
    cluster.remove("low");
    Cluster::annotate(cluster.at("web"), "allow-shared-ip", "l");
    EXPECT_EQ(cluster.of("web"), "192.0.2.2(a)");
}

TEST(Requests, AWaitingServiceSharesAnAddressThatAppears_LB011) {
    Cluster cluster({pool("a", {"192.0.2.1"})});
    cluster.add("one");
    kube::Service& two = cluster.add("two");
    Cluster::annotate(two, "allow-shared-ip", "k");
    two.ports.front().port = 81;
    EXPECT_EQ(cluster.of("two"), "PoolExhausted");
    Cluster::annotate(cluster.at("one"), "allow-shared-ip", "k");
    EXPECT_EQ(cluster.of("two"), "192.0.2.1(a)");
}

TEST(Requests, MessageNamesThePoolsAndWhyTheyWerePassedOver_LB024) {
    std::vector<Pool> pools = {pool("a", {"192.0.2.1"}), pool("b", {"2001:db8::/64"}),
                               pool("c", {"192.0.2.3"}), pool("d", {"192.0.2.4"})};
    pools[2].namespaces = {"shop"};
    pools[3].disabled = true;
    Cluster cluster(pools);
    cluster.add("one");
    cluster.add("two");
    EXPECT_EQ(cluster.of("two"), "PoolExhausted");
    EXPECT_EQ(cluster.message("two"),
              "no pool gives IPv4: pool \"a\": no free IPv4 address; pool \"b\": no IPv4 addresses; "
              "pool \"d\": disabled; and 1 more");
    cluster.set_pools({});
    EXPECT_EQ(cluster.of("two"), "NoPool");
    // The reason follows while the Service is pending.
    cluster.set_pools({pool("b", {"2001:db8::/64"})});
    EXPECT_EQ(cluster.of("two"), "FamilyMissing");
}

}  // namespace requests_test
}  // namespace penstock::ipam::testing
