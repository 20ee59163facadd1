// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

std::string age_text(bool has_age, uint64_t age_ms) {
    return has_age ? duration_text(age_ms) : std::string();
}

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

Result<Table> rows_of_gateways(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto shares, gateway->shares());
    return gateways_table(shares, request.is_wide());
}

std::string comma_list(const auto& texts) {
    std::string list;
    for (const std::string& text : texts) {
        list += (list.empty() ? "" : ",") + text;
    }
    return list;
}

std::string role_text(const v1::Share& share) {
    return share.role() + (share.holds() ? ", holds" : "") +
           (share.held()      ? " (awaits fail-back)"
            : share.returns() ? " (returns)"
                              : "");
}

}  // namespace

Table shares_table(const v1::ListSharesResponse& shares, bool wide) {
    std::vector<Table::Column> columns{{"SHARE", true},  {"PRIMARY"},         {"HEIR"}, {"ROLE"},
                                       {"SERVED", true}, {"ANNOUNCED", true}, {"SNAT"}, {"COPIES", true},
                                       {"CHANNEL"},      {"STRAYS"}};
    if (wide) {
        columns.push_back({"AGE", true});
        columns.push_back({"VIPS"});
    }
    Table table(columns);
    for (const v1::Share& share : shares.shares()) {
        std::vector<std::string> row{std::to_string(share.number()),
                                     share.primary(),
                                     share.heir(),
                                     role_text(share),
                                     std::to_string(share.served()),
                                     std::to_string(share.announced()),
                                     comma_list(share.snat()),
                                     std::to_string(share.copies()),
                                     share.channel(),
                                     share.strays()};
        if (wide) {
            row.push_back(age_text(share.has_complete_age_ms(), share.complete_age_ms()));
            row.push_back(comma_list(share.vips()));
        }
        table.add(std::move(row));
    }
    return table;
}

Table gateways_table(const v1::ListSharesResponse& shares, bool wide) {
    std::vector<Table::Column> columns{
        {"NAME"},    {"THIS"},         {"WEIGHT", true}, {"PRIMARY-OF", true}, {"HEIR-OF", true}, {"ADDRESS"},
        {"CHANNEL"}, {"COPIES", true}, {"THERE", true},  {"AGE", true},        {"STRAYS"}};
    if (wide) {
        columns.insert(columns.end(),
                       {{"LINK"}, {"RECEIVED", true}, {"REFUSED", true}, {"SENT", true}, {"STREAMS", true}});
    }
    columns.push_back({"ERROR"});
    Table table(columns);
    for (const v1::PlannedGateway& gateway : shares.gateways()) {
        std::vector<std::string> row{gateway.name(),
                                     gateway.name() == shares.gateway_name() ? "yes" : "",
                                     std::to_string(gateway.weight()),
                                     std::to_string(gateway.primary_of()),
                                     std::to_string(gateway.heir_of()),
                                     gateway.address(),
                                     gateway.channel(),
                                     std::to_string(gateway.copies()),
                                     std::to_string(gateway.copies_there()),
                                     age_text(gateway.has_complete_age_ms(), gateway.complete_age_ms()),
                                     gateway.strays()};
        if (wide) {
            row.push_back(gateway.link());
            const uint64_t refused = gateway.records_refused_share() + gateway.records_refused_full() +
                                     gateway.records_refused_taken();
            for (const uint64_t number :
                 {gateway.records_received(), refused, gateway.records_sent(), gateway.streams()}) {
                row.push_back(std::to_string(number));
            }
        }
        row.push_back(gateway.channel_fault());
        table.add(std::move(row));
    }
    return table;
}

Command get_shares() {
    return {.words = {"get", "shares"},
            .aliases = {"share"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary =
                "List the shares of several gateways (--shares): primary, heir, the role of this gateway, "
                "VIPs served and announced, SNAT addresses, copies of connections, and where strays go",
            .run = run_get_shares,
            .rows = rows_of_shares};
}

Command get_gateways() {
    return {
        .words = {"get", "gateways"},
        .aliases = {"gateway"},
        .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
        .summary =
            "List the gateways of the plan of shares (--shares), the number of their shares, the copies of "
            "their connections, and whether strays go there",
        .run = run_get_gateways,
        .rows = rows_of_gateways};
}

}  // namespace penstock::cli
