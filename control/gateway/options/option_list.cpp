// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/option_list.hpp"

#include <string>
#include <vector>

#include "control/http/server.hpp"
#include "dataplane/base/limits.hpp"

namespace penstock::gateway {

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

namespace {

constexpr uint64_t kMemoryMbMin = 64;  // EAL, one small pool and one small table; less does not start
constexpr uint64_t kMemoryMbMax = 1'048'576;
constexpr uint64_t kConnectionsMin = 1'024;
constexpr uint64_t kConnectionsMax = 67'108'864;  // 2^26: 6.1 GB of table for one worker
constexpr uint64_t kAffinityEntriesMin = 1'024;
constexpr uint64_t kAffinityEntriesMax = 67'108'864;  // 2^26: 2.5 GB
// With fewer packets no memory latency is shared, and the vector paths of some PMDs return none for fewer
// than four packets.
constexpr uint64_t kBurstMin = 4;
// Lower bound: Linux accepts no smaller value (net.ipv4.route.min_pmtu). Upper bound: most links carry 1,500
// bytes, so a larger value has no use.
constexpr uint64_t kMinPathMtuMin = 552, kMinPathMtuMax = 1500;
// Number of mark values; far more than can be installed in acceptable time.
constexpr uint64_t kFlowRulesMax = 65'536;
constexpr uint64_t kMetricsBackendsMax = 100'000;  // 300,000 series, 40 MB in a scrape
constexpr uint64_t kFlowFileMbMax = 65'536;
constexpr uint64_t kFlowFilesMax = 1'000;  // each rotation renames all of them
constexpr uint64_t kFlowSampleMax = 1'000'000;

Result<IpAddr> snat_address(const std::string& entry) {
    const auto address = IpAddr::parse(entry);
    if (address && (address->is_unspecified() || address->is_loopback() || address->is_link_local() ||
                    address->is_multicast() || address->is_reserved_v4())) {
        return options::refuse(entry, "must be a global unicast address");
    }
    return address;
}

Result<nat::PortRange> snat_ports(const std::string& entry) {
    PENSTOCK_TRY(const auto ports, options::parse_interval(entry, {1, 65535}));
    return nat::PortRange{static_cast<L4Port>(ports.first), static_cast<L4Port>(ports.last)};
}

Result<std::optional<uint32_t>> share_copies(const std::string& entry) {
    if (entry == "0") {
        return 0;
    }
    PENSTOCK_TRY(const uint64_t copies,
                 options::parse_number(entry, {kConnectionsMin, kConnectionsMax, "copies, or 0"}));
    return static_cast<uint32_t>(copies);
}

Status flow_folder(const std::string& entry) {
    if (!entry.starts_with('/') || entry.ends_with('/')) {
        return options::refuse(entry, "must be the absolute path of a folder");
    }
    return {};
}

Result<std::optional<SocketAddress>> flow_collector(const std::string& entry) {
    if (entry == "off") {
        return std::nullopt;
    }
    const auto address = SocketAddress::parse(entry);
    if (!address || address->port == 0 || address->address.is_unspecified()) {
        return options::refuse(entry, "must be ADDRESS:PORT of a collector, or off");
    }
    return *address;
}

Result<std::string> bfd_socket(const std::string& entry) {
    constexpr std::string_view kFrr = "frr:";
    constexpr size_t kPathMax = 107;  // of a Unix socket
    if (entry == "off") {
        return std::string();
    }
    if (!entry.starts_with(kFrr) || entry.size() <= kFrr.size() + 1 || entry[kFrr.size()] != '/' ||
        entry.size() > kFrr.size() + kPathMax) {
        return options::refuse(entry, "must be frr: and the absolute path of bfdd's socket, or off");
    }
    return entry.substr(kFrr.size());
}

Result<std::string> table_folder(const std::string& entry) {
    if (entry != "auto" && (!entry.starts_with('/') || entry.ends_with('/'))) {
        return options::refuse(entry, "must be the absolute path of a folder, auto");
    }
    return entry;
}

Result<std::vector<std::string>> admin_names(const std::string& entry) {
    std::vector<std::string> names;
    for (const auto name : split(entry, ',')) {
        if (name.empty()) {
            return options::refuse(entry, "must not contain an empty name");
        }
        names.emplace_back(name);
    }
    return names;
}

}  // namespace

const char* const kHelpHead =
    "penstockd: the Penstock gateway. Receives traffic for Kubernetes Services and forwards it to their "
    "endpoints.\n"
    "usage: penstockd --port SPEC [options]\n";

// clang-format off
const char* const kHelpExamples = R"TEXT(Examples
  A test gateway on two veth ends, one worker, all other options at their defaults:
    penstockd --port 'device=net_af_packet0,iface=veth0;twin=pen0;address=192.0.2.1/24' \
              --port 'device=net_af_packet1,iface=veth1;twin=pen1;address=10.0.0.1/24'
  A cluster node with one NIC, four workers on CPUs 2 to 5, NodePorts included:
    penstockd --mode node --node-name "$(hostname)" --main-core 1 --worker-cores 2-5 --memory-mb 4096 \
              --port 'device=0000:03:00.0;twin=pen0;address=192.0.2.1/24,2001:db8::1/64;mtu=9000'
  Managed from another machine, by mutual TLS:
    penstockd --config /etc/penstock/penstockd.ini \
              --listen unix:/run/penstock/penstockd.sock --listen 192.0.2.1:9106 \
              --tls-cert gateway.pem --tls-key gateway.key --tls-client-ca ca.pem --tls-admin-names edge-sync
  The same options in an INI file; a repeatable option is repeated as a line:
    port = device=0000:03:00.0;twin=pen0;address=192.0.2.1/24
    worker-cores = 2-5
    label = zone=a

penstock-sync configures the gateway over gRPC; penstockctl shows its state.
)TEXT";
// clang-format on

