// SPDX-License-Identifier: Apache-2.0
// The list of what was requested of a port and what it granted.
#include "drivers/port/port_setting.hpp"

#include <gtest/gtest.h>

namespace penstock::drivers {
namespace port_setting_test {

TEST(PortSettings, TheLastAnswerToANameCounts) {
    std::vector<PortSetting> settings;
    note_setting(settings, {.name = "rss-key", .asked = "random", .granted = {}, .reason = "refused"});
    note_setting(settings, {.name = "rss-table", .asked = "128", .granted = "128", .reason = {}});
    note_setting(settings,
                 {.name = "rss-key", .asked = "as it is", .granted = "the device's own", .reason = {}});
    ASSERT_EQ(settings.size(), 2u);
    EXPECT_EQ(settings[0].granted, "the device's own");
}

}  // namespace port_setting_test
}  // namespace penstock::drivers
