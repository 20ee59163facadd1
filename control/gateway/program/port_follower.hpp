// SPDX-License-Identifier: Apache-2.0
// Follows the ports while the gateway runs: twins follow the link state of their ports, and a port whose
// device is gone is detached without affecting other ports. Main thread only.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "control/gateway/program/link_report.hpp"
#include "control/gateway/rules/flow_follower.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/host/tap_twin.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock::gateway {

class PortFollower {
 public:
    using Ports = std::span<const std::unique_ptr<drivers::NicPort>>;
    using Twins = std::span<const std::unique_ptr<drivers::TapTwin>>;

    // All must outlive it. `twins` by NicPortId, as `ports`.
    // `changed`: called after a link has come up or gone down, and after a port was removed.
    PortFollower(worker::WorkerSet& workers, FlowFollower& flows, Ports ports, Twins twins,
                 std::function<void()> changed);

    // Called in each round of the main loop. Processes events of the PMDs at once, and polls the ports
    // every 25 ms, because VIPs must leave a lost link within 50 ms (PRESENCE-002).
    void follow(LinkReport::Time now);

 private:
    void give_up(size_t port);
    void close(size_t port);

    worker::WorkerSet& workers_;
    FlowFollower& flows_;
    const Ports ports_;
    const Twins twins_;
    const std::function<void()> changed_;
    std::vector<bool> was_up_;
    std::vector<LinkReport> links_;
    // Detached ports that some worker may still access.
    std::map<size_t, config::Publisher::Moment> leaving_;
    LinkReport::Time next_look_{};
};

}  // namespace penstock::gateway
