// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "control/gateway/options/option_list.hpp"
#include "control/options/mistakes.hpp"
#include "control/shares/plan_text.hpp"

namespace penstock::gateway {
namespace {

using options::Mistakes;

std::unexpected<Error> refuse(std::string_view option, const std::string& why) {
    return fail(Errc::InvalidArgument, "--" + std::string(option) + ": " + why);
}

void complete_ports(Options& options, const RawOptions& raw, Mistakes& mistakes) {
    if (const Status checked = check_ports(options.ports); !checked) {
        mistakes.note(checked);
        return;
    }
    for (size_t i = 0; i < options.ports.size(); ++i) {
        options.packets.mss_max[i] = options.ports[i].mss;
        options.packets.lowers_mss |= options.ports[i].mss != 0;
        options.packets.reverse_path[i] = options.ports[i].reverse_path.value_or(raw.reverse_path);
    }
}

Status complete_name(std::string& name) {
    if (name.empty()) {
        std::array<char, 256> host{};
        if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') {
            return refuse("gateway-name", "this host has no name; set the option");
        }
        name = host.data();
    }
    return {};
}

Status check_node_name(const model::GatewayIdentity& identity) {
    if (identity.mode == model::GatewayMode::Node && identity.node_name.empty()) {
        return refuse("node-name", "is required with --mode node");
    }
    if (identity.mode == model::GatewayMode::External && !identity.node_name.empty()) {
        return refuse("node-name", "requires --mode node");
    }
    return {};
}

Status add_label(model::GatewayIdentity& identity, const std::string& label) {
    const size_t equals = label.find('=');
    if (equals == 0 || equals == std::string::npos) {
        return refuse("label", "\"" + label + "\" must be KEY=VALUE");
    }
    if (!identity.labels.emplace(label.substr(0, equals), label.substr(equals + 1)).second) {
        return refuse("label", label.substr(0, equals) + " is given twice");
    }
    return {};
}

void complete_identity(model::GatewayIdentity& identity, const std::vector<std::string>& labels,
                       Mistakes& mistakes) {
    mistakes.note(complete_name(identity.gateway_name));
    mistakes.note(check_node_name(identity));
    for (const std::string& label : labels) {
        mistakes.note(add_label(identity, label));
    }
}

Status check_tls(const Options& options) {
    const std::pair<const char*, const std::string*> files[] = {{"tls-cert", &options.tls_cert},
                                                                {"tls-key", &options.tls_key},
                                                                {"tls-client-ca", &options.tls_client_ca}};
    const auto is_absent = [](const auto& file) { return file.second->empty(); };
    const auto missing = std::ranges::find_if(files, is_absent);
    const auto tcp = std::ranges::find_if_not(options.listen, &ListenAddress::is_unix);
    const bool is_needed = tcp != options.listen.end() || !std::ranges::all_of(files, is_absent);
    if (is_needed && missing != std::end(files)) {
        return refuse(missing->first,
                      "is missing; " +
                          (tcp != options.listen.end() ? "listening on " + tcp->text : std::string("TLS")) +
                          " needs --tls-cert, --tls-key and --tls-client-ca");
    }
    return {};
}

// Backends with histograms of latencies: 380,000 series.
constexpr uint32_t kLatencyBackendsMax = 10'000;

// Completes the values that depend on several options, and checks the rules about them. Reads the host's name
// if --gateway-name is absent; otherwise pure.
Status complete(Options& options, const RawOptions& raw, bool healthz_is_given) {
    Mistakes mistakes;
    complete_ports(options, raw, mistakes);
    complete_identity(options.identity, raw.labels, mistakes);
    const bool is_node = options.identity.mode == model::GatewayMode::Node;
    options.healthz = healthz_is_given || !is_node ? raw.healthz : "0.0.0.0:10256";
    mistakes.note(check_tls(options));
    if (options.no_huge && options.hugepage_size != drivers::HugepageSize::Any) {
        mistakes.note(refuse("hugepage-size", "2M and 1G require --no-huge off"));
    }
    if (options.withdraw_empty && options.vip_presence == VipPresenceMode::Off) {
        mistakes.note(refuse("withdraw-empty", "requires --vip-presence routes, addresses or arp"));
    }
    if (!options.shares.empty() && options.vip_presence != VipPresenceMode::Routes &&
        options.vip_presence != VipPresenceMode::Arp) {
        mistakes.note(refuse("shares", "requires --vip-presence routes or arp"));
    }
    if (!options.shares.empty() && options.vip_standby) {
        mistakes.note(refuse("shares", "excludes --vip-standby: the plan determines the level of each VIP"));
    }
    if (!options.shares.empty() && !shares::is_gateway_name(options.identity.gateway_name)) {
        mistakes.note(
            refuse("shares", "requires a --gateway-name of " + std::string(shares::kGatewayNameRule)));
    }
    for (const auto& [name, is_set] : {std::pair("share-age", options.share_age != kShareAgeDefault),
                                       std::pair("share-copies", options.share_copies.has_value()),
                                       std::pair("share-fail-back", !options.share_fail_back)}) {
        if (is_set && options.shares.empty()) {
            mistakes.note(refuse(name, "requires --shares"));
        }
    }
    if (options.vip_standby && options.vip_presence != VipPresenceMode::Routes &&
        options.vip_presence != VipPresenceMode::Arp) {
        mistakes.note(refuse("vip-standby", "requires --vip-presence routes or arp"));
    }
    for (const auto& [name, is_on] :
         {std::pair("vip-isolate", options.vip_isolate), std::pair("vip-mark", options.vip_mark)}) {
        if (is_on && options.flow_rules == 0) {
            mistakes.note(refuse(name, "requires --flow-rules above 0"));
        }
    }
    if (options.latencies == worker::Latencies::ServicesAndBackends &&
        (options.metrics_backends == 0 || options.metrics_backends > kLatencyBackendsMax)) {
        mistakes.note(refuse("latency-histograms", "backends requires --metrics-backends from 1 to " +
                                                       std::to_string(kLatencyBackendsMax)));
    }
    for (const auto& [name, is_set] : {std::pair("flow-services", options.flow_records.all_services),
                                       std::pair("flow-sample", options.flow_records.one_in != 1)}) {
        if (is_set && !options.flow_records.is_on()) {
            mistakes.note(refuse(name, "requires --flow-log or --flow-collector"));
        }
    }
    if (options.snat_addresses.size() > limits::kSnatAddressesMax) {
        mistakes.note(refuse("snat-address", "more addresses than the maximum of " +
                                                 std::to_string(limits::kSnatAddressesMax)));
    }
    return mistakes.result();
}

// An option set with the variables that it stores into.
struct Reader {
    Options options;
    RawOptions raw;
    options::OptionSet set;

    Reader() { add_options(set, options, raw); }
    [[nodiscard]] Status finish() { return complete(options, raw, set.is_given("healthz")); }
};

}  // namespace

Result<Options> Options::parse(const std::vector<std::string>& arguments) {
    Reader reader;
    PENSTOCK_TRY(reader.options.action, reader.set.read(arguments, [&] { return reader.finish(); }));
    return std::move(reader.options);
}

Result<Options> Options::parse_ini(const std::string& text) {
    Reader reader;
    PENSTOCK_TRY_STATUS(reader.set.read_ini(text, [&] { return reader.finish(); }));
    return std::move(reader.options);
}

std::string Options::help() {
    return kHelpHead + Reader().set.help() + "\n" + kHelpExamples;
}

}  // namespace penstock::gateway
