// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

std::string usage_sentence(const v1::AddressCounts& counts) {
    return counts.total() == 0 && counts.used() == 0
               ? "none"
               : count_text(counts.total()) + " addresses, " + count_text(counts.used()) + " used, " +
                     count_text(counts.free()) + " free";
}

const char* on_off(bool value) {
    return value ? "on" : "off";
}

// "any" without a restriction; "all" for a selector without requirements.
std::string selector_text(bool is_set, const std::string& selector) {
    return !is_set ? "any" : selector.empty() ? "all" : selector;
}

std::string reservations_text(const v1::AddressPool& pool) {
    if (pool.reservations().empty()) {
        return indented_line("Reservations", "none");
    }
    Table table({{"ADDRESS"}, {"SERVICE"}, {"STATE"}});
    for (const v1::AddressReservation& reservation : pool.reservations()) {
        std::vector<std::string> others;
        for (const v1::ServiceName& user : reservation.users()) {
            if (text_of(user) != text_of(reservation.service())) {
                others.push_back(text_of(user));
            }
        }
        table.add({reservation.address(), text_of(reservation.service()),
                   !others.empty()               ? "used by " + list_text(others, others.size())
                   : reservation.users().empty() ? "not in use"
                                                 : "in use"});
    }
    return "  Reservations:\n" + table.text(4);
}

// The Services with an address of `pool`, with these addresses only.
v1::ListAddressesResponse services_of(const std::string& pool, const v1::ListAddressesResponse& addresses) {
    v1::ListAddressesResponse found;
    for (const v1::ServiceAddresses& service : addresses.services()) {
        v1::ServiceAddresses here;
        for (const v1::AssignedAddress& assigned : service.addresses()) {
            if (assigned.pool() == pool) {
                *here.add_addresses() = assigned;
            }
        }
        if (!here.addresses().empty()) {
            *here.mutable_service() = service.service();
            *found.add_services() = std::move(here);
        }
    }
    return found;
}

std::string services_text(const v1::ListAddressesResponse& services) {
    if (services.services().empty()) {
        return indented_line("Services", "none");
    }
    Table table({{"SERVICE"}, {"ADDRESSES"}});
    for (const v1::ServiceAddresses& service : services.services()) {
        table.add({text_of(service.service()), addresses_text(service)});
    }
    return "  Services:\n" + table.text(4);
}

Result<std::string> run_describe_pool(Gateway* gateway, const Request& request) {
    const std::string& name = request.arguments[0];
    PENSTOCK_TRY(const auto pools, gateway->pools());
    const auto pool = std::ranges::find(pools.pools(), name, &v1::AddressPool::name);
    if (pool == pools.pools().end()) {
        return fail(
            Errc::NotFound,
            "there is no pool " + name + " in force" +
                (pools.refused().empty() ? "" : "; the newest list of pools is refused: " + pools.refused()));
    }
    PENSTOCK_TRY(const auto addresses, gateway->addresses({}));
    if (request.is_structured()) {
        return structured(json_object({{"pool", json_text(*pool)},
                                       {"services", json_list(services_of(name, addresses).services())}}),
                          request.format);
    }
    return pool_description(*pool, addresses) + "\n" + pools_footer(pools);
}

}  // namespace

std::string pool_description(const v1::AddressPool& pool, const v1::ListAddressesResponse& addresses) {
    return "Pool " + pool.name() + "\n" +                                //
           indented_line("Addresses", list_or(pool.ranges(), "none")) +  //
           indented_line("IPv4", usage_sentence(pool.ipv4())) +          //
           indented_line("IPv6", usage_sentence(pool.ipv6())) +          //
           indented_line("Disabled", on_off(pool.disabled())) +          //
           indented_line("Auto-assign", on_off(pool.auto_assign())) +    //
           indented_line("Internal", on_off(pool.internal())) +          //
           indented_line("Enforce", on_off(pool.enforce())) +            //
           indented_line("Reassign", on_off(pool.reassign())) +          //
           indented_line("Avoid buggy IPs", on_off(pool.avoid_buggy_ips())) +
           indented_line("Priority", std::to_string(pool.priority())) +      //
           indented_line("Namespaces", list_or(pool.namespaces(), "any")) +  //
           indented_line("NS labels",
                         selector_text(pool.has_namespace_selector(), pool.namespace_selector())) +
           indented_line("Service labels",
                         selector_text(pool.has_service_selector(), pool.service_selector())) +
           reservations_text(pool) + services_text(services_of(pool.name(), addresses));
}

Command describe_pool() {
    return {.words = {"describe", "pool"},
            .aliases = {"pools"},
            .arguments = "NAME",
            .arguments_min = 1,
            .arguments_max = 1,
            .options = {"output", "watch", "interval"},
            .summary = "Show everything about one address pool: rules, usage, reservations, Services",
            .program = Program::PenstockSync,
            .run = run_describe_pool};
}

}  // namespace penstock::cli
