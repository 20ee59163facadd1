// SPDX-License-Identifier: Apache-2.0
// The transport over HTTP/2: many requests on one connection, and an unresponsive peer on it.
#include <gtest/gtest.h>

#include "control/kube/client/curl_transport.hpp"
#include "tests/support/fake_http2_server.hpp"
#include "tests/support/recorded_answer.hpp"

namespace penstock::kube {
namespace transport_http2_test {

using namespace std::chrono_literals;
using test::CertificateAuthority;
using test::FakeHttp2Server;
using test::poll_until;
using test::RecordedAnswer;
using test::RecordedRequest;

class TransportHttp2 : public testing::Test {
 protected:
    std::unique_ptr<CurlTransport> transport(const TransportOptions& options = {}) {
        ClientConfig config;
        config.origin = "test";
        config.server = server_.url();
        config.ca.data = Secret(authority_.pem());
        config.token = Secret("token");
        auto transport = CurlTransport::create(config, options);
        EXPECT_TRUE(transport) << transport.error().what;
        return std::move(*transport);
    }
    static FakeHttp2Server::Answer answer(const RecordedRequest& request) {
        if (request.query("watch") == "1") {
            return {.body = "{}\n", .stays_open = true};
        }
        if (request.path() == "/large") {
            return {.body = std::string(10 << 20, 'x')};
        }
        if (request.path() == "/version") {
            return {.status = 403};  // any answer shows that the server is reachable
        }
        return {.body = "{\"list\":1}"};
    }
    // Whether the client closed its abandoned connection. Checked before the next request, which would
    // otherwise wait on a pooled connection until its own timeout.
    bool gave_up_its_connection(CurlTransport& client) const {
        return poll_until(client, [&] { return server_.are_frozen_connections_closed(); }, 5s);
    }
    size_t probes() const {
        size_t found = 0;
        for (const RecordedRequest& request : server_.requests()) {
            found += request.path() == "/version" ? 1 : 0;
        }
        return found;
    }

