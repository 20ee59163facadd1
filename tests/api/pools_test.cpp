// SPDX-License-Identifier: Apache-2.0
// AddressPools and Namespaces over the real transport: a cluster whose CRD is installed while penstock-sync
// runs. (tests/unit/kube/pool_follow_test.cpp: the same state machine on a test clock, case by case.)
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "control/kube/client/curl_transport.hpp"
#include "control/kube/follow/cluster_source.hpp"
#include "tests/support/fake_cluster.hpp"
#include "tests/unit/kube/api_text.hpp"

namespace penstock::kube {
namespace pools_test {

using namespace std::chrono_literals;
using penstock::test::Connection;
using penstock::test::FakeApiServer;
using penstock::test::FakeCluster;
using penstock::test::RecordedRequest;
using State = CollectionStatus::State;

const std::string kPools = "/apis/penstock.io/v1alpha1/addresspools";

class PoolsOverHttp : public testing::Test {
 protected:
    PoolsOverHttp() {
        cluster_.put(
            "/api/v1/services", "default/web",
            R"({"metadata":{"name":"web","namespace":"default","resourceVersion":"$RV"},"spec":{}})");
        cluster_.put("/api/v1/namespaces", "shop",
                     R"({"metadata":{"name":"shop","resourceVersion":"$RV","labels":{"team":"edge"}}})");
        cluster_.intercept([this](const RecordedRequest& request, Connection& connection) {
            const int status = pools_status_;
            if (request.path() == kPools && status == 404) {
                connection.respond(404, "404 page not found\n", {"content-type: text/plain; charset=utf-8"});
            } else if (request.path() == kPools && status == 403) {
                connection.respond(403, test::status_text(403, "Forbidden", "addresspools is forbidden"));
            } else {
                return false;
            }
            return true;
        });
        ClientConfig config;
        config.server = server_.url();
        transport_ = std::move(*CurlTransport::create(config));
        source_ = std::make_unique<ClusterSource>(
            ClusterSettings{.server = server_.url(), .scope = {.address_pools = true, .namespaces = true}},
            *transport_, [] { return 0.0; });
    }
    void put(const std::string& name, const std::string& addresses) {
        cluster_.put(kPools, name,
                     R"({"apiVersion":"penstock.io/v1alpha1","kind":"AddressPool","metadata":{"name":")" +
                         name + R"(","resourceVersion":"$RV"},"spec":{"addresses":[")" + addresses +
                         R"("]}})");
    }
    // Back-off times are skipped. The deadline exceeds the time needed on any machine.
    [[nodiscard]] bool run_until(const std::function<bool()>& reached) {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (!reached() && std::chrono::steady_clock::now() < deadline) {
            transport_->poll(5ms);
            const auto now = std::chrono::steady_clock::now() + skipped_;
            source_->on_time(now);
            objects_.apply(source_->take_changes());
            const auto left = source_->next_deadline() - now;
            if (pools().state == State::BackingOff && left < 90s) {
                skipped_ += std::max(left, decltype(left)::zero());
            }
        }
        return reached();
    }
    [[nodiscard]] CollectionStatus pools() const {
        return source_->status(std::chrono::steady_clock::now() + skipped_).collections.at(3);
    }

    std::atomic<int> pools_status_{200};
    FakeCluster cluster_;
    FakeApiServer server_{cluster_.handler()};
    std::unique_ptr<CurlTransport> transport_;
    std::unique_ptr<ClusterSource> source_;
    std::chrono::steady_clock::duration skipped_{0};
    Objects objects_;
};

TEST_F(PoolsOverHttp, TheCrdIsMissingAppearsAndItsPoolsChange_LB007) {
    pools_status_ = 404;
    ASSERT_TRUE(
        run_until([&] { return pools().errors.contains("http_404") && pools().errors.at("http_404") >= 3; }));
    EXPECT_EQ(pools().kind, "addresspools");
    EXPECT_TRUE(run_until([&] { return objects_.services.size() == 1 && objects_.namespaces_listed; }))
        << "nothing else is affected";
    EXPECT_EQ(objects_.namespaces.at("shop")->meta.labels.at("team"), "edge");
    EXPECT_FALSE(objects_.pools_listed);

    put("office", "192.0.2.0/24");
    pools_status_ = 200;
    ASSERT_TRUE(run_until([&] { return objects_.pools_listed && objects_.pools.contains("office"); }));
    put("lab", "198.51.100.0/24");
    ASSERT_TRUE(run_until([&] { return objects_.pools.contains("lab"); }));
    put("office", "192.0.2.0/33");
    ASSERT_TRUE(run_until([&] { return pools().quarantined == 1; }));
    EXPECT_EQ(objects_.pools.at("office")->pool.ranges[0].last.to_string(), "192.0.2.255")
        << "the last good one";
    cluster_.erase(kPools, "office");
    ASSERT_TRUE(run_until([&] { return !objects_.pools.contains("office"); }));
    EXPECT_EQ(pools().quarantined, 0U);
    EXPECT_EQ(objects_.pools.size(), 1U);
    EXPECT_EQ(objects_.services.size(), 1U);
}

TEST_F(PoolsOverHttp, RightsThatAreGrantedLaterAreUsed_RBAC001) {
    pools_status_ = 403;
    put("office", "192.0.2.0/24");
    ASSERT_TRUE(
        run_until([&] { return pools().errors.contains("http_403") && pools().errors.at("http_403") >= 3; }));
    EXPECT_TRUE(run_until([&] { return objects_.services.size() == 1; }));
    pools_status_ = 200;
    EXPECT_TRUE(run_until([&] { return objects_.pools.contains("office"); }));
}

}  // namespace pools_test
}  // namespace penstock::kube
