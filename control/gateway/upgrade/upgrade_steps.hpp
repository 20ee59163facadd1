// SPDX-License-Identifier: Apache-2.0
// Order of the steps by which a gateway process is replaced by its successor, as its supervisor takes them. A
// state machine without I/O: events and the time go in, orders come out (program/supervisor.cpp carries them
// out).
//
//   Idle -> Preparing -> HandingOver -> TakingOver -> Idle
//            successor    the former     the successor forwards,
//            starts EAL   closes ports   then serves its API
//
// If the successor ends before the former process has begun to stop, the former one continues. If it ends
// later, or does not forward or serve in time, the former binary starts again on the same tables.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace penstock::gateway {

class UpgradeSteps {
 public:
    using Clock = std::chrono::steady_clock;
    // Without a step of the successor while the former process forwards, so it may be long: EAL of a large
    // machine. That of an emulated one took up to 126 s.
    static constexpr std::chrono::seconds kPrepareMax{180};
    static constexpr std::chrono::seconds kHandOverMax{5};  // then the former process is killed
    // Without a step of the successor before it forwards; then it is killed. Each port is a step: cards may
    // take seconds to start, and would not start faster in another process.
    static constexpr std::chrono::seconds kTakeOverMax{5};
    static constexpr std::chrono::seconds kServeMax{
        30};  // when it forwards, until its API is served; likewise

    enum class Step { Idle, Preparing, HandingOver, TakingOver, Restoring };
    enum class Event {
        Requested,      // by the operator
        Prepared,       // the successor can take over
        HandedOver,     // the former process has closed its ports and released its locks
        Progress,       // the successor has made a step
        Launched,       // the workers of the successor run, so the pause is over
        Forwards,       // the successor forwards, and its API is served
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
    bool is_launched_ = false;
};

}  // namespace penstock::gateway
