# SPDX-License-Identifier: Apache-2.0
"""Ports that do not take their frames from the lab's veth pairs themselves (net_tap, net_memif), connected to them:
WIRES[driver](lab) before the start of penstockd, connect() afterwards."""
import os
import sys

from fixture import equal, until

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memif_peer.py")


def mac_of(i):
    return f"02:00:00:80:00:{i + 1:02x}"


class Wires:
    """Of drivers that take the frames of a Linux interface."""
    PULSE_S = 0.01  # of each flow, so that the times without an answer are those of the gateway

    def __init__(self, lab):
        self._lab = lab

    def connect(self):
        pass


class TapWires(Wires):
    """Linux passes each frame between the TAP interface and the veth."""

    def __init__(self, lab):
        super().__init__(lab)
        self._taps = {}
        lab.gateway.device_of = self._device_of

    def _device_of(self, i, interface):
        self._taps[interface] = f"dtap{i}"
        return f"net_tap{i},iface=dtap{i},mac={mac_of(i)}"

    def connect(self):
        for interface, tap in self._taps.items():
            for here, there in ((interface, tap), (tap, interface)):
                self._tc("qdisc", "replace", "dev", here, "ingress")
                self._tc("filter", "add", "dev", here, "parent", "ffff:", "protocol", "all", "prio", "1", "u32", "match", "u32", "0", "0",
                         "action", "mirred", "egress", "redirect", "dev", there)

    def _tc(self, *words):
        done = self._lab.network.run("gateway", "tc", *words)
        equal((done.returncode, done.stderr), (0, ""), f"tc {' '.join(words)}")


class MemifWires(Wires):
    """A program has the server's side of each memif, and the veth by a packet socket (memif_peer.py)."""
    PULSE_S = 0.1  # the program is slow

    def __init__(self, lab):
        super().__init__(lab)
        lab.gateway.device_of = self._device_of

    def _keep_from_linux(self, i, interface):
        """Linux must not answer what arrives for the addresses of the twins."""
        for words in (("table", "netdev", f"wire{i}"),
                      ("chain", "netdev", f"wire{i}", "in", f"{{ type filter hook ingress device {interface} priority 0; policy drop; }}")):
            equal(self._lab.network.run("gateway", "nft", "add", *words).returncode, 0, "exit code of nft")

    def _device_of(self, i, interface):
        path = self._lab.run.file(f"memif-{i}.sock")
        if not os.path.exists(path):  # of the first start
            self._keep_from_linux(i, interface)
            self._lab.network.start("gateway", [sys.executable, PEER, "server", path, interface], f"memif-{i}.log")
            until(f"the peer of memif {i} listens", lambda: os.path.exists(path), 20)
        return f"net_memif{i},role=client,socket-abstract=no,socket={path},mac={mac_of(i)}"


class MemifServerWires(MemifWires):
    """The gateway has the server's side: one port by a name in the abstract namespace, the other one by a file."""

    def __init__(self, lab):
        super().__init__(lab)
        self._has_peer = set()

    def _device_of(self, i, interface):
        path, is_abstract = self._lab.run.file(f"memif-{i}.sock"), i == 0
        if i not in self._has_peer:
            self._has_peer.add(i)
            self._keep_from_linux(i, interface)
            name = f"@{path}" if is_abstract else path
            self._lab.network.start("gateway", [sys.executable, PEER, "client", name, interface], f"memif-{i}.log")
        return f"net_memif{i},role=server,socket-abstract={'yes' if is_abstract else 'no'},socket={path},mac={mac_of(i)}"


WIRES = {"tap": TapWires, "memif": MemifWires, "memif-server": MemifServerWires}
