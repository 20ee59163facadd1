// Is the gateway itself well: what /healthz and /livez say to load balancers in front of the nodes (HC-006), and a part of what each
// healthCheckNodePort says (HC-002). Pure: facts and times are arguments.
#pragma once

#include <chrono>
#include <optional>

#include "control/http/server.hpp"

namespace penstock::gateway {

struct ProxyFacts {
    // The oldest change that is not in every worker yet came then. An API server or a stream that is away brings no changes, so it makes
    // nobody unhealthy.
    std::optional<std::chrono::steady_clock::time_point> waiting_since;
    std::chrono::system_clock::time_point programmed_at;  // the last change that was
    bool node_eligible = true;
    bool drained = false;
};

struct ProxyTimes {
    std::chrono::steady_clock::time_point now;
    std::chrono::system_clock::time_point wall;
};

// Neither drained nor behind by more than twice `sync_limit`.
[[nodiscard]] bool is_well(const ProxyFacts& facts, std::chrono::steady_clock::time_point now, std::chrono::seconds sync_limit);

// 200 where the gateway is well and its Node is to stay; 503 otherwise, with the same body.
[[nodiscard]] http::Response healthz(const ProxyFacts& facts, const ProxyTimes& times, std::chrono::seconds sync_limit);
// The same whatever becomes of the Node.
[[nodiscard]] http::Response livez(const ProxyFacts& facts, const ProxyTimes& times, std::chrono::seconds sync_limit);

}  // namespace penstock::gateway
