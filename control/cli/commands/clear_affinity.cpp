// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/service_name.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_clear_affinity(Gateway* gateway, const Request& request) {
    if (request.all != request.arguments.empty()) {
        return fail(Errc::InvalidArgument,
                    "clear affinity takes a Service (NAME or NAMESPACE/NAME) or --all");
    }
    v1::ClearAffinityRequest which;
    if (!request.all) {
        PENSTOCK_TRY(const auto name, service_name_from(*gateway, request));
        which.set_namespace_(name.namespace_name);
        which.set_name(name.name);
    }
    which.set_all(request.all);
    which.set_client(request.client.address());
    PENSTOCK_TRY(const auto cleared, gateway->clear_affinity(which));
    if (request.is_structured()) {
        return structured(json_text(cleared), request.format);
    }
    return "cleared " + std::to_string(cleared.cleared()) +
           (cleared.cleared() == 1 ? " entry\n" : " entries\n");
}

}  // namespace

Command clear_affinity() {
    return {.words = {"clear", "affinity"},
            .arguments = "[NAME|NS/NAME]",
            .arguments_max = 1,
            .options = {"all", "namespace", "client", "output"},
            .summary = "Remove session affinity entries of one service, or of --all; existing flows continue",
            .run = run_clear_affinity};
}

}  // namespace penstock::cli
