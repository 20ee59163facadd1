// SPDX-License-Identifier: Apache-2.0
// The whole packet path without EAL: any number of workers as plain objects, real stages, virtual time. A
// test passes a frame to a worker of its choice (the receive queue, which may be a wrong one) and gets the
// outcome. Handoffs are followed as through the rings.
//
//   client 10.80.1.2 --- port 0 (10.80.1.1, up) [gateway] port 1 (10.80.2.1, cluster) --- backends
//     fd00:80:1::2              fd00:80:1::1              fd00:80:2::1
//
// Backends: 10.80.2.11 .. 10.80.2.250 and fd00:80:2::b .. fd00:80:2::fa.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/adopt/former.hpp"
#include "dataplane/pipeline/stages.hpp"
#include "tests/support/aligned_memory.hpp"
#include "tests/support/prng.hpp"

namespace penstock::test {

inline const MacAddr kUpMac{{2, 0, 0, 0, 0, 0x0a}};
inline const MacAddr kClusterMac{{2, 0, 0, 0, 0, 0x0b}};
inline const MacAddr kClientMac{{2, 0, 0, 0, 1, 2}};
inline constexpr NicPortId kUp{0};
inline constexpr NicPortId kCluster{1};
inline const IpAddr kUpAddress = IpAddr::v4(10, 80, 1, 1);
inline const IpAddr kClusterAddress = IpAddr::v4(10, 80, 2, 1);
inline const IpAddr kClient = IpAddr::v4(10, 80, 1, 2);
// fd00:80:LINK::HOST
[[nodiscard]] constexpr IpAddr v6_on_link(uint8_t link, uint8_t host) {
    return IpAddr::v6({0xfd, 0, 0, 0x80, 0, link, 0, 0, 0, 0, 0, 0, 0, 0, 0, host});
}
inline constexpr IpAddr kUpAddress6 = v6_on_link(1, 1);
inline constexpr IpAddr kClusterAddress6 = v6_on_link(2, 1);
inline constexpr IpAddr kClient6 = v6_on_link(1, 2);
[[nodiscard]] inline IpAddr backend_address(uint8_t host, IpFamily family = IpFamily::V4) {
    return family == IpFamily::V4 ? IpAddr::v4(10, 80, 2, host) : v6_on_link(2, host);
}
[[nodiscard]] inline MacAddr backend_mac(uint8_t host) {
    return {{2, 0, 0, 0, 2, host}};
}

// One service port in the shortest form for tests.
struct TestService {
    std::string name = "web";
    Protocol protocol = Protocol::Tcp;
    std::vector<std::pair<IpAddr, L4Port>> frontends;  // class X, of either family
    std::vector<L4Port> node_ports;                    // on all addresses of both twins
    std::vector<uint8_t>
        backends;  // last byte of 10.80.2.x and of fd00:80:2::x: each family uses its own endpoints
    L4Port backend_port = 9376;
    lb::SourceMode source = lb::SourceMode::Translate;
    lb::EmptyAction when_empty = lb::EmptyAction::Reject;
    lb::SchedulerKind scheduler = lb::SchedulerKind::RoundRobin;
    std::optional<std::vector<Prefix>> source_ranges;
    uint32_t affinity_timeout_s = 0;
    uint32_t affinity_epoch = 1;
    // Service ports with the same number have common affinity of a client (scope Service); 0: separate
    // affinity. They have one epoch.
    uint32_t affinity_group = 0;
    std::vector<std::pair<IpAddr, L4Port>>
        local_frontends;  // as with policy Local: they offer local_backends only
    std::vector<uint8_t> local_backends;
    // A separate set for clients inside the cluster (ETP-006, NAT-004).
    struct Inside {
        lb::SourceMode source = lb::SourceMode::Keep;
        std::vector<uint8_t> backends;
    };
    std::optional<Inside> inside = {};
    // If set, all endpoints are of this family, and frontends of the other family are translated (ANN-32).
    // Unset: as given by `backends`.
    std::optional<IpFamily> endpoints_of = {};
    lb::FlowRecords flow_records = lb::FlowRecords::Default;
    uint8_t snat_group = 0;                   // of the frontends that are not NodePorts
    std::vector<uint8_t> kept_backends = {};  // as `backends`, but they get no new flows
};

struct Outcome {
    Verdict verdict = Verdict::None;
    DropReason reason{};         // for Drop
    std::vector<uint8_t> frame;  // the frame as it would be sent; for Split, before the split
    NicPortId egress;            // for Punt: the port of the twin that gets it
    WorkerId worker;             // the worker at which it ended
    uint32_t handoffs = 0;
    std::vector<std::vector<uint8_t>> fragments = {};  // for Split: the frames sent
    std::vector<uint8_t> came{};                       // from take_released(): the frame as received
    bool waits = false;  // for Split: waits for the next hop; its Ethernet header is not complete yet
    bool operator==(const Outcome&) const = default;
};

class VirtualGateway {
 public:
    struct Options {
        uint32_t workers = 1;
        bool flow_stays_on_queue = false;
        bool snat_blocks_on_queue = false;
        uint32_t connections = 4096;  // per worker
        nat::PortRange snat_ports{1024, 65535};
        bool snat_shared_with_host = false;
        uint32_t rejects_per_second = limits::kRejectsPerSecond;
        uint32_t rejects_burst = limits::kRejectsBurst;
        uint32_t errors_per_second =
            limits::kErrorsPerSecondToPrefix;  // for each of the two sorts of ICMP errors, to one network
        uint32_t errors_burst = limits::kErrorsBurstToPrefix;
        uint32_t affinity_entries = 4096;
        uint32_t services = 64, backends = 4096;  // number of ids of each
        // RSS predicted for the ports: how it chooses workers.
        std::optional<nat::ReplyHash> up_hash = {}, cluster_hash = {};
        bool snat_any_egress = false;  // SNAT addresses are not bound to the ports of their twins
        // In addition to those of the host, which does not have them.
        std::vector<nat::SnatAddress> more_snat = {};
        std::optional<uint64_t> secrets_from =
            {};                                 // seeds the hash keys instead of the run's seed (prng.hpp)
        std::optional<HashKey> owner_key = {};  // of nat::ReplyOwner
        std::optional<pipeline::FlowSelection> flow_records = {};  // empty: none
        bool latencies = false;                                    // measured by Service and backend
    };
    VirtualGateway() : VirtualGateway(Options{}) {}
    explicit VirtualGateway(const Options& options);

