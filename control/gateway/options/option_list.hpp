// SPDX-License-Identifier: Apache-2.0
// The list of penstockd's options: names, defaults and descriptions for --help, in groups. options.cpp parses
// them, and option_reader.cpp reads their values.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <iosfwd>
#include <vector>

namespace penstock::gateway {

// --help, --version, --config, --check-config: only on the command line.
[[nodiscard]] boost::program_options::options_description general_options();
// All options that an INI file may contain as well.
[[nodiscard]] std::vector<boost::program_options::options_description> settings();
// Prints --help: every option by group, then examples.
void print_option_list(std::ostream& out);

}  // namespace penstock::gateway
