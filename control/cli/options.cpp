// SPDX-License-Identifier: Apache-2.0
#include "control/cli/options.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "control/base/nearest.hpp"
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

// "; did you mean status?"; "" if no command begins like that.
std::string nearest_command(const std::string& word) {
    std::vector<std::string_view> first_words;
    for (const Command& command : all_commands()) {
        first_words.push_back(command.words.front());
    }
    const std::string_view nearest = nearest_of(word, first_words);
    return nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?";
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
        if (words.empty()) {
            return usage("a command is missing; see --help");
        }
        const std::string follows = what_may_follow(words.front());
        return usage("there is no command" + line +
                     (follows.empty() ? nearest_command(words.front()) : follows) + "; see --help");
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
    for (const char* name : {"context", "gateway", "sync-server"}) {
        if (set.is_given("all-gateways") && set.is_given(name)) {
            return usage("--all-gateways and --" + std::string(name) + " are mutually exclusive");
        }
    }
    return {};
}

// The contexts of the file, or none if no file is needed and the default one does not exist.
Result<Contexts> read_contexts(const Command& command, const Request& request, const options::OptionSet& set,
                               const Environment& environment) {
    const std::string& path = request.config.empty() ? environment.home_config : request.config;
    const bool is_needed = command.reads_contexts || set.is_given("all-gateways") ||
                           !request.context.empty() || !request.config.empty();
    if (path.empty() || !environment.read_file) {
        return is_needed ? Result<Contexts>(
                               usage("there is no context file: pass --config or set $PENSTOCK_CONFIG"))
                         : Contexts();
    }
    PENSTOCK_TRY(const auto text, environment.read_file(path));
    if (!text) {
        return is_needed ? Result<Contexts>(usage(path + ": there is no such context file")) : Contexts();
    }
    return parse_contexts(*text, path);
}

void apply(const Context& context, const options::OptionSet& set, Request& request) {
    if (!set.is_given("gateway")) {
        request.target = context.gateway;
    }
    if (context.sync_server && !set.is_given("sync-server")) {
        request.sync_target = *context.sync_server;
    }
    const auto apply_file = [&](const char* option, const std::string& path, std::string& target) {
        if (!path.empty() && !set.is_given(option)) {
            target = path;
        }
    };
    apply_file("tls-cert", context.tls.certificate, request.tls.certificate);
    apply_file("tls-key", context.tls.key, request.tls.key);
    apply_file("tls-ca", context.tls.authority, request.tls.authority);
}

// Reads the context file, if the command uses a gateway or a context, and applies it.
Status apply_contexts(Invocation& invocation, const options::OptionSet& set, const Environment& environment) {
    const Command& command = *invocation.command;
    Request& request = invocation.request;
    if (!command.needs_gateway && !command.reads_contexts) {
        return {};
    }
    PENSTOCK_TRY(request.contexts, read_contexts(command, request, set, environment));
    if (set.is_given("all-gateways")) {
        for (const Context& context : request.contexts.list) {
            NamedRequest& named = invocation.all.emplace_back(context.name, request);
            apply(context, set, named.request);
            PENSTOCK_TRY_STATUS_IN("context " + context.name,
                                   client::check_tls(named.request.target, named.request.tls));
        }
        return invocation.all.empty()
                   ? Status(usage(request.contexts.file + ": there is no context in this file"))
                   : Status();
    }
    const bool has_gateway = set.is_given("gateway") || !environment.gateway.empty();
    const std::string& name =
        request.context.empty() && !has_gateway ? request.contexts.chosen : request.context;
    if (!name.empty()) {
        PENSTOCK_TRY(const Context* const context, find_context(request.contexts, name));
        apply(*context, set, request);
    }
    return client::check_tls(request.target, request.tls);
}

// The text of "help WORDS" and "WORDS --help". The first word alone names all commands that begin with it.
Result<std::string> help_about(const std::vector<std::string>& words) {
    if (words.empty()) {
        return help_text();
    }
    if (const auto command = find_command(words)) {
        return help_text(**command);
    }
    std::string text;
    for (const Command& command : all_commands()) {
        if (words.size() == 1 && command.words.size() > 1 && command.words.front() == words.front()) {
            text += summary_line(command);
        }
    }
    if (text.empty()) {
        return std::unexpected(find_command(words).error());
    }
    return "penstockctl " + words.front() + ":\n" + text;
}

// The first word that is neither an option nor the value of one; "": none.
std::string first_word(const std::vector<std::string>& arguments) {
    const std::vector<std::string> with_value = options_with_value();
    for (size_t at = 0; at < arguments.size(); ++at) {
        if (!arguments[at].starts_with('-')) {
            return arguments[at];
        }
        at += std::ranges::count(with_value, arguments[at]) > 0 ? 1 : 0;
    }
    return "";
}

// -w is --watch, but for capture it is --write, as in tcpdump.
std::vector<std::string> with_short_write(std::vector<std::string> arguments) {
    if (first_word(arguments) == "capture") {
        std::ranges::replace(arguments, "-w", "--write");
    }
    return arguments;
}

}  // namespace

Result<std::variant<Invocation, Information>> read_command_line(const std::vector<std::string>& arguments,
                                                                const Environment& environment) {
    Request request;
    options::OptionSet set;
    add_options(set, request, environment);
    PENSTOCK_TRY(auto words, set.read_words(with_short_write(arguments)));
    if (set.is_given("version")) {
        return Information{"penstockctl " PENSTOCK_VERSION "\n"};
    }
    // "help get services" equals "get services --help".
    const bool is_help_command = !words.empty() && words.front() == "help";
    if (is_help_command || set.is_given("help")) {
        words.erase(words.begin(), words.begin() + (is_help_command ? 1 : 0));
        PENSTOCK_TRY(auto text, help_about(words));
        return Information{std::move(text)};
    }
    PENSTOCK_TRY(const Command* const command, find_command(words));
    words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(command->words.size()));
    PENSTOCK_TRY_STATUS(check_arguments(*command, words.size()));
    PENSTOCK_TRY_STATUS(check_options(*command, set));
    PENSTOCK_TRY_STATUS(set.store());
    PENSTOCK_TRY_STATUS(check_request(request, set));
    request.timeout_given = set.is_given("timeout");
    request.arguments = std::move(words);
    Invocation invocation{.command = command, .request = std::move(request), .all = {}};
    PENSTOCK_TRY_STATUS(apply_contexts(invocation, set, environment));
    return invocation;
}

}  // namespace penstock::cli
