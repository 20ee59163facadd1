// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/link_report.hpp"

#include <gtest/gtest.h>

namespace penstock::gateway {
namespace link_report_test {

using std::chrono::milliseconds;
using std::chrono::seconds;

const LinkReport::Time kStart{seconds(1'000)};

TEST(LinkReport, TellsEachChangeOnce) {
    LinkReport report(true);
    EXPECT_EQ(report.look(true, kStart), "");
    EXPECT_EQ(report.look(false, kStart + seconds(1)), "link is down");
    EXPECT_EQ(report.look(false, kStart + seconds(2)), "");
    EXPECT_EQ(report.look(true, kStart + seconds(3)), "link is up");
}

TEST(LinkReport, FlappingIsToldInBounds) {
    LinkReport report(true);
    bool up = true;
    uint32_t lines = 0;
    std::string last_of_first_period;
    // A change every 0.1 s for ten minutes: 6,000 of them.
    for (int i = 0; i < 6'000; ++i) {
        up = !up;
        const std::string text = report.look(up, kStart + milliseconds(100 * i));
        lines += text.empty() ? 0 : 1;
        if (i < 600 && !text.empty()) {
            last_of_first_period = text;
        }
    }
    EXPECT_EQ(last_of_first_period,
              "link is up; it flaps, further changes are counted but not logged for a while");
    // In each minute the changes logged individually, and one summary.
    EXPECT_LE(lines, 10 * (LinkReport::kToldPerPeriod + 1));
    EXPECT_GE(lines, 10 * LinkReport::kToldPerPeriod);
}

TEST(LinkReport, TellsHowItEndedWhenItIsCalmAgain) {
    LinkReport report(true);
    bool up = true;
    for (int i = 0; i < 31; ++i) {
        up = !up;
        (void)report.look(up, kStart + milliseconds(100 * i));
    }
    EXPECT_EQ(report.look(up, kStart + seconds(59)), "");
    EXPECT_EQ(report.look(up, kStart + seconds(61)),
              "link is down, after 21 changes in 60 s that were not logged");
    EXPECT_EQ(report.look(up, kStart + seconds(62)), "");
    EXPECT_EQ(report.look(!up, kStart + seconds(63)), "link is up") << "a new period begins";
}

}  // namespace link_report_test
}  // namespace penstock::gateway
