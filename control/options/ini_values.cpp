// SPDX-License-Identifier: Apache-2.0
#include "control/options/ini_values.hpp"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <sstream>

namespace penstock::options {

Result<std::vector<std::pair<std::string, std::string>>> ini_values(const std::string& text) try {
    namespace po = boost::program_options;
    std::istringstream stream(text);
    constexpr bool kAnyName = true;
    std::vector<std::pair<std::string, std::string>> values;
    for (const auto& option : po::parse_config_file(stream, po::options_description(), kAnyName).options) {
        values.emplace_back(option.string_key, option.value.empty() ? "" : option.value.front());
    }
    return values;
} catch (const boost::program_options::error& error) {
    return fail(Errc::InvalidArgument, error.what());
}

}  // namespace penstock::options
