# SPDX-License-Identifier: Apache-2.0
"""Routing daemons of others: FRR, BIRD 2 and GoBGP, one set for each network namespace. Beside a gateway FRR and
BIRD announce its kernel routes, as docs/examples/announce configures them; as a router they install what they
learn. GoBGP is only a router: it keeps what it learns.

A daemon's files are in a folder of the run. A mount namespace shows this folder in place of the host's /run/frr.
The host's services and configuration are not touched."""
import json
import os
import re
import shutil
import signal
import socket
import time

from fixture import Skip
from lab import network as net
from lab.patience import Patience
from testbed.api_servers import NotToBeHad
from testbed.go_programs import GOBGP

FRR = "/usr/lib/frr"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "docs/examples/announce")
# The addresses and AS numbers of the examples.
EXAMPLE_ROUTER, EXAMPLE_GATEWAY, EXAMPLE_ROUTER_AS, EXAMPLE_GATEWAY_AS = "192.0.2.254", "192.0.2.1", 64500, 64512


def reason_missing():
    """The first program that is not installed, or None."""
    for program in (f"{FRR}/zebra", f"{FRR}/bgpd", f"{FRR}/bfdd", "bird", "birdc"):
        if not shutil.which(program):
            return f"there is no {program}; scripts/setup announce installs it"
    return None


def obtain_gobgp(minutes):
    """Builds it if it is not in the cache. Without it, its cases are skipped."""
    try:
        GoBgp.programs = GOBGP.obtain(time.monotonic() + 60 * minutes)
    except NotToBeHad as why:
        GoBgp.why_not = f"GoBGP {GOBGP.version}: {why}"


class Daemon:
    """Base: a folder, configuration files, and processes in a role's namespaces."""

    def __init__(self, lab, role, address, autonomous_system, peers, bfd=False):
        """address: the own one, also the router ID. peers: AS number by address. bfd: 50 ms x 3, and then a long
        hold time, so that nothing else ends a session."""
        self._lab, self._role, self._address, self._autonomous_system, self._peers = lab, role, address, autonomous_system, peers
        self._bfd = bfd
        name = f"{type(self).__name__.lower()}-{role}"
        self._folder, self._log = lab.run.file(name), f"{name}.log"
        os.mkdir(self._folder)
        self._processes = []
        self._since = {}  # of Bird.sessions()

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

    def learned(self):
        """Next hop by prefix, of the routes that a routing daemon has installed in the kernel."""
        namespace = self._lab.network.namespace(self._role)
        routes = [route for family in ("-4", "-6") for protocol in ("bgp", "bird")
                  for route in json.loads(net.command("ip", "-n", namespace, "-json", family, "route", "show", "proto", protocol) or "[]")]
        return {route["dst"]: route.get("gateway", "") for route in routes}

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
    """zebra, bgpd and, with BFD, bfdd."""

    def start(self, announces):
        shutil.chown(self._folder, "frr", "frr")
        text = self._example("frr.conf") + self._timers() if announces else self._of_router()
        # In one file for all daemons, as on a host, the block for bfdd ends where that of bgpd begins.
        bfd = re.search(r"^bfd\n(?: .*\n)+", text, re.MULTILINE)
        self._write("zebra.conf", "")
        self._write("bfdd.conf", bfd[0] if bfd else "")
        self._write("bgpd.conf", text.replace(bfd[0], "") if bfd else text)
        for daemon, options in (("zebra", ()), *((("bfdd", ()),) if self._bfd else ()), ("bgpd", ("-p", "179"))):
            # User frr may not enter the folder of the run, only its own one in place of /run/frr.
            self._spawn(f"{FRR}/{daemon}", "-P", "0", *options, "--vty_socket", "/run/frr", "-i", f"/run/frr/{daemon}.pid",
                        "-z", "/run/frr/zserv.api", "-f", f"/run/frr/{daemon}.conf")
            self._until(f"{daemon} runs", lambda name=daemon: os.path.exists(self._path(f"{name}.vty")))

    def _timers(self):
        """For a test, sessions come up at once."""
        return "\n".join([f"router bgp {self._autonomous_system}", " bgp router-id " + self._address,
                          " timers bgp 30 90" if self._bfd else " timers bgp 1 3",
                          *(f" neighbor {peer} timers connect 1" for peer in self._peers)]) + "\n"

    def _of_router(self):
        lines = ["bfd", " profile gateway", "  transmit-interval 50", "  receive-interval 50"] if self._bfd else []
        lines += [f"router bgp {self._autonomous_system}", " no bgp ebgp-requires-policy", " no bgp network import-check"]
        for peer, autonomous_system in self._peers.items():
            lines.append(f" neighbor {peer} remote-as {autonomous_system}")
            if self._bfd:
                lines.append(f" neighbor {peer} bfd profile gateway")
        lines += [" address-family ipv6 unicast", *(f"  neighbor {peer} activate" for peer in self._peers), " exit-address-family"]
        return "\n".join(lines) + "\n" + self._timers()

    def sessions(self):
        """By peer: state, and how often it was established and lost. Stays the same as long as the session stays."""
        return {peer: (facts["bgpState"], facts["connectionsEstablished"], facts["connectionsDropped"])
                for peer, facts in self._neighbours().items()}

    def keepalives(self):
        """Received on all sessions together."""
        return sum(facts["messageStats"]["keepalivesRecv"] for facts in self._neighbours().values())

    def _neighbours(self):
        return json.loads(self._vty("bgpd", "show bgp neighbors json") or "{}")

    def bfd_detection_ms(self):
        """By peer, of the sessions that are up. A session begins with slow intervals."""
        shown = json.loads(self._vty("bfdd", "show bfd peers json") or "[]")
        return {session["peer"]: session["remote-detect-multiplier"] * max(session["receive-interval"], session["remote-transmit-interval"])
                for session in shown if session["status"] == "up"}

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
        self._write("bird.conf", self._example("bird.conf").replace("neighbor ", "connect retry time 1; connect delay time 1; error wait time 1, 2; neighbor ")
                    if announces else self._of_router())
        self._spawn("bird", "-f", "-c", self._path("bird.conf"), "-s", self._path("bird.ctl"), "-P", self._path("bird.pid"))
        self._until("bird runs", lambda: os.path.exists(self._path("bird.ctl")))

    def _of_router(self):
        lines = [f"router id {self._address};", "protocol device { scan time 1; }",
                 "protocol kernel kernel4 { scan time 1; ipv4 { import none; export where source = RTS_BGP; }; }",
                 "protocol kernel kernel6 { scan time 1; ipv6 { import none; export where source = RTS_BGP; }; }"]
        if self._bfd:
            lines.append('protocol bfd { interface "*" { interval 50 ms; multiplier 3; }; }')
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
        """By protocol: its state, and the number of times that it has changed between two calls. Stays the same as
        long as the session stays. The time of the last change, as birdc prints it, varies by a millisecond."""
        shown = self._lab.network.run(self._role, "birdc", "-s", self._path("bird.ctl"), "show", "protocols").stdout
        found = {}
        for name, hours, minutes, seconds, state in re.findall(r"^(\S+)\s+BGP\s.*?(\d+):(\d+):([\d.]+)\s+(.*\S)", shown, re.MULTILINE):
            since_s = 3600 * int(hours) + 60 * int(minutes) + float(seconds)
            former_s, changes = self._since.get(name, (since_s, 0))
            self._since[name] = since_s, changes + (abs(since_s - former_s) > 0.5)
            found[name] = state, self._since[name][1]
        return found

    def bfd_detection_ms(self):
        shown = self._lab.network.run(self._role, "birdc", "-s", self._path("bird.ctl"), "show", "bfd", "sessions").stdout
        return {peer: round(1000 * float(timeout_s)) for peer, timeout_s in re.findall(r"^(\S+)\s+\S+\s+Up\b.*\s(\S+)$", shown, re.MULTILINE)}


