#include "control/sync/options.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "control/annotations/table.hpp"
#include "control/base/ini_lines.hpp"
#include "control/http/server.hpp"
#include "dataplane/lb/names.hpp"

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

// "a, b" and {"a", "b"} are the same list. Whitespace around an entry is ignored.
std::vector<std::string> entries_of(const po::variables_map& values, const char* name) {
    std::vector<std::string> entries;
    if (!values.contains(name)) {
        return entries;
    }
    for (const std::string& value : values[name].as<std::vector<std::string>>()) {
        std::istringstream stream(value);
        for (std::string entry; std::getline(stream, entry, ',');) {
            const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0; };
            entry.erase(entry.begin(), std::find_if_not(entry.begin(), entry.end(), is_blank));
            entry.erase(std::find_if_not(entry.rbegin(), entry.rend(), is_blank).base(), entry.end());
            if (!entry.empty()) {
                entries.push_back(entry);
            }
        }
    }
    return entries;
}

std::string option_text(const po::variables_map& values, const char* name) {
    return values.contains(name) ? values[name].as<std::string>() : std::string();
}

// Parses each entry with `parse`. Errors are prefixed with the option's name.
template <typename T, typename Parse>
Result<std::vector<T>> parsed_entries(const std::vector<std::string>& entries, const std::string& option,
                                      const Parse& parse) {
    std::vector<T> result;
    for (const std::string& entry : entries) {
        auto value = parse(entry);
        if (!value) {
            return in_context(option, std::move(value).error());
        }
        result.push_back(std::move(*value));
    }
    return result;
}

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
