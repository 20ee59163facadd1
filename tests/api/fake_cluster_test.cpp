// SPDX-License-Identifier: Apache-2.0
// Tests, through the real transport, the rules of the fake cluster that other tests rely on.
#include "tests/support/fake_cluster.hpp"

#include <gtest/gtest.h>

#include "control/kube/client/curl_transport.hpp"
#include "tests/support/recorded_answer.hpp"

namespace penstock::test {
namespace fake_cluster_test {

using namespace std::chrono_literals;

const std::string kServices = "/api/v1/services";

class FakeClusterTest : public testing::Test {
 protected:
    FakeClusterTest() {
        kube::ClientConfig config;
        config.server = server_.url();
        transport_ = std::move(*kube::CurlTransport::create(config));
    }
    RecordedAnswer get(const std::string& target) {
        RecordedAnswer answer;
        transport_->start({.target = target}, answer);
        EXPECT_TRUE(poll_until(*transport_, [&] { return answer.has_ended; }));
        return answer;
    }
    // Waits until the watch has shown `text`.
    void await(RecordedAnswer& watch, const std::string& text) {
        EXPECT_TRUE(poll_until(
            *transport_, [&] { return watch.body.find(text) != std::string::npos || watch.has_ended; }));
        EXPECT_NE(watch.body.find(text), std::string::npos) << watch.body;
    }
    static std::string between(const std::string& text, const std::string& before, const std::string& after) {
        const size_t start = text.find(before);
        return start == std::string::npos
                   ? ""
                   : text.substr(start + before.size(),
                                 text.find(after, start + before.size()) - start - before.size());
    }
    uint64_t put(const std::string& name) {
        return cluster_.put(kServices, name,
                            R"({"metadata":{"name":")" + name + R"(","resourceVersion":"$RV"}})");
    }

    FakeCluster cluster_;
    FakeApiServer server_{cluster_.handler()};
    std::unique_ptr<kube::CurlTransport> transport_;
};

TEST_F(FakeClusterTest, ListsComeInPages) {
    for (const char* name : {"a", "b", "c"}) {
        put(name);
    }
    const RecordedAnswer first = get(kServices + "?limit=2");
    const std::string token = between(first.body, R"("continue":")", "\"");
    EXPECT_EQ(between(first.body, R"("kind":")", "\""), "ServiceList");
    put("d");  // the rest of a list has the same resource version
    const RecordedAnswer second = get(kServices + "?limit=2&continue=" + token);
    EXPECT_EQ(between(first.body, R"("metadata":{"resourceVersion":")", "\""),
              between(second.body, R"("metadata":{"resourceVersion":")", "\""));
    EXPECT_NE(second.body.find(R"("name":"c")"), std::string::npos);
    EXPECT_EQ(second.body.find(R"("name":"d")"), std::string::npos);
    EXPECT_EQ(second.body.find("continue"), std::string::npos);
    cluster_.compact();
    EXPECT_EQ(get(kServices + "?limit=2&continue=" + token).status(), 410);
    EXPECT_EQ(get(kServices + "?resourceVersion=999999").status(), 504);
}

TEST_F(FakeClusterTest, WatchesShowWhatFollowsTheirVersion) {
    put("before");
    const std::string from = std::to_string(cluster_.version());
    put("missed");
    RecordedAnswer watch;
    transport_->start(
        {.target = kServices + "?watch=1&allowWatchBookmarks=true&resourceVersion=" + from, .watch = true},
        watch);
    await(watch, R"("name":"missed")");
    cluster_.put("/api/v1/nodes", "n", "{}");
    const uint64_t added = put("x");
    await(watch, R"({"type":"ADDED","object":{"metadata":{"name":"x","resourceVersion":")" +
                     std::to_string(added) + "\"}}}\n");
    put("x");
    await(watch, R"({"type":"MODIFIED")");
    const uint64_t erased = cluster_.erase(kServices, "x");
    await(watch, R"({"type":"DELETED","object":{"metadata":{"name":"x","resourceVersion":")" +
                     std::to_string(erased) + "\"}}}\n");
    await(
        watch,
        R"({"type":"BOOKMARK","object":{"kind":"Service","apiVersion":"v1","metadata":{"resourceVersion":")" +
            std::to_string(erased));
    cluster_.inject(kServices, "garbage");
    await(watch, "garbage");
    EXPECT_EQ(watch.body.find("before"), std::string::npos);
    EXPECT_EQ(cluster_.watch_count(kServices), 1U);
    cluster_.end_watches();
    EXPECT_TRUE(poll_until(*transport_, [&] { return watch.has_ended; }));
    EXPECT_TRUE(watch.is_well());
    EXPECT_TRUE(poll_until(*transport_, [&] { return cluster_.watch_count(kServices) == 0; }));
    cluster_.compact();
    EXPECT_EQ(get(kServices + "?watch=1&resourceVersion=" + from).body,
              "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
              "\"status\":\"Failure\","
              "\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n");
}

TEST_F(FakeClusterTest, StreamingListsEndWithABookmark) {
    put("a");
    const std::string target =
        kServices +
        "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    RecordedAnswer watch;
    transport_->start({.target = target, .watch = true}, watch);
    await(watch, R"("annotations":{"k8s.io/initial-events-end":"true"})");
    EXPECT_LT(watch.body.find(R"("name":"a")"), watch.body.find("BOOKMARK"));
    cluster_.set_behaviour({.has_streaming_lists = false});
    EXPECT_EQ(get(target).status(), 422);
}

TEST_F(FakeClusterTest, WritesAreRecordedAndTokensDemanded) {
    RecordedAnswer written;
    transport_->start({.method = "POST", .target = "/api/v1/namespaces/a/events", .body = "{\"a\":1}"},
                      written);
    ASSERT_TRUE(poll_until(*transport_, [&] { return written.has_ended; }));
    EXPECT_EQ(written.status(), 201);
    EXPECT_EQ(cluster_.writes().at(0).body, "{\"a\":1}");
    cluster_.set_behaviour({.token = "t"});
    EXPECT_EQ(get(kServices).status(), 401);
    cluster_.intercept([](const RecordedRequest&, Connection& connection) {
        return connection.respond(429, "{}", {"Retry-After: 3"});
    });
    EXPECT_EQ(get(kServices).head->retry_after, 3s);
}

}  // namespace fake_cluster_test
}  // namespace penstock::test
