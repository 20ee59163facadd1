// SPDX-License-Identifier: Apache-2.0
#include "control/sync/policy_options.hpp"

#include <algorithm>
#include <utility>

#include "control/annotations/table.hpp"
#include "dataplane/base/ip.hpp"
#include "dataplane/lb/names.hpp"

namespace penstock::sync {

using options::list;
using options::number;
using options::on_off;
using options::on_off_switch;
using options::one_of;
using options::OptionSet;
using options::parsed;
using options::text;
using options::Value;
using semantics::Policy;

namespace {

// "203.0.113.1/24" may be meant as one address, but would allow 256. It is refused.
Result<Prefix> allowed_prefix(const std::string& entry) {
    const auto address = IpAddr::parse(entry.substr(0, entry.find('/')));
    auto prefix = Prefix::parse(entry);
    if (address && prefix && prefix->address() != *address) {
        return options::refuse(entry, "has bits set after the prefix length: write " + prefix->to_string() +
                                          " or " + Prefix::host(*address).to_string());
    }
    return prefix;
}

// Prefixes, or the word primary alone (NODEPORT-002).
Value node_port_addresses(Policy& policy) {
    Value value = list(policy.node_port_within, "CIDR,...|primary", Prefix::parse, {.separator = ','});
    value.store = [&policy, store = std::move(value.store)](const std::vector<std::string>& texts) -> Status {
        policy.node_port_primary_only = texts == std::vector<std::string>{"primary"};
        if (policy.node_port_primary_only) {
            return {};
        }
        for (const std::string& given : texts) {
            if (std::ranges::count(split(given, ','), "primary") > 0) {
                return options::refuse(given, "must be prefixes, or primary alone");
            }
        }
        return store(texts);
    };
    return value;
}

// Protocols that the list omits are disabled (LB-017). An empty list disables none.
Value protocols(Policy& policy) {
    return {.placeholder = "tcp,udp,sctp",
            .arity = Value::Arity::Many,
            .store = [&policy](const std::vector<std::string>& texts) -> Status {
                const std::vector<options::Word<Protocol>> names = {
                    {"tcp", Protocol::Tcp}, {"udp", Protocol::Udp}, {"sctp", Protocol::Sctp}};
                std::vector<Protocol> served;
                const auto parse = [&](const std::string& entry) {
                    return options::parse_word(entry, names);
                };
                PENSTOCK_TRY_STATUS(list(served, "", parse, {.separator = ','}).store(texts));
                for (const auto& [name, protocol] : names) {
                    if (!served.empty() && std::ranges::find(served, protocol) == served.end()) {
                        policy.disabled_protocols.push_back(protocol);
                    }
                }
                return {};
            }};
}

// Scheduler names as the annotation accepts them (SCHED-001): "rr, wrr, ...".
std::string known_schedulers() {
    std::string names;
    for (const annotations::Word& name : annotations::scheduler_names()) {
        names += (names.empty() ? "" : ", ") + std::string(name.spelled);
    }
    return names;
}

}  // namespace

void add_right_options(OptionSet& set, Policy& policy) {
    set.add("allowed-external-cidrs",
            list(policy.allowed_external_cidrs, "CIDR,...", allowed_prefix, {.separator = ','}),
            "Ranges in which external IPs of Services (spec.externalIPs) are served, for all namespaces. "
            "Default: none are served");
    set.add("external-ips-annotation", on_off_switch(policy.external_ips_annotation),
            "Treat the annotation penstock.io/external-ips like spec.externalIPs");
    set.add("unsupported-annotations",
            one_of(policy.refuse_unsupported_annotations, {{"serve", false}, {"refuse", true}}),
            "Services with an annotation that this version does not support. serve: serve them without that "
            "feature; refuse: do not serve their LoadBalancer IPs");
    set.add("protected-addresses",
            list(policy.protected_addresses, "IP,...", IpAddr::parse, {.separator = ','}),
            "Addresses never served as external IPs, even inside the allowed ranges (for example that of the "
            "API server)");
}

void add_service_options(OptionSet& set, Policy& policy) {
    using VipScope = Policy::VipScope;
    using BackendMode = Policy::BackendMode;
    set.add("lb-vip-scope", one_of(policy.lb_vip_scope, {{"owned", VipScope::Owned}, {"all", VipScope::All}}),
            "LoadBalancer addresses to serve. owned: those of Services of our class; all: those of all "
            "Services. Default: all for gateways in node mode, owned in external mode");
    set.add("lb-class", text(policy.lb_class, "NAME"),
            "Value of spec.loadBalancerClass that selects Penstock");
    set.add("default-lb", on_off_switch(policy.default_lb),
            "Also serve Services without a loadBalancerClass");
    set.add("scheduler", parsed(policy.default_scheduler, "NAME", lb::parse_scheduler, "rr"),
            "Scheduler of Services that select none: " + known_schedulers());
    set.add("nodeport-addresses", node_port_addresses(policy),
            "Serve NodePorts only on gateway addresses inside these ranges, or only on the addresses of the "
            "Node object (primary). Default: on all except loopback and link-local addresses");
    set.add("proxy-name", text(policy.own_proxy_name, "NAME"),
            "Serve Services whose label service.kubernetes.io/service-proxy-name has this value. Default: "
            "ignore Services with that label");
    set.add("source-ranges-compat",
            one_of(policy.source_ranges_compat_kube_proxy, {{"none", false}, {"kube-proxy", true}}),
            "IP family that a list of source ranges does not mention. none: all its sources are rejected; "
            "kube-proxy: all are allowed");
    set.add("serve-cluster-ips", on_off_switch(policy.serve_cluster_ips),
            "Also serve ClusterIPs, for networks that route them to the gateway. Default: packets to them "
            "are routed like any others");
    set.add("masquerade-all", on_off_switch(policy.masquerade_all),
            "Also translate the source address of Pods that connect to ClusterIPs. Default: only that of "
            "clients outside the cluster");
    set.add("symmetric-return", on_off(policy.symmetric_return),
            "Whether replies of endpoints return through a gateway in external mode. false: they do not, so "
            "the client's address cannot be kept there");
    set.add("topology-no-match", one_of(policy.topology_no_match_drops, {{"reject", false}, {"drop", true}}),
            "Action for new flows of a Service if no endpoint near the gateway matches its topologyKeys");
    set.add("cluster-cidr", list(policy.cluster_cidrs, "CIDR,...", Prefix::parse, {.separator = ','}),
            "Pod ranges in addition to the Pod CIDRs of the Nodes. Clients in them are inside the cluster, "
            "and no external IP is served in them");
    set.add(
        "backend-mode",
        one_of(policy.backend_mode,
               {{"pod", BackendMode::Pod}, {"node", BackendMode::Node}, {"auto", BackendMode::Auto}}),
        "Destination of gateways in external mode. pod: send to Pods; node: send to nodePorts of Nodes; "
        "auto: send to Pods if the gateway has non-default routes to all Pod CIDRs, otherwise to nodePorts");
    set.add("node-weight", one_of(policy.node_weight_ready_pods, {{"equal", false}, {"ready-pods", true}}),
            "Weight of node backends of Services without the annotation penstock.io/node-weight: equal, or "
            "the number of ready Pods of the Node");
    set.add("node-probe-port", number(policy.node_probe_port, {0, 65535}, "PORT"),
            "Port of /healthz on node backends, for Services with externalTrafficPolicy Cluster (Local has "
            "its own port). 0: no probes");
    set.add("serve-health-check-node-ports", on_off(policy.serve_health_checks),
            "Gateways in node mode answer on the healthCheckNodePort of Services with externalTrafficPolicy "
            "Local");
    set.add("ignore-exclude-label", on_off_switch(policy.ignore_exclude_label),
            "Keep VIPs on the link of a gateway whose Node has the label "
            "node.kubernetes.io/exclude-from-external-load-balancers. Default: withdraw them (node mode and "
            "--vip-presence only)");
    set.add("ignore-network-unavailable", on_off_switch(policy.ignore_network_unavailable),
            "Keep VIPs on the link of a gateway whose Node has the condition NetworkUnavailable=True. "
            "Default: withdraw them (node mode and --vip-presence only)");
    set.add("vip-closed-port", one_of(policy.rejects_closed_vip_ports, {{"drop", false}, {"reject", true}}),
            "Action for packets to a LoadBalancer or external IP on a port that no Service declares");
    set.add("protocols", protocols(policy), "Protocols to serve (default: all three)");
}

std::vector<std::string> hints_of(const Policy& policy) {
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
