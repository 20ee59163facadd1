// SPDX-License-Identifier: Apache-2.0
// The options of a program: their list, --help, the command line and the INI file of --config. Every value is
// stored by its Value (value.hpp). The command line has precedence over the file, and the file over
// environment variables and defaults. Abbreviations are not accepted, so that they cannot become ambiguous in
// a later version. Every error is InvalidArgument, unless stated otherwise, and names the option, the value
// and the rule: "--burst: \"65\" must be 4 to 64 packets". An error has one line for each mistake.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/options/value.hpp"
#include "dataplane/base/result.hpp"

namespace penstock::options {

// What the command line of a daemon requests.
enum class Action : uint8_t { Run, Check, Help, Version };

class Mistakes;

class OptionSet {
 public:
    struct Option {
        std::string name;        // long
        std::string short_name;  // one character, or ""
        Value value;
        std::string description;
    };
    struct Group {
        std::string title;
        bool is_of_command_line = false;  // an INI file cannot contain its options
        std::vector<Option> options;
    };

    OptionSet() = default;
    OptionSet(const OptionSet&) = delete;
    OptionSet& operator=(const OptionSet&) = delete;

    // Starts a group; `title` is its line in --help.
    void group(std::string title);
    // Adds an option to the last group. `name` may have a short form: "help,h".
    void add(std::string name, Value value, std::string description);
    // The group with --help, --version, --config and --check-config, which an INI file cannot contain.
    void add_daemon_group();

    // A daemon: reads the command line and the file, stores all values and calls `check` for the rules that
    // concern several options. All mistakes are reported, except those of rules that mention an option whose
    // value is invalid. Mistakes in the file are prefixed with its name and line. NotFound: the file cannot
    // be read.
    [[nodiscard]] Result<Action> read(const std::vector<std::string>& arguments,
                                      const std::function<Status()>& check);
    // The same for the text of an INI file alone.
    [[nodiscard]] Status read_ini(const std::string& text, const std::function<Status()>& check);

    // A program with commands: reads the command line and returns the words that are no options. The error is
    // the first mistake.
    [[nodiscard]] Result<std::vector<std::string>> read_words(const std::vector<std::string>& arguments);
    // Stores the values that were read, and the defaults of all other options.
    [[nodiscard]] Status store() const;

    // Whether the command line or the file contains the option.
    [[nodiscard]] bool is_given(std::string_view name) const { return given_.contains(name); }
    // Long names of the options that are given.
    [[nodiscard]] std::vector<std::string> given() const;

    // --help: the options by group.
    [[nodiscard]] std::string help() const;
    // The same for the options with these long names, as one group.
    [[nodiscard]] std::string help(const std::string& title, std::span<const std::string_view> names) const;
    // Long names of the options of a group, without dashes.
    [[nodiscard]] std::vector<std::string> names_in(std::string_view title) const;
    // Spellings of the options with a value: "--output", "-o".
    [[nodiscard]] std::vector<std::string> spellings_with_value() const;

    // The list, for pages and completions.
    [[nodiscard]] std::span<const Group> groups() const { return groups_; }

 private:
    struct Given {
        std::vector<std::string> texts;
        bool is_of_command_line = false;
    };

    [[nodiscard]] const Option* find(std::string_view name) const;
    // The error about an unknown option, `dashes` included as spelled, with the one that was probably meant.
    [[nodiscard]] Error unrecognised(std::string_view dashes, std::string_view name, bool in_file) const;
    [[nodiscard]] std::vector<std::string> with_joined_switches(std::vector<std::string> arguments) const;
    [[nodiscard]] std::vector<std::string> read_line(const std::vector<std::string>& arguments,
                                                     Mistakes& mistakes);
    void parse_ini(const std::string& text, Mistakes& mistakes);
    [[nodiscard]] Status take(const std::string& name, const std::vector<std::string>& texts,
                              bool is_of_command_line);
    [[nodiscard]] Error at_line(Error error, const std::string& file, const std::string& ini) const;

    std::vector<Group> groups_;
    std::map<std::string, Given, std::less<>> given_;
    std::string config_;
};

}  // namespace penstock::options
