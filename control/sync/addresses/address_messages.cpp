// SPDX-License-Identifier: Apache-2.0
#include "control/sync/addresses/address_messages.hpp"

#include <map>
#include <vector>

namespace penstock::sync {
namespace {

using Users = std::map<IpAddr, std::vector<const kube::ObjectName*>>;

// Services that have the reserved addresses of any pool.
Users users_of_reservations(const AddressStatus& status) {
    Users users;
    for (const ipam::Pool& pool : status.pools) {
        for (const ipam::Reservation& reservation : pool.reservations) {
            users.try_emplace(reservation.address);
        }
    }
    if (users.empty()) {
        return users;
    }
    for (const auto& [service, addresses] : status.addresses) {
        for (const ipam::AllocatedAddress& allocated : addresses) {
            if (const auto user = users.find(allocated.address); user != users.end()) {
                user->second.push_back(&service);
            }
        }
    }
    return users;
}

void write_name(v1::ServiceName& message, const kube::ObjectName& name) {
    message.set_namespace_(name.namespace_name);
    message.set_name(name.name);
}

void write_counts(v1::AddressCounts& message, const ipam::AddressCounts& counts) {
    message.set_total(counts.total);
    message.set_used(counts.used);
    message.set_free(counts.free);
}

void write_pool(v1::AddressPool& message, const ipam::Pool& pool, const Users& users) {
    message.set_name(pool.name);
    for (const ipam::AddressRange& range : pool.ranges) {
        message.add_ranges(range_text(range));
    }
    message.set_auto_assign(pool.auto_assign);
    message.set_avoid_buggy_ips(pool.avoid_buggy_ips);
    message.set_priority(pool.priority);
    message.mutable_namespaces()->Add(pool.namespaces.begin(), pool.namespaces.end());
    if (pool.namespace_selector) {
        message.set_namespace_selector(pool.namespace_selector->text());
    }
    if (pool.service_selector) {
        message.set_service_selector(pool.service_selector->text());
    }
    message.set_enforce(pool.enforce);
    message.set_internal(pool.internal);
    message.set_disabled(pool.disabled);
    message.set_reassign(pool.reassign);
    for (const ipam::Reservation& reservation : pool.reservations) {
        v1::AddressReservation& reserved = *message.add_reservations();
        reserved.set_address(reservation.address.to_string());
        write_name(*reserved.mutable_service(), reservation.service);
        for (const kube::ObjectName* user : users.at(reservation.address)) {
            write_name(*reserved.add_users(), *user);
        }
    }
}

}  // namespace

std::string range_text(const ipam::AddressRange& range) {
    const auto& first = range.first.bytes();
    const auto& last = range.last.bytes();
    size_t same = 0;  // leading bits
    while (same < 128 && ((first[same / 8] ^ last[same / 8]) >> (7 - same % 8) & 1) == 0) {
        ++same;
    }
    bool is_prefix = true;  // the bits after `same` are 0 in the first address and 1 in the last one
    for (size_t bit = same; bit < 128; ++bit) {
        const unsigned mask = 0x80U >> bit % 8;
        is_prefix &= (first[bit / 8] & mask) == 0 && (last[bit / 8] & mask) != 0;
    }
    return is_prefix ? range.first.to_string() + "/" + std::to_string(same - (128 - range.first.bits()))
                     : range.first.to_string() + "-" + range.last.to_string();
}

v1::ListPoolsResponse pools_message(const AddressStatus& status) {
    v1::ListPoolsResponse message;
    message.set_phase(status.phase);
    if (status.writes) {
        const kube::LeadershipStatus& leadership = status.writes->leadership;
        message.mutable_leader()->set_holder(leadership.holder);
        message.mutable_leader()->set_is_leader(leadership.is_leader);
        message.mutable_leader()->set_transitions(leadership.transitions);
    }
    message.set_refused(status.pools_refused);
    const Users users = users_of_reservations(status);
    for (size_t i = 0; i < status.pools.size(); ++i) {
        v1::AddressPool& pool = *message.add_pools();
        write_pool(pool, status.pools[i], users);
        if (i < status.usage.size()) {
            write_counts(*pool.mutable_ipv4(), status.usage[i].v4);
            write_counts(*pool.mutable_ipv6(), status.usage[i].v6);
        }
    }
    return message;
}

v1::ListAddressesResponse addresses_message(const AddressStatus& status,
                                            const v1::ListAddressesRequest& request) {
    const auto is_selected = [&](const kube::ObjectName& name) {
        return (request.namespace_().empty() || request.namespace_() == name.namespace_name) &&
               (request.name().empty() || request.name() == name.name);
    };
    struct Entry {
        const std::vector<ipam::AllocatedAddress>* addresses = nullptr;
        const RefusedService* refused = nullptr;
    };
    std::map<kube::ObjectName, Entry> entries;
    for (const auto& [name, addresses] : status.addresses) {
        if (is_selected(name)) {
            entries[name].addresses = &addresses;
        }
    }
    for (const RefusedService& refused : status.refused) {
        if (is_selected(refused.service)) {
            entries[refused.service].refused = &refused;
        }
    }
    v1::ListAddressesResponse message;
    for (const auto& [name, entry] : entries) {
        v1::ServiceAddresses& service = *message.add_services();
        write_name(*service.mutable_service(), name);
        if (entry.addresses != nullptr) {
            for (const ipam::AllocatedAddress& allocated : *entry.addresses) {
                v1::AssignedAddress& assigned = *service.add_addresses();
                assigned.set_address(allocated.address.to_string());
                assigned.set_pool(allocated.pool);
            }
        }
        if (entry.refused != nullptr) {
            service.mutable_refusal()->set_reason(ipam::to_string(entry.refused->reason));
            service.mutable_refusal()->set_message(entry.refused->message);
        }
    }
    return message;
}

}  // namespace penstock::sync
