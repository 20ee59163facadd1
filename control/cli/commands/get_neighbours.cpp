// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_neighbours(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto neighbours, gateway->neighbours());
    return structured(json_list(neighbours.neighbours()), request.format);
}

Result<Table> rows_of_neighbours(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto neighbours, gateway->neighbours());
    return neighbours_table(neighbours, request.is_wide());
}

}  // namespace

Table neighbours_table(const v1::ListNeighboursResponse& neighbours, bool wide) {
    std::vector<Table::Column> columns{{"ADDRESS"}, {"MAC"}, {"STATE"}, {"TWIN"}, {"USED"}};
    if (wide) {
        columns.push_back({"PORT", true});
    }
    Table table(std::move(columns));
    for (const v1::Neighbour& neighbour : neighbours.neighbours()) {
        const bool was_used = neighbour.used_ms_ago() >= 0;
        std::vector<std::string> cells{
            neighbour.address(), neighbour.mac(), neighbour.state(), neighbour.twin(),
            was_used ? duration_text(static_cast<uint64_t>(neighbour.used_ms_ago())) + " ago" : "never"};
        if (wide) {
            cells.push_back(std::to_string(neighbour.port()));
        }
        table.add(std::move(cells));
    }
    return table;
}

Command get_neighbours() {
    return {.words = {"get", "neighbours"},
            .aliases = {"neighbour", "neighbors", "neighbor"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary = "List next hops and their MAC addresses, as mirrored from Linux",
            .run = run_get_neighbours,
            .rows = rows_of_neighbours};
}

}  // namespace penstock::cli
