// The whole packet path without EAL: any number of workers as plain objects, real stages, virtual time. A test hands a frame to the worker
// of its choice (the receive queue, chosen as badly as it likes) and gets back what became of it; handoffs are followed as the rings would.
//
//   client 10.80.1.2 --- port 0 (10.80.1.1, up) [gateway] port 1 (10.80.2.1, cluster) --- backends 10.80.2.11 .. 10.80.2.250
//     fd00:80:1::2              fd00:80:1::1              fd00:80:2::1                              fd00:80:2::b .. fd00:80:2::fa
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// One service port in the shortest form that a test can say.
struct TestService {
    std::string name = "web";
    Protocol protocol = Protocol::Tcp;
    std::vector<std::pair<IpAddr, L4Port>> frontends;  // class X, of either family
    std::vector<L4Port> node_ports;                    // on all addresses of both twins
    std::vector<uint8_t>
        backends;  // last byte of 10.80.2.x and of fd00:80:2::x: each family is served by its own
    L4Port backend_port = 9376;
    lb::SourceMode source = lb::SourceMode::Translate;
    lb::EmptyAction when_empty = lb::EmptyAction::Reject;
    lb::SchedulerKind scheduler = lb::SchedulerKind::RoundRobin;
    std::optional<std::vector<Prefix>> source_ranges;
    uint32_t affinity_timeout_s = 0;
    uint32_t affinity_epoch = 1;
    // Service ports with one number pin a client together (scope Service); 0: each alone. They have one epoch.
    uint32_t affinity_group = 0;
    std::vector<std::pair<IpAddr, L4Port>>
        local_frontends;  // as of policy Local: they offer local_backends only
    std::vector<uint8_t> local_backends;
    // A set of its own for clients inside the cluster (ETP-006, NAT-004).
    struct Inside {
        lb::SourceMode source = lb::SourceMode::Keep;
        std::vector<uint8_t> backends;
    };
    std::optional<Inside> inside = {};
    // All endpoints are of this family, and frontends of the other one are translated (ANN-32). Unset: as `backends` says.
    std::optional<IpFamily> endpoints_of = {};
};

