// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_workers(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto workers, gateway->workers());
    return structured(json_list(workers.workers()), request.format);
}

Result<Table> rows_of_workers(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto workers, gateway->workers());
    return workers_table(workers, request.is_wide());
}

// "7.3%"
std::string percent_text(double ratio) {
    const auto tenths = static_cast<long>(std::lround(ratio * 1000));
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

}  // namespace

Table workers_table(const v1::ListWorkersResponse& workers, bool wide) {
    std::vector<Table::Column> columns{{"ID", true},         {"CORE", true},      {"CONNECTIONS", true},
                                       {"OPEN", true},       {"CAPACITY", true},  {"PACKETS", true},
                                       {"HANDED-OFF", true}, {"HANDED-IN", true}, {"BUSY", true}};
    if (wide) {
        columns.insert(columns.end(), {{"IDLE"},
                                       {"ASLEEP", true},
                                       {"SLEEPS", true},
                                       {"POLLS", true},
                                       {"EMPTY-POLLS", true},
                                       {"GENERATION", true}});
    }
    Table table(std::move(columns));
    for (const v1::Worker& worker : workers.workers()) {
        std::vector<std::string> cells{std::to_string(worker.id()),
                                       std::to_string(worker.core()),
                                       std::to_string(worker.connections()),
                                       std::to_string(worker.open_connections()),
                                       std::to_string(worker.connections_max()),
                                       std::to_string(worker.packets()),
                                       std::to_string(worker.handed_off()),
                                       std::to_string(worker.handed_in()),
                                       percent_text(worker.busy_ratio())};
        if (wide) {
            cells.insert(cells.end(),
                         {worker.idle(), percent_text(worker.sleep_ratio()), std::to_string(worker.sleeps()),
                          std::to_string(worker.polls()), std::to_string(worker.empty_polls()),
                          std::to_string(worker.generation())});
        }
        table.add(std::move(cells));
    }
    return table;
}

Command get_workers() {
    return {.words = {"get", "workers"},
            .aliases = {"worker"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary = "List workers: load, connections, packets handed off between workers",
            .run = run_get_workers,
            .rows = rows_of_workers};
}

}  // namespace penstock::cli
