# SPDX-License-Identifier: Apache-2.0
"""Two gateways on one link without routers: one of them answers ARP and ND for the addresses of a share, the other one
takes over.

    client --- link (a bridge) --- gateway   -.
                         `-------- gateway-2  +-- switch -- backends
                                (10.80.8.0/30 between the gateways)"""
import contextlib
import functools
import os
import shutil
import signal
import socket
import struct
import time

from bgp_cases import start_gateway_beside
from daemons import Frr
from fixture import case, check, equal, until
from kept_flows import PORT, KeptFlows, start_servers
from lab import gateway as gw
from lab import network as net
from lab.network import inside
from manifests import endpoints, service
from share_cases import FIRST, SECOND, read
from two_gateways import FIRST_PEER, PEER_PORT, SECOND_PEER, Certificates, until_channel

FIRST_UP, SECOND_UP = net.UPLINK, "10.80.1.3"
FIRST_UP6, SECOND_UP6 = net.UPLINK6, "fd00:80:1::3"
SECOND_CLUSTER6 = "fd00:80:2::2"
# Of share 0, whose primary is the first gateway, and of share 1.
VIP, VIP6, SNAT, SNAT6 = "10.80.1.80", "fd00:80:1::80", "10.80.2.200", "fd00:80:2::200"
OTHER_VIP, OTHER_SNAT = "10.80.1.81", "10.80.2.201"
DETECT_MS = 150
PLACE = gw.Place("gateway-2", SECOND, (("gw-up", "uplink0", f"{SECOND_UP}/24,{SECOND_UP6}/64"),
                                       ("gw-cl", "cluster0", f"{net.SECOND_CLUSTER}/24,{SECOND_CLUSTER6}/64")), "penstockd-2")


class Neighbour(Frr):
    """bfdd with a session of the workers to the other gateway, and no routing."""

    def __init__(self, lab, role, address, peer):
        super().__init__(lab, role, address, 0, {peer: 0}, "workers", DETECT_MS)

    @classmethod
    def option(cls, lab, role):
        folder = lab.run.file(f"{cls.__name__.lower()}-{role}")
        return ["--bfd", f"frr:{os.path.join(folder, 'bfdd-dp.sock')}"]

    def start(self):
        shutil.chown(self._folder, "frr", "frr")
        [peer] = self._peers
        self._write("zebra.conf", "")
        self._write("bfdd.conf", f"bfd\n peer {peer} local-address {self._address} interface uplink0\n"
                                 f"  transmit-interval {self._bfd_interval_ms}\n  receive-interval {self._bfd_interval_ms}\n"
                                 f"  detect-multiplier {self._bfd_multiplier}\n")
        self._run("zebra", ())
        self._run("bfdd", ("--dplaneaddr", "unix:/run/frr/bfdd-dp.sock"))


def build_network(lab):
    type(lab).build_network(lab)
    network = lab.network
    network.ip("client", "link del eth0")
    network.add("link")
    network.ip("link", "link add br0 type bridge mcast_snooping 0\nlink set br0 up")
    network.add("gateway-2")
    for role, name in (("client", "eth0"), ("gateway", "gw-up"), ("gateway-2", "gw-up")):
        network.join(role, name, "link", f"to-{role}")
        network.ip("link", f"link set to-{role} master br0")
    network.join("gateway-2", "gw-cl", "switch", "to-gateway-2")
    network.ip("switch", "link set to-gateway-2 master br0")
    network.ip("client", f"address add {net.CLIENT}/24 dev eth0\naddress add {net.CLIENT6}/64 dev eth0")
    network.join("gateway", "peers", "gateway-2", "peers")
    network.ip("gateway", f"address add {FIRST_PEER}/30 dev peers")
    network.ip("gateway-2", f"address add {SECOND_PEER}/30 dev peers")


def objects():
    made = []
    for name, protocol in (("kept", "TCP"), ("kept-udp", "UDP")):
        made += [service(name, 80, protocol=protocol, ingress_ips=[VIP, VIP6, OTHER_VIP], families=("IPv4", "IPv6")),
                 endpoints(name, port=PORT, protocol=protocol), endpoints(name, port=PORT, protocol=protocol, family="IPv6")]
    return made


