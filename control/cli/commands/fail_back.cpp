// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "control/cli/commands/list.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_fail_back(Gateway* gateway, const Request&) {
    PENSTOCK_TRY(const auto done, gateway->fail_back());
    if (done.shares().empty()) {
        return "no share waits: this gateway has returned to all shares of which it is the primary\n";
    }
    std::string shares;
    for (const uint32_t share : done.shares()) {
        shares += (shares.empty() ? "" : ", ") + std::to_string(share);
    }
    return (done.shares_size() == 1 ? "share " : "shares ") + shares +
           ": announced as the primary (metric 100)\n";
}

}  // namespace

Command fail_back() {
    return {.words = {"fail-back"},
            .summary =
                "Serve the shares of which this gateway is the primary again, after a start with "
                "--share-fail-back off. Refused until it has copies of the heir's connections",
            .run = run_fail_back};
}

}  // namespace penstock::cli
