// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_flows(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto flows, gateway->flows());
    return structured(json_list(flows.rules()), request.format);
}

Result<Table> rows_of_flows(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto flows, gateway->flows());
    return flows_table(flows, request.is_wide());
}

std::string state_text(v1::FlowRule::State state) {
    switch (state) {
        case v1::FlowRule::STATE_INSTALLED:
            return "installed";
        case v1::FlowRule::STATE_REFUSED:
            return "refused";
        case v1::FlowRule::STATE_NOT_USED:
            return "not used";
        default:
            return "unknown";
    }
}

}  // namespace

Table flows_table(const v1::ListFlowsResponse& flows, bool wide) {
    std::vector<Table::Column> columns{{"PORT", true}, {"KIND"},  {"MATCH"},
                                       {"ACTION"},     {"STATE"}, {"PACKETS", true}};
    if (wide) {
        columns.push_back({"BYTES", true});
    }
    columns.push_back({"REASON"});
    Table table(std::move(columns));
    for (const v1::FlowRule& rule : flows.rules()) {
        const auto counted = [&](uint64_t count) {
            return rule.counted() ? std::to_string(count) : std::string();
        };
        std::vector<std::string> cells{
            std::to_string(rule.port()), rule.kind(), rule.match(), rule.action(), state_text(rule.state()),
            counted(rule.packets())};
        if (wide) {
            cells.push_back(counted(rule.bytes()));
        }
        cells.push_back(rule.reason());
        table.add(std::move(cells));
    }
    return table;
}

Command get_flows() {
    return {.words = {"get", "flows"},
            .aliases = {"flow"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary = "List NIC flow rules: installed, or refused with the reason, and hit counters",
            .run = run_get_flows,
            .rows = rows_of_flows};
}

}  // namespace penstock::cli
