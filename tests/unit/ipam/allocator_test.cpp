// SPDX-License-Identifier: Apache-2.0
// Free choice, claims, release, changes of pools.
#include "control/ipam/allocator.hpp"

#include <gtest/gtest.h>

#include "tests/unit/ipam/cluster.hpp"

namespace penstock::ipam::testing {
namespace allocator_test {

using Names = std::vector<std::string>;

TEST(Allocator, LowestFreeAddressOfTheFirstPool_LB007) {
    Cluster cluster({pool("b", {"198.51.100.1-198.51.100.2"}), pool("a", {"192.0.2.1-192.0.2.2"})});
    for (const char* name : {"one", "two", "three"}) {
        cluster.add(name);
    }
    EXPECT_EQ(cluster.apply(), (Names{"default/one", "default/three", "default/two"}));
    EXPECT_EQ(cluster.of("one"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("two"), "192.0.2.2(a)");
    EXPECT_EQ(cluster.of("three"), "198.51.100.1(b)");
    cluster.remove("one");
    cluster.add("four");
    EXPECT_EQ(cluster.of("four"), "192.0.2.1(a)");
}

TEST(Allocator, PinnedPoolsComeFirstByPriority_LB007) {
    std::vector<Pool> pools = {pool("a", {"192.0.2.1"}), pool("b", {"192.0.2.2"}), pool("c", {"192.0.2.3"}),
                               pool("d", {"192.0.2.4"}), pool("e", {"192.0.2.5"})};
    pools[1].namespaces = {"default"};  // priority 0: last of the pinned ones
    pools[2].service_selector = annotations::Selector::parse("app=web").value();
    pools[2].priority = 7;
    pools[3].namespace_selector = annotations::Selector::parse("tier=gold").value();
    pools[3].priority = 3;
    pools[4].auto_assign = false;
    Cluster cluster(pools);
    cluster.set_labels("default", {{"tier", "gold"}});
    for (const char* name : {"one", "two", "three", "four", "five"}) {
        cluster.add(name).meta.labels = {{"app", "web"}};
    }
    EXPECT_EQ(cluster.of("one"), "192.0.2.4(d)");
    EXPECT_EQ(cluster.of("two"), "192.0.2.3(c)");
    EXPECT_EQ(cluster.of("three"), "192.0.2.2(b)");
    EXPECT_EQ(cluster.of("four"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("five"), "PoolExhausted");
}

TEST(Allocator, AWaitingServiceGetsTheFirstAddressThatIsReleased_LB007_LB013) {
    Cluster cluster({pool("a", {"192.0.2.1"})});
    for (const char* name : {"one", "two", "three"}) {
        cluster.add(name);
    }
    EXPECT_EQ(cluster.of("two"), "PoolExhausted");
    cluster.remove("one");
    EXPECT_EQ(cluster.apply(), (Names{"default/one", "default/two"}));
    EXPECT_EQ(cluster.of("two"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("three"), "PoolExhausted");
    cluster.set_pools({pool("a", {"192.0.2.1-192.0.2.2"})});
    EXPECT_EQ(cluster.of("three"), "192.0.2.2(a)");
}

TEST(Allocator, AChangedRequestClaimsAfterUnchangedOnes_LB011) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.2"})});
    Cluster::annotate(cluster.add("older"), "allow-shared-ip", "first");
    kube::Service& younger = cluster.add("younger");
    Cluster::annotate(younger, "allow-shared-ip", "first");
    younger.ports.front().port = 81;
    EXPECT_EQ(cluster.of("older"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("younger"), "192.0.2.1(a)");
    // In one batch both claim again, because the pools are others, and the older one shares no longer.
    cluster.set_pools({pool("a", {"192.0.2.1-192.0.2.3"})});
    Cluster::annotate(cluster.at("older"), "allow-shared-ip", "second");
    EXPECT_EQ(cluster.of("younger"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("older"), "192.0.2.2(a)");
}

TEST(Allocator, OnlyOwnedLoadBalancersGetAddresses_LB002_LB013) {
    const struct {
        const char* name;
        void (*change)(kube::Service&);
    } rows[] = {{"type", [](kube::Service& s) { s.type = "ClusterIP"; }},
                {"class", [](kube::Service& s) { s.load_balancer_class = "other.io/lb"; }},
                {"no class", [](kube::Service& s) { s.load_balancer_class = ""; }}};
    for (const auto& row : rows) {
        Cluster cluster({pool("a", {"192.0.2.1"})});
        cluster.add("one");
        cluster.add("two");
        EXPECT_EQ(cluster.of("one"), "192.0.2.1(a)");
        row.change(cluster.at("one"));
        EXPECT_EQ(cluster.apply(), (Names{"default/one", "default/two"})) << row.name;
        EXPECT_EQ(cluster.of("one"), "-") << row.name;
        EXPECT_EQ(cluster.of("two"), "192.0.2.1(a)") << row.name;
    }
}

TEST(Allocator, AServiceThatIsCreatedAgainIsNew_LB013) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.3"})});
    cluster.add("one");
    cluster.add("two");
    cluster.apply();
    cluster.remove("one");
    cluster.apply();
    cluster.at("two").meta.uid = "another";
    EXPECT_EQ(cluster.of("two"), "192.0.2.1(a)");
}

TEST(Allocator, RestartMovesNoAddress_LB008) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
    for (const char* name : {"one", "two", "three"}) {
        cluster.add(name);
    }
    cluster.apply();
    cluster.remove("one");
    cluster.echo();
    // Pending, older than all, and it requests what another Service has (metallb#1984).
    kube::Service& thief = cluster.add("thief");
    thief.meta.creation_timestamp = "2020-01-01T00:00:00Z";
    Cluster::annotate(thief, "load-balancer-ips", "192.0.2.2");
    cluster.restart();
    EXPECT_EQ(cluster.of("two"), "192.0.2.2(a)");
    EXPECT_EQ(cluster.of("three"), "192.0.2.3(a)");
    EXPECT_EQ(cluster.of("thief"), "AddressTaken");
}

TEST(Allocator, OfTwoServicesThatShowOneAddressTheOlderKeepsIt_LB008) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
    Cluster::show(cluster.add("old"), {"192.0.2.3"}, true);
    Cluster::show(cluster.add("young"), {"192.0.2.3"}, true);
    EXPECT_EQ(cluster.of("old"), "192.0.2.3(a)");
    EXPECT_EQ(cluster.of("young"), "192.0.2.1(a)");
}

TEST(Allocator, ShownAddressesMayBeSharedIfTheRulesAllow_LB008_LB011) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
    for (const char* name : {"old", "young"}) {
        kube::Service& service = cluster.add(name);
        Cluster::show(service, {"192.0.2.3"}, true);
        Cluster::annotate(service, "allow-shared-ip", "key");
        service.ports.front().port = name[0];
    }
    EXPECT_EQ(cluster.of("old"), "192.0.2.3(a)");
    EXPECT_EQ(cluster.of("young"), "192.0.2.3(a)");
}

TEST(Allocator, OwnStatusComesBeforeThatOfAnotherController_LB008_STATUS003) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
    Cluster::show(cluster.add("foreign"), {"192.0.2.3"}, false);
    Cluster::show(cluster.add("own"), {"192.0.2.3"}, true);
    Cluster::show(cluster.add("adopted"), {"192.0.2.4"}, false);
    EXPECT_EQ(cluster.of("own"), "192.0.2.3(a)");
    EXPECT_EQ(cluster.of("foreign"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("adopted"), "192.0.2.4(a)");
}

TEST(Allocator, AShownAddressIsClaimedWhenItsOtherUserReleasesIt_LB008) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
    Cluster::show(cluster.add("old"), {"192.0.2.3"}, true);
    kube::Service& young = cluster.add("young");
    Cluster::show(young, {"192.0.2.3"}, true);
    Cluster::annotate(young, "load-balancer-ips", "malformed");
    EXPECT_EQ(cluster.of("young"), "AddressOutsidePools");
    cluster.remove("old");
    EXPECT_EQ(cluster.of("young"), "192.0.2.3(a) AddressOutsidePools");
}

TEST(Allocator, AnAddressOfAnotherControllerOutsideThePoolsIsLeftAlone_STATUS003) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
    Cluster::show(cluster.add("one"), {"203.0.113.9"}, false);
    cluster.add("two").ingress.push_back({.hostname = "lb.example.org"});
    EXPECT_EQ(cluster.of("one"), "AddressOutsidePools");
    EXPECT_EQ(cluster.of("two"), "AddressOutsidePools");
    cluster.at("one").ingress.clear();
    EXPECT_EQ(cluster.of("one"), "192.0.2.1(a)");
    // Not a change of the owner: the status of a Service that has an address does not move it.
    Cluster::show(cluster.at("one"), {"192.0.2.4"}, false);
    EXPECT_EQ(cluster.of("one"), "192.0.2.1(a)");
}