    // Replaces all Services in one step. Service and backend ids are kept by name, address and port, as
    // compile() does. A backend that was meanwhile in no set of its Service begins a new stay.
    void publish(const std::vector<TestService>& services);
    // Takes over everything from the control plane's snapshot except routes and SNAT, which are those of this
    // network.
    void take_over(const config::Snapshot& from_control);
    // Uses a snapshot that these functions have produced for another gateway, except SNAT, which is this
    // gateway's own. For tests that return to the same few configurations and prepare each of them once.
    void use(const config::Snapshot& prepared);
    // Sets the prefixes inside the cluster.
    void set_pod_cidrs(std::vector<Prefix> pod_cidrs);
    void set_rejects_closed_vip_ports(bool rejects);
    void set_packets(const config::PacketPolicy& packets);
    void set_blocked_sources(const route::PrefixSet& blocked);  // empty: no list
    // Backends without a usable neighbour entry: packets to them are held.
    void set_unresolved(std::vector<uint8_t> backends,
                        route::NeighbourState state = route::NeighbourState::Resolving);
    void remove_routes();
    // Other gateways, to which packets of their shares are forwarded; null: none.
    void set_strays(std::shared_ptr<const shares::Strays> strays);
    void set_mtu(uint16_t mtu);  // of both ports
    void set_mtu(NicPortId port, uint16_t mtu);
    // VIPs on the uplink's twin by VIP presence.
    void set_present_vips(const std::vector<IpAddr>& vips);
    // VIPs on the uplink that workers answer ARP and ND for; empty: none.
    // `snat`: SNAT addresses of shares among them.
    void set_link_vips(const std::vector<IpAddr>& vips, const std::vector<IpAddr>& snat = {});

    // The meaning of the marks 1, 2, ... until the next publish().
    void set_marks(const std::vector<lb::FrontendTuple>& by_mark);

    // `mark`: as set by a rule of the NIC.
    Outcome send(const std::vector<uint8_t>& frame, NicPortId port = kUp, WorkerId receiver = {0},
                 uint16_t mark = 0);
    // A frame sent by Linux into the twin of `port`; the worker `server` serves the twin.
    Outcome send_from_host(const std::vector<uint8_t>& frame, NicPortId port, WorkerId server = {0});
    // All frames in one burst of one worker. Packets that are handed off follow in separate bursts, in order.
    std::vector<Outcome> send_burst(const std::vector<std::vector<uint8_t>>& frames, NicPortId port = kUp,
                                    WorkerId receiver = {0});