    CertificateAuthority authority_;
    FakeHttp2Server server_{&TransportHttp2::answer, {.certificate = authority_.issue_loopback()}};
};

TEST_F(TransportHttp2, ListAndWatchesShareOneConnection_APISYNC019) {
    const auto client = transport();
    RecordedAnswer list, services, nodes, large;
    client->start({.target = "/services?limit=500", .accept_gzip = true}, list);
    client->start({.target = "/services?watch=1", .watch = true}, services);
    client->start({.target = "/nodes?watch=1", .watch = true}, nodes);
    ASSERT_TRUE(poll_until(
        *client, [&] { return list.has_ended && services.body == "{}\n" && nodes.body == "{}\n"; }));
    EXPECT_TRUE(list.is_well()) << list.what();
    EXPECT_EQ(list.body, "{\"list\":1}");
    EXPECT_EQ(list.head->content_type, "application/json");
    EXPECT_EQ(server_.open_streams("/services"), 1U);
    EXPECT_EQ(server_.open_streams("/nodes"), 1U);

    server_.push("/nodes", "{\"a\":1}\n");
    ASSERT_TRUE(poll_until(*client, [&] { return nodes.body == "{}\n{\"a\":1}\n"; }));
    EXPECT_EQ(services.body, "{}\n");
    // Flow control of one stream does not hold up the others.
    client->start({.target = "/large"}, large);
    ASSERT_TRUE(poll_until(*client, [&] { return large.has_ended; }));
    EXPECT_EQ(large.body.size(), 10U << 20);
    server_.push("/services", "{\"b\":1}\n");
    server_.finish("/services");
    ASSERT_TRUE(poll_until(*client, [&] { return services.has_ended; }));
    EXPECT_TRUE(services.is_well()) << services.what();
    EXPECT_EQ(services.body, "{}\n{\"b\":1}\n");
    EXPECT_FALSE(nodes.has_ended);
    EXPECT_EQ(server_.connection_count(), 1);
    EXPECT_EQ(server_.requests().at(0).header("authorization"), "Bearer token");
}

TEST_F(TransportHttp2, CancelledStreamLeavesTheOthers_APISYNC019) {
    const auto client = transport();
    RecordedAnswer services, nodes;
    const auto id = client->start({.target = "/services?watch=1", .watch = true}, services);
    client->start({.target = "/nodes?watch=1", .watch = true}, nodes);
    ASSERT_TRUE(poll_until(*client, [&] { return services.body == "{}\n" && nodes.body == "{}\n"; }));
    client->cancel(id);
    server_.push("/nodes", "{}\n");
    ASSERT_TRUE(poll_until(*client, [&] { return nodes.body == "{}\n{}\n"; }));
    ASSERT_TRUE(poll_until(*client, [&] { return server_.open_streams("/services") == 0; }));
    EXPECT_EQ(services.call_backs, 2);
    EXPECT_EQ(server_.connection_count(), 1);
}

// Waiting must be done by the kernel: a poll that spins would use the whole second.
TEST_F(TransportHttp2, IdleWatchesCostNoProcessorTime_APISYNC015) {
    const auto client = transport();
    RecordedAnswer services, nodes;
    client->start({.target = "/services?watch=1", .watch = true}, services);
    client->start({.target = "/nodes?watch=1", .watch = true}, nodes);
    ASSERT_TRUE(poll_until(*client, [&] { return services.body == "{}\n" && nodes.body == "{}\n"; }));
    const auto before = test::thread_cpu_time();
    client->poll(1s);
    EXPECT_LT(test::thread_cpu_time() - before, 100ms);
    EXPECT_EQ(services.call_backs + nodes.call_backs, 4);
}

// An idle connection is probed, answers, and stays open.
TEST_F(TransportHttp2, ProbeThatIsAnsweredKeepsTheConnection_APISYNC015) {
    const auto client = transport({.liveness = {.probe_after = 200ms, .probe_answer_max = 60s}});
    RecordedAnswer watch;
    client->start({.target = "/services?watch=1", .watch = true}, watch);
    ASSERT_TRUE(poll_until(*client, [&] { return probes() >= 3; }));
    EXPECT_FALSE(watch.has_ended) << watch.what();
    EXPECT_EQ(client->half_open_connections(), 0U);
    EXPECT_EQ(server_.connection_count(), 1);
}

// A peer whose kernel still acknowledges, but which answers nothing, neither PING nor request: both watches
// end, and the next ones get a new connection.
TEST_F(TransportHttp2, ProbeThatIsNotAnsweredEndsTheConnection_APISYNC015) {
    const auto client = transport({.liveness = {.probe_after = 1s, .probe_answer_max = 2s}});
    RecordedAnswer services, nodes, again;
    client->start({.target = "/services?watch=1", .watch = true}, services);
    client->start({.target = "/nodes?watch=1", .watch = true}, nodes);
    ASSERT_TRUE(poll_until(*client, [&] { return services.body == "{}\n" && nodes.body == "{}\n"; }));
    server_.freeze();
    ASSERT_TRUE(poll_until(*client, [&] { return services.has_ended && nodes.has_ended; }));
    EXPECT_EQ(services.kind(), static_cast<int>(TransportError::Kind::Broken));
    EXPECT_NE(services.what().find("half-open: nothing received for"), std::string::npos) << services.what();
    EXPECT_NE(nodes.what().find("no response to a probe within 2 s"), std::string::npos) << nodes.what();
    EXPECT_EQ(client->half_open_connections(), 1U);
    ASSERT_TRUE(gave_up_its_connection(*client));
    client->start({.target = "/services?watch=1", .watch = true}, again);
    ASSERT_TRUE(poll_until(*client, [&] { return again.body == "{}\n"; }));
    EXPECT_FALSE(again.has_ended) << again.what();
    EXPECT_EQ(server_.connection_count(), 2);
}

// No watch exists that could detect it; the request that timed out does.
TEST_F(TransportHttp2, TimeoutOnASilentConnectionLeavesItBehind_APISYNC015) {
    const auto client = transport();
    RecordedAnswer before, lost, after;
    client->start({.target = "/list"}, before);
    ASSERT_TRUE(poll_until(*client, [&] { return before.has_ended; }));
    server_.freeze();
    client->start({.target = "/list", .timeout = 300ms}, lost);
    ASSERT_TRUE(poll_until(*client, [&] { return lost.has_ended; }));
    EXPECT_EQ(lost.kind(), static_cast<int>(TransportError::Kind::Timeout)) << lost.what();
    ASSERT_TRUE(gave_up_its_connection(*client));
    client->start({.target = "/list", .timeout = 60s}, after);
    ASSERT_TRUE(poll_until(*client, [&] { return after.has_ended; }));
    EXPECT_TRUE(after.is_well()) << after.what();
    EXPECT_EQ(server_.connection_count(), 2);
}

// A watch on a pooled connection without a responding peer, which never gets a response head.
TEST_F(TransportHttp2, WatchWithoutAHeadIsHalfOpen_APISYNC015) {
    const auto client = transport({.liveness = {.silence_max = 2s}});
    RecordedAnswer before, lost, after;
    client->start({.target = "/list"}, before);
    ASSERT_TRUE(poll_until(*client, [&] { return before.has_ended; }));
    server_.freeze();
    client->start({.target = "/services?watch=1", .watch = true}, lost);
    ASSERT_TRUE(poll_until(*client, [&] { return lost.has_ended; }));
    EXPECT_NE(lost.what().find("half-open: nothing received for 2 s"), std::string::npos) << lost.what();
    ASSERT_TRUE(gave_up_its_connection(*client));
    client->start({.target = "/services?watch=1", .watch = true}, after);
    ASSERT_TRUE(poll_until(*client, [&] { return after.body == "{}\n"; }));
    EXPECT_EQ(server_.connection_count(), 2);
}

// A server in orderly shutdown lets streams end and accepts no new ones.
TEST_F(TransportHttp2, GoAwaySendsNewRequestsElsewhere_APISYNC019) {
    const auto client = transport();
    RecordedAnswer watch, next;
    client->start({.target = "/services?watch=1", .watch = true}, watch);
    ASSERT_TRUE(poll_until(*client, [&] { return watch.body == "{}\n"; }));
    server_.go_away();
    client->start({.target = "/list", .timeout = 60s}, next);
    ASSERT_TRUE(poll_until(*client, [&] { return next.has_ended; }));
    EXPECT_TRUE(next.is_well()) << next.what();
    server_.push("/services", "{}\n");
    ASSERT_TRUE(poll_until(*client, [&] { return watch.body == "{}\n{}\n" || watch.has_ended; }));
    EXPECT_FALSE(watch.has_ended) << watch.what();
    EXPECT_EQ(server_.connection_count(), 2);
}

}  // namespace transport_http2_test
}  // namespace penstock::kube
