// SPDX-License-Identifier: Apache-2.0
#include "control/sync/options.hpp"

#include <utility>

#include "control/options/mistakes.hpp"
#include "control/sync/option_list.hpp"

namespace penstock::sync {
namespace {

using options::Mistakes;

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
    Mistakes mistakes;
    if (options.allow_empty_folder && options.manifests.empty()) {
        mistakes.note(invalid("--allow-empty-folder requires --manifests"));
    }
    if (!options.context.empty() && options.kubeconfig.empty()) {
        mistakes.note(invalid("--context requires --kubeconfig"));
    }
    for (const auto& [name, is_used] : {std::pair("namespace", !options.namespace_name.empty()),
                                        std::pair("endpoints-api", options.endpoints_only)}) {
        if (!options.manifests.empty() && is_used) {
            mistakes.note(invalid("--" + std::string(name) +
                                  " applies to an API server and cannot be used with --manifests"));
        }
    }
    return mistakes.result();
}

Status check_addresses(Options& options, const options::OptionSet& set) {
    Mistakes mistakes;
    if (!options.address_pools.empty()) {
        if (set.is_given("allocate-addresses") && !options.allocate_addresses) {
            mistakes.note(invalid("--address-pools requires --allocate-addresses on"));
        }
        options.allocate_addresses = true;
    }
    if (!options.allocate_addresses) {
        for (const char* option : {"address-pools-exclude", "allocation-file", "lease", "status-qps"}) {
            if (set.is_given(option)) {
                mistakes.note(invalid(std::string("--") + option + " requires --allocate-addresses on"));
            }
        }
        return mistakes.result();
    }
    if (!options.manifests.empty() && options.address_pools.empty()) {
        mistakes.note(invalid("--allocate-addresses with --manifests requires --address-pools PATH"));
    }
    for (const char* option : {"lease", "status-qps"}) {
        if (!options.manifests.empty() && set.is_given(option)) {
            mistakes.note(invalid(std::string("--") + option +
                                  " applies to an API server and cannot be used with --manifests"));
        }
    }
    if (options.manifests.empty() && set.is_given("allocation-file")) {
        mistakes.note(
            invalid("--allocation-file requires --manifests: a cluster keeps addresses in its Services"));
    }
    if (!options.namespace_name.empty()) {
        mistakes.note(invalid(
            "--allocate-addresses requires all namespaces: with --namespace, addresses of other Services are "
            "unknown"));
    }
    return mistakes.result();
}

// The rules that concern several options.
Status check(Options& options, const options::OptionSet& set) {
    Mistakes mistakes;
    mistakes.note(check_source(options, set));
    mistakes.note(check_addresses(options, set));
    for (const client::Target& gateway : options.gateways) {
        mistakes.note(client::check_tls(gateway, options.tls));
    }
    return mistakes.result();
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
