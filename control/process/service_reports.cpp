// SPDX-License-Identifier: Apache-2.0
#include "control/process/service_reports.hpp"

namespace penstock::process {

void ServiceReports::look(const Facts& facts, Clock::time_point now) {
    const bool becomes_ready = !is_ready_ && facts.waits_for.empty();
    const std::string status =
        is_ready_ || becomes_ready ? facts.status : "starting, waits for: " + facts.waits_for;
    const bool keeps_alive = keep_alive_.count() > 0 && facts.goes_round &&
                             (!kept_alive_at_ || now - *kept_alive_at_ >= keep_alive_);
    std::string lines;
    const auto add = [&](const std::string& line) { lines += (lines.empty() ? "" : "\n") + line; };
    if (becomes_ready) {
        add("READY=1");
    }
    if (status != shown_) {
        add("STATUS=" + status);
    }
    if (keeps_alive) {
        add("WATCHDOG=1");
    }
    if (lines.empty() || !send_(lines)) {
        return;
    }
    is_ready_ |= becomes_ready;
    shown_ = status;
    if (keeps_alive) {
        kept_alive_at_ = now;
    }
}

}  // namespace penstock::process
