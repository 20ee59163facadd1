# SPDX-License-Identifier: Apache-2.0
"""The client's namespace is the router: it has no static route to a VIP, and reaches only what it learned by BGP.

Time limits are three times what was measured at a load of 6 to 11 on two processors."""
import os
import signal
import socket
import threading
import time

from daemons import Bird, Frr, GoBgp
from fixture import LB_IP, VIP_6, Background, case, check, equal, until
from lab import gateway as gw
from lab import network as net
from lab.network import inside
from manifests import endpoints, service
from route_monitor import BGP_ROUTES, BIRD_ROUTES, VIP_ROUTES, Monitor

DAEMONS = {"frr": Frr, "bird": Bird, "gobgp": GoBgp}
# BFD of 50 ms x 3, until the router changed its kernel routes.
BFD_LIMIT_S = 3 * 0.221
GATEWAY_AS, SECOND_AS, ROUTER_AS = 65001, 65002, 65000
TOTAL_REQUESTS = 10_000  # across a drain
GRACEFUL_SHUTDOWN = 65535 << 16  # RFC 8326
SLICES = (endpoints("web"), endpoints("web", family="IPv6"))


def web(vips=(LB_IP, VIP_6), name="web"):
    return service(name, 80, ingress_ips=list(vips), families=("IPv4", "IPv6"))


def start(lab, *objects, announcer="frr", router="frr", peers=None, options=(), ecmp=False, bfd=False, **of_bfd):
    """ecmp: of a router by FRR."""
    lab.gateway.more_options = ["--vip-presence", "routes", *options]
    lab.start(*objects)
    for prefix in net.EXTERNAL_RANGES:
        lab.network.ip("client", f"route del {prefix}")
    lab.announcer = DAEMONS[announcer](lab, "gateway", net.UPLINK, GATEWAY_AS, {net.CLIENT: ROUTER_AS}, bfd, **of_bfd)
    lab.router = DAEMONS[router](lab, "client", net.CLIENT, ROUTER_AS, peers or {net.UPLINK: GATEWAY_AS}, bfd, **of_bfd)
    lab.router.ecmp = ecmp
    lab.router.start(announces=False)
    lab.announcer.start(announces=True)
    lab.announcer.until_established()


def start_gateway_beside(lab, gateway):
    lab.run.reserve_hugepages(gateway.memory_mb)
    gateway.start_daemon()
    lab.network.start(gateway.role, [gateway.program("penstock-sync"), "--manifests", lab.manifests, "--gateway", gateway.address,
                                     "--allowed-external-cidrs", gw.ALLOWED_EXTERNAL_CIDRS, "--listen", "off", "--http", "off"],
                      f"penstock-sync-{gateway.name}.log")


def start_beside(lab, gateway, autonomous_system, uplink, client, bfd=False, **of_bfd):
    """Starts one more gateway, with a penstock-sync and a routing daemon of its own. Returns the daemon. client: address of
    the router on the gateway's wire."""
    start_gateway_beside(lab, gateway)
    daemon = Frr(lab, gateway.role, uplink, autonomous_system, {client: ROUTER_AS}, bfd, **of_bfd)
    daemon.start(announces=True)
    daemon.until_established()
    return daemon


def is_learned(routes, vips, via):
    return set(routes) == set(vips) and (not via or set(routes.values()) == {via})


def until_learned(lab, *vips, via=None):
    return until(f"the router has exactly {', '.join(vips) or 'nothing'}",
                 lambda: is_learned(lab.router.learned(), vips, via), patience_s=60)


@case(announcer=("frr", "bird"), router=("frr", "bird"))
def a_vip_is_announced_while_its_service_is_served_PRESENCE001_PRESENCE002(lab):
    start(lab, announcer=lab.variant["announcer"], router=lab.variant["router"])
    equal(lab.router.learned(), {}, "routes before a Service is served")
    lab.apply(web(), *SLICES)
    announced_ms = until_learned(lab, LB_IP, VIP_6)
    equal(lab.get(LB_IP).status, 200, "over the learned route")
    equal(lab.get(VIP_6).status, 200, "over the learned route, IPv6")
    lab.apply(web([VIP_6]), *SLICES)
    withdrawn_ms = until_learned(lab, VIP_6)
    equal(lab.get(VIP_6).status, 200, "the VIP that stays")
    lab.remarks.append(f"from the manifest to the router's kernel {announced_ms:.0f} ms, withdrawn after {withdrawn_ms:.0f} ms")


