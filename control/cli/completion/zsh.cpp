// SPDX-License-Identifier: Apache-2.0
// Completion of zsh: a function for compinit, with a description of each command and option.
#include <string>

#include "control/cli/commands/list.hpp"
#include "control/cli/completion/words.hpp"
#include "control/cli/option_list.hpp"

namespace penstock::cli {
namespace {

// In single quotes.
std::string zsh_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return out + "'";
}

// An entry of _describe: "word:description".
std::string entry(const std::string& word, const std::string& description) {
    std::string text;
    for (const char c : word) {
        text += c == ':' ? "\\:" : std::string(1, c);
    }
    return zsh_quoted(description.empty() ? text : text + ":" + description);
}

std::string zsh_words() {
    std::string cases;
    for (const NextWord& each : next_words()) {
        cases += "        [[ $typed == " + zsh_quoted(each.path) + " ]] && list+=(" +
                 entry(each.word, first_sentence(each.description)) + ")\n";
    }
    return cases;
}

std::string options_by_path() {
    std::string cases;
    for (const Command& command : all_commands()) {
        cases += "        " + zsh_quoted(name_of(command)) + "|" + zsh_quoted(name_of(command) + " ") +
                 "*) list=(";
        for (const auto& option : shown_options(command)) {
            cases += " " + entry("--" + option.name, first_sentence(option.description));
            if (!option.short_name.empty()) {
                cases += " " + entry("-" + option.short_name, first_sentence(option.description));
            }
        }
        cases += " ) ;;\n";
    }
    return cases;
}

std::string spellings(const options::OptionSet::Option& option) {
    return "--" + option.name + (option.short_name.empty() ? "" : "|-" + option.short_name);
}

std::string values_by_option() {
    using Kind = OptionValues::Kind;
    std::string cases;
    for (const auto& option : all_shown_options()) {
        const OptionValues values = values_of(option);
        if (values.kind == Kind::None) {
            continue;
        }
        cases += "        " + spellings(option) + ") ";
        switch (values.kind) {
            case Kind::Words:
                cases += "compadd --";
                for (const std::string& word : values.words) {
                    cases += " " + zsh_quoted(word);
                }
                cases += "; return ;;\n";
                break;
            case Kind::Files:
                cases += "_files; return ;;\n";
                break;
            case Kind::Target:
                cases += "if compset -P unix:; then _files; else compadd -S '' -- unix:; fi; return ;;\n";
                break;
            case Kind::Context:
                cases += "compadd -- ${(f)\"$(_penstockctl_context_names)\"}; return ;;\n";
                break;
            case Kind::Namespace:
                cases += "compadd -- ${(u)${(f)\"$(_penstockctl_service_names)\"}%%/*}; return ;;\n";
                break;
            case Kind::Service:
                cases += "compadd -- ${(f)\"$(_penstockctl_service_names)\"}; return ;;\n";
                break;
            default:
                cases += "return ;;\n";
        }
    }
    return cases;
}

std::string names_by_path() {
    std::string cases;
    for (const NamedCommand& each : named_commands()) {
        cases += "        " + zsh_quoted(each.path) + ") compadd -- ${(f)\"$(" +
                 (each.names == Names::Pools    ? "_penstockctl_pool_names"
                  : each.names == Names::Shares ? "_penstockctl_share_numbers"
                                                : "_penstockctl_service_names") +
                 ")\"} ;;\n";
    }
    return cases;
}

constexpr const char* kZshHead = R"sh(#compdef penstockctl
# zsh completion for penstockctl: source <(penstockctl completion zsh), or as a file _penstockctl of $fpath
# NAMESPACE/NAME of the Services at the gateway that the line names; nothing if it does not answer.
_penstockctl_service_names() {
    _penstockctl_list services | awk '{print $1 "/" $2}' | sort -u
}
# Numbers of the shares in the plan of that gateway.
_penstockctl_share_numbers() {
    _penstockctl_list shares | awk '{print $1}'
}
# Lines of `get $1`.
_penstockctl_list() {
    local -a given
    local i list=$1
    for ((i = 2; i < CURRENT; i++)); do
        case ${words[i]} in
            --gateway|--context|--config|--tls-cert|--tls-key|--tls-ca) given+=(${words[i]} ${words[i + 1]}) ;;
            --gateway=*|--context=*|--config=*|--tls-*=*) given+=(${words[i]}) ;;
        esac
    done
    command penstockctl $given get $list --no-headers --timeout 1 2>/dev/null
}
# Names of the contexts in the file that the line names.
_penstockctl_context_names() {
    local -a given
    local i
    for ((i = 2; i < CURRENT; i++)); do
        case ${words[i]} in
            --config) given+=(${words[i]} ${words[i + 1]}) ;;
            --config=*) given+=(${words[i]}) ;;
        esac
    done
    command penstockctl $given get contexts --no-headers 2>/dev/null | awk '{print $1}'
}
# Names of the pools of the penstock-sync that the line names.
_penstockctl_pool_names() {
    local -a given
    local i
    for ((i = 2; i < CURRENT; i++)); do
        case ${words[i]} in
            --sync-server|--context|--config) given+=(${words[i]} ${words[i + 1]}) ;;
            --sync-server=*|--context=*|--config=*) given+=(${words[i]}) ;;
        esac
    done
    command penstockctl $given get pools --no-headers --timeout 1 2>/dev/null | awk '{print $1}'
}
_penstockctl() {
    local typed= word i
    local -a list
    case ${words[CURRENT - 1]} in
)sh";
constexpr const char* kZshSkip = R"sh(    esac
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        case $word in
)sh";
constexpr const char* kZshWords = R"sh(            -*) ;;
            *) typed+="${typed:+ }$word" ;;
        esac
    done
    if [[ ${words[CURRENT]} == -* ]]; then
        case $typed in
)sh";
constexpr const char* kZshNames = R"sh(    case $typed in
)sh";
constexpr const char* kZshEnd = R"sh(    esac
    (( $#list )) && _describe -t commands command list
    return 0
}
if [[ ${funcstack[1]-} == _penstockctl ]]; then
    _penstockctl "$@"
elif (( $+functions[compdef] )); then
    compdef _penstockctl penstockctl
fi
)sh";

}  // namespace

std::string zsh_completion() {
    std::string with_value;
    for (const std::string& spelling : options_with_value()) {
        with_value += (with_value.empty() ? "            " : "|") + spelling;
    }
    std::string general;
    for (const auto& option : general_options()) {
        general += " " + entry("--" + option.name, first_sentence(option.description));
    }
    return kZshHead + values_by_option() + kZshSkip + with_value + ") ((i++)) ;;\n" + kZshWords +
           options_by_path() + "        *) list=(" + general +
           " ) ;;\n        esac\n        _describe -t options option list\n        return\n    fi\n" +
           zsh_words() + kZshNames + names_by_path() + kZshEnd;
}

}  // namespace penstock::cli
