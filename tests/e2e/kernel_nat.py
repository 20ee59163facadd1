# SPDX-License-Identifier: Apache-2.0
"""Two gateways between a client and an endpoint that the test emulates frame by frame: penstockd, and Linux
with nftables' NAT.

far client -- eth0 | uplink, gateway, cluster | eth0 -- far endpoint

The far hosts exist only as addresses behind the client's and backend-1's namespaces, whose kernels drop the
packets that they do not route. Both beds have the same addresses, so the output can be compared byte by byte.
"""
import contextlib
import os
import socket
import time

import packets
from lab import network as net
from lab.network import CommandFailed, inside

FAR_CLIENT, FAR_CLIENT_6 = "198.51.100.7", "2001:db8:99::7"
OUTER_ROUTER, OUTER_ROUTER_6 = "198.51.100.254", "2001:db8:99::fe"
FAR_ENDPOINT, FAR_ENDPOINT_6 = "10.82.1.2", "fd00:82:1::2"
INNER_ROUTER, INNER_ROUTER_6 = "10.82.1.254", "fd00:82:1::fe"
BEHIND_CLIENT = (("198.51.100.0/24", net.CLIENT), ("2001:db8:99::/64", net.CLIENT6))
BEHIND_ENDPOINT = (("10.82.1.0/24", net.BACKENDS["backend-1"]), ("fd00:82:1::/64", net.BACKENDS6["backend-1"]))
CLIENT, ENDPOINT = 0, 1  # sides
PATIENCE_S = 10.0