    // Outcomes of fragments that had waited (Verdict::Await), since the last call.
    std::vector<Outcome> take_released();
    [[nodiscard]] size_t fragments_waiting() const { return waiting_.size(); }
    // Every worker drops fragments that have waited too long for the first fragment.
    void expire_fragments();

    void advance_seconds(uint64_t seconds) { now_ = now_ + rate_.seconds(seconds); }
    void advance_milliseconds(uint64_t ms) { now_ = now_ + rate_.milliseconds(ms); }
    // Sets the TSC back: later readings continue from there.
    void turn_tsc_back(uint64_t seconds) { now_.value -= rate_.seconds(seconds).value; }
    // Adds a flow order for all workers; work_off_orders() executes it.
    void order(const conn::FlowOrder& order);
    // Runs rounds without packets until no worker makes progress: orders are done, or wait for the limit of
    // resets. The segments generated meanwhile are returned by take_own_segments().
    void work_off_orders();
    // Segments generated by the workers since the last call.
    std::vector<Outcome> take_own_segments();
    [[nodiscard]] uint64_t orders_done() const;
    [[nodiscard]] BackendId backend_of(const TestService& service, uint8_t host,
                                       IpFamily family = IpFamily::V4);
    void set_idle_limit(const TestService& service, uint32_t seconds);

    // Every worker scans its whole table once for idle connections.
    void age();
    // Sets all half-open TCP connections to established, so that none of them is evicted for another one.
    void establish_all();

    // What `heir` finds if this gateway's process ends now: its memory, and the heir's numbers of its
    // Services. These are the same if their names and protocols are.
    [[nodiscard]] adopt::FormerTables left_to(const VirtualGateway& heir) const;
    // Adopts that before any packet, at the present time of `earlier`.
    adopt::Report adopt(const adopt::FormerTables& former, const VirtualGateway& earlier);
    [[nodiscard]] const HashKey& owner_key() const { return owner_key_; }
    [[nodiscard]] const nat::ReplyRules& reply_rules() const { return reply_rules_; }
    [[nodiscard]] const Options& options() const { return options_; }
    [[nodiscard]] CoarseTime now_coarse() const { return CoarseClock(rate_).at(now_); }

    // For tests that try several things one after another from the same state. forget() returns to the time,
    // the snapshot and the secrets saved by remember() (at first the new gateway's), without connections,
    // counters or other traces of packets. Between the two, configurations change by use() only. The cost is
    // proportional to the number of workers used since.
    void remember();
    void forget();

    [[nodiscard]] pipeline::WorkerContext& worker(uint32_t index) { return *workers_[index]->context; }
    // True if the worker has done anything since it was new, or since forget().
    [[nodiscard]] bool has_worked(uint32_t index) const { return !workers_[index]->is_new; }
    [[nodiscard]] const config::Snapshot& snapshot() const { return snapshot_; }
    [[nodiscard]] lb::AffinityTable& affinity() { return affinity_; }
    [[nodiscard]] uint64_t count(stats::Counter counter) const;
    // Sum over all workers.
    [[nodiscard]] uint64_t replies_misplaced(NicPortId port) const;
    [[nodiscard]] uint64_t connections() const;
    [[nodiscard]] stats::ServiceCounters& service_counters(uint32_t worker, const std::string& name);
    // The flow records of all workers since the last call; those of one worker in their order.
    [[nodiscard]] std::vector<pipeline::FlowRecord> take_flow_records();
    [[nodiscard]] uint64_t flow_records_lost() const;

