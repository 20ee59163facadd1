// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"
#include "control/cli/text.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_bfd(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto sessions, gateway->bfd_sessions());
    return structured(json_list(sessions.sessions()), request.format);
}

Result<Table> rows_of_bfd(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto sessions, gateway->bfd_sessions());
    return bfd_table(sessions, request.is_wide());
}

// "50ms x 3", the detection time of a side before it is agreed.
std::string terms_text(uint32_t interval_us, uint32_t multiplier) {
    if (interval_us == 0) {
        return {};
    }
    const std::string interval = interval_us % 1'000 == 0 ? std::to_string(interval_us / 1'000) + "ms"
                                                          : std::to_string(interval_us) + "us";
    return interval + " x " + std::to_string(multiplier);
}

}  // namespace

Table bfd_table(const v1::ListBfdSessionsResponse& sessions, bool wide) {
    std::vector<Table::Column> columns{{"PEER"}, {"TWIN"},      {"STATE"},
                                       {"FOR"},  {"DETECTION"}, {"TIMES-DOWN", true}};
    if (wide) {
        for (const Table::Column& column : {Table::Column{"LOCAL"},
                                            {"RECEIVED", true},
                                            {"SENT", true},
                                            {"WITHHELD", true},
                                            {"UNSENDABLE", true}}) {
            columns.push_back(column);
        }
    }
    columns.push_back({"REASON"});
    Table table(columns);
    for (const v1::BfdSession& session : sessions.sessions()) {
        // The peer's packets detect its loss: by its multiplier, at the longer of both intervals.
        std::vector<std::string> row{
            session.peer(),
            session.twin().empty() ? "multihop" : session.twin(),
            session.state(),
            duration_text(session.state_age_ms()),
            terms_text(std::max(session.min_rx_us(), session.remote_min_tx_us()),
                       session.remote_detect_multiplier() != 0 ? session.remote_detect_multiplier()
                                                               : session.detect_multiplier()),
            std::to_string(session.times_down())};
        if (wide) {
            row.push_back(session.local());
            for (const uint64_t number :
                 {session.received(), session.sent(), session.withheld(), session.unsendable()}) {
                row.push_back(std::to_string(number));
            }
        }
        row.push_back(session.reason());
        table.add(std::move(row));
    }
    return table;
}

Command get_bfd() {
    return {.words = {"get", "bfd"},
            .aliases = {},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary = "List the BFD sessions of the workers (--bfd), with the reason of each that is not up",
            .run = run_get_bfd,
            .rows = rows_of_bfd};
}

}  // namespace penstock::cli
