// SPDX-License-Identifier: Apache-2.0
// Pages for the kubelet and Prometheus, from a reading and over a socket.
#include "control/sync/pages.hpp"

#include <gtest/gtest.h>

#include "tests/support/http_get.hpp"
#include "tests/unit/sync/sync_reading.hpp"

namespace penstock::sync {
namespace pages_test {

using namespace std::chrono_literals;

bool has_line(const http::Response& page, const std::string& line) {
    return ("\n" + page.body).find("\n" + line) != std::string::npos;
}

TEST(SyncPages, HealthyAsLongAsThreadsGoRound) {
    SyncReading reading = test::example_reading();
    EXPECT_EQ(health_page(reading).status, 200)
        << "being away from the server or a gateway is no reason for a restart";
    EXPECT_TRUE(health_page(reading).body.ends_with("\nok\n"));
    reading.gateways[0].heartbeat_age = 61s;
    const auto stuck = health_page(reading);
    EXPECT_EQ(stuck.status, 503);
    EXPECT_TRUE(has_line(stuck, "[-] gateway unix:/run/penstock/penstockd.sock has been stuck for 61 s"))
        << stuck.body;
    EXPECT_TRUE(has_line(stuck, "[+] source https://192.0.2.1:6443 is running")) << stuck.body;
    reading.gateways[0].heartbeat_age = 0s;
    reading.source.heartbeat_age = 10min;
    EXPECT_EQ(health_page(reading).status, 503);
}

TEST(SyncPages, ReadyWhenAllIsListedAndAGatewayHasAState) {
    SyncReading reading = test::example_reading();
    const auto before = ready_page(reading);
    EXPECT_EQ(before.status, 503);
    EXPECT_TRUE(has_line(before, "[+] services: listed, 5000")) << before.body;
    EXPECT_TRUE(has_line(before, "[-] nodes: no complete list yet")) << before.body;
    EXPECT_TRUE(has_line(before, "[+] a gateway has applied a state")) << before.body;
    reading.source.collections[2].listed = true;
    EXPECT_EQ(ready_page(reading).status, 200) << ready_page(reading).body;
    EXPECT_TRUE(
        has_line(ready_page(reading),
                 "    gateway 192.0.2.9:9106: not connected: connection refused, nothing applied yet"));
    reading.gateways[0].applied_version = 0;
    EXPECT_EQ(ready_page(reading).status, 503);
}

TEST(SyncPages, NotReadyWhileTheSourceIsInTrouble) {
    SyncReading reading = test::example_reading();
    reading.source.collections[2].listed = true;
    reading.source.trouble = "contains no manifest; the objects read before stay in use";
    const auto page = ready_page(reading);
    EXPECT_EQ(page.status, 503);
    EXPECT_TRUE(has_line(
        page, "[-] source https://192.0.2.1:6443: contains no manifest; the objects read before stay in use"))
        << page.body;
    reading.source.trouble.clear();
    EXPECT_EQ(ready_page(reading).status, 200);
}

TEST(SyncPages, ItStaysReadyWhileTheServerIsAway) {
    SyncReading reading = test::example_reading();
    for (auto& collection : reading.source.collections) {
        collection.listed = true;
        collection.state = kube::CollectionStatus::State::BackingOff;
        collection.last_error = "connection refused";
    }
    reading.gateways[0].connected = false;
    EXPECT_EQ(ready_page(reading).status, 200);
}

TEST(SyncPages, NotReadyBeforeAnythingIsFollowed) {
    SyncReading reading = test::example_reading();
    reading.source.collections.clear();
    EXPECT_EQ(ready_page(reading).status, 503);
}

TEST(SyncPages, WhyACollectionIsNotListedIsSaid) {
    SyncReading reading = test::example_reading();
    reading.source.collections[2].last_error = "403: nodes is forbidden";
    EXPECT_TRUE(has_line(ready_page(reading), "[-] nodes: no complete list yet: 403: nodes is forbidden"));
}

TEST(SyncPages, ReadyWithoutTheKindsThatForwardingDoesNotNeed_GEN012) {
    SyncReading reading = test::example_reading();
    reading.source.collections[2].listed = true;
    reading.source.collections.push_back(
        {.kind = "addresspools", .optional = true, .last_error = "404: 404 page not found"});
    const auto page = ready_page(reading);
    EXPECT_EQ(page.status, 200);
    EXPECT_TRUE(has_line(page, "    addresspools: no complete list yet: 404: 404 page not found"))
        << page.body;
    reading.source.collections[3].listed = true;
    EXPECT_TRUE(has_line(ready_page(reading), "[+] addresspools: listed, 0"));
}

TEST(SyncPages, TheyAreServed) {
    const auto server = http::Server::start("127.0.0.1:0", pages(test::example_reading));
    ASSERT_TRUE(server) << server.error().what;
    const uint16_t port = (*server)->port();
    EXPECT_TRUE(penstock::test::http_get(port, "/healthz").starts_with("HTTP/1.1 200 "));
    EXPECT_TRUE(penstock::test::http_get(port, "/readyz").starts_with("HTTP/1.1 503 "));
    const std::string metrics = penstock::test::http_get(port, "/metrics");
    EXPECT_NE(metrics.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
    EXPECT_NE(metrics.find("\npenstock_sync_objects{kind=\"services\"} 5000\n"), std::string::npos);
}

}  // namespace pages_test
}  // namespace penstock::sync
