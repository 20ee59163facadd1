// SPDX-License-Identifier: Apache-2.0
// How changed objects enter the engine: the facts that they change, and the Services to evaluate again.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/semantics/endpoints/topology.hpp"
#include "control/semantics/engine.hpp"
#include "control/semantics/external_ips.hpp"
#include "control/semantics/notice_difference.hpp"
#include "control/semantics/standing.hpp"

namespace penstock::semantics {
namespace {

// Stores `object`, or removes the entry if `object` is null. Returns the previous value.
template <typename Map>
typename Map::mapped_type exchange(Map& objects, const typename Map::key_type& name,
                                   const typename Map::mapped_type& object) {
    if (object != nullptr) {
        return std::exchange(objects[name], object);
    }
    const auto node = objects.extract(name);
    return node.empty() ? nullptr : std::move(node.mapped());
}

// The address that identifies an endpoint (EP-005), if it is valid.
template <typename Visit>
void each_address(const kube::EndpointSlice& slice, const Visit& visit) {
    for (const kube::Endpoint& endpoint : slice.endpoints) {
        if (const auto& address = endpoint.address.ip()) {
            visit(*address);
        }
    }
}

// Whether only readiness, hints or ports can differ.
bool have_same_addresses(const kube::EndpointSlice& a, const kube::EndpointSlice& b) {
    return std::ranges::equal(a.endpoints, b.endpoints, {}, &kube::Endpoint::address,
                              &kube::Endpoint::address);
}

template <typename Visit>
void each_external_ip(const kube::Service& service, const Visit& visit) {
    // Includes the annotation; the plan decides whether it applies.
    for (const NamedExternalIp& named : named_external_ips(service, true)) {
        if (const auto address = IpAddr::parse(named.text)) {
            visit(*address);
        }
    }
}

}  // namespace

void Engine::take_in(const kube::Changes& changes, Step& step) {
    for (const auto& [name, node] : changes.nodes) {
        take_in_node(name, node, step);
    }
    for (const auto& [name, slice] : changes.slices) {
        take_in_slice(name, slice, step);
    }
    for (const auto& [name, service] : changes.services) {
        take_in_service(name, service);
    }
}

// A kubelet heartbeat causes no further work: no fact changes.
void Engine::take_in_node(const std::string& name, const kube::NodePtr& node, Step& step) {
    const kube::NodePtr old = exchange(objects_.nodes, name, node);
    const bool both = old != nullptr && node != nullptr;
    if (name == gateway_->node_name) {
        environment_due_ |= !both || old->addresses != node->addresses ||
                            is_leaving(*old) != is_leaving(*node) ||
                            why_vips_withheld(name, *old, policy_) != why_vips_withheld(name, *node, policy_);
    }
    if (!both || old->meta.labels != node->meta.labels) {
        node_labels_changed_ = true;
        origin_moved_ |= name == gateway_->node_name &&
                         label_of(old.get(), kZoneLabel) != label_of(node.get(), kZoneLabel);
    }
    nodes_changed_ |= facts_.nodes.put(name, node);
    if (both && old->pod_cidrs == node->pod_cidrs) {
        return;
    }
    const bool pod_cidrs_known = !facts_.pod_cidrs.empty();
    std::vector<ObjectNotice> notices_before;
    std::vector<ObjectNotice> notices_now;
    for (const Prefix& cidr : old ? pod_cidrs_of(name, *old, notices_before) : std::vector<Prefix>()) {
        facts_.pod_cidrs.remove(cidr);
        node_cidrs_.remove(cidr);
        pod_cidrs_changed_ = true;
    }
    for (const Prefix& cidr : node ? pod_cidrs_of(name, *node, notices_now) : std::vector<Prefix>()) {
        facts_.pod_cidrs.add(cidr);
        node_cidrs_.add(cidr);
        pod_cidrs_changed_ = true;
    }
    pod_cidrs_known_changed_ |= pod_cidrs_known == facts_.pod_cidrs.empty();
    sort_notices(notices_before);
    sort_notices(notices_now);
    append_difference(notices_before, notices_now, step.appeared, step.gone);
}

void Engine::take_in_slice(const kube::ObjectName& name, const kube::EndpointSlicePtr& slice, Step& step) {
    const kube::EndpointSlicePtr old = exchange(objects_.slices, name, slice);
    std::vector<ObjectNotice> notices_before = old ? notices_about(name, *old) : std::vector<ObjectNotice>();
    std::vector<ObjectNotice> notices_now = slice ? notices_about(name, *slice) : std::vector<ObjectNotice>();
    sort_notices(notices_before);
    sort_notices(notices_now);
    append_difference(notices_before, notices_now, step.appeared, step.gone);

    const auto owner_before = old ? service_of(name, *old) : std::nullopt;
    const auto owner_now = slice ? service_of(name, *slice) : std::nullopt;
    const bool addresses_stay =
        owner_before && owner_before == owner_now && have_same_addresses(*old, *slice);
    if (owner_before) {
        Record& record = record_of(*owner_before);
        if (owner_before != owner_now) {
            take_out(record.slices, name.name);
        }
        if (!addresses_stay) {
            each_address(*old, [&](const IpAddr& address) { endpoint_users_.remove(address, record); });
        }
        mark(record, Due::Decision);
    }
    if (owner_now) {
        Record& record = record_of(*owner_now);
        put(record.slices, name.name, slice);
        if (!addresses_stay) {
            each_address(*slice, [&](const IpAddr& address) { endpoint_users_.add(address, record); });
        }
        mark(record, Due::Decision);
    }
}

void Engine::take_in_service(const kube::ObjectName& name, const kube::ServicePtr& service) {
    const kube::ServicePtr old = exchange(objects_.services, name, service);
    Record& record = record_of(name);
    record.object = service;
    mark(record, Due::Plan);

    const std::vector<IpAddr> cluster_ips_before = old ? cluster_ips_of(*old) : std::vector<IpAddr>();
    const std::vector<IpAddr> cluster_ips_now = service ? cluster_ips_of(*service) : std::vector<IpAddr>();
    if (cluster_ips_before != cluster_ips_now) {
        for (const IpAddr& address : cluster_ips_before) {
            if (facts_.cluster_ips.remove(address)) {
                changed_cluster_ips_.push_back(address);
            }
        }
        for (const IpAddr& address : cluster_ips_now) {
            if (facts_.cluster_ips.add(address)) {
                changed_cluster_ips_.push_back(address);
            }
        }
    }
    if (old) {
        each_external_ip(*old, [&](const IpAddr& address) { external_ip_users_.remove(address, record); });
    }
    if (service) {
        each_external_ip(*service, [&](const IpAddr& address) { external_ip_users_.add(address, record); });
    }
}

}  // namespace penstock::semantics
