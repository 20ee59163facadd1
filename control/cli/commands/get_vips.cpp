// SPDX-License-Identifier: Apache-2.0
#include "control/cli/commands/list.hpp"
#include "control/cli/commands/views.hpp"
#include "control/cli/table.hpp"

namespace penstock::cli {
namespace {

Result<std::string> run_get_vips(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto vips, gateway->vips());
    return structured(json_list(vips.vips()), request.format);
}

Result<Table> rows_of_vips(Gateway* gateway, const Request&) {
    PENSTOCK_TRY(const auto vips, gateway->vips());
    return vips_table(vips);
}

}  // namespace

Table vips_table(const v1::ListVipsResponse& vips) {
    Table table({{"ADDRESS"}, {"USE"}, {"PRESENCE"}, {"TWIN"}, {"METRIC", true}, {"REASON"}});
    for (const v1::Vip& vip : vips.vips()) {
        std::string reason = vip.reason();
        if (vip.foreign_route()) {
            reason += (reason.empty() ? "" : "; ") + std::string("another program has a route for it");
        }
        table.add({vip.address(), vip.snat() ? "snat" : "vip", vip.presence(), vip.twin(),
                   vip.metric() > 0 ? std::to_string(vip.metric()) : std::string(), reason});
    }
    return table;
}

Command get_vips() {
    return {.words = {"get", "vips"},
            .aliases = {"vip"},
            .options = {"output", "no-headers", "watch", "interval", "all-gateways"},
            .summary =
                "List LoadBalancer and external IPs, and SNAT addresses of shares, and their announcement "
                "(--vip-presence), with the reason of each that is not announced",
            .run = run_get_vips,
            .rows = rows_of_vips};
}

}  // namespace penstock::cli