 private:
    struct WorkerState {
        WorkerState(size_t table_bytes, size_t port_bytes, const Options& options)
            : table(table_bytes),
              ports(port_bytes),
              backend_links(options.connections + options.connections % 2),
              backend_heads(options.backends),
              services(options.services),
              backends(options.backends) {}
        AlignedMemory table, ports;
        HashKey table_key, ports_key, pending_key, fragments_key;
        std::vector<conn::BackendLink> backend_links;
        std::vector<uint32_t> backend_heads;
        std::vector<uint32_t> cursors = std::vector<uint32_t>(lb::SchedulerState::kCursors);
        std::vector<std::atomic<route::UseSeconds>> neighbour_use =
            std::vector<std::atomic<route::UseSeconds>>(limits::kNeighboursMax);
        stats::WorkerCounters worker_counters;
        std::vector<stats::ServiceCounters> services;
        std::vector<stats::BackendCounters> backends;
        pipeline::ResolveQueue resolve;
        std::vector<pipeline::FlowLog::Flow> flows;
        std::unique_ptr<pipeline::FlowRecordQueue> flow_queue;
        std::unique_ptr<pipeline::FlowLog> flow_log;
        std::vector<pipeline::LatencyWait> latency_waits;
        std::vector<stats::LatencyCounters> service_latencies, backend_latencies;
        std::unique_ptr<pipeline::LatencyMeter> latency;
        // The initial state: drawing half a million cursors anew takes longer than everything else.
        std::optional<lb::SchedulerState> schedulers_at_start;
        std::vector<uint32_t> cursors_at_start;
        std::unique_ptr<pipeline::WorkerContext> context;
        pipeline::Burst
            burst;  // one for all rounds, as in a worker: it keeps the content left by former packets
        bool is_new = true;  // has done nothing yet
    };
    struct InFlight {
        size_t index;  // position in the caller's burst; kReleased: it has moved to released_
        std::vector<uint8_t> frame;
        pipeline::Arrival arrival;
        uint32_t handoffs;
        std::vector<uint8_t> came{};  // for kReleased
    };
    [[nodiscard]] HashKey new_key();
    void start_affinity();
    // Resets a worker to its initial state, in its existing memory and with its existing secrets.
    void start_worker(uint32_t index);
    // Call before any activity of a worker.
    pipeline::WorkerContext& begin_round(WorkerState& state);
    // Cuts a packet as tx.cpp does, with plain memory as buffers.
    void split(Outcome& outcome, const packet::Parsed& parsed, uint16_t mtu);
    static constexpr size_t kReleased = ~size_t{0};
    void run_ready_fragments(WorkerId worker, std::span<Outcome> outcomes);
    Outcome send_one(const std::vector<uint8_t>& frame, const pipeline::Arrival& arrival);
    void run(WorkerId worker, std::span<InFlight> packets, std::span<Outcome> outcomes);
    // Packet i of a burst that has passed the stages, and is not handed off.
    void finish(pipeline::WorkerContext& context, const pipeline::Burst& burst, uint32_t i, InFlight& packet,
                std::span<Outcome> outcomes);
    ServiceId service_id(const TestService& service);
    BackendId backend_id(const TestService& service, const IpAddr& address);
    lb::BackendSet backend_set(const TestService& service, const std::vector<uint8_t>& hosts, IpFamily family,
                               lb::SourceMode source);
    void rebuild_routes();
    // Segments of one worker, at the end of its round.
    void collect_own_segments(pipeline::WorkerContext& context);

    TscRate rate_{1'000'000'000};
    TscTime now_{1'000'000'000'000};
    Options options_;
    Prng secrets_;
    HashKey owner_key_, affinity_key_;
    nat::ReplyRules reply_rules_;
    AlignedMemory affinity_memory_;
    lb::AffinityTable affinity_;
    pipeline::MovedFlows moved_;
    std::vector<std::unique_ptr<WorkerState>> workers_;
    std::array<const stats::BackendCounters*, limits::kWorkersMax> backend_rows_{};
    config::Snapshot snapshot_;
    std::vector<std::pair<std::string, ServiceId>> service_ids_;
    std::vector<std::pair<std::string, BackendId>> backend_ids_;
    struct Stay {
        uint16_t number = 0;
        uint64_t seen_in = 0;  // the newest generation of Services that contained the backend
    };
    [[nodiscard]] uint16_t stay_of(Stay& stay) const;
    std::map<uint32_t, Stay> stays_;  // by BackendId
    // Key: affinity_group and address.
    struct Numbered {
        EndpointId number;
        Stay stay;
    };
    std::map<std::pair<uint32_t, IpAddr>, Numbered> numbered_;
    uint64_t services_generation_ = 1;
    std::vector<uint8_t> unresolved_;
    route::NeighbourState unresolved_state_ = route::NeighbourState::Resolving;
    std::vector<Outcome> own_segments_;
    // Waiting fragments, by the number that represents an mbuf in the table.
    std::map<uintptr_t, InFlight> waiting_;
    uintptr_t last_handle_ = 0;
    std::vector<Outcome> released_;
    bool routes_ = true;
    std::array<uint16_t, 2> mtu_{1500, 1500};  // by port
    std::vector<route::LocalAddress> present_vips_;

    struct Remembered {
        TscTime now;
        config::Snapshot snapshot;
    } remembered_;
};

}  // namespace penstock::test
