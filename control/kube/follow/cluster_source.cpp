// SPDX-License-Identifier: Apache-2.0
#include "control/kube/follow/cluster_source.hpp"

#include <algorithm>
#include <utility>

namespace penstock::kube {

ClusterSource::ClusterSource(ClusterSettings settings, Transport& transport, RandomSource random)
    : settings_(std::move(settings)),
      server_{transport, decoder_, std::move(random), log_},
      store_(settings_.scope.nodes, log_),
      services_(services_of(settings_.scope), store_.services(), server_, settings_.streamed_lists),
      endpoints_(endpoints_of(settings_.scope).front(), store_.slices(), server_, settings_.streamed_lists),
      discovery_(endpoints_of(settings_.scope), endpoints_, server_) {
    if (settings_.scope.nodes) {
        nodes_.emplace(all_nodes(), store_.nodes(), server_, settings_.streamed_lists);
    }
    if (settings_.scope.address_pools) {
        pools_.emplace(all_pools(), store_.pools(), server_, settings_.streamed_lists);
    }
    if (settings_.scope.namespaces) {
        namespaces_.emplace(all_namespaces(), store_.namespaces(), server_, settings_.streamed_lists);
    }
}

ClusterSource::Time ClusterSource::next_deadline() const {
    Time first =
        std::min({services_.next_deadline(), endpoints_.next_deadline(), discovery_.next_deadline()});
    for (const std::optional<Reflector>* reflector : {&nodes_, &pools_, &namespaces_}) {
        first = *reflector ? std::min(first, (*reflector)->next_deadline()) : first;
    }
    return first;
}

void ClusterSource::on_time(Time now) {
    ran_at_ = now;
    services_.on_time(now);
    discovery_.on_time(now);
    endpoints_.on_time(now);
    for (std::optional<Reflector>* reflector : {&nodes_, &pools_, &namespaces_}) {
        if (*reflector) {
            (*reflector)->on_time(now);
        }
    }
}

ObjectTable& ClusterSource::table_of(ObjectKind kind) {
    switch (kind) {
        case ObjectKind::EndpointSlice:
        case ObjectKind::Endpoints:
            return store_.slices();
        case ObjectKind::Node:
            return store_.nodes();
        case ObjectKind::AddressPool:
            return store_.pools();
        case ObjectKind::Namespace:
            return store_.namespaces();
        case ObjectKind::Service:
            break;
    }
    return store_.services();
}

std::optional<ObjectIdentity> ClusterSource::identity_of(ObjectKind kind, const ObjectName& name) {
    const bool is_slice = kind == ObjectKind::EndpointSlice || kind == ObjectKind::Endpoints;
    auto life = table_of(kind).life_of(name);
    if (!life) {
        return std::nullopt;
    }
    return ObjectIdentity{.api_version = is_slice ? endpoints_.collection().api_version
                                         : kind == ObjectKind::AddressPool ? std::string(kPoolApiVersion)
                                                                           : "v1",
                          .uid = std::move(life->uid),
                          .resource_version = std::move(life->resource_version)};
}

SourceStatus ClusterSource::status(Time now) const {
    SourceStatus status{.source = settings_.server};
    if (ran_at_) {
        status.heartbeat_age = std::chrono::duration_cast<std::chrono::milliseconds>(now - *ran_at_);
    }
    status.collections = {services_.status(now), endpoints_.status(now)};
    for (const std::optional<Reflector>* reflector : {&nodes_, &pools_, &namespaces_}) {
        if (*reflector) {
            status.collections.push_back((*reflector)->status(now));
        }
    }
    return status;
}

}  // namespace penstock::kube
