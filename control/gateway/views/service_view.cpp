// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/views/service_view.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/rpc/convert.hpp"
#include "control/rpc/state_message.hpp"

namespace penstock::gateway {
namespace {

bool matches(const model::ServiceKey& key, std::string_view namespace_name, std::string_view name) {
    return (namespace_name.empty() || key.namespace_name == namespace_name) &&
           (name.empty() || key.name == name);
}

v1::BackendStatus::Health health_state(Health health) {
    switch (health) {
        case Health::Unprobed:
            return v1::BackendStatus::HEALTH_UNPROBED;
        case Health::Up:
            return v1::BackendStatus::HEALTH_UP;
        case Health::Down:
            return v1::BackendStatus::HEALTH_DOWN;
    }
    return v1::BackendStatus::HEALTH_UNSPECIFIED;
}

// All data about service ports that a listing needs. It is copied, so that the reconciler waits only for
// pointer copies.
struct ServicesNow {
    DesiredServices asked;
    SharedMap<model::ServiceKey, std::string> invalid;
    std::shared_ptr<const Compiled> compiled;
};
ServicesNow services_now(const Reconciler& reconciler) {
    return reconciler.read([](const ReconcilerState& state) {
        return ServicesNow{state.asked, state.invalid, state.compiler.compiled()};
    });
}

// The listen addresses of each service, in a stable order.
std::unordered_map<const lb::Service*, std::vector<SocketAddress>> sockets_by_service(
    const lb::ServiceTable& table) {
    std::unordered_map<const lb::Service*, std::vector<SocketAddress>> sockets;
    table.for_each_row(
        [&](const lb::FrontendRow& row) { sockets[row.service].push_back({row.address, row.port}); });
    for (auto& [service, list] : sockets) {
        std::ranges::sort(list);
    }
    return sockets;
}

v1::ServiceResult result_of(const model::ServiceKey& key, const ServicesNow& now) {
    using Kind = rpc::ServiceOutcome::Kind;
    if (const auto refusal = now.compiled->refusals.find(key); refusal != now.compiled->refusals.end()) {
        return rpc::to_proto(rpc::ServiceOutcome{key, Kind::Refused, refusal->second});
    }
    if (const auto invalid = now.invalid.find(key); invalid != now.invalid.end()) {
        return rpc::to_proto(
            rpc::ServiceOutcome{key, Kind::Refused, {model::kInvalidService, invalid->second}});
    }
    return rpc::to_proto(rpc::ServiceOutcome{key, Kind::Applied, {}});
}

struct KnownBackend {
    BackendId id;
    BackendKey key;
    model::ServiceKey owner;
    bool is_live = false;
};
// Every backend id of the matching service ports, live or not. Read in slices of about 100 us, so that a
// listing of a million ids delays no change. A change between two slices may or may not be in the list.
std::vector<KnownBackend> known_backends(const Reconciler& reconciler, std::string_view namespace_name,
                                         std::string_view service) {
    constexpr uint32_t kSlice = 1'024;
    std::vector<KnownBackend> known;
    const auto read_slice = [&](uint32_t from) {
        return reconciler.read([&](const ReconcilerState& state) {
            const IdMap& ids = state.compiler.ids();
            const uint32_t end = std::min(from + kSlice, ids.backends.size());
            for (uint32_t number = from; number < end; ++number) {
                const BackendKey& key = *ids.backends.key_of({number});
                const model::ServiceKey* owner = ids.services.key_of(key.service);
                if (owner != nullptr && matches(*owner, namespace_name, service)) {
                    known.push_back({{number}, key, *owner, ids.backends.is_live({number})});
                }
            }
            return end < ids.backends.size();
        });
    };
    for (uint32_t from = 0; read_slice(from); from += kSlice) {
    }
    return known;
}

v1::Traffic traffic_of(const worker::ServiceTotals& totals) {
    v1::Traffic traffic;
    traffic.set_new_flows(totals.new_flows);
    traffic.set_forward_packets(totals.forward_packets);
    traffic.set_forward_bytes(totals.forward_bytes);
    traffic.set_reverse_packets(totals.reverse_packets);
    traffic.set_reverse_bytes(totals.reverse_bytes);
    traffic.set_rejected(totals.rejected);
    traffic.set_dropped(totals.dropped);
    return traffic;
}

}  // namespace

v1::ListServicesResponse list_services(const Running& running, std::string_view namespace_name,
                                       std::string_view name) {
    const ServicesNow now = services_now(running.reconciler);
    const worker::Inspector inspector = running.workers.inspect();
    const auto sockets = sockets_by_service(*now.compiled->table);
    const auto observed = running.caretaker.observed();

    // Keys of desired and of invalid service ports: a refused service port is shown, not hidden.
    std::map<model::ServiceKey, const model::Service*> keys;
    for (const auto& [key, service] : now.asked) {
        keys.emplace(key, service.get());
    }
    for (const auto& [key, why] : now.invalid) {
        keys.emplace(key, nullptr);
    }
    v1::ListServicesResponse out;
    for (const auto& [key, asked] : keys) {
        if (!matches(key, namespace_name, name)) {
            continue;
        }
        v1::ServiceStatus& message = *out.add_services();
        if (asked != nullptr) {
            *message.mutable_desired() = rpc::to_proto(*asked);
        } else {
            *message.mutable_desired()->mutable_key() = rpc::to_proto(key);
        }
        *message.mutable_result() = result_of(key, now);
        for (auto about = std::ranges::lower_bound(observed, key, {}, &model::ObservedNotice::key);
             about != observed.end() && about->key == key; ++about) {
            *message.add_observed() = rpc::to_proto(about->notice);
        }
        const auto programmed = now.compiled->services.find(key);
        if (programmed == now.compiled->services.end()) {
            continue;
        }
        if (const auto found = sockets.find(programmed->second.service.get()); found != sockets.end()) {
            for (const SocketAddress& socket : found->second) {
                *message.add_listening() = rpc::to_proto(socket);
            }
        }
        const auto totals = inspector.service(programmed->second.service->id);
        *message.mutable_traffic() = traffic_of(totals);
        message.set_connections(totals.connections);
    }
    return out;
}

v1::ListBackendsResponse list_backends(const Running& running, std::string_view namespace_name,
                                       std::string_view service) {
    struct BackendSummary {
        model::Endpoint endpoint;
        bool is_desired = false;  // an endpoint of a set, whatever its weight
        std::vector<uint32_t> sets = {};
        worker::BackendTotals totals = {};
        v1::BackendStatus::Health health = v1::BackendStatus::HEALTH_UNSPECIFIED;
    };
    std::map<model::ServiceKey, std::map<SocketAddress, BackendSummary>> summaries;
    const worker::Inspector inspector = running.workers.inspect();
    for (const KnownBackend& known : known_backends(running.reconciler, namespace_name, service)) {
        // Includes all backends that ever had an id: those no longer desired are listed while a flow uses
        // them.
        const worker::BackendTotals totals = inspector.backend(known.id);
        if (known.is_live || totals.connections > 0) {
            // There are two ids if flows of a deleted Service drain while a new Service of the same name has
            // the same endpoint.
            const auto added = summaries[known.owner].try_emplace(
                {known.key.address, known.key.port},
                BackendSummary{{.address = known.key.address, .port = known.key.port}});
            added.first->second.totals.connections += totals.connections;
            added.first->second.totals.open += totals.open;
            added.first->second.totals.new_flows += totals.new_flows;
        }
    }
    const auto compiled =
        running.reconciler.read([](const ReconcilerState& state) { return state.compiler.compiled(); });
    for (auto& [key, places] : summaries) {
        const auto* programmed = compiled->services.get(key);
        if (programmed == nullptr) {
            continue;
        }
        const auto& desired = programmed->desired->sets;
        for (uint32_t set = 0; set < desired.size(); ++set) {
            for (const auto& endpoint : desired[set].endpoints) {
                if (const auto summary = places.find(endpoint.socket()); summary != places.end()) {
                    summary->second.endpoint = endpoint;
                    summary->second.is_desired = true;
                    if (programmed->desired->probe) {
                        summary->second.health = health_state(health_of(programmed->health, endpoint));
                    }
                    if (endpoint.weight > 0) {
                        summary->second.sets.push_back(set);
                    }
                }
            }
        }
    }
    v1::ListBackendsResponse out;
    for (const auto& [key, places] : summaries) {
        for (const auto& [place, summary] : places) {
            if (!summary.is_desired && summary.totals.connections == 0) {
                continue;  // it has an id for connections of other gateways (lb::Service::flow_endpoints)
            }
            v1::BackendStatus& message = *out.add_backends();
            *message.mutable_service() = rpc::to_proto(key);
            *message.mutable_endpoint() = rpc::to_proto(summary.endpoint);
            message.mutable_sets()->Add(summary.sets.begin(), summary.sets.end());
            message.set_connections(summary.totals.connections);
            message.set_open_connections(summary.totals.open);
            message.set_new_flows(summary.totals.new_flows);
            message.set_health(summary.health);
        }
    }
    return out;
}

}  // namespace penstock::gateway
