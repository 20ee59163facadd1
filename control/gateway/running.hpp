// The parts of a running gateway that can be looked at. A view borrows them; all outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "control/gateway/caretaker.hpp"
#include "control/gateway/flow_follower.hpp"
#include "control/gateway/reconciler.hpp"
#include "control/gateway/stream_target.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/nic_port.hpp"
#include "drivers/twin_io.hpp"

namespace penstock::gateway {

struct Running {
    const Reconciler& reconciler;
    const StreamTarget& stream;
    Caretaker& caretaker;
    worker::WorkerSet& workers;
    std::span<const std::unique_ptr<drivers::NicPort>> ports;  // by NicPortId
    const drivers::TwinIo& twin_io;
    const FlowFollower& flows;
    std::string memory;  // Eal::memory_description()
    std::chrono::steady_clock::time_point started_at;
};

}  // namespace penstock::gateway
