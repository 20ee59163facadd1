// All workers of the process: memory taken at start, lcores launched, snapshots published to them, and the rings between them and the one
// thread that does the twins' I/O. Control threads only; which one is said at each function.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/base/hash.hpp"
#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/limits.hpp"
#include "dataplane/base/punt_class.hpp"
#include "dataplane/base/result.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/config/publish.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/nat/reply_hash.hpp"
#include "dataplane/worker/idle.hpp"
#include "dataplane/worker/inspect.hpp"

struct rte_mbuf;

namespace penstock::worker {

// What a worker must know of a NicPort; plain data, filled by drivers.
struct PortPlan {
    NicPortId id;
    uint16_t dpdk_port = 0;
    uint16_t rx_queues = 1;  // queue q is polled by worker q % workers
    uint16_t tx_queues =
        1;  // worker w sends on queue w; where there are fewer queues than workers, workers without one pass packets on
    // to worker w % tx_queues, which sends for them
    bool flow_stays_on_queue =
        false;  // the port promises that a flow's packets always arrive on one queue (pipeline::PortPromises)
    bool rx_checksum_checked = false;  // the NIC verifies IPv4 header checksums on receipt
    MacAddr mac;
    std::optional<nat::ReplyHash> reply_hash =
        {};  // how its RSS chooses a worker; empty: that cannot be foretold
    bool snat_blocks_on_queue =
        false;  // rte_flow rules lead each block of SNAT ports to its owner's queue (pipeline::PortPromises)
    bool rx_interrupts = false;  // its receive queues can wake a sleeping worker (IdleMode::Adaptive)
};

struct WorkerSetOptions {
    std::vector<unsigned> lcores;  // one EAL lcore per worker
    std::vector<unsigned> cpus;    // the CPU behind each lcore, for people
    uint32_t connections_per_worker = limits::kConnectionsDefault;
    uint32_t affinity_entries = limits::kAffinityEntriesDefault;  // of all workers together
    uint32_t burst = limits::kBurstMax;                           // packets taken from a queue at once
    nat::PortRange snat_ports;  // every snapshot's SnatConfig.ports lies within
    std::vector<PortPlan> ports;
    HashKey secret = HashKey::random();
    IdleMode idle = IdleMode::Poll;
};

// A next hop that a worker needs and Linux has not resolved (or should re-confirm).
struct NeighbourRequest {
    NicPortId egress;
    IpAddr address;
};

class WorkerSet {
 public:
    // Takes all memory, publishes `initial`, launches the workers. Exhausted names what did not fit.
    static Result<std::unique_ptr<WorkerSet>> start(WorkerSetOptions options,
                                                    std::unique_ptr<config::Snapshot> initial);
    ~WorkerSet();  // stops and joins the workers, frees every packet still held
    WorkerSet(const WorkerSet&) = delete;
    WorkerSet& operator=(const WorkerSet&) = delete;

    // Asks the workers to leave their loops and waits. Idempotent.
    void stop();

    // Makes `next` what workers read and frees the predecessor; blocks until every worker has passed a quiescent point, within the limit of
    // config::Publisher. Returns the workers that have not: each reads `next` as soon as it goes on. One control thread at a time. Sets
    // `next->generation` itself: the caller's value is ignored.
    std::vector<WorkerId> publish(std::unique_ptr<config::Snapshot> next);
    // Frees what was kept for workers that had stopped and have gone on since. Control threads.
    void reclaim();
    // The snapshot in force, kept alive by the handle: for compile, status and explain. Any control thread; does not delay publish()
    // for longer than copying a few shared pointers.
    [[nodiscard]] config::Snapshot current() const;

    // The port's device is gone or going. What would have left through it is dropped as PortRemoved. Does not wait: the device may be
    // closed once has_passed(), because no worker touches it from then on. One control thread.
    [[nodiscard]] config::Publisher::Moment detach(NicPortId port);
    // Whether every worker has ended the round that it was in at that moment. Control threads.
    [[nodiscard]] bool has_passed(config::Publisher::Moment moment) const;

    // Number of the last flow order (conn/flow_order.hpp) that all workers have finished, and with it all before; 0: none yet. Later
    // snapshots need not hold those. Any control thread.
    [[nodiscard]] uint64_t flow_orders_done() const;

    // Twin I/O thread: packets of one class for Linux that arrived on `port`. The caller owns them. Returns how many were written to `out`.
    size_t take_punted(NicPortId port, PuntClass punt_class, std::span<rte_mbuf*> out);
    // Twin I/O thread: whole frames from Linux to leave through `port`. Returns how many were taken; the rest stays the caller's.
    size_t send_from_host(NicPortId port, std::span<rte_mbuf*> frames);
    // Twin I/O thread: counts a frame that the twin refused (DropReason::PuntFailed), one from Linux that did not fit the port
    // (HostFrameInvalid), or one that send_from_host() did not take (FromHostRingFull). The latter two count as from_host, too.
    void count_host_drop(DropReason reason, uint64_t packets = 1);

    // Control thread: the next resolution that a worker waits for.
    std::optional<NeighbourRequest> take_neighbour_request();

    // Control threads. Forgets the affinity entries in force that `selects` names; how many. The clients' flows go on.
    uint64_t clear_affinity(const std::function<bool(const AffinityView&)>& selects);
    // One control thread, every second or so: removes entries that mean nothing any more from one part of the table after the other, the
    // whole in kAffinitySweepCalls calls. Workers take expired entries as free without it; it keeps others' dead ones from looking young.
    static constexpr uint32_t kAffinitySweepCalls = 16;
    void sweep_affinity();

    [[nodiscard]] Inspector inspect() const { return Inspector(*this); }

    struct Impl;  // worker_set_impl.hpp: for this room, and for tests that hold a publication half open
    [[nodiscard]] Impl& impl() { return *impl_; }

 private:
    friend class Inspector;
    explicit WorkerSet(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::worker
