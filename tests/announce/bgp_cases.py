# SPDX-License-Identifier: Apache-2.0
"""The client's namespace is the router: it has no static route to a VIP, and reaches only what it learned by BGP.

Time limits are three times what was measured at a load of 6 to 11 on two processors."""
import json
import os
import signal
import threading
import time

from daemons import Bird, Frr
from fixture import LB_IP, VIP_6, case, check, equal, until
from lab import gateway as gw
from lab import network as net
from manifests import endpoints, service

DAEMONS = {"frr": Frr, "bird": Bird}
GATEWAY_AS, SECOND_AS, ROUTER_AS = 65001, 65002, 65000
SLICES = (endpoints("web"), endpoints("web", family="IPv6"))


def web(vips=(LB_IP, VIP_6), name="web"):
    return service(name, 80, ingress_ips=list(vips), families=("IPv4", "IPv6"))


def start(lab, *objects, announcer="frr", router="frr", peers=None, options=()):
    lab.gateway.more_options = ["--vip-presence", "routes", *options]
    lab.start(*objects)
    for prefix in net.EXTERNAL_RANGES:
        lab.network.ip("client", f"route del {prefix}")
    lab.announcer = DAEMONS[announcer](lab, "gateway", net.UPLINK, GATEWAY_AS, {net.CLIENT: ROUTER_AS})
    lab.router = DAEMONS[router](lab, "client", net.CLIENT, ROUTER_AS, peers or {net.UPLINK: GATEWAY_AS})
    lab.router.start(announces=False)
    lab.announcer.start(announces=True)
    lab.announcer.until_established()


def learned(lab):
    """Next hop by prefix, of the router's routes that a routing daemon has installed."""
    routes = [route for family in ("-4", "-6") for protocol in ("bgp", "bird")
              for route in json.loads(net.command("ip", "-n", lab.network.namespace("client"), "-json", family, "route", "show", "proto", protocol) or "[]")]
    return {route["dst"]: route.get("gateway", "") for route in routes}


def until_learned(lab, *vips, via=None):
    return until(f"the router has exactly {', '.join(vips) or 'nothing'}",
                 lambda: set(learned(lab)) == set(vips) and (not via or set(learned(lab).values()) == {via}), patience_s=60)


@case(announcer=("frr", "bird"), router=("frr", "bird"))
def a_vip_is_announced_while_its_service_is_served_PRESENCE001_PRESENCE002(lab):
    start(lab, announcer=lab.variant["announcer"], router=lab.variant["router"])
    equal(learned(lab), {}, "routes before a Service is served")
    lab.apply(web(), *SLICES)
    announced_ms = until_learned(lab, LB_IP, VIP_6)
    equal(lab.get(LB_IP).status, 200, "over the learned route")
    equal(lab.get(VIP_6).status, 200, "over the learned route, IPv6")
    lab.apply(web([VIP_6]), *SLICES)
    withdrawn_ms = until_learned(lab, VIP_6)
    equal(lab.get(VIP_6).status, 200, "the VIP that stays")
    lab.remarks.append(f"from the manifest to the router's kernel {announced_ms:.0f} ms, withdrawn after {withdrawn_ms:.0f} ms")


@case(announcer=("frr", "bird"))
def a_gateway_that_dies_is_withdrawn_PRESENCE002(lab):
    start(lab, web(), *SLICES, announcer=lab.variant["announcer"])
    until_learned(lab, LB_IP, VIP_6)
    os.kill(lab.gateway.daemon.pid, signal.SIGKILL)
    lab.gateway.daemon.wait()
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
    announced_ms = until("the router has 10,000 VIPs", lambda: len(learned(lab)) == 10_000, patience_s=120)
    equal(lab.get(vips[-1]).status, 200, "the last VIP")
    lab.apply(endpoints("web"))
    withdrawn_ms = until("the router has none", lambda: not learned(lab), patience_s=120)
    lab.remarks.append(f"from the manifests to the router's kernel {announced_ms:.0f} ms, withdrawn after {withdrawn_ms:.0f} ms")


class Requests:
    """One client that opens a connection for each request, until it is stopped."""

    def __init__(self, lab, vip):
        self.done, self.failed, self._over = 0, [], threading.Event()
        self._thread = threading.Thread(target=self._loop, args=(lab, vip))
        self._thread.start()

    def _loop(self, lab, vip):
        while not self._over.is_set():
            try:
                equal(lab.get(vip, timeout_s=5).status, 200, "status")
                self.done += 1
            except OSError as error:
                self.failed.append(f"{time.monotonic():.3f}: {error}")

    def stop(self):
        self._over.set()
        self._thread.join()


@case()
def a_drain_moves_the_vip_to_another_gateway_PRESENCE003(lab):
    """New connections never fail. A connection in progress at the moment of the move reaches the other gateway,
    which does not have it: at most the one request that is under way may fail."""
    second = gw.Gateway(lab.network, lab.run, lab.gateway.build, place=gw.SECOND)
    second.more_options = ["--vip-presence", "routes"]
    start(lab, service("web", 80, ingress_ips=[LB_IP]), endpoints("web"),
          peers={net.UPLINK: GATEWAY_AS, net.SECOND_UPLINK: SECOND_AS})
    lab.network.add_second_gateway(LB_IP)
    lab.network.ip("client", f"route del {LB_IP}/32 via {net.SECOND_UPLINK}")
    until_learned(lab, LB_IP, via=net.UPLINK)
    lab.run.reserve_hugepages(second.memory_mb)
    second.start_daemon()
    lab.network.start("gateway-2", [second.program("penstock-sync"), "--manifests", lab.manifests, "--gateway", second.address, "--listen", "off",
                                    "--http", "off"], "penstock-sync-2.log")
    beside = Frr(lab, "gateway-2", net.SECOND_UPLINK, SECOND_AS, {net.SECOND_CLIENT: ROUTER_AS})
    beside.start(announces=True)
    beside.until_established()
    until("the second gateway serves the VIP", lambda: any(status.get("listening") for status in second.services().values()), patience_s=60)
    requests = Requests(lab, LB_IP)
    try:
        until("requests pass the first gateway", lambda: requests.done >= 100, patience_s=60)
        equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
        moved_ms = until("the router prefers the second gateway", lambda: learned(lab) == {LB_IP: net.SECOND_UPLINK}, patience_s=60)
        at_move = requests.done
        until("requests pass the second gateway", lambda: requests.done >= at_move + 1_000, patience_s=120)
    finally:
        requests.stop()
    check(len(requests.failed) <= 1, f"failed requests: {requests.failed[:5]}")
    lab.remarks.append(f"{requests.done} requests, {len(requests.failed)} failed; moved {moved_ms:.0f} ms after the command")
