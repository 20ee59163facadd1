// SPDX-License-Identifier: Apache-2.0
// Completion of fish: one `complete` for each command, argument and option.
#include <string>

#include "control/cli/commands/list.hpp"
#include "control/cli/completion/words.hpp"
#include "control/cli/option_list.hpp"

namespace penstock::cli {
namespace {

// In single quotes.
std::string fish_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return out + "'";
}

// A condition is a command in quotes, with an argument in quotes.
std::string condition(const char* function, const std::string& path) {
    return " -n " + fish_quoted(function + (" \"" + path + "\""));
}

std::string described(const std::string& description) {
    return description.empty() ? "" : " -d " + fish_quoted(first_sentence(description));
}

std::string option_line(const options::OptionSet::Option& option, const std::string& where) {
    using Kind = OptionValues::Kind;
    std::string line = "complete -c penstockctl" + where + " -l " + option.name;
    if (!option.short_name.empty()) {
        line += " -s " + option.short_name;
    }
    const OptionValues values = values_of(option);
    std::string words;
    switch (values.kind) {
        case Kind::None:
            break;
        case Kind::Files:
            line += " -r -F";
            break;
        case Kind::Target:
            line += " -x -a '(__penstockctl_targets)'";
            break;
        case Kind::Context:
            line += " -x -a '(__penstockctl_contexts)'";
            break;
        case Kind::Namespace:
            line += " -x -a '(__penstockctl_services | string replace -r \"/.*\" \"\" | sort -u)'";
            break;
        case Kind::Service:
            line += " -x -a '(__penstockctl_services)'";
            break;
        case Kind::Words:
            for (const std::string& word : values.words) {
                words += (words.empty() ? "" : " ") + word;
            }
            line += " -x -a " + fish_quoted(words);
            break;
        case Kind::Any:
            line += " -x";
            break;
    }
    return line + described(option.description) + "\n";
}

constexpr const char* kFishHead = R"sh(# fish completion for penstockctl: penstockctl completion fish | source
# The words of the command that precede the cursor, without options and their values.
function __penstockctl_typed
    set -l skips 0
    set -l typed
    for word in (commandline -opc)[2..-1]
        if test $skips = 1
            set skips 0
            continue
        end
        switch $word
)sh";
constexpr const char* kFishFunctions = R"sh(                set skips 1
            case '-*'
            case '*'
                set -a typed $word
        end
    end
    string join ' ' $typed
end
function __penstockctl_at
    set -l typed (__penstockctl_typed)
    test "$typed" = "$argv[1]"
end
function __penstockctl_in
    set -l typed (__penstockctl_typed)
    test "$typed" = "$argv[1]"; or string match -q -- "$argv[1] *" "$typed"
end
# The options with these names that precede the cursor, with their values.
function __penstockctl_given
    set -l words (commandline -opc)
    for i in (seq 2 (count $words))
        if contains -- $words[$i] $argv
            and test $i -lt (count $words)
            printf '%s\n' $words[$i] $words[(math $i + 1)]
        else if contains -- (string replace -r '=.*' '' -- $words[$i]) $argv
            and string match -q -- '*=*' $words[$i]
            echo $words[$i]
        end
    end
end
# NAMESPACE/NAME of the Services at the gateway that the line names; nothing if it does not answer.
function __penstockctl_services
    command penstockctl (__penstockctl_given --gateway --context --config --tls-cert --tls-key --tls-ca) get services --no-headers --timeout 1 2>/dev/null | awk '{print $1 "/" $2}' | sort -u
end
# Numbers of the shares in the plan of that gateway.
function __penstockctl_shares
    command penstockctl (__penstockctl_given --gateway --context --config --tls-cert --tls-key --tls-ca) get shares --no-headers --timeout 1 2>/dev/null | awk '{print $1}'
end
# Names of the contexts in the file that the line names.
function __penstockctl_contexts
    command penstockctl (__penstockctl_given --config) get contexts --no-headers 2>/dev/null | awk '{print $1}'
end
# Names of the pools of the penstock-sync that the line names.
function __penstockctl_pools
    command penstockctl (__penstockctl_given --sync-server --context --config) get pools --no-headers --timeout 1 2>/dev/null | awk '{print $1}'
end
function __penstockctl_targets
    set -l current (commandline -ct | string replace -r '^--[^=]*=' '')
    if string match -q 'unix:*' -- $current
        __fish_complete_path (string replace unix: '' -- $current) | string replace -r '^' unix:
    else
        echo unix:
    end
end
complete -c penstockctl -f
)sh";

}  // namespace

std::string fish_completion() {
    std::string text = kFishHead;
    text += "            case";
    for (const std::string& spelling : options_with_value()) {
        text += " " + fish_quoted(spelling);
    }
    text += "\n";
    text += kFishFunctions;
    for (const NextWord& each : next_words()) {
        text += "complete -c penstockctl" + condition("__penstockctl_at", each.path) + " -a " +
                fish_quoted(each.word) + described(each.description) + "\n";
    }
    for (const NamedCommand& each : named_commands()) {
        text += "complete -c penstockctl" + condition("__penstockctl_at", each.path) + " -a '(" +
                (each.names == Names::Pools    ? "__penstockctl_pools"
                 : each.names == Names::Shares ? "__penstockctl_shares"
                                               : "__penstockctl_services") +
                ")'\n";
    }
    for (const auto& option : general_options()) {
        text += option_line(option, "");
    }
    for (const Command& command : all_commands()) {
        for (const auto& option : shown_options(command)) {
            if (!is_general(option.name)) {
                text += option_line(option, condition("__penstockctl_in", name_of(command)));
            }
        }
    }
    return text;
}

}  // namespace penstock::cli
