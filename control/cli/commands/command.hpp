// A command of penstockctl: what it is called, what it takes, and a function from a gateway to the text to print. One file a command,
// beside this one; list.cpp names them all.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/cli/gateway.hpp"
#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct Command {
    std::vector<std::string_view> words;    // {"get", "services"}
    std::vector<std::string_view> aliases;  // of the last word: {"service", "svc"}
    std::string_view arguments;             // for people: "[NAME]"
    size_t arguments_min = 0;
    size_t arguments_max = 0;
    std::vector<std::string_view> options;  // beyond the general ones: {"namespace"}
    std::string_view summary;
    bool needs_gateway = true;
    Program program = Program::Penstockd;  // which one is asked
    // Text for standard output, newline included. InvalidArgument is an error of usage.
    Result<std::string> (*run)(Gateway* gateway, const Request& request);
    // Asked after the text has been printed, but with --watch: an error is the exit code. Null: the code is 0.
    Status (*judge)(Gateway* gateway, const Request& request) = nullptr;
};

// In the order of --help.
[[nodiscard]] std::span<const Command> all_commands();

// "get services"
[[nodiscard]] std::string name_of(const Command& command);

// Runs `command`. With Request.no_headers a table is without its first line; json and yaml have none.
[[nodiscard]] Result<std::string> answer_of(const Command& command, Gateway* gateway, const Request& request);

}  // namespace penstock::cli