def begin(lab, options=()):
    plan = lab.run.file("shares")
    with open(plan, "w") as file:
        file.write(f"version 1\ngateway {FIRST} address={FIRST_PEER}:{PEER_PORT} link={FIRST_UP}\n"
                   f"gateway {SECOND} address={SECOND_PEER}:{PEER_PORT} link={SECOND_UP}\nshares 2\n"
                   f"share 0 vips={VIP},{VIP6} snat={SNAT},{SNAT6} primary={FIRST} heir={SECOND}\n"
                   f"share 1 vips={OTHER_VIP} snat={OTHER_SNAT} primary={SECOND} heir={FIRST}\nend\n")
    tls = Certificates(lab.run.file("tls"), edge_1=FIRST_PEER, edge_2=SECOND_PEER)
    common = ["--vip-presence", "arp", "--shares", plan, "--share-age", "0", "--idle", "poll", *options]
    lab.logs = (*lab.logs, "penstockd-2.log")
    lab.build_network = functools.partial(build_network, lab)
    lab.gateway.more_options = [*common, *Neighbour.option(lab, "gateway"), *tls.options(FIRST)]
    lab.second = gw.Gateway(lab.network, lab.run, lab.gateway.build, place=PLACE)
    lab.second.more_options = [*common, *Neighbour.option(lab, "gateway-2"), *tls.options(SECOND)]
    lab.start(*objects())
    start_servers(lab.network)
    start_gateway_beside(lab, lab.second)
    lab.neighbours = [Neighbour(lab, "gateway", FIRST_UP, SECOND_UP), Neighbour(lab, "gateway-2", SECOND_UP, FIRST_UP)]
    for neighbour in lab.neighbours:
        neighbour.start()
    until_held(lab, first={0}, second={1})
    until("the BFD sessions are up", lambda: all(session_is_up(gateway) for gateway in (lab.gateway, lab.second)), patience_s=60)
    for gateway in (lab.gateway, lab.second):
        until_channel(gateway, "complete")


def session_is_up(gateway):
    return any(session["state"] == "up" for session in gateway.json("get", "bfd"))


def shares_held(gateway):
    return {int(share.get("number", 0)) for share in gateway.json("get", "shares") if share.get("holds")}


def answered(gateway):
    """Addresses for which the workers answer."""
    return {vip["address"] for vip in gateway.json("get", "vips") if vip["presence"] == "arp"}


def until_held(lab, **held):
    """held: shares by gateway, "first" or "second"."""
    gateways = {"first": lab.gateway, "second": lab.second}
    until(f"shares are held as {held}", lambda: all(shares_held(gateways[name]) == shares for name, shares in held.items()),
          patience_s=60, step_s=0.05)


def who_answers(lab, vip):
    """The Ethernet addresses of all answers to an ARP request of the client, within half a second of the first one."""
    with inside(lab.network.namespace("client")):
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
        link.bind(("eth0", 0x0806))
    own = link.getsockname()[4]
    request = struct.pack("!6s6sHHHBBH6s4s6s4s", b"\xff" * 6, own, 0x0806, 1, 0x0800, 6, 4, 1, own, socket.inet_aton(net.CLIENT),
                          b"\0" * 6, socket.inet_aton(vip))
    found = set()
    with contextlib.closing(link):
        def has_answer():
            link.send(request)
            collect(0.1)
            return found

        def collect(seconds):
            ends = time.monotonic() + seconds
            while (left := ends - time.monotonic()) > 0:
                link.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    frame = link.recv(100)
                    if frame[20:22] == b"\0\2" and frame[28:32] == socket.inet_aton(vip):
                        found.add(frame[22:28].hex(":"))
        until(f"a host answers for {vip}", has_answer, patience_s=30)
        link.send(request)
        collect(0.5)
    return found


def one_answers(lab, gateway, *vips):
    [port] = [port for port in gateway.json("get", "ports") if port["twin"] == "uplink0"]
    for vip in vips:
        equal(who_answers(lab, vip), {port["mac"]}, f"who answers for {vip}")


@contextlib.contextmanager
def kept_flows(lab):
    """Flows to the VIPs of share 0, which are copied."""
    flows = KeptFlows(lab)
    for kind, stream, vip in (("tcp", True, VIP), ("udp", False, VIP), ("tcp6", True, VIP6), ("other", True, OTHER_VIP)):
        flows.open(kind, stream, 10, vip, 80)
    with flows:
        flows.until_all_answered()
        until_channel(lab.second, "complete", copies=30)
        until_channel(lab.gateway, "complete", copies=10)
        yield flows


