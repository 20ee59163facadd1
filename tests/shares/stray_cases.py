# SPDX-License-Identifier: Apache-2.0
"""Packets that reach another gateway than that of their share: they are forwarded, and no connection is reset. The
connections are too young for copies, so that only forwarding keeps them."""
import random

from copy_cases import counter, open_flows
from fixture import LB_IP, case, check, equal, until
from kept_flows import KeptFlows
from lab import network as net
from two_gateways import FIRST, SECOND, SNAT, VIA_SECOND, Killed, begin, peer_of, until_via

REHASHES = 10
TOO_YOUNG_S = 3600
PREFERRED = "metric 1"  # before the routes of BGP
# Of no uplink: Linux prefers the next hop of a flow's own address.
CLIENT_NET = "10.80.99.0/24"
CLIENTS = [f"10.80.99.{host}" for host in range(1, 17)]


def strays_of_share(gateway, number=0):
    return next(share.get("strays") for share in gateway.json("get", "shares") if int(share.get("number", 0)) == number)


def until_strays_go(lab):
    for gateway in (lab.gateway, lab.second):
        until("strays go to the other gateway", lambda gateway=gateway: peer_of(gateway).get("strays") == "yes", patience_s=60)
        own = next(shown for shown in gateway.json("get", "gateways") if shown["name"] == gateway.name)
        equal(own.get("strays", ""), "", "strays to the gateway itself")


def metric_of(gateway, address):
    return next(int(vip["metric"]) for vip in gateway.json("get", "vips") if vip["address"] == address)


def send_by(lab, address, hop):
    lab.network.ip("client", f"route replace {address}/32 via {hop} {PREFERRED}")


def rehash(lab, vip, hops, chance):
    """ECMP of the router for the VIP has other weights in another order, so that many flows get another next hop."""
    weighted = [f"nexthop via {hop} weight {chance.randint(1, 8)}" for hop in hops]
    chance.shuffle(weighted)
    lab.network.ip("client", f"route replace {vip}/32 {PREFERRED} {' '.join(weighted)}")


def forwarded(lab):
    return {gateway: counter(gateway, "strays_forwarded") for gateway in (lab.gateway, lab.second)}


@case()
def flows_continue_while_routes_send_them_to_the_other_gateway(lab):
    begin(lab, strays="strays forward\n", share_age_s=TOO_YOUNG_S)
    until_strays_go(lab)
    equal((strays_of_share(lab.gateway), strays_of_share(lab.second)), ("here", FIRST), "where strays of the share go")
    flows = KeptFlows(lab)
    open_flows(flows, 40, 10)
    later = KeptFlows(lab)
    with flows:
        for number in range(REHASHES):
            before = forwarded(lab)[lab.second]
            is_other = number % 2 == 0
            send_by(lab, LB_IP, net.SECOND_UPLINK if is_other else net.UPLINK)
            send_by(lab, SNAT, net.SECOND_UPLINK if number % 3 == 0 else net.UPLINK)
            if number == 2:
                open_flows(later, 10, 5)  # the SYNs arrive at the other gateway
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows after {number + 1} changes of the routes")
            if is_other:
                count = forwarded(lab)[lab.second] - before
                check(count >= len(flows.flows), f"{count} strays were forwarded, of {len(flows.flows)} flows")
        with later:
            later.until_all_answered()
            equal(later.findings(), {}, "flows that were opened by strays")
        until_strays_go(lab)  # the stream was not silent for long, or the following shows it
        equal((counter(lab.second, "connections"), counter(lab.second, "connections_taken_over")), (0, 0), "connections of the other one")
        total = forwarded(lab)[lab.second]
    # The heir serves when the primary is lost.
    for address in (LB_IP, SNAT):
        lab.network.ip("client", f"route del {address}/32 {PREFERRED}")
    Killed.lose(lab)
    until_via(lab, VIA_SECOND)
    until("the heir serves", lambda: strays_of_share(lab.second) == "here", patience_s=60)
    at_heir = KeptFlows(lab)
    open_flows(at_heir, 10, 5)
    with at_heir:
        at_heir.until_all_answered()
        equal(at_heir.findings(), {}, "flows of the heir")
    lab.remarks.append(f"{REHASHES} changes of the routes of 50 flows: 0 reset, {total} packets forwarded")


@case()
def flows_of_a_spread_vip_continue_whatever_the_router_chooses(lab):
    begin(lab, strays=f"strays forward\nspread {LB_IP} key=7046029254386353131\n", share_age_s=TOO_YOUNG_S)
    until_strays_go(lab)
    for gateway in (lab.gateway, lab.second):
        until("the VIP is announced at the gateway's own level", lambda gateway=gateway: metric_of(gateway, LB_IP) == 100, patience_s=60)
    lab.network.ip("client", "\n".join(f"address add {client}/32 dev lo" for client in CLIENTS))
    lab.network.ip("gateway", f"route add {CLIENT_NET} via {net.CLIENT}")
    lab.network.ip("gateway-2", f"route add {CLIENT_NET} via {net.SECOND_CLIENT}")
    lab.network.sysctl("client", "ipv4/fib_multipath_hash_policy", 1)
    chance, hops = random.Random(1), (net.UPLINK, net.SECOND_UPLINK)
    rehash(lab, LB_IP, hops, chance)
    flows = KeptFlows(lab)
    for client in CLIENTS:
        flows.open("tcp", True, 4, LB_IP, 80, source=client)
        flows.open("udp", False, 1, LB_IP, 80, source=client)
    with flows:
        for number in range(REHASHES):
            rehash(lab, LB_IP, hops, chance)
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows after {number + 1} re-hashes")
    until_strays_go(lab)
    equal([vip.get("share") for vip in lab.gateway.json("get", "vips") if vip["address"] == LB_IP], [None], "share of a spread VIP")
    total = sum(forwarded(lab).values())
    check(total > 0, "no packet was forwarded")
    open_at = {name: counter(gateway, "new_connections") for name, gateway in ((FIRST, lab.gateway), (SECOND, lab.second))}
    equal(sum(open_at.values()), len(flows.flows), f"connections opened, by gateway: {open_at}")
    check(all(open_at.values()), f"one gateway serves all clients: {open_at}")
    lab.remarks.append(f"{REHASHES} re-hashes of {len(flows.flows)} flows: 0 reset, {total} packets forwarded, flows by gateway: {open_at}")
