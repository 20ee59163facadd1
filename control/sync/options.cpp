// SPDX-License-Identifier: Apache-2.0
#include "control/sync/options.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "control/base/ini_lines.hpp"
#include "control/http/server.hpp"
#include "control/sync/option_list.hpp"
#include "control/sync/option_values.hpp"
#include "control/sync/policy_options.hpp"

namespace penstock::sync {
namespace po = boost::program_options;
namespace {

std::unexpected<Error> invalid(std::string what) {
    return fail(Errc::InvalidArgument, std::move(what));
}

Status read_source(const po::variables_map& values, Options& options) {
    options.manifests = option_text(values, "manifests");
    if (values.contains("kubeconfig")) {
        for (const std::string& value : values["kubeconfig"].as<std::vector<std::string>>()) {
            std::istringstream stream(value);
            for (std::string file; std::getline(stream, file, ':');) {
                if (!file.empty()) {
                    options.kubeconfig.emplace_back(file);
                }
            }
        }
        if (options.kubeconfig.empty()) {
            return invalid("--kubeconfig names no file: give at least one path");
        }
    }
    options.in_cluster = values["in-cluster"].as<bool>();
    const int given =
        int{!options.manifests.empty()} + int{!options.kubeconfig.empty()} + int{options.in_cluster};
    if (given != 1) {
        return invalid(
            std::string(given == 0 ? "nothing to follow" : "more than one thing to follow") +
            ": exactly one of --manifests PATH, --kubeconfig FILE and --in-cluster is needed; see --help");
    }
    options.allow_empty_folder = values["allow-empty-folder"].as<bool>();
    if (options.allow_empty_folder && options.manifests.empty()) {
        return invalid("--allow-empty-folder requires --manifests");
    }
    options.context = option_text(values, "context");
    if (!options.context.empty() && options.kubeconfig.empty()) {
        return invalid("--context requires --kubeconfig");
    }
    options.namespace_name = option_text(values, "namespace");
    options.allow_insecure = values["insecure-skip-tls-verify-allowed"].as<bool>();
    const std::string endpoints = option_text(values, "endpoints-api");
    if (endpoints != "auto" && endpoints != "endpoints") {
        return invalid("--endpoints-api " + endpoints + ": must be auto or endpoints");
    }
    options.endpoints_only = endpoints == "endpoints";
    const std::string events = option_text(values, "events");
    if (events != "on" && events != "off") {
        return invalid("--events " + events + ": must be on or off");
    }
    options.events = events == "on";
    if (!options.manifests.empty() && (!options.namespace_name.empty() || options.endpoints_only)) {
        return invalid(
            "--namespace and --endpoints-api apply to an API server and cannot be used with --manifests");
    }
    return {};
}

Result<MonitorOptions> read_monitor(const po::variables_map& values) {
    MonitorOptions monitor{.socket_is_wanted = !values["listen"].defaulted(),
                           .socket_group = option_text(values, "socket-group")};
    if (const std::string http = option_text(values, "http"); http != "off") {
        if (const Status checked = http::check_address(http); !checked) {
            return in_context("--http", checked.error());
        }
        monitor.http = http;
    }
    const std::string listen = option_text(values, "listen");
    if (listen == "off") {
        monitor.socket.clear();
        return monitor;
    }
    const auto target = client::parse_target(listen);
    if (!target || !listen.starts_with("unix:/")) {
        return fail(
            Errc::InvalidArgument,
            "--listen " + listen + ": must be unix:PATH with an absolute path of at most 107 bytes, or off");
    }
    monitor.socket = listen.substr(std::string_view("unix:").size());
    return monitor;
}

Status read_service(const po::variables_map& values, Options& options) {
    const auto coalesce = values["coalesce-ms"].as<int64_t>();
    if (coalesce < 0 || coalesce > kCoalesceMax.count()) {
        return invalid("--coalesce-ms " + std::to_string(coalesce) + ": must be 0 to " +
                       std::to_string(kCoalesceMax.count()) + " (GEN-008)");
    }
    options.coalesce = std::chrono::milliseconds(coalesce);
    const auto audit = values["audit-period-s"].as<int64_t>();
    if (audit < 1 || audit > std::chrono::seconds(kAuditPeriodMax).count()) {
        return invalid("--audit-period-s " + std::to_string(audit) + ": must be 1 to " +
                       std::to_string(std::chrono::seconds(kAuditPeriodMax).count()) + " (APISYNC-021)");
    }
    options.audit_period = std::chrono::seconds(audit);
    auto monitor = read_monitor(values);
    if (!monitor) {
        return std::unexpected(monitor.error());
    }
    options.monitor = std::move(*monitor);
    return {};
}

Status read_log(const po::variables_map& values, Options& options) {
    options.log_levels = entries_of(values, "log-level");
    for (const std::string& setting : options.log_levels) {
        if (const Status checked = log::check_setting(setting); !checked) {
            return in_context("--log-level", checked.error());
        }
    }
    const auto format = log::parse_format(option_text(values, "log-format"));
    if (!format) {
        return in_context("--log-format", format.error());
    }
    options.log_format = *format;
    return {};
}

Status read_gateways(const po::variables_map& values, Options& options) {
    options.tls = {option_text(values, "tls-cert"), option_text(values, "tls-key"),
                   option_text(values, "tls-ca")};
    const auto priority = values["sync-priority"].as<int64_t>();
    if (priority < 0 || priority > kSyncPriorityMax) {
        return invalid("--sync-priority " + std::to_string(priority) + ": must be 0 to " +
                       std::to_string(kSyncPriorityMax));
    }
    options.priority = static_cast<uint32_t>(priority);
    auto gateways =
        parsed_entries<client::Target>(entries_of(values, "gateway"), "--gateway", client::parse_target);
    if (!gateways) {
        return std::unexpected(gateways.error());
    }
    if (gateways->empty()) {
        gateways->push_back(client::Target{});
    }
    for (auto gateway = gateways->begin(); gateway != gateways->end(); ++gateway) {
        if (const Status complete = client::check_tls(*gateway, options.tls); !complete) {
            return std::unexpected(complete.error());
        }
        // Two streams to one gateway would take the lead from each other in turn: the displaced one
        // reconnects at once.
        if (std::find(gateways->begin(), gateway, *gateway) != gateway) {
            return invalid("--gateway " + gateway->text + " is given twice");
        }
    }
    options.gateways = std::move(*gateways);
    return {};
}

Result<Options> options_from(const po::variables_map& values) {
    Options options;
    for (const auto read : {read_source, read_gateways, read_service, read_log}) {
        if (const Status done = read(values, options); !done) {
            return std::unexpected(done.error());
        }
    }
    auto policy = read_policy(values);
    if (!policy) {
        return std::unexpected(policy.error());
    }
    options.policy = std::move(*policy);
    options.external_ip_policy = option_text(values, "external-ip-policy");
    return options;
}

// The source of each option value, so that errors can name it.
struct Origin {
    po::variables_map of_command_line;
    std::string file, ini;  // "": no INI file

