// SPDX-License-Identifier: Apache-2.0
// Pages and socket together, as the program starts them.
#include "control/sync/monitor.hpp"

#include <gtest/gtest.h>

#include "tests/support/http_get.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/unit/sync/sync_reading.hpp"

namespace penstock::sync {
namespace monitor_test {

Watched watched() {
    return {.version = "1.2.3",
            .identity = "host-7",
            .source = [] { return test::example_reading().source; },
            .gateways = {[] { return test::example_reading().gateways[0]; },
                         [] { return test::example_reading().gateways[1]; }},
            .events = [] { return test::example_reading().events; },
            .addresses = [] { return test::example_addresses(); }};
}

class MonitorTest : public testing::Test {
 protected:
    void SetUp() override {
        if (penstock::test::kUnderThreadSanitizer) {
            GTEST_SKIP() << penstock::test::kGrpcHidesItsLocks;
        }
    }
    penstock::test::ScratchFolder folder_;
    MonitorOptions options_{.http = "127.0.0.1:0", .socket = folder_.path() / "sync.sock"};
};

TEST_F(MonitorTest, AReadingIsMadeOfAllParts) {
    const auto monitor = Monitor::start(options_, watched());
    ASSERT_TRUE(monitor) << monitor.error().what;
    const std::string metrics = penstock::test::http_get((*monitor)->http_port(), "/metrics");
    for (const char* line : {"\npenstock_sync_build_info{version=\"1.2.3\"} 1\n",
                             "\npenstock_sync_objects{kind=\"services\"} 5000\n",
                             "\npenstock_sync_gateway_connected{gateway=\"192.0.2.9:9106\"} 0\n",
                             "\npenstock_sync_events_posted_total 8\n", "\npenstock_leader 1\n"}) {
        EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
    }
    EXPECT_EQ(metrics.find("penstock_sync_resident_memory_bytes 0\n"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(options_.socket));
}

TEST_F(MonitorTest, WithoutAClusterThereAreNoEvents) {
    Watched manifests = watched();
    manifests.events = nullptr;
    const auto monitor = Monitor::start(options_, manifests);
    ASSERT_TRUE(monitor);
    EXPECT_NE(penstock::test::http_get((*monitor)->http_port(), "/metrics")
                  .find("\npenstock_sync_events_enabled 0\n"),
              std::string::npos);
}

TEST_F(MonitorTest, WithoutPoolsThereAreNoAddressesAndReadinessIsTheSame) {
    Watched without = watched();
    without.addresses = nullptr;
    const auto with_pools = Monitor::start(options_, watched());
    const auto monitor = Monitor::start({.http = "127.0.0.1:0", .socket = ""}, without);
    ASSERT_TRUE(with_pools && monitor);
    EXPECT_EQ(penstock::test::http_get((*monitor)->http_port(), "/metrics").find("\npenstock_leader "),
              std::string::npos);
    const auto body = [](const std::string& answer) { return answer.substr(answer.find("\r\n\r\n")); };
    EXPECT_EQ(body(penstock::test::http_get((*monitor)->http_port(), "/readyz")),
              body(penstock::test::http_get((*with_pools)->http_port(), "/readyz")));
}

TEST_F(MonitorTest, TheDefaultSocketMayFailAWantedOneMayNot) {
    const auto first = Monitor::start(options_, watched());
    ASSERT_TRUE(first);
    EXPECT_TRUE(Monitor::start(options_, watched())) << "the second of two on a machine works all the same";
    options_.socket_is_wanted = true;
    const auto refused = Monitor::start(options_, watched());
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().what.starts_with("--listen: ")) << refused.error().what;
}

TEST_F(MonitorTest, AnHttpAddressThatIsTakenIsRefused) {
    const auto first = Monitor::start(options_, watched());
    ASSERT_TRUE(first);
    options_.http = "127.0.0.1:" + std::to_string((*first)->http_port());
    const auto second = Monitor::start(options_, watched());
    ASSERT_FALSE(second);
    EXPECT_TRUE(second.error().what.starts_with("--http: ")) << second.error().what;
}

TEST_F(MonitorTest, NeitherIsANeed) {
    options_ = {.http = "", .socket = ""};
    const auto monitor = Monitor::start(options_, watched());
    ASSERT_TRUE(monitor);
    EXPECT_EQ((*monitor)->http_port(), 0);
}

}  // namespace monitor_test
}  // namespace penstock::sync
