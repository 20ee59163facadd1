// SPDX-License-Identifier: Apache-2.0
// Completion of bash: a function with all commands and their options.
#include <string>

#include "control/cli/completion/words.hpp"
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

// Bash splits words at ':' and '=' as well (COMP_WORDBREAKS), so "unix:/run/x" reaches the function as three
// words. The function splits the line at blanks instead, and removes from its results the part that bash
// takes for earlier words.
constexpr const char* kBashHead = R"sh(_penstockctl() {
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
        --service) words=$(_penstockctl_services "${typed[@]:1}") ;;
        -n|--namespace) words=$(_penstockctl_services "${typed[@]:1}" | cut -d/ -f1) ;;
    esac
    if [[ -z $words ]]; then
        for ((i = 1; i < ${#typed[@]} - 1; i++)); do
            word=${typed[i]}
            case $word in
)sh";
constexpr const char* kBashTail = R"sh(                -*) ;;
                *) path+="${path:+ }$word" ;;
            esac
        done
        case $path in
)sh";
constexpr const char* kBashEnd = R"sh(        esac
        [[ $current == -* ]] || case $path in
)sh";
constexpr const char* kBashReply = R"sh(        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*:}"}"}")
    fi
}
# NAMESPACE/NAME of the Services at the gateway that the line names; nothing if it does not answer.
_penstockctl_services() {
    _penstockctl_at_gateway services "$@" | awk '{print $1 "/" $2}' | sort -u
}
# Numbers of the shares in the plan of that gateway.
_penstockctl_shares() {
    _penstockctl_at_gateway shares "$@" | awk '{print $1}'
}
# Lines of `get $1`.
_penstockctl_at_gateway() {
    local options=() list=$1
    shift
    while (($# > 1)); do
        case $1 in
            --gateway|--context|--config|--tls-cert|--tls-key|--tls-ca) options+=("$1" "$2"); shift ;;
            --gateway=*|--context=*|--config=*|--tls-*=*) options+=("$1") ;;
        esac
        shift
    done
    command penstockctl "${options[@]}" get "$list" --no-headers --timeout 1 2>/dev/null
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

// The commands whose next word is a name of this kind, as a pattern of `case`.
std::string paths_with(Names names) {
    std::string text;
    for (const NamedCommand& each : named_commands()) {
        if (each.names == names) {
            text += (text.empty() ? "\"" : "|\"") + each.path + "\"";
        }
    }
    return text;
}

}  // namespace

std::string bash_completion() {
    std::string cases;
    for (const auto& [path, words] : continuations()) {
        // After "get services", a name may precede the options.
        cases += "            " + (path.contains(' ') ? "\"" + path + " \"*|" : "") + "\"" + path +
                 "\") words=\"" + joined(words, " ") + "\" ;;\n";
    }
    const std::string names =
        "            " + paths_with(Names::Services) +
        ") words+=\" $(_penstockctl_services \"${typed[@]:1}\")\" ;;\n            " +
        paths_with(Names::Pools) + ") words+=\" $(_penstockctl_pools \"${typed[@]:1}\")\" ;;\n            " +
        paths_with(Names::Shares) + ") words+=\" $(_penstockctl_shares \"${typed[@]:1}\")\" ;;\n";
    const std::string with_value = "                " + joined(options_with_value(), "|") + ") ((i++)) ;;\n";
    return std::string("# bash completion for penstockctl: source <(penstockctl completion bash)\n") +
           kBashHead + with_value + kBashTail + cases + kBashEnd + names + kBashReply +
           "complete -F _penstockctl penstockctl\n";
}

}  // namespace penstock::cli
