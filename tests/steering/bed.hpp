// SPDX-License-Identifier: Apache-2.0
// A gateway of real parts on software NICs: two NicPorts and their rules, set up as by the daemon, workers on
// lcores that share a CPU, and a test that holds both cables. The NICs' arguments determine their properties
// (tests/support/soft_nic/soft_nic.hpp).
//
//   clients --- net_soft (uplink, 10.80.1.1)
//               [NicPort, workers, NicPort]
//               net_soft (cluster, 10.80.2.1) --- backends 10.80.2.11 ...
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/gateway/rules/flow_follower.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/port/nic_port.hpp"
#include "tests/support/soft_nic/soft_nic.hpp"
#include "tests/support/virtual_gateway.hpp"

namespace penstock::test {

struct BedOptions {
    uint32_t workers = 1;
    std::string nic;  // arguments of both NICs
    std::vector<TestService> services;
    // Per worker: all 100,000 of a run may land on one worker, and each IPv6 connection, half of them, takes
    // two units.
    uint32_t connections = 160'000;
    bool follows_rules = true;  // false: the test has its own FlowFollower
};

class SteeringBed {
 public:
    static Result<std::unique_ptr<SteeringBed>> start(const BedOptions& options);
    ~SteeringBed();
    SteeringBed(const SteeringBed&) = delete;
    SteeringBed& operator=(const SteeringBed&) = delete;

    [[nodiscard]] drivers::NicPort& port(NicPortId id) { return *ports_[id.value]; }
    [[nodiscard]] SoftNic& nic(NicPortId id) { return *nics_[id.value]; }
    [[nodiscard]] SoftWire& wire(NicPortId id) { return wires_[id.value]; }
    [[nodiscard]] worker::WorkerSet& workers() { return *workers_; }
    // Only of a bed that follows rules.
    [[nodiscard]] const gateway::FlowFollower& flows() const { return *flows_; }
    // The ports as input of a FlowFollower, as in control/gateway/program/daemon.cpp.
    [[nodiscard]] std::vector<gateway::FlowFollower::Port> flow_ports() const;
    [[nodiscard]] VirtualGateway& gateway() { return gateway_; }
    // The notices of the ports during probe, configuration and start, one per line.
    [[nodiscard]] const std::string& notices() const { return notices_; }

    // Sum over all workers.
    [[nodiscard]] uint64_t count(stats::Counter counter) const;
    [[nodiscard]] uint64_t connections() const;
    [[nodiscard]] uint64_t drops() const;
    // "fragment 3, route-missing 1": for failures.
    [[nodiscard]] std::string drops_by_name() const;

 private:
    SteeringBed() = default;
    Status start_port(NicPortId id, const BedOptions& options);
    Status start_workers(const BedOptions& options);

    std::string notices_;
    std::vector<uint8_t> rss_key_;  // of both ports, drawn as by the daemon
    VirtualGateway gateway_;
    drivers::Mempools pools_;
    std::vector<std::unique_ptr<drivers::NicPort>> ports_;
    std::vector<SoftNic*> nics_;
    std::vector<SoftWire> wires_;
    std::unique_ptr<gateway::FlowFollower> flows_;
    std::unique_ptr<worker::WorkerSet> workers_;
};

}  // namespace penstock::test
