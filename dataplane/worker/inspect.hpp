// SPDX-License-Identifier: Apache-2.0
// The readers' interface of the workers: counters by summing, connections by generation check, and `explain`,
// a dry run of the pipeline. Any control thread. Nothing here stops or slows a worker, takes a lock that a
// worker takes, or writes data that a worker reads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/ids.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/base/time.hpp"
#include "dataplane/conn/connection.hpp"
#include "dataplane/conn/table.hpp"
#include "dataplane/copies/store.hpp"
#include "dataplane/lb/service.hpp"
#include "dataplane/nat/snat_use.hpp"
#include "dataplane/packet/flow_key.hpp"
#include "dataplane/stats/counters.hpp"
#include "dataplane/stats/latency.hpp"

namespace penstock::worker {

class WorkerSet;

// An affinity entry in force: current epoch, not expired, its backend in some set of the Service. If the
// ports of a Service share their entries, `service` is the first of them that has the endpoint. The
// references are valid during the call.
struct AffinityView {
    const lb::Service& service;
    const lb::Backend& backend;
    IpAddr client;
    uint64_t age_ms = 0;        // since the client's last new flow
    uint64_t remaining_ms = 0;  // if no further flow opens
};

// A complete copy of one table entry.
struct ConnectionView {
    packet::FlowKey forward;  // client -> frontend
    packet::FlowKey reverse;  // backend -> SNAT address, or -> client if the source is kept
    ServiceId service;
    BackendId backend;
    WorkerId worker;
    bool source_kept = false;
    std::string state;  // "established", "one-way", ...
    uint64_t age_ms = 0;
    uint64_t idle_ms = 0;
    uint64_t expires_ms = 0;  // if no further packet arrives
};

struct ServiceTotals {
    uint64_t new_flows = 0, forward_packets = 0, forward_bytes = 0, reverse_packets = 0, reverse_bytes = 0;
    uint64_t rejected = 0, dropped = 0, connections = 0;
};
struct BackendTotals {
    uint64_t new_flows = 0, connections = 0;
    uint64_t open = 0;  // of the connections, those that have not ended
};

// A histogram of latencies over all workers.
struct LatencyTotals {
    std::array<uint64_t, stats::kLatencyBuckets> buckets{};  // stats::kLatencyBoundsUs
    double sum_s = 0;
};
// Of the TCP connections of a Service or a backend.
struct ConnectionLatencies {
    LatencyTotals connect, first_byte;
};

// Handoffs caused by the queue selection of one NicPort, over all workers.
struct PortTotals {
    uint64_t received = 0;      // packets taken from its queues
    uint64_t handed_off = 0;    // of these, handed to the worker that owns their flow
    uint64_t handoff_lost = 0;  // of these, not accepted by the owner's ring
    // handed over although RSS or a flow rule should have delivered them to their owner
    uint64_t replies_misplaced = 0;
};

struct WorkerView {
    WorkerId id;
    unsigned cpu = 0;
    uint32_t connections = 0;
    uint32_t connections_max = 0;
    uint64_t generation = 0;  // of the snapshot used by its last burst
    double busy_ratio = 0;    // share of ticks since start in rounds that found something
    double sleep_ratio = 0;   // share of ticks since start that it slept
    // Idle behaviour: "poll"; "sleep": for a limited time; "interrupt": until a packet arrives on one of its
    // queues.
    std::string idle;
    std::string phase;  // of its current round, or of the round in which it stopped: worker/phase.hpp
};

// A pool of packet buffers. Buffers in the caches of lcores do not count as in use; the caches change while
// they are summed.
struct BufferPoolView {
    std::string name;
    uint32_t buffers = 0;
    uint32_t in_use = 0;
};

// A packet to be explained: a TCP SYN (or mid-stream ACK), a UDP datagram, or an SCTP INIT. It is whole, has
// a TTL above 1, has no IP options, and does not exceed an MTU. Fragments, ICMP messages, other TCP segments
// and other SCTP packets are not covered.
struct ExplainQuery {
    packet::FlowKey key;
    NicPortId port{0};         // the port on which it arrives
    WorkerId receiver{0};      // the worker on which it arrives
    bool tcp_not_syn = false;  // an ACK; ignored for UDP and SCTP
};

struct ExplainStep {
    // receive, classify, blocklist, owner, connection, service, admit, affinity, schedule, snat, convert,
    // route, neighbour
    std::string stage;
    std::string finding;  // one sentence
};

struct Explanation {
    std::vector<ExplainStep> steps;
    std::string verdict;  // transmit, punt, hold, reject, drop
    // The worker that decides: the receiver, the one with the packet's connection, or the one that would open
    // a flow.
    WorkerId worker{0};
    std::optional<DropReason> reason;                 // for drop
    std::optional<lb::FrontendClass> frontend_class;  // of the frontend matched by a first packet
    // Source port 0: the port is chosen when the connection is created. If the port must be reclaimed from
    // another connection, the source may also be another SNAT address (the snat step reports this).
    std::optional<packet::FlowKey> leaves_as;
    NicPortId egress;
    std::optional<IpAddr> next_hop;
    std::optional<MacAddr> next_hop_mac;
};

class Inspector {
 public:
    explicit Inspector(const WorkerSet& workers) : workers_(&workers) {}

