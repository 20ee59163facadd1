// SPDX-License-Identifier: Apache-2.0
// penstock-sync: source -> changes -> one stream per gateway. run() lists the steps.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <iostream>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "control/kube/client/in_cluster.hpp"
#include "control/kube/client/kubeconfig.hpp"
#include "control/log/log.hpp"
#include "control/process/grpc_lines.hpp"
#include "control/process/service_manager.hpp"
#include "control/process/signals.hpp"
#include "control/sync/addresses/assigned_source.hpp"
#include "control/sync/addresses/assignment_settings.hpp"
#include "control/sync/cluster_follower.hpp"
#include "control/sync/config_check.hpp"
#include "control/sync/manifest_source.hpp"
#include "control/sync/monitor.hpp"
#include "control/sync/options.hpp"
#include "control/sync/policy_options.hpp"
#include "control/sync/policy_watch.hpp"
#include "control/sync/server_address.hpp"
#include "control/sync/stream/gateway_stream.hpp"
#include "control/tls/watch.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::sync {
namespace {

constexpr int kExitUsage = 2;

// Unique per process, and readable enough to identify it. State versions are counted within it.
std::string new_source() {
    std::array<char, HOST_NAME_MAX + 1> host{};
    ::gethostname(host.data(), host.size() - 1);
    std::random_device random;
    return fmt::format("{}-{}-{:08x}", host.data(), ::getpid(), random());
}

// The source that is followed.
struct Followed {
    std::unique_ptr<Source> source;
    ClusterFollower* cluster = nullptr;  // the same object if the source is an API server
    AssignedSource* folder = nullptr;    // the same object if it is a folder with address pools
    std::string text;                    // for the log
    std::vector<IpAddr> protect;         // addresses of the API server itself (XIP-006)
};

Result<Followed> open_manifests(const Options& options) {
    PENSTOCK_TRY(auto source,
                 ManifestSource::open(options.manifests, options.allow_empty_folder
                                                             ? manifest::Folder::WhenEmpty::Withdraw
                                                             : manifest::Folder::WhenEmpty::Keep));
    Followed followed{.source = std::move(source), .text = options.manifests.string(), .protect = {}};
    if (options.allocate_addresses) {
        PENSTOCK_TRY(auto assigned, AssignedSource::open({.objects = std::move(followed.source),
                                                          .pools = options.address_pools,
                                                          .allocation_file = options.allocation_file,
                                                          .assignment = assignment_settings(options, {})}));
        followed.folder = assigned.get();
        followed.source = std::move(assigned);
    }
    return followed;
}

Result<Followed> open_cluster(const Options& options, const std::string& identity) {
    PENSTOCK_TRY(auto config, options.in_cluster
                                  ? kube::in_cluster_config()
                                  : kube::read_kubeconfig(options.kubeconfig, options.context));
    std::vector<IpAddr> server;
    if (auto addresses = addresses_of(host_of(config.server))) {
        server = std::move(*addresses);
    } else {
        log::get("sync").warn(
            "cannot resolve the API server's address ({}), so Services can claim it as an external IP; "
            "list it in --protected-addresses",
            addresses.error().what);
    }
    ClusterFollower::Settings settings{
        .config = config,
        .scope = {.namespace_name = options.namespace_name,
                  .nodes = options.namespace_name.empty(),
                  .endpoints_only = options.endpoints_only,
                  .with_proxy_services = !options.policy.own_proxy_name.empty(),
                  .address_pools = options.allocate_addresses && options.address_pools.empty(),
                  .namespaces = options.allocate_addresses},
        .allow_insecure = options.allow_insecure,
        .events = options.events,
        .status_per_s = options.status_per_s,
        .addresses = {},
        .pools = options.address_pools};
    if (options.allocate_addresses) {
        settings.addresses = {.assignment = assignment_settings(options, server),
                              .election = {.lease = options.lease, .identity = identity}};
    }
    PENSTOCK_TRY(auto follower, ClusterFollower::open(settings));
    Followed followed{.cluster = follower.get(),
                      .text = config.server + " (" + config.origin + ")",
                      .protect = std::move(server)};
    followed.source = std::move(follower);
    return followed;
}

using Gateways = std::vector<std::unique_ptr<GatewayStream>>;

// All watched objects must outlive the monitor.
Watched watched(const std::string& identity, const Followed& followed, const Gateways& gateways,
                const tls::Watch* tls) {
    Watched all{.version = PENSTOCK_VERSION, .identity = identity, .source = [&source = *followed.source] {
                    return source.status();
                }};
    for (const auto& gateway : gateways) {
        all.gateways.emplace_back([&gateway = *gateway] { return gateway.status(); });
    }
    if (followed.cluster != nullptr) {
        all.events = [&cluster = *followed.cluster] { return cluster.events_status(); };
    }
    if (followed.cluster != nullptr && followed.cluster->address_status()) {
        all.addresses = [&cluster = *followed.cluster] { return *cluster.address_status(); };
    } else if (followed.folder != nullptr) {
        all.addresses = [&folder = *followed.folder] { return folder.address_status(); };
    }
    if (tls != nullptr) {
        all.tls = [tls] {
            TlsStatus status{.broken = !tls->error().empty()};
            if (const auto material = tls->current()) {
                status.certificate_starts_s =
                    std::chrono::duration<double>(material->valid_from.time_since_epoch()).count();
                status.certificate_expires_s =
                    std::chrono::duration<double>(material->expires.time_since_epoch()).count();
                status.authority_expires_s =
                    std::chrono::duration<double>(material->authority_expires.time_since_epoch()).count();
            }
            return status;
        };
    }
    return all;
}

// Handles pending signals. False if one of them stops the program.
bool handle_signals(process::Signals& signals, const Followed& followed, PolicyWatch* policy,
                    tls::Watch* tls) {
    for (auto signal = signals.take(); signal.number != 0; signal = signals.take()) {
        switch (signal.meaning) {
            case process::Signal::Meaning::Stop:
                log::get("sync").info("stopping on {}; the gateways keep their state", signal.name());
                return false;
            case process::Signal::Meaning::Reload:
                log::get("sync").info(
                    "SIGHUP: manifests, address pools, the external IP policy and TLS files are reloaded if "
                    "configured; changes of options require a restart");
                if (followed.cluster != nullptr) {
                    followed.cluster->reload();
                }
                if (followed.folder != nullptr) {
                    followed.folder->reload();
                }
                if (policy != nullptr) {
                    policy->reload();
                }
                if (tls != nullptr) {
                    tls->reload();
                }
                break;
            case process::Signal::Meaning::Unknown:
                log::get("sync").warn(
                    "{} is ignored: penstock-sync stops on SIGTERM and SIGINT, and reloads files on SIGHUP",
                    signal.name());
                break;
        }
    }
    return true;
}

// Main loop. Returns on a signal that ends the program.
void follow(const Followed& followed, process::Signals& signals, const Gateways& gateways,
            PolicyWatch* policy, tls::Watch* tls) {
    Source& source = *followed.source;
    // A signal ends the wait. Manifests are then read once more: SIGHUP requires it, and it is cheap for
    // other signals.
    while (source.wait(signals.fd()) || handle_signals(signals, followed, policy, tls)) {
        const auto changes = source.take_changes();
        for (size_t i = 0; changes && i < gateways.size(); ++i) {
            gateways[i]->update(*changes);
        }
    }
    if (followed.cluster != nullptr) {
        followed.cluster->release();
    }
}

Status run(const Options& options) {
    // Before any thread starts.
    PENSTOCK_TRY(auto signals, process::Signals::block());
    const auto service_manager = process::ServiceManager::from_environment();
    const std::string identity = new_source();
    PENSTOCK_TRY(auto followed,
                 options.manifests.empty() ? open_cluster(options, identity) : open_manifests(options));
    log::get("sync").info("penstock-sync {} follows {} as {}", PENSTOCK_VERSION, followed.text, identity);
    for (const std::string& hint : hints_of(options.policy)) {
        log::get("sync").info("{}", hint);
    }
    semantics::Policy policy = options.policy;
    if (!options.external_ip_policy.empty()) {
        PENSTOCK_TRY_IN("--external-ip-policy", policy.external_ip_rules,
                        read_external_ip_policy(options.external_ip_policy));
    }
    StateSession::Settings settings{.source = identity,
                                    .policy = std::move(policy),
                                    .coalesce = options.coalesce,
                                    .audit_period = options.audit_period};
    settings.policy.protected_addresses.insert(settings.policy.protected_addresses.end(),
                                               followed.protect.begin(), followed.protect.end());
    process::take_grpc_lines([](bool is_error, std::string_view text) {
        log::get("rpc").log(is_error ? spdlog::level::debug : spdlog::level::trace, "grpc: {}", text);
    });
    std::unique_ptr<tls::Watch> tls;
    if (std::ranges::any_of(options.gateways,
                            [](const client::Target& target) { return !target.is_unix(); })) {
        tls = std::make_unique<tls::Watch>(
            tls::WatchOptions{.files = {options.tls.certificate, options.tls.key, options.tls.authority},
                              .names = {},
                              .logger = "sync",
                              .on_change = nullptr});
    }
    Gateways gateways;
    for (const client::Target& target : options.gateways) {
        gateways.push_back(std::make_unique<GatewayStream>(
            target, target.is_unix() ? nullptr : tls.get(), settings,
            followed.cluster != nullptr ? followed.cluster->observer() : nullptr, options.priority));
    }
    std::unique_ptr<PolicyWatch> policy_watch;
    if (!options.external_ip_policy.empty()) {
        PENSTOCK_TRY(policy_watch,
                     PolicyWatch::start(options.external_ip_policy, settings.policy.external_ip_rules,
                                        [&](const ExternalIpPolicy& rules) {
                                            for (const auto& gateway : gateways) {
                                                gateway->update(rules);
                                            }
                                        }));
    }
    PENSTOCK_TRY(
        const auto monitor,
        Monitor::start(options.monitor, watched(identity, followed, gateways, tls.get()), service_manager));
    follow(followed, signals, gateways, policy_watch.get(), tls.get());
    service_manager.send("STOPPING=1\nSTATUS=stopping; the gateways keep their state");
    return {};
}

}  // namespace
}  // namespace penstock::sync

