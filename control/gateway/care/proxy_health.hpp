// Whether the gateway itself is well: what /healthz, /livez, gRPC health and status report (HC-006), and a part of what each
// healthCheckNodePort reports (HC-002). Pure: facts and times are arguments.
//
//   live   a restart would mend nothing
//   well   new clients may come: live, a configuration is in force, the ports that it needs are up, and the gateway is not drained
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "control/http/server.hpp"

namespace penstock::gateway {

struct ProxyFacts {
    // Arrival of the oldest change that is not in every worker yet. An API server or a stream that is away brings no changes, so it makes
    // no gateway unhealthy.
    std::optional<std::chrono::steady_clock::time_point> waiting_since;
    std::chrono::system_clock::time_point programmed_at;  // the last change that was
    bool has_configuration = true;                        // or needs none (--allow-empty)
    bool node_eligible = true;
    bool drained = false;
    std::vector<std::string> stalls = {};       // loops that have stopped (LoopHealth)
    std::vector<std::string> port_faults = {};  // ports that are needed and down (port_faults.hpp)
};

struct ProxyTimes {
    std::chrono::steady_clock::time_point now;
    std::chrono::system_clock::time_point wall;
};

// "2026-01-02T03:04:05Z"
[[nodiscard]] std::string rfc3339(std::chrono::system_clock::time_point time);

// Empty: it is. One sentence each otherwise. A gateway is behind when a change waits for more than twice `sync_limit`.
[[nodiscard]] std::vector<std::string> why_not_live(const ProxyFacts& facts,
                                                    std::chrono::steady_clock::time_point now,
                                                    std::chrono::seconds sync_limit);
[[nodiscard]] std::vector<std::string> why_not_well(const ProxyFacts& facts,
                                                    std::chrono::steady_clock::time_point now,
                                                    std::chrono::seconds sync_limit);
[[nodiscard]] bool is_well(const ProxyFacts& facts, std::chrono::steady_clock::time_point now,
                           std::chrono::seconds sync_limit);

// 200 where the gateway is well and its Node is to stay; 503 otherwise, with the same body and the reasons.
[[nodiscard]] http::Response healthz(const ProxyFacts& facts, const ProxyTimes& times,
                                     std::chrono::seconds sync_limit);
// 200 where it is live, whatever becomes of the Node.
[[nodiscard]] http::Response livez(const ProxyFacts& facts, const ProxyTimes& times,
                                   std::chrono::seconds sync_limit);

}  // namespace penstock::gateway
