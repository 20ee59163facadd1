// SPDX-License-Identifier: Apache-2.0
#include "control/sync/options.hpp"

#include <utility>

#include "control/sync/option_list.hpp"

namespace penstock::sync {
namespace {

std::unexpected<Error> invalid(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

Status check_source(const Options& options, const options::OptionSet& set) {
    if (set.is_given("kubeconfig") && options.kubeconfig.empty()) {
        return invalid("--kubeconfig names no file: give at least one path");
    }
    const int given =
        int{!options.manifests.empty()} + int{!options.kubeconfig.empty()} + int{options.in_cluster};
    if (given != 1) {
        return invalid(
            std::string(given == 0 ? "nothing to follow" : "more than one thing to follow") +
            ": exactly one of --manifests PATH, --kubeconfig FILE and --in-cluster is needed; see --help");
    }
    if (options.allow_empty_folder && options.manifests.empty()) {
        return invalid("--allow-empty-folder requires --manifests");
    }
    if (!options.context.empty() && options.kubeconfig.empty()) {
        return invalid("--context requires --kubeconfig");
    }
    if (!options.manifests.empty() && (!options.namespace_name.empty() || options.endpoints_only)) {
        return invalid(
            "--namespace and --endpoints-api apply to an API server and cannot be used with --manifests");
    }
    return {};
}

// The rules that concern several options.
Status check(const Options& options, const options::OptionSet& set) {
    PENSTOCK_TRY_STATUS(check_source(options, set));
    for (const client::Target& gateway : options.gateways) {
        PENSTOCK_TRY_STATUS(client::check_tls(gateway, options.tls));
    }
    return {};
}

}  // namespace

Result<std::variant<Options, Information>> read_options(const std::vector<std::string>& arguments) {
    Options options;
    options::OptionSet set;
    add_options(set, options);
    PENSTOCK_TRY(const auto action, set.read(arguments, [&] { return check(options, set); }));
    if (action == options::Action::Help) {
        return Information{kHelpHead + set.help()};
    }
    if (action == options::Action::Version) {
        return Information{"penstock-sync " PENSTOCK_VERSION "\n"};
    }
    if (options.gateways.empty()) {
        options.gateways.push_back(client::Target{});
    }
    options.monitor.socket_is_wanted = set.is_given("listen");
    options.check_only = action == options::Action::Check;
    return options;
}

}  // namespace penstock::sync