TEST(Allocator, AddressesStayInUseWhenThePoolIsChanged_LB014) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
    cluster.add("one");
    cluster.add("two");
    cluster.echo();
    cluster.set_pools({pool("b", {"192.0.2.2-192.0.2.9"})});
    EXPECT_EQ(cluster.of("one"), "192.0.2.1()");
    EXPECT_EQ(cluster.of("two"), "192.0.2.2(b)");
    EXPECT_FALSE(cluster.allocator().find(Cluster::name_of("one"))->pool_missing.empty());
    EXPECT_TRUE(cluster.allocator().find(Cluster::name_of("two"))->pool_missing.empty());
    cluster.echo();
    cluster.restart();
    EXPECT_EQ(cluster.of("one"), "192.0.2.1()");
    // An exhausted pool cannot replace it, a larger one can.
    Pool moving = pool("b", {"192.0.2.2"});
    moving.reassign = true;
    cluster.set_pools({moving});
    EXPECT_EQ(cluster.of("one"), "192.0.2.1()");
    cluster.remove("two");
    EXPECT_EQ(cluster.of("one"), "192.0.2.2(b)");
}

TEST(Allocator, DualStack_DUAL004) {
    const struct {
        const char* name;
        const char* policy;
        std::vector<Pool> pools;
        const char* expected;
    } rows[] = {
        {"single", "SingleStack", {pool("a", {"192.0.2.1", "2001:db8::1"})}, "192.0.2.1(a)"},
        {"prefer, both",
         "PreferDualStack",
         {pool("a", {"192.0.2.1", "2001:db8::1"})},
         "192.0.2.1(a) 2001:db8::1(a)"},
        {"prefer, a later pool has both",
         "PreferDualStack",
         {pool("a", {"192.0.2.1"}), pool("b", {"192.0.2.2", "2001:db8::2"})},
         "192.0.2.2(b) 2001:db8::2(b)"},
        {"prefer, first family only",
         "PreferDualStack",
         {pool("a", {"2001:db8::1"}), pool("b", {"192.0.2.1"})},
         "192.0.2.1(b)"},
        {"prefer, second family only", "PreferDualStack", {pool("a", {"2001:db8::1"})}, "FamilyMissing"},
        {"require, both",
         "RequireDualStack",
         {pool("a", {"192.0.2.1", "2001:db8::1"})},
         "192.0.2.1(a) 2001:db8::1(a)"},
        {"require, not from two pools",
         "RequireDualStack",
         {pool("a", {"2001:db8::1"}), pool("b", {"192.0.2.1"})},
         "FamilyMissing"},
    };
    for (const auto& row : rows) {
        Cluster cluster(row.pools);
        cluster.add_dual("web", row.policy);
        EXPECT_EQ(cluster.of("web"), row.expected) << row.name;
    }
}

