// The list of penstockd's options: names, defaults and the words of --help, in groups. options.cpp gives them their meaning.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <iosfwd>
#include <vector>

namespace penstock::gateway {

// --help, --version, --config: on the command line only.
[[nodiscard]] boost::program_options::options_description general_options();
// Everything that an INI file may hold as well.
[[nodiscard]] std::vector<boost::program_options::options_description> settings();
// What --help prints: every option by group, then examples.
void print_option_list(std::ostream& out);

}  // namespace penstock::gateway
