// SPDX-License-Identifier: Apache-2.0
// Follows routes, neighbours and addresses that Linux has on the twins, and makes Linux resolve next hops.
// Runs its own thread, because a large routing table takes a while to read and to pass on, while the main
// thread moves the twins' frames.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "control/gateway/apply/reconciler.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/host/netlink_mirror.hpp"

namespace penstock::gateway {

class LinuxFollower {
 public:
    // All must outlive it. From here on only this object's thread uses the mirror.
    static Result<std::unique_ptr<LinuxFollower>> start(drivers::NetlinkMirror& mirror,
                                                        const worker::WorkerSet& workers,
                                                        Reconciler& reconciler);
    ~LinuxFollower();
    LinuxFollower(const LinuxFollower&) = delete;
    LinuxFollower& operator=(const LinuxFollower&) = delete;

    // Requests a next hop that a worker waits for. Never blocks. If the thread is far behind, requests are
    // dropped, and the worker repeats its request. Any thread.
    void resolve(const worker::NeighbourRequest& request);
    // Number of rounds of the thread's loop, at least one per second; 0 before the first. Any thread.
    [[nodiscard]] uint64_t rounds() const noexcept { return rounds_.load(std::memory_order_relaxed); }

 private:
    using Clock = std::chrono::steady_clock;
    LinuxFollower(drivers::NetlinkMirror& mirror, const worker::WorkerSet& workers, Reconciler& reconciler,
                  int wake);
    void run(const std::stop_token& stop);
    void wait(Clock::time_point until) const;
    void hear_linux(Clock::time_point now);
    void resolve_requested(Clock::time_point now);
    void look_after_neighbours(Clock::time_point now);

    drivers::NetlinkMirror& mirror_;
    const worker::WorkerSet& workers_;
    Reconciler& reconciler_;
    const int wake_;  // an eventfd
    std::mutex mutex_;
    std::vector<worker::NeighbourRequest> requested_;
    std::atomic<uint64_t> rounds_{0};
    std::jthread thread_;
};

}  // namespace penstock::gateway
