// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/service_name.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

Result<v1::ListBackendsResponse> requested_backends(Gateway& gateway, const Request& request) {
    PENSTOCK_TRY(const auto name, service_filter_from(request));
    v1::ListBackendsRequest filter;
    filter.set_namespace_(name.namespace_name);
    filter.set_service(name.name);
    return gateway.backends(filter);
}

Result<std::string> run_get_backends(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto backends, requested_backends(*gateway, request));
    return structured(json_list(backends.backends()), request.format);
}

Result<Table> rows_of_backends(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto backends, requested_backends(*gateway, request));
    return backends_table(backends, request.is_wide());
}

}  // namespace

Table backends_table(const v1::ListBackendsResponse& backends, bool wide) {
    std::vector<Table::Column> columns{{"NAMESPACE"},  {"SERVICE"},        {"PORT"},   {"PROTO"},
                                       {"BACKEND"},    {"STATE"},          {"HEALTH"}, {"CONNECTIONS", true},
                                       {"OPEN", true}, {"NEW-FLOWS", true}};
    if (wide) {
        columns.insert(columns.end(), {{"WEIGHT", true}, {"NODE"}, {"ZONE"}});
    }
    Table table(std::move(columns));
    for (const v1::BackendStatus& backend : backends.backends()) {
        const v1::Endpoint& endpoint = backend.endpoint();
        std::vector<std::string> cells{backend.service().namespace_(),
                                       backend.service().name(),
                                       backend.service().port_name(),
                                       text_of(backend.service().protocol()),
                                       socket_text(endpoint.address(), endpoint.port()),
                                       backend.sets().empty() ? "draining" : "serving",
                                       health_text(backend.health()),
                                       std::to_string(backend.connections()),
                                       std::to_string(backend.open_connections()),
                                       std::to_string(backend.new_flows())};
        if (wide) {
            cells.insert(cells.end(), {std::to_string(endpoint.has_weight() ? endpoint.weight() : 1),
                                       endpoint.node_name(), endpoint.zone()});
        }
        table.add(std::move(cells));
    }
    return table;
}

Command get_backends() {
    return {.words = {"get", "backends"},
            .aliases = {"backend", "be", "endpoints", "ep"},
            .arguments = "[NAME|NS/NAME]",
            .arguments_max = 1,
            .options = {"namespace", "all-namespaces", "output", "no-headers", "watch", "interval",
                        "all-gateways"},
            .summary = "List endpoints of services with health and counters, including draining ones",
            .run = run_get_backends,
            .rows = rows_of_backends};
}

}  // namespace penstock::cli
