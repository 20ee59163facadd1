// What keeps a client's affinity entry valid over configurations: the Service's epoch and the backend's stay. The compiler gives both; the
// workers' table (dataplane/lb/affinity.hpp) compares them.
//
//   epoch   one more whenever a Service comes to have affinity that had none, or comes back, or is another Service under the old name
//           (AFF-007, GEN-010); never the same again, whatever Service asks, because ids of Services are used again
//   stay    one more whenever a backend comes back into the Service's sets (AFF-005)
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "control/gateway/id_map.hpp"
#include "control/model/desired.hpp"
#include "dataplane/lb/service.hpp"

namespace penstock::gateway {

// Whether a client's entry of `before` means something to `after`; both are versions of one service port.
[[nodiscard]] bool keeps_affinity(const model::Service& before, const model::Service& after) noexcept;

class AffinityEpochs {
 public:
    // Their entries end when apply() sees them next, though the versions before and after would keep them.
    void forget(std::span<const model::ServiceKey> keys) { forgotten_.insert(keys.begin(), keys.end()); }
    [[nodiscard]] bool is_forgotten(const model::ServiceKey& key) const { return forgotten_.contains(key); }
    void service_is_gone(const model::ServiceKey& key) { forgotten_.erase(key); }

    // Completes `service`, just built from `desired` with its backends' ids. The former ones are what was in force before, or null.
    void apply(lb::Service& service, const model::Service& desired, const lb::Service* former, const model::Service* former_desired);

 private:
    uint32_t newest_epoch_ = 0;
    std::vector<uint16_t> stays_;  // by BackendId
    std::unordered_set<model::ServiceKey, ServiceKeyHash> forgotten_;
};

}  // namespace penstock::gateway
