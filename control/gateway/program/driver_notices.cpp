// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/driver_notices.hpp"

#include "control/log/log.hpp"

namespace penstock::gateway {

void log_driver_notice(drivers::NoticeLevel level, std::string_view text) {
    auto& logger = log::get("drivers");
    switch (level) {
        case drivers::NoticeLevel::Debug:
            logger.debug("{}", text);
            break;
        case drivers::NoticeLevel::Info:
            logger.info("{}", text);
            break;
        case drivers::NoticeLevel::Warning:
            logger.warn("{}", text);
            break;
        case drivers::NoticeLevel::Error:
            logger.error("{}", text);
            break;
    }
}

}  // namespace penstock::gateway