    [[nodiscard]] uint32_t workers() const;
    [[nodiscard]] WorkerView worker(WorkerId id) const;
    [[nodiscard]] uint64_t counter(WorkerId id, stats::Counter counter) const;
    [[nodiscard]] uint64_t drops(WorkerId id, DropReason reason) const;
    [[nodiscard]] PortTotals port(NicPortId id) const;
    // stats::ExhaustionSlots::stamp() of that worker.
    [[nodiscard]] uint64_t exhaustion_stamp(WorkerId id, size_t slot) const;
    [[nodiscard]] ServiceTotals service(ServiceId id) const;
    [[nodiscard]] BackendTotals backend(BackendId id) const;
    // Empty if they are not measured.
    [[nodiscard]] std::optional<ConnectionLatencies> latencies(ServiceId id) const;
    [[nodiscard]] std::optional<ConnectionLatencies> latencies(BackendId id) const;
    // Connections of that worker that have not ended: half-open, established, or with one FIN, and all UDP
    // flows. `backends`: ids from 0 that are or were in use. Reads one row for each.
    [[nodiscard]] uint64_t open_connections(WorkerId id, uint32_t backends) const;
    // Milliseconds since a worker last sent through the neighbour, in whole seconds; empty: never, or not
    // since it became known.
    [[nodiscard]] std::optional<uint64_t> neighbour_idle_ms(NeighbourId id) const;

    // Calls `visit` for each live connection until it returns false. Entries that change while they are read
    // are read again.
    void for_each_connection(const std::function<bool(const ConnectionView&)>& visit) const;

    // The connection tables of all workers, for readers on any thread. They live as long as the WorkerSet.
    [[nodiscard]] std::vector<const conn::Table*> connection_tables() const;
    // The clock of their times, and its reading now.
    [[nodiscard]] CoarseClock coarse_clock() const;
    [[nodiscard]] CoarseTime coarse_now() const;
    // The idle limit, in units of that clock, of connections that are in no table and have no ServiceId: that
    // of the Service with the frontend, by the configuration of now. The result borrows the WorkerSet.
    [[nodiscard]] std::function<int32_t(const conn::Connection&)> idle_limits() const;
    // Whether a worker has the connection with these keys. For the owner of copies (copies::Store): a copy
    // that was taken over is needed as long as this is true. Reads a few cache lines of each worker. Bounded;
    // false for a connection that exists only if each of kLookups attempts overlaps the insertion of another
    // one that moves this one's key in its table.
    [[nodiscard]] bool has_connection(const packet::FlowKey& forward, const packet::FlowKey& reverse) const;
    // The connection with this key, forward or reverse; of several workers' the first one. Empty: as above.
    [[nodiscard]] std::optional<copies::OwnConnection> find_connection(const packet::FlowKey& key) const;

    // Utilisation of the SNAT addresses of the current snapshot. Reads all connections: for a scrape.
    [[nodiscard]] std::vector<nat::SnatUse> snat_use() const;
    // The buffers of the segments that workers originate.
    [[nodiscard]] BufferPoolView own_buffers() const;

    // Calls `visit` for each affinity entry in force until it returns false.
    void for_each_affinity(const std::function<bool(const AffinityView&)>& visit) const;
    // Slots of the affinity table: those in use, of which some may hold expired entries, and all.
    [[nodiscard]] uint64_t affinity_entries() const;
    [[nodiscard]] uint64_t affinity_entries_max() const;

    // The port on which packets from `source` are expected to arrive: the port of the route to it; port 0 if
    // there is none.
    [[nodiscard]] NicPortId arrival_port(const IpAddr& source) const;
    // Reports what would happen to this packet now. Allocates nothing, sends nothing, counts nothing. Not
    // predicted: rate limits of answers, and a full connection table. tests/bound/explain_property_test.cpp
    // compares the result with the stages.
    [[nodiscard]] Explanation explain(const ExplainQuery& query) const;

 private:
    static constexpr int kLookups = 4;

    const WorkerSet* workers_;
};

}  // namespace penstock::worker
