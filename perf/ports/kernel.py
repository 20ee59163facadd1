# SPDX-License-Identifier: Apache-2.0
"""The yardstick: the kernel's own NAT between two veth pairs, nftables DNAT to a random endpoint and masquerade.

Its receive half runs on the worker's CPU (RPS), where penstockd's worker runs in the other measurements. Cycles are
those that the CPU spent in softirqs, from /proc/stat, which counts in steps of 10 ms."""
import os

import bed
from lab import network as net

ROLE = "kernel"
UPLINK, CLUSTER = "up0", "cl0"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
SOFTIRQ = 7  # column of /proc/stat
UDP_TIMEOUT_S = 600  # no connection expires during a measurement


class Network(net.Network):
    def build(self, macs, worker_cpu):
        self.add(ROLE)
        self.add("load")
        for role in (ROLE, "load"):
            self.sysctl(role, "ipv6/conf/default/disable_ipv6", 1)
        for number, (name, mac) in enumerate(zip((UPLINK, CLUSTER), macs)):
            self.join(ROLE, name, "load", f"load{number}")
            self.ip(ROLE, f"link set {name} address {mac}")
            steer(self, ROLE, name, worker_cpu)
        self.sysctl(ROLE, "ipv4/ip_forward", 1)
        for name in ("all", UPLINK, CLUSTER):
            self.sysctl(ROLE, f"ipv4/conf/{name}/rp_filter", 0)
            self.sysctl(ROLE, f"ipv4/conf/{name}/send_redirects", 0)
        lines = [f"address add 10.80.1.1/24 dev {UPLINK}", f"address add 10.80.2.1/24 dev {CLUSTER}"]
        lines += neighbours(UPLINK, CLUSTER)
        self.ip(ROLE, "\n".join(lines))

    def translate(self, rules):
        command = self.run(ROLE, "nft", "-f", "-", stdin=rules)
        if command.returncode != 0:
            raise RuntimeError(f"nft: {command.stderr.strip()}")
        for key in ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"):
            self.sysctl(ROLE, f"netfilter/{key}", UDP_TIMEOUT_S)


def neighbours(uplink, cluster):
    """Permanent neighbours of the clients' router and of all endpoints, as `ip` commands."""
    lines = [f"neigh replace {bed.ROUTER[0]} lladdr {bed.ROUTER[1]} nud permanent dev {uplink}",
             f"route replace default via {bed.ROUTER[0]} dev {uplink}"]
    for number in range(bed.SERVICES * bed.ENDPOINTS_PER_SERVICE):
        lines.append(f"neigh replace {bed.endpoint(number)} lladdr {bed.ENDPOINT_MAC} nud permanent dev {cluster}")
    return lines


def rules(more=""):
    """The Services of scripts/bench wire. `more` are further rules of the chain prerouting."""
    vips, chains = [], []
    for k in range(bed.SERVICES):
        endpoints = [bed.endpoint(k * bed.ENDPOINTS_PER_SERVICE + i) for i in range(bed.ENDPOINTS_PER_SERVICE)]
        choices = ", ".join(f"{i} : {address}" for i, address in enumerate(endpoints))
        vips.append(f"203.0.113.{1 + k} : goto service-{k}")
        chains.append(f"chain service-{k} {{ meta l4proto udp dnat to numgen random mod {len(endpoints)} map {{ {choices} }}:9376; }}")
    return "\n".join(["table ip bench {", *chains,
                      "chain prerouting { type nat hook prerouting priority dstnat;",
                      f"udp dport 80 ip daddr vmap {{ {', '.join(vips)} }}", more, "}",
                      "chain postrouting { type nat hook postrouting priority srcnat; masquerade; }", "}"])


class Kernel:
    """Counts as links.Gateway, so that the same trials apply."""

    def __init__(self, network, worker_cpu, ticks_per_second):
        self._network, self._cpu, self._hz = network, worker_cpu, ticks_per_second
        self._forgotten = 0

    def counts(self):
        received = sum(self._interface(name, "rx_packets") for name in (UPLINK, CLUSTER))
        sent = sum(self._interface(name, "tx_packets") for name in (UPLINK, CLUSTER))
        connections = int(self._network.sysctl(ROLE, "netfilter/nf_conntrack_count"))
        return {"rx_packets": received, "tx_packets": sent, "busy_ticks": softirq_seconds(self._cpu) * self._hz, "connections": connections,
                "new_connections": self._forgotten + connections, "polls": 1, "empty_polls": 0, "drops": {}}

    def forget(self):
        """Removes all connections, because the machine's limit of them applies to all namespaces together."""
        self._forgotten += int(self._network.sysctl(ROLE, "netfilter/nf_conntrack_count"))
        done = self._network.run(ROLE, "conntrack", "-F")
        if done.returncode != 0:
            raise RuntimeError(f"conntrack -F: {done.stderr.strip()}")

    def preemptions(self):
        return 0  # a softirq is not preempted

    def _interface(self, name, counter):
        return int(self._network.run(ROLE, "cat", f"/sys/class/net/{name}/statistics/{counter}").stdout)


class DirectLink(net.Network):
    """A veth pair between the generator's two devices, without a gateway: what the kernel spends on the worker's CPU
    to receive a frame by RPS and to copy it into the generator's ring. A frame takes these steps also after a
    gateway, where they are not the gateway's part."""
    ROLE = "direct"

    def __init__(self, run, worker_cpu):
        super().__init__(run)
        self._cpu = worker_cpu
        self.add(self.ROLE)
        self.sysctl(self.ROLE, "ipv6/conf/default/disable_ipv6", 1)
        self.join(self.ROLE, "load0", self.ROLE, "load1")
        for name in ("load0", "load1"):
            steer(self, self.ROLE, name, worker_cpu)

    def cycles(self, generator, ticks_per_second, seconds):
        """Softirq cycles of a frame, at saturation, from one window."""
        before = softirq_seconds(self._cpu)
        seen = generator.ask("random", 50e6, seconds, 1_000)
        frames = seen["reached"] + seen["returned"]
        if frames < 1_000:
            raise RuntimeError(f"only {frames} frames passed the veth pair")
        return (softirq_seconds(self._cpu) - before) * ticks_per_second / frames


def steer(network, role, interface, cpu):
    """Packets of the interface are handled on this CPU (RPS). The kernel's mask has groups of 32 bits."""
    groups = [f"{(1 << cpu) >> shift & 0xffffffff:08x}" for shift in range(cpu // 32 * 32, -1, -32)]
    done = network.run(role, "sh", "-c", f"echo {','.join(groups)} >/sys/class/net/{interface}/queues/rx-0/rps_cpus")
    if done.returncode != 0:
        raise RuntimeError(f"{interface}: packets cannot be steered to CPU {cpu}: {done.stderr.strip()}")


def softirq_seconds(cpu=None):
    """Seconds that a CPU, or all of them, spent in softirqs since boot."""
    with open("/proc/stat") as stat:
        for line in stat:
            words = line.split()
            if words[0] == ("cpu" if cpu is None else f"cpu{cpu}"):
                return int(words[SOFTIRQ]) / TICKS_PER_SECOND
    raise RuntimeError(f"/proc/stat has no CPU {cpu}")


def most_connections():
    try:
        with open("/proc/sys/net/netfilter/nf_conntrack_max") as limit:
            return int(limit.read())
    except FileNotFoundError:  # until the first rule loads the module
        return 65_536

