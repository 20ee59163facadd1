#include "control/gateway/options/option_list.hpp"

#include <boost/program_options.hpp>
#include <ostream>
#include <string>

#include "dataplane/base/limits.hpp"

namespace penstock::gateway {
namespace {

namespace po = boost::program_options;

// Boost breaks lines at 80 otherwise, which leaves 27 for words beside the longest option.
constexpr unsigned kColumns = 118;

// Values stay text here: options.cpp reads them and words each refusal.
auto* text(const char* shown_as) {
    return po::value<std::string>()->value_name(shown_as);
}
auto* texts(const char* shown_as) {
    return po::value<std::vector<std::string>>()->value_name(shown_as);
}

// clang-format off
constexpr const char* kExamples = R"TEXT(Examples
  A test gateway on two veth ends, one worker, everything else at its default:
    penstockd --port 'device=net_af_packet0,iface=veth0;twin=pen0;address=192.0.2.1/24' \
              --port 'device=net_af_packet1,iface=veth1;twin=pen1;address=10.0.0.1/24'
  A cluster node with one NIC, four workers on CPUs 2 to 5, NodePorts included:
    penstockd --mode node --node-name "$(hostname)" --main-core 1 --worker-cores 2-5 --memory-mb 4096 \
              --port 'device=0000:03:00.0;twin=pen0;address=192.0.2.1/24,2001:db8::1/64;mtu=9000'
  Managed from another machine, by mutual TLS:
    penstockd --config /etc/penstock/penstockd.ini --listen 192.0.2.1:9106 \
              --tls-cert gateway.pem --tls-key gateway.key --tls-client-ca ca.pem --tls-admin-names edge-sync
  The same names in an INI file; what may be repeated is repeated as a line:
    port = device=0000:03:00.0;twin=pen0;address=192.0.2.1/24
    worker-cores = 2-5
    label = zone=a

Configuration comes from penstock-sync over gRPC; penstockctl shows what the gateway does with it.
)TEXT";
// clang-format on

}  // namespace

// clang-format off
po::options_description general_options() {
    po::options_description group("General", kColumns, kColumns / 2);
    group.add_options()
        ("help,h", "print this and exit")
        ("version", "print the version and exit")
        ("config", text("FILE"), "INI file with these options, without the dashes")
        ("check-config", "check the options and what they need of this machine, without touching devices or the network; exit code 0, or 2 "
            "with one line for each mistake");
    return group;
}

