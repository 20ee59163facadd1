// SPDX-License-Identifier: Apache-2.0
// What may follow on a command line of penstockctl, as data from which the scripts of all shells are made.
// Derived from the lists of commands and options, so that completions and the parser agree.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/cli/commands/command.hpp"
#include "control/options/option_set.hpp"

namespace penstock::cli {

// The possible next words: "" -> get describe ..., "get" -> services backends ..., "get services" -> its
// options.
[[nodiscard]] std::map<std::string, std::set<std::string>> continuations();

// A word of a command or of an argument with a fixed set of values, in front of which `path` was typed.
struct NextWord {
    std::string path;  // "get"
    std::string word;  // "services"
    std::string description;
};
// In the order of --help. Options are not included.
[[nodiscard]] std::vector<NextWord> next_words();

// The names that a daemon completes.
enum class Names : uint8_t { Services, Pools, Shares };
struct NamedCommand {
    std::string path;  // "describe service"
    Names names;
};
[[nodiscard]] std::vector<NamedCommand> named_commands();

// The values of an option.
struct OptionValues {
    enum class Kind : uint8_t { None, Any, Words, Files, Target, Context, Namespace, Service };
    Kind kind = Kind::Any;
    std::vector<std::string> words;  // Kind::Words
};
[[nodiscard]] OptionValues values_of(const options::OptionSet::Option& option);

// Up to the first full stop, without it; for one line of a list.
[[nodiscard]] std::string first_sentence(std::string_view text);

// The scripts.
[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();

}  // namespace penstock::cli
