// SPDX-License-Identifier: Apache-2.0
// Checks of Linux interfaces and of the kernel's network settings.
#include <algorithm>

#include "control/host/routing_daemon.hpp"
#include "control/host/subject.hpp"
#include "dataplane/base/text.hpp"

namespace penstock::host {
namespace {

constexpr const char* kNetFolder = "/sys/class/net";

std::string net_file(const std::string& interface, const char* file) {
    return std::string(kNetFolder) + "/" + interface + "/" + file;
}

void check_wire(const Root& root, const std::string& interface, Check& check) {
    constexpr uint64_t kUp = 1;  // IFF_UP
    const std::string flags_text = root.text(net_file(interface, "flags")).value_or("");
    const auto flags = flags_text.starts_with("0x")
                           ? whole_number<uint64_t>(std::string_view(flags_text).substr(2), 16)
                           : std::nullopt;
    if (!root.exists(net_file(interface, ""))) {
        check.fault(interface, "there is no such interface").mend("ip link");
    } else if (!flags) {
        check.unknown(interface, net_file(interface, "flags"));
    } else if ((*flags & kUp) == 0) {
        check.warning(interface, "down; penstockd sets it up").mend("ip link set " + interface + " up");
    } else if (root.number(net_file(interface, "carrier")).value_or(1) == 0) {
        check.warning(interface, "up, but without a link: the cable or the other end is missing")
            .mend("ip link show " + interface);
    } else {
        check.ok(interface, "up");
    }
}

// The other end of a veth; "": in another network namespace.
std::string peer_of(const Root& root, const std::string& interface) {
    const auto peer = root.number(net_file(interface, "iflink"));
    for (const std::string& name : peer ? root.names(kNetFolder) : std::vector<std::string>()) {
        if (name != interface && root.number(net_file(name, "ifindex")) == peer &&
            root.number(net_file(name, "iflink")) == root.number(net_file(interface, "ifindex"))) {
            return name;
        }
    }
    return "";
}

std::string off_command(const std::string& interface) {
    return "ethtool -K " + interface + " tx off rx off tso off gso off gro off";
}

// Offloads without those that penstockd switches off itself at the port's own end.
void check_veth(const Machine& machine, const std::string& interface, bool is_own_end, Check& check) {
    const auto offloads = machine.offloads(interface);
    if (!offloads) {
        check.unknown(interface, "the offloads (ethtool -k " + interface + ")");
        return;
    }
    std::string on;
    for (const std::string& offload : *offloads) {
        if (!is_own_end || (offload != "gro" && offload != "lro")) {
            on += (on.empty() ? "" : ", ") + offload;
        }
    }
    if (on.empty()) {
        check.ok(interface, "off");
    } else if (is_own_end) {
        check.warning(interface, "on: " + on + "; frames may arrive that no real link would carry")
            .mend(off_command(interface));
    } else {
        check
            .fault(interface,
                   "on: " + on + "; frames reach the gateway with missing checksums, and are dropped")
            .mend(off_command(interface));
    }
}

std::string vtysh_command(const std::string& as) {
    return "vtysh -c 'configure terminal' -c 'router bgp " + (as.empty() ? "AS" : as) +
           "' -c 'address-family ipv4 unicast' -c 'redistribute kernel' -c end -c 'write memory'";
}

void check_frr(const Root& root, Check& check) {
    for (const char* file : {"/etc/frr/frr.conf", "/etc/frr/bgpd.conf"}) {
        const auto text = root.text(file);
        if (!text) {
            continue;
        }
        const FrrConfig config = parse_frr(*text);
        if (config.redistributes) {
            check.ok("FRR", std::string(file) + " redistributes kernel routes");
            return;
        }
        if (!config.bgp_as.empty() || file == std::string_view("/etc/frr/frr.conf")) {
            check
                .fault("FRR",
                       std::string(file) + " does not redistribute kernel routes, so VIPs are not announced")
                .mend(vtysh_command(config.bgp_as));
            return;
        }
    }
    check.unknown("FRR", "/etc/frr/frr.conf");
}

void check_bird(const std::string& file, const std::string& text, Check& check) {
    const BirdConfig config = parse_bird(text);
    if (config.imports) {
        check.ok("BIRD", file + " learns kernel routes");
    } else if (config.includes) {
        check.add(Level::Unknown, "BIRD", file + " includes other files, which are not read");
    } else {
        check.fault("BIRD", file +
                                (!config.has_kernel ? " has no protocol kernel"
                                 : !config.learns   ? " does not learn kernel routes"
                                                    : " does not import routes of protocol 80") +
                                ", so VIPs are not announced");
        check.mend(
            "echo 'protocol kernel { learn; ipv4 { import where krt_source = 80; export none; }; }' >>" +
            file + " && birdc configure");
    }
}

}  // namespace

void check_interfaces(const Subject& subject, Findings& findings) {
    Check check(findings, "interface");
    if (subject.needs.ports.empty()) {
        check.ok("", "no port is configured");
        return;
    }
    if (!subject.root().exists(kNetFolder)) {
        check.unknown("", kNetFolder);
        return;
    }
    for (const std::string& interface : subject.needs.interfaces()) {
        check_wire(subject.root(), interface, check);
    }
    for (const Needs::Port& port : subject.needs.ports) {
        const bool exists = !port.twin.empty() && subject.root().exists(net_file(port.twin, ""));
        if (exists && !subject.penstockd) {
            check.fault(port.twin, "an interface with the name of the twin exists already")
                .mend("ip link delete " + port.twin);
        } else {
            check.ok(port.twin, exists ? "the twin of a running penstockd" : "free for the twin");
        }
    }
}

void check_offloads(const Subject& subject, Findings& findings) {
    Check check(findings, "offloads");
    bool has_veth = false;
    for (const std::string& interface : subject.needs.interfaces()) {
        if (subject.machine.interface_driver(interface) != "veth") {
            continue;
        }
        has_veth = true;
        check_veth(subject.machine, interface, true, check);
        if (const std::string peer = peer_of(subject.root(), interface); !peer.empty()) {
            check_veth(subject.machine, peer, false, check);
        } else {
            check.add(Level::Unknown, interface,
                      "its other end is in another network namespace, where offloads must be off as well");
            check.mend("ip netns exec NAMESPACE " + off_command("DEV"));
        }
    }
    if (!has_veth) {
        check.ok("", "no port uses a veth");
    }
}

void check_reverse_path(const Subject& subject, Findings& findings) {
    Check check(findings, "rp-filter");
    constexpr const char* kFolder = "/proc/sys/net/ipv4/conf/";
    const auto value = [&](const std::string& name) {
        return subject.root().number(kFolder + name + "/rp_filter");
    };
    const auto all = value("all"), fallback = value("default");
    if (!all || !fallback) {
        check.unknown("", std::string(kFolder) + "all/rp_filter");
        return;
    }
    constexpr uint64_t kStrict = 1;
    std::string strict;
    for (const Needs::Port& port : subject.needs.ports) {
        // The kernel applies the larger one of both.
        if (std::max(*all, value(port.twin).value_or(*fallback)) == kStrict) {
            strict += (strict.empty() ? "" : ", ") + port.twin;
        }
    }
    if (strict.empty() || subject.needs.ports.size() < 2) {
        check.ok("", strict.empty() ? "not strict" : "strict, which one port permits");
    } else {
        check
            .warning("", "strict for " + strict +
                             ": the host drops packets to its own addresses that arrive by another twin than "
                             "that of the route back")
            .mend("sysctl -w net.ipv4.conf.all.rp_filter=2");
    }
}

void check_rfc1337(const Subject& subject, Findings& findings) {
    Check check(findings, "tcp-rfc1337");
    constexpr const char* kFile = "/proc/sys/net/ipv4/tcp_rfc1337";
    const auto value = subject.root().number(kFile);
    if (!value) {
        check.unknown("", kFile);
    } else if (*value != 0) {
        check
            .warning("",
                     "1: if endpoints have this setting, clients that reuse a port wait until TIME-WAIT ends")
            .mend("sysctl -w net.ipv4.tcp_rfc1337=0");
    } else {
        check.ok("", "0, as it should be on the endpoints too");
    }
}

void check_announcement(const Subject& subject, Findings& findings) {
    Check check(findings, "announcement");
    const Root& root = subject.root();
    if (!subject.needs.announces_routes) {
        check.ok("", "no routing daemon is needed (--vip-presence)");
        return;
    }
    bool has_daemon = false;
    for (const char* file : {"/etc/bird/bird.conf", "/etc/bird.conf"}) {
        if (const auto text = root.text(file)) {
            has_daemon = true;
            check_bird(file, *text, check);
        }
    }
    if (root.exists("/etc/frr")) {
        has_daemon = true;
        check_frr(root, check);
    }
    if (!has_daemon) {
        check.warning("", "neither FRR nor BIRD is configured, so no routing daemon exports the VIPs' routes")
            .mend("apt-get install frr");
    }
}

}  // namespace penstock::host
