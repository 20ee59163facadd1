// SPDX-License-Identifier: Apache-2.0
#include "dataplane/adopt/current.hpp"

#include <algorithm>
#include <bit>

namespace penstock::adopt {

CurrentServices::CurrentServices(const lb::ServiceTable& services, std::span<const KeptEndpoint> kept) {
    size_t endpoints = kept.size();
    services.for_each_row([&](const lb::FrontendRow& row) {
        const lb::Service* service = row.service;
        if (service->id.value >= by_id_.size()) {
            by_id_.resize(service->id.value + 1);
        }
        if (by_id_[service->id.value] == nullptr) {
            by_id_[service->id.value] = service;
            for (const lb::BackendSet& set : service->sets) {
                endpoints += set.usable.size();
            }
        }
    });
    slots_.resize(endpoints == 0 ? 0 : std::bit_ceil(2 * endpoints));
    for (const lb::Service* service : by_id_) {
        if (service != nullptr) {
            for (const lb::BackendSet& set : service->sets) {
                for (const lb::Backend& backend : set.usable) {
                    add({service->id, backend.id, backend.address, backend.port});
                }
            }
        }
    }
    for (const KeptEndpoint& endpoint : kept) {
        add(endpoint);
    }
}

// The first one with a key stays: an endpoint of several sets has one number in all of them.
void CurrentServices::add(const KeptEndpoint& endpoint) {
    size_t at = first(endpoint.service, endpoint.address, endpoint.port);
    while (slots_[at].backend.is_set()) {
        if (slots_[at].service == endpoint.service && slots_[at].port == endpoint.port &&
            slots_[at].address == endpoint.address) {
            return;
        }
        at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = endpoint;
}

}  // namespace penstock::adopt
