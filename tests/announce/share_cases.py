# SPDX-License-Identifier: Apache-2.0
"""Shares of two gateways (--shares): each VIP has one gateway that routers prefer, and one that takes over."""
import os
import signal

from bgp_cases import GATEWAY_AS, SECOND_AS, SLICES, start, start_beside
from fixture import LB_IP, case, check, equal, until
from lab import gateway as gw
from lab import network as net
from manifests import service

OTHER_VIP = "203.0.113.21"
# SNAT addresses of shares, by the VIP of the share.
SNAT = {LB_IP: "203.0.113.100", OTHER_VIP: "203.0.113.101"}
FIRST, SECOND = "edge-1", "edge-2"


class Plan:
    """The file of both gateways. Replaced by rename, as configuration tools do."""

    def __init__(self, lab, has_snat=False):
        self.path = lab.run.file("shares")
        self._version = 0
        self._snat = {vip: f" snat={address}" if has_snat else "" for vip, address in SNAT.items()}

    def write(self, primary_of_first=FIRST, version=None):
        self._version = version or self._version + 1
        heir = SECOND if primary_of_first == FIRST else FIRST
        with open(self.path + ".new", "w") as file:
            file.write(f"version {self._version}\ngateway {FIRST}\ngateway {SECOND}\nshares 2\n"
                       f"share 0 vips={LB_IP} primary={primary_of_first} heir={heir}{self._snat[LB_IP]}\n"
                       f"share 1 vips={OTHER_VIP} primary={SECOND} heir={FIRST}{self._snat[OTHER_VIP]}\nend\n")
        os.rename(self.path + ".new", self.path)


def begin(lab, has_snat=False):
    lab.plan = Plan(lab, has_snat)
    lab.plan.write()
    lab.second = gw.Gateway(lab.network, lab.run, lab.gateway.build, place=gw.SECOND)
    lab.second.more_options = ["--vip-presence", "routes", "--shares", lab.plan.path]
    start(lab, service("web", 80, ingress_ips=[LB_IP, OTHER_VIP]), *SLICES[:1],
          peers={net.UPLINK: GATEWAY_AS, net.SECOND_UPLINK: SECOND_AS},
          options=["--shares", lab.plan.path])
    lab.network.add_gateway("gateway-2", "eth1", net.SECOND_CLIENT, net.SECOND_CLUSTER)
    start_beside(lab, lab.second, SECOND_AS, net.SECOND_UPLINK, net.SECOND_CLIENT)
    until_via(lab, with_snat({LB_IP: net.UPLINK, OTHER_VIP: net.SECOND_UPLINK}) if has_snat
              else {LB_IP: net.UPLINK, OTHER_VIP: net.SECOND_UPLINK})


def with_snat(via):
    """SNAT addresses have the next hop of their share's VIP."""
    return {**via, **{SNAT[vip]: hop for vip, hop in via.items()}}


def until_via(lab, via):
    return until(f"the router has {via}", lambda: lab.router.learned() == via, patience_s=60)


def metrics_of(gateway):
    return {vip["address"]: vip.get("metric", 0) for vip in gateway.json("get", "vips")}


