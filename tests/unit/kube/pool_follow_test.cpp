// SPDX-License-Identifier: Apache-2.0
// AddressPools and Namespaces of an API server: optional collections, which nothing else waits for.
#include <gtest/gtest.h>

#include "control/kube/follow/cluster_source.hpp"
#include "tests/unit/kube/api_text.hpp"
#include "tests/unit/kube/cluster_follow.hpp"

namespace penstock::kube {
namespace pool_follow_test {

using namespace test;
using namespace std::chrono_literals;
using State = CollectionStatus::State;

const std::string kPools = "/apis/penstock.io/v1alpha1/addresspools";
const std::string kNamespaces = "/api/v1/namespaces";

std::string pool_text(const std::string& name, const std::string& addresses,
                      const std::string& version = "5") {
    return R"({"apiVersion":"penstock.io/v1alpha1","kind":"AddressPool","metadata":{"name":")" + name +
           R"(","uid":"uid-)" + name + R"(","resourceVersion":")" + version + R"("},"spec":{"addresses":[")" +
           addresses + R"("]}})";
}
std::string namespace_text(const std::string& name, const std::string& team) {
    return R"({"metadata":{"name":")" + name + R"(","labels":{"team":")" + team + R"("}}})";
}
std::string pools_text(const std::string& version, const std::vector<std::string>& items) {
    return list_text(version, items, "", "AddressPoolList");
}
// As an API server answers for a custom resource without CRD.
const std::string kNoCrd = "404 page not found\n";

class PoolFollow : public ClusterFollow {
 protected:
    void begin(bool streamed_lists = false) {
        start({.server = "https://192.0.2.1:6443",
               .scope = {.address_pools = true, .namespaces = true},
               .streamed_lists = streamed_lists});
    }
    void list_the_required() {
        reply(kServices, 200, list_text("10", {service_text("web", "3")}));
        reply(kSlices, 200, list_text("10", {}, "", "EndpointSliceList"));
        reply(kNodes, 200, list_text("10", {}, "", "NodeList"));
        for (const std::string& path : {kServices, kSlices, kNodes}) {
            head(path);
        }
    }
    // Waits for the next request of `path`; returns the time that it took.
    std::chrono::milliseconds wait_for_request(const std::string& path) {
        const auto before = now_;
        for (int second = 0; !is_asked(path) && second < 300; ++second) {
            wait(1s);
        }
        EXPECT_TRUE(is_asked(path)) << path;
        return std::chrono::round<std::chrono::milliseconds>(now_ - before);
    }
    void event(const std::string& path, const std::string& text) {
        ASSERT_TRUE(is_asked(path)) << path;
        open(path)->handler->on_body(text);
        settle();
    }
    [[nodiscard]] CollectionStatus status_of(const std::string& kind) const {
        for (const CollectionStatus& each : source_->status(now_).collections) {
            if (each.kind == kind) {
                return each;
            }
        }
        ADD_FAILURE() << kind;
        return {};
    }
    const Objects& objects() {
        objects_.apply(source_->take_changes());
        return objects_;
    }
    // Lines that contain `part`, since the last call.
    size_t logged(const std::string& part) {
        size_t count = 0;
        for (const LogLine& line : source_->take_log()) {
            count += line.text.find(part) != std::string::npos ? 1 : 0;
        }
        return count;
    }
};

TEST_F(PoolFollow, AreNotRequestedUnlessAddressesAreAllocated_LB007) {
    start({.server = "", .scope = {}, .streamed_lists = false});
    EXPECT_FALSE(is_asked(kPools));
    EXPECT_FALSE(is_asked(kNamespaces));
    EXPECT_EQ(source_->status(now_).collections.size(), 3U);
}

TEST_F(PoolFollow, PoolsAndNamespacesReachTheReaders_LB007) {
    begin();
    list_the_required();
    reply(kPools, 200, pools_text("10", {pool_text("office", "192.0.2.0/24")}));
    reply(kNamespaces, 200, list_text("10", {namespace_text("shop", "edge")}, "", "NamespaceList"));
    EXPECT_TRUE(objects().pools_listed);
    EXPECT_TRUE(objects().namespaces_listed);
    ASSERT_TRUE(objects().pools.contains("office"));
    EXPECT_EQ(objects().pools.at("office")->pool.ranges.size(), 1U);
    EXPECT_EQ(objects().namespaces.at("shop")->meta.labels.at("team"), "edge");
    const auto life = source_->identity_of(ObjectKind::AddressPool, {"", "office"});
    ASSERT_TRUE(life);
    EXPECT_EQ(life->api_version, "penstock.io/v1alpha1");
    EXPECT_EQ(life->uid, "uid-office");
    head(kPools);
    event(kPools, event_text("MODIFIED", pool_text("office", "198.51.100.0/24", "11")));
    EXPECT_EQ(objects().pools.at("office")->pool.ranges[0].first.to_string(), "198.51.100.0");
    event(kPools, event_text("DELETED", pool_text("office", "198.51.100.0/24", "12")));
    EXPECT_TRUE(objects().pools.empty());
    EXPECT_FALSE(source_->identity_of(ObjectKind::AddressPool, {"", "office"}));
}