struct Outcome {
    Verdict verdict = Verdict::None;
    DropReason reason{};         // where Drop
    std::vector<uint8_t> frame;  // as it would leave; where Split, whole
    NicPortId egress;            // where Punt: whose twin gets it
    WorkerId worker;             // where it ended
    uint32_t handoffs = 0;
    std::vector<std::vector<uint8_t>> fragments = {};  // where Split: the frames that leave
    std::vector<uint8_t> came{};                       // of take_released(): the frame as it came
    bool waits = false;  // where Split: for the next hop, and its Ethernet header is to come
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
            limits::kErrorsPerSecondToPrefix;  // of either sort of ICMP error, to one network
        uint32_t errors_burst = limits::kErrorsBurstToPrefix;
        uint32_t affinity_entries = 4096;
        uint32_t services = 64, backends = 4096;  // how many ids there may be of each
        std::optional<nat::ReplyHash> up_hash = {},
                                      cluster_hash = {};  // how the ports' RSS is foretold to choose workers
        bool snat_any_egress = false;                     // SNAT addresses are not tied to their twins' ports
        std::vector<nat::SnatAddress> more_snat = {};     // that the host has not, behind its own
        std::optional<uint64_t> secrets_from =
            {};  // hash keys by this number instead of the run's seed (prng.hpp)
    };
    VirtualGateway() : VirtualGateway(Options{}) {}
    explicit VirtualGateway(const Options& options);

    // Replaces all Services in one step. Service and backend ids follow names, addresses and ports, as compile() keeps them; a backend that
    // was in no set of its Service meanwhile comes back for another stay.
    void publish(const std::vector<TestService>& services);
    // What the control plane made: everything but routes and SNAT, which are those of this network.
    void take_over(const config::Snapshot& from_control);
    // What calls of all these have made of another gateway, SNAT apart, which is this one's: for whoever comes back to the same few
    // configurations, and makes each of them once.
    void use(const config::Snapshot& prepared);
    // These are inside the cluster from now on.
    void set_pod_cidrs(std::vector<Prefix> pod_cidrs);
    void set_rejects_closed_vip_ports(bool rejects);
    void set_packets(const config::PacketPolicy& packets);
    void set_blocked_sources(const route::PrefixSet& blocked);  // empty: no list
    // Backends whose neighbour entry is not usable: packets to them are held.
    void set_unresolved(std::vector<uint8_t> backends);
    void remove_routes();
    void set_mtu(uint16_t mtu);  // of both ports
    void set_mtu(NicPortId port, uint16_t mtu);
    // On the uplink's twin by VIP presence.
    void set_present_vips(const std::vector<IpAddr>& vips);

    // What 1, 2, ... mean as marks, until the next publish().
    void set_marks(const std::vector<lb::FrontendTuple>& by_mark);

    // `mark`: as a rule of the NIC gives it.
    Outcome send(const std::vector<uint8_t>& frame, NicPortId port = kUp, WorkerId receiver = {0},
                 uint16_t mark = 0);
    // A frame that Linux sends into the twin of `port`, which `server` serves.
    Outcome send_from_host(const std::vector<uint8_t>& frame, NicPortId port, WorkerId server = {0});
    // All in one burst of one worker; packets that are handed on follow in bursts of their own, in order.
    std::vector<Outcome> send_burst(const std::vector<std::vector<uint8_t>>& frames, NicPortId port = kUp,
                                    WorkerId receiver = {0});

    // What has become of fragments that waited (Verdict::Await) since this was last called.
    std::vector<Outcome> take_released();
    [[nodiscard]] size_t fragments_waiting() const { return waiting_.size(); }
    // Every worker drops what has waited for its first fragment for too long.
    void expire_fragments();

    void advance_seconds(uint64_t seconds) { now_ = now_ + rate_.seconds(seconds); }
    void advance_milliseconds(uint64_t ms) { now_ = now_ + rate_.milliseconds(ms); }
    // Later readings of the TSC begin anew from here.
    void turn_tsc_back(uint64_t seconds) { now_.value -= rate_.seconds(seconds).value; }
    // One more flow order for all workers; work_off_orders() has them work on it.
    void order(const conn::FlowOrder& order);
    // Rounds without packets until no worker gets on any more: orders are done, or wait for the limit of resets. The segments that were
    // made up meanwhile go to take_own_segments().
    void work_off_orders();
    // What workers have made up since this was last called.
    std::vector<Outcome> take_own_segments();
    [[nodiscard]] uint64_t orders_done() const;
    [[nodiscard]] BackendId backend_of(const TestService& service, uint8_t host,
                                       IpFamily family = IpFamily::V4);
    void set_idle_limit(const TestService& service, uint32_t seconds);

    // Lets every worker look at its whole table once for idle connections.
    void age();
    // As if all half-open TCP connections had finished their handshakes, so that none of them gives way to another one.
    void establish_all();

    // For whoever tries one thing after another and wants each to begin alike: forget() goes back to the time, the snapshot and the secrets
    // that remember() saw (at first the new gateway's), without connections, counts or anything else that packets leave behind. Between the
    // two, configurations change by use() alone. Costs as much as the workers that have done something since.
    void remember();
    void forget();

    [[nodiscard]] pipeline::WorkerContext& worker(uint32_t index) { return *workers_[index]->context; }
    // Whether it has done anything since it was new, or forget() was called.
    [[nodiscard]] bool has_worked(uint32_t index) const { return !workers_[index]->is_new; }
    [[nodiscard]] const config::Snapshot& snapshot() const { return snapshot_; }
    [[nodiscard]] lb::AffinityTable& affinity() { return affinity_; }
    [[nodiscard]] uint64_t count(stats::Counter counter) const;
    // Of all workers.
    [[nodiscard]] uint64_t replies_misplaced(NicPortId port) const;
    [[nodiscard]] uint64_t connections() const;
    [[nodiscard]] stats::ServiceCounters& service_counters(uint32_t worker, const std::string& name);

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
        // As they begin: to draw half a million cursors anew takes longer than all the rest.
        std::optional<lb::SchedulerState> schedulers_at_start;
        std::vector<uint32_t> cursors_at_start;
        std::unique_ptr<pipeline::WorkerContext> context;
        pipeline::Burst
            burst;  // one for all rounds, as a worker has it: what former packets left in it is there
        bool is_new = true;  // has done nothing yet
    };
    struct InFlight {
        size_t index;  // position in the caller's burst; kReleased: it has gone into released_
        std::vector<uint8_t> frame;
        pipeline::Arrival arrival;
        uint32_t handoffs;
        std::vector<uint8_t> came{};  // of kReleased
    };
    [[nodiscard]] HashKey new_key();
    void start_affinity();
    // A worker without a past, in the memory and with the secrets that it has.
    void start_worker(uint32_t index);
    // For whatever a worker is about to do.
    pipeline::WorkerContext& begin_round(WorkerState& state);
    // As tx.cpp cuts a packet, with plain memory for buffers.
    void split(Outcome& outcome, const packet::Parsed& parsed, uint16_t mtu);
    static constexpr size_t kReleased = ~size_t{0};
    void run_ready_fragments(WorkerId worker, std::span<Outcome> outcomes);
    Outcome send_one(const std::vector<uint8_t>& frame, const pipeline::Arrival& arrival);
    void run(WorkerId worker, std::span<InFlight> packets, std::span<Outcome> outcomes);
    // Packet i of a burst that has been through the stages, and is not handed on.
    void finish(pipeline::WorkerContext& context, const pipeline::Burst& burst, uint32_t i, InFlight& packet,
                std::span<Outcome> outcomes);
    ServiceId service_id(const TestService& service);
    BackendId backend_id(const TestService& service, const IpAddr& address);
    lb::BackendSet backend_set(const TestService& service, const std::vector<uint8_t>& hosts, IpFamily family,
                               lb::SourceMode source);
    void rebuild_routes();
    // Of one worker, at its round's end.
    void collect_own_segments(pipeline::WorkerContext& context);

    TscRate rate_{1'000'000'000};
    TscTime now_{1'000'000'000'000};
    Options options_;
    Prng secrets_;
    HashKey owner_key_, affinity_key_;
    nat::ReplyRules reply_rules_;
    AlignedMemory affinity_memory_;
    lb::AffinityTable affinity_;
    std::vector<std::unique_ptr<WorkerState>> workers_;
    std::array<const stats::BackendCounters*, limits::kWorkersMax> backend_rows_{};
    config::Snapshot snapshot_;
    std::vector<std::pair<std::string, ServiceId>> service_ids_;
    std::vector<std::pair<std::string, BackendId>> backend_ids_;
    struct Stay {
        uint16_t number = 0;
        uint64_t seen_in = 0;  // the newest generation of Services that had the backend
    };
    [[nodiscard]] uint16_t stay_of(Stay& stay) const;
    std::map<uint32_t, Stay> stays_;  // by BackendId
    // By affinity_group and address.
    struct Numbered {
        EndpointId number;
        Stay stay;
    };
    std::map<std::pair<uint32_t, IpAddr>, Numbered> numbered_;
    uint64_t services_generation_ = 1;
    std::vector<uint8_t> unresolved_;
    std::vector<Outcome> own_segments_;
    // Fragments that wait, by the number that stands for an mbuf in the table.
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
