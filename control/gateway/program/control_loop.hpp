// SPDX-License-Identifier: Apache-2.0
// The main thread's loop while the gateway runs: the twins' I/O, the life of the ports, and signals. All
// events wake one sleep (TwinIo::poll_once), so that no thread spins on the main core. Each operation takes
// at most the time of a few bursts of frames, because a routing daemon's hellos and ARP replies pass through
// this thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "control/gateway/program/linux_follower.hpp"
#include "control/gateway/program/stop_drain.hpp"
#include "control/gateway/rules/flow_follower.hpp"
#include "control/process/signals.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/host/tap_twin.hpp"
#include "drivers/host/twin_io.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock::gateway {

// All must outlive the call.
struct ControlLoop {
    drivers::TwinIo& twin_io;
    worker::WorkerSet& workers;
    LinuxFollower& linux_follower;
    FlowFollower& flows;
    std::span<const std::unique_ptr<drivers::NicPort>> ports;
    std::span<const std::unique_ptr<drivers::TapTwin>> twins;  // by NicPortId, as `ports`
    process::Signals& signals;
    std::atomic<uint64_t>& rounds;  // incremented in each round
    std::function<void()> reload;   // called for SIGHUP; must not block
    std::function<void(std::chrono::steady_clock::time_point)> each_second;  // likewise
    std::function<void()> link_changed;                                      // likewise
    // A signal to stop begins a drain (begin_drain, must not block), which ends at the step that drain_step
    // returns.
    StopDrain& stop_drain;
    std::function<void()> begin_drain;
    std::function<DrainStep()> drain_step;
    std::function<bool()> must_hand_over;  // to a successor

    // Returns the signal that stops the gateway, after its drain; empty: it hands over to a successor.
    std::optional<process::Signal> run();

 private:
    using Clock = std::chrono::steady_clock;
    // Returns the signal that stops the gateway now. `stopping_on`: set to the signal that begins a drain.
    [[nodiscard]] std::optional<process::Signal> handle_signals(Clock::time_point now,
                                                                std::optional<process::Signal>& stopping_on);
};

}  // namespace penstock::gateway
