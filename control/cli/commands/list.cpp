// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"

#include <algorithm>
#include <utility>

namespace penstock::cli {

std::span<const Command> all_commands() {
    static const std::vector<Command> commands{
        get_services(), get_backends(),   get_connections(),     get_affinity(),    get_ports(),
        get_flows(),    get_workers(),    get_routes(),          get_neighbours(),  get_vips(),
        get_bfd(),      get_shares(),     get_gateways(),        get_contexts(),    get_sync(),
        get_pools(),    get_addresses(),  describe_service(),    describe_pool(),   describe_share(),
        stats(),        explain(),        explain_annotations(), capture_command(), status(),
        version(),      clear_affinity(), set_log_level(),       set_scheduler(),   drain(),
        undrain(),      upgrade(),        fail_back(),           top_command(),     doctor(),
        doctor_bind(),  doctor_unbind(),  completion()};
    return commands;
}

std::string name_of(const Command& command) {
    std::string name;
    for (const std::string_view word : command.words) {
        name += (name.empty() ? "" : " ") + std::string(word);
    }
    return name;
}

bool runs_at_all_gateways(const Command& command) {
    return std::ranges::find(command.options, "all-gateways") != command.options.end();
}

std::string without_header(std::string table, const Request& request) {
    if (request.no_headers) {
        table.erase(0, table.find('\n') + 1);
    }
    return table;
}

Result<std::string> answer_of(const Command& command, Gateway* gateway, const Request& request) {
    if (request.is_structured()) {
        return command.run(gateway, request);
    }
    if (command.rows != nullptr) {
        PENSTOCK_TRY(const auto rows, command.rows(gateway, request));
        return without_header(rows.text(), request);
    }
    PENSTOCK_TRY(auto text, command.run(gateway, request));
    return without_header(std::move(text), request);
}

}  // namespace penstock::cli
