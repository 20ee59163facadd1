// SPDX-License-Identifier: Apache-2.0
#include "dataplane/adopt/affinity.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "dataplane/adopt/current.hpp"

namespace penstock::adopt {
namespace {

// The place of a former endpoint in a current Service.
struct Successor {
    const lb::Service* service = nullptr;
    const lb::BackendSet* set = nullptr;
    uint32_t position = 0;
    uint16_t former_stay = 0;
};

uint64_t word_of(uint32_t high, uint32_t low) noexcept {
    return uint64_t{high} << 32 | low;
}

// By former owner and epoch, then by former endpoint.
using Successors = std::unordered_map<uint64_t, std::unordered_map<uint32_t, Successor>>;

void add_successor(const FormerAffinity::Endpoint& endpoint, const lb::Service& service,
                   std::unordered_map<uint32_t, Successor>& by_endpoint) {
    for (const lb::BackendSet& set : service.sets) {
        for (uint32_t position = 0; position < set.usable.size(); ++position) {
            const lb::Backend& backend = set.usable[position];
            if (backend.address == endpoint.address && backend.port == endpoint.port) {
                by_endpoint.try_emplace(endpoint.former.value,
                                        Successor{&service, &set, position, endpoint.stay});
                return;
            }
        }
    }
}

Successors successors_of(const FormerTables& former, const lb::ServiceTable& table) {
    const CurrentServices services(table, {});
    Successors successors;
    for (const FormerAffinity& affinity : former.affinity_services) {
        const lb::Service* service = services.service(affinity.current);
        if (service == nullptr || !service->has_affinity()) {
            continue;
        }
        auto& by_endpoint = successors[word_of(affinity.owner.value, affinity.epoch)];
        for (const FormerAffinity::Endpoint& endpoint : affinity.endpoints) {
            add_successor(endpoint, *service, by_endpoint);
        }
    }
    return successors;
}

}  // namespace

AffinityAdoption adopt_affinity(const FormerTables& former, const config::Snapshot& snapshot,
                                lb::AffinityTable& table, TscRate rate, TscTime now) {
    AffinityAdoption result;
    const Successors successors = successors_of(former, *snapshot.services);
    const CoarseClock clock(rate);
    const CoarseTime now_coarse = clock.at(now);
    const auto adopt = [&](const lb::FormerAffinityEntry& entry) {
        const auto owner = successors.find(word_of(entry.key.owner.value, entry.key.epoch));
        if (owner == successors.end()) {
            return false;
        }
        const auto found = owner->second.find(entry.endpoint.value);
        if (found == owner->second.end() || found->second.former_stay != entry.stay) {
            return false;
        }
        const Successor& to = found->second;
        const auto limit = static_cast<int32_t>(clock.units(rate.seconds(to.service->affinity_timeout_s)));
        const int32_t age = units_between(entry.refreshed, now_coarse);
        if (age < 0 || age >= limit) {
            return false;
        }
        return table.adopt({.key = {to.service->affinity_owner, to.service->affinity_epoch, entry.key.client},
                            .set = *to.set,
                            .now = entry.refreshed,
                            .limit = limit},
                           to.position, entry.is_tentative);
    };
    lb::AffinityTable::for_each_former(former.affinity, [&](const lb::FormerAffinityEntry& entry) {
        ++(adopt(entry) ? result.adopted : result.lost);
    });
    return result;
}

}  // namespace penstock::adopt
