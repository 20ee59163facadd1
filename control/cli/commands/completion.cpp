// A bash function that knows the commands and their options, written from the very table that the command line is checked against.
#include <map>
#include <set>

#include "control/cli/commands/list.hpp"
#include "control/cli/options.hpp"

namespace penstock::cli {
namespace {

std::string joined(const std::set<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : " ") + word;
    }
    return text;
}

// What may follow: "" -> get describe ..., "get" -> services backends ..., "get services" -> its options.
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
    return next;
}

Result<std::string> run(Gateway*, const Request& request) {
    if (request.arguments[0] != "bash") {
        return fail(Errc::InvalidArgument, "completion knows bash only, not \"" + request.arguments[0] + "\"");
    }
    std::string cases;
    for (const auto& [path, words] : continuations()) {
        // After "get services", a name may stand before the options.
        cases += "        " + (path.contains(' ') ? "\"" + path + " \"*|" : "") + "\"" + path + "\") words=\"" + joined(words) + "\" ;;\n";
    }
    return "# bash completion for penstockctl: source <(penstockctl completion bash)\n"
           "_penstockctl() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= words= word i\n"
           "    case $previous in\n"
           "        -o|--output) words=\"table wide json yaml\" ;;\n"
           "        --proto) words=\"tcp udp sctp\" ;;\n"
           "        --tls-*) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
           "    esac\n"
           "    if [ -z \"$words\" ]; then\n"
           "        for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "            word=${COMP_WORDS[i]}\n"
           "            case $word in\n"
           "                --watch|--not-syn|-w) ;;\n"
           "                -*) [[ $word == *=* ]] || ((i++)) ;;\n"
           "                *) path+=\"${path:+ }$word\" ;;\n"
           "            esac\n"
           "        done\n"
           "        case $path in\n" +
           cases +
           "        esac\n"
           "    fi\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "}\n"
           "complete -F _penstockctl penstockctl\n";
}

}  // namespace

Command completion() {
    return {.words = {"completion"},
            .arguments = "bash",
            .arguments_min = 1,
            .arguments_max = 1,
            .summary = "a script that completes commands and options: source <(penstockctl completion bash)",
            .needs_gateway = false,
            .run = run};
}

}  // namespace penstock::cli
