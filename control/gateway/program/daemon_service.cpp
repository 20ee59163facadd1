// SPDX-License-Identifier: Apache-2.0
// Reports to the service manager (control/process/service_reports.hpp), and the begin of a stop.
#include <chrono>
#include <string>
#include <vector>

#include "control/gateway/program/daemon.hpp"
#include "control/log/log.hpp"

namespace penstock::gateway {
namespace {

using std::chrono::microseconds;

// For the end of all threads and the release of memory after a drain.
constexpr std::chrono::seconds kEndMax{30};

std::string reasons_text(const std::vector<std::string>& reasons) {
    std::string text;
    for (const std::string& reason : reasons) {
        text += (text.empty() ? "" : "; ") + reason;
    }
    return text;
}

}  // namespace

// On the thread of `loops_`.
void Daemon::report(const LoopHealth& health) {
    loops_forward_.store(health.forwards(), std::memory_order_relaxed);
    if (!service_manager_.is_present() || !serves_.load(std::memory_order_acquire)) {
        return;
    }
    process::ServiceReports::Facts facts{.waits_for = reasons_text(caretaker_->why_not_started()),
                                         .goes_round = health.stalls().empty()};
    if (caretaker_->rounds() == 0) {
        facts.waits_for = "the first check of the ports";
    }
    if (stop_drain_.deadline()) {
        facts.status = "draining before the stop";
    } else if (const auto reasons = caretaker_->why_not_well(); !reasons.empty()) {
        facts.status = "not ready: " + reasons_text(reasons);
    } else {
        facts.status = "ready: " + std::to_string(ports_.size()) + " ports, " +
                       std::to_string(cores_.worker_cpus.size()) + " workers";
    }
    reports_.look(facts, process::ServiceReports::Clock::now());
}

void Daemon::begin_stop_drain() {
    log::get("control").info(
        "the gateway is drained before it stops, for {} s at most; a second signal stops it",
        options_.drain_on_stop.count());
    caretaker_->set_drained(true);
    // The limit of the unit (TimeoutStopSec) need not include the drain.
    const auto longest = microseconds(options_.drain_on_stop + kEndMax);
    service_manager_.send("STOPPING=1\nEXTEND_TIMEOUT_USEC=" + std::to_string(longest.count()));
}

void Daemon::report_end(const std::optional<process::Signal>& signal) {
    log::get("control").info("stopping {}", signal ? "on " + signal->name() : "for the successor");
    if (signal) {
        service_manager_.send("STOPPING=1\nSTATUS=stopping on " + signal->name());
    }
}

}  // namespace penstock::gateway
