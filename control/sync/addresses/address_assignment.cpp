// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/address_assignment.hpp"

#include <algorithm>
#include <utility>

#include "control/semantics/load_balancer.hpp"
#include "control/semantics/service_port.hpp"
#include "dataplane/base/check.hpp"

namespace penstock::sync {
namespace {

// The status contains a condition of Penstock, also Allocated=False.
bool has_own_condition(const kube::Service& service) {
    return !kube::status_of(service).conditions.empty();
}

// A Service that left type LoadBalancer is followed until our conditions are gone from its status (LB-013).
bool is_followed(const kube::Service& service) {
    return service.type == "LoadBalancer" || has_own_condition(service);
}

std::string message_of(const ipam::Allocation& allocation) {
    std::string text;
    for (const ipam::AllocatedAddress& each : allocation.addresses) {
        text += (text.empty() ? "" : ", ") + each.address.to_string() +
                (each.pool.empty() ? ", which no pool covers any more" : " of pool " + each.pool);
    }
    if (allocation.refusal) {
        text += (text.empty() ? "" : ". ") + allocation.refusal->message;
    }
    return text;
}

// LB-016, LB-017: why no gateway serves the port; "" otherwise.
std::string error_of(const kube::ServicePort& port, const semantics::Policy& policy) {
    const auto protocol = semantics::parse_protocol(port.protocol);
    if (protocol &&
        std::ranges::find(policy.disabled_protocols, *protocol) != policy.disabled_protocols.end()) {
        return "penstock.io/ProtocolDisabled";
    }
    if (policy.backend_mode == semantics::Policy::BackendMode::Node && port.node_port == 0) {
        return "penstock.io/NodePortRequired";
    }
    return "";
}

}  // namespace

AddressAssignment::AddressAssignment(Settings settings) : settings_(std::move(settings)) {
    restart();
}

void AddressAssignment::note(const kube::Changes& changes) {
    for (const auto& [name, service] : changes.services) {
        if (service != nullptr && is_followed(*service)) {
            services_.insert_or_assign(name, service);
            pending_.services.insert_or_assign(name, service);
        } else if (services_.erase(name) != 0) {
            pending_.services.insert_or_assign(name, nullptr);
        }
    }
    for (const auto& [name, object] : changes.namespaces) {
        if (object != nullptr) {
            namespaces_.insert_or_assign(name, object->meta.labels);
            pending_.namespaces.insert_or_assign(name, object->meta.labels);
        } else {
            namespaces_.erase(name);
            pending_.namespaces.insert_or_assign(name, std::nullopt);
        }
    }
    for (const auto& [name, addresses] : changes.held_addresses) {
        addresses.empty() ? static_cast<void>(held_.erase(name))
                          : static_cast<void>(held_.insert_or_assign(name, addresses));
        pending_.held.insert_or_assign(name, addresses);
    }
    for (const auto& [name, pool] : changes.pools) {
        if (pool != nullptr) {
            pools_.insert_or_assign(name, pool);
        } else {
            pools_.erase(name);
        }
    }
    pools_changed_ |= !changes.pools.empty() || (changes.pools_listed && !pools_listed_);
    pools_listed_ |= changes.pools_listed;
    namespaces_listed_ |= changes.namespaces_listed;
    if (is_stopped_) {
        pending_ = {};  // restart() collects the objects that exist then
    }
}

void AddressAssignment::stop() {
    is_stopped_ = true;
    allocator_.emplace(settings_.policy);
    pending_ = {};
}

void AddressAssignment::restart() {
    is_stopped_ = false;
    allocator_.emplace(settings_.policy);
    pending_ = {};
    pending_.services.insert(services_.begin(), services_.end());
    pending_.namespaces.insert(namespaces_.begin(), namespaces_.end());
    pending_.held = held_;
    if (pools_accepted_) {
        pending_.pools = pools_in_force_;
    }
}

void AddressAssignment::accept_pools() {
    pools_changed_ = false;
    std::vector<ipam::Pool> list;
    list.reserve(pools_.size());
    for (const auto& [name, pool] : pools_) {
        list.push_back(pool->pool);
    }
    auto accepted = ipam::validate(std::move(list), settings_.protected_prefixes);
    if (!accepted) {
        pools_refused_ = std::move(accepted.error().what);
        return;
    }
    pools_refused_.clear();
    pools_accepted_ = true;
    pools_in_force_ = std::move(*accepted);
    pending_.pools = pools_in_force_;
}

std::vector<kube::ObjectName> AddressAssignment::run() {
    PENSTOCK_CHECK(is_ready());
    if (pools_changed_) {
        accept_pools();
    }
    return allocator_->apply(std::exchange(pending_, {}));
}

const ipam::Allocation* AddressAssignment::allocation_of(const kube::ObjectName& service) const {
    return allocator_->find(service);
}

const kube::Service* AddressAssignment::find(const kube::ObjectName& service) const {
    const auto found = services_.find(service);
    return found == services_.end() ? nullptr : found->second.get();
}

std::vector<kube::ObjectName> AddressAssignment::owned() const {
    std::vector<kube::ObjectName> names;
    for (const auto& [name, service] : services_) {
        if (allocator_->find(name) != nullptr) {
            names.push_back(name);
        }
    }
    return names;
}

std::vector<kube::ObjectName> AddressAssignment::followed() const {
    std::vector<kube::ObjectName> names;
    for (const auto& [name, service] : services_) {
        if (allocator_->find(name) != nullptr || has_own_condition(*service)) {
            names.push_back(name);
        }
    }
    return names;
}

std::optional<kube::ServiceStatus> AddressAssignment::status_of(const kube::ObjectName& name) const {
    const ipam::Allocation* allocation = allocator_->find(name);
    const kube::Service* service = find(name);
    if (allocation == nullptr || service == nullptr) {
        return std::nullopt;
    }
    kube::ServiceStatus status;
    for (const ipam::AllocatedAddress& each : allocation->addresses) {
        kube::LoadBalancerIngress ingress{
            .ip = each.address.to_string(), .hostname = {}, .ip_mode = "VIP", .ports = {}};
        for (const kube::ServicePort& port : service->ports) {
            ingress.ports.push_back({port.port, port.protocol, error_of(port, settings_.policy)});
        }
        status.ingress.push_back(std::move(ingress));
    }
    const bool has_address = !allocation->addresses.empty();
    status.conditions.push_back({.type = std::string(kube::kAllocatedCondition),
                                 .status = has_address ? "True" : "False",
                                 .reason = has_address ? "Allocated" : to_string(allocation->refusal->reason),
                                 .message = message_of(*allocation)});
    return status;
}

std::map<std::string, kube::PoolStatus> AddressAssignment::pool_statuses() const {
    std::map<std::string, kube::PoolStatus> statuses;
    for (const ipam::PoolUsage& usage : allocator_->usage()) {
        kube::PoolStatus& status = statuses[usage.pool];
        status.ipv4 = {usage.v4.total, usage.v4.used, usage.v4.free};
        status.ipv6 = {usage.v6.total, usage.v6.used, usage.v6.free};
    }
    for (const auto& [name, pool] : pools_) {
        const auto in_force = std::ranges::find(pools_in_force_, name, &ipam::Pool::name);
        const bool is_accepted = pools_refused_.empty() && in_force != pools_in_force_.end();
        kube::PoolStatus& status = statuses[name];
        status.observed_generation = pool->generation;
        status.conditions.push_back({.type = "Accepted",
                                     .status = is_accepted ? "True" : "False",
                                     .reason = is_accepted ? "InForce" : "PoolsRefused",
                                     .message = is_accepted ? "" : pools_refused_});
    }
    std::erase_if(statuses, [&](const auto& each) { return !pools_.contains(each.first); });
    return statuses;
}

}  // namespace penstock::sync
