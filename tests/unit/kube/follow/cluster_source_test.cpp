// SPDX-License-Identifier: Apache-2.0
// The three collections together, and the choice of the collection for endpoints.
#include "control/kube/follow/cluster_source.hpp"

#include <gtest/gtest.h>

#include "tests/unit/kube/api_text.hpp"
#include "tests/unit/kube/cluster_follow.hpp"

namespace penstock::kube {
namespace cluster_source_test {

using namespace test;
using namespace std::chrono_literals;
using State = CollectionStatus::State;

const std::string kOldSlices = "/apis/discovery.k8s.io/v1beta1/endpointslices";
const std::string kEndpoints = "/api/v1/endpoints";

std::string slice_text(const std::string& name, const std::string& address) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"default","uid":"uid-)" + name +
           R"(","resourceVersion":"5","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv4","endpoints":[{"addresses":[")" +
           address + R"("]}],"ports":[{"name":"","port":80}]})";
}
std::string endpoints_text(const std::string& name, const std::string& address) {
    return R"({"metadata":{"name":")" + name +
           R"(","namespace":"default"},"subsets":[{"addresses":[{"ip":")" + address +
           R"("}],"ports":[{"port":80}]}]})";
}
std::string node_text(const std::string& name) {
    return R"({"metadata":{"name":")" + name + R"("}})";
}

std::string list_of(const std::string& path, const std::string& version,
                    const std::vector<std::string>& items) {
    const std::string kind = path.ends_with("services")         ? "ServiceList"
                             : path.ends_with("endpointslices") ? "EndpointSliceList"
                             : path.ends_with("endpoints")      ? "EndpointsList"
                                                                : "NodeList";
    return list_text(version, items, "", kind);
}

class ClusterSourceTest : public ClusterFollow {
 protected:
    void begin(ClusterSettings settings = {
                   .server = "https://192.0.2.1:6443", .scope = {}, .streamed_lists = false}) {
        start(std::move(settings));
    }
    [[nodiscard]] std::map<std::string, std::string> asked(const std::string& path) {
        return is_asked(path) ? query_of(open(path)->request.target) : std::map<std::string, std::string>{};
    }
    void open_watch(const std::string& path) {
        ASSERT_TRUE(asked(path).contains("watch")) << path;
        head(path);
    }
    // Answers requests for `answered` with `status` until `path` is requested.
    void answer_until(const std::string& path, const std::string& answered, int status) {
        for (int second = 0; second < 300 && !is_asked(path); ++second) {
            if (is_asked(answered)) {
                reply(answered, status);
            }
            wait(1s);
        }
        ASSERT_TRUE(is_asked(path));
    }
    void list_all_but_endpoints() {
        reply(kServices, 200, list_of(kServices, "10", {service_text("web", "3")}));
        reply(kNodes, 200, list_of(kNodes, "10", {node_text("edge-1")}));
    }
    [[nodiscard]] CollectionStatus endpoints_status() const {
        return source_->status(now_).collections.at(1);
    }
    // Name of each slice and its first address.
    [[nodiscard]] std::map<std::string, std::string> slices() {
        objects_.apply(source_->take_changes());
        std::map<std::string, std::string> found;
        for (const auto& [name, slice] : objects_.slices) {
            found.emplace(name.name, slice->endpoints.at(0).address.ip()->to_string());
        }
        return found;
    }
};

using Slices = std::map<std::string, std::string>;

TEST_F(ClusterSourceTest, FollowsServicesSlicesAndNodes_APISYNC001) {
    begin();
    ASSERT_EQ(transport_.open.size(), 3U);
    EXPECT_TRUE(is_asked(kServices));
    EXPECT_TRUE(is_asked(kSlices));
    EXPECT_TRUE(is_asked(kNodes));
    EXPECT_TRUE(asked(kServices).contains("labelSelector")) << "APISYNC-016";
    EXPECT_TRUE(asked(kServices).contains("fieldSelector"));
}

TEST_F(ClusterSourceTest, TellsNothingBeforeEachHasBeenListed_GEN012) {
    begin();
    list_all_but_endpoints();
    for (int second = 0; second < 60; ++second) {
        if (is_asked(kSlices)) {
            reply(kSlices, 500);
        }
        wait(1s);
        EXPECT_TRUE(source_->take_changes().is_empty());
    }
    EXPECT_FALSE(source_->is_listed());
    wait(60s);
    reply(kSlices, 200, list_of(kSlices, "10", {slice_text("web-1", "10.1.0.1")}));
    EXPECT_TRUE(source_->is_listed());
    const Changes changes = source_->take_changes();
    EXPECT_EQ(changes.services.size(), 1U);
    EXPECT_EQ(changes.slices.size(), 1U);
    EXPECT_EQ(changes.nodes.size(), 1U);
}

