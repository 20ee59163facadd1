#include "control/cli/commands/list.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run(Gateway* gateway, const Request&) {
    const auto status = gateway->status();
    if (!status) {
        // Our own version is known all the same.
        return fail(status.error().code, "version " PENSTOCK_VERSION "; " + status.error().what);
    }
    return "penstockctl " PENSTOCK_VERSION "\npenstockd " + status->identity().software_version() + "\n";
}

}  // namespace

Command version() {
    return {.words = {"version"},
            .summary = "versions of penstockctl and of the penstockd it reaches (--version: of penstockctl alone)",
            .run = run};
}

}  // namespace penstock::cli