TEST_F(PoolFollow, AChangeOfTheStatusIsNoChange_STATUS003) {
    begin();
    list_the_required();
    reply(kPools, 200, pools_text("10", {pool_text("office", "192.0.2.0/24")}));
    head(kPools);
    (void)objects();
    std::string with_status = pool_text("office", "192.0.2.0/24", "11");
    with_status.insert(with_status.size() - 1, R"(,"status":{"used":{"ipv4":1}})");
    event(kPools, event_text("MODIFIED", with_status));
    EXPECT_TRUE(source_->take_changes().is_empty());
    EXPECT_EQ(source_->identity_of(ObjectKind::AddressPool, {"", "office"})->resource_version, "11");
    const auto version = source_->pool_version("office");
    ASSERT_TRUE(version);
    EXPECT_EQ(version->resource_version, "11") << "the next write of the status depends on it";
    EXPECT_EQ(version->object, objects_.pools.at("office"));
    EXPECT_FALSE(source_->pool_version("home"));
    EXPECT_EQ(source_->service_version({"default", "web"})->resource_version, "3");
}

TEST_F(PoolFollow, ForwardingDoesNotWaitForThem_GEN012) {
    begin();
    list_the_required();
    EXPECT_TRUE(source_->is_listed());
    const Changes first = source_->take_changes();
    EXPECT_EQ(first.services.size(), 1U);
    EXPECT_FALSE(first.pools_listed);
    EXPECT_FALSE(first.namespaces_listed);
    reply(kPools, 200, pools_text("10", {}));
    const Changes later = source_->take_changes();
    EXPECT_FALSE(later.is_empty()) << "no pool is known before, and none exists now";
    EXPECT_TRUE(later.pools_listed);
    EXPECT_FALSE(later.namespaces_listed);
    reply(kPools, 410, status_text(410, "Expired", "too old"));
    reply(kPools, 200, pools_text("20", {}));
    EXPECT_TRUE(source_->take_changes().is_empty()) << "reported once";
    EXPECT_TRUE(status_of("addresspools").optional);
    EXPECT_TRUE(status_of("namespaces").optional);
    EXPECT_FALSE(status_of("services").optional);
}

TEST_F(PoolFollow, PoolsThatArriveFirstWaitForTheRequiredKinds_GEN012) {
    begin();
    reply(kPools, 200, pools_text("10", {pool_text("office", "192.0.2.0/24")}));
    EXPECT_TRUE(source_->take_changes().is_empty());
    list_the_required();
    EXPECT_TRUE(objects().pools_listed);
    EXPECT_EQ(objects().pools.size(), 1U);
    EXPECT_EQ(objects().services.size(), 1U);
}

TEST_F(PoolFollow, AMissingCrdIsOneLogLineAndAState_LB007) {
    begin();
    list_the_required();
    reply(kPools, 404, kNoCrd);
    EXPECT_EQ(status_of("addresspools").state, State::BackingOff);
    EXPECT_FALSE(status_of("addresspools").listed);
    EXPECT_NE(status_of("addresspools").last_error.find("404"), std::string::npos);
    EXPECT_EQ(
        logged(
            "no address pool is known until the CRD is installed (docs/deploy/common/addresspool-crd.yaml)"),
        1U);
    for (int i = 0; i < 20; ++i) {
        const auto waited = wait_for_request(kPools);
        EXPECT_GT(waited, 500ms);
        EXPECT_LE(waited, 61s);
        reply(kPools, 404, kNoCrd);
    }
    EXPECT_EQ(logged(kPools), 0U) << "once";
    EXPECT_EQ(objects().services.size(), 1U) << "nothing else is affected";
    EXPECT_FALSE(objects().pools_listed);
}

TEST_F(PoolFollow, ACrdThatAppearsLaterIsNoticed_LB007) {
    begin(true);  // streamed lists, as servers since 1.34 have them
    reply(kPools, 404, kNoCrd);
    wait_for_request(kPools);
    reply(kPools, 404, kNoCrd);
    wait_for_request(kPools);
    head(kPools);
    event(kPools, event_text("ADDED", pool_text("office", "192.0.2.0/24")));
    event(kPools, bookmark_text("10", true));
    EXPECT_EQ(status_of("addresspools").state, State::Watching);
    EXPECT_EQ(status_of("addresspools").objects, 1U);
    EXPECT_EQ(status_of("addresspools").last_error, "");
    EXPECT_EQ(logged(kPools + ": is followed again"), 1U);
}