TEST_F(ClusterSourceTest, AsksForNoNodesWhereNoneAreUsed_APISYNC001) {
    begin({.server = "", .scope = {.namespace_name = "shop", .nodes = false}, .streamed_lists = false});
    ASSERT_EQ(transport_.open.size(), 2U);
    reply("/api/v1/namespaces/shop/services", 200, list_of("/api/v1/namespaces/shop/services", "10", {}));
    reply("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", 200,
          list_of("/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", "10", {}));
    EXPECT_TRUE(source_->is_listed());
}

TEST_F(ClusterSourceTest, FallsBackToTheBetaAndReturnsWhenTheServerIsUpgraded_EP001) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 404, "404 page not found");
    ASSERT_TRUE(is_asked(kOldSlices)) << "at once";
    EXPECT_FALSE(is_asked(kSlices)) << "never both";
    reply(kOldSlices, 200, list_of(kOldSlices, "10", {slice_text("web-1", "10.1.0.1")}));
    open_watch(kOldSlices);
    EXPECT_EQ(slices(), (Slices{{"web-1", "10.1.0.1"}}));
    EXPECT_EQ(endpoints_status().path, kOldSlices);

    wait(9min + 59s);
    EXPECT_FALSE(is_asked(kSlices));
    wait(1s);
    EXPECT_EQ(asked(kSlices), (std::map<std::string, std::string>{{"limit", "1"}})) << "every ten minutes";
    reply(kSlices, 404);
    wait(5min);
    EXPECT_FALSE(is_asked(kSlices));
    wait(5min);
    reply(kSlices, 200, list_of(kSlices, "900", {}));
    EXPECT_EQ(asked(kSlices).at("limit"), "500") << "and now for good";
    EXPECT_FALSE(is_asked(kOldSlices));
    EXPECT_EQ(slices(), (Slices{{"web-1", "10.1.0.1"}})) << "what there is serves meanwhile";
    reply(kSlices, 200,
          list_of(kSlices, "900", {slice_text("web-1", "10.1.0.1"), slice_text("web-2", "10.1.0.2")}));
    EXPECT_EQ(source_->take_changes().slices.size(), 1U) << "the same object by another version is the same";
    EXPECT_EQ(endpoints_status().path, kSlices);
    open_watch(kSlices);
    wait(11min);
    EXPECT_FALSE(is_asked(kOldSlices)) << "there is nothing better to look for";
}

TEST_F(ClusterSourceTest, EndpointsAreTheLastResortAndNeverMerged_EP001) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 404);
    reply(kOldSlices, 404);
    EXPECT_EQ(asked(kEndpoints).at("limit"), "500");
    reply(kEndpoints, 200, list_of(kEndpoints, "10", {endpoints_text("web", "10.1.0.1")}));
    open_watch(kEndpoints);
    EXPECT_EQ(endpoints_status().kind, "endpoints");
    EXPECT_EQ(slices().size(), 1U);

    wait(10min);
    reply(kSlices, 404);
    EXPECT_TRUE(is_asked(kOldSlices)) << "each of the better ones";
    reply(kOldSlices, 200, list_of(kOldSlices, "20", {}));
    EXPECT_EQ(slices().size(), 1U);
    reply(kOldSlices, 200, list_of(kOldSlices, "20", {slice_text("web-x1", "10.1.0.1")}));
    EXPECT_EQ(slices(), (Slices{{"web-x1", "10.1.0.1"}})) << "one or the other";
    EXPECT_EQ(endpoints_status().kind, "endpointslices");
}

TEST_F(ClusterSourceTest, EndpointsAloneWhereConfigured_EP001) {
    begin({.server = "", .scope = {.endpoints_only = true}, .streamed_lists = false});
    EXPECT_TRUE(is_asked(kEndpoints));
    list_all_but_endpoints();
    reply(kEndpoints, 200, list_of(kEndpoints, "10", {}));
    open_watch(kEndpoints);
    wait(30min);
    for (const Request& request : transport_.started) {
        EXPECT_EQ(request.target.find("endpointslices"), std::string::npos);
    }
}

TEST_F(ClusterSourceTest, WhereNothingIsServedTheFirstIsAskedAgainAfterAWait_EP001) {
    begin();
    list_all_but_endpoints();
    for (const std::string& path : {kSlices, kOldSlices, kEndpoints}) {
        reply(path, 404);
    }
    EXPECT_FALSE(is_asked(kSlices));
    EXPECT_FALSE(is_asked(kEndpoints));
    EXPECT_EQ(endpoints_status().state, State::BackingOff);
    wait(60s);
    EXPECT_TRUE(is_asked(kSlices));
}

TEST_F(ClusterSourceTest, ACollectionThatVanishesIsLookedForElsewhereAndKept_EP001) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 200, list_of(kSlices, "10", {slice_text("web-1", "10.1.0.1")}));
    open_watch(kSlices);
    EXPECT_EQ(slices().size(), 1U);
    open(kSlices)->handler->on_body(
        event_text("ERROR", status_text(404, "NotFound", "the server was downgraded")));
    settle();
    answer_until(kOldSlices, kSlices, 404);
    reply(kOldSlices, 500);
    EXPECT_EQ(slices().size(), 1U);
}

