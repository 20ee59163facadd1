// SPDX-License-Identifier: Apache-2.0
// Decides which reports of a daemon its service manager gets, and when: that the start is complete, the line
// of `systemctl status`, and the watchdog's keep-alive while every thread goes round. A state machine: the
// time and the facts are arguments, reports leave by a function. A report that could not be sent is repeated
// at the next look. Used by one thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace penstock::process {

class ServiceReports {
 public:
    using Clock = std::chrono::steady_clock;
    // A watchdog gets this many keep-alives within its interval, so that a late one does no harm.
    static constexpr int kKeepAlives = 4;

    struct Facts {
        std::string waits_for;   // what the start is waiting for; "": it is complete
        std::string status;      // for the operator, one line, after the start
        bool goes_round = true;  // no thread is stalled
    };

    // `send`: false if the report was not sent. `watchdog`: 0 if no keep-alives are expected.
    ServiceReports(std::function<bool(const std::string&)> send, std::chrono::microseconds watchdog)
        : send_(std::move(send)), keep_alive_(watchdog / kKeepAlives) {}

    // Call several times within each quarter of the watchdog's interval.
    void look(const Facts& facts, Clock::time_point now);
    [[nodiscard]] bool is_ready() const noexcept { return is_ready_; }
    // The time between two keep-alives; 0: none are sent.
    [[nodiscard]] std::chrono::microseconds keep_alive() const noexcept { return keep_alive_; }

 private:
    const std::function<bool(const std::string&)> send_;
    const std::chrono::microseconds keep_alive_;
    bool is_ready_ = false;
    std::string shown_;  // last STATUS
    std::optional<Clock::time_point> kept_alive_at_;
};

}  // namespace penstock::process
