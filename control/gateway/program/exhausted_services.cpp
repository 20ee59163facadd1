// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/program/exhausted_services.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "dataplane/base/ids.hpp"
#include "dataplane/stats/counters.hpp"

namespace penstock::gateway {

std::function<std::vector<model::ServiceKey>()> exhausted_services(const worker::WorkerSet& workers,
                                                                   const Reconciler& reconciler) {
    return [&workers, &reconciler, seen = std::vector<uint64_t>()]() mutable {
        constexpr size_t kSlots = stats::ExhaustionSlots::kSlots;
        const worker::Inspector inspector = workers.inspect();
        seen.resize(inspector.workers() * kSlots);
        std::set<ServiceId> services;
        for (size_t i = 0; i < seen.size(); ++i) {
            const uint64_t stamp = inspector.exhaustion_stamp({static_cast<uint8_t>(i / kSlots)}, i % kSlots);
            if (std::exchange(seen[i], stamp) != stamp) {
                services.insert({static_cast<uint32_t>(stamp)});
            }
        }
        std::vector<model::ServiceKey> keys;
        if (!services.empty()) {
            reconciler.read([&](const ReconcilerState& state) {
                for (const ServiceId id : services) {
                    if (const model::ServiceKey* key = state.compiler.ids().services.key_of(id)) {
                        keys.push_back(*key);
                    }
                }
            });
        }
        return keys;
    };
}

}  // namespace penstock::gateway
