// What the main thread does while the gateway runs: the twins' I/O, the ports' life, and waiting for a signal to stop. All of it ends up in
// one sleep (TwinIo::poll_once), so that no thread spins on the main core. Nothing here takes longer than a few bursts of frames: a routing
// daemon's hellos and answers to ARP pass through this thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "control/gateway/flow_follower.hpp"
#include "control/gateway/linux_follower.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/nic_port.hpp"
#include "drivers/tap_twin.hpp"
#include "drivers/twin_io.hpp"

namespace penstock::gateway {

// SIGTERM and SIGINT become readable on a descriptor. Call before any thread starts: they inherit the mask.
class StopSignals {
 public:
    static Result<StopSignals> block();
    StopSignals(StopSignals&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    StopSignals& operator=(StopSignals&&) = delete;
    ~StopSignals();
    [[nodiscard]] int fd() const noexcept { return fd_; }
    // The signal that came, 0 where none did. Never blocks.
    [[nodiscard]] int take() noexcept;

 private:
    explicit StopSignals(int fd) noexcept : fd_(fd) {}
    int fd_;
};

// All outlive the call.
struct ControlLoop {
    drivers::TwinIo& twin_io;
    worker::WorkerSet& workers;
    LinuxFollower& linux_follower;
    FlowFollower& flows;
    std::span<const std::unique_ptr<drivers::NicPort>> ports;
    std::span<const std::unique_ptr<drivers::TapTwin>> twins;  // by NicPortId, as `ports`
    StopSignals& signals;
    std::atomic<uint64_t>& rounds;  // counted

    // Until a signal comes; which one.
    int run();

 private:
    using Clock = std::chrono::steady_clock;
};

}  // namespace penstock::gateway
