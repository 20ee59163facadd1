// SPDX-License-Identifier: Apache-2.0
// One checked message of the state stream as passed to the gateway, and its result. Interface between rpc
// (which receives) and the gateway's reconciler (which applies).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/model/desired.hpp"
#include "control/model/refusal.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::rpc {

// Identifies a state: the source of the numbering, and the number. Number 0: no state yet.
struct StateVersion {
    std::string source;
    uint64_t number = 0;
    bool operator==(const StateVersion&) const = default;
};

struct ServiceOutcome {
    enum class Kind : uint8_t { Applied, Refused, Removed };
    model::ServiceKey key;
    Kind kind = Kind::Applied;
    model::Refusal refusal;  // for Refused
    bool operator==(const ServiceOutcome&) const = default;
};

struct UpdateResult {
    std::vector<ServiceOutcome> services;
    uint64_t apply_us = 0;  // from receipt to the last worker's first burst with the new state
};

struct StateUpdate {
    StateVersion version;
    std::optional<StateVersion> base;        // set: a delta on this state; unset: a full state
    std::vector<model::Service> services;    // full: all of them; delta: new or replaced ones
    std::vector<model::ServiceKey> removed;  // delta only
    // Named in the message, but invalid: their last good version, if any, stays in use. The receiver of the
    // message reports their results.
    std::vector<std::pair<model::ServiceKey, std::string>> invalid;  // with the reason
    // Delta: unset means unchanged; full: unset means the default.
    std::optional<model::Environment> environment;
    std::chrono::steady_clock::time_point received;
    // Called once, on the gateway's own thread, after every worker uses the state. An error means that
    // nothing of the message was applied. Outdated: `base` is not the applied state. Unavailable: the gateway
    // is stopping.
    std::function<void(Result<UpdateResult>)> done;
};

}  // namespace penstock::rpc
