// What penstock-sync tells about itself at one moment, as plain values: the source, each gateway, the Events. /healthz, /readyz, /metrics
// and `penstockctl get sync` are four renderings of it. Each part is copied from its own thread under a lock that is held for the copy.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/events_status.hpp"
#include "control/kube/source_status.hpp"
#include "control/sync/latency_histogram.hpp"

namespace penstock::sync {

struct GatewayStatus {
    std::string target;  // as --gateway named it
    std::string name;    // as it called itself; "" before it did
    bool connected = false;
    std::string last_error;  // why it is not connected; "" while it is
    std::string leader;  // the control plane that leads at this gateway while this one waits; "" otherwise
    // Since the gateway's thread last went round. It does so at least every ten seconds.
    std::chrono::milliseconds heartbeat_age{0};
    uint64_t desired_version = 0;  // the newest state worked out for it
    uint64_t applied_version = 0;  // the newest one it said it applied; 0: none yet
    // Since the oldest change that it has not applied was heard; 0: it has everything.
    std::chrono::milliseconds lag{0};
    std::optional<std::chrono::milliseconds> applied_age;  // since it last applied something from us
    uint64_t changes_waiting = 0;  // objects that changed and are not yet worked into a state
    uint64_t services = 0;         // service ports in the state it applied
    uint64_t refused = 0;          // of those that it did not take
    uint64_t full_states = 0;      // sent since start
    uint64_t deltas = 0;
    uint64_t audit_differences = 0;           // found and repaired by the periodic audit (APISYNC-021)
    std::map<std::string, uint64_t> notices;  // by reason, found since start
    LatencyHistogram
        apply_latency;  // from an object's change being heard to the gateway's word that its workers use it
};

// Of the certificates for gateways over TCP. Times are seconds since the epoch; 0 while no file could be read yet.
struct TlsStatus {
    double certificate_expires_s = 0, authority_expires_s = 0;
    bool broken = false;  // the files are not whole now
};

struct SyncReading {
    std::string version;   // of penstock-sync
    std::string identity;  // the source of its state versions: unique to the process
    std::chrono::milliseconds uptime{0};
    uint64_t resident_bytes = 0;
    kube::SourceStatus source;
    std::vector<GatewayStatus> gateways;  // in the order of --gateway
    kube::EventsStatus events;
    std::optional<TlsStatus> tls;  // empty: no gateway is reached over TCP
};

// Any thread; takes locks only for as long as copying takes.
using ReadSync = std::function<SyncReading()>;

}  // namespace penstock::sync