@case(announcer=("frr", "bird"))
def gobgp_learns_levels_and_withdrawals_PRESENCE002_PRESENCE003(lab):
    start(lab, announcer=lab.variant["announcer"], router="gobgp")
    equal(lab.router.learned(), {}, "routes before a Service is served")
    lab.apply(web(), *SLICES)
    announced_ms = until_learned(lab, LB_IP, VIP_6)
    equal(lab.router.paths()[LB_IP], {"next_hop": net.UPLINK, "communities": []}, "path")
    lab.network.ip("client", f"route add {LB_IP}/32 via {net.UPLINK}")  # GoBGP installs none
    with Background(lambda: lab.get(LB_IP)):  # traffic that does not leave: metric 900 lasts 10 s
        equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
        until("both paths have the community graceful shutdown",
              lambda: [path["communities"] for path in lab.router.paths().values()] == 2 * [[GRACEFUL_SHUTDOWN]], patience_s=60)
        until_learned(lab)
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    until_learned(lab, LB_IP, VIP_6)
    lab.apply(web([VIP_6]), *SLICES)
    withdrawn_ms = until_learned(lab, VIP_6)
    lab.remarks.append(f"from the manifest to GoBGP {announced_ms:.0f} ms, withdrawn after {withdrawn_ms:.0f} ms")


class SilentLink:
    """Between the gateway and the router. Neither end loses its carrier."""

    @staticmethod
    def cut(lab):
        for words in (("table", "netdev", "cut"),
                      ("chain", "netdev", "cut", "in", "{ type filter hook ingress device eth0 priority 0; policy drop; }")):
            equal(lab.network.run("client", "nft", "add", *words).returncode, 0, "exit code of nft")

    @staticmethod
    def mend(lab):
        equal(lab.network.run("client", "nft", "delete", "table", "netdev", "cut").returncode, 0, "exit code of nft")


class KilledGateway:
    @staticmethod
    def cut(lab):
        lab.gateway.end_daemon()

    @staticmethod
    def mend(lab):
        lab.gateway.start_daemon()


class FrozenGateway:
    @staticmethod
    def cut(lab):
        os.kill(lab.gateway.daemon.pid, signal.SIGSTOP)

    @staticmethod
    def mend(lab):
        os.kill(lab.gateway.daemon.pid, signal.SIGCONT)


LOSSES = {"killed": KilledGateway, "frozen": FrozenGateway, "silent-link": SilentLink}


@case(announcer=("frr", "bird"), loss=tuple(LOSSES))
def bfd_ends_the_routes_of_a_lost_gateway_PRESENCE002(lab):
    """The hold time is 90 s or longer, so that only BFD can be the reason."""
    announcer, loss = lab.variant["announcer"], LOSSES[lab.variant["loss"]]
    start(lab, web(), *SLICES, announcer=announcer, router=announcer, bfd=True)
    until_learned(lab, LB_IP, VIP_6)
    until("the router detects a loss within 50 ms x 3", lambda: lab.router.bfd_detection_ms() == {net.UPLINK: 150}, patience_s=60)
    with Monitor(lab.network.namespace("client"), BGP_ROUTES, BIRD_ROUTES) as monitor:
        lost_at = time.time()
        loss.cut(lab)
        until("the router has no route", lambda: {address for _, what, address, _ in monitor.changes if what == "deleted"} == {LB_IP, VIP_6},
              patience_s=BFD_LIMIT_S)
    lab.remarks.append(f"gone from the router's kernel after {(monitor.last('deleted') - lost_at) * 1000:.0f} ms; "
                       f"limit {BFD_LIMIT_S * 1000:.0f} ms in which no task waits for a processor")
    loss.mend(lab)
    until_learned(lab, LB_IP, VIP_6)


@case(announcer=("frr", "bird"))
def a_gateway_that_dies_is_withdrawn_PRESENCE002(lab):
    start(lab, web(), *SLICES, announcer=lab.variant["announcer"])
    until_learned(lab, LB_IP, VIP_6)
    lab.gateway.end_daemon()
    # The twin ends with the process, and with it the session: the router's hold time of 3 s ends the routes.
    gone_ms = until_learned(lab)
    lab.remarks.append(f"gone from the router after {gone_ms:.0f} ms, with a hold time of 3 s")
    lab.gateway.start_daemon()
    until_learned(lab, LB_IP, VIP_6)
    equal(lab.get(LB_IP).status, 200, "after the restart")


