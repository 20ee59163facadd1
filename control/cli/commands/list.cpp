// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"

namespace penstock::cli {

std::span<const Command> all_commands() {
    static const std::vector<Command> commands{get_services(),  get_backends(),     get_connections(),
                                               get_affinity(),  get_ports(),        get_flows(),
                                               get_workers(),   get_routes(),       get_neighbours(),
                                               get_vips(),      get_sync(),         get_pools(),
                                               get_addresses(), describe_service(), describe_pool(),
                                               stats(),         explain(),          explain_annotations(),
                                               status(),        version(),          clear_affinity(),
                                               set_log_level(), set_scheduler(),    drain(),
                                               undrain(),       upgrade(),          top_command(),
                                               doctor(),        doctor_bind(),      doctor_unbind(),
                                               completion()};
    return commands;
}

std::string name_of(const Command& command) {
    std::string name;
    for (const std::string_view word : command.words) {
        name += (name.empty() ? "" : " ") + std::string(word);
    }
    return name;
}

Result<std::string> answer_of(const Command& command, Gateway* gateway, const Request& request) {
    auto answer = command.run(gateway, request);
    if (answer && request.no_headers && !request.is_structured()) {
        answer->erase(0, answer->find('\n') + 1);
    }
    return answer;
}

}  // namespace penstock::cli