std::vector<po::options_description> settings() {
    std::vector<po::options_description> groups;

    groups.emplace_back("Ports, workers, memory", kColumns, kColumns / 2).add_options()
        ("port", texts("FIELDS"), "'device=D;twin=NAME;address=A/L,...;mtu=N;mss=N;reverse-path=MODE', repeatable, needed at least once. device: a PCI address or a "
            "DPDK vdev string. twin: the Linux interface to create beside it. address: what the twin carries (default: none). mtu: IP bytes "
            "(default 1500). mss: TCP segments that a SYN through the port may offer to take, at most (default: whatever it offers). "
            "reverse-path: overrides --reverse-path for packets that arrive by the port")
        ("workers", text("N"), "polling threads (default 1, or one for each of --worker-cores)")
        ("worker-cores", text("LIST"), "CPUs of the workers, as 2-5 or 1,1,2; one named twice gets two (default: the CPUs after the main "
            "core)")
        ("main-core", text("N"), "CPU of all other threads (default: the first one allowed)")
        ("memory-mb", text("N")->default_value("512"), "memory for packets and tables")
        ("no-huge", po::bool_switch(), "use ordinary memory; otherwise hugepages, and ordinary memory where there are none")
        ("connections", text("N")->default_value(std::to_string(limits::kConnectionsDefault)), "capacity of each worker's connection table")
        ("affinity-entries", text("N")->default_value(std::to_string(limits::kAffinityEntriesDefault)), "clients that session affinity "
            "remembers, over all Services")
        ("burst", text("N")->default_value(std::to_string(limits::kBurstMax)), "packets a worker takes from a queue at once: fewer wait less for "
            "one another, more share their waits for memory")
        ("idle", text("HOW")->default_value("adaptive"), "what a worker does when nothing comes. adaptive: sleeps in ever longer steps, so that an "
            "idle gateway leaves its CPUs alone; the packet that ends a silence waits for an eighth of it at most, and for 0.25 ms. poll: "
            "keeps polling");

    groups.emplace_back("Identity", kColumns, kColumns / 2).add_options()
        ("gateway-name", text("NAME"), "how control planes know this gateway (default: the host's name)")
        ("mode", text("MODE")->default_value("external"), "node: runs on a cluster node and serves NodePorts; external: stands in front of "
            "the cluster")
        ("node-name", text("NAME"), "mode node: the Node object that this host is")
        ("label", texts("K=V"), "a label of the gateway, repeatable");

    groups.emplace_back("Management", kColumns, kColumns / 2).add_options()
        ("listen", texts("ADDRESS"), "where gRPC listens, repeatable: unix:PATH or HOST:PORT; the latter needs the three --tls options "
            "(default unix:/run/penstock/penstockd.sock)")
        ("socket-group", text("GROUP"), "group that may use Unix sockets (mode 0660)")
        ("sandbox", text("on|off")->default_value("on"), "give up capabilities and system calls that the gateway does not use (operations.md, "
            "Sandbox)")
        ("tls-cert", text("FILE"), "the gateway's certificate chain, PEM")
        ("tls-key", text("FILE"), "its private key, PEM")
        ("tls-client-ca", text("FILE"), "who signs clients' certificates, PEM")
        ("tls-admin-names", text("A,B"), "certificate names (CN or SAN) that may configure and debug; others only read")
        ("metrics-listen", text("ADDRESS")->default_value("127.0.0.1:9105"), "ADDRESS:PORT of Prometheus metrics at /metrics; off: none")
        ("healthz", text("ADDRESS"), "ADDRESS:PORT of /healthz and /livez, for load balancers in front of the nodes; off: none (default: "
            "0.0.0.0:10256 with --mode node, else off)")
        ("sync-limit", text("SECONDS")->default_value("60"), "how long a change may take to reach the workers: the gateway calls itself "
            "unhealthy when one takes twice as long")
        ("allow-empty", po::bool_switch(), "Report healthy while no configuration is in force (default: /healthz and gRPC health report unhealthy)")
        ("state-file", text("FILE")->default_value("/var/lib/penstock/last-good.pb"), "the last good configuration, with which a restart "
            "begins; none: start empty");

    groups.emplace_back("Presence on the link", kColumns, kColumns / 2).add_options()
        ("vip-presence", text("WHETHER")->default_value("off"), "on: VIPs inside the subnets of a twin's addresses are put on the twin while "
            "they are served, and answer ARP, ND and ping. Of two gateways on one link only one may")
        ("withdraw-empty", po::bool_switch(), "a VIP whose Services have no usable endpoint at all is withdrawn too");

    groups.emplace_back("Blocked sources, rules in the NIC", kColumns, kColumns / 2).add_options()
        ("blocklist", text("FILE"), "prefixes and addresses, one a line, whose packets are dropped on arrival; followed while it changes")
        ("flow-rules", text("N")->default_value("256"), "rules (rte_flow) that a port may get at most; 0: none are asked for")
        ("vip-isolate", text("WHETHER")->default_value("off"), "on: of a port that the kernel shares (mlx5), the gateway takes what is "
            "addressed to Services and to the twin, and leaves the rest to the kernel's own interface")
        ("vip-mark", text("WHETHER")->default_value("off"), "on: rules mark packets with their frontend's number, where the NIC can");

    groups.emplace_back("Source translation", kColumns, kColumns / 2).add_options()
        ("snat-address", texts("ADDRESS"), "source address of translated flows, repeatable (default: the first global address of the twin "
            "they leave by)")
        ("snat-ports", text("FIRST-LAST")->default_value("1024-65535"), "source ports of translated flows");

    groups.emplace_back("Packets", kColumns, kColumns / 2).add_options()
        ("vip-icmp-echo", text("HOW")->default_value("reply"), "reply or drop: what a ping to a LoadBalancer or external IP gets")
        ("sctp-reject", text("HOW")->default_value("icmp"), "icmp or abort: what an SCTP INIT gets where TCP would get a RST")
        ("midstream-pickup", text("WHETHER")->default_value("false"), "true: TCP segments without SYN, FIN and RST that belong to no connection "
            "are brought to an endpoint, of Services that schedule by sh or mh and keep the source, as after another gateway's failure; false: "
            "they get a RST")
        ("ip-options", text("WHAT")->default_value("pass"), "pass or drop: packets with IPv4 options. Source routes are dropped in any case")
        ("min-path-mtu", text("BYTES")->default_value("1280"), "smallest path MTU that a client's ICMP error may report to an endpoint that "
            "sees a SNAT address, 552-1500. The endpoint applies it to all clients. A smaller report is raised to BYTES; set it to the MTU of the "
            "narrowest link that clients are behind")
        ("reverse-path", text("MODE")->default_value("feasible"), "Reverse-path check of the source of each new flow and ping. feasible: sources "
            "that are endpoints, lie in Pod CIDRs or in another port's directly connected subnet must arrive by a port of their route; others need "
            "a route. strict: every source must arrive by a port of its route. loose: every source needs a route. off: no check");

    groups.emplace_back("Logging", kColumns, kColumns / 2).add_options()
        ("log-format", text("FORMAT")->default_value("text"), "text or json, one record a line on stderr")
        ("log-level", texts("LEVEL"), "trace, debug, info, warn, error, off; or LOGGER=LEVEL; repeatable (default info). Loggers: control, "
            "rpc, drivers, metrics");
    return groups;
}
// clang-format on

void print_option_list(std::ostream& out) {
    out << "penstockd: the Penstock gateway. Takes traffic for Kubernetes Services off the wire and brings "
           "it to their endpoints.\n"
           "usage: penstockd --port FIELDS [options]\n\n";
    out << general_options() << "\n";
    for (const auto& group : settings()) {
        out << group << "\n";
    }
    out << kExamples;
}

}  // namespace penstock::gateway
