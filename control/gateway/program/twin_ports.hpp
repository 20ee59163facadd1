// SPDX-License-Identifier: Apache-2.0
// The workers' side of the twins' I/O: frames that workers punt to Linux, and frames that Linux sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/host/twin_io.hpp"

namespace penstock::gateway {

class TwinPorts final : public drivers::TwinIoPorts {
 public:
    explicit TwinPorts(worker::WorkerSet& workers) : workers_(workers) {}
    size_t take_punted(NicPortId port, PuntClass punt_class, std::span<rte_mbuf*> out) override {
        return workers_.take_punted(port, punt_class, out);
    }
    size_t send_from_host(NicPortId port, std::span<rte_mbuf*> frames) override {
        return workers_.send_from_host(port, frames);
    }
    void frames_dropped(NicPortId port, DropReason reason, std::span<rte_mbuf* const> frames) override {
        workers_.host_frames_dropped(port, reason, frames);
    }

 private:
    worker::WorkerSet& workers_;
};

}  // namespace penstock::gateway