@case()
def ten_thousand_vips_are_announced_and_withdrawn_PRESENCE002(lab):
    vips = [f"203.0.113.{i}" for i in range(250)]
    many = [f"2001:db8:80:1::{i:x}" for i in range(1, 9751)]
    per_service = 500
    services = [service(f"many-{i}", 80, ingress_ips=many[i * per_service:(i + 1) * per_service], families=("IPv6",))
                for i in range((len(many) + per_service - 1) // per_service)]
    start(lab, announcer="bird", router="bird")
    lab.apply(service("web", 80, ingress_ips=vips), *services, endpoints("web"))
    announced_ms = until("the router has 10,000 VIPs", lambda: len(lab.router.learned()) == 10_000, patience_s=120)
    equal(lab.get(vips[-1]).status, 200, "the last VIP")
    lab.apply(endpoints("web"))
    withdrawn_ms = until("the router has none", lambda: not lab.router.learned(), patience_s=120)
    lab.remarks.append(f"from the manifests to the router's kernel {announced_ms:.0f} ms, withdrawn after {withdrawn_ms:.0f} ms")
    lab.apply(service("web", 80, ingress_ips=vips), *services, endpoints("web"))
    until("the gateway has 10,000 routes again", lambda: len(gateway_routes(lab)) == 10_000, patience_s=120)
    with Monitor(lab.network.namespace("gateway"), VIP_ROUTES) as monitor:
        lost_at = time.time()
        lab.network.ip("client", "link set eth0 down")
        until("the gateway has no route", lambda: not gateway_routes(lab), patience_s=10)
    deleted = [at for at, what, _, _ in monitor.changes if what == "deleted"]
    equal(len(deleted), 10_000, "deleted routes")
    lab.remarks.append(f"after the loss of the link, the first of 10,000 routes is deleted after {(deleted[0] - lost_at) * 1000:.0f} ms "
                       f"and the last after {(deleted[-1] - lost_at) * 1000:.0f} ms, within {(deleted[-1] - deleted[0]) * 1000:.0f} ms")


def gateway_routes(lab):
    namespace = lab.network.namespace("gateway")
    return [line for family in ("-4", "-6") for line in net.command("ip", "-n", namespace, family, "route", "show", "proto", str(VIP_ROUTES)).splitlines()]


class Requests:
    """Clients that open a connection for each request, until they are stopped."""
    CLIENTS = 4

    def __init__(self, lab, vip):
        self.done = 0
        self.failed = []  # (start, error)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._loop, args=(lab.network.namespace("client"), vip)) for _ in range(self.CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _loop(self, namespace, vip):
        with inside(namespace):
            while not self._over.is_set():
                began = time.time()
                try:
                    self._request(vip)
                    error = None
                except OSError as caught:
                    error = caught
                with self._lock:
                    self.done += error is None
                    if error:
                        self.failed.append((began, repr(error)))

    @staticmethod
    def _request(vip):
        with socket.create_connection((vip, 80), timeout=20) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
            answer = b""
            while received := client.recv(1 << 16):
                answer += received
        if not answer.startswith((b"HTTP/1.0 200", b"HTTP/1.1 200")):
            raise OSError(f"answer {answer[:40]}")

    def stop(self):
        self._over.set()
        for thread in self._threads:
            thread.join()


@case()
def a_drain_moves_the_vip_to_another_gateway_PRESENCE003(lab):
    """A request that starts after the router has moved never fails. The router moves as soon as the metric changes.
    Packets of a connection under way then reach the other gateway, which does not have it."""
    second = gw.Gateway(lab.network, lab.run, lab.gateway.build, place=gw.SECOND)
    second.more_options = ["--vip-presence", "routes"]
    start(lab, service("web", 80, ingress_ips=[LB_IP]), endpoints("web"),
          peers={net.UPLINK: GATEWAY_AS, net.SECOND_UPLINK: SECOND_AS})
    lab.network.add_gateway("gateway-2", "eth1", net.SECOND_CLIENT, net.SECOND_CLUSTER)
    until_learned(lab, LB_IP, via=net.UPLINK)
    start_beside(lab, second, SECOND_AS, net.SECOND_UPLINK, net.SECOND_CLIENT)
    until("the second gateway serves the VIP", lambda: any(status.get("listening") for status in second.services().values()), patience_s=60)
    requests = Requests(lab, LB_IP)
    half = TOTAL_REQUESTS // 2
    try:
        until("requests pass the first gateway", lambda: requests.done >= half, patience_s=150)
        with Monitor(lab.network.namespace("client"), BGP_ROUTES) as monitor:
            drained_at = time.time()
            equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
            until("the router prefers the second gateway", lambda: lab.router.learned() == {LB_IP: net.SECOND_UPLINK}, patience_s=60)
            still = gateway_routes(lab)
        at_move = requests.done
        until("requests pass the second gateway", lambda: requests.done >= at_move + half, patience_s=150)
    finally:
        requests.stop()
    equal([what for _, what, _, _ in monitor.changes], ["added"], "changes of the router's route: replaced, never absent")
    moved_at = monitor.last("added")
    after = [(began - moved_at, error) for began, error in requests.failed if began > moved_at]
    equal(after, [], "failed requests that started after the move, with their start in seconds")
    check(len(requests.failed) <= Requests.CLIENTS, f"more failed than were under way: {requests.failed[:8]}")
    check(all("metric 900" in line for line in still), f"routes at the move: {still}")
    lab.remarks.append(f"{requests.done} requests; moved {(moved_at - drained_at) * 1000:.0f} ms after the command; of "
                       f"{Requests.CLIENTS} clients' requests under way {len(requests.failed)} failed, which had started "
                       f"{[round(1000 * (moved_at - began)) for began, _ in requests.failed]} ms before")
