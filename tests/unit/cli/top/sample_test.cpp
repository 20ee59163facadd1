// SPDX-License-Identifier: Apache-2.0
#include "control/cli/top/sample.hpp"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/fake_gateway.hpp"

namespace penstock::cli::top {
namespace sample_test {

using std::chrono::milliseconds;

template <typename Message>
void set(Message& message, const std::string& text) {
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
}

cli::test::FakeGateway gateway_with_traffic() {
    cli::test::FakeGateway gateway;
    set(gateway.status_,
        "identity { gateway_name: \"edge-1\" } uptime_ms: 60000 connections: 40 connections_max: 1000 "
        "open_connections: 30");
    set(gateway.ports_,
        "ports { twin: \"pen0\" rx_packets: 1000 rx_bytes: 50000 tx_packets: 7 link_up: true } "
        "ports { twin: \"pen1\" tx_packets: 900 tx_bytes: 45000 rx_missed: 3 }");
    set(gateway.counters_,
        "drops { reason: \"no_route\" packets: 12 meaning: \"no route\" } drops { reason: \"martian\" }");
    set(gateway.services_,
        R"(services { desired { key { namespace: "shop" name: "web" port_name: "http" protocol: PROTOCOL_TCP } }
        traffic { new_flows: 10 forward_packets: 100 forward_bytes: 5000 reverse_packets: 90 reverse_bytes: 9000 rejected: 1 dropped: 2 }
        connections: 4 })");
    set(gateway.backends_, R"(backends { service { namespace: "shop" name: "web" protocol: PROTOCOL_TCP }
        endpoint { address: "10.0.0.1" port: 80 } sets: 0 new_flows: 10 connections: 4 open_connections: 3 health: HEALTH_UP }
        backends { service { namespace: "shop" name: "web" protocol: PROTOCOL_TCP } endpoint { address: "10.0.0.2" port: 80 } })");
    set(gateway.workers_,
        "workers { id: 1 core: 3 packets: 500 handed_in: 5 handed_off: 6 busy_ratio: 0.5 open_connections: "
        "30 "
        "connections: 40 connections_max: 1000 }");
    for (const char* client :
         {"192.0.2.1", "192.0.2.200", "192.0.3.1", "2001:db8:1:2ff::1", "2001:db8:1:200::2"}) {
        v1::Connection connection;
        connection.mutable_client()->set_address(client);
        connection.set_age_ms(gateway.connections_.empty() ? 100 : 60'000);
        gateway.connections_.push_back(connection);
    }
    return gateway;
}

TEST(TopSample, EachViewReadsItsCounters) {
    auto gateway = gateway_with_traffic();
    const auto rows = [&](View view) { return take_sample(gateway, view).value().rows; };
    EXPECT_EQ(rows(View::Services),
              (std::vector<Row>{{"shop/web:http/TCP", {10, 100, 90, 5000, 9000, 3, 4}, ""}}));
    EXPECT_EQ(rows(View::Backends), (std::vector<Row>{{"10.0.0.1:80 shop/web/TCP", {10, 3, 4}, "up"},
                                                      {"10.0.0.2:80 shop/web/TCP", {0, 0, 0}, "draining"}}));
    EXPECT_EQ(rows(View::Workers), (std::vector<Row>{{"1 on CPU 3", {500, 5, 6, 30'000'000, 30, 400}, ""}}));
    EXPECT_EQ(rows(View::Ports), (std::vector<Row>{{"pen0", {1000, 7, 50000, 0, 0, 0, 0}, "up"},
                                                   {"pen1", {0, 900, 0, 45000, 3, 0, 0}, "down"}}));
    EXPECT_EQ(rows(View::Drops), (std::vector<Row>{{"no_route", {12, 12}, "no route"}}))
        << "reasons that occurred";
    EXPECT_EQ(rows(View::Clients), (std::vector<Row>{{"192.0.2.0/24", {2, 1}, ""},
                                                     {"192.0.3.0/24", {1, 0}, ""},
                                                     {"2001:db8:1:200::/56", {2, 0}, ""}}));
    EXPECT_EQ(gateway.connections_request.limit(), kClientConnectionsMax);
    const auto sample = take_sample(gateway, View::Services, {"shop", "web"}).value();
    EXPECT_EQ(gateway.services_request.namespace_() + "/" + gateway.services_request.name(), "shop/web");
    EXPECT_TRUE(take_sample(gateway, View::Backends, {"shop", "web"}));
    EXPECT_EQ(gateway.backends_request.namespace_() + "/" + gateway.backends_request.service(), "shop/web");
    gateway.connections_[0].mutable_service()->set_namespace_("shop");
    gateway.connections_[0].mutable_service()->set_name("web");
    EXPECT_EQ(take_sample(gateway, View::Clients, {"", "web"})->rows,
              (std::vector<Row>{{"192.0.2.0/24", {1, 1}, ""}}));
    EXPECT_EQ(sample.totals, (std::vector<uint64_t>{1000, 50000, 907, 45000, 12, 30, 400}));
    for (const ViewSpec& view : all_views()) {
        for (const Row& row : rows(view.view)) {
            EXPECT_EQ(row.values.size(), view.columns.size()) << view.name;
        }
    }
}

TEST(TopSample, AnErrorOfTheGatewayIsReturned) {
    cli::test::FakeGateway gateway;
    gateway.error = Error{Errc::Unavailable, "gone"};
    EXPECT_EQ(take_sample(gateway, View::Ports).error().what, "gone");
}

class TopRates : public testing::Test {
 protected:
    static Sample sample(int64_t at_ms, uint64_t uptime_ms, std::vector<Row> rows) {
        return {.taken = std::chrono::steady_clock::time_point(milliseconds(at_ms)),
                .gateway = "edge-1",
                .uptime_ms = uptime_ms,
                .view = View::Services,
                .rows = std::move(rows),
                .totals = std::vector<uint64_t>(std::size(kTotals), 0),
                .note = ""};
    }
    static Row row(const std::string& name, uint64_t flows, uint64_t bytes, uint64_t connections) {
        return {name, {flows, 0, 0, bytes, 0, 0, connections}, ""};
    }
};

TEST_F(TopRates, AreTheIncreasePerSecond) {
    const Rates rates = rates_between(sample(1000, 60'000, {row("a", 100, 1000, 7)}),
                                      sample(3000, 62'000, {row("a", 300, 2000, 9)}));
    EXPECT_FALSE(rates.restarted);
    EXPECT_DOUBLE_EQ(rates.interval_s, 2.0);
    ASSERT_EQ(rates.rows.size(), 1U);
    EXPECT_EQ(rates.rows[0].values, (std::vector<double>{100, 0, 0, 4000, 0, 0, 9}))
        << "bytes are shown as bits";
}

TEST_F(TopRates, ANewRowCountsFromZero) {
    const Rates rates = rates_between(sample(0, 60'000, {row("gone", 5, 5, 5)}),
                                      sample(2000, 62'000, {row("new", 10, 0, 1)}));
    ASSERT_EQ(rates.rows.size(), 1U);
    EXPECT_EQ(rates.rows[0].name, "new");
    EXPECT_DOUBLE_EQ(rates.rows[0].values[0], 5);
}

TEST_F(TopRates, AfterARestartCountersBeganAtZero) {
    // Higher than before, although the process is new.
    const Rates rates =
        rates_between(sample(0, 60'000, {row("a", 100, 0, 7)}), sample(2000, 500, {row("a", 150, 0, 9)}));
    EXPECT_TRUE(rates.restarted);
    EXPECT_DOUBLE_EQ(rates.interval_s, 0.5) << "the time since the restart";
    EXPECT_DOUBLE_EQ(rates.rows[0].values[0], 300);
}

TEST_F(TopRates, ACounterThatHasDecreasedCountsFromZero) {
    // A Service that was removed and added again.
    const Rates rates = rates_between(sample(0, 60'000, {row("a", 1'000'000, 0, 7)}),
                                      sample(1000, 61'000, {row("a", 40, 0, 9)}));
    EXPECT_FALSE(rates.restarted);
    EXPECT_DOUBLE_EQ(rates.rows[0].values[0], 40);
    const Rates wrapped =
        rates_between(sample(0, 1, {row("a", UINT64_MAX - 1, 0, 0)}), sample(1000, 2, {row("a", 3, 0, 0)}));
    EXPECT_DOUBLE_EQ(wrapped.rows[0].values[0], 3);
}

TEST_F(TopRates, TwoReadingsAtOneTimeHaveNoRate) {
    const Rates rates =
        rates_between(sample(5, 60'000, {row("a", 1, 0, 7)}), sample(5, 60'000, {row("a", 9, 0, 9)}));
    EXPECT_DOUBLE_EQ(rates.rows[0].values[0], 0);
}

TEST_F(TopRates, ABusyWorkerIsAPercentageOfTheInterval) {
    Sample before = sample(0, 10'000, {}), after = sample(2000, 12'000, {});
    before.view = after.view = View::Workers;
    before.rows = {{"0", {0, 0, 0, 1'000'000, 0, 2500}, ""}};
    after.rows = {{"0", {0, 0, 0, 1'500'000, 0, 5000}, ""}};
    EXPECT_EQ(rates_between(before, after).rows[0].values, (std::vector<double>{0, 0, 0, 25, 0, 50}));
}

}  // namespace sample_test
}  // namespace penstock::cli::top
