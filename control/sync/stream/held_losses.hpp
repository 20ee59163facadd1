// SPDX-License-Identifier: Apache-2.0
// Delays the loss of a service port's last endpoint for a moment, because the replacement may follow
// (GEN-008, EP-017). An endpoint that moves between two EndpointSlices takes two requests of a controller,
// and between them no endpoint exists. The gateway keeps the former state of the port meanwhile; every other
// change is sent at once. A state machine without a clock.
//
//     loss ----------- wait ---------->| sent, because no replacement came
//     loss ------ replacement          | only the replacement is sent; nothing if it restores the former
//                                      | state
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/model/desired.hpp"
#include "control/sync/stream/coalescer.hpp"

namespace penstock::sync {

// A controller's second request follows the first within 50 ms: a write costs an API server one commit of
// etcd, 10 ms on a good disk and 25 ms on a slow one. The rest is for the delivery of the two events. After
// an idle period a real loss reaches the workers within the 100 ms of GEN-008.
inline constexpr std::chrono::milliseconds kLossWait{75};
static_assert(kLossWait + kSettleMax < std::chrono::milliseconds(100));

class HeldLosses {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using ServicePtr = std::shared_ptr<const model::Service>;

    // A wait of 0 delays nothing.
    explicit HeldLosses(std::chrono::milliseconds wait) : wait_(wait) {}

    // A service port changed from `former` (null: new) to `current`. Returns the arrival time of the change
    // to be sent; nullopt if nothing is to be sent yet.
    [[nodiscard]] std::optional<Time> on_change(const ServicePtr& former, const ServicePtr& current,
                                                Time heard, Time now);
    // The Service or the port was removed. A removal is sent at once.
    void on_removed(const model::ServiceKey& key) { held_.erase(key); }

    // The state that the gateway keeps meanwhile; null if no loss of the port is held.
    [[nodiscard]] ServicePtr former_of(const model::ServiceKey& key) const;
    // When the next held loss is to be sent; nullopt if none is held.
    [[nodiscard]] std::optional<Time> due() const;
    // Arrival time of the oldest held loss.
    [[nodiscard]] std::optional<Time> oldest() const;
    // Takes the losses that have waited long enough, with their arrival times. They are no longer held.
    [[nodiscard]] std::vector<std::pair<model::ServiceKey, Time>> take_due(Time now);

 private:
    struct Held {
        ServicePtr former;
        Time heard;
        Time until;
    };
    const std::chrono::milliseconds wait_;
    std::map<model::ServiceKey, Held> held_;
};

// True if `current` differs from `former` in endpoints only, and a frontend that had endpoints has none left.
// False if an endpoint must not be used any more.
[[nodiscard]] bool loses_last_endpoint(const model::Service& former, const model::Service& current);

}  // namespace penstock::sync
