// SPDX-License-Identifier: Apache-2.0
// Notices of drivers/ as log lines: the drivers room does not log itself.
#pragma once

#include <string_view>

#include "drivers/port/notice.hpp"

namespace penstock::gateway {

// A drivers::NoticeSink. Any thread.
void log_driver_notice(drivers::NoticeLevel level, std::string_view text);

}  // namespace penstock::gateway
