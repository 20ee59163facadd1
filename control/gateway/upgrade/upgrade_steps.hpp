// SPDX-License-Identifier: Apache-2.0
// Order of the steps by which a gateway process is replaced by its successor, as its supervisor takes them. A
// state machine without I/O: events and the time go in, orders come out (program/supervisor.cpp carries them
// out).
//
//   Idle -> Preparing -> HandingOver -> TakingOver -> Idle
//            successor    the former     the successor forwards
//            starts EAL   closes ports
//
// If the successor ends before the former process has begun to stop, the former one continues. If it ends
// later, or does not forward in time, the former binary starts again on the same tables.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace penstock::gateway {

class UpgradeSteps {
 public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds kPrepareMax{60};  // EAL of a large machine
    static constexpr std::chrono::seconds kHandOverMax{5};  // then the former process is killed
    static constexpr std::chrono::seconds kTakeOverMax{5};  // then the successor is killed

    enum class Step { Idle, Preparing, HandingOver, TakingOver, Restoring };
    enum class Event {
        Requested,      // by the operator
        Prepared,       // the successor can take over
        HandedOver,     // the former process has closed its ports and released its locks
        Forwards,       // the successor forwards
        FormerEnded,    // the process that forwarded before
        SuccessorEnded  // the new one
    };
    enum class Order {
        StartSuccessor,  // of the binary that is at the program's path now
        SendHandOver,    // to the former process
        SendTakeOver,    // to the successor
        KillFormer,
        KillSuccessor,
        SuccessorIsCurrent,  // it is the former process of the next upgrade
        StartFormerBinary,   // as the current process; nothing else runs
        End                  // with the exit status of the current process
    };
    struct Result {
        std::vector<Order> orders;
        std::string remark;     // for the log; "": none
        bool is_error = false;  // of the remark
    };

    Result take(Event event, Clock::time_point now);
    // Call when deadline() has passed.
    Result take_time(Clock::time_point now);
    [[nodiscard]] std::optional<Clock::time_point> deadline() const noexcept { return deadline_; }
    [[nodiscard]] Step step() const noexcept { return step_; }

 private:
    void go_to(Step step, std::optional<Clock::time_point> deadline = std::nullopt);
    Result former_ended(Clock::time_point now);
    Result successor_ended();

    Step step_ = Step::Idle;
    std::optional<Clock::time_point> deadline_;
    bool is_prepared_ = false;
};

}  // namespace penstock::gateway
