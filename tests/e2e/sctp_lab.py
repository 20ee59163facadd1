# SPDX-License-Identifier: Apache-2.0
"""A lab with SCTP servers (sctp_peer.py) on the backends, and clients of them."""
import json
import os
import subprocess
import sys

from fixture import VIP, VIP_6, Skip, check, until
from lab import network as net
from lab.network import BACKENDS, BACKENDS6, inside
from manifests import endpoints, service

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sctp_peer.py")
PORT, SERVER_PORT, NODE_PORT = 3868, 13868, 30868


def diameter(backends=tuple(BACKENDS), families=("IPv4", "IPv6"), external_ips=(VIP, VIP_6), **changes):
    made = service("diameter", PORT, protocol="SCTP", target_port=SERVER_PORT, external_ips=external_ips, families=families, **changes)
    return [made, *(endpoints("diameter", backends, port=SERVER_PORT, protocol="SCTP", family=family) for family in families)]


def begin(lab, *objects):
    skip_without_stack()
    lab.start(*objects)
    start_servers(lab)


def skip_without_stack():
    probe = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libusrsctp.so.2')"], capture_output=True, check=False)
    if probe.returncode != 0:
        raise Skip("no usrsctp (Debian's libusrsctp2)")
    if os.path.exists("/proc/net/sctp"):
        raise Skip("this kernel has SCTP of its own, which aborts what it does not know")


def start_servers(lab):
    for name, address in BACKENDS.items():
        log = f"{name}/sctp.log"
        lab.network.start(name, [sys.executable, PEER, "serve", name, str(SERVER_PORT), address, BACKENDS6[name]], log)
        until(f"{name} listens", lambda log=log: "listening" in open(lab.run.file(log)).read(), 20)


def talk(lab, address, port=PORT, messages=5, size=1000, end_by="close", local=None):
    local = local or (net.CLIENT6 if ":" in address else net.CLIENT)
    done = lab.network.run("client", sys.executable, PEER, "talk", local, address, str(port), str(messages), str(size), end_by, timeout_s=30)
    check(done.returncode == 0 and done.stdout, f"the client died: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def states(lab):
    return sorted(entry["state"] for entry in lab.gateway.json("get", "connections", "--proto", "sctp"))


class HeldAssociation:
    """An association that stays: `with HeldAssociation(lab, address) as association:`. `by` is the server, `port` the port
    of the client. ask() sends one more message and returns the name of the server that has answered."""

    def __init__(self, lab, address):
        local = net.CLIENT6 if ":" in address else net.CLIENT
        with inside(lab.network.namespace("client")):
            self._client = subprocess.Popen([sys.executable, PEER, "talk", local, address, str(PORT), "2", "100", "hold"],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        answer = self._answer()
        self.by, self.port = answer["by"], answer["local_port"]
        return self

    def __exit__(self, *_):
        self._client.kill()
        self._client.wait()

    def ask(self):
        self._client.stdin.write("go on\n")
        self._client.stdin.flush()
        return self._answer()["by"]

    def _answer(self):
        said = json.loads(self._client.stdout.readline() or "{}")
        check("by" in said, f"the association: {said.get('error', 'its process has ended')}")
        return said
