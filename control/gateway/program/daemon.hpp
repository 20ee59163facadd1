// SPDX-License-Identifier: Apache-2.0
// A gateway from start to shutdown: the steps of main(), and the owner of all components. Members are
// declared in the order of creation, and are destroyed in reverse order.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "control/base/file_lock.hpp"
#include "control/bfd/frr_link.hpp"
#include "control/flow_records/exporter.hpp"
#include "control/gateway/apply/drain_file.hpp"
#include "control/gateway/apply/reconciler.hpp"
#include "control/gateway/care/caretaker.hpp"
#include "control/gateway/options/options.hpp"
#include "control/gateway/program/control_loop.hpp"
#include "control/gateway/program/loop_watch.hpp"
#include "control/gateway/program/port_setup.hpp"
#include "control/gateway/program/running.hpp"
#include "control/gateway/program/stop_drain.hpp"
#include "control/gateway/program/twin_ports.hpp"
#include "control/gateway/rules/blocklist_watch.hpp"
#include "control/gateway/rules/flow_follower.hpp"
#include "control/gateway/shares/link_duty.hpp"
#include "control/gateway/shares/plan_watch.hpp"
#include "control/gateway/shares/share_copies.hpp"
#include "control/gateway/tables/table_keeper.hpp"
#include "control/gateway/upgrade/handover.hpp"
#include "control/gateway/upgrade/upgrade_requests.hpp"
#include "control/gateway/views/capture_view.hpp"
#include "control/gateway/views/explain_view.hpp"
#include "control/gateway/views/status_view.hpp"
#include "control/gateway/views/stream_target.hpp"
#include "control/metrics/prometheus.hpp"
#include "control/process/service_manager.hpp"
#include "control/process/service_reports.hpp"
#include "control/process/signals.hpp"
#include "control/rpc/server.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/copies/store.hpp"
#include "dataplane/worker/worker_set.hpp"
#include "drivers/eal/eal.hpp"
#include "drivers/eal/mempool.hpp"
#include "drivers/host/link_probes.hpp"
#include "drivers/host/netlink_mirror.hpp"
#include "drivers/host/tap_twin.hpp"
#include "drivers/host/twin_io.hpp"
#include "drivers/host/vip_addresses.hpp"
#include "drivers/host/vip_announcement.hpp"
#include "drivers/host/vip_routes.hpp"
#include "drivers/port/nic_port.hpp"

namespace penstock::gateway {

// Differs after each save of a file; all zero: there is none.
struct FileVersion {
    ino_t inode = 0;
    off_t bytes = 0;
    time_t seconds = 0;  // of its modification
    long nanoseconds = 0;
    bool operator==(const FileVersion&) const = default;
};
[[nodiscard]] FileVersion version_of(const std::string& path);

class Daemon {
 public:
    Daemon(Options options, Handover handover);
    ~Daemon();
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    // The steps, in the order of steps(). Each one requires the previous ones. The first error ends the
    // start. Listed in the order of a start alone.
    using Step = Status (Daemon::*)();
    [[nodiscard]] std::span<const Step> steps() const;
    Status catch_signals();    // before any thread exists
    Status lock_files();       // no other process may use the sockets or the state file
    Status plan_workers();     // their CPUs; checks that each has SNAT ports
    Status open_tables();      // tables that outlive the process, and those of the former one
    Status start_eal();        // memory and lcores; this thread becomes the main lcore
    Status take_over();        // a successor waits until the former process has handed over
    Status probe_ports();      // DPDK ports and their buffers
    Status configure_ports();  // their queues
    Status open_twins();       // the TAP twins
    Status open_mirror();      // the routes of Linux through the twins
    Status load_last_good();   // the initial state
    Status start_ports();      // the NICs receive, and the rules that they support are known
    Status prepare_workers();  // memory, tables and rings
    Status plan_memory();      // of a successor that cannot have the ports yet: workers and buffers
    Status attach_ports();     // of a successor that has prepared the workers before it could start the ports
    Status refresh_state();    // of a successor that has loaded it before take_over()
    Status launch_workers();   // connections of the former process; packets are forwarded from here on
    Status start_twin_io();    // the twins' frames move from here on
    Status start_reconciler();  // states and routes are applied from here on
    Status serve();             // gRPC, metrics and health

    // Returns after a signal to stop.
    void run();

