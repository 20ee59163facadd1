// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_shares(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto shares, gateway->shares());
    return structured(json_list(shares.shares()), request.format);
}

Result<Table> rows_of_shares(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto shares, gateway->shares());
    return shares_table(shares, request.is_wide());
}

Result<std::string> run_get_gateways(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto shares, gateway->shares());
    return structured(json_list(shares.gateways()), request.format);
}

Result<Table> rows_of_gateways(Gateway* gateway, const Request&) {
    PENSTOCK_TRY(const auto shares, gateway->shares());
    return gateways_table(shares);
}

std::string comma_list(const auto& texts) {
    std::string list;
    for (const std::string& text : texts) {
        list += (list.empty() ? "" : ",") + text;
    }
    return list;
}

}  // namespace

Table shares_table(const v1::ListSharesResponse& shares, bool wide) {
    std::vector<Table::Column> columns{{"SHARE", true},  {"PRIMARY"},         {"HEIR"}, {"ROLE"},
                                       {"SERVED", true}, {"ANNOUNCED", true}, {"SNAT"}};
    if (wide) {
        columns.push_back({"VIPS"});
    }
    Table table(columns);
    for (const v1::Share& share : shares.shares()) {
        std::vector<std::string> row{std::to_string(share.number()),
                                     share.primary(),
                                     share.heir(),
                                     share.role(),
                                     std::to_string(share.served()),
                                     std::to_string(share.announced()),
                                     comma_list(share.snat())};
        if (wide) {
            row.push_back(comma_list(share.vips()));
        }
        table.add(std::move(row));
    }
    return table;
}

Table gateways_table(const v1::ListSharesResponse& shares) {
    Table table({{"NAME"}, {"THIS"}, {"WEIGHT", true}, {"PRIMARY-OF", true}, {"HEIR-OF", true}});
    for (const v1::PlannedGateway& gateway : shares.gateways()) {
        table.add({gateway.name(), gateway.name() == shares.gateway_name() ? "yes" : "",
                   std::to_string(gateway.weight()), std::to_string(gateway.primary_of()),
                   std::to_string(gateway.heir_of())});
    }
    return table;
}

Command get_shares() {
    return {.words = {"get", "shares"},
            .aliases = {"share"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary =
                "List the shares of several gateways (--shares): primary, heir, the role of this gateway, "
                "VIPs served and announced, SNAT addresses",
            .run = run_get_shares,
            .rows = rows_of_shares};
}

Command get_gateways() {
    return {.words = {"get", "gateways"},
            .aliases = {"gateway"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary = "List the gateways of the plan of shares (--shares) and the number of their shares",
            .run = run_get_gateways,
            .rows = rows_of_gateways};
}

}  // namespace penstock::cli
