// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/service_name.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

Result<std::vector<v1::AffinityEntry>> requested_affinity(Gateway& gateway, const Request& request) {
    v1::ListAffinityRequest filter;
    PENSTOCK_TRY(const auto name, service_filter_from(request));
    filter.set_namespace_(name.namespace_name);
    filter.set_name(name.name);
    filter.set_client(request.client.address());
    filter.set_limit(request.limit);
    std::vector<v1::AffinityEntry> entries;
    PENSTOCK_TRY_STATUS(
        gateway.affinity(filter, [&](const v1::AffinityEntry& each) { entries.push_back(each); }));
    return entries;
}

Result<std::string> run_get_affinity(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto entries, requested_affinity(*gateway, request));
    return structured(json_list(entries), request.format);
}

Result<Table> rows_of_affinity(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto entries, requested_affinity(*gateway, request));
    return affinity_table(entries);
}

}  // namespace

Table affinity_table(const std::vector<v1::AffinityEntry>& entries) {
    Table table(
        {{"NAMESPACE"}, {"SERVICE"}, {"PORT"}, {"PROTO"}, {"CLIENT"}, {"BACKEND"}, {"AGE"}, {"REMAINING"}});
    for (const v1::AffinityEntry& entry : entries) {
        const bool all = entry.all_ports();  // such an entry has no port
        table.add({entry.service().namespace_(), entry.service().name(),
                   all ? "*" : entry.service().port_name(), all ? "*" : text_of(entry.service().protocol()),
                   entry.client(), all ? entry.backend().address() : text_of(entry.backend()),
                   duration_text(entry.age_ms()), duration_text(entry.remaining_ms())});
    }
    return table;
}

Command get_affinity() {
    return {.words = {"get", "affinity"},
            .arguments = "[NAME|NS/NAME]",
            .arguments_max = 1,
            .options = {"namespace", "all-namespaces", "client", "limit", "output", "no-headers", "watch",
                        "interval", "all-gateways"},
            .summary = "List the clients of services with session affinity and their endpoints",
            .run = run_get_affinity,
            .rows = rows_of_affinity};
}

}  // namespace penstock::cli
