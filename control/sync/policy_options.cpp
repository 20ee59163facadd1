// SPDX-License-Identifier: Apache-2.0
#include "control/sync/policy_options.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "control/sync/option_values.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/lb/names.hpp"

namespace penstock::sync {
namespace po = boost::program_options;
namespace {

Status read_node_port_addresses(const po::variables_map& values, semantics::Policy& policy) {
    const auto entries = entries_of(values, "nodeport-addresses");
    if (entries == std::vector<std::string>{"primary"}) {
        policy.node_port_primary_only = true;
        return {};
    }
    if (std::find(entries.begin(), entries.end(), "primary") != entries.end()) {
        return fail(Errc::InvalidArgument,
                    "--nodeport-addresses: primary cannot be combined with other entries (NODEPORT-003)");
    }
    auto prefixes = parsed_entries<Prefix>(entries, "--nodeport-addresses", Prefix::parse);
    if (!prefixes) {
        prefixes.error().what += " (NODEPORT-003)";
        return std::unexpected(prefixes.error());
    }
    policy.node_port_within = std::move(*prefixes);
    return {};
}

Status read_backend_words(const po::variables_map& values, semantics::Policy& policy) {
    using Mode = semantics::Policy::BackendMode;
    const std::string mode = option_text(values, "backend-mode");
    if (mode != "pod" && mode != "node" && mode != "auto") {
        return fail(Errc::InvalidArgument,
                    "--backend-mode " + mode + ": must be pod, node or auto (NODEPORT-009)");
    }
    policy.backend_mode = mode == "pod" ? Mode::Pod : mode == "node" ? Mode::Node : Mode::Auto;
    const std::string weight = option_text(values, "node-weight");
    if (weight != "equal" && weight != "ready-pods") {
        return fail(Errc::InvalidArgument, "--node-weight " + weight + ": must be equal or ready-pods");
    }
    policy.node_weight_ready_pods = weight == "ready-pods";
    const auto probe_port = values["node-probe-port"].as<int64_t>();
    if (probe_port < 0 || probe_port > 65535) {
        return fail(Errc::InvalidArgument,
                    "--node-probe-port " + std::to_string(probe_port) + ": must be 0 to 65535 (HC-007)");
    }
    policy.node_probe_port = static_cast<L4Port>(probe_port);
    policy.serve_health_checks = values["serve-health-check-node-ports"].as<bool>();
    const std::string closed = option_text(values, "vip-closed-port");
    if (closed != "drop" && closed != "reject") {
        return fail(Errc::InvalidArgument,
                    "--vip-closed-port " + closed + ": must be drop or reject (LB-021)");
    }
    policy.rejects_closed_vip_ports = closed == "reject";
    return {};
}

// Protocols that --protocols omits are disabled. An empty list disables none.
Status read_protocols(const po::variables_map& values, semantics::Policy& policy) {
    static constexpr std::array kNames = {std::pair{"tcp", Protocol::Tcp}, std::pair{"udp", Protocol::Udp},
                                          std::pair{"sctp", Protocol::Sctp}};
    const auto entries = entries_of(values, "protocols");
    for (const std::string& entry : entries) {
        if (std::none_of(kNames.begin(), kNames.end(),
                         [&](const auto& known) { return entry == known.first; })) {
            return fail(Errc::InvalidArgument,
                        "--protocols " + entry + ": must be tcp, udp or sctp (LB-017)");
        }
    }
    for (const auto& [name, protocol] : kNames) {
        if (!entries.empty() && std::find(entries.begin(), entries.end(), name) == entries.end()) {
            policy.disabled_protocols.push_back(protocol);
        }
    }
    return {};
}

Status read_words(const po::variables_map& values, semantics::Policy& policy) {
    const std::string scope = option_text(values, "lb-vip-scope");
    if (scope == "owned" || scope == "all") {
        policy.lb_vip_scope =
            scope == "all" ? semantics::Policy::VipScope::All : semantics::Policy::VipScope::Owned;
    } else if (!scope.empty()) {
        return fail(Errc::InvalidArgument, "--lb-vip-scope " + scope + ": must be owned or all");
    }
    const std::string compat = option_text(values, "source-ranges-compat");
    if (compat != "none" && compat != "kube-proxy") {
        return fail(Errc::InvalidArgument,
                    "--source-ranges-compat " + compat + ": must be none or kube-proxy");
    }
    policy.source_ranges_compat_kube_proxy = compat == "kube-proxy";
    const std::string symmetric = option_text(values, "symmetric-return");
    if (symmetric != "true" && symmetric != "false") {
        return fail(Errc::InvalidArgument, "--symmetric-return " + symmetric + ": must be true or false");
    }
    policy.symmetric_return = symmetric == "true";
    const std::string no_match = option_text(values, "topology-no-match");
    if (no_match != "reject" && no_match != "drop") {
        return fail(Errc::InvalidArgument, "--topology-no-match " + no_match + ": must be reject or drop");
    }
    policy.topology_no_match_drops = no_match == "drop";
    if (const Status read = read_backend_words(values, policy); !read) {
        return std::unexpected(read.error());
    }
    const std::string unsupported = option_text(values, "unsupported-annotations");
    if (unsupported != "serve" && unsupported != "refuse") {
        return fail(Errc::InvalidArgument,
                    "--unsupported-annotations " + unsupported + ": must be serve or refuse");
    }
    policy.refuse_unsupported_annotations = unsupported == "refuse";
    policy.external_ips_annotation = values["external-ips-annotation"].as<bool>();
    const auto scheduler = lb::parse_scheduler(option_text(values, "scheduler"));
    if (!scheduler) {
        return in_context("--scheduler", scheduler.error());
    }
    policy.default_scheduler = *scheduler;
    return {};
}

}  // namespace

Result<semantics::Policy> read_policy(const po::variables_map& values) {
    semantics::Policy policy;
    auto allowed = parsed_entries<Prefix>(entries_of(values, "allowed-external-cidrs"),
                                          "--allowed-external-cidrs", Prefix::parse);
    if (!allowed) {
        return std::unexpected(allowed.error());
    }
    for (const std::string& entry : entries_of(values, "allowed-external-cidrs")) {
        // "203.0.113.1/24" may be meant as one address, but would allow 256. It is rejected.
        const auto address = IpAddr::parse(entry.substr(0, entry.find('/')));
        const auto prefix = Prefix::parse(entry);
        if (address && prefix && prefix->address() != *address) {
            return fail(Errc::InvalidArgument, "--allowed-external-cidrs: \"" + entry +
                                                   "\" has bits set after the prefix length: write " +
                                                   prefix->to_string() + " or " +
                                                   Prefix::host(*address).to_string());
        }
    }
    policy.allowed_external_cidrs = std::move(*allowed);
    auto protect = parsed_entries<IpAddr>(entries_of(values, "protected-addresses"), "--protected-addresses",
                                          IpAddr::parse);
    if (!protect) {
        return std::unexpected(protect.error());
    }
    policy.protected_addresses = std::move(*protect);
    auto cluster =
        parsed_entries<Prefix>(entries_of(values, "cluster-cidr"), "--cluster-cidr", Prefix::parse);
    if (!cluster) {
        return std::unexpected(cluster.error());
    }
    policy.cluster_cidrs = std::move(*cluster);
    if (const Status read = read_protocols(values, policy); !read) {
        return std::unexpected(read.error());
    }
    if (const Status read = read_node_port_addresses(values, policy); !read) {
        return std::unexpected(read.error());
    }
    if (const Status read = read_words(values, policy); !read) {
        return std::unexpected(read.error());
    }
    policy.lb_class = option_text(values, "lb-class");
    policy.default_lb = values["default-lb"].as<bool>();
    policy.serve_cluster_ips = values["serve-cluster-ips"].as<bool>();
    policy.masquerade_all = values["masquerade-all"].as<bool>();
    policy.ignore_exclude_label = values["ignore-exclude-label"].as<bool>();
    policy.ignore_network_unavailable = values["ignore-network-unavailable"].as<bool>();
    policy.own_proxy_name = option_text(values, "proxy-name");
    return policy;
}

std::vector<std::string> hints_of(const semantics::Policy& policy) {
    std::vector<std::string> hints;
    for (const IpFamily family : {IpFamily::V4, IpFamily::V6}) {
        const IpFamily other = other_family(family);
        const auto lists = [&](IpFamily wanted) {
            return std::any_of(policy.node_port_within.begin(), policy.node_port_within.end(),
                               [wanted](const Prefix& prefix) { return prefix.family() == wanted; });
        };
        if (lists(family) && !lists(other)) {
            hints.push_back(std::string("--nodeport-addresses lists ") + to_string(family) +
                            " only, so NodePorts are served on every " + to_string(other) +
                            " address of a gateway");
        }
    }
    return hints;
}

}  // namespace penstock::sync
