// SPDX-License-Identifier: Apache-2.0
// Health of the gateway itself, as reported by /healthz, /livez, gRPC health and status (HC-006). It is also
// a part of what each healthCheckNodePort reports (HC-002). Pure: facts and times are arguments.
//
//   live   a restart would not help
//   well   new clients are accepted: live, a configuration is in force, the ports that it needs are up, and
//          the gateway is not drained
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "control/http/server.hpp"

namespace penstock::gateway {

struct ProxyFacts {
    // Arrival of the oldest change that is not yet in every worker. A missing API server or stream brings no
    // changes and therefore does not make a gateway unhealthy.
    std::optional<std::chrono::steady_clock::time_point> waiting_since;
    // The time of the last change that is in every worker.
    std::chrono::system_clock::time_point programmed_at;
    bool has_configuration = true;  // or --allow-empty
    bool node_eligible = true;
    bool drained = false;
    std::vector<std::string> stalls = {};       // stalled loops (LoopHealth)
    std::vector<std::string> port_faults = {};  // ports that are needed and down (port_faults.hpp)
};

struct ProxyTimes {
    std::chrono::steady_clock::time_point now;
    std::chrono::system_clock::time_point wall;
};

// "2026-01-02T03:04:05Z"
[[nodiscard]] std::string rfc3339(std::chrono::system_clock::time_point time);

// The reasons why the gateway is not live, or not well; empty: it is. A gateway is behind when a change waits
// for more than twice `sync_limit`.
[[nodiscard]] std::vector<std::string> why_not_live(const ProxyFacts& facts,
                                                    std::chrono::steady_clock::time_point now,
                                                    std::chrono::seconds sync_limit);
[[nodiscard]] std::vector<std::string> why_not_well(const ProxyFacts& facts,
                                                    std::chrono::steady_clock::time_point now,
                                                    std::chrono::seconds sync_limit);
// The reasons why a start is not complete: a configuration is missing, or a port that it needs is down, or a
// loop is stalled. A drained gateway has started.
[[nodiscard]] std::vector<std::string> why_not_started(const ProxyFacts& facts);
[[nodiscard]] bool is_well(const ProxyFacts& facts, std::chrono::steady_clock::time_point now,
                           std::chrono::seconds sync_limit);

// 200 if the gateway is well and its Node is not to be removed; otherwise 503, with the same body and the
// reasons.
[[nodiscard]] http::Response healthz(const ProxyFacts& facts, const ProxyTimes& times,
                                     std::chrono::seconds sync_limit);
// 200 if the gateway is live, regardless of the Node.
[[nodiscard]] http::Response livez(const ProxyFacts& facts, const ProxyTimes& times,
                                   std::chrono::seconds sync_limit);

}  // namespace penstock::gateway
