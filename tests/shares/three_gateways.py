# SPDX-License-Identifier: Apache-2.0
"""The lab of two_gateways.py with three gateways: a plan by hash, a spread VIP that the router has from all of them
by ECMP, and a switch between the gateways. Addresses of clients are on no uplink."""
import dataclasses
import functools
import os

from bgp_cases import GATEWAY_AS, SECOND_AS, start, start_beside
from copy_cases import counter
from fixture import LB_IP, equal, until
from kept_flows import KeptFlows
from lab import gateway as gw
from lab import network as net
from many_flows import start_servers
from share_cases import OTHER_VIP
from stray_cases import CLIENT_NET, CLIENTS
from two_gateways import PEER_PORT, Certificates, objects, return_by_router

THIRD_VIP, SPREAD_VIP = "203.0.113.22", "203.0.113.23"
THIRD_AS = 65003
SHARES = 8
# By the hash, each gateway is the primary of one of these VIPs and the heir of another one.
SHARE_OF_VIP = {LB_IP: 6, OTHER_VIP: 1, THIRD_VIP: 0}
SNAT_OF_SHARE = [f"203.0.113.{200 + share}" for share in range(SHARES)]


@dataclasses.dataclass(frozen=True)
class Site:
    place: gw.Place
    interface: str  # of the router, with address `client`
    client: str
    uplink: str
    cluster: str
    peer: str  # address on the switch of the gateways
    autonomous_system: int


SITES = (Site(gw.FIRST, "eth0", net.CLIENT, net.UPLINK, net.CLUSTER, "10.80.8.1", GATEWAY_AS),
         Site(gw.SECOND, "eth1", net.SECOND_CLIENT, net.SECOND_UPLINK, net.SECOND_CLUSTER, "10.80.8.2", SECOND_AS),
         Site(gw.THIRD, "eth2", net.THIRD_CLIENT, net.THIRD_UPLINK, net.THIRD_CLUSTER, "10.80.8.3", THIRD_AS))
UPLINK_OF = {site.place.name: site.uplink for site in SITES}


def write_plan(lab, version, without=()):
    """All gateways have this file. `without`: names of gateways."""
    with open(lab.plan + ".new", "w") as file:
        file.write(f"version {version}\nstrays forward\nspread {SPREAD_VIP} key=7046029254386353131\nshares {SHARES}\n")
        for site in SITES:
            if site.place.name not in without:
                file.write(f"gateway {site.place.name} address={site.peer}:{PEER_PORT} link={site.cluster}\n")
        vips = {share: f" vips={vip}" for vip, share in SHARE_OF_VIP.items()}
        for share, snat in enumerate(SNAT_OF_SHARE):
            file.write(f"share {share}{vips.get(share, '')} snat={snat}\n")
        file.write("end\n")
    os.rename(lab.plan + ".new", lab.plan)


def begin(lab, share_age_s=0, options=()):
    lab.plan = lab.run.file("shares")
    write_plan(lab, 1)
    lab.logs = (*lab.logs, "penstockd-2.log", "penstockd-3.log")
    tls = Certificates(lab.run.file("tls"), **{site.place.name.replace("-", "_"): site.peer for site in SITES})
    lab.gateways = [lab.gateway, *(gw.Gateway(lab.network, lab.run, lab.gateway.build, place=site.place) for site in SITES[1:])]

    def options_of(site):
        return ["--shares", lab.plan, "--share-age", str(share_age_s), "--reverse-path", "loose", *options, *tls.options(site.place.name)]
    lab.build_network = functools.partial(build_network, lab)
    start(lab, *objects([*SHARE_OF_VIP, SPREAD_VIP]), peers={site.uplink: site.autonomous_system for site in SITES},
          options=options_of(SITES[0]), ecmp=True)
    start_servers(lab)
    for site, gateway in zip(SITES[1:], lab.gateways[1:]):
        gateway.more_options = ["--vip-presence", "routes", *options_of(site)]
        start_beside(lab, gateway, site.autonomous_system, site.uplink, site.client)
    for gateway in lab.gateways:
        route_to_clients(lab, gateway)
    until_all_serve(lab)