TEST(Allocator, FamiliesAreInTheOrderOfTheService_DUAL004_STATUS004) {
    Cluster cluster({pool("a", {"192.0.2.1", "2001:db8::1"})});
    cluster.add_dual("web", "RequireDualStack").ip_families = {"IPv6", "IPv4"};
    EXPECT_EQ(cluster.of("web"), "2001:db8::1(a) 192.0.2.1(a)");
}

TEST(Allocator, PreferDualStackGetsTheSecondFamilyWhenItsPoolGainsIt_DUAL004) {
    Cluster cluster({pool("a", {"192.0.2.1"}), pool("b", {"2001:db8::2"})});
    cluster.add_dual("web", "PreferDualStack");
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
    cluster.set_pools({pool("a", {"192.0.2.1", "2001:db8::1"}), pool("b", {"2001:db8::2"})});
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) 2001:db8::1(a)");
}

TEST(Allocator, ASecondFamilyIsAddedWhenAnAddressIsReleased_DUAL004) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.2", "2001:db8::1"})});
    cluster.add("six").ip_families = {"IPv6"};
    cluster.add_dual("web", "PreferDualStack");
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
    cluster.remove("six");
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) 2001:db8::1(a)");
}

TEST(Allocator, AFamilyThatTheServiceLosesIsReleased_LB013) {
    Cluster cluster({pool("a", {"192.0.2.1", "2001:db8::1"})});
    cluster.add_dual("web", "RequireDualStack");
    cluster.apply();
    kube::Service& web = cluster.at("web");
    web.ip_families = {"IPv4"};
    web.ip_family_policy = "SingleStack";
    cluster.add("six").ip_families = {"IPv6"};
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("six"), "2001:db8::1(a)");
}

