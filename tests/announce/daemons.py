# SPDX-License-Identifier: Apache-2.0
"""Routing daemons of others: FRR and BIRD 2, one set for each network namespace. Beside a gateway they
announce its kernel routes, as docs/examples/announce configures them; as a router they install what they learn.

A daemon's files are in a folder of the run. A mount namespace shows this folder in place of the host's /run/frr.
The host's services and configuration are not touched."""
import json
import os
import re
import shutil
import signal
import socket
import time

from lab.patience import Patience

FRR = "/usr/lib/frr"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "docs/examples/announce")
# The addresses and AS numbers of the examples.
EXAMPLE_ROUTER, EXAMPLE_GATEWAY, EXAMPLE_ROUTER_AS, EXAMPLE_GATEWAY_AS = "192.0.2.254", "192.0.2.1", 64500, 64512


def reason_missing():
    """The first program that is not installed, or None."""
    for program in (f"{FRR}/zebra", f"{FRR}/bgpd", "bird", "birdc"):
        if not shutil.which(program):
            return f"there is no {program}; scripts/setup announce installs it"
    return None


class Daemon:
    """Base: a folder, configuration files, and processes in a role's namespaces."""

    def __init__(self, lab, role, address, autonomous_system, peers):
        """address: the own one, also the router ID. peers: AS number by address."""
        self._lab, self._role, self._address, self._autonomous_system, self._peers = lab, role, address, autonomous_system, peers
        name = f"{type(self).__name__.lower()}-{role}"
        self._folder, self._log = lab.run.file(name), f"{name}.log"
        os.mkdir(self._folder)
        self._processes = []

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _write(self, name, text):
        with open(self._path(name), "w") as file:
            file.write(text)
        return self._path(name)

    def _example(self, name):
        """A file of docs/examples/announce, with this daemon's addresses and AS numbers."""
        [(peer, peers_as)] = self._peers.items()
        with open(os.path.join(EXAMPLES, name)) as file:
            text = file.read()
        for old, new in ((EXAMPLE_GATEWAY, self._address), (EXAMPLE_ROUTER, peer), (EXAMPLE_GATEWAY_AS, self._autonomous_system),
                         (EXAMPLE_ROUTER_AS, peers_as)):
            text = re.sub(rf"\b{re.escape(str(old))}(?![.\d])", str(new), text)
        return text

    def _spawn(self, *words):
        words = ["unshare", "-m", "sh", "-c", 'mkdir -p /run/frr && mount --bind "$0" /run/frr && exec "$@"', self._folder, *words]
        self._processes.append(self._lab.network.start(self._role, words, self._log))

    def _until(self, what, condition, patience_s=60):
        patience = Patience(patience_s)
        while not condition():
            for process in self._processes:
                if process.poll() is not None:
                    raise RuntimeError(f"waiting until {what}: a daemon in {self._role} ended with {process.returncode}\n{self.last_words()}")
            if not patience.lasts():
                raise RuntimeError(f"not within {patience_s} s: {what}\n{self.last_words()}")
            time.sleep(0.05)

    def until_established(self):
        self._until(f"{self._role} has a session with {', '.join(self._peers)}", lambda: self._established() >= len(self._peers))

    def kill(self):
        for process in self._processes:
            process.send_signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._processes = []

    def last_words(self):
        with open(self._lab.run.file(self._log), errors="replace") as file:
            return "".join(file.readlines()[-20:])


class Frr(Daemon):
    """zebra and bgpd."""

    def start(self, announces):
        shutil.chown(self._folder, "frr", "frr")
        self._write("zebra.conf", "")
        self._write("bgpd.conf", self._example("frr.conf") + self._timers() if announces else self._of_router())
        for daemon, options in (("zebra", ()), ("bgpd", ("-p", "179"))):
            # User frr may not enter the folder of the run, only its own one in place of /run/frr.
            self._spawn(f"{FRR}/{daemon}", "-P", "0", *options, "--vty_socket", "/run/frr", "-i", f"/run/frr/{daemon}.pid",
                        "-z", "/run/frr/zserv.api", "-f", f"/run/frr/{daemon}.conf")
            self._until(f"{daemon} runs", lambda name=daemon: os.path.exists(self._path(f"{name}.vty")))

    def _timers(self):
        """For a test, sessions come up at once."""
        return "\n".join([f"router bgp {self._autonomous_system}", " bgp router-id " + self._address, " timers bgp 1 3",
                          *(f" neighbor {peer} timers connect 1" for peer in self._peers)]) + "\n"

    def _of_router(self):
        lines = [f"router bgp {self._autonomous_system}", " no bgp ebgp-requires-policy", " no bgp network import-check"]
        for peer, autonomous_system in self._peers.items():
            lines.append(f" neighbor {peer} remote-as {autonomous_system}")
        lines += [" address-family ipv6 unicast", *(f"  neighbor {peer} activate" for peer in self._peers), " exit-address-family"]
        return "\n".join(lines) + "\n" + self._timers()

    def _vty(self, daemon, command):
        """The answer of a daemon's socket. vtysh needs PAM."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(self._path(f"{daemon}.vty"))
            for line in ("enable", command):
                connection.sendall(line.encode() + b"\0")
                answer = b""
                while not re.search(rb"\0\0\0.\Z", answer, re.DOTALL):  # the last byte is the status
                    if not (received := connection.recv(1 << 16)):
                        break
                    answer += received
        return answer[:-4].decode()

    def _established(self):
        try:
            shown = json.loads(self._vty("bgpd", "show bgp summary json") or "{}")
        except OSError:
            return 0
        states = {name: peer["state"] for family in shown.values() if isinstance(family, dict) for name, peer in family.get("peers", {}).items()}
        return sum(state == "Established" for state in states.values())


class Bird(Daemon):
    def start(self, announces):
        self._write("bird.conf", self._example("bird.conf").replace("neighbor ", "connect retry time 1; connect delay time 1; neighbor ")
                    if announces else self._of_router())
        self._spawn("bird", "-f", "-c", self._path("bird.conf"), "-s", self._path("bird.ctl"), "-P", self._path("bird.pid"))
        self._until("bird runs", lambda: os.path.exists(self._path("bird.ctl")))

    def _of_router(self):
        lines = [f"router id {self._address};", "protocol device { scan time 1; }",
                 "protocol kernel kernel4 { scan time 1; ipv4 { import none; export where source = RTS_BGP; }; }",
                 "protocol kernel kernel6 { scan time 1; ipv6 { import none; export where source = RTS_BGP; }; }"]
        for number, (peer, autonomous_system) in enumerate(self._peers.items()):
            # Graceful shutdown (RFC 8326): the receiver lowers the preference.
            preference = "import filter { if (65535, 0) ~ bgp_community then bgp_local_pref = 0; accept; }; export none; add paths off;"
            lines.append(f"protocol bgp gateway{number} {{ local as {self._autonomous_system}; connect retry time 1; connect delay time 1; "
                         f"neighbor {peer} as {autonomous_system}; ipv4 {{ {preference} }}; ipv6 {{ {preference} }}; }}")
        return "\n".join(lines) + "\n"

    def _established(self):
        shown = self._lab.network.run(self._role, "birdc", "-s", self._path("bird.ctl"), "show", "protocols").stdout
        return len(re.findall(r"^\S+\s+BGP\b.*\bEstablished", shown, re.MULTILINE))
