// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/backend_sets.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include "dataplane/base/check.hpp"

namespace penstock::gateway {
namespace {

bool passes_any(const model::BackendSet& set, const std::optional<model::Probe>& probe,
                const SharedHealth& health) {
    return !probe || std::ranges::any_of(set.endpoints, [&](const model::Endpoint& endpoint) {
        return passes(*probe, health_of(health, endpoint));
    });
}

}  // namespace

bool same_backends(const model::Service& a, const model::Service& b) {
    const auto same_endpoint = [](const model::Endpoint& x, const model::Endpoint& y) {
        return std::tie(x.address, x.port, x.weight) == std::tie(y.address, y.port, y.weight);
    };
    // Backends of another Service object have other ids (BackendKey).
    return a.scheduler == b.scheduler && a.affinity_timeout_s == b.affinity_timeout_s &&
           a.affinity_scope == b.affinity_scope && a.uid == b.uid && a.probe == b.probe &&
           a.access_log.enabled == b.access_log.enabled &&
           std::ranges::equal(a.sets, b.sets, [&](const model::BackendSet& x, const model::BackendSet& y) {
               return x.source == y.source && x.when_empty == y.when_empty &&
                      std::ranges::equal(x.endpoints, y.endpoints, same_endpoint);
           });
}

bool fails_open(const model::Service& service, const SharedHealth& health) {
    return service.probe && !service.probe->fails_closed &&
           std::ranges::any_of(service.sets, [&](const model::BackendSet& set) {
               return !set.endpoints.empty() && !passes_any(set, service.probe, health);
           });
}

lb::BackendSet build_set(const model::Service& service, const model::BackendSet& desired, ServiceId id,
                         const IdMap& ids, const SharedHealth& health) {
    const auto& probe = service.probe;
    lb::BackendSet set{.usable = {},
                       .ring = {},
                       .order = {},
                       .positions = {},
                       .by_id = {},
                       .source = desired.source,
                       .when_empty = desired.when_empty};
    const bool any_passes = passes_any(desired, probe, health);
    if (!any_passes && probe && probe->fails_closed && !desired.endpoints.empty()) {
        set.when_empty = lb::EmptyAction::Reject;  // endpoints exist, so clients are rejected at once
        return set;
    }
    set.usable.reserve(desired.endpoints.size());
    for (const auto& endpoint : desired.endpoints) {
        if (probe && any_passes && !passes(*probe, health_of(health, endpoint))) {
            continue;
        }
        if (endpoint.weight > 0) {  // weight 0 takes no new flows and keeps those it has (EP-018)
            const auto backend = ids.backends.find({id, endpoint.address, endpoint.port, service.uid});
            PENSTOCK_CHECK(backend);  // the compiler has taken it
            set.usable.push_back({*backend, endpoint.address, endpoint.port, endpoint.weight});
        }
    }
    lb::prepare(set, service.scheduler);
    return set;
}

}  // namespace penstock::gateway