class GoBgp(Daemon):
    """gobgpd as a router. It installs nothing in the kernel."""
    programs = why_not = None  # of obtain_gobgp()

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        if not self.programs:
            raise Skip(self.why_not)

    def start(self, announces):
        lines = ["[global.config]", f"as = {self._autonomous_system}", f'router-id = "{self._address}"']
        for peer, autonomous_system in self._peers.items():
            lines += ["[[neighbors]]", "[neighbors.config]", f'neighbor-address = "{peer}"', f"peer-as = {autonomous_system}",
                      "[neighbors.timers.config]", "connect-retry = 1", "hold-time = 3", "keepalive-interval = 1"]
            for family in ("ipv4-unicast", "ipv6-unicast"):
                lines += ["[[neighbors.afi-safis]]", "[neighbors.afi-safis.config]", f'afi-safi-name = "{family}"']
        self._spawn(os.path.join(self.programs, "gobgpd"), "-f", self._write("gobgpd.toml", "\n".join(lines) + "\n"),
                    "--api-hosts", "127.0.0.1:50051")
        self._until("gobgpd answers", lambda: self._ask("global").returncode == 0)

    def _ask(self, *words):
        return self._lab.network.run(self._role, os.path.join(self.programs, "gobgp"), *words)

    def _established(self):
        return len(re.findall(r"\bEstabl\b", self._ask("neighbor").stdout))

    def paths(self):
        """The best path by prefix: {"next_hop", "communities"}."""
        found = {}
        for family in ("ipv4", "ipv6"):
            for prefix, (best, *_) in json.loads(self._ask("global", "rib", "-a", family, "-j").stdout or "{}").items():
                attributes = {attribute["type"]: attribute for attribute in best["attrs"]}
                next_hop = attributes.get(3) or attributes[14]  # NEXT_HOP, MP_REACH_NLRI
                found[prefix.removesuffix("/32").removesuffix("/128")] = {
                    "next_hop": next_hop["nexthop"], "communities": attributes.get(8, {}).get("communities", [])}
        return found

    def learned(self):
        return {prefix: path["next_hop"] for prefix, path in self.paths().items()}
