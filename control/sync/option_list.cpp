// SPDX-License-Identifier: Apache-2.0
#include "control/sync/option_list.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "control/base/dns_name.hpp"
#include "control/client/target.hpp"
#include "control/http/server.hpp"
#include "control/sync/policy_options.hpp"

namespace penstock::sync {

using options::any_text;
using options::duration;
using options::list;
using options::number;
using options::on_off;
using options::on_off_switch;
using options::one_of;
using options::OptionSet;
using options::parsed;
using options::text;
using options::text_or;

const char* const kHelpHead =
    "penstock-sync: the control plane that configures Penstock gateways from Kubernetes objects.\n"
    "\n"
    "Watches Services, EndpointSlices and Nodes at a cluster's API server, or reads them from a folder of "
    "Kubernetes\n"
    "manifests. Computes the state of each gateway and streams it to one or more penstockd over gRPC. When "
    "penstock-sync\n"
    "stops, the gateways keep forwarding with the last state.\n"
    "\n"
    "  penstock-sync --kubeconfig /etc/penstock/kubeconfig --allowed-external-cidrs "
    "80.11.12.0/24,203.0.113.0/24\n"
    "  penstock-sync --manifests /etc/penstock/manifests --gateway unix:/run/penstock/penstockd.sock\n"
    "\n"
    "Every option can also be set in an INI file (--config): name = value, one per line, repeated for "
    "lists.\n"
    "The command line takes precedence.\n";

namespace {

// The path of a status socket; "" for off.
Result<std::string> socket_path(const std::string& given) {
    if (given == "off") {
        return std::string();
    }
    if (!client::parse_target(given) || !given.starts_with("unix:/")) {
        return options::refuse(given, "must be unix:PATH with an absolute path of at most 107 bytes, or off");
    }
    return given.substr(std::string_view("unix:").size());
}

void add_source(OptionSet& set, Options& options) {
    set.group("Source");
    set.add("manifests", text(options.manifests, "PATH"),
            "Folder with *.yaml, *.yml and *.json files (subfolders are not read), or one such file. It may "
            "be created later");
    set.add("allow-empty-folder", on_off_switch(options.allow_empty_folder),
            "Withdraw everything when the folder of --manifests holds no manifest. Default: keep the last "
            "objects, warn and fail /readyz, because an unmounted volume looks the same");
    set.add("kubeconfig", list(options.kubeconfig, "FILE", any_text, {.separator = ':'}),
            "Kubeconfig of the cluster whose API server is watched. Several files, repeated or separated by "
            "colons, are merged as kubectl does. $KUBECONFIG is not read");
    set.add("context", text(options.context, "NAME"),
            "Context of the kubeconfig (default: its current-context)");
    set.add("in-cluster", on_off_switch(options.in_cluster),
            "Watch the API server of the Pod this process runs in, with the Pod's ServiceAccount");
    set.add("namespace", text(options.namespace_name, "NAME"),
            "Watch only this namespace, if access is limited to it; Nodes are then not read. Default: all "
            "namespaces");
    set.add("endpoints-api", one_of(options.endpoints_only, {{"auto", false}, {"endpoints", true}}),
            "API that endpoints are read from. auto: the newest EndpointSlice version of the server, "
            "otherwise Endpoints; endpoints: always Endpoints");
    set.add("insecure-skip-tls-verify-allowed", on_off_switch(options.allow_insecure),
            "Honour insecure-skip-tls-verify of the kubeconfig. A man in the middle can then control the "
            "gateways");
    set.add("events", on_off(options.events),
            "Write Kubernetes Events about problems and results to the objects concerned");
}

// "penstock-system/penstock-sync"
Result<kube::ObjectName> lease_name(const std::string& given) {
    const size_t slash = given.find('/');
    kube::ObjectName name{given.substr(0, std::min(slash, given.size())),
                          slash == std::string::npos ? "" : given.substr(slash + 1)};
    if (!is_dns_label(name.namespace_name) || !is_dns_name(name.name)) {
        return options::refuse(given, "must be NAMESPACE/NAME, as of a Lease");
    }
    return name;
}

void add_addresses(OptionSet& set, Options& options) {
    set.group("Addresses of LoadBalancer Services");
    set.add(
        "allocate-addresses", on_off_switch(options.allocate_addresses),
        "Give addresses of pools to the LoadBalancer Services that Penstock owns (--lb-class, "
        "--default-lb), and write them into their status. One process writes at a time, elected by --lease");
    set.add("address-pools", text(options.address_pools, "PATH"),
            "File or folder with AddressPool manifests, followed; implies --allocate-addresses on. Default: "
            "the AddressPool objects of the cluster. Required to allocate addresses with --manifests");
    set.add(
        "address-pools-exclude", list(options.pools_exclude, "CIDR", Prefix::parse, {.separator = ','}),
        "Prefixes that no pool may overlap, for example those of Nodes, Pods and ClusterIPs. The prefixes "
        "of --cluster-cidr and --protected-addresses are always excluded");
    set.add("allocation-file", text(options.allocation_file, "PATH"),
            "With --manifests, the file that keeps the addresses across restarts");
    set.add("lease", parsed(options.lease, "NAMESPACE/NAME", lease_name, "penstock-system/penstock-sync"),
            "Lease of the election of the process that writes addresses and status");
    set.add("status-qps", number(options.status_per_s, {1, kube::kStatusRateMax}),
            "Maximum rate of status writes to the API server, 1-200 a second, with a burst of two "
            "seconds. Higher rates give addresses to many new Services sooner, and load the API server more");
}

void add_gateways(OptionSet& set, Options& options) {
    set.group("Gateways");
    set.add("gateway",
            list(options.gateways, "TARGET", client::parse_target, {.separator = ',', .is_distinct = true}),
            "penstockd to configure: unix:PATH, or HOST:PORT with the certificates below; repeatable. "
            "Default: unix:/run/penstock/penstockd.sock");
    set.add(
        "sync-priority", number(options.priority, {0, kSyncPriorityMax}),
        "Priority among the penstock-syncs of one gateway, 0-1000. The highest priority leads; "
        "among equals, the one connected first. The others wait and take over when the leader's stream ends");
    set.add("tls-cert", text(options.tls.certificate, "FILE"),
            "Client certificate, PEM. Its name must be listed in the gateway's --tls-admin-names");
    set.add("tls-key", text(options.tls.key, "FILE"), "Private key of the client certificate, PEM");
    set.add("tls-ca", text(options.tls.authority, "FILE"), "CA that signed the gateway's certificate, PEM");
}

void add_operation(OptionSet& set, Options& options) {
    set.group("Operation");
    set.add("coalesce-ms", duration(options.coalesce, {0, kCoalesceMax.count(), "ms"}, "MS"),
            "Window in which changes are merged into one update, 0-1000 ms. The first change after an idle "
            "period is sent after at most 3 ms. 0: every change is sent separately");
    set.add("audit-period-s",
            duration(options.audit_period, {1, std::chrono::seconds(kAuditPeriodMax).count(), "seconds"},
                     "SECONDS"),
            "Period of the audit: each gateway is compared with its desired state and repaired");
    set.add("http", text_or("off", options.monitor.http, "ADDRESS:PORT", http::check_address),
            "Address of /healthz, /readyz and /metrics; off: not served");
    set.add("listen",
            parsed(options.monitor.socket, "unix:PATH", socket_path, std::string("unix:") + kDefaultSocket),
            "Status socket used by penstockctl get sync, mode 0660; off: none");
    set.add("socket-group", text(options.monitor.socket_group, "GROUP"),
            "Group with access to the status socket");
    set.add("log-level",
            list(options.log_levels, "LEVEL|LOGGER=LEVEL", options::checked(log::check_setting),
                 {.separator = ','}),
            "Log level: trace, debug, info, warn, error or off, for all loggers or for one (sync, kube). "
            "Default: info");
    set.add("log-format", parsed(options.log_format, "text|json", log::parse_format, "text"),
            "Log format: text for people, json for log collectors. Written to standard error");
}

}  // namespace

void add_options(OptionSet& set, Options& options) {
    set.add_daemon_group();
    add_source(set, options);
    add_addresses(set, options);
    add_gateways(set, options);
    set.group("External IPs and annotations");
    set.add("external-ip-policy", text(options.external_ip_policy, "FILE"),
            "YAML file that grants external IPs to the Services of namespaces; reloaded when it changes. "
            "External IPs that neither it nor --allowed-external-cidrs allows are refused");
    add_right_options(set, options.policy);
    set.group("Services");
    add_service_options(set, options.policy);
    add_operation(set, options);
}

}  // namespace penstock::sync