TEST(Allocator, ReassignMovesUncoveredAddressesOnlyAndLosesNoFamily_DUAL004_LB014) {
    const auto moving = [](const char* name, const std::vector<std::string>& ranges) {
        Pool result = pool(name, ranges);
        result.reassign = true;
        return result;
    };
    const struct {
        const char* name;
        const char* policy;
        std::vector<Pool> pools;  // after 192.0.2.1 and 2001:db8::1 of pool a were given
        const char* expected;
    } rows[] = {
        {"one family is covered: it stays, and the other one as well",
         "RequireDualStack",
         {pool("a", {"192.0.2.1"}), moving("b", {"192.0.2.2", "2001:db8::2"})},
         "192.0.2.1(a) 2001:db8::1()"},
        {"the pool of the covered family replaces the other one",
         "RequireDualStack",
         {moving("a", {"192.0.2.1", "2001:db8::3"}), moving("b", {"192.0.2.2", "2001:db8::2"})},
         "192.0.2.1(a) 2001:db8::3(a)"},
        {"only if that pool reassigns",
         "PreferDualStack",
         {pool("a", {"192.0.2.1", "2001:db8::3"}), moving("b", {"192.0.2.2", "2001:db8::2"})},
         "192.0.2.1(a) 2001:db8::1()"},
        {"the second family is covered",
         "PreferDualStack",
         {pool("a", {"2001:db8::1"}), moving("b", {"192.0.2.2", "2001:db8::2"})},
         "192.0.2.1() 2001:db8::1(a)"},
        {"none is covered: both move together",
         "RequireDualStack",
         {moving("b", {"192.0.2.2", "2001:db8::2"})},
         "192.0.2.2(b) 2001:db8::2(b)"},
        {"a pool with one of the two families replaces none",
         "PreferDualStack",
         {moving("b", {"192.0.2.2"})},
         "192.0.2.1() 2001:db8::1()"},
        {"nor do two pools",
         "PreferDualStack",
         {moving("b", {"192.0.2.2"}), moving("c", {"2001:db8::2"})},
         "192.0.2.1() 2001:db8::1()"},
    };
    for (const auto& row : rows) {
        Cluster cluster({pool("a", {"192.0.2.1", "2001:db8::1"})});
        cluster.add_dual("web", row.policy);
        EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) 2001:db8::1(a)") << row.name;
        cluster.echo();
        cluster.set_pools(row.pools);
        EXPECT_EQ(cluster.of("web"), row.expected) << row.name;
        cluster.echo();
        cluster.restart();
        EXPECT_EQ(cluster.of("web"), row.expected) << row.name;
    }
}

TEST(Allocator, ARequestForOneFamilyLosesNoOtherFamily_LB009_LB014) {
    // 2001:db8::2 is requested afterwards, and its pool has no IPv4 address.
    Cluster cluster({pool("a", {"192.0.2.1"}), pool("b", {"2001:db8::2"})});
    cluster.add_dual("web", "PreferDualStack");
    cluster.echo();
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a)");
    Cluster::annotate(cluster.at("web"), "load-balancer-ips", "2001:db8::2");
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) FamilyMissing");
    cluster.restart();
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) FamilyMissing");
    // A pool with both replaces it.
    cluster.set_pools({pool("a", {"192.0.2.1"}), pool("b", {"192.0.2.2", "2001:db8::2"})});
    EXPECT_EQ(cluster.of("web"), "192.0.2.2(b) 2001:db8::2(b)");
}

TEST(Allocator, ARestartReplacesUncoveredAddressesOnlyWhereAPoolReassigns_LB008_LB014) {
    for (const bool reassigns : {false, true}) {
        Cluster cluster({pool("a", {"192.0.2.1-192.0.2.4"})});
        cluster.add("low");
        cluster.add("web");
        cluster.add("new");
        cluster.echo();
        cluster.remove("low");
        Pool edited = pool("a", {"192.0.2.1", "192.0.2.3"});
        edited.reassign = reassigns;
        cluster.set_pools({edited});
        cluster.restart();
        EXPECT_EQ(cluster.of("web"), reassigns ? "192.0.2.1(a)" : "192.0.2.2()");
        EXPECT_EQ(cluster.of("new"), "192.0.2.3(a)") << "covered";
    }
}

