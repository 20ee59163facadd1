// SPDX-License-Identifier: Apache-2.0
// Shell completion, generated from the tables that also validate the command line (completion/words.hpp).
#include <array>
#include <utility>

#include "control/cli/commands/list.hpp"
#include "control/cli/completion/words.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_completion(Gateway*, const Request& request) {
    constexpr std::array<std::pair<std::string_view, std::string (*)()>, 3> kScripts{
        {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}}};
    for (const auto& [shell, script] : kScripts) {
        if (request.arguments[0] == shell) {
            return script();
        }
    }
    return fail(Errc::InvalidArgument, "completion: " + request.arguments[0] + ": must be bash, zsh or fish");
}

}  // namespace

Command completion() {
    return {.words = {"completion"},
            .arguments = "bash|zsh|fish",
            .arguments_min = 1,
            .arguments_max = 1,
            .summary = "Print a shell completion script: source <(penstockctl completion bash)",
            .needs_gateway = false,
            .run = run_completion};
}

}  // namespace penstock::cli
