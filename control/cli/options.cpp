// SPDX-License-Identifier: Apache-2.0
#include "control/cli/options.hpp"

#include <algorithm>
#include <utility>

#include "control/cli/option_list.hpp"

namespace penstock::cli {
namespace {

std::unexpected<Error> usage(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

// The words that may follow a known first word: "; get takes services, backends, ...". Empty for an unknown
// word.
std::string what_may_follow(const std::string& first) {
    std::string text;
    for (const Command& command : all_commands()) {
        if (command.words.size() > 1 && command.words[0] == first) {
            text += (text.empty() ? "; " + first + " takes " : ", ") + std::string(command.words[1]);
        }
    }
    return text;
}

bool is_named(const Command& command, const std::vector<std::string>& words) {
    const size_t last = command.words.size() - 1;
    return words.size() > last && std::equal(command.words.begin(), command.words.end() - 1, words.begin()) &&
           (words[last] == command.words[last] ||
            std::ranges::find(command.aliases, words[last]) != command.aliases.end());
}

// The longest command whose words are a prefix of the line.
Result<const Command*> find_command(const std::vector<std::string>& words) {
    const Command* found = nullptr;
    for (const Command& command : all_commands()) {
        if (is_named(command, words) && (found == nullptr || found->words.size() < command.words.size())) {
            found = &command;
        }
    }
    if (found == nullptr) {
        std::string line;
        for (const std::string& word : words) {
            line += " " + word;
        }
        return usage(words.empty()
                         ? "a command is missing; see --help"
                         : "there is no command" + line + what_may_follow(words.front()) + "; see --help");
    }
    return found;
}

Status check_arguments(const Command& command, size_t given) {
    if (given < command.arguments_min || given > command.arguments_max) {
        return usage(
            name_of(command) + " takes " +
            (command.arguments.empty() ? std::string("no arguments") : std::string(command.arguments)));
    }
    return {};
}

Status check_options(const Command& command, const options::OptionSet& set) {
    for (const std::string& name : set.given()) {
        if (!is_general(name) && std::ranges::count(command.options, name) == 0) {
            return usage("--" + name + " is not an option of " + name_of(command));
        }
    }
    return {};
}

// The rules that concern several options.
Status check_request(const Request& request, const options::OptionSet& set) {
    if (set.is_given("all-namespaces") && !request.namespace_name.empty()) {
        return usage("--all-namespaces and --namespace " + request.namespace_name +
                     " are mutually exclusive");
    }
    return client::check_tls(request.target, request.tls);
}

}  // namespace

Result<std::variant<Invocation, Information>> read_command_line(const std::vector<std::string>& arguments,
                                                                const Environment& environment) {
    Request request;
    options::OptionSet set;
    add_options(set, request, environment);
    PENSTOCK_TRY(auto words, set.read_words(arguments));
    if (set.is_given("version")) {
        return Information{"penstockctl " PENSTOCK_VERSION "\n"};
    }
    // "help get services" equals "get services --help".
    const bool is_help_command = !words.empty() && words.front() == "help";
    if (is_help_command || set.is_given("help")) {
        words.erase(words.begin(), words.begin() + (is_help_command ? 1 : 0));
        const auto about = words.empty() ? nullptr : find_command(words).value_or(nullptr);
        return Information{about == nullptr ? help_text() : help_text(*about)};
    }
    PENSTOCK_TRY(const Command* const command, find_command(words));
    words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(command->words.size()));
    PENSTOCK_TRY_STATUS(check_arguments(*command, words.size()));
    PENSTOCK_TRY_STATUS(check_options(*command, set));
    PENSTOCK_TRY_STATUS(set.store());
    PENSTOCK_TRY_STATUS(check_request(request, set));
    request.timeout_given = set.is_given("timeout");
    request.arguments = std::move(words);
    return Invocation{command, std::move(request)};
}

}  // namespace penstock::cli