namespace {

// "on" is the former name of addresses.
Result<VipPresenceMode> parse_presence(const std::string& text) {
    static const std::vector<options::Word<VipPresenceMode>> kWords{
        {to_string(VipPresenceMode::Off), VipPresenceMode::Off},
        {to_string(VipPresenceMode::Routes), VipPresenceMode::Routes},
        {to_string(VipPresenceMode::Addresses), VipPresenceMode::Addresses},
        {to_string(VipPresenceMode::Arp), VipPresenceMode::Arp}};
    return text == "on" ? VipPresenceMode::Addresses : options::parse_word(text, kWords);
}

void add_machine(OptionSet& set, Options& options) {
    set.group("Ports, workers, memory");
    set.add("port", list(options.ports, "SPEC", PortOption::parse),
            "'device=D;twin=NAME;address=A/L,...;mtu=N;mss=N;reverse-path=MODE'. Repeatable; at least one is "
            "required. device: PCI address or DPDK vdev string. twin: Linux interface to create for the "
            "port. address: addresses of the twin (default: none). mtu: IP bytes (default 1500). mss: "
            "maximum TCP MSS offered by SYNs that arrive or leave by the port (default: unchanged). "
            "reverse-path: overrides --reverse-path for packets that arrive by the port");
    set.add("workers", number(options.cores.workers, {1, limits::kWorkersMax, "workers"}),
            "Number of polling threads (default: 1, or one for each CPU in --worker-cores)");
    set.add("worker-cores", parsed(options.cores.worker_cores, "LIST", host::parse_cores),
            "CPUs of the workers, such as 2-5 or 1,1,2. A CPU listed twice runs two workers (default: the "
            "CPUs after the main core)");
    set.add("main-core", number(options.cores.main_core, {0, host::kCpuMax}),
            "CPU of all other threads (default: the first CPU allowed)");
    set.add("memory-mb", number(options.memory_mb, {kMemoryMbMin, kMemoryMbMax, "MB"}),
            "Memory for packets and tables, in MB. During a start, the tables of the former process take "
            "theirs in "
            "addition");
    set.add("no-huge", on_off_switch(options.no_huge),
            "Use ordinary memory. off: hugepages if available, otherwise ordinary memory");
    using drivers::HugepageSize;
    set.add(
        "hugepage-size",
        one_of(options.hugepage_size,
               {{"auto", HugepageSize::Any}, {"2M", HugepageSize::Small2M}, {"1G", HugepageSize::Large1G}}),
        "Size of the hugepages for packets and tables. 2M, 1G: only this size, and penstockd does not "
        "start without; 1G rounds --memory-mb up to whole pages. auto: all sizes that are free, "
        "otherwise ordinary memory");
    set.add("connections", number(options.connections, {kConnectionsMin, kConnectionsMax, "connections"}),
            "Capacity of each worker's connection table");
    set.add("affinity-entries",
            number(options.affinity_entries, {kAffinityEntriesMin, kAffinityEntriesMax, "entries"}),
            "Maximum number of session affinity entries (clients), over all Services");
    set.add("table-dir", text_or("off", options.table_dir, "DIR", table_folder),
            "Folder in memory (hugetlbfs or tmpfs) for the tables, so that connections survive a crash or "
            "restart of penstockd. auto: penstock below /dev/hugepages or /dev/shm, with a suffix unless "
            "--state-file has its default; off: connections end with the process");
    set.add("burst", number(options.burst, {kBurstMin, limits::kBurstMax, "packets"}),
            "Maximum receive burst, 4-64 packets. Smaller values lower latency; larger values hide memory "
            "latency and raise throughput");
    set.add(
        "idle",
        one_of(options.idle, {{"adaptive", worker::IdleMode::Adaptive}, {"poll", worker::IdleMode::Poll}}),
        "Behaviour of a worker that receives no packets. adaptive: sleeps in increasing steps, so that an "
        "idle gateway leaves its CPUs free; the first packet after an idle period waits at most one eighth "
        "of that period, and at most 0.25 ms. poll: polls continuously");
}

void add_identity(OptionSet& set, Options& options, RawOptions& raw) {
    set.group("Identity");
    set.add("gateway-name", text(options.identity.gateway_name, "NAME"),
            "Name of this gateway for control planes (default: the host name)");
    set.add("mode",
            one_of(options.identity.mode,
                   {{"node", model::GatewayMode::Node}, {"external", model::GatewayMode::External}}),
            "node: runs on a cluster node and serves NodePorts. external: runs outside the cluster, in front "
            "of it");
    set.add("node-name", text(options.identity.node_name, "NAME"),
            "Name of this host's Node object. Required with --mode node");
    set.add("label", list(raw.labels, "K=V", options::any_text), "Label of the gateway. Repeatable");
}

void add_management(OptionSet& set, Options& options, RawOptions& raw) {
    set.group("Management");
    set.add("listen", list(options.listen, "ADDRESS", ListenAddress::parse, {.is_distinct = true}),
            "gRPC listen address, unix:PATH or HOST:PORT. Repeatable. HOST:PORT requires --tls-cert, "
            "--tls-key and --tls-client-ca (default: unix:/run/penstock/penstockd.sock)");
    set.add("socket-group", text(options.socket_group, "GROUP"),
            "Group with access to the Unix sockets (mode 0660)");
    set.add("sandbox", on_off(options.sandbox),
            "Give up capabilities and system calls that the gateway does not use (operations.md, Sandbox)");
    set.add(
        "supervise", on_off(options.supervise),
        "Run the gateway in a child process, which `penstockctl upgrade` or SIGUSR2 replaces by a successor "
        "without losing connections (operations.md, Upgrade with overlap)");
    set.add("tls-cert", text(options.tls_cert, "FILE"), "Certificate chain of the gateway, PEM");
    set.add("tls-key", text(options.tls_key, "FILE"), "Private key of the gateway, PEM");
    set.add("tls-client-ca", text(options.tls_client_ca, "FILE"),
            "CA certificates that sign client certificates, PEM");
    set.add(
        "tls-admin-names", parsed(options.tls_admin_names, "A,B", admin_names),
        "Certificate names (CN or SAN) that may configure and debug. Other clients have read-only access");
    set.add("metrics-listen", text_or("off", options.metrics_listen, "ADDRESS", http::check_address),
            "ADDRESS:PORT of the Prometheus metrics at /metrics; off: none");
    set.add("metrics-backends", number(options.metrics_backends, {0, kMetricsBackendsMax, "backends"}),
            "Maximum number of backends with metrics of their own; 0: none. The first ones in the order of "
            "Services and endpoints have them, the others are counted (counters.md)");
    using worker::Latencies;
    set.add(
        "latency-histograms",
        one_of(options.latencies, {{"off", Latencies::Off},
                                   {"services", Latencies::Services},
                                   {"backends", Latencies::ServicesAndBackends}}),
        "Metrics of the connect time and the first-byte time of TCP connections, as histograms. services: "
        "by Service. backends: also by backend, for those of --metrics-backends (counters.md)");
    set.add("healthz", text_or("off", raw.healthz, "ADDRESS", http::check_address).without_default(),
            "ADDRESS:PORT of /healthz and /livez, for load balancers in front of the nodes; off: none "
            "(default: 0.0.0.0:10256 with --mode node, otherwise off)");
    set.add("sync-limit", duration(options.sync_limit, {1, 3600, "seconds"}, "SECONDS"),
            "Time limit for a change to reach the workers. The gateway reports unhealthy when a change takes "
            "twice as long");
    set.add("allow-empty", on_off_switch(options.allow_empty),
            "Report healthy while no configuration is in force. off: /healthz and gRPC health report "
            "unhealthy");
    set.add("state-file", text_or("none", options.state_file, "FILE", options::parse_file),
            "File with the last good configuration, which a restart begins with; none: start without a "
            "configuration");
}

void add_presence(OptionSet& set, Options& options) {
    set.group("VIP announcement");
    set.add(
        "vip-presence", parsed(options.vip_presence, "off|routes|addresses|arp", parse_presence, "off"),
        "Announcement of VIPs while they are served. routes: kernel routes through a twin (proto 80), which "
        "a routing daemon exports. arp: such routes, and workers answer ARP and ND for VIPs in the subnets "
        "of "
        "twins. addresses (formerly on): addresses of the twin in whose subnet they are, for which Linux "
        "answers ARP, ND and ping, at most 1,000. Of two gateways on one link, only one may answer for a "
        "VIP");
    set.add(
        "vip-standby", on_off_switch(options.vip_standby),
        "Announce VIPs with metric 200 instead of 100, for a gateway that takes over when another one fails "
        "(with --vip-presence routes or arp)");
    set.add(
        "shares", parsed(options.shares, "FILE", options::parse_file),
        "File with the plan of shares, the same on several gateways (with --vip-presence routes or arp). "
        "Each "
        "VIP belongs to a share: its primary announces it with metric 100, its heir with 200, and no other "
        "gateway does. With arp, only one of them answers for it on a link: the heir, while the primary "
        "cannot. A file with a higher version is applied when it changes");
    set.add(
        "share-age", duration(options.share_age, {0, 3600, "seconds"}, "SECONDS"),
        "Age at which a connection is copied to the other gateway of its share (with --shares). 0: at once, "
        "within about a second");
    set.add(
        "share-copies", parsed(options.share_copies, "N", share_copies),
        "Maximum number of copies held of other gateways' connections, 1024-67108864 (with --shares): IPv4 "
        "ones, or half as many others. 0: none (default: as many as the connections of all workers)");
    set.add(
        "share-fail-back", on_off_switch(options.share_fail_back),
        "After a start, serve the shares of which this gateway is the primary as soon as it has copies of "
        "the heir's connections. off: stay behind the heir until `penstockctl fail-back` (with --shares)");
    set.add("withdraw-empty", on_off_switch(options.withdraw_empty),
            "Withdraw a VIP also when none of its Services has a usable endpoint");
    set.add("drain-on-stop", duration(options.drain_on_stop, {0, 3600, "seconds"}, "SECONDS"),
            "Drain the gateway on SIGTERM, at most this long, and stop when no flow is open. A second signal "
            "stops at once; 0: stop at once");
    set.add("bfd", parsed(options.bfd, "frr:PATH", bfd_socket, "off"),
            "BFD sessions of FRR, run by the workers: routers see the gateway go as soon as its workers stop "
            "forwarding. PATH: the socket that bfdd has by its option --dplaneaddr unix:PATH; off: bfdd runs "
            "its sessions itself");
}

void add_rules(OptionSet& set, Options& options) {
    set.group("Blocked sources, rules in the NIC");
    set.add("blocklist", parsed(options.blocklist, "FILE", options::parse_file),
            "File with prefixes and addresses, one a line, whose packets are dropped on arrival. Changes of "
            "the file are applied");
    set.add("flow-rules", number(options.flow_rules, {0, kFlowRulesMax, "rules"}),
            "Maximum number of flow rules (rte_flow) of a port; 0: none");
    set.add("vip-isolate", on_off(options.vip_isolate),
            "Isolate ports that the kernel shares (mlx5). on: the gateway receives packets addressed to "
            "Services and to the twin; all others stay with the kernel's own interface");
    set.add("vip-mark", on_off(options.vip_mark),
            "Mark packets with the number of their frontend by flow rules, if the NIC supports it");
}

void add_translation(OptionSet& set, Options& options) {
    set.group("Source translation");
    set.add("snat-address", list(options.snat_addresses, "ADDRESS", snat_address, {.is_distinct = true}),
            "Source address of translated flows. Repeatable (default: the first global address of the twin "
            "that they leave by)");
    set.add("snat-ports", parsed(options.snat_ports, "FIRST-LAST", snat_ports, "1024-65535"),
            "Source ports of translated flows");
}

void add_packets(OptionSet& set, Options& options, RawOptions& raw) {
    set.group("Packets");
    set.add("vip-icmp-echo", one_of(options.packets.answers_vip_echo, {{"reply", true}, {"drop", false}}),
            "Handling of pings to a LoadBalancer or external IP");
    set.add("sctp-reject", one_of(options.packets.aborts_sctp, {{"icmp", false}, {"abort", true}}),
            "Rejection of an SCTP INIT, where TCP would be rejected by RST");
    set.add("midstream-pickup", on_off(options.packets.picks_up_midstream),
            "Accept TCP segments without SYN, FIN and RST that belong to no connection (e.g. after another "
            "gateway failed) for Services that schedule by sh or mh and keep the source address. off: "
            "reply with RST");
    set.add("ip-options", one_of(options.packets.passes_ip_options, {{"pass", true}, {"drop", false}}),
            "Handling of packets with IPv4 options. Source routes are always dropped");
    set.add("min-path-mtu",
            number(options.packets.min_path_mtu, {kMinPathMtuMin, kMinPathMtuMax, "bytes"}, "BYTES"),
            "Smallest path MTU that a client's ICMP error may report to an endpoint that sees a SNAT "
            "address, 552-1500. The endpoint applies it to all clients. A smaller report is raised to BYTES; "
            "set it to the MTU of the narrowest link that clients are behind");
    set.add("reverse-path", parsed(raw.reverse_path, "MODE", parse_reverse_path, "feasible"),
            "Reverse-path check of the source of each new flow and ping. feasible: sources that are "
            "endpoints, lie in Pod CIDRs or in another port's directly connected subnet must arrive by a "
            "port of their route; others need a route. strict: every source must arrive by a port of its "
            "route. loose: every source needs a route. off: no check");
}

void add_flow_records(OptionSet& set, Options& options) {
    FlowRecordOptions& records = options.flow_records;
    set.group("Flow records");
    set.add("flow-log", text_or("off", records.folder, "DIR", flow_folder),
            "Folder of the flow records, which have the begin and the end of each connection as lines of "
            "JSON, in DIR/SINK/flows.jsonl; off: none (flow-records.md)");
    set.add("flow-log-mb", number(records.file_mb, {1, kFlowFileMbMax, "MB"}),
            "Size of a file of flow records after which it is rotated, in MB");
    set.add("flow-log-files", number(records.files, {0, kFlowFilesMax, "files"}),
            "Number of rotated files that are kept of each file of flow records");
    set.add("flow-collector", parsed(records.collector, "ADDRESS:PORT", flow_collector, "off"),
            "Collector of the flow records as IPFIX over UDP; off: none");
    set.add("flow-domain", number(records.domain, {0, UINT32_MAX, {}}),
            "IPFIX observation domain. Gateways that share a collector need different values if it does not "
            "distinguish them by address");
    set.add("flow-services", one_of(records.all_services, {{"annotated", false}, {"all", true}}),
            "Services with flow records. annotated: those with penstock.io/access-log true. all: also those "
            "without the annotation");
    set.add("flow-sample", number(records.one_in, {1, kFlowSampleMax, "connections"}),
            "Record one in N connections, selected by a hash of the tuple");
}

void add_logging(OptionSet& set, Options& options) {
    set.group("Logging");
    set.add("log-format", parsed(options.log_format, "text|json", log::parse_format, "text"),
            "Log format, one record a line on stderr");
    set.add("log-level", list(options.log_levels, "LEVEL", options::checked(log::check_setting)),
            "trace, debug, info, warn, error, off; or LOGGER=LEVEL. Repeatable (default: info). Loggers: "
            "control, rpc, drivers, metrics");
}

}  // namespace

void add_options(OptionSet& set, Options& options, RawOptions& raw) {
    set.add_daemon_group();
    add_machine(set, options);
    add_identity(set, options, raw);
    add_management(set, options, raw);
    add_presence(set, options);
    add_rules(set, options);
    add_translation(set, options);
    add_packets(set, options, raw);
    add_flow_records(set, options);
    add_logging(set, options);
}

}  // namespace penstock::gateway
