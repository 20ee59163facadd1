// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/options.hpp"

#include <boost/program_options.hpp>
#include <fstream>
#include <iterator>
#include <sstream>

#include "control/base/ini_lines.hpp"
#include "control/gateway/options/option_list.hpp"
#include "control/gateway/options/option_reader.hpp"

namespace penstock::gateway {
namespace {

namespace po = boost::program_options;

po::options_description all_settings() {
    po::options_description all;
    for (const auto& group : settings()) {
        all.add(group);
    }
    return all;
}

// Boost's messages already name the option. Its own prefix for INI files does not name the file.
void store_ini(std::istream& in, po::variables_map& values) {
    po::store(po::parse_config_file(in, all_settings(), false), values);
}

}  // namespace

Result<Options> Options::parse(const std::vector<std::string>& arguments) try {
    po::options_description all = all_settings();
    all.add(general_options());
    po::variables_map values;
    // Without allow_guessing, an abbreviation such as --por cannot become ambiguous in a later version.
    const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed = po::command_line_parser(arguments).options(all).style(style).run();
    for (const auto& option : parsed.options) {
        if (option.string_key.empty()) {
            return fail(Errc::InvalidArgument, "unexpected argument \"" + option.value.at(0) + "\"");
        }
    }
    po::store(parsed, values);
    if (values.contains("help") || values.contains("version")) {
        Options options;
        options.action = values.contains("help") ? Action::Help : Action::Version;
        return options;
    }
    if (values.contains("config")) {
        const auto file = values["config"].as<std::string>();
        std::ifstream in(file);
        if (!in) {
            return fail(Errc::NotFound, "--config: " + file + " cannot be read");
        }
        const std::string ini{std::istreambuf_iterator<char>(in), {}};
        const po::variables_map of_command_line = values;
        try {
            std::istringstream stream(ini);
            store_ini(stream, values);
        } catch (const po::error& error) {
            return fail(Errc::InvalidArgument, at_ini_line(file, ini, error.what()));
        }
        auto options = read_options(values);
        if (!options) {
            const std::string option = option_in(options.error().what);
            if (!of_command_line.contains(option) || of_command_line[option].defaulted()) {
                options.error().what = at_ini_line(file, ini, options.error().what);
            }
        } else if (values.contains("check-config")) {
            options->action = Action::Check;
        }
        return options;
    }
    auto options = read_options(values);
    if (options && values.contains("check-config")) {
        options->action = Action::Check;
    }
    return options;
} catch (const po::error& error) {
    return fail(Errc::InvalidArgument, error.what());
}

Result<Options> Options::parse_ini(const std::string& text) try {
    std::istringstream in(text);
    po::variables_map values;
    store_ini(in, values);
    return read_options(values);
} catch (const po::error& error) {
    return fail(Errc::InvalidArgument, error.what());
}

void Options::print_help(std::ostream& out) {
    print_option_list(out);
}

}  // namespace penstock::gateway
