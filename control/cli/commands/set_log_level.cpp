// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "control/cli/commands/list.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_set_log_level(Gateway* gateway, const Request& request) {
    v1::SetLogLevelRequest change;
    change.set_level(request.arguments[0]);
    change.set_logger(request.arguments.size() > 1 ? request.arguments[1] : "");
    PENSTOCK_TRY(const auto levels, gateway->set_log_level(change));
    if (request.is_structured()) {
        return structured(json_text(levels), request.format);
    }
    Table table({{"LOGGER"}, {"LEVEL"}});
    for (const auto& [logger, level] :
         std::map<std::string, std::string>(levels.levels().begin(), levels.levels().end())) {
        table.add({logger, level});
    }
    return table.text();
}

}  // namespace

Command set_log_level() {
    return {.words = {"set", "log-level"},
            .arguments = "LEVEL [LOGGER]",
            .arguments_min = 1,
            .arguments_max = 2,
            .options = {"output"},
            .summary = "Set the log level of penstockd: trace, debug, info, warn, error or off",
            .run = run_set_log_level};
}

}  // namespace penstock::cli