    [[nodiscard]] Error located(Error error) const {
        const std::string option = option_in(error.what);
        if (!file.empty() && !(of_command_line.contains(option) && !of_command_line[option].defaulted())) {
            error.what = at_ini_line(file, ini, error.what);
        }
        return error;
    }
};

// Throws po::error. Fails if the INI file cannot be read.
Status store_all(const std::vector<std::string>& arguments, po::variables_map& values, Origin& origin) {
    po::options_description all;
    all.add(command_line_only()).add(everywhere());
    // allow_guessing would accept --log for --log-level until a second option begins with "log".
    constexpr int kStyle = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    const auto parsed = po::command_line_parser(arguments).options(all).style(kStyle).run();
    for (const auto& option : parsed.options) {
        if (option.string_key.empty()) {
            return fail(Errc::InvalidArgument,
                        "\"" + option.value.at(0) + "\" is not an option and not the value of one");
        }
    }
    po::store(parsed, values);
    if (const std::string path = option_text(values, "config"); !path.empty()) {
        std::ifstream file(path);
        if (!file) {
            return fail(Errc::NotFound, "--config " + path + ": cannot read the file");
        }
        origin = {values, path, {std::istreambuf_iterator<char>(file), {}}};
        try {
            std::istringstream stream(origin.ini);
            po::store(po::parse_config_file(stream, everywhere()), values);
        } catch (const po::error& error) {
            return fail(Errc::InvalidArgument, at_ini_line(path, origin.ini, error.what()));
        }
    }
    po::notify(values);
    return {};
}

}  // namespace

Result<std::variant<Options, Information>> read_options(const std::vector<std::string>& arguments) {
    po::variables_map values;
    Origin origin;
    try {
        if (const Status stored = store_all(arguments, values, origin); !stored) {
            return std::unexpected(stored.error());
        }
    } catch (const po::error& error) {
        return fail(Errc::InvalidArgument, error.what());
    }
    if (values.contains("help")) {
        return Information{help_text()};
    }
    if (values.contains("version")) {
        return Information{"penstock-sync " PENSTOCK_VERSION "\n"};
    }
    auto options = options_from(values);
    if (!options) {
        return std::unexpected(origin.located(std::move(options.error())));
    }
    options->check_only = values.contains("check-config");
    return std::move(*options);
}

}  // namespace penstock::sync
