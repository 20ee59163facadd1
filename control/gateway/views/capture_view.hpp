// SPDX-License-Identifier: Apache-2.0
// Packet captures on request: starts a capture of the workers, writes its records as pcapng with names
// instead of numbers, and sends them to the client. One at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/gateway/apply/reconciler.hpp"
#include "control/rpc/gateway.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock::gateway {

class Captures {
 public:
    // All must outlive it.
    Captures(worker::WorkerSet& workers, const Reconciler& reconciler,
             std::span<const std::unique_ptr<drivers::NicPort>> ports)
        : workers_(workers), reconciler_(reconciler), ports_(ports) {}

    // As rpc::DebugTarget::capture(). Returns when the capture has ended. Any thread.
    Status run(const rpc::CaptureOrder& order, rpc::CaptureClient& client);

    // Since start; any thread.
    struct Counts {
        bool is_running = false;
        uint64_t begun = 0, records = 0, lost = 0;
    };
    [[nodiscard]] Counts counts() const noexcept {
        return {running_.load(std::memory_order_relaxed), begun_.load(std::memory_order_relaxed),
                records_.load(std::memory_order_relaxed), lost_.load(std::memory_order_relaxed)};
    }

 private:
    class Session;
    [[nodiscard]] Result<std::vector<ServiceId>> ids_of(const std::string& namespace_name,
                                                        const std::string& name) const;

    worker::WorkerSet& workers_;
    const Reconciler& reconciler_;
    const std::span<const std::unique_ptr<drivers::NicPort>> ports_;  // by NicPortId
    std::atomic<bool> running_{false};
    std::atomic<uint64_t> begun_{0}, records_{0}, lost_{0};
};

}  // namespace penstock::gateway
