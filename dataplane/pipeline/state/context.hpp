// SPDX-License-Identifier: Apache-2.0
// All that one worker owns, and the one thing it borrows: the snapshot of this round. The stages are
// functions over a context and a burst. A test builds a context from plain memory and runs them without EAL.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/base/limits.hpp"
#include "dataplane/base/spsc_queue.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/config/snapshot.hpp"
#include "dataplane/conn/aging.hpp"
#include "dataplane/conn/backend_index.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/lb/affinity.hpp"
#include "dataplane/lb/scheduler.hpp"
#include "dataplane/nat/port_proposer.hpp"
#include "dataplane/nat/reply_owner.hpp"
#include "dataplane/pipeline/fragments/fragment_table.hpp"
#include "dataplane/pipeline/state/flow_log.hpp"
#include "dataplane/pipeline/state/flow_order_work.hpp"
#include "dataplane/pipeline/state/latency_meter.hpp"
#include "dataplane/pipeline/state/moved_flows.hpp"
#include "dataplane/pipeline/state/own_segment_list.hpp"
#include "dataplane/pipeline/state/port_promises.hpp"
#include "dataplane/pipeline/state/prefix_counts.hpp"
#include "dataplane/pipeline/state/prefix_limiter.hpp"
#include "dataplane/pipeline/state/reject_limiter.hpp"
#include "dataplane/pipeline/state/search_budget.hpp"
#include "dataplane/pipeline/state/unheld_asks.hpp"
#include "dataplane/route/neighbour_use.hpp"
#include "dataplane/route/pending.hpp"
#include "dataplane/stats/counters.hpp"

struct rte_mbuf;

namespace penstock::bfd {
class Engine;
}
namespace penstock::copies {
class Store;
}

namespace penstock::pipeline {

class Tap;

// A next hop to be resolved or re-confirmed by Linux. Read by the control thread.
struct ResolveRequest {
    NicPortId egress;
    IpAddr address;
};
// 256: one for each packet that may wait (limits::kPendingMax). A lost request is repeated by the next
// packet.
using ResolveQueue = SpscQueue<ResolveRequest, limits::kPendingMax>;

// Properties of a NicPort that the stages need.
struct PortFacts {
    MacAddr mac;
    PortPromises promises;
};

struct WorkerContext {
    WorkerId self{0};
    uint32_t workers = 1;

    // Borrowed for one round of the poll loop.
    const config::Snapshot* snapshot = nullptr;
    TscTime now;                  // of `timeline`
    CoarseTime now_coarse;        // the same in the unit of connection entries
    route::UseSeconds now_s = 1;  // the same in the unit of neighbour_use

    TscRate rate;
    CoarseClock clock{rate};
    TscTimeline timeline;
    std::array<PortFacts, limits::kNicPortsMax> ports{};
    nat::ReplyOwner owner;

    conn::Table connections;
    conn::BackendIndex by_backend;  // of the connections
    conn::Aging aging;
    PrefixCounts prefixes;  // of the connections
    nat::PortProposer snat_ports;
    lb::SchedulerState schedulers;
    route::PendingPackets<rte_mbuf*> pending;
    UnheldAsks unheld_asks{rate};
    FragmentTable fragments{rate};
    route::NeighbourUse neighbour_use;
    RejectLimiter rejects;  // for RSTs, ABORTs and port unreachables
    // A limiter of its own with the same rate: a flood of echo requests does not suppress rejects.
    RejectLimiter echoes{limits::kRejectsPerSecond, limits::kRejectsBurst, rate};
    // For ICMP errors about packets that exceed an MTU, and about packets with an expired time to live.
    // Neither the senders of the other kind, nor those of rejected packets, keep a host from learning its
    // path MTU.
    PrefixLimiter too_big_answers{limits::kErrorsPerSecondToPrefix, limits::kErrorsBurstToPrefix, rate};
    PrefixLimiter expiry_answers{limits::kErrorsPerSecondToPrefix, limits::kErrorsBurstToPrefix, rate};
    SearchBudget error_searches{rate};
    FlowOrderWork flow_orders{rate};
    RejectLimiter liveness_probes{limits::kLivenessProbesPerSecond, limits::kLivenessProbesBurst,
                                  rate};  // for probes of connections
    OwnSegments own_segments;
    lb::AffinityTable affinity;  // the same memory for all workers
    stats::CounterRows counters;
    ResolveQueue* resolve = nullptr;
    std::array<uint32_t, 256> datagram_ids{};  // for next_datagram_id(), by a hash of the destination
    // Adopted flows whose owner placement does not compute; null: none. The same for all workers.
    const MovedFlows* moved = nullptr;
    // Of the capture that runs (tap.hpp); null: none. Read where packets are dropped, and in the loop of a
    // capture.
    Tap* tap = nullptr;
    FlowLog* flow_log = nullptr;      // null: no flow records
    LatencyMeter* latency = nullptr;  // null: latencies are not measured
    // The BFD sessions; null: off. Only worker 0 uses them, the others hand it their packets.
    bfd::Engine* bfd = nullptr;
    // Copies of other gateways' connections (take_over.hpp); null: none. The same for all workers.
    copies::Store* copies = nullptr;

    stats::WorkerCounters& count() noexcept { return *counters.worker; }
    stats::PortCounters& count(NicPortId port) noexcept { return counters.worker->ports[port.value]; }
    // Returns an identification of the gateway's own for a datagram to `destination`. It differs from this
    // worker's last 2^32 / workers ones to that destination, and almost certainly from those of other
    // workers. The counts of different destinations start at different values, so that one peer's
    // identifications do not predict another's (RFC 7739). A peer can still see how many datagrams lie
    // between two of its own.
    uint32_t next_datagram_id(const IpAddr& destination) noexcept {
        const uint64_t hash = owner.client_hash(destination);
        uint32_t& count = datagram_ids[hash >> 32 & (datagram_ids.size() - 1)];
        return count++ * workers + self.value + static_cast<uint32_t>(hash);
    }
    // Same for IPv4: 65,536 / workers.
    uint16_t next_ipv4_id(const IpAddr& destination) noexcept {
        return static_cast<uint16_t>(next_datagram_id(destination));
    }
    // Starts a round: sets the current time for the stages. `reading`: of the TSC.
    void begin_round(const config::Snapshot* current, TscTime reading) noexcept {
        snapshot = current;
        now = timeline.at(reading.value);
        now_coarse = clock.at(now);
        now_s = static_cast<route::UseSeconds>(rate.to_seconds({now.value}) + 1);  // 0 would mean never
    }
};

// The query of the affinity table for a new flow of this client. Only for a Service with affinity.
[[nodiscard]] lb::AffinityTable::Question affinity_question(const WorkerContext& ctx,
                                                            const lb::Service& service,
                                                            const lb::BackendSet& set, const IpAddr& client,
                                                            CoarseTime now) noexcept;

// The connection is established, or answered: its client's affinity entry is no longer tentative. Only if it
// is_pinned.
PENSTOCK_NOINLINE void confirm_affinity(WorkerContext& ctx, ConnectionIndex index) noexcept;

// Half-open or established, as counted by schedulers (stats::BackendCounters::open).
[[nodiscard]] bool is_open(const conn::Entry& connection) noexcept;

// Releases what a connection that is about to be erased holds, and counts and records its end. Aging calls it
// before it erases.
void release_connection(WorkerContext& ctx, ConnectionIndex index, Removal removal) noexcept;
// release_connection, then erase.
void close_connection(WorkerContext& ctx, ConnectionIndex index, Removal removal) noexcept;

}  // namespace penstock::pipeline