@case()
def each_vip_has_a_primary_and_an_heir_PRESENCE002(lab):
    begin(lab)
    equal(metrics_of(lab.gateway), {LB_IP: 100, OTHER_VIP: 200}, "metrics of the first gateway")
    equal(metrics_of(lab.second), {LB_IP: 200, OTHER_VIP: 100}, "metrics of the second gateway")
    for vip in (LB_IP, OTHER_VIP):
        equal(lab.get(vip).status, 200, f"a request to {vip}")
    [first, second] = lab.gateway.json("get", "shares")
    equal((first["role"], first["served"], first["announced"]), ("primary", 1, 1), "share 0 at the first gateway")
    equal((second["role"], second["primary"], second["heir"]), ("heir", SECOND, FIRST), "share 1 at the first gateway")
    equal([gateway["name"] for gateway in lab.second.json("get", "gateways")], [FIRST, SECOND], "gateways of the plan")
    exposed = lab.network.run("gateway", "curl", "-s", "http://127.0.0.1:9105/metrics").stdout
    check('penstock_share_role{share="1",role="heir"} 1\n' in exposed, "metric of the role")

    lab.gateway.end_daemon()
    lost_ms = until_via(lab, {LB_IP: net.SECOND_UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    equal(lab.get(LB_IP).status, 200, "a request to the VIP of the lost gateway")
    lab.gateway.start_daemon()
    until_via(lab, {LB_IP: net.UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    equal(lab.get(LB_IP).status, 200, "a request after the return")
    lab.remarks.append(f"with a hold time of 3 s, the heir has the VIP {lost_ms:.0f} ms after kill -9")


@case()
def flows_of_a_share_have_its_snat_address_at_both_gateways_NAT002_PRESENCE002(lab):
    def until_served_by(hops):
        """Endpoints have no routing daemon: they get the routes that the router has learned, by the same gateways."""
        took_ms = until_via(lab, with_snat(hops))
        inside = {net.UPLINK: net.CLUSTER, net.SECOND_UPLINK: net.SECOND_CLUSTER}
        for backend in net.BACKENDS:
            lab.network.ip(backend, "\n".join(f"route replace {SNAT[vip]}/32 via {inside[hop]}" for vip, hop in hops.items()))
        return took_ms

    def sources(vip):
        """(address, port) of 30 connections as the endpoints see them."""
        return [(address, int(port)) for address, port in (lab.get(vip, path="/source").body.decode().split() for _ in range(30))]

    def check_sources(vip, role, gateway):
        seen = sources(vip)
        equal({address for address, _ in seen}, {SNAT[vip]}, f"addresses of connections to {vip} by {gateway}")
        equal({port % 8 == 7 for _, port in seen}, {role == "heir"}, f"ports of the {role}'s part by {gateway}: {seen}")

    begin(lab, has_snat=True)
    until_served_by({LB_IP: net.UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    check_sources(LB_IP, "primary", FIRST)
    check_sources(OTHER_VIP, "primary", SECOND)
    equal(metrics_of(lab.gateway), {LB_IP: 100, OTHER_VIP: 200, SNAT[LB_IP]: 100, SNAT[OTHER_VIP]: 200}, "metrics of the first gateway")
    [first, second] = lab.gateway.json("get", "shares")
    equal((first["snat"], first["served"], first["announced"]), ([SNAT[LB_IP]], 1, 1), "share 0 at the first gateway")
    equal((second["snat"], second["served"], second["announced"]), ([SNAT[OTHER_VIP]], 1, 1), "share 1 at the first gateway")

    lab.gateway.end_daemon()
    lost_ms = until_served_by({LB_IP: net.SECOND_UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    check_sources(LB_IP, "heir", SECOND)
    check_sources(OTHER_VIP, "primary", SECOND)

    lab.gateway.start_daemon()
    until_served_by({LB_IP: net.UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    check_sources(LB_IP, "primary", FIRST)
    lab.plan.write(primary_of_first=SECOND)
    until_served_by({LB_IP: net.SECOND_UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    check_sources(LB_IP, "primary", SECOND)

    # SNAT addresses need no Service.
    lab.apply()
    until("the router has the SNAT addresses alone",
          lambda: lab.router.learned() == {address: net.SECOND_UPLINK for address in SNAT.values()}, patience_s=60)
    lab.remarks.append(f"with a hold time of 3 s, the heir has VIP and SNAT address {lost_ms:.0f} ms after kill -9")


@case()
def a_new_plan_moves_a_share_and_a_wrong_one_changes_nothing_PRESENCE002(lab):
    begin(lab)
    lab.plan.write(primary_of_first=SECOND)
    moved_ms = until_via(lab, {LB_IP: net.SECOND_UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    equal(lab.get(LB_IP).status, 200, "a request to the moved VIP")
    equal(metrics_of(lab.gateway), {LB_IP: 200, OTHER_VIP: 200}, "metrics of the first gateway")

    def refused(reason):
        for name in ("penstockd.log", "penstockd-2.log"):
            until(f"{name} has the refusal", lambda name=name: reason in read(lab, name), patience_s=60)
        equal(metrics_of(lab.gateway), {LB_IP: 200, OTHER_VIP: 200}, "metrics after a refused plan")

    lab.plan.write(version=1)
    refused("version 1 is older than version 2, which is in force")
    with open(lab.plan.path, "w") as file:
        file.write("version 3\nend\n")
    refused("shares: no gateway")
    status = lab.gateway.ctl("status").stdout
    check("plan version 2, primary of 0, heir of 2; " in status and "no gateway" in status, f"status:\n{status}")
    equal(lab.get(LB_IP).status, 200, "a request afterwards")
    os.kill(lab.gateway.daemon.pid, signal.SIGTERM)
    lab.gateway.daemon.wait()
    lab.gateway.start_daemon()
    until("a restart continues with the plan in force", lambda: metrics_of(lab.gateway) == {LB_IP: 200, OTHER_VIP: 200}, patience_s=60)
    lab.plan.write(version=4)
    until_via(lab, {LB_IP: net.UPLINK, OTHER_VIP: net.SECOND_UPLINK})
    equal(lab.get(LB_IP).status, 200, "a request after a complete file")
    lab.remarks.append(f"the share has moved {moved_ms:.0f} ms after the file")


def read(lab, name):
    with open(lab.run.file(name), errors="replace") as file:
        return file.read()
