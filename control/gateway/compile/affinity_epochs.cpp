// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/compile/affinity_epochs.hpp"

#include <algorithm>

namespace penstock::gateway {
namespace {

bool offers(const lb::Service& service, BackendId id) {
    return std::ranges::any_of(service.sets, [&](const lb::BackendSet& set) {
        return set.pinned_position(id) != lb::EndpointPositions::kNone;
    });
}

bool is_member(const model::Service* service) {
    return service != nullptr && service->affinity_timeout_s != 0 &&
           service->affinity_scope == lb::AffinityScope::Service;
}

// Each address once, even if it is in several sets or has several ports.
std::vector<IpAddr> addresses_of(const lb::Service& service) {
    std::vector<IpAddr> addresses;
    for (const lb::BackendSet& set : service.sets) {
        for (const lb::Backend& backend : set.usable) {
            addresses.push_back(backend.address);
        }
    }
    std::ranges::sort(addresses);
    const auto repeated = std::ranges::unique(addresses);
    addresses.erase(repeated.begin(), repeated.end());
    return addresses;
}

uint16_t next_stay(uint16_t stay) {
    return static_cast<uint16_t>((stay + 1) % lb::Backend::kStays);
}

}  // namespace

bool keeps_affinity(const model::Service& before, const model::Service& after) noexcept {
    const bool may_be_same = before.uid == after.uid || before.uid.empty() || after.uid.empty();
    return before.affinity_timeout_s != 0 && after.affinity_timeout_s != 0 &&
           before.affinity_scope == after.affinity_scope && may_be_same;
}

void AffinityEpochs::forget(std::span<const model::ServiceKey> keys) {
    for (const model::ServiceKey& key : keys) {
        const auto group = groups_.find({key.namespace_name, key.name});
        if (group != groups_.end() && group->second.members.erase(key) != 0) {
            entrants_[group->first].insert(key);
        } else {
            forgotten_.insert(key);
        }
    }
}

void AffinityEpochs::expect(const model::Service* before, const model::Service* after) {
    const bool was_member = is_member(before);
    const bool becomes_member = is_member(after);
    if (!was_member && !becomes_member) {
        return;
    }
    const model::ServiceKey& key = (after == nullptr ? before : after)->key;
    const GroupName name{key.namespace_name, key.name};
    auto& entrants = entrants_[name];
    if (was_member && !(becomes_member && keeps_affinity(*before, *after))) {
        groups_.at(name).members.erase(key);
    }
    if (!becomes_member) {
        entrants.erase(key);
    } else if (const auto group = groups_.find(name);
               group == groups_.end() || !group->second.members.contains(key)) {
        entrants.insert(key);
    }
}

void AffinityEpochs::regroup() {
    for (const auto& [name, entrants] : entrants_) {
        Group& group = groups_[name];
        if (group.members.empty()) {
            // All members that had entries have left, so no entry needs to be kept.
            group = {};
            group.epoch = ++newest_epoch_;
        }
        group.members.insert(entrants.begin(), entrants.end());
        if (group.members.empty()) {
            groups_.erase(name);
        }
    }
    entrants_.clear();
}

AffinityEpochs::Group* AffinityEpochs::group_of(const lb::Service& service) {
    if (service.affinity_scope() == lb::AffinityScope::Port) {
        return nullptr;
    }
    const auto group = groups_.find({service.namespace_name, service.name});
    return group != groups_.end() && group->second.epoch == service.affinity_epoch ? &group->second : nullptr;
}

bool AffinityEpochs::is_current(const lb::Service& former, const model::Service& desired) const {
    if (!is_member(&desired)) {
        return !forgotten_.contains(desired.key);
    }
    return former.affinity_epoch == groups_.at({desired.key.namespace_name, desired.key.name}).epoch;
}

void AffinityEpochs::apply(lb::Service& service, const model::Service& desired, const lb::Service* former,
                           const model::Service* former_desired) {
    const bool is_to_forget = forgotten_.erase(desired.key) != 0;
    take_back(former);
    service.affinity_timeout_s = desired.affinity_timeout_s;
    if (!service.has_affinity()) {
        return;
    }
    if (is_member(&desired)) {
        apply_to_group(service, groups_.at({desired.key.namespace_name, desired.key.name}));
        return;
    }
    const bool keeps = former != nullptr && keeps_affinity(*former_desired, desired) && !is_to_forget;
    service.affinity_epoch = keeps ? former->affinity_epoch : ++newest_epoch_;
    service.affinity_owner = lb::affinity_owner_of(service.id);
    apply_to_port(service, former, keeps);
}

void AffinityEpochs::apply_to_port(lb::Service& service, const lb::Service* former, bool keeps) {
    for (const lb::BackendSet& set : service.sets) {
        for (const lb::Backend& backend : set.usable) {
            if (backend.id.value >= stays_.size()) {
                stays_.resize(backend.id.value + 1);
            }
        }
    }
    std::unordered_set<BackendId> back;  // a backend of several sets comes back once
    for (lb::BackendSet& set : service.sets) {
        for (lb::Backend& backend : set.usable) {
            uint16_t& stay = stays_[backend.id.value];
            // A new epoch ends all entries, so no stay needs to change.
            if (keeps && !offers(*former, backend.id) && back.insert(backend.id).second) {
                stay = next_stay(stay);
            }
            backend.stay = stay;
        }
        set.index_for_affinity(lb::AffinityScope::Port);
    }
}

void AffinityEpochs::apply_to_group(lb::Service& service, Group& group) {
    service.affinity_epoch = group.epoch;
    service.affinity_owner = lb::affinity_owner_of_all_ports(group.epoch);
    for (const IpAddr& address : addresses_of(service)) {
        const auto [endpoint, is_new] = group.endpoints.try_emplace(address);
        ++endpoint->second.offers;
        if (!is_new) {
            continue;
        }
        if (group.free.empty()) {
            // Each address of the run has at least one backend id of its own, so the numbers fit if the ids
            // fit.
            PENSTOCK_CHECK(group.stays.size() < limits::kBackendsMax);
            endpoint->second.number = static_cast<uint32_t>(group.stays.size());
            group.stays.push_back(0);
        } else {
            endpoint->second.number = group.free.front();
            group.free.pop_front();
            // Voids the entries of the number's former address.
            uint16_t& stay = group.stays[endpoint->second.number];
            stay = next_stay(stay);
        }
    }
    for (lb::BackendSet& set : service.sets) {
        for (lb::Backend& backend : set.usable) {
            const uint32_t number = group.endpoints.at(backend.address).number;
            backend.endpoint = {number};
            backend.stay = group.stays[number];
        }
        set.index_for_affinity(lb::AffinityScope::Service);
    }
}

void AffinityEpochs::service_is_gone(const model::ServiceKey& key, const lb::Service* former) {
    forgotten_.erase(key);
    take_back(former);
}

// Addresses that other members offer, or that this member's next version offers, keep their numbers, because
// release_unused() runs later.
void AffinityEpochs::take_back(const lb::Service* former) {
    Group* group = former == nullptr ? nullptr : group_of(*former);
    if (group == nullptr) {
        return;
    }
    for (const IpAddr& address : addresses_of(*former)) {
        if (--group->endpoints.at(address).offers == 0) {
            group->unoffered.push_back(address);
        }
    }
    changed_.emplace(former->namespace_name, former->name);
}

void AffinityEpochs::release_unused() {
    for (const GroupName& name : std::exchange(changed_, {})) {
        const auto group = groups_.find(name);
        if (group == groups_.end()) {
            continue;
        }
        for (const IpAddr& address : std::exchange(group->second.unoffered, {})) {
            const auto endpoint = group->second.endpoints.find(address);
            if (endpoint != group->second.endpoints.end() && endpoint->second.offers == 0) {
                group->second.free.push_back(endpoint->second.number);
                group->second.endpoints.erase(endpoint);
            }
        }
    }
}

}  // namespace penstock::gateway
