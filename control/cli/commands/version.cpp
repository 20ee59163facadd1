// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/struct.pb.h>

#include "control/cli/commands/list.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_version(Gateway* gateway, const Request& request) {
    const auto status = gateway->status();
    if (!status) {
        // The version of penstockctl is printed even without a daemon.
        return fail(status.error().code, "version " PENSTOCK_VERSION "; " + status.error().what);
    }
    if (request.is_structured()) {
        google::protobuf::Struct versions;
        (*versions.mutable_fields())["penstockctl"].set_string_value(PENSTOCK_VERSION);
        (*versions.mutable_fields())["penstockd"].set_string_value(status->identity().software_version());
        return structured(json_text(versions), request.format);
    }
    return "penstockctl " PENSTOCK_VERSION "\npenstockd " + status->identity().software_version() + "\n";
}

}  // namespace

Command version() {
    return {.words = {"version"},
            .options = {"output", "all-gateways"},
            .summary =
                "Show the versions of penstockctl and of the penstockd it connects to (--version: "
                "penstockctl only)",
            .run = run_version};
}

}  // namespace penstock::cli
