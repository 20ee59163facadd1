# SPDX-License-Identifier: Apache-2.0
"""The lab of the suite: two gateways with certificates and a link of their own, a plan with addresses and SNAT
addresses, and a router that has the VIPs and the SNAT addresses from both by BGP.

    client = router ---- uplink ---- gateway   -.
       |    \\----------- uplink ---- gateway-2  +-- switch -- backends
       |                             (10.80.8.0/30 between the gateways)
       `------------------------------------------- switch       replies to SNAT addresses"""
import contextlib
import functools
import os
import signal

from bgp_cases import GATEWAY_AS, SECOND_AS, start, start_beside
from daemons import frr_data_plane
from fixture import LB_IP, until
from kept_flows import PORT
from lab import gateway as gw
from lab import network as net
from lab.network import BACKENDS, command
from many_flows import start_servers
from manifests import endpoints, service
from share_cases import FIRST, OTHER_VIP, SECOND
from stopped_thread import stopped, threads_of
from wire import Wire

# In the prefixes that docs/examples/announce exports.
SNAT, OTHER_SNAT = "203.0.113.200", "203.0.113.201"
SNAT_ADDRESSES = "203.0.113.192/26"
FIRST_PEER, SECOND_PEER, PEER_PORT = "10.80.8.1", "10.80.8.2", 7443
REPLY_ROUTER = "10.80.2.254"
VIA_FIRST = {LB_IP: net.UPLINK, SNAT: net.UPLINK, OTHER_VIP: net.SECOND_UPLINK, OTHER_SNAT: net.SECOND_UPLINK}
# Each primary waits for copies that it cannot get (ShareReturn), and the heirs wait for 10 s.
VIA_HEIRS = {LB_IP: net.SECOND_UPLINK, SNAT: net.SECOND_UPLINK, OTHER_VIP: net.UPLINK, OTHER_SNAT: net.UPLINK}
LASTING_DETECT_MS = 10_000  # a busy machine ends no such BFD session
VIA_SECOND = dict.fromkeys(VIA_FIRST, net.SECOND_UPLINK)


class Certificates:
    """A CA, and a certificate for each name with its addresses. Gateways are servers and clients of each other."""

    def __init__(self, folder, **addresses_of):
        self._folder = folder
        os.mkdir(folder)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        command("openssl", "req", "-x509", *key, "-days", "1", "-subj", "/CN=ca", "-keyout", self.file("ca.key"), "-out", self.file("ca.pem"))
        for name, address in addresses_of.items():
            name = name.replace("_", "-")
            command("openssl", "req", *key, "-subj", f"/CN={name}", "-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.csr"))
            with open(self.file("extensions"), "w") as extensions:
                extensions.write(f"subjectAltName=DNS:{name},IP:{address}\n")
            command("openssl", "x509", "-req", "-days", "1", "-in", self.file(f"{name}.csr"), "-CA", self.file("ca.pem"), "-CAkey",
                    self.file("ca.key"), "-CAcreateserial", "-extfile", self.file("extensions"), "-out", self.file(f"{name}.pem"))

    def file(self, name):
        return os.path.join(self._folder, name)

    def options(self, name):
        return ["--listen", f"0.0.0.0:{PEER_PORT}", "--tls-cert", self.file(f"{name}.pem"), "--tls-key", self.file(f"{name}.key"),
                "--tls-client-ca", self.file("ca.pem")]


def objects(vips=(LB_IP, OTHER_VIP)):
    made = []
    for name, protocol in (("kept", "TCP"), ("kept-udp", "UDP")):
        made += [service(name, 80, protocol=protocol, ingress_ips=list(vips)), endpoints(name, port=PORT, protocol=protocol)]
    return made


def begin(lab, certificate_of_second=SECOND, until_complete=True, share_age_s=0, options=(), strays="", detect_ms=1000, **how):
    """`strays`: lines of the plan about them. Their link is that of the endpoints, on which no client is expected.
    detect_ms: of BFD. With 150, a machine that is busy as long moves flows that have no copies yet.
    how: of bring_up()."""
    tls = Certificates(lab.run.file("tls"), edge_1=FIRST_PEER, edge_2=SECOND_PEER, edge_9="10.80.8.9")
    plan = lab.run.file("shares")
    spread = {LB_IP} if "spread" in strays else set()
    vips = "" if spread else f" vips={LB_IP}"
    with open(plan, "w") as file:
        file.write(f"version 1\ngateway {FIRST} address={FIRST_PEER}:{PEER_PORT} link={net.CLUSTER}\n"
                   f"gateway {SECOND} address={SECOND_PEER}:{PEER_PORT} link={net.SECOND_CLUSTER}\n{strays}"
                   f"shares 2\nshare 0{vips} snat={SNAT} primary={FIRST} heir={SECOND}\n"
                   f"share 1 vips={OTHER_VIP} snat={OTHER_SNAT} primary={SECOND} heir={FIRST}\nend\n")
    common = ["--shares", plan, "--share-age", str(share_age_s), *(["--reverse-path", "loose"] if strays else []), *options]

    def of_bfd(role):
        return ["--bfd", f"frr:{frr_data_plane(lab, role)}", "--idle", "poll"] if how.get("bfd") == "workers" else []
    add_second(lab)
    lab.second.more_options = ["--vip-presence", "routes", *common, *of_bfd("gateway-2"), *tls.options(certificate_of_second)]
    bring_up(lab, [*common, *of_bfd("gateway"), *tls.options(FIRST)], detect_ms=detect_ms, **how)
    until_via(lab, VIA_FIRST if until_complete else VIA_HEIRS, spread)
    if until_complete:
        for gateway in (lab.gateway, lab.second):
            until_channel(gateway, "complete")
        until_heirs_are_ready(lab)


