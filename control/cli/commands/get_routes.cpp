// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_routes(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto routes, gateway->routes());
    return structured(json_list(routes.routes()), request.format);
}

Result<Table> rows_of_routes(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto routes, gateway->routes());
    return routes_table(routes, request.is_wide());
}

}  // namespace

Table routes_table(const v1::ListRoutesResponse& routes, bool wide) {
    std::vector<Table::Column> columns{{"DESTINATION"}, {"GATEWAY"}, {"TWIN"}, {"METRIC", true}};
    if (wide) {
        columns.push_back({"PORT", true});
    }
    Table table(std::move(columns));
    for (const v1::Route& route : routes.routes()) {
        std::vector<std::string> cells{route.destination(), route.gateway(), route.twin(),
                                       std::to_string(route.metric())};
        if (wide) {
            cells.push_back(std::to_string(route.port()));
        }
        table.add(std::move(cells));
    }
    return table;
}

Command get_routes() {
    return {.words = {"get", "routes"},
            .aliases = {"route"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary = "List routes as mirrored from Linux; gateway \"-\" means on-link",
            .run = run_get_routes,
            .rows = rows_of_routes};
}

}  // namespace penstock::cli
