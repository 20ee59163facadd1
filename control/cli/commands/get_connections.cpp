// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

Result<std::vector<v1::Connection>> requested_connections(Gateway& gateway, const Request& request) {
    v1::ListConnectionsRequest filter;
    *filter.mutable_client() = request.client;
    *filter.mutable_frontend() = request.frontend;
    *filter.mutable_backend() = request.backend;
    filter.set_protocol(request.protocol);
    filter.set_limit(request.limit);
    std::vector<v1::Connection> connections;
    PENSTOCK_TRY_STATUS(
        gateway.connections(filter, [&](const v1::Connection& each) { connections.push_back(each); }));
    return connections;
}

Result<std::string> run_get_connections(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto connections, requested_connections(*gateway, request));
    return structured(json_list(connections), request.format);
}

Result<Table> rows_of_connections(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto connections, requested_connections(*gateway, request));
    return connections_table(connections, request.is_wide());
}

}  // namespace

Table connections_table(const std::vector<v1::Connection>& connections, bool wide) {
    std::vector<Table::Column> columns{{"PROTO"}, {"CLIENT"}, {"FRONTEND"}, {"BACKEND"},
                                       {"SNAT"},  {"STATE"},  {"AGE"},      {"IDLE"}};
    if (wide) {
        columns.insert(columns.end(), {{"EXPIRES"}, {"WORKER", true}, {"SERVICE"}});
    }
    Table table(std::move(columns));
    for (const v1::Connection& connection : connections) {
        std::vector<std::string> cells{
            text_of(connection.protocol()),     text_of(connection.client()),
            text_of(connection.frontend()),     text_of(connection.backend()),
            text_of(connection.snat()),         connection.state(),
            duration_text(connection.age_ms()), duration_text(connection.idle_ms())};
        if (wide) {
            cells.insert(cells.end(), {duration_text(connection.expires_ms()),
                                       std::to_string(connection.worker()), text_of(connection.service())});
        }
        table.add(std::move(cells));
    }
    return table;
}

Command get_connections() {
    return {.words = {"get", "connections"},
            .aliases = {"connection", "conn"},
            .options = {"client", "frontend", "backend", "proto", "limit", "output", "no-headers", "watch",
                        "interval", "all-gateways"},
            .summary = "List live connections that match all given filters",
            .run = run_get_connections,
            .rows = rows_of_connections};
}

}  // namespace penstock::cli
