// SPDX-License-Identifier: Apache-2.0
// The list of penstockctl's options, with defaults and descriptions, for --help and completion. options.cpp
// parses them.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "control/cli/commands/command.hpp"

namespace penstock::cli {

// Options of all commands.
[[nodiscard]] boost::program_options::options_description general_options();
// Options of single commands; Command::options lists those of a command.
[[nodiscard]] boost::program_options::options_description command_options();
// Whether all commands have the option with this long name.
[[nodiscard]] bool is_general(std::string_view option);

// The text of --help.
[[nodiscard]] std::string help_text();
// Synopsis, summary and options of one command.
[[nodiscard]] std::string help_text(const Command& command);
// Long names of all options of `command`, including the general ones: "--output".
[[nodiscard]] std::vector<std::string> option_names(const Command& command);
// Spellings of the options with a value, in the long and the short form: "--output", "-o".
[[nodiscard]] std::vector<std::string> options_with_value();

}  // namespace penstock::cli