 private:
    void publish(std::unique_ptr<config::Snapshot> next);
    [[nodiscard]] Status load_state();  // makes initial_ of the last good state and the current routes
    void reload();
    void begin_stop_drain();
    void report(const LoopHealth& health);  // to the service manager
    void report_end(const std::optional<process::Signal>& signal);
    void hand_over();
    [[nodiscard]] Status lock_named_files();
    [[nodiscard]] StartOrder start_order() const;
    void inherit_interfaces();
    void install_rules(config::Snapshot& initial);
    Status create_workers(worker::WorkerSetOptions options);
    void place_tables(worker::WorkerSetOptions& options);
    [[nodiscard]] std::optional<adopt::FormerTables> former_tables();
    void put_tables_in_force(const adopt::Report& report);
    void open_bfd();
    Status read_shares();
    void follow_shares();
    Status place_copies(worker::WorkerSetOptions& options);
    void prepare_copies();
    void exchange_copies();
    void prepare_link_duty();
    [[nodiscard]] LinkHolder::Peer holder_of(const std::string& gateway) const;
    [[nodiscard]] std::vector<bfd::Twin> bfd_twins() const;
    void open_metrics(std::chrono::steady_clock::time_point now);
    Status open_vips();
    [[nodiscard]] VipAnnouncerOptions announcer_options();
    [[nodiscard]] bool has_stopped_worker() const;
    [[nodiscard]] std::vector<PortState> port_states() const;
    [[nodiscard]] std::vector<IpAddr> own_addresses() const;

    Options options_;
    Handover handover_;
    const StartOrder order_;
    bool has_taken_over_ = false;
    UpgradeRequests upgrades_;
    process::ServiceManager service_manager_;
    process::ServiceReports reports_;  // used by the thread of loops_
    // At the end of serve(): what report() reads is complete. Released there, acquired by report().
    std::atomic<bool> serves_{false};
    std::chrono::steady_clock::time_point started_at_ = std::chrono::steady_clock::now();
    std::chrono::system_clock::time_point started_on_ = std::chrono::system_clock::now();
    std::optional<process::Signals> signals_;
    std::vector<FileLock> file_locks_;
    host::CorePlan cores_;
    nat::PortRange host_ephemeral_;
    std::unique_ptr<TableKeeper> tables_;  // destroyed after the workers
    std::vector<uint8_t> rss_key_;         // asked of all ports
    HashKey secret_;                       // of the workers
    std::unique_ptr<drivers::Eal> eal_;
    drivers::Mempools pools_;
    std::vector<std::unique_ptr<drivers::NicPort>> ports_;
    std::vector<std::unique_ptr<drivers::TapTwin>> twins_;
    std::unique_ptr<drivers::NetlinkMirror> mirror_;
    std::unique_ptr<Reconciler> reconciler_;
    std::unique_ptr<config::Snapshot> initial_;
    FileVersion loaded_;                     // of the state file
    std::unique_ptr<copies::Store> copies_;  // null: no copies. Destroyed after the workers
    std::unique_ptr<worker::WorkerSet> workers_;
    std::unique_ptr<bfd::FrrLink> bfd_;              // null: off. Destroyed before the workers
    std::atomic<bool> loops_forward_{true};          // no loop that traffic needs has stalled; read by bfd_
    std::unique_ptr<LinuxFollower> linux_follower_;  // destroyed before the reconciler stops
    std::unique_ptr<FlowFollower> flows_;            // destroyed before the workers and the ports
    std::unique_ptr<TwinPorts> twin_ports_;
    std::unique_ptr<drivers::TwinIo> twin_io_;
    std::jthread twin_thread_;                                      // uses twin_io_ before and after run()
    std::unique_ptr<drivers::VipAddresses> vip_addresses_;          // VipPresenceMode::Addresses only
    std::unique_ptr<drivers::VipRoutes> vip_routes_;                // VipPresenceMode::Routes and Arp
    std::unique_ptr<drivers::VipAnnouncements> vip_announcements_;  // VipPresenceMode::Addresses and Arp
    std::unique_ptr<drivers::LinkProbes> link_probes_;              // VipPresenceMode::Arp with shares
    StopDrain stop_drain_;
    std::unique_ptr<BlocklistWatch> blocklist_;  // null: no list
    std::unique_ptr<PlanWatch> plan_watch_;      // null: no shares. Calls caretaker_ and share_copies_
    std::unique_ptr<ShareCopies> share_copies_;  // null: no shares. Destroyed before the workers
    std::unique_ptr<LinkDuty>
        link_duty_;  // null: no shares on links. Calls share_copies_, bfd_ and caretaker_
    std::unique_ptr<flow_records::Exporter> flow_records_;  // null: off. Destroyed before the workers
    std::atomic<uint64_t> control_rounds_{0};
    std::unique_ptr<LoopWatch> loops_;  // watches the loops; the caretaker's health endpoints read it
    std::unique_ptr<Caretaker> caretaker_;
    std::unique_ptr<StreamTarget> stream_;
    DrainFile drain_file_;
    std::unique_ptr<Captures> captures_;
    std::unique_ptr<Running> running_;
    std::unique_ptr<StatusView> status_;
    std::unique_ptr<ExplainView> explain_;
    std::unique_ptr<rpc::Server> server_;
    std::unique_ptr<metrics::Exporter> exporter_;
    std::chrono::steady_clock::time_point metrics_at_{};  // time of the next attempt to listen
};

}  // namespace penstock::gateway
