# SPDX-License-Identifier: Apache-2.0
"""client ---- gw-up | gateway | gw-cl ---- switch (a bridge) ---- backend-1, backend-2, backend-3

Each box is a network namespace.

The gateway's two veth ends carry no addresses: penstockd drives them, and the addresses are on its twins
(uplink0 and cluster0). The gateway's kernel neither forwards nor translates, so each packet that reaches a
backend was forwarded by penstockd. Every namespace except the switch has an address of each family.
"""
import contextlib
import ctypes
import os
import socket
import subprocess

CLIENT = "10.80.1.2"
UPLINK = "10.80.1.1"
CLUSTER = "10.80.2.1"
BACKENDS = {f"backend-{i}": f"10.80.2.{10 + i}" for i in (1, 2, 3)}
# Used by labs with a second gateway: its own wire to the client, and its addresses on the backends' switch.
SECOND_CLIENT = "10.80.3.2"
SECOND_UPLINK = "10.80.3.1"
SECOND_CLUSTER = "10.80.2.2"
# The same of a third gateway.
THIRD_CLIENT = "10.80.4.2"
THIRD_UPLINK = "10.80.4.1"
THIRD_CLUSTER = "10.80.2.3"

CLIENT6 = "fd00:80:1::2"
UPLINK6 = "fd00:80:1::1"
CLUSTER6 = "fd00:80:2::1"
BACKENDS6 = {f"backend-{i}": f"fd00:80:2::{10 + i}" for i in (1, 2, 3)}

# Prefixes that the client routes to the gateway.
EXTERNAL_RANGES = {"80.11.12.0/24": UPLINK, "203.0.113.0/24": UPLINK, "2001:db8:80::/48": UPLINK6, "2001:db8:203::/48": UPLINK6}

# IPv6's own messages would add unexpected frames, and its waits (duplicate address detection) would add a
# second to each set-up.
_QUIET_IPV6 = {"accept_ra": 0, "autoconf": 0, "router_solicitations": 0, "accept_dad": 0, "dad_transmits": 0}

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class CommandFailed(Exception):
    pass


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def bracketed(address):
    """The address as written before a port, or in a URL."""
    return f"[{address}]" if ":" in address else address


def command(*words, stdin=None):
    done = subprocess.run(words, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextlib.contextmanager
def inside(namespace):
    """The calling thread is inside the namespace: its new sockets and processes are in it, and so are
    /proc/sys/net and ethtool."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        _setns(there)
        yield
    finally:
        _setns(home)
        os.close(there)
        os.close(home)


def _setns(descriptor):
    if _libc.setns(descriptor, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Network:
    def __init__(self, run):
        self._run = run

    def namespace(self, role):
        """The name for `ip netns exec`."""
        return f"penstock-{role}-{self._run.number}"

    def build(self):
        for role in ("client", "gateway", "switch", *BACKENDS):
            self.add(role)

        self.ip("switch", "link add br0 type bridge mcast_snooping 0\nlink set br0 up")
        self.join("gateway", "gw-up", "client", "eth0")
        self.join("gateway", "gw-cl", "switch", "to-gateway")
        self.ip("client", f"address add {CLIENT}/24 dev eth0\naddress add {CLIENT6}/64 dev eth0")
        for network, gateway in EXTERNAL_RANGES.items():
            self.ip("client", f"route add {network} via {gateway}")
        for role, address in BACKENDS.items():
            self.join(role, "eth0", "switch", f"to-{role}")
            # The route back through the gateway lets a backend see the client's own address
            # (externalTrafficPolicy Local).
            self.ip(role, f"address add {address}/24 dev eth0\nroute add default via {CLUSTER}\n"
                          f"address add {BACKENDS6[role]}/64 dev eth0\nroute add ::/0 via {CLUSTER6}")
        for port in ("to-gateway", *(f"to-{role}" for role in BACKENDS)):
            self.ip("switch", f"link set {port} master br0")

    def add_second_gateway(self, external_ip):
        """Adds a second gateway. The client reaches it under this address."""
        self.add_gateway("gateway-2", "eth1", SECOND_CLIENT, SECOND_CLUSTER)
        self.ip("client", f"route add {external_ip}/32 via {SECOND_UPLINK}")

    def add_gateway(self, role, interface, client, cluster):
        """Adds a gateway with a wire of its own to the client, which has an interface and an address there. It forwards
        to the same backends; they send replies for this address through it."""
        self.add(role)
        self.join(role, "gw-up", "client", interface)
        self.join(role, "gw-cl", "switch", f"to-{role}")
        self.ip("switch", f"link set to-{role} master br0")
        self.ip("client", f"address add {client}/24 dev {interface}")
        for backend in BACKENDS:
            self.ip(backend, f"route add {client}/32 via {cluster}")

    def ip(self, role, batch):
        return command("ip", "-n", self.namespace(role), "-batch", "-", stdin=batch + "\n")

    def sysctl(self, role, key, value=None):
        with inside(self.namespace(role)), open(f"/proc/sys/net/{key}", "r" if value is None else "w") as file:
            if value is None:
                return file.read().strip()
            file.write(str(value))
            return None

    def start(self, role, words, log):
        """A process in a session of its own inside the namespace: Ctrl-C at the terminal is handled here, and
        the process may outlive this one (--keep).

        `ip netns exec` also mounts the namespace's own /sys, where DPDK looks up interfaces."""
        with open(self._run.file(log), "ab") as output:
            return subprocess.Popen(["ip", "netns", "exec", self.namespace(role), *words], stdin=subprocess.DEVNULL, stdout=output,
                                    stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, role, *words, timeout_s=30, stdin=None):
        return subprocess.run(["ip", "netns", "exec", self.namespace(role), *words], input=stdin, capture_output=True, text=True,
                              timeout=timeout_s)

    def add(self, role):
        """Adds a namespace without interfaces, with IPv6's own messages disabled."""
        self._run.record("netns", name=self.namespace(role))
        command("ip", "netns", "add", self.namespace(role))
        self.ip(role, "link set lo up")
        # Must precede the first interface. The gateways' veth ends and the switch need no IPv6; the twins get
        # it with their addresses.
        for key, value in _QUIET_IPV6.items():
            self.sysctl(role, f"ipv6/conf/default/{key}", value)
        if role == "switch" or role.startswith("gateway"):
            self.sysctl(role, "ipv6/conf/default/disable_ipv6", 1)
        if role.startswith("gateway"):
            self.sysctl(role, "ipv4/ip_forward", 0)

    def join(self, role, name, peer_role, peer_name):
        """Adds a veth pair between two namespaces."""
        here, there = self.namespace(role), self.namespace(peer_role)
        command("ip", "link", "add", name, "netns", here, "type", "veth", "peer", "name", peer_name, "netns", there)
        for end_role, end_name in ((role, name), (peer_role, peer_name)):
            self.ip(end_role, f"link set {end_name} up")
            with inside(self.namespace(end_role)):
                # By default a veth fills in no checksums and passes 64 KB super-frames. These settings make
                # it behave like a wire.
                command("ethtool", "-K", end_name, "tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off")


