// SPDX-License-Identifier: Apache-2.0
#include "control/gateway/options/option_list.hpp"

#include <boost/program_options.hpp>
#include <ostream>
#include <string>

#include "dataplane/base/limits.hpp"

namespace penstock::gateway {
namespace {

namespace po = boost::program_options;

// The Boost default of 80 columns leaves 27 for the description beside the longest option.
constexpr unsigned kColumns = 118;

// Values stay text here: options.cpp parses them and words each error.
auto* text(const char* shown_as) {
    return po::value<std::string>()->value_name(shown_as);
}
auto* texts(const char* shown_as) {
    return po::value<std::vector<std::string>>()->value_name(shown_as);
}

// clang-format off
constexpr const char* kExamples = R"TEXT(Examples
  A test gateway on two veth ends, one worker, all other options at their defaults:
    penstockd --port 'device=net_af_packet0,iface=veth0;twin=pen0;address=192.0.2.1/24' \
              --port 'device=net_af_packet1,iface=veth1;twin=pen1;address=10.0.0.1/24'
  A cluster node with one NIC, four workers on CPUs 2 to 5, NodePorts included:
    penstockd --mode node --node-name "$(hostname)" --main-core 1 --worker-cores 2-5 --memory-mb 4096 \
              --port 'device=0000:03:00.0;twin=pen0;address=192.0.2.1/24,2001:db8::1/64;mtu=9000'
  Managed from another machine, by mutual TLS:
    penstockd --config /etc/penstock/penstockd.ini --listen 192.0.2.1:9106 \
              --tls-cert gateway.pem --tls-key gateway.key --tls-client-ca ca.pem --tls-admin-names edge-sync
  The same options in an INI file; a repeatable option is repeated as a line:
    port = device=0000:03:00.0;twin=pen0;address=192.0.2.1/24
    worker-cores = 2-5
    label = zone=a

penstock-sync configures the gateway over gRPC; penstockctl shows its state.
)TEXT";
// clang-format on

}  // namespace

// clang-format off
po::options_description general_options() {
    po::options_description group("General", kColumns, kColumns / 2);
    group.add_options()
        ("help,h", "Print this help and exit")
        ("version", "Print the version and exit")
        ("config", text("FILE"), "INI file with these options, without the leading dashes")
        ("check-config", "Check the options and the machine resources that they need, without touching "
            "devices or the network. Exit code 0, or 2 with one line for each error");
    return group;
}

