// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/service_name.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

// Each pool once, in the order of the addresses; "-" for an address that no pool covers.
std::string pools_text(const v1::ServiceAddresses& service) {
    std::vector<std::string> pools;
    for (const v1::AssignedAddress& assigned : service.addresses()) {
        const std::string pool = assigned.pool().empty() ? "-" : assigned.pool();
        if (std::ranges::find(pools, pool) == pools.end()) {
            pools.push_back(pool);
        }
    }
    return list_text(pools, pools.size());
}

Result<std::string> run_get_addresses(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto named, service_filter_from(request));
    v1::ListAddressesRequest which;
    which.set_namespace_(named.namespace_name);
    which.set_name(named.name);
    PENSTOCK_TRY(const auto addresses, gateway->addresses(which));
    if (!named.name.empty() && addresses.services().empty()) {
        return fail(Errc::NotFound, "penstock-sync assigns or refuses no address of a Service " +
                                        (named.namespace_name.empty() ? "" : named.namespace_name + "/") +
                                        named.name);
    }
    return request.is_structured() ? structured(json_list(addresses.services()), request.format)
                                   : addresses_table(addresses);
}

}  // namespace

std::string addresses_text(const v1::ServiceAddresses& service) {
    std::vector<std::string> addresses;
    for (const v1::AssignedAddress& assigned : service.addresses()) {
        addresses.push_back(assigned.address());
    }
    return list_text(addresses, addresses.size());
}

std::string addresses_table(const v1::ListAddressesResponse& addresses) {
    Table table({{"NAMESPACE"}, {"NAME"}, {"ADDRESSES"}, {"POOL"}, {"REFUSED"}, {"MESSAGE"}});
    for (const v1::ServiceAddresses& service : addresses.services()) {
        table.add({service.service().namespace_(), service.service().name(), addresses_text(service),
                   pools_text(service), service.refusal().reason(), service.refusal().message()});
    }
    return table.text();
}

std::string refusal_description(const v1::ServiceAddresses& service) {
    const std::string addresses = addresses_text(service);
    return "LoadBalancer addresses of " + text_of(service.service()) + "\n" +
           indented_line("Addresses",
                         addresses.empty() ? "none" : addresses + " from pool " + pools_text(service)) +
           indented_line("Refused", service.refusal().reason() + ": " + service.refusal().message());
}

Command get_addresses() {
    return {.words = {"get", "addresses"},
            .aliases = {"address"},
            .arguments = "[NAME|NS/NAME]",
            .arguments_max = 1,
            .options = {"namespace", "all-namespaces", "output", "no-headers", "watch", "interval"},
            .summary = "List addresses that penstock-sync assigned to Services, and why it refused others",
            .program = Program::PenstockSync,
            .run = run_get_addresses};
}

}  // namespace penstock::cli
