// SPDX-License-Identifier: Apache-2.0
// All workers of the process: memory allocated at start, lcores launched, snapshots published to them, and
// the rings that join them to each other and to the one thread that does the I/O of the twins. Control
// threads only; each function states which one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/adopt/former.hpp"
#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/punt_class.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/bfd/engine.hpp"
#include "dataplane/config/publish.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/copies/store.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "dataplane/pipeline/state/flow_log.hpp"
#include "dataplane/worker/idle.hpp"
#include "dataplane/worker/inspect.hpp"
#include "dataplane/worker/latencies.hpp"

struct rte_mbuf;

namespace penstock::worker {

// Properties of a NicPort that a worker needs; plain data, filled by drivers.
struct PortPlan {
    NicPortId id;
    uint16_t dpdk_port = 0;
    uint16_t rx_queues = 1;  // queue q is polled by worker q % workers
    // worker w sends on queue w; with fewer queues than workers, worker w % tx_queues sends the packets of
    // worker w
    uint16_t tx_queues = 1;
    // the port guarantees that a flow's packets always arrive on one queue (pipeline::PortPromises)
    bool flow_stays_on_queue = false;
    bool rx_checksum_checked = false;  // the NIC verifies IPv4 header checksums on receipt
    MacAddr mac;
    // the rule by which its RSS selects a worker; empty: not predictable
    std::optional<nat::ReplyHash> reply_hash = {};
    // rte_flow rules steer each block of SNAT ports to its owner's queue (pipeline::PortPromises)
    bool snat_blocks_on_queue = false;
    bool rx_interrupts = false;  // its receive queues can wake a sleeping worker (IdleMode::Adaptive)
};

// Provides the memory of a table that may outlive the process: `bytes` from the start of a cache line, for
// the CPUs of NUMA node `socket` (-1: unknown). It need not be zeroed. Called on the thread of start(). The
// memory must stay until the WorkerSet is gone, and is never given back to the provider. An error ends the
// start.
using TableMemory =
    std::function<Result<std::span<std::byte>>(const std::string& name, size_t bytes, int socket)>;

struct WorkerSetOptions {
    std::vector<unsigned> lcores;  // one EAL lcore per worker
    std::vector<unsigned> cpus;    // the CPU behind each lcore, for display
    uint32_t connections_per_worker = limits::kConnectionsDefault;
    uint32_t affinity_entries = limits::kAffinityEntriesDefault;  // of all workers together
    uint32_t burst = limits::kBurstMax;                           // packets taken from a queue at once
    nat::PortRange snat_ports;  // contains SnatConfig.ports of every snapshot
    std::vector<PortPlan> ports;
    // With the secret of the former process, adopted connections stay with their workers.
    HashKey secret = HashKey::random();
    // For the tables "connections-N" of worker N, and "affinity". Empty: EAL's memory.
    TableMemory table_memory = {};
    // What a former process left. Adopted before the workers run, as far as the initial snapshot allows it.
    // That must therefore be the last good one, with SNAT addresses and the host's addresses.
    std::optional<adopt::FormerTables> former = {};
    // Called when the tables are complete, before the first packet; on the thread of WorkerSet::start().
    std::function<void(const adopt::Report& report)> before_launch = {};
    IdleMode idle = IdleMode::Poll;
    // The connections with flow records; empty: there are no records, and they take no memory.
    std::optional<pipeline::FlowSelection> flow_records = {};
    Latencies latencies = Latencies::Off;  // Off takes no memory
    bool has_bfd = false;                  // worker 0 runs BFD sessions
    // Copies of other gateways' connections, which the workers take over; outlives the WorkerSet. Null: off.
    copies::Store* copies = nullptr;
};

// A next hop that a worker needs and that Linux shall resolve or re-confirm.
struct NeighbourRequest {
    NicPortId egress;
    IpAddr address;
};

class WorkerSet {
 public:
    // Allocates all memory, publishes `initial`, launches the workers: prepare() and launch(). The error
    // Exhausted names what did not fit.
    static Result<std::unique_ptr<WorkerSet>> start(WorkerSetOptions options,
                                                    std::unique_ptr<config::Snapshot> initial);
    // The same without workers that run. Another snapshot may be published before launch().
    static Result<std::unique_ptr<WorkerSet>> prepare(WorkerSetOptions options,
                                                      std::unique_ptr<config::Snapshot> initial);
    // Whether prepare() would lay out memory for these ports in the same way: they have the same queues and
    // reply hashes as its own.
    [[nodiscard]] bool fits(std::span<const PortPlan> ports) const;
    // What is known of the ports since they were started, before launch(). Internal: they do not fit.
    Status set_ports(std::vector<PortPlan> ports);
    // Adopts `former` and launches the workers. Once. `before_launch`: as in WorkerSetOptions.
    Status launch(std::optional<adopt::FormerTables> former,
                  const std::function<void(const adopt::Report& report)>& before_launch);
    ~WorkerSet();  // stops and joins the workers, frees every packet still held
    WorkerSet(const WorkerSet&) = delete;
    WorkerSet& operator=(const WorkerSet&) = delete;

