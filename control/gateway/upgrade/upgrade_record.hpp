// SPDX-License-Identifier: Apache-2.0
// The last upgrade as its supervisor records it: progress, result, pause, and the time of each step. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "control/gateway/upgrade/upgrade_steps.hpp"
#include "penstock/v1/upgrade.pb.h"

namespace penstock::gateway {

// CLOCK_MONOTONIC, the same in all processes of a machine.
[[nodiscard]] uint64_t monotonic_us(std::chrono::steady_clock::time_point time);

// Progress or Launched, by the steps that a successor reports.
[[nodiscard]] UpgradeSteps::Event progress_of(const v1::UpgradeNote& note);

class UpgradeRecord {
 public:
    using Clock = std::chrono::steady_clock;

    void begin(const std::string& binary, const std::string& requested_by, Clock::time_point now);
    [[nodiscard]] bool is_running() const noexcept { return upgrade_.state() == v1::Upgrade::STATE_RUNNING; }

    void add_step(const std::string& name, Clock::time_point at);
    // Steps and version that a process has reported.
    void add(const v1::UpgradeNote& note);
    // An event that may end in failure, as a sentence.
    void note_trouble(const std::string& what);

    void succeed(Clock::time_point now);
    // `last_lines`: of the successor's log, possibly no UTF-8.
    void fail(const std::deque<std::string>& last_lines, Clock::time_point now);

    // Upgrade.age_ms is not set; note.since_us is.
    [[nodiscard]] v1::UpgradeNote note() const;
    // One sentence for the log: result, pause, and the milliseconds of each step.
    [[nodiscard]] std::string summary() const;

 private:
    void end(v1::Upgrade::State state, Clock::time_point now);
    [[nodiscard]] uint64_t pause_us() const;

    v1::Upgrade upgrade_;  // steps with absolute times
    std::vector<std::string> troubles_;
    uint64_t began_us_ = 0, since_us_ = 0;
};

}  // namespace penstock::gateway
