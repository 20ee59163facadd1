// SPDX-License-Identifier: Apache-2.0
// Always refused: the state of a gateway follows from the cluster's objects alone, so a restarted gateway has
// the same state. The error contains the kubectl command that sets the scheduler. The names are validated
// first.
#include <algorithm>

#include "control/annotations/table.hpp"
#include "control/cli/commands/list.hpp"
#include "control/cli/service_name.hpp"

namespace penstock::cli {
namespace {

Result<std::string_view> scheduler_from(const std::string& text) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    std::string known;
    for (const annotations::Word& name : annotations::scheduler_names()) {
        if (std::ranges::equal(text, name.spelled, {}, lower)) {
            return name.spelled;
        }
        known += (known.empty() ? "" : ", ") + std::string(name.spelled);
    }
    return fail(Errc::InvalidArgument, "there is no scheduler " + text + "; must be one of " + known);
}

Result<std::string> run_set_scheduler(Gateway* gateway, const Request& request) {
    PENSTOCK_TRY(const auto name, service_name_from(*gateway, request));
    PENSTOCK_TRY(const auto scheduler, scheduler_from(request.arguments[1]));
    v1::ListServicesRequest wanted;
    wanted.set_namespace_(name.namespace_name);
    wanted.set_name(name.name);
    PENSTOCK_TRY(const auto found, gateway->services(wanted));
    if (found.services().empty()) {
        return fail(Errc::NotFound, "there is no service " + name.namespace_name + "/" + name.name);
    }
    const std::string_view key = annotations::spec_of(annotations::Setting::Scheduler).spellings.front().key;
    return fail(Errc::PermissionDenied,
                "the scheduler is configured in the cluster, by the Service's annotation " +
                    std::string(key) +
                    "; a change takes effect at once. To set it:\n  "
                    "kubectl annotate --overwrite --namespace " +
                    wanted.namespace_() + " service " + wanted.name() + " " + std::string(key) + "=" +
                    std::string(scheduler));
}

}  // namespace

Command set_scheduler() {
    return {.words = {"set", "scheduler"},
            .arguments = "NAME|NS/NAME SCHEDULER",
            .arguments_min = 2,
            .arguments_max = 2,
            .summary = "Always refused: prints the kubectl command to use instead",
            .run = run_set_scheduler};
}

}  // namespace penstock::cli
