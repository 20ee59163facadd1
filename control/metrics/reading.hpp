// SPDX-License-Identifier: Apache-2.0
// The values of all metrics of a gateway at one moment. penstockd fills it; prometheus.hpp maps it to metric
// names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/model/desired.hpp"
#include "dataplane/base/verdict.hpp"
#include "dataplane/stats/counters.hpp"
#include "dataplane/stats/latency.hpp"

namespace penstock::metrics {

struct WorkerReading {
    std::array<uint64_t, stats::kCounters> counters{};
    std::array<uint64_t, kDropReasons> drops{};
    uint64_t connections_max = 0;
    uint64_t open_connections = 0;    // those that have not ended
    double busy_s = 0, asleep_s = 0;  // since start
};

struct LoopReading {
    std::string name;
    bool is_stalled = false;
};

// Of TCP connections, in the buckets of stats::kLatencyBoundsUs.
struct LatencyReading {
    struct Histogram {
        std::array<uint64_t, stats::kLatencyBuckets> buckets{};  // not cumulative
        double sum_s = 0;
    };
    Histogram connect, first_byte;
};

struct ServiceReading {
    model::ServiceKey key;
    uint64_t new_flows = 0, forward_packets = 0, forward_bytes = 0, reverse_packets = 0, reverse_bytes = 0;
    uint64_t rejected = 0, dropped = 0, connections = 0;
    uint64_t backends = 0;  // usable for new flows under the external policy
    std::optional<LatencyReading> latency = {};
};

// A backend of a service port that new flows may get.
struct BackendReading {
    model::ServiceKey key;
    std::string endpoint;  // "10.0.0.1:8080"
    uint64_t new_flows = 0, connections = 0, open_connections = 0;
    std::optional<LatencyReading> latency = {};
};

struct PortReading {
    std::string twin;
    uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0, rx_missed = 0;
    uint64_t handed_off = 0, handoff_lost = 0, replies_misplaced = 0;
    uint64_t punted = 0, from_host = 0, from_host_dropped = 0, from_host_waits = 0, twin_dropped = 0;
    bool link_up = false;
};

// One SNAT address and protocol (nat::SnatUse).
struct SnatReading {
    std::string address;
    Protocol protocol = Protocol::Tcp;
    uint64_t ports = 0, in_use = 0, busiest_endpoint = 0;
};

struct BufferPoolReading {
    std::string name;
    uint64_t buffers = 0, in_use = 0;
};

struct ProbeReading {
    uint64_t sent = 0, succeeded = 0, failed = 0, turned_up = 0, turned_down = 0;
    uint64_t targets = 0, down = 0;  // current
    uint64_t failing_open = 0;       // service ports, current
};

struct TlsReading {
    double certificate_starts_s = 0, certificate_expires_s = 0, authority_expires_s = 0;  // since the epoch
    bool broken = false;  // the files are invalid now, and the previous ones stay in use
};

// TCP connections of gRPC clients (rpc::TcpAcceptor).
struct ConnectionReading {
    uint64_t open = 0, max = 0;
    uint64_t refused_per_source = 0, refused_all = 0;
};

// VIPs of the configuration.
struct VipReading {
    std::map<uint32_t, uint64_t> routes;  // by metric
    uint64_t addresses = 0;               // on twins
    uint64_t answered = 0;                // by workers on the link; not in `routes`
    uint64_t absent = 0;                  // none of these
    uint64_t others = 0;                  // announced by other gateways, by the plan of shares
    uint64_t conflicts = 0;               // another program has a route for them
};

// Tables that outlive the process.
struct TablesReading {
    bool kept = false;
    uint64_t adopted = 0;                                // connections of the former process
    std::vector<std::pair<std::string, uint64_t>> lost;  // by reason
    double adoption_s = 0;
    uint64_t refused_files = 0;
    uint64_t name_failures = 0;
};

// Upgrades since the start of the supervisor.
struct UpgradesReading {
    uint64_t done = 0, failed = 0;
    double pause_s = 0;  // of the last one; 0: it failed, or there was none
    bool is_running = false;
};

// Packet captures since start.
struct CaptureReading {
    bool is_running = false;
    uint64_t begun = 0, records = 0, lost = 0;
};

// Flow records, since the start of the process.
struct FlowRecordReading {
    uint64_t queued = 0, logged = 0, sent = 0;
    std::vector<std::pair<std::string, uint64_t>> lost;  // by reason
};

// BFD sessions of the workers.
struct BfdReading {
    struct Session {
        std::string peer, twin;
        bool is_up = false;
        uint64_t times_down = 0;
        uint64_t withheld = 0;  // packets
    };
    bool connected = false;  // to bfdd
    std::vector<Session> sessions;
};

// Shares of several gateways.
struct ShareReading {
    struct Share {
        size_t number = 0;
        std::string role;           // of this gateway: "primary" or "heir"
        std::optional<bool> holds;  // its workers answer ARP and ND; empty: not on links
    };
    uint64_t plan_version = 0;
    bool has_fault = false;           // the file of the plan is not in force, or the plan is not saved
    std::vector<Share> shares;        // those in which it has a role
    uint64_t awaiting_fail_back = 0;  // shares
    // Copies of the connections of another gateway, with which this one has a share in common.
    struct Channel {
        std::string gateway;
        std::string state;
        bool is_on = false;  // false: the plan or an option turns it off
        bool is_complete = false;
        uint64_t held = 0;
        std::optional<double> complete_age_s;
        uint64_t received = 0;                                  // records
        std::vector<std::pair<std::string, uint64_t>> refused;  // by reason
        uint64_t sent = 0;
    };
    std::vector<Channel> channels;
    // The other gateways, and whether strays go there; empty: strays are not forwarded.
    std::vector<std::pair<std::string, bool>> stray_targets;
    uint64_t copies_max = 0;
    uint64_t copies_taken = 0;
};

struct Reading {
    std::string version;
    bool control_connected = false;
    uint64_t applied_version = 0;
    double applied_s = 0;             // time of the state in force since the epoch; 0: there is none
    bool last_good_in_force = false;  // that state is of the file of the former process
    uint64_t generation = 0;
    uint64_t affinity_entries = 0, affinity_entries_max = 0;
    std::vector<WorkerReading> workers;               // by WorkerId
    std::vector<ServiceReading> services;             // sorted by key
    std::vector<BackendReading> backends;             // those with series of their own, by key
    std::optional<uint64_t> backends_without_series;  // the others; empty: none has series
    std::vector<PortReading> ports;                   // by NicPortId
    std::vector<SnatReading> snat;                    // by SNAT address, then protocol
    std::vector<BufferPoolReading> buffer_pools;
    ProbeReading probes;
    double started_s = 0;  // since the epoch
    bool drained = false;
    bool vips_withheld = false;  // withheld from the link by the desired state
    // Numbers of VIPs by announcement; empty with --vip-presence off.
    std::optional<VipReading> vips;
    bool is_well = true;
    std::vector<LoopReading> loops;
    bool save_failing = false;  // the newest state is not in the state file
    uint64_t save_failures = 0;
    TablesReading tables;
    CaptureReading captures;
    std::optional<UpgradesReading> upgrades;        // empty: no supervisor
    std::optional<TlsReading> tls;                  // empty: no TCP address
    std::optional<ConnectionReading> connections;   // empty: no TCP address
    std::optional<FlowRecordReading> flow_records;  // empty: off
    std::optional<BfdReading> bfd;                  // empty: off
    std::optional<ShareReading> shares;             // empty: none
};

}  // namespace penstock::metrics