TEST_F(PoolFollow, ACrdThatVanishesTakesNoPoolAway_APISYNC014) {
    begin();
    list_the_required();
    reply(kPools, 200, pools_text("10", {pool_text("office", "192.0.2.0/24")}));
    head(kPools);
    (void)logged("");
    reply(kPools, 404, kNoCrd);
    EXPECT_EQ(logged("the pools that were read before stay in use"), 1U);
    EXPECT_EQ(objects().pools.size(), 1U);
    EXPECT_TRUE(status_of("addresspools").listed);
}

TEST_F(PoolFollow, MissingRightsAreOneLogLineAndTried_RBAC001) {
    begin();
    list_the_required();
    const std::string forbidden =
        status_text(403, "Forbidden", "addresspools.penstock.io is forbidden: User cannot list resource");
    reply(kPools, 403, forbidden);
    reply(kNamespaces, 403, status_text(403, "Forbidden", "namespaces is forbidden"));
    const std::vector<LogLine> log = source_->take_log();
    const auto lines = [&](const std::string& part) {
        return std::ranges::count_if(
            log, [&](const LogLine& line) { return line.text.find(part) != std::string::npos; });
    };
    EXPECT_EQ(
        lines("no address pool is known until addresspools can be listed and watched: grant these rights"),
        1);
    EXPECT_EQ(lines("no namespaceSelector of an address pool matches until namespaces can be listed"), 1);
    EXPECT_EQ(lines("nothing is sent to gateways"), 0);
    for (int i = 0; i < 5; ++i) {
        wait_for_request(kPools);
        reply(kPools, 403, forbidden);
    }
    EXPECT_EQ(logged(kPools), 0U);
    EXPECT_TRUE(source_->is_listed());
    EXPECT_EQ(objects().services.size(), 1U);
    wait_for_request(kPools);
    reply(kPools, 200, pools_text("10", {pool_text("office", "192.0.2.0/24")}));
    EXPECT_EQ(objects().pools.size(), 1U);
}

TEST_F(PoolFollow, AMalformedPoolKeepsItsLastGoodVersion_LB015) {
    begin();
    list_the_required();
    reply(kPools, 200,
          pools_text("10", {pool_text("office", "192.0.2.0/24"), pool_text("lab", "198.51.100.0/24")}));
    head(kPools);
    (void)objects();
    event(kPools, event_text("MODIFIED", pool_text("office", "192.0.2.9-192.0.2.1", "11")));
    EXPECT_EQ(
        logged("AddressPool office is invalid, and its last good version stays in use: spec.addresses[0] "
               "(\"192.0.2.9-192.0.2.1\"): the last address is below the first one"),
        1U);
    EXPECT_EQ(objects().pools.at("office")->pool.ranges[0].last.to_string(), "192.0.2.255");
    EXPECT_EQ(status_of("addresspools").quarantined, 1U);
    event(kPools, event_text("ADDED", pool_text("new", "192.0.2.0/33", "12")));
    EXPECT_FALSE(objects().pools.contains("new")) << "it has no good version";
    event(kPools, event_text("MODIFIED", pool_text("office", "192.0.2.0/25", "13")));
    EXPECT_EQ(objects().pools.at("office")->pool.ranges[0].last.to_string(), "192.0.2.127");
    EXPECT_EQ(status_of("addresspools").quarantined, 1U);
}

TEST(PoolChanges, MergeKeepsTheNewestAndTheFirstList_GEN008) {
    const auto pool = [](bool disabled) {
        auto made = std::make_shared<AddressPool>();
        made->pool.disabled = disabled;
        return made;
    };
    Changes changes;
    changes.pools["a"] = pool(false);
    changes.pools_listed = true;
    Changes later;
    later.pools["a"] = pool(true);
    later.pools["b"] = nullptr;
    later.namespaces["shop"] = std::make_shared<const Namespace>();
    later.namespaces_listed = true;
    changes.merge(std::move(later));
    Objects objects;
    objects.pools["b"] = pool(false);
    objects.apply(changes);
    EXPECT_EQ(objects.pools.size(), 1U);
    EXPECT_TRUE(objects.pools.at("a")->pool.disabled);
    EXPECT_EQ(objects.namespaces.size(), 1U);
    EXPECT_TRUE(objects.pools_listed && objects.namespaces_listed);
    objects.apply({});
    EXPECT_TRUE(objects.pools_listed) << "lasts";
}

}  // namespace pool_follow_test
}  // namespace penstock::kube
