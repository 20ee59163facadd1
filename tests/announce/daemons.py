# SPDX-License-Identifier: Apache-2.0
"""FRR and GoBGP as routing daemons, beside BIRD of lab/routing.py. GoBGP is only a router: it keeps what it
learns."""
import json
import os
import re
import shutil
import signal
import socket
import time

from fixture import Skip
from lab.routing import Bird, Daemon  # noqa: F401: Bird for the cases
from testbed.api_servers import NotToBeHad
from testbed.go_programs import GOBGP

FRR = "/usr/lib/frr"


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


def frr_data_plane(lab, role="gateway"):
    """The socket of bfdd for a data plane, with bfd="workers"."""
    return os.path.join(lab.run.file(f"frr-{role}"), "bfdd-dp.sock")


class Frr(Daemon):
    """zebra, bgpd and, with BFD, bfdd."""
    bfdd = None
    ecmp = False  # as a router: paths of several gateways are used together if their AS paths are equally long

    def start(self, announces):
        shutil.chown(self._folder, "frr", "frr")
        text = self._example("frr.conf") + self._timers() if announces else self._of_router()
        # In one file for all daemons, as on a host, the block for bfdd ends where that of bgpd begins.
        bfd = re.search(r"^bfd\n(?: .*\n)+", text, re.MULTILINE)
        self._write("zebra.conf", "")
        timers = re.sub(r"interval \d+", f"interval {self._bfd_interval_ms}", bfd[0]) if bfd else ""
        self._write("bfdd.conf", f"{timers}  detect-multiplier {self._bfd_multiplier}\n" if bfd else "")
        self._write("bgpd.conf", text.replace(bfd[0], "") if bfd else text)
        for daemon, options in (("zebra", ()), *((("bfdd", ()),) if self._bfd else ()), ("bgpd", ("-p", "179"))):
            if daemon == "bfdd" and announces and self._bfd == "workers":
                options = ("--dplaneaddr", "unix:/run/frr/bfdd-dp.sock")
            self._run(daemon, options)

    def _run(self, daemon, options):
        # User frr may not enter the folder of the run, only its own one in place of /run/frr.
        self._spawn(f"{FRR}/{daemon}", "-P", "0", *options, "--vty_socket", "/run/frr", "-i", f"/run/frr/{daemon}.pid",
                    "-z", "/run/frr/zserv.api", "-f", f"/run/frr/{daemon}.conf")
        self._until(f"{daemon} runs", lambda: os.path.exists(self._path(f"{daemon}.vty")))
        if daemon == "bfdd":
            self.bfdd, self._bfdd_options = self._processes[-1], options

    def kill(self):
        """It leaves its sockets, which start() would take for those of new daemons."""
        super().kill()
        for name in os.listdir(self._folder):
            if name.endswith((".vty", ".api")):
                os.remove(self._path(name))

    def restart_bfdd(self):
        """As after a crash: it leaves its sockets."""
        self.bfdd.send_signal(signal.SIGKILL)
        self.bfdd.wait()
        self._processes.remove(self.bfdd)
        os.remove(self._path("bfdd.vty"))
        self._run("bfdd", self._bfdd_options)

    def bfd_counters(self, peer):
        return next(counters for counters in json.loads(self._vty("bfdd", "show bfd peers counters json")) if counters["peer"] == peer)

    def _timers(self):
        """For a test, sessions come up at once."""
        return "\n".join([f"router bgp {self._autonomous_system}", " bgp router-id " + self._address,
                          " timers bgp 30 90" if self._bfd else " timers bgp 1 3",
                          *(f" neighbor {peer} timers connect 1" for peer in self._peers)]) + "\n"

    def _of_router(self):
        lines = ["bfd", " profile gateway", "  transmit-interval 50", "  receive-interval 50"] if self._bfd else []
        lines += [f"router bgp {self._autonomous_system}", " no bgp ebgp-requires-policy", " no bgp network import-check"]
        if self.ecmp:
            lines.append(" bgp bestpath as-path multipath-relax")
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

    def paths(self):
        """Next hops by IPv4 prefix, of all paths that the router has learned, best or not."""
        shown = json.loads(self._vty("bgpd", "show bgp ipv4 unicast json") or "{}")
        return {prefix.removesuffix("/32"): {hop["ip"] for path in paths for hop in path["nexthops"]}
                for prefix, paths in shown.get("routes", {}).items()}

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
