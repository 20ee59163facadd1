// SPDX-License-Identifier: Apache-2.0
// NicPorts from the options to running ports, and what workers and flow rules need to know about them.
//
//   probe_nic_ports() -> configure_nic_ports() -> (the twins open) -> start_nic_ports() -> worker_options()
//     probed and configured,                  started, with        for WorkerSet::start()
//     with buffers                            their flow rules
//
// Main thread, at start.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/gateway/options/options.hpp"
#include "control/gateway/rules/flow_follower.hpp"
#include "control/gateway/upgrade/memory_plan.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/eal.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock::gateway {

using NicPorts = std::vector<std::unique_ptr<drivers::NicPort>>;

// The order of the steps of a start.
enum class StartOrder : uint8_t {
    Alone,   // no process has the ports
    Beside,  // a successor opens the ports while the former process has them
    InTurn,  // a successor probes the ports meanwhile, and opens them when the former process has closed them
    After,  // a successor probes and opens the ports when the former process has closed them. Its workers and
            // buffers are prepared before, like those of the former process
};

// The PCI devices of ports and of their members, for EAL to probe.
[[nodiscard]] std::vector<std::string> pci_devices(const std::vector<PortOption>& ports);
// Interfaces whose frames Linux's stack would get while no process has the ports.
[[nodiscard]] std::vector<std::string> guarded_interfaces(const std::vector<PortOption>& ports);
// The order for the successor of a process with these ports: never Alone.
[[nodiscard]] StartOrder order_of_successor(const std::vector<PortOption>& ports);
// Called after each port, because one may take seconds.
using PortDone = std::function<void()>;
// Appends the ports, also those before one that fails, to `ports`, and creates the pools of their buffers.
// `rss_key` is asked of each port.
[[nodiscard]] Status probe_nic_ports(const Options& options, unsigned workers,
                                     const std::vector<uint8_t>& rss_key, StartOrder order,
                                     drivers::Mempools& pools, NicPorts& ports, const PortDone& done);
// Opens the queues of the ports.
[[nodiscard]] Status configure_nic_ports(unsigned workers, const drivers::Mempools& pools,
                                         const NicPorts& ports, const PortDone& done);
// Starts the ports, logs their properties, and returns the follower of their flow rules, which is not yet
// started. Runs after configure_nic_ports(), because the rules that a port supports are known only after its
// start, and the path of its replies depends on them.
[[nodiscard]] Result<std::unique_ptr<FlowFollower>> start_nic_ports(const Options& options, unsigned workers,
                                                                    const NicPorts& ports,
                                                                    const PortDone& done);
// By which the memory of this process is laid out.
[[nodiscard]] MemoryPlan memory_plan(unsigned workers, const drivers::Mempools& pools, const NicPorts& ports);
// The ports for WorkerSet::prepare() that such a process would have.
[[nodiscard]] std::vector<worker::PortPlan> ports_of(const MemoryPlan& plan);
// The options of WorkerSet::start() for these ports. Logs remarks about the SNAT ports of workers.
[[nodiscard]] worker::WorkerSetOptions worker_options(const Options& options, const drivers::Eal& eal,
                                                      const NicPorts& ports);

}  // namespace penstock::gateway
