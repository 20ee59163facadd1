// SPDX-License-Identifier: Apache-2.0
// The list of penstock-sync's options: names, defaults and descriptions for --help. options.cpp and
// policy_options.cpp parse and apply them.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>

namespace penstock::sync {

// --help, --version, --config, --check-config.
[[nodiscard]] boost::program_options::options_description command_line_only();
// All options that an INI file may contain as well.
[[nodiscard]] boost::program_options::options_description everywhere();
// The text of --help.
[[nodiscard]] std::string help_text();

}  // namespace penstock::sync
