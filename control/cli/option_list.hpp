// SPDX-License-Identifier: Apache-2.0
// The list of penstockctl's options: names, forms and descriptions for --help and completion, and the
// variables that the values are stored in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/cli/commands/command.hpp"
#include "control/cli/options.hpp"
#include "control/cli/request.hpp"
#include "control/options/option_set.hpp"

namespace penstock::cli {

// Adds the options of all commands, and those of single commands (Command::options lists those of a command).
// `set` stores into `request`, which must outlive it.
void add_options(options::OptionSet& set, Request& request, const Environment& environment);
// Whether all commands have the option with this long name.
[[nodiscard]] bool is_general(std::string_view option);

// The text of --help, and its paragraphs about the environment and about exit codes.
[[nodiscard]] std::string help_text();
extern const char* const kVariables;
extern const char* const kExitCodes;
// Synopsis and summary, as a line of --help.
[[nodiscard]] std::string summary_line(const Command& command);
// Synopsis, summary and options of one command.
[[nodiscard]] std::string help_text(const Command& command);
// Long names of all options of `command`, including the general ones: "--output".
[[nodiscard]] std::vector<std::string> option_names(const Command& command);
// The options of `command`, the general ones, and all of them; for completions and manual pages.
[[nodiscard]] std::vector<options::OptionSet::Option> shown_options(const Command& command);
[[nodiscard]] std::vector<options::OptionSet::Option> general_options();
[[nodiscard]] std::vector<options::OptionSet::Option> all_shown_options();
// Spellings of the options with a value, in the long and the short form: "--output", "-o".
[[nodiscard]] std::vector<std::string> options_with_value();

}  // namespace penstock::cli
