// SPDX-License-Identifier: Apache-2.0
#include "control/sync/option_list.hpp"

#include <boost/program_options.hpp>
#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "control/annotations/table.hpp"
#include "control/semantics/policy.hpp"
#include "control/sync/defaults.hpp"
#include "control/sync/monitor_options.hpp"

namespace penstock::sync {
namespace po = boost::program_options;
namespace {

constexpr const char* kIntroduction =
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

constexpr unsigned kHelpWidth = 120;

// Scheduler names as the annotation accepts them (SCHED-001): "rr, wrr, ...".
std::string known_schedulers() {
    std::string names;
    for (const annotations::Word& name : annotations::scheduler_names()) {
        names += (names.empty() ? "" : ", ") + std::string(name.spelled);
    }
    return names;
}

}  // namespace

po::options_description command_line_only() {
    po::options_description described("Options of the command line", kHelpWidth);
    auto add = described.add_options();
    add("help,h", "Print this text");
    add("version", "Print the version");
    add("config", po::value<std::string>()->value_name("FILE"), "INI file with any of the options below");
    add("check-config",
        "Check the options and the files they name without using the network. Exit code 0, or 2 with one "
        "line per mistake");
    return described;
}

po::options_description everywhere() {
    po::options_description described("Options", kHelpWidth);
    auto add = described.add_options();
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    const auto list = [](const char* name) {
        return po::value<std::vector<std::string>>()->value_name(name);
    };
    add("manifests", text("PATH"),
        "Folder with *.yaml, *.yml and *.json files (subfolders are not read), or one such file. It may be "
        "created later");
    add("allow-empty-folder", po::bool_switch(),
        "Withdraw everything when the folder of --manifests holds no manifest. Default: keep the last "
        "objects, warn and fail /readyz, because an unmounted volume looks the same");
    add("kubeconfig", list("FILE"),
        "Kubeconfig of the cluster whose API server is watched. Several files, repeated or separated by "
        "colons, are merged as kubectl does. $KUBECONFIG is not read");
    add("context", text("NAME"), "Context of the kubeconfig (default: its current-context)");
    add("in-cluster", po::bool_switch(),
        "Watch the API server of the Pod this process runs in, with the Pod's ServiceAccount");
    add("namespace", text("NAME"),
        "Watch only this namespace, if access is limited to it; Nodes are then not read. Default: all "
        "namespaces");
    add("endpoints-api", text("auto|endpoints")->default_value("auto"),
        "API that endpoints are read from. auto: the newest EndpointSlice version of the server, otherwise "
        "Endpoints; endpoints: always Endpoints");
    add("insecure-skip-tls-verify-allowed", po::bool_switch(),
        "Honour insecure-skip-tls-verify of the kubeconfig. A man in the middle can then control the "
        "gateways");
    add("events", text("on|off")->default_value("on"),
        "Write Kubernetes Events about problems and results to the objects concerned");
    add("gateway", list("TARGET"),
        "penstockd to configure: unix:PATH, or HOST:PORT with the certificates below; repeatable. Default: "
        "unix:/run/penstock/penstockd.sock");
    add("sync-priority", po::value<int64_t>()->value_name("N")->default_value(0),
        "Priority among the penstock-syncs of one gateway, 0-1000 (default 0). The highest priority leads; "
        "among equals, the one connected first. The others wait and take over when the leader's stream ends");
    add("tls-cert", text("FILE"),
        "Client certificate, PEM. Its name must be listed in the gateway's --tls-admin-names");
    add("tls-key", text("FILE"), "Private key of the client certificate, PEM");
    add("tls-ca", text("FILE"), "CA that signed the gateway's certificate, PEM");
    add("allowed-external-cidrs", list("CIDR,..."),
        "Ranges in which external IPs of Services (spec.externalIPs) are served, for all namespaces. "
        "Default: none are served");
    add("external-ip-policy", text("FILE"),
        "YAML file that grants external IPs to the Services of namespaces; reloaded when it changes. "
        "External IPs that neither it nor --allowed-external-cidrs allows are refused");
    add("external-ips-annotation", po::bool_switch(),
        "Treat the annotation penstock.io/external-ips like spec.externalIPs");
    add("unsupported-annotations", text("serve|refuse")->default_value("serve"),
        "Services with an annotation that this version does not support. serve: serve them without that "
        "feature; refuse: do not serve their LoadBalancer IPs");
    add("protected-addresses", list("IP,..."),
        "Addresses never served as external IPs, even inside the allowed ranges (for example that of the API "
        "server)");
    add("lb-vip-scope", text("owned|all"),
        "LoadBalancer addresses to serve. owned: those of Services of our class; all: those of all Services. "
        "Default: all for gateways in node mode, owned in external mode");
    add("lb-class", text("NAME")->default_value(semantics::Policy{}.lb_class),
        "Value of spec.loadBalancerClass that selects Penstock");
    add("default-lb", po::bool_switch(), "Also serve Services without a loadBalancerClass");
    add("scheduler", text("NAME")->default_value("rr"),
        ("Scheduler of Services that select none: " + known_schedulers()).c_str());
    add("nodeport-addresses", list("CIDR,...|primary"),
        "Serve NodePorts only on gateway addresses inside these ranges, or only on the addresses of the Node "
        "object (primary). Default: on all except loopback and link-local addresses");
    add("proxy-name", text("NAME")->default_value(""),
        "Serve Services whose label service.kubernetes.io/service-proxy-name has this value. Default: ignore "
        "Services with that label");
    add("source-ranges-compat", text("none|kube-proxy")->default_value("none"),
        "IP family that a list of source ranges does not mention. none: all its sources are rejected; "
        "kube-proxy: all are allowed");
    add("serve-cluster-ips", po::bool_switch(),
        "Also serve ClusterIPs, for networks that route them to the gateway. Default: packets to them are "
        "routed like any others");
    add("masquerade-all", po::bool_switch(),
        "Also translate the source address of Pods that connect to ClusterIPs. Default: only that of clients "
        "outside the cluster");
    add("symmetric-return", text("true|false")->default_value("true"),
        "Whether replies of endpoints return through a gateway in external mode. false: they do not, so the "
        "client's address cannot be kept there");
    add("topology-no-match", text("reject|drop")->default_value("reject"),
        "Action for new flows of a Service if no endpoint near the gateway matches its topologyKeys");
    add("cluster-cidr", list("CIDR,..."),
        "Pod ranges in addition to the Pod CIDRs of the Nodes. Clients in them are inside the cluster, and "
        "no external IP is served in them");
    add("backend-mode", text("pod|node|auto")->default_value("pod"),
        "Destination of gateways in external mode. pod: send to Pods; node: send to nodePorts of Nodes; "
        "auto: send to Pods if the gateway has non-default routes to all Pod CIDRs, otherwise to nodePorts");
    add("node-weight", text("equal|ready-pods")->default_value("equal"),
        "Weight of node backends of Services without the annotation penstock.io/node-weight: equal, or the "
        "number of ready Pods of the Node");
    add("node-probe-port",
        po::value<int64_t>()->value_name("PORT")->default_value(semantics::Policy::kNodeProbePortDefault),
        "Port of /healthz on node backends, for Services with externalTrafficPolicy Cluster (Local has its "
        "own port). 0: no probes");
    add("serve-health-check-node-ports", po::value<bool>()->value_name("true|false")->default_value(true),
        "Gateways in node mode answer on the healthCheckNodePort of Services with externalTrafficPolicy "
        "Local");
    add("ignore-exclude-label", po::bool_switch(),
        "Keep VIPs on the link of a gateway whose Node has the label "
        "node.kubernetes.io/exclude-from-external-load-balancers. Default: withdraw them (node mode and "
        "--vip-presence only)");
    add("ignore-network-unavailable", po::bool_switch(),
        "Keep VIPs on the link of a gateway whose Node has the condition NetworkUnavailable=True. Default: "
        "withdraw them (node mode and --vip-presence only)");
    add("vip-closed-port", text("drop|reject")->default_value("drop"),
        "Action for packets to a LoadBalancer or external IP on a port that no Service declares");
    add("protocols", list("tcp,udp,sctp"), "Protocols to serve (default: all three)");
    add("coalesce-ms", po::value<int64_t>()->value_name("MS")->default_value(kCoalesceDefault.count()),
        "Window in which changes are merged into one update, 0-1000 ms. The first change after an idle "
        "period is sent at once. 0: every change is sent separately");
    add("audit-period-s",
        po::value<int64_t>()->value_name("SECONDS")->default_value(
            std::chrono::seconds(kAuditPeriodDefault).count()),
        "Period of the audit: each gateway is compared with its desired state and repaired");
    add("http", text("ADDRESS:PORT")->default_value("off"),
        "Address of /healthz, /readyz and /metrics; off: not served");
    add("listen", text("unix:PATH")->default_value(std::string("unix:") + kDefaultSocket),
        "Status socket used by penstockctl get sync, mode 0660; off: none");
    add("socket-group", text("GROUP")->default_value(""), "Group with access to the status socket");
    add("log-level", list("LEVEL|LOGGER=LEVEL"),
        "Log level: trace, debug, info, warn, error or off, for all loggers or for one (sync, kube). "
        "Default: info");
    add("log-format", text("text|json")->default_value("text"),
        "Log format: text for people, json for log collectors. Written to standard error");
    return described;
}

std::string help_text() {
    std::ostringstream text;
    text << kIntroduction << "\n" << command_line_only() << "\n" << everywhere();
    return text.str();
}

}  // namespace penstock::sync
