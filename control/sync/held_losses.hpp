// Losses of a service port's last endpoint, held back for a moment because the replacement may be on its way (GEN-008, EP-017): an endpoint
// that moves between two EndpointSlices is two requests of a controller, and between them no endpoint is left. The gateway keeps the former
// state of the port meanwhile; every other change is sent as it is. A machine without a clock.
//
//     loss ----------- wait ---------->| sent, because nothing came
//     loss ------ replacement          | only the replacement is sent; nothing, where it restores the former state
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/model/desired.hpp"
#include "control/sync/coalescer.hpp"

namespace penstock::sync {

// A controller's second request follows the first within 50 ms: a write costs an API server one commit of etcd, 10 ms on a good disk and
// 25 ms on a slow one. The rest is for the way of the two events. After a quiet time a real loss reaches the workers within the 100 ms of
// GEN-008.
inline constexpr std::chrono::milliseconds kLossWait{75};
static_assert(kLossWait + kSettleMax < std::chrono::milliseconds(100));

class HeldLosses {
 public:
    using Time = std::chrono::steady_clock::time_point;
    using ServicePtr = std::shared_ptr<const model::Service>;

    // A wait of 0 holds nothing back.
    explicit HeldLosses(std::chrono::milliseconds wait) : wait_(wait) {}

    // A service port that was `former` (null: new) is `current` now. Returns when the change that has to be sent was heard; nullopt where
    // nothing has to be sent yet.
    [[nodiscard]] std::optional<Time> on_change(const ServicePtr& former, const ServicePtr& current,
                                                Time heard, Time now);
    // Its Service, or the port, is gone: that is sent at once.
    void on_removed(const model::ServiceKey& key) { held_.erase(key); }

    // What the gateway keeps; null where nothing is held back.
    [[nodiscard]] ServicePtr former_of(const model::ServiceKey& key) const;
    // When the next loss is to be sent; nullopt: none is held.
    [[nodiscard]] std::optional<Time> due() const;
    // When the oldest of them was heard.
    [[nodiscard]] std::optional<Time> oldest() const;
    // Those whose wait is over, with when they were heard. They are no longer held.
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

// Whether `current` is `former` but for its endpoints, and a frontend that had endpoints has none left. False where an endpoint must not be
// used any more.
[[nodiscard]] bool loses_last_endpoint(const model::Service& former, const model::Service& current);

}  // namespace penstock::sync
