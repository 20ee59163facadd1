// SPDX-License-Identifier: Apache-2.0
// Manual pages in the language of man(7): text with its special characters escaped, and the options of a
// program. Pure.
#pragma once

#include <string>
#include <string_view>

#include "control/options/option_set.hpp"

namespace penstock::options {

// One paragraph, without a macro, wrapped. Blanks and newlines of `text` separate words.
[[nodiscard]] std::string roff_text(std::string_view text);
// Lines that keep their form: an example.
[[nodiscard]] std::string roff_example(std::string_view lines);
// `text` in bold: a name that is typed as it is.
[[nodiscard]] std::string roff_bold(std::string_view text);

// What options are shown as: "--port SPEC" on a command line, or "port = SPEC" in an INI file.
enum class OptionForm : uint8_t { CommandLine, Ini };

// The entry of one option: its form, description and default.
[[nodiscard]] std::string roff_option(const OptionSet::Option& option, OptionForm form);
// All groups, each under a heading. The INI form leaves out the options that a file cannot contain.
[[nodiscard]] std::string roff_options(const OptionSet& set, OptionForm form);

}  // namespace penstock::options
