// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/tables/former_names.hpp"

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace penstock::gateway {
namespace {

// The same Service under its present number. A Service that was deleted and made again under its name is
// another one (GEN-010).
ServiceId current_id(const NamedService& former, const Compiled& compiled) {
    const Programmed* now = compiled.services.get(former.key);
    return now != nullptr && now->desired->uid == former.uid ? now->service->id : ServiceId{};
}

// Backends that still have a number and that no set offers to new flows.
std::vector<adopt::KeptEndpoint> kept_endpoints(const Compiled& compiled, const IdMap& ids) {
    std::unordered_set<uint32_t> offered;
    for (const auto& [key, programmed] : compiled.services) {
        for (const lb::BackendSet& set : programmed.service->sets) {
            for (const lb::Backend& backend : set.usable) {
                offered.insert(backend.id.value);
            }
        }
    }
    std::vector<adopt::KeptEndpoint> kept;
    for (uint32_t id = 0; id < ids.backends.size(); ++id) {
        if (ids.backends.is_live(BackendId{id}) && !offered.contains(id)) {
            const BackendKey& key = *ids.backends.key_of(BackendId{id});
            kept.push_back({key.service, BackendId{id}, key.address, key.port});
        }
    }
    return kept;
}

}  // namespace

adopt::FormerTables translate_names(std::span<const ServiceRecord> services,
                                    std::span<const EndpointRecord> endpoints, const Compiled& compiled,
                                    const IdMap& ids) {
    adopt::FormerTables out;
    out.services.emplace(services.size());
    out.kept_endpoints = kept_endpoints(compiled, ids);
    // Service ports that pin clients together have one owner and one epoch.
    std::unordered_map<uint64_t, size_t> by_owner;    // owner << 32 | epoch: position in the result
    std::unordered_map<uint32_t, size_t> of_service;  // former ServiceId: position in the result
    for (uint32_t id = 0; id < services.size(); ++id) {
        const auto former = read_record(ServiceId{id}, services[id]);
        if (!former) {
            continue;
        }
        const ServiceId current = current_id(*former, compiled);
        (*out.services)[id] = current;
        if (!former->affinity_owner.is_set() || !current.is_set()) {
            continue;
        }
        const uint64_t owner = uint64_t{former->affinity_owner.value} << 32 | former->affinity_epoch;
        const auto [at, is_first] = by_owner.try_emplace(owner, out.affinity_services.size());
        if (is_first) {
            out.affinity_services.push_back({.owner = former->affinity_owner,
                                             .epoch = former->affinity_epoch,
                                             .current = current,
                                             .endpoints = {}});
        }
        of_service.emplace(id, at->second);
    }
    for (uint32_t id = 0; id < endpoints.size(); ++id) {
        const auto former = read_record(BackendId{id}, endpoints[id]);
        if (!former) {
            continue;
        }
        if (const auto service = of_service.find(former->service.value); service != of_service.end()) {
            out.affinity_services[service->second].endpoints.push_back(
                {former->endpoint, former->stay, former->address, former->port});
        }
    }
    return out;
}

}  // namespace penstock::gateway
