// SPDX-License-Identifier: Apache-2.0
// A command of penstockctl: its words, its arguments and options, and a function from a gateway to the text
// to print. Each command has its own file in this folder; list.cpp lists all.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/cli/gateway.hpp"
#include "control/cli/request.hpp"
#include "control/cli/table.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::cli {

struct Command {
    std::vector<std::string_view> words;    // {"get", "services"}
    std::vector<std::string_view> aliases;  // of the last word: {"service", "svc"}
    std::string_view arguments;             // for the help text: "[NAME]"
    size_t arguments_min = 0;
    size_t arguments_max = 0;
    std::vector<std::string_view> options;  // in addition to the general ones: {"namespace"}
    std::string_view summary;
    bool needs_gateway = true;
    Program program = Program::Penstockd;  // the program to connect to
    // Also connects to penstock-sync, for Gateway::addresses(). The command works without it.
    bool reads_addresses = false;
    // Needs the context file (Request.contexts).
    bool reads_contexts = false;
    // Returns text for standard output, including the newline. InvalidArgument is a usage error. Called for
    // JSON and YAML only if the command has `rows`.
    Result<std::string> (*run)(Gateway* gateway, const Request& request);
    // The answer as one table. With --all-gateways, the rows of all gateways are one table with a column
    // GATEWAY. Null: the answer is no table.
    Result<Table> (*rows)(Gateway* gateway, const Request& request) = nullptr;
    // Called after the text has been printed, except with --watch. An error determines the exit code. Null:
    // the code is 0.
    Status (*judge)(Gateway* gateway, const Request& request) = nullptr;
    // Instead of `run`: prints to standard output itself, and returns the exit code. For commands that run
    // until they are interrupted, or that have exit codes of their own.
    Result<int> (*perform)(Gateway* gateway, const Request& request) = nullptr;
};

// In the order of --help.
[[nodiscard]] std::span<const Command> all_commands();

// "get services"
[[nodiscard]] std::string name_of(const Command& command);

// Whether the command reads only, so that it may run at all gateways at once.
[[nodiscard]] bool runs_at_all_gateways(const Command& command);

// Runs `command`. With Request.no_headers the first line of a table is omitted; JSON and YAML have no such
// line.
[[nodiscard]] Result<std::string> answer_of(const Command& command, Gateway* gateway, const Request& request);

// The text of a table, without its first line if Request.no_headers.
[[nodiscard]] std::string without_header(std::string table, const Request& request);

}  // namespace penstock::cli