int main(int argc, char** argv) {
    using namespace penstock;
    const auto options = sync::read_options({argv + 1, argv + argc});
    if (!options) {
        for (const std::string_view mistake : split(options.error().what, '\n')) {
            std::cerr << "penstock-sync: " << mistake << "\n";
        }
        std::cerr << "penstock-sync --help lists the options\n";
        return sync::kExitUsage;
    }
    if (const auto* information = std::get_if<sync::Information>(&*options)) {
        std::cout << information->text;
        return EXIT_SUCCESS;
    }
    const auto& read = std::get<sync::Options>(*options);
    if (read.check_only) {
        const auto mistakes = sync::mistakes_in(read);
        for (const std::string& mistake : mistakes) {
            std::cerr << "penstock-sync: " << mistake << "\n";
        }
        if (mistakes.empty()) {
            std::cout << "penstock-sync: the configuration is valid: " << read.gateways.size()
                      << " gateways\n";
        }
        return mistakes.empty() ? EXIT_SUCCESS : sync::kExitUsage;
    }
    log::set_format(read.log_format);
    if (const Status logging = log::set_levels(read.log_levels); !logging) {
        std::cerr << "penstock-sync: " << logging.error().what << "\n";
        return sync::kExitUsage;
    }
    if (const Status ended = sync::run(read); !ended) {
        log::get("sync").error("{}", ended.error().what);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