def all_continue(flows):
    flows.until_all_answered()
    equal(flows.findings(), {}, "flows that did not continue as they began")


@case()
def one_gateway_answers_for_a_share_and_its_heir_after_kill_9_PRESENCE006(lab):
    begin(lab)
    equal(answered(lab.gateway), {VIP, VIP6, SNAT, SNAT6}, "answered by the first gateway")
    equal(answered(lab.second), {OTHER_VIP, OTHER_SNAT}, "answered by the second gateway")
    one_answers(lab, lab.gateway, VIP)
    one_answers(lab, lab.second, OTHER_VIP)
    with kept_flows(lab) as flows:
        flows.longest_gap_s = 0.0
        os.kill(lab.gateway.daemon.pid, signal.SIGKILL)
        lab.gateway.daemon.wait()
        until_held(lab, second={0, 1})
        all_continue(flows)
        gap_ms = 1000 * flows.longest_gap_s
        one_answers(lab, lab.second, VIP, OTHER_VIP)
        lab.gateway.start_daemon()
        until_held(lab, first={0}, second={1})
        all_continue(flows)
        one_answers(lab, lab.gateway, VIP)
    exposed = lab.network.run("gateway", "curl", "-s", "http://127.0.0.1:9105/metrics").stdout
    check('penstock_share_holds{share="0"} 1\n' in exposed and 'penstock_share_holds{share="1"} 0\n' in exposed, "metric of the holder")
    lab.remarks.append(f"with BFD of {DETECT_MS} ms, the longest time without any answer is {gap_ms:.0f} ms")


@case()
def a_gateway_that_was_paused_returns_behind_its_heir_PRESENCE006(lab):
    begin(lab)
    with kept_flows(lab) as flows:
        frozen = [lab.gateway.daemon, *lab.neighbours[0]._processes]
        for process in frozen:
            os.killpg(process.pid, signal.SIGSTOP)
        try:
            until_held(lab, second={0, 1})
            all_continue(flows)
        finally:
            for process in frozen:
                os.killpg(process.pid, signal.SIGCONT)
        until_held(lab, first={0}, second={1})
        all_continue(flows)
    one_answers(lab, lab.gateway, VIP)
    one_answers(lab, lab.second, OTHER_VIP)


@case()
def gateways_without_reports_keep_what_they_hold_PRESENCE006(lab):
    begin(lab)
    with kept_flows(lab) as flows:
        lab.network.ip("gateway", "link set peers down")
        for neighbour in lab.neighbours:
            neighbour.bfdd.send_signal(signal.SIGKILL)
            neighbour.bfdd.wait()
        # Sessions outlive bfdd by 15 s.
        until("there is no session", lambda: not any(session_is_up(gateway) for gateway in (lab.gateway, lab.second)), patience_s=60)
        until("the heir has found out that the primary answers", lambda: "the other gateway answers for them on a link" in read(lab, "penstockd-2.log"),
              patience_s=60)
        equal((shares_held(lab.gateway), shares_held(lab.second)), ({0}, {1}), "shares that the gateways hold")
        one_answers(lab, lab.gateway, VIP)
        one_answers(lab, lab.second, OTHER_VIP)
        all_continue(flows)
        lab.network.ip("gateway", "link set peers up")
        for gateway in (lab.gateway, lab.second):
            until_channel(gateway, "complete")
        equal((shares_held(lab.gateway), shares_held(lab.second)), ({0}, {1}), "shares that the gateways hold afterwards")


@case()
def a_drain_and_a_lost_link_move_a_share_PRESENCE006_DRAIN006(lab):
    begin(lab)
    with kept_flows(lab) as flows:
        equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
        until_held(lab, first=set(), second={0, 1})
        one_answers(lab, lab.second, VIP)
        all_continue(flows)
        equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
        until_held(lab, first={0}, second={1})
        all_continue(flows)
        lab.network.ip("link", "link set to-gateway down")
        until_held(lab, first=set(), second={0, 1})
        all_continue(flows)
        lab.network.ip("link", "link set to-gateway up")
        until_held(lab, first={0}, second={1})
        all_continue(flows)
    one_answers(lab, lab.gateway, VIP)
