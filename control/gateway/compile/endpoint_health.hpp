// SPDX-License-Identifier: Apache-2.0
// Probe results for the endpoints of one service port: step 6 of EP-020. Pure values, passed from the prober
// to the compiler and to code that lists backends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "control/model/desired.hpp"
#include "dataplane/base/socket_address.hpp"

namespace penstock::gateway {

enum class Health : uint8_t { Unprobed, Up, Down };

struct EndpointHealth {
    std::map<SocketAddress, Health> verdicts;
    bool operator==(const EndpointHealth&) const = default;

    [[nodiscard]] Health of(const SocketAddress& endpoint) const {
        const auto found = verdicts.find(endpoint);
        return found == verdicts.end() ? Health::Unprobed : found->second;
    }
};

// Null: no results yet.
using SharedHealth = std::shared_ptr<const EndpointHealth>;

[[nodiscard]] inline Health health_of(const SharedHealth& health, const model::Endpoint& endpoint) {
    return health == nullptr ? Health::Unprobed : health->of(endpoint.socket());
}

// Whether new flows may use the endpoint. Without a result the endpoint passes, unless the probe fails closed
// (HC-007, HC-010).
[[nodiscard]] inline bool passes(const model::Probe& probe, Health health) {
    return probe.fails_closed ? health == Health::Up : health != Health::Down;
}

}  // namespace penstock::gateway