class Bed:
    """`hosts`: (role, address of the gateway's card there) on each side; `fence`: a UDP flow through the
    gateway, with the client's addresses."""

    def __init__(self, network, hosts, fence):
        self._wires = []
        for role, gateway_mac in hosts:
            with inside(network.namespace(role)):
                wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
                wire.bind(("eth0", 0))
                own_mac = wire.getsockname()[4]
            self._wires.append((wire, bytes.fromhex(gateway_mac.replace(":", "")) + own_mac))
        self._fence, self._inner_fence, self._fences = fence, None, 0

    def close(self):
        for wire, _ in self._wires:
            wire.close()

    def send(self, side, *sent):
        wire, macs = self._wires[side]
        with one_processor():
            for packet in sent:
                wire.send(macs + (b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00") + packet)

    def open(self, flow, endpoint, flags=packets.SYN):
        """Repeats a first packet of the client until it reaches the endpoint, because next hops may need
        resolution. Returns the flow as the endpoint sees it."""
        text, deadline = b"first of %d" % flow.source_port, time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.send(CLIENT, packets.packet(flow, text, flags))
            if (came := self._until(ENDPOINT, text, 0.5)[1]) is not None:
                ports = packets.body_of(came)[4][:4]
                return packets.Flow(packets.addresses(came)[0], int.from_bytes(ports[:2], "big"), endpoint, int.from_bytes(ports[2:], "big"),
                                    flow.protocol)
        raise AssertionError(f"nothing of {flow} has come to the endpoint")

    def ready(self, endpoint):
        self._inner_fence = self.open(self._fence, endpoint)
        deadline = time.monotonic() + PATIENCE_S
        while not self._passes(ENDPOINT, self._inner_fence.reverse(), 0.5):
            if time.monotonic() > deadline:
                raise AssertionError("nothing of the endpoint has come to the client")
        self.after(CLIENT)  # frames that are still in flight

    def after(self, side, *sent):
        """The frames that left on each side, complete once both sides have received a datagram that was sent
        later; no wait ends by a timeout. A gateway of one worker keeps the order of one port's packets,
        except for fragments that waited for their first one. These leave a burst after it, and a datagram of
        that burst overtakes them. The third datagram is therefore sent when the first one has left."""
        self.send(side, *sent)
        left = [[], []]
        flows = (self._fence, self._inner_fence.reverse())
        for from_side, to_side in ((side, 1 - side), (1 - side, side), (side, 1 - side)):
            flow = flows[from_side]
            self._fences += 1
            text = b"fence %d." % self._fences
            self.send(from_side, packets.packet(flow, text))
            seen, fence = self._until(to_side, text, PATIENCE_S)
            if fence is None:
                raise AssertionError(f"the fence behind {[packets.text_of(packet) for packet in sent]} did not come")
            left[to_side] += seen
        return left

    def _passes(self, side, flow, patience_s):
        self._fences += 1
        text = b"fence %d." % self._fences
        self.send(side, packets.packet(flow, text))
        return self._until(1 - side, text, patience_s)[1] is not None

    def _until(self, side, text, patience_s):
        """(packets before the marker, the packet that ends in `text` or None)"""
        wire, before, deadline = self._wires[side][0], [], time.monotonic() + patience_s
        while (left := deadline - time.monotonic()) > 0:
            wire.settimeout(left)
            try:
                frame, (_, kind, direction, *_) = wire.recvfrom(65535)
            except TimeoutError:
                break
            if direction == socket.PACKET_OUTGOING or kind not in (0x0800, 0x86DD) or _is_the_links_own(frame[14:]):
                continue
            packet = packets.trimmed(frame[14:])
            if packet.endswith(text):
                return before, packet
            if b"fence" not in packet[-12:] and b"first of" not in packet[-20:]:
                before.append(packet)
        return before, None


def _is_the_links_own(packet):
    """Neighbour discovery and group membership."""
    return packet[0] >> 4 == 6 and (packet[6] == packets.ICMP6 and 133 <= packet[40] <= 137 or packet[24] == 0xFF or packet[6] == 0)


def silence_behind(network, client, endpoint):
    """Silences the kernels in front of the far hosts, which would otherwise answer."""
    for role, behind in ((client, BEHIND_CLIENT), (endpoint, BEHIND_ENDPOINT)):
        network.ip(role, "\n".join(f"route add blackhole {prefix}" for prefix, _ in behind))


@contextlib.contextmanager
def one_processor():
    """Keeps the frames of one sender in order. The kernel has one queue for each processor."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


class KernelGateway:
    """Linux as the gateway, in namespaces of its own beside those of the lab."""
    ROLES = ("oracle-client", "oracle", "oracle-endpoint")

    def __init__(self, network, cluster_mtu):
        self._network = network
        for role in self.ROLES:
            network.add(role)
        network.join("oracle", "up0", "oracle-client", "eth0")
        network.join("oracle", "cl0", "oracle-endpoint", "eth0")
        silence_behind(network, "oracle-client", "oracle-endpoint")
        network.ip("oracle", f"link set cl0 mtu {cluster_mtu}\n"
                             f"address add {net.UPLINK}/24 dev up0\naddress add {net.UPLINK6}/64 dev up0\n"
                             f"address add {net.CLUSTER}/24 dev cl0\naddress add {net.CLUSTER6}/64 dev cl0")
        for (device, role), (behind, behind_6) in zip((("up0", "oracle-client"), ("cl0", "oracle-endpoint")), (BEHIND_CLIENT, BEHIND_ENDPOINT)):
            mac = self.mac_of(role, "eth0")
            for prefix, via in (behind, behind_6):
                network.ip("oracle", f"neighbour replace {via} dev {device} lladdr {mac} nud permanent\nroute add {prefix} via {via} dev {device}")
        # Packets that conntrack finds invalid are not translated, and have no route.
        network.ip("oracle", "\n".join(f"route add blackhole {prefix}" for prefix in net.EXTERNAL_RANGES))
        for key, value in {"ipv4/ip_forward": 1, "ipv6/conf/all/forwarding": 1, "ipv4/icmp_ratelimit": 0, "ipv6/icmp/ratelimit": 0}.items():
            network.sysctl("oracle", key, value)

    def mac_of(self, role, interface):
        return self._network.run(role, "cat", f"/sys/class/net/{interface}/address").stdout.strip()

    def hosts(self):
        return (("oracle-client", self.mac_of("oracle", "up0")), ("oracle-endpoint", self.mac_of("oracle", "cl0")))

    def why_not(self):
        """The reason why the kernel cannot be used, in one line; empty if it can."""
        asked = self._network.run("oracle", "nft", "-f", "-", stdin="table ip asked {\nchain before { type nat hook prerouting priority -100;\n}\n}\n"
                                                                    "table ip6 asked {\nchain before { type nat hook prerouting priority -100;\n}\n}\n")
        # rejected by the kernel; any other failure is this file's
        refused = "Could not process rule" in asked.stderr
        return asked.stderr.splitlines()[0] if refused else ""

    def translate(self, services):
        """(client's flow, endpoint, its port, SNAT port of the client or None if the source is kept)"""
        rules = {"ip": ([], []), "ip6": ([], [])}
        for flow, endpoint, port, snat_port in services:
            family = "ip6" if packets.is_v6(endpoint) else "ip"
            protocol = {packets.TCP: "tcp", packets.UDP: "udp"}[flow.protocol]
            where = f"[{endpoint}]:{port}" if family == "ip6" else f"{endpoint}:{port}"
            rules[family][0].append(f"{family} daddr {flow.destination} {protocol} dport {flow.destination_port} dnat to {where}")
            if snat_port:
                source = f"[{net.CLUSTER6}]:{snat_port}" if family == "ip6" else f"{net.CLUSTER}:{snat_port}"
                rules[family][1].append(f"ct original {family} daddr {flow.destination} {protocol} sport {flow.source_port} snat to {source}")
        text = "".join(f"table {family} penstock_oracle {{\n"
                       f"chain before {{ type nat hook prerouting priority -100;\n{chr(10).join(before)}\n}}\n"
                       f"chain behind {{ type nat hook postrouting priority 100;\n{chr(10).join(behind)}\n}}\n}}\n"
                       for family, (before, behind) in rules.items())
        made = self._network.run("oracle", "nft", "-f", "-", stdin=text)
        if made.returncode != 0:
            raise CommandFailed(f"nft: {made.stderr.strip()}")
