// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/contexts.hpp"
#include "control/cli/json.hpp"
#include "control/cli/output.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

std::string sync_target_of(const Context& context) {
    return context.sync_server ? context.sync_server->text : client::kDefaultSyncTarget;
}

Result<std::string> run_get_contexts(Gateway*, const Request& request) {
    std::string list;
    for (const Context& context : request.contexts.list) {
        std::string entry = json_object({
            {"name", json_quoted(context.name) + "\n"},
            {"gateway", json_quoted(context.gateway.text) + "\n"},
            {"sync_server", json_quoted(sync_target_of(context)) + "\n"},
            {"is_default", context.name == request.contexts.chosen ? "true\n" : "false\n"},
        });
        entry.pop_back();
        list += (list.empty() ? "" : ",\n") + entry;
    }
    return structured("[" + list + "]\n", request.format);
}

Result<Table> rows_of_contexts(Gateway*, const Request& request) {
    Table table({{"NAME"}, {"GATEWAY"}, {"SYNC-SERVER"}, {"DEFAULT"}});
    for (const Context& context : request.contexts.list) {
        table.add({context.name, context.gateway.text, sync_target_of(context),
                   context.name == request.contexts.chosen ? "*" : ""});
    }
    return table;
}

}  // namespace

Command get_contexts() {
    return {.words = {"get", "contexts"},
            .aliases = {"context"},
            .options = {"output", "no-headers"},
            .summary = "List the gateways of the context file (--config)",
            .needs_gateway = false,
            .reads_contexts = true,
            .run = run_get_contexts,
            .rows = rows_of_contexts};
}

}  // namespace penstock::cli
