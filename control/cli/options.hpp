// Command line of penstockctl: which command, and with which options. One grammar for all commands; an option that a command does not know
// is refused by name, wherever on the line it stands. Pure.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "control/cli/commands/command.hpp"
#include "control/cli/request.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct Invocation {
    const Command* command = nullptr;
    Request request;
};

// Text that answers --help or --version.
struct Information {
    std::string text;
};

// `arguments` without the program's name. Every error is one of usage.
[[nodiscard]] Result<std::variant<Invocation, Information>> read_command_line(const std::vector<std::string>& arguments);

[[nodiscard]] std::string help_text();
// Long names of all options that `command` takes, the general ones included: "--output".
[[nodiscard]] std::vector<std::string> option_names(const Command& command);

}  // namespace penstock::cli
