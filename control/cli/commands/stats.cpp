// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_stats(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto counters, gateway->counters());
    return request.is_structured() ? structured(json_text(counters), request.format)
                                   : counters_tables(counters, request.is_wide());
}

// NAME VALUE [W0 W1 ...] MEANING, for any message with a name, a value and a value for each worker.
template <typename Rows, typename NameOf, typename ValueOf>
std::string counters_table(const char* name_column, const char* value_column, const Rows& rows, bool wide,
                           NameOf name_of, ValueOf value_of) {
    int workers = 0;
    for (const auto& row : rows) {
        workers = std::max(workers, row.per_worker_size());
    }
    std::vector<Table::Column> columns{{name_column}, {value_column, true}};
    for (int i = 0; wide && i < workers; ++i) {
        columns.push_back({"WORKER-" + std::to_string(i), true});
    }
    columns.push_back({"MEANING"});
    Table table(std::move(columns));
    for (const auto& row : rows) {
        std::vector<std::string> cells{name_of(row), std::to_string(value_of(row))};
        for (int i = 0; wide && i < workers; ++i) {
            cells.push_back(i < row.per_worker_size() ? std::to_string(row.per_worker(i)) : "");
        }
        cells.push_back(row.meaning());
        table.add(std::move(cells));
    }
    return table.text();
}

}  // namespace

std::string counters_tables(const v1::Counters& counters, bool wide) {
    return counters_table(
               "COUNTER", "VALUE", counters.counters(), wide,
               [](const v1::Counter& row) { return row.name(); },
               [](const v1::Counter& row) { return row.value(); }) +
           "\n" +
           counters_table(
               "DROP-REASON", "PACKETS", counters.drops(), wide,
               [](const v1::DropCounter& row) { return row.reason(); },
               [](const v1::DropCounter& row) { return row.packets(); });
}

Command stats() {
    return {.words = {"stats"},
            .options = {"output", "watch", "interval", "all-gateways"},
            .summary = "Show all counters, and dropped packets by reason, with their meaning",
            .run = run_stats};
}

}  // namespace penstock::cli
