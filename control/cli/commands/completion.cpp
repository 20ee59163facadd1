// SPDX-License-Identifier: Apache-2.0
// Shell completion: a function with all commands and their options, generated from the table that also
// validates the command line.
#include <map>
#include <set>

#include "control/annotations/refused.hpp"
#include "control/annotations/table.hpp"
#include "control/cli/commands/list.hpp"
#include "control/cli/option_list.hpp"

namespace penstock::cli {
namespace {

// For std::set<std::string> and std::vector<std::string>.
template <typename Words>
std::string joined(const Words& words, const char* separator) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : separator) + word;
    }
    return text;
}

std::string annotation_keys() {
    std::string keys;
    for (const annotations::SettingSpec& spec : annotations::specs()) {
        keys += (keys.empty() ? "" : " ") + std::string(spec.spellings.front().key);
    }
    for (const annotations::RefusedKey& refused : annotations::refused_keys()) {
        if (refused.key.starts_with(annotations::kNativePrefix)) {
            keys += " " + std::string(refused.key);
        }
    }
    return keys;
}

// The possible next words: "" -> get describe ..., "get" -> services backends ..., "get services" -> its
// options.
std::map<std::string, std::set<std::string>> continuations() {
    std::map<std::string, std::set<std::string>> next;
    for (const Command& command : all_commands()) {
        std::string path;
        for (const std::string_view word : command.words) {
            next[path].insert(std::string(word));
            path += (path.empty() ? "" : " ") + std::string(word);
        }
        const auto options = option_names(command);
        next[path].insert(options.begin(), options.end());
    }
    next["completion"].insert("bash");
    next["set log-level"].insert({"trace", "debug", "info", "warn", "error", "off"});
    next["explain annotations"].insert(annotation_keys());
    return next;
}

// Bash splits words at ':' and '=' as well (COMP_WORDBREAKS), so "unix:/run/x" reaches the function as three
// words. The function splits the line at blanks instead, and removes from its results the part that bash
// takes for earlier words.
constexpr const char* kHead = R"sh(_penstockctl() {
    local line=${COMP_LINE:0:COMP_POINT} current= previous= path= words= word i
    local -a typed
    read -ra typed <<<"$line"
    [[ $line == *[[:blank:]] ]] && typed+=("")
    current=${typed[-1]}
    ((${#typed[@]} < 2)) || previous=${typed[-2]}
    case $previous in
        -o|--output) words="table wide json yaml" ;;
        --proto) words="tcp udp sctp" ;;
        --context) words=$(_penstockctl_contexts "${typed[@]:1}") ;;
        --config|--tls-*) COMPREPLY=($(compgen -f -- "$current")); return ;;
        --gateway|--sync-server)
            [[ unix: == "$current"* ]] && words=unix:
            [[ $current == unix:* ]] && words=$(compgen -f -P unix: -- "${current#unix:}") ;;
        -n|--namespace) words=$(_penstockctl_services "${typed[@]:1}" | cut -d/ -f1) ;;
    esac
    if [[ -z $words ]]; then
        for ((i = 1; i < ${#typed[@]} - 1; i++)); do
            word=${typed[i]}
            case $word in
)sh";
constexpr const char* kTail = R"sh(                -*) ;;
                *) path+="${path:+ }$word" ;;
            esac
        done
        case $path in
)sh";
constexpr const char* kEnd = R"sh(        esac
        case $path in
            "get services"|"get backends"|"get affinity"|"get addresses"|"describe service"|"set scheduler"|"clear affinity")
                [[ $current == -* ]] || words+=" $(_penstockctl_services "${typed[@]:1}")" ;;
            "describe pool")
                [[ $current == -* ]] || words+=" $(_penstockctl_pools "${typed[@]:1}")" ;;
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
    fi
}
# NAMESPACE/NAME of the Services at the gateway that the line names; nothing if it does not answer.
_penstockctl_services() {
    local options=()
    while (($# > 1)); do
        case $1 in
            --gateway|--context|--config|--tls-cert|--tls-key|--tls-ca) options+=("$1" "$2"); shift ;;
            --gateway=*|--context=*|--config=*|--tls-*=*) options+=("$1") ;;
        esac
        shift
    done
    command penstockctl "${options[@]}" get services --no-headers --timeout 1 2>/dev/null | awk '{print $1 "/" $2}' | sort -u
}
# Names of the contexts in the file that the line names.
_penstockctl_contexts() {
    local options=()
    while (($# > 1)); do
        case $1 in
            --config) options+=("$1" "$2"); shift ;;
            --config=*) options+=("$1") ;;
        esac
        shift
    done
    command penstockctl "${options[@]}" get contexts --no-headers 2>/dev/null | awk '{print $1}'
}
# Names of the pools of the penstock-sync that the line names.
_penstockctl_pools() {
    local options=()
    while (($# > 1)); do
        case $1 in
            --sync-server|--context|--config) options+=("$1" "$2"); shift ;;
            --sync-server=*|--context=*|--config=*) options+=("$1") ;;
        esac
        shift
    done
    command penstockctl "${options[@]}" get pools --no-headers --timeout 1 2>/dev/null | awk '{print $1}'
}
)sh";

Result<std::string> run_completion(Gateway*, const Request& request) {
    if (request.arguments[0] != "bash") {
        return fail(Errc::InvalidArgument, "completion: " + request.arguments[0] + ": must be bash");
    }
    std::string cases;
    for (const auto& [path, words] : continuations()) {
        // After "get services", a name may precede the options.
        cases += "            " + (path.contains(' ') ? "\"" + path + " \"*|" : "") + "\"" + path +
                 "\") words=\"" + joined(words, " ") + "\" ;;\n";
    }
    const std::string with_value = "                " + joined(options_with_value(), "|") + ") ((i++)) ;;\n";
    return std::string("# bash completion for penstockctl: source <(penstockctl completion bash)\n") + kHead +
           with_value + kTail + cases + kEnd + "complete -F _penstockctl penstockctl\n";
}

}  // namespace

Command completion() {
    return {.words = {"completion"},
            .arguments = "bash",
            .arguments_min = 1,
            .arguments_max = 1,
            .summary = "Print a shell completion script: source <(penstockctl completion bash)",
            .needs_gateway = false,
            .run = run_completion};
}

}  // namespace penstock::cli