def until_heirs_are_ready(lab):
    until("the router has the routes of the heirs, too", lambda: lab.router.paths() == dict.fromkeys(
        VIA_FIRST, {net.UPLINK, net.SECOND_UPLINK}), patience_s=60)


def add_second(lab):
    lab.logs = (*lab.logs, "penstockd-2.log")
    lab.second = gw.Gateway(lab.network, lab.run, lab.gateway.build, place=gw.SECOND)


def bring_up(lab, options_of_first, bfd=True, detect_ms=150, faults=False, has_network=False, more_objects=()):
    """Network, servers, gateways and routing daemons. bfd: as of Daemon; "workers" run the sessions of both gateways.
    detect_ms: of BFD. faults: lab.wire is between the two.
    has_network: build_network() was called."""
    lab.build_network = (lambda: None) if has_network else functools.partial(build_network, lab, faults)
    start(lab, *objects(), *more_objects, peers={net.UPLINK: GATEWAY_AS, net.SECOND_UPLINK: SECOND_AS}, options=options_of_first, bfd=bfd,
          detect_ms=detect_ms)
    start_servers(lab)
    start_beside(lab, lab.second, SECOND_AS, net.SECOND_UPLINK, net.SECOND_CLIENT, bfd, detect_ms=detect_ms)
    route_to_other_uplink(lab)
    lab.network.ip("gateway-2", f"route add {net.CLIENT}/32 via {net.SECOND_CLIENT}")
    until(f"the router detects a loss within {detect_ms} ms", lambda: lab.router.bfd_detection_ms() == dict.fromkeys(
        (net.UPLINK, net.SECOND_UPLINK), detect_ms), patience_s=60)


def build_network(lab, faults=False):
    type(lab).build_network(lab)
    lab.network.add_gateway("gateway-2", "eth1", net.SECOND_CLIENT, net.SECOND_CLUSTER)
    if faults:
        lab.wire = Wire(lab.network)
    else:
        lab.network.join("gateway", "peers", "gateway-2", "peers")
    lab.network.ip("gateway", f"address add {FIRST_PEER}/30 dev peers")
    lab.network.ip("gateway-2", f"address add {SECOND_PEER}/30 dev peers")
    return_by_router(lab)


def route_to_other_uplink(lab):
    """The client's address on the uplink of the second gateway, for flows that were opened there."""
    lab.network.ip("gateway", f"route add {net.SECOND_CLIENT}/32 via {net.CLIENT}")


def return_by_router(lab):
    """Endpoints send replies to SNAT addresses by the router, which has them from the gateway that announces them. While it
    has no route, for a moment on a busy machine, it drops them: Linux ends a connection that is not accepted yet if it
    gets an ICMP error."""
    lab.network.join("client", "replies", "switch", "to-client")
    lab.network.ip("switch", "link set to-client master br0")
    lab.network.ip("client", f"address add {REPLY_ROUTER}/24 dev replies")
    lab.network.sysctl("client", "ipv4/ip_forward", 1)
    lab.network.ip("client", f"route add blackhole {SNAT_ADDRESSES}")
    for role in BACKENDS:
        lab.network.ip(role, f"route add {SNAT_ADDRESSES} via {REPLY_ROUTER}")


def until_via(lab, via, spread=()):
    """`spread`: VIPs that the router may have from any gateway."""
    def is_there():
        learned = lab.router.learned()
        return learned.keys() == via.keys() and all(vip in spread or learned[vip] == hop for vip, hop in via.items())
    return until(f"the router has {via}", is_there, patience_s=60)


def peer_of(gateway):
    """What a gateway shows of the other one."""
    shown = gateway.json("get", "gateways")
    return next(other for other in shown if other["name"] != gateway.name)


def until_channel(gateway, state, copies=0):
    def is_there():
        peer = peer_of(gateway)
        return peer.get("channel") == state and int(peer.get("copies", 0)) >= copies
    return until(f"{gateway.name} has {copies} copies, channel {state}", is_there, patience_s=60, step_s=0.1)


class Killed:
    """penstockd of the first gateway ends by kill -9."""

    @staticmethod
    def lose(lab):
        lab.gateway.end_daemon()


class Frozen:
    """All processes of the first gateway stop, as those of a virtual machine that is paused. Its links stay up."""

    @staticmethod
    def lose(lab):
        for process in (lab.gateway.daemon, *lab.announcer._processes):
            os.killpg(process.pid, signal.SIGSTOP)


class Stopped:
    """Only penstockd of the first gateway stops. Its workers run the BFD sessions."""

    @staticmethod
    def lose(lab):
        os.kill(lab.gateway.daemon.pid, signal.SIGSTOP)

    @staticmethod
    def mend(lab):
        os.kill(lab.gateway.daemon.pid, signal.SIGCONT)


class StalledWorker:
    """The worker of the first gateway stops, as a defect in it would do. All else of the gateway continues."""

    @staticmethod
    def lose(lab):
        [worker] = threads_of(lab.gateway.daemon.pid, "rte-worker")
        lab.stalled = contextlib.ExitStack()
        lab.stalled.enter_context(stopped(worker))

    @staticmethod
    def mend(lab):
        lab.stalled.close()


LOSSES = {"killed": Killed, "frozen": Frozen}
LOSSES_OF_WORKERS = {"stopped as a process": Stopped, "stalled": StalledWorker}
