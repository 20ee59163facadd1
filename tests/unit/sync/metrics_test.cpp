// SPDX-License-Identifier: Apache-2.0
// Names, labels and values as scraped, and agreement with the manual.
#include "control/sync/metrics.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "tests/unit/sync/sync_reading.hpp"

namespace penstock::sync {
namespace metrics_test {

void expect_line(const std::string& all, const std::string& line) {
    EXPECT_NE(all.find("\n" + line + "\n"), std::string::npos) << line << "\nis not in\n" << all;
}

TEST(SyncMetrics, EachKindAndGatewayHasItsSeries) {
    const std::string all = metrics_text(test::example_reading());
    expect_line(all, R"(penstock_sync_build_info{version="1.2.3"} 1)");
    expect_line(all, R"(penstock_sync_objects{kind="services"} 5000)");
    expect_line(all, R"(penstock_sync_quarantined_objects{kind="services"} 2)");
    expect_line(all, R"(penstock_sync_watching{kind="services"} 1)");
    expect_line(all, R"(penstock_sync_watching{kind="endpointslices"} 0)");
    expect_line(all, R"(penstock_sync_stale_seconds{kind="services"} 0)");
    expect_line(all, R"(penstock_sync_stale_seconds{kind="endpointslices"} 12)");
    expect_line(all, R"(penstock_sync_last_event_age_seconds{kind="services"} 0.25)");
    expect_line(all, R"(penstock_sync_watch_restarts_total{kind="services"} 3)");
    expect_line(all, R"(penstock_sync_relists_total{kind="services"} 1)");
    expect_line(all, R"(penstock_sync_errors_total{kind="services",error="http_429"} 1)");
    expect_line(all, R"(penstock_sync_gateway_connected{gateway="192.0.2.9:9106"} 0)");
    expect_line(all,
                R"(penstock_sync_gateway_lag_seconds{gateway="unix:/run/penstock/penstockd.sock"} 0.04)");
    expect_line(all, R"(penstock_sync_changes_waiting{gateway="unix:/run/penstock/penstockd.sock"} 5)");
    expect_line(
        all,
        R"(penstock_sync_notices_total{gateway="unix:/run/penstock/penstockd.sock",reason="ExternalIPNotAllowed"} 3)");
    expect_line(all, "penstock_sync_events_posted_total 8");
    expect_line(all, R"(penstock_sync_events_dropped_total{cause="rate"} 3)");
    expect_line(all, "penstock_sync_resident_memory_bytes 67108864");
}

TEST(SyncMetrics, UsualErrorsHaveASeriesBeforeTheFirstOne) {
    const std::string all = metrics_text(test::example_reading());
    expect_line(all, R"(penstock_sync_errors_total{kind="services",error="http_429"} 1)");
    expect_line(all, R"(penstock_sync_errors_total{kind="services",error="tls"} 0)");
    expect_line(all, R"(penstock_sync_errors_total{kind="nodes",error="decode"} 0)");
}

TEST(SyncMetrics, WhatNobodyKnowsYetHasNoSeries) {
    const std::string all = metrics_text(test::example_reading());
    EXPECT_EQ(all.find(R"(penstock_sync_last_event_age_seconds{kind="nodes"})"), std::string::npos)
        << "nothing was heard: no age";
    expect_line(all, R"(penstock_sync_listed{kind="nodes"} 0)");
}

TEST(SyncMetrics, TheLatencyHistogramCountsUpwards) {
    const std::string all = metrics_text(test::example_reading());
    const std::string edge = R"(gateway="unix:/run/penstock/penstockd.sock")";
    expect_line(all, "penstock_sync_apply_latency_seconds_bucket{" + edge + R"(,le="0.001"} 1)");
    expect_line(all, "penstock_sync_apply_latency_seconds_bucket{" + edge + R"(,le="0.005"} 2)");
    expect_line(all, "penstock_sync_apply_latency_seconds_bucket{" + edge + R"(,le="0.02"} 4)");
    expect_line(all, "penstock_sync_apply_latency_seconds_bucket{" + edge + R"(,le="30"} 4)");
    expect_line(all, "penstock_sync_apply_latency_seconds_bucket{" + edge + R"(,le="+Inf"} 5)");
    expect_line(all, "penstock_sync_apply_latency_seconds_count{" + edge + "} 5");
}

TEST(SyncMetrics, ABoundIsInsideItsBucket) {
    LatencyHistogram histogram;
    histogram.observe(std::chrono::milliseconds(1));
    histogram.observe(std::chrono::nanoseconds(1'000'001));
    EXPECT_EQ(histogram.counts[0], 1u);
    EXPECT_EQ(histogram.counts[1], 1u);
}

TEST(SyncMetrics, NamesFollowPrometheusAndAreUnique) {
    std::set<std::string> seen;
    for (const auto& family : families(test::example_reading())) {
        EXPECT_TRUE(std::regex_match(family.name, std::regex("penstock_[a-z0-9_]+"))) << family.name;
        EXPECT_EQ(family.name.ends_with("_total"), family.type == prometheus::MetricType::Counter)
            << family.name;
        EXPECT_FALSE(family.help.empty()) << family.name;
        EXPECT_TRUE(seen.insert(family.name).second) << family.name;
    }
}

// docs/counters.md lists them with the same texts: "| `name` | meaning | ...".
TEST(SyncMetrics, TheCountersPageSaysWhatTheListsSay) {
    std::map<std::string, std::string> rows;
    std::ifstream page(PENSTOCK_COUNTERS_PAGE);
    bool is_ours = false;  // other sections have metrics of penstockd
    for (std::string line; std::getline(page, line);) {
        is_ours = line.starts_with("## ") ? line == "## penstock-sync" : is_ours;
        std::smatch row;
        if (is_ours && std::regex_match(line, row, std::regex(R"(\| `(penstock_\w+)` \| ([^|]*) \|.*)"))) {
            rows[row[1]] = row[2];
        }
    }
    for (const auto& family : families(test::example_reading())) {
        ASSERT_TRUE(rows.contains(family.name))
            << "docs/counters.md lacks " << family.name << ": " << family.help;
        EXPECT_EQ(rows.at(family.name), family.help) << family.name;
        rows.erase(family.name);
    }
    for (const auto& [name, meaning] : rows) {
        ADD_FAILURE() << "docs/counters.md has " << name << ", which there is not";
    }
}

TEST(SyncMetrics, ThisProcessHasMemory) {
    EXPECT_GT(resident_bytes(), 1u << 20);
}

}  // namespace metrics_test
}  // namespace penstock::sync