std::vector<po::options_description> settings() {
    std::vector<po::options_description> groups;

    groups.emplace_back("Ports, workers, memory", kColumns, kColumns / 2).add_options()
        ("port", texts("SPEC"), "'device=D;twin=NAME;address=A/L,...;mtu=N;mss=N;reverse-path=MODE'. "
            "Repeatable; at least one is required. device: PCI address or DPDK vdev string. twin: Linux "
            "interface to create for the port. address: addresses of the twin (default: none). mtu: IP bytes "
            "(default 1500). mss: maximum TCP MSS offered by SYNs that arrive or leave by the port (default: "
            "unchanged). reverse-path: overrides --reverse-path for packets that arrive by the port")
        ("workers", text("N"), "Number of polling threads (default: 1, or one for each CPU in "
            "--worker-cores)")
        ("worker-cores", text("LIST"), "CPUs of the workers, such as 2-5 or 1,1,2. A CPU listed twice runs "
            "two workers (default: the CPUs after the main core)")
        ("main-core", text("N"), "CPU of all other threads (default: the first CPU allowed)")
        ("memory-mb", text("N")->default_value("512"), "Memory for packets and tables, in MB")
        ("no-huge", po::bool_switch(), "Use ordinary memory (default: hugepages if available, otherwise "
            "ordinary memory)")
        ("connections", text("N")->default_value(std::to_string(limits::kConnectionsDefault)),
            "Capacity of each worker's connection table")
        ("affinity-entries", text("N")->default_value(std::to_string(limits::kAffinityEntriesDefault)),
            "Maximum number of session affinity entries (clients), over all Services")
        ("burst", text("N")->default_value(std::to_string(limits::kBurstMax)),
            "Maximum receive burst, 4-64 packets. Smaller values lower latency; larger values hide memory "
            "latency and raise throughput")
        ("idle", text("adaptive|poll")->default_value("adaptive"), "Behaviour of a worker that receives no "
            "packets. adaptive: sleeps in increasing steps, so that an idle gateway leaves its CPUs free; "
            "the first packet after an idle period waits at most one eighth of that period, and at most 0.25 "
            "ms. poll: polls continuously");

    groups.emplace_back("Identity", kColumns, kColumns / 2).add_options()
        ("gateway-name", text("NAME"), "Name of this gateway for control planes (default: the host name)")
        ("mode", text("node|external")->default_value("external"), "node: runs on a cluster node and serves "
            "NodePorts. external: runs outside the cluster, in front of it")
        ("node-name", text("NAME"), "Name of this host's Node object. Required with --mode node")
        ("label", texts("K=V"), "Label of the gateway. Repeatable");

    groups.emplace_back("Management", kColumns, kColumns / 2).add_options()
        ("listen", texts("ADDRESS"), "gRPC listen address, unix:PATH or HOST:PORT. Repeatable. HOST:PORT "
            "requires --tls-cert, --tls-key and --tls-client-ca (default: unix:/run/penstock/penstockd.sock)")
        ("socket-group", text("GROUP"), "Group with access to the Unix sockets (mode 0660)")
        ("sandbox", text("on|off")->default_value("on"), "Give up capabilities and system calls that the "
            "gateway does not use (operations.md, Sandbox)")
        ("tls-cert", text("FILE"), "Certificate chain of the gateway, PEM")
        ("tls-key", text("FILE"), "Private key of the gateway, PEM")
        ("tls-client-ca", text("FILE"), "CA certificates that sign client certificates, PEM")
        ("tls-admin-names", text("A,B"), "Certificate names (CN or SAN) that may configure and debug. Other "
            "clients have read-only access")
        ("metrics-listen", text("ADDRESS")->default_value("127.0.0.1:9105"),
            "ADDRESS:PORT of the Prometheus metrics at /metrics; off: none")
        ("healthz", text("ADDRESS"), "ADDRESS:PORT of /healthz and /livez, for load balancers in front of "
            "the nodes; off: none (default: 0.0.0.0:10256 with --mode node, otherwise off)")
        ("sync-limit", text("SECONDS")->default_value("60"), "Time limit for a change to reach the workers. "
            "The gateway reports unhealthy when a change takes twice as long")
        ("allow-empty", po::bool_switch(), "Report healthy while no configuration is in force (default: "
            "/healthz and gRPC health report unhealthy)")
        ("state-file", text("FILE")->default_value("/var/lib/penstock/last-good.pb"),
            "File with the last good configuration, which a restart begins with; none: start without a "
            "configuration");

    groups.emplace_back("Presence on the link", kColumns, kColumns / 2).add_options()
        ("vip-presence", text("on|off")->default_value("off"), "Assign VIPs inside the subnets of a twin's "
            "addresses to the twin while they are served, so that they answer ARP, ND and ping. Of two "
            "gateways on one link, only one may use it")
        ("withdraw-empty", po::bool_switch(), "Withdraw a VIP also when none of its Services has a usable "
            "endpoint");

    groups.emplace_back("Blocked sources, rules in the NIC", kColumns, kColumns / 2).add_options()
        ("blocklist", text("FILE"), "File with prefixes and addresses, one a line, whose packets are dropped "
            "on arrival. Changes of the file are applied")
        ("flow-rules", text("N")->default_value("256"), "Maximum number of flow rules (rte_flow) of a port; "
            "0: none")
        ("vip-isolate", text("on|off")->default_value("off"), "Isolate ports that the kernel shares (mlx5). "
            "on: the gateway receives packets addressed to Services and to the twin; all others stay with "
            "the kernel's own interface")
        ("vip-mark", text("on|off")->default_value("off"), "Mark packets with the number of their frontend "
            "by flow rules, if the NIC supports it");

    groups.emplace_back("Source translation", kColumns, kColumns / 2).add_options()
        ("snat-address", texts("ADDRESS"), "Source address of translated flows. Repeatable (default: the "
            "first global address of the twin that they leave by)")
        ("snat-ports", text("FIRST-LAST")->default_value("1024-65535"), "Source ports of translated flows");

    groups.emplace_back("Packets", kColumns, kColumns / 2).add_options()
        ("vip-icmp-echo", text("reply|drop")->default_value("reply"), "Handling of pings to a LoadBalancer "
            "or external IP")
        ("sctp-reject", text("icmp|abort")->default_value("icmp"), "Rejection of an SCTP INIT, where TCP "
            "would be rejected by RST")
        ("midstream-pickup", text("BOOL")->default_value("false"), "Accept TCP segments without SYN, FIN and "
            "RST that belong to no connection (e.g. after another gateway failed) for Services that schedule "
            "by sh or mh and keep the source address; if false, reply with RST")
        ("ip-options", text("pass|drop")->default_value("pass"), "Handling of packets with IPv4 options. "
            "Source routes are always dropped")
        ("min-path-mtu", text("BYTES")->default_value("1280"), "Smallest path MTU that a client's ICMP error "
            "may report to an endpoint that sees a SNAT address, 552-1500. The endpoint applies it to all "
            "clients. A smaller report is raised to BYTES; set it to the MTU of the narrowest link that "
            "clients are behind")
        ("reverse-path", text("MODE")->default_value("feasible"), "Reverse-path check of the source of each "
            "new flow and ping. feasible: sources that are endpoints, lie in Pod CIDRs or in another port's "
            "directly connected subnet must arrive by a port of their route; others need a route. strict: "
            "every source must arrive by a port of its route. loose: every source needs a route. off: no "
            "check");

    groups.emplace_back("Logging", kColumns, kColumns / 2).add_options()
        ("log-format", text("text|json")->default_value("text"), "Log format, one record a line on stderr")
        ("log-level", texts("LEVEL"), "trace, debug, info, warn, error, off; or LOGGER=LEVEL. Repeatable "
            "(default: info). Loggers: control, rpc, drivers, metrics");
    return groups;
}
// clang-format on

void print_option_list(std::ostream& out) {
    out << "penstockd: the Penstock gateway. Receives traffic for Kubernetes Services and forwards it to "
           "their endpoints.\n"
           "usage: penstockd --port SPEC [options]\n\n";
    out << general_options() << "\n";
    for (const auto& group : settings()) {
        out << group << "\n";
    }
    out << kExamples;
}

}  // namespace penstock::gateway
