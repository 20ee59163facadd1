// SPDX-License-Identifier: Apache-2.0
// Generated texts against the programs' own lists. Suite package runs mandoc and the shells on them.
#include "control/pages/pages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "control/cli/commands/list.hpp"
#include "control/cli/option_list.hpp"
#include "control/gateway/options/option_list.hpp"
#include "control/sync/option_list.hpp"

namespace penstock::pages {
namespace pages_test {

using options::OptionSet;
using testing::HasSubstr;

std::string page(const std::string& file) {
    for (const Page& each : all_pages("1.2.3", "2026-01-02")) {
        if (each.file == file) {
            return each.text;
        }
    }
    ADD_FAILURE() << "there is no page " << file;
    return "";
}

struct Gateway {
    gateway::Options values;
    gateway::RawOptions raw;
    OptionSet set;
    Gateway() { gateway::add_options(set, values, raw); }
};
struct Sync {
    sync::Options values;
    OptionSet set;
    Sync() { sync::add_options(set, values); }
};

std::vector<OptionSet::Option> options_of(const OptionSet& set, bool with_command_line) {
    std::vector<OptionSet::Option> all;
    for (const auto& group : set.groups()) {
        if (with_command_line || !group.is_of_command_line) {
            all.insert(all.end(), group.options.begin(), group.options.end());
        }
    }
    return all;
}

std::string in_roff(std::string text) {
    for (size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2) {
        text.insert(at, "\\");
    }
    return text;
}

TEST(Pages, ManualsHaveEachOption) {
    const Gateway gateway;
    const Sync sync;
    const std::pair<const char*, const OptionSet*> kPrograms[] = {{"penstockd", &gateway.set},
                                                                  {"penstock-sync", &sync.set}};
    for (const auto& [program, set] : kPrograms) {
        const std::string manual = page(std::string(program) + ".8");
        EXPECT_THAT(manual, HasSubstr("\"2026-01-02\" \"Penstock 1.2.3\""));
        for (const auto& option : options_of(*set, true)) {
            EXPECT_THAT(manual, HasSubstr("\\fB" + in_roff("--" + option.name) + "\\fR"));
        }
        const std::string file = page(std::string(program) + ".ini.5");
        for (const auto& option : options_of(*set, false)) {
            EXPECT_THAT(file, HasSubstr("\n\\fB" + in_roff(option.name) + "\\fR = \\fI"));
        }
        EXPECT_EQ(file.find("check\\-config\\fR ="), std::string::npos) << "no file can contain it";
    }
}

TEST(Pages, TheManualOfPenstockctlHasEachCommandAndOption) {
    const std::string manual = page("penstockctl.1");
    for (const cli::Command& command : cli::all_commands()) {
        EXPECT_THAT(manual, HasSubstr("\\fB" + in_roff(cli::name_of(command)) + "\\fR"));
    }
    for (const auto& option : cli::all_shown_options()) {
        EXPECT_THAT(manual, HasSubstr("\\fB" + in_roff("--" + option.name) + "\\fR"));
    }
    EXPECT_THAT(manual, HasSubstr("\\fB\\-o\\fR, \\fB\\-\\-output\\fR"));
}

// The lines of `text` with an option, uncommented if they have its default.
std::string with_defaults(const std::string& text, const OptionSet& set) {
    std::istringstream lines(text);
    std::string out;
    const auto options = options_of(set, false);
    size_t found = 0;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("#") || line.starts_with("# ") || line == "#") {
            EXPECT_EQ(line.substr(0, 1) == "#" || line.empty(), true) << line;
            continue;
        }
        const std::string name = line.substr(1, line.find(' ') - 1);
        const auto option = std::ranges::find(options, name, &OptionSet::Option::name);
        if (option == options.end()) {
            ADD_FAILURE() << "no option: " << line;
            continue;
        }
        ++found;
        if (!option->value.fallback.empty()) {
            out += line.substr(1) + "\n";
        }
    }
    EXPECT_EQ(found, options.size());
    return out;
}

TEST(Pages, AnIniFileHasEachOptionAndItsDefaultsAreAccepted) {
    const char* const kPort = "port = device=net_null0;twin=t0\n";
    const std::string gateway = page("penstockd.ini");
    EXPECT_TRUE(gateway::Options::parse_ini(gateway + kPort));
    const std::string defaults = with_defaults(gateway, Gateway().set);
    EXPECT_THAT(defaults, HasSubstr("burst = 64\n"));
    const auto read = gateway::Options::parse_ini(defaults + kPort);
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->burst, gateway::Options().burst);

    const std::string sync = page("penstock-sync.ini");
    Sync program;
    const auto done = program.set.read_ini(with_defaults(sync, Sync().set), [] { return Status(); });
    ASSERT_TRUE(done) << done.error().what;
    EXPECT_TRUE(Sync().set.read_ini(sync, [] { return Status(); }));
}

TEST(Pages, NoLineIsTooWide) {
    for (const Page& each : all_pages("1.2.3", "2026-01-02")) {
        std::istringstream lines(each.text);
        const bool is_script = each.file.starts_with("penstockctl.") && !each.file.ends_with(".1");
        for (std::string line; !is_script && std::getline(lines, line);) {
            EXPECT_LE(line.size(), 140U) << each.file << ": " << line;
            EXPECT_FALSE(line.ends_with(' ')) << each.file << ": " << line;
        }
    }
}

}  // namespace pages_test
}  // namespace penstock::pages
