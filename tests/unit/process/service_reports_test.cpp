// SPDX-License-Identifier: Apache-2.0
#include "control/process/service_reports.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock::process {
namespace service_reports_test {

using namespace std::chrono_literals;
using Facts = ServiceReports::Facts;
using Sent = std::vector<std::string>;

// Reports of a daemon whose watchdog has an interval of 8 s, with a clock that the test moves.
struct Daemon {
    Sent sent;
    bool is_reachable = true;
    ServiceReports::Clock::time_point now{100s};
    ServiceReports reports;

    explicit Daemon(std::chrono::microseconds watchdog = 8s)
        : reports(
              [this](const std::string& lines) {
                  if (is_reachable) {
                      sent.push_back(lines);
                  }
                  return is_reachable;
              },
              watchdog) {}

    Sent look(const Facts& facts, std::chrono::milliseconds later = 0ms) {
        now += later;
        sent.clear();
        reports.look(facts, now);
        return sent;
    }
};

const Facts kWell{.waits_for = "", .status = "ready"};

TEST(ServiceReports, ReadyIsReportedOnceTheStartWaitsForNothing) {
    Daemon daemon(0s);
    EXPECT_EQ(daemon.look({.waits_for = "a configuration", .status = "ready"}),
              Sent{"STATUS=starting, waits for: a configuration"});
    EXPECT_EQ(daemon.look({.waits_for = "a configuration", .status = "ready"}, 1h), Sent{});
    EXPECT_FALSE(daemon.reports.is_ready());
    EXPECT_EQ(daemon.look(kWell), Sent{"READY=1\nSTATUS=ready"});
    EXPECT_TRUE(daemon.reports.is_ready());
    EXPECT_EQ(daemon.look({.waits_for = "a port", .status = "not ready: a port"}),
              Sent{"STATUS=not ready: a port"})
        << "a service does not start twice";
    EXPECT_EQ(daemon.look(kWell), Sent{"STATUS=ready"});
}

TEST(ServiceReports, TheWatchdogIsFedFourTimesInItsInterval) {
    Daemon daemon;
    EXPECT_EQ(daemon.look(kWell), Sent{"READY=1\nSTATUS=ready\nWATCHDOG=1"});
    EXPECT_EQ(daemon.look(kWell, 1'999ms), Sent{});
    EXPECT_EQ(daemon.look(kWell, 1ms), Sent{"WATCHDOG=1"});
    EXPECT_EQ(daemon.reports.keep_alive(), 2s);
}

TEST(ServiceReports, AStalledThreadStopsTheWatchdog) {
    Daemon daemon;
    daemon.look(kWell);
    Facts stalled = kWell;
    stalled.goes_round = false;
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(daemon.look(stalled, 2s), Sent{});
    }
    EXPECT_EQ(daemon.look(kWell), Sent{"WATCHDOG=1"}) << "it continues";
}

TEST(ServiceReports, AThreadThatStallsBeforeTheStartIsCompleteFeedsNothing) {
    Daemon daemon;
    EXPECT_EQ(daemon.look({.waits_for = "worker 0", .status = "", .goes_round = false}),
              Sent{"STATUS=starting, waits for: worker 0"});
}

TEST(ServiceReports, AReportThatWasNotSentIsRepeated) {
    Daemon daemon;
    daemon.is_reachable = false;
    daemon.look(kWell);
    EXPECT_FALSE(daemon.reports.is_ready());
    daemon.is_reachable = true;
    EXPECT_EQ(daemon.look(kWell), Sent{"READY=1\nSTATUS=ready\nWATCHDOG=1"});
}

TEST(ServiceReports, WithoutAWatchdogNothingFeedsIt) {
    Daemon daemon(0s);
    EXPECT_EQ(daemon.look(kWell), Sent{"READY=1\nSTATUS=ready"});
    EXPECT_EQ(daemon.look(kWell, 1h), Sent{});
}

}  // namespace service_reports_test
}  // namespace penstock::process