TEST(Allocator, RequireDualStackOnALiveService_DUAL004) {
    Cluster cluster({pool("a", {"192.0.2.1"}), pool("b", {"2001:db8::2"})});
    cluster.add("web");
    cluster.apply();
    kube::Service& web = cluster.at("web");
    web.ip_families = {"IPv4", "IPv6"};
    web.ip_family_policy = "RequireDualStack";
    // The address that clients use is not withdrawn, but the condition reports the reason.
    EXPECT_EQ(cluster.of("web"), "192.0.2.1(a) FamilyMissing");
    cluster.set_pools({pool("a", {"192.0.2.1"}), pool("b", {"192.0.2.2", "2001:db8::2"})});
    EXPECT_EQ(cluster.of("web"), "192.0.2.2(b) 2001:db8::2(b)");
}

TEST(Allocator, TheAddressOfAnUnreadableServiceIsHeld_LB008_GEN003) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.3", "2001:db8::1"})});
    cluster.hold("broken", {"192.0.2.1", "192.0.2.3", "2001:db8::1", "203.0.113.1"});
    cluster.add_dual("new", "PreferDualStack");
    EXPECT_EQ(cluster.of("new"), "192.0.2.2(a)");
    Cluster::annotate(cluster.add("wants"), "load-balancer-ips", "192.0.2.1");
    EXPECT_EQ(cluster.of("wants"), "AddressTaken");
    EXPECT_NE(cluster.message("wants").find("held for default/broken"), std::string::npos)
        << cluster.message("wants");
    EXPECT_EQ(cluster.allocator().usage().front().v4, (AddressCounts{.total = 3, .used = 3, .free = 0}));
    // A Service whose own status shows the address keeps it: it shared the address, or was first.
    Cluster::show(cluster.add("shares"), {"192.0.2.3"}, true);
    EXPECT_EQ(cluster.of("shares"), "192.0.2.3(a)");
    cluster.echo();
    cluster.restart();
    EXPECT_EQ(cluster.of("shares"), "192.0.2.3(a)");
    EXPECT_EQ(cluster.of("wants"), "AddressTaken");
    cluster.set_pools({pool("b", {"192.0.2.1-192.0.2.3", "2001:db8::1"})});
    EXPECT_EQ(cluster.of("wants"), "AddressTaken");
    EXPECT_EQ(cluster.of("new"), "192.0.2.2(b)");
    // It can be read again, and claims its address before the Service that waits for it.
    cluster.hold("broken", {});
    Cluster::show(cluster.add("broken"), {"192.0.2.1"}, true);
    EXPECT_EQ(cluster.of("broken"), "192.0.2.1(b)");
    EXPECT_EQ(cluster.of("new"), "192.0.2.2(b) 2001:db8::1(b)");
    cluster.remove("broken");
    EXPECT_EQ(cluster.of("wants"), "192.0.2.1(b)");
}

TEST(Allocator, AServiceThatIsUnreadableNowHoldsItsAddressForItself_LB008_GEN003) {
    // The last good version of the Service has no address yet, the unreadable one has.
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.3"})});
    cluster.hold("web", {"192.0.2.2"});
    cluster.add("other");
    Cluster::annotate(cluster.add("web"), "load-balancer-ips", "192.0.2.2");
    EXPECT_EQ(cluster.of("other"), "192.0.2.1(a)");
    EXPECT_EQ(cluster.of("web"), "192.0.2.2(a)");
    cluster.hold("web", {});
    EXPECT_EQ(cluster.of("web"), "192.0.2.2(a)");
}

TEST(Allocator, AnUnchangedObjectIsNoChange_STATUS004) {
    Cluster cluster({pool("a", {"192.0.2.1-192.0.2.9"})});
    cluster.add("one");
    EXPECT_EQ(cluster.apply(), (Names{"default/one"}));
    cluster.at("one");
    EXPECT_EQ(cluster.apply(), Names{});
    Cluster::show(cluster.at("one"), {"192.0.2.1"}, true);
    EXPECT_EQ(cluster.apply(), Names{});
    // A finalizer or an unrelated annotation is not read at all (LB-020).
    cluster.at("one").meta.annotations["penstock.io/scheduler"] = "rr";
    EXPECT_EQ(cluster.apply(), Names{});
}

}  // namespace allocator_test
}  // namespace penstock::ipam::testing
