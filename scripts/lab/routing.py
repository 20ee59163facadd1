# SPDX-License-Identifier: Apache-2.0
"""Routing daemons of others, one set for each network namespace. Beside a gateway they announce its kernel routes,
as docs/examples/announce configures them; as a router they install what they learn. Here: what all have in common,
and BIRD 2.

A daemon's files are in a folder of the run. A mount namespace shows this folder in place of the host's /run/frr.
The host's services and configuration are not touched."""
import json
import os
import re
import signal
import time

from . import network as net
from .patience import Patience

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "docs/examples/announce")
# The addresses and AS numbers of the examples.
EXAMPLE_ROUTER, EXAMPLE_GATEWAY, EXAMPLE_ROUTER_AS, EXAMPLE_GATEWAY_AS = "192.0.2.254", "192.0.2.1", 64500, 64512


def bfd_timers(detect_ms):
    """The interval, in ms, and the multiplier. A session that has learned an old discriminator begins anew after the
    multiplier times 1 s, because intervals are slow until it is up (RFC 5880, section 6.8.3). bgpd may replace a
    session as it begins."""
    multiplier = min(detect_ms // 50, 20)
    return detect_ms // multiplier, multiplier


class Daemon:
    """Base: a folder, configuration files, and processes in a role's namespaces."""

    def __init__(self, lab, role, address, autonomous_system, peers, bfd=False, detect_ms=150):
        """address: the own one, also the router ID. peers: AS number by address. detect_ms: detection time of BFD
        (bfd), with a long hold time, so that nothing else ends a session."""
        self._lab, self._role, self._address, self._autonomous_system, self._peers = lab, role, address, autonomous_system, peers
        self._bfd, (self._bfd_interval_ms, self._bfd_multiplier) = bfd, bfd_timers(detect_ms)
        name = f"{type(self).__name__.lower()}-{role}"
        self._folder, self._log = lab.run.file(name), f"{name}.log"
        os.mkdir(self._folder)
        self._processes = []
        self._since = {}  # by name of a session of Bird

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
        if self._bfd:
            text = re.sub(r"^[!#]bfd ", "", text, flags=re.MULTILINE)
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

    def next_hops(self):
        """By prefix, of the routes that a routing daemon has installed in the kernel. Several: ECMP."""
        namespace = self._lab.network.namespace(self._role)
        routes = [route for family in ("-4", "-6") for protocol in ("bgp", "bird")
                  for route in json.loads(net.command("ip", "-n", namespace, "-json", family, "route", "show", "proto", protocol) or "[]")]
        return {route["dst"]: {hop.get("gateway", "") for hop in route.get("nexthops", [route])} for route in routes}

    def learned(self):
        """The same, with the next hops as a text."""
        return {prefix: " ".join(sorted(hops)) for prefix, hops in self.next_hops().items()}

    def kill(self):
        for process in self._processes:
            process.send_signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._processes = []

    def last_words(self):
        with open(self._lab.run.file(self._log), errors="replace") as file:
            return "".join(file.readlines()[-20:])


class Bird(Daemon):
    def start(self, announces):
        self._write("bird.conf", self._example("bird.conf").replace("neighbor ", "connect retry time 1; connect delay time 1; error wait time 1, 2; neighbor ")
                    if announces else self._of_router())
        self._spawn("bird", "-f", "-c", self._path("bird.conf"), "-s", self._path("bird.ctl"), "-P", self._path("bird.pid"))
        self._until("bird runs", lambda: os.path.exists(self._path("bird.ctl")))

    def _of_router(self):
        lines = [f"router id {self._address};", "protocol device { scan time 1; }",
                 "protocol kernel kernel4 { scan time 1; ipv4 { import none; export where source = RTS_BGP; }; }",
                 "protocol kernel kernel6 { scan time 1; ipv6 { import none; export where source = RTS_BGP; }; }"]
        if self._bfd:
            lines.append('protocol bfd { interface "*" { interval %d ms; multiplier %d; }; }' % (self._bfd_interval_ms, self._bfd_multiplier))
        for number, (peer, autonomous_system) in enumerate(self._peers.items()):
            # Graceful shutdown (RFC 8326): the receiver lowers the preference.
            preference = "import filter { if (65535, 0) ~ bgp_community then bgp_local_pref = 0; accept; }; export none; add paths off;"
            bfd = "bfd on; " if self._bfd else ""
            lines.append(f"protocol bgp gateway{number} {{ local as {self._autonomous_system}; {bfd}connect retry time 1; connect delay time 1; error wait time 1, 2; "
                         f"neighbor {peer} as {autonomous_system}; ipv4 {{ {preference} }}; ipv6 {{ {preference} }}; }}")
        return "\n".join(lines) + "\n"

    def _established(self):
        return sum(state == "Established" for state, _ in self.sessions().values())

    def sessions(self):
        """By protocol: its state, and the number of times that it has changed between two calls."""
        shown = self._lab.network.run(self._role, "birdc", "-s", self._path("bird.ctl"), "show", "protocols").stdout
        return {name: (state, self._changes(name, since))
                for name, since, state in re.findall(r"^(\S+)\s+BGP\s.*?(\d+:\d+:[\d.]+)\s+(.*\S)", shown, re.MULTILINE)}

    def _changes(self, name, since):
        """How often the time of a session's last change differed between two calls. As birdc prints it, the time of one
        change varies by a millisecond."""
        hours, minutes, seconds = since.split(":")
        since_s = 3600 * int(hours) + 60 * int(minutes) + float(seconds)
        former_s, changes = self._since.get(name, (since_s, 0))
        self._since[name] = since_s, changes + (abs(since_s - former_s) > 0.5)
        return self._since[name][1]

    def bfd_sessions(self):
        """By peer: as sessions()."""
        shown = self._lab.network.run(self._role, "birdc", "-s", self._path("bird.ctl"), "show", "bfd", "sessions").stdout
        return {peer: (state, self._changes(peer, since))
                for peer, state, since in re.findall(r"^(\S+)\s+\S+\s+(Up|Down|Init|AdminDown)\s+(\S+)", shown, re.MULTILINE)}

    def bfd_detection_ms(self):
        shown = self._lab.network.run(self._role, "birdc", "-s", self._path("bird.ctl"), "show", "bfd", "sessions").stdout
        return {peer: round(1000 * float(timeout_s)) for peer, timeout_s in re.findall(r"^(\S+)\s+\S+\s+Up\b.*\s(\S+)$", shown, re.MULTILINE)}