// A proxy or a starting server returns 404 for a moment; Endpoints hold less data than the existing slices.
TEST_F(ClusterSourceTest, ACollectionThatIsAwayForAMomentStaysTheOne_EP001) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 200, list_of(kSlices, "10", {slice_text("web-1", "10.1.0.1")}));
    reply(kSlices, 404, "<html>no backend</html>");
    for (int second = 0; second < 45; ++second) {
        EXPECT_FALSE(is_asked(kOldSlices) || is_asked(kEndpoints)) << second;
        if (is_asked(kSlices)) {
            reply(kSlices, 404, "<html>no backend</html>");
        }
        wait(1s);
    }
    for (int second = 0; second < 60 && !is_asked(kSlices); ++second) {
        wait(1s);
    }
    open_watch(kSlices);
    wait(4min);
    EXPECT_EQ(endpoints_status().state, State::Watching);
    EXPECT_EQ(endpoints_status().path, kSlices);
    EXPECT_FALSE(is_asked(kOldSlices) || is_asked(kEndpoints));
    EXPECT_EQ(slices(), (Slices{{"web-1", "10.1.0.1"}}));
}

TEST_F(ClusterSourceTest, AnUpgradeThatTakesTheBetaAwayGoesToItsSuccessorAtOnce_EP001) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 404);
    reply(kOldSlices, 200, list_of(kOldSlices, "10", {slice_text("web-1", "10.1.0.1")}));
    reply(kOldSlices, 404);
    EXPECT_EQ(asked(kSlices), (std::map<std::string, std::string>{{"limit", "1"}}));
    reply(kSlices, 200, list_of(kSlices, "900", {}));
    reply(kSlices, 200, list_of(kSlices, "900", {slice_text("web-1", "10.1.0.1")}));
    EXPECT_EQ(endpoints_status().path, kSlices);
    for (const Request& request : transport_.started) {
        EXPECT_NE(path_of(request.target), kEndpoints);
    }
}

TEST_F(ClusterSourceTest, ALookThatFailsIsNoAnswer_EP001) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 404);
    reply(kOldSlices, 200, list_of(kOldSlices, "10", {}));
    open_watch(kOldSlices);
    wait(10min);
    ASSERT_TRUE(is_asked(kSlices));
    ResponseHandler& handler = *open(kSlices)->handler;
    transport_.open.erase(open(kSlices));
    handler.on_head({.status = 200, .retry_after = std::nullopt, .content_type = ""});
    handler.on_end(TransportError{TransportError::Kind::Broken, "cut"});
    settle();
    EXPECT_EQ(endpoints_status().path, kOldSlices);
    wait(10min);
    EXPECT_TRUE(is_asked(kSlices));
}

TEST_F(ClusterSourceTest, EventsGetTheLifeOfTheirObject_EVT001) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 404);
    reply(kOldSlices, 200, list_of(kOldSlices, "10", {slice_text("web-1", "10.1.0.1")}));
    const auto service = source_->identity_of(ObjectKind::Service, {"default", "web"});
    ASSERT_TRUE(service);
    EXPECT_EQ(service->api_version, "v1");
    EXPECT_EQ(service->uid, "uid-web");
    EXPECT_EQ(service->resource_version, "3");
    const auto slice = source_->identity_of(ObjectKind::EndpointSlice, {"default", "web-1"});
    ASSERT_TRUE(slice);
    EXPECT_EQ(slice->api_version, "discovery.k8s.io/v1beta1");
    EXPECT_EQ(slice->resource_version, "5");
    EXPECT_FALSE(source_->identity_of(ObjectKind::Service, {"default", "other"}));
}

TEST_F(ClusterSourceTest, TellsWhatItDoes_APISYNC014) {
    begin();
    list_all_but_endpoints();
    open_watch(kServices);
    reply(kSlices, 503);
    const SourceStatus status = source_->status(now_ + 2s);
    EXPECT_EQ(status.source, "https://192.0.2.1:6443");
    EXPECT_EQ(status.heartbeat_age, 2s);
    ASSERT_EQ(status.collections.size(), 3U);
    EXPECT_EQ(status.collections[0].kind, "services");
    EXPECT_EQ(status.collections[0].state, State::Watching);
    EXPECT_EQ(status.collections[0].objects, 1U);
    EXPECT_EQ(status.collections[1].state, State::BackingOff);
    EXPECT_EQ(status.collections[1].stale_age, std::nullopt);
    EXPECT_EQ(status.collections[2].kind, "nodes");
}

TEST_F(ClusterSourceTest, NothingIsUnderWayAfterItsEnd_APISYNC014) {
    begin();
    list_all_but_endpoints();
    reply(kSlices, 404);
    reply(kOldSlices, 200, list_of(kOldSlices, "10", {}));
    wait(10min);
    EXPECT_EQ(transport_.open.size(), 4U) << "three watches, and a look";
    source_.reset();
    EXPECT_TRUE(transport_.open.empty());
}

}  // namespace cluster_source_test
}  // namespace penstock::kube
