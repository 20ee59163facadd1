// SPDX-License-Identifier: Apache-2.0
// The parts of a running gateway that views read. A view borrows them; all outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "control/bfd/frr_link.hpp"
#include "control/flow_records/exporter.hpp"
#include "control/gateway/apply/drain_file.hpp"
#include "control/gateway/apply/reconciler.hpp"
#include "control/gateway/care/caretaker.hpp"
#include "control/gateway/program/drain_readings.hpp"
#include "control/gateway/program/stop_drain.hpp"
#include "control/gateway/rules/flow_follower.hpp"
#include "control/gateway/shares/link_duty.hpp"
#include "control/gateway/shares/plan_watch.hpp"
#include "control/gateway/shares/share_copies.hpp"
#include "control/gateway/tables/table_keeper.hpp"
#include "control/gateway/upgrade/upgrade_requests.hpp"
#include "control/gateway/views/capture_view.hpp"
#include "control/gateway/views/stream_target.hpp"
#include "control/rpc/tcp_acceptor.hpp"
#include "control/tls/watch.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/host/twin_io.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock::gateway {

struct Running {
    const Reconciler& reconciler;
    const StreamTarget& stream;
    Caretaker& caretaker;
    worker::WorkerSet& workers;
    std::span<const std::unique_ptr<drivers::NicPort>> ports;  // by NicPortId
    const drivers::TwinIo& twin_io;
    const drivers::Mempools& pools;
    const FlowFollower& flows;
    const LoopWatch& loops;
    const DrainFile& drain_file;
    const StopDrain& stop_drain;
    const TableKeeper& tables;
    UpgradeRequests& upgrades;
    Captures& captures;
    std::string memory;  // Eal::memory_description()
    std::chrono::steady_clock::time_point started_at;
    // Taken once: a value computed at each scrape would differ each time and look like a restart.
    std::chrono::system_clock::time_point started_on;
    const tls::Watch* tls = nullptr;                       // null: no TCP address
    const rpc::TcpAcceptor* tcp = nullptr;                 // likewise
    const flow_records::Exporter* flow_records = nullptr;  // null: off
    const PlanWatch* shares = nullptr;                     // null: no plan of shares
    ShareCopies* copies = nullptr;                         // likewise
    const LinkDuty* link_duty = nullptr;                   // null: no shares on links
    const bfd::FrrLink* bfd = nullptr;                     // null: off

    // Number of backend ids that are or were in use.
    [[nodiscard]] uint32_t backend_ids() const {
        return reconciler.read(
            [](const ReconcilerState& state) { return state.compiler.ids().backends.size(); });
    }
    // Number of connections of all workers that have not ended.
    [[nodiscard]] uint64_t open_connections() const { return open_flows(workers, reconciler); }
};

}  // namespace penstock::gateway