def build_network(lab):
    type(lab).build_network(lab)
    lab.network.ip("switch", "link add peers type bridge mcast_snooping 0\nlink set peers up")
    for site in SITES:
        role = site.place.role
        if site.place is not gw.FIRST:
            lab.network.add_gateway(role, site.interface, site.client, site.cluster)
        lab.network.join(role, "peers", "switch", f"peers-{role}")
        lab.network.ip("switch", f"link set peers-{role} master peers")
        lab.network.ip(role, f"address add {site.peer}/24 dev peers")
    lab.network.ip("client", "\n".join(f"address add {client}/32 dev lo" for client in CLIENTS))
    lab.network.sysctl("client", "ipv4/fib_multipath_hash_policy", 1)
    return_by_router(lab)


def site_of(gateway):
    return next(site for site in SITES if site.place.name == gateway.name)


def route_to_clients(lab, gateway):
    """It ends with the twin."""
    lab.network.ip(gateway.role, f"route add {CLIENT_NET} via {site_of(gateway).client}")


def start_again(lab, gateway):
    gateway.start_daemon()
    route_to_clients(lab, gateway)


def others_of(gateway):
    """What a gateway shows of those with which it has a share in common."""
    return {other["name"]: other for other in gateway.json("get", "gateways") if other["name"] != gateway.name}


def expected_hops(lab, names):
    """Next hops by address, if these gateways run: of each share its primary, otherwise its heir."""
    [shown, *_] = [gateway.json("get", "shares") for gateway in lab.gateways if gateway.name in names]
    owner = {int(share.get("number", 0)): share["primary"] if share["primary"] in names else share["heir"] for share in shown}
    of_shares = {snat: owner[share] for share, snat in enumerate(SNAT_OF_SHARE)} | {vip: owner[share] for vip, share in SHARE_OF_VIP.items()}
    return {address: {UPLINK_OF[name]} for address, name in of_shares.items()} | {SPREAD_VIP: {UPLINK_OF[name] for name in names}}


def until_routes_of(lab, gateways):
    """Until the router has the routes that these gateways announce when all of them serve."""
    expected = expected_hops(lab, {gateway.name for gateway in gateways})
    return until(f"the router has {expected}", lambda: lab.router.next_hops() == expected, patience_s=90, step_s=0.1)


def until_complete(lab, gateways):
    """Until each of the gateways has copies of all connections of the others, and they take its strays."""
    names = {gateway.name for gateway in gateways}
    for gateway in gateways:
        def is_complete(gateway=gateway):
            others = others_of(gateway)
            return all(others[name]["channel"] == "complete" and others[name]["strays"] == "yes" for name in names - {gateway.name})
        until(f"{gateway.name} has copies of {names}", is_complete, patience_s=90, step_s=0.1)


def until_all_serve(lab):
    until_routes_of(lab, lab.gateways)
    until_complete(lab, lab.gateways)


def until_copied(lab, gateways):
    """Until each connection of these gateways has a copy at another one."""
    for gateway in gateways:
        until(f"all connections of {gateway.name} are copied", lambda gateway=gateway: counter(gateway, "connections") == sum(
            int(other.get("copies_there", 0)) for other in others_of(gateway).values()), patience_s=90, step_s=0.1)


class AllFlows(KeptFlows):
    """Flows of every client to the VIPs of the shares and to the spread VIP."""

    def __init__(self, lab):
        super().__init__(lab)
        for number, client in enumerate(CLIENTS):
            for vip in (list(SHARE_OF_VIP)[number % len(SHARE_OF_VIP)], SPREAD_VIP):
                self.open("tcp", True, 3, vip, 80, source=client)
                self.open("udp", False, 1, vip, 80, source=client)

    def all_continue(self, what):
        self.until_all_answered()
        equal(self.findings(), {}, f"flows {what}")
