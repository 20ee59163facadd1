// SPDX-License-Identifier: Apache-2.0
// Status of penstock-sync at one moment, as plain values: the source, each gateway, the Events, the addresses
// from pools. /healthz, /readyz, /metrics and penstockctl render it. Each part is copied from its own thread
// under a lock that is held only for the copy.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/kube/events/events_status.hpp"
#include "control/kube/source_status.hpp"
#include "control/sync/addresses/address_status.hpp"
#include "control/sync/latency_histogram.hpp"

namespace penstock::sync {

struct GatewayStatus {
    std::string target;  // as given by --gateway
    std::string name;    // as reported by the gateway; "" before that
    bool connected = false;
    std::string last_error;  // why it is not connected; "" while connected
    std::string leader;  // control plane that leads at this gateway while this one is standby; "" otherwise
    // Time since the last round of the gateway thread's loop. A round takes at most ten seconds.
    std::chrono::milliseconds heartbeat_age{0};
    uint64_t desired_version = 0;  // newest state evaluated for it
    uint64_t applied_version = 0;  // newest state reported as applied; 0: none yet
    // Age of the oldest change that the gateway has not applied; 0: it has all changes.
    std::chrono::milliseconds lag{0};
    std::optional<std::chrono::milliseconds> applied_age;  // time since it last applied a state from us
    uint64_t changes_waiting = 0;                          // changed objects not yet evaluated
    uint64_t services = 0;                                 // service ports in the applied state
    uint64_t refused = 0;                                  // service ports refused by the gateway
    uint64_t full_states = 0;                              // sent since start
    uint64_t deltas = 0;
    uint64_t audit_differences = 0;  // differences found and repaired by the periodic audit (APISYNC-021)
    std::map<std::string, uint64_t> notices;  // by reason, found since start
    LatencyHistogram
        apply_latency;  // from the arrival of a change to the gateway's confirmation that its workers use it
};

// Certificates for gateways over TCP. Times are seconds since the epoch; 0 until a file could be read.
struct TlsStatus {
    double certificate_starts_s = 0, certificate_expires_s = 0, authority_expires_s = 0;
    bool broken = false;  // the files are incomplete or invalid now
};

struct SyncReading {
    std::string version;   // of penstock-sync
    std::string identity;  // identifies its state versions; unique to the process
    std::chrono::milliseconds uptime{0};
    uint64_t resident_bytes = 0;
    kube::SourceStatus source;
    std::vector<GatewayStatus> gateways;  // in the order of --gateway
    kube::EventsStatus events;
    std::optional<TlsStatus> tls;            // empty: no gateway is reached over TCP
    std::optional<AddressStatus> addresses;  // empty: it assigns no addresses
};

// Any thread. Locks are held only for copying.
using ReadSync = std::function<SyncReading()>;

}  // namespace penstock::sync