    // Stops the loops of the workers and waits for them. Idempotent.
    void stop();

    // Makes `next` the workers' current snapshot and frees its predecessor. Blocks until every worker has
    // passed a quiescent point, within the limit of config::Publisher. Returns the workers that have not;
    // each of them reads `next` as soon as it continues. One control thread at a time. Sets
    // `next->generation` itself: the caller's value is ignored.
    std::vector<WorkerId> publish(std::unique_ptr<config::Snapshot> next);
    // Frees the snapshots kept for workers that had stalled and have continued since. Control threads.
    void reclaim();
    // The snapshot in force, kept alive by the handle: for compile, status and explain. Any control thread;
    // delays publish() by no more than copying a few shared pointers.
    [[nodiscard]] config::Snapshot current() const;

    // The port's device is gone or being removed. Packets that would have left through it are dropped as
    // PortRemoved. Does not wait: the device may be closed once has_passed(), because no worker touches it
    // from then on. One control thread.
    [[nodiscard]] config::Publisher::Moment detach(NicPortId port);
    // Whether every worker has ended the round that it was in at that moment. Control threads.
    [[nodiscard]] bool has_passed(config::Publisher::Moment moment) const;

    // Number of the last flow order (conn/flow_order.hpp) that all workers have finished, together with all
    // earlier ones; 0: none yet. Later snapshots need not hold these. Any control thread.
    [[nodiscard]] uint64_t flow_orders_done() const;

    // Twin I/O thread: takes packets of one class for Linux that arrived on `port`. The caller owns them.
    // Returns how many were written to `out`.
    size_t take_punted(NicPortId port, PuntClass punt_class, std::span<rte_mbuf*> out);
    // Twin I/O thread: sends whole frames from Linux through `port`. Returns how many were taken; the others
    // remain the caller's.
    size_t send_from_host(NicPortId port, std::span<rte_mbuf*> frames);
    // Twin I/O thread: counts a frame that the twin refused (DropReason::PuntFailed), one from Linux that is
    // invalid for the port (HostFrameInvalid), or one that send_from_host() did not take (FromHostRingFull).
    // The latter two count as from_host, too.
    void count_host_drop(DropReason reason, uint64_t packets = 1);
    // The same for these frames, which a running capture records. `port`: that of the twin. The caller frees
    // them afterwards.
    void host_frames_dropped(NicPortId port, DropReason reason, std::span<rte_mbuf* const> frames);

    // Control thread: the next resolution requested by a worker.
    std::optional<NeighbourRequest> take_neighbour_request();

    // One thread, also after stop(): takes the next flow records of all workers in turn. Returns how many
    // were written to `out`.
    size_t take_flow_records(std::span<pipeline::TimedFlowRecord> out);
    // Any thread: records given to the queues, and those lost because a queue was full.
    struct FlowRecordCounts {
        uint64_t written = 0;
        uint64_t lost = 0;
    };
    [[nodiscard]] FlowRecordCounts flow_record_counts() const;

    // Control threads. Removes the affinity entries in force for which `selects` returns true; returns their
    // number. The clients' flows continue.
    uint64_t clear_affinity(const std::function<bool(const AffinityView&)>& selects);
    // One control thread, about once a second: removes entries that are no longer in force from one part of
    // the table after the other, the whole table in kAffinitySweepCalls calls. Workers reuse expired entries
    // without it. The sweep also keeps other dead entries from appearing young.
    static constexpr uint32_t kAffinitySweepCalls = 16;
    void sweep_affinity();

    // The BFD sessions; null without WorkerSetOptions::has_bfd. For one control thread at a time.
    [[nodiscard]] bfd::Engine* bfd() noexcept;

    // What was adopted from a former process; all zero without one. Any thread; never changes.
    [[nodiscard]] const adopt::Report& adopted() const;

    [[nodiscard]] Inspector inspect() const { return Inspector(*this); }

    struct Impl;  // worker_set_impl.hpp: for this folder and tests
    [[nodiscard]] Impl& impl() { return *impl_; }

 private:
    friend class Inspector;
    explicit WorkerSet(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::worker
