# SPDX-License-Identifier: Apache-2.0
"""Clients of one family and endpoints of the other (ANN-32). Each side has an ordinary TCP/IP stack, and the
gateway between them exchanges the headers (RFC 7915). Unless a case states otherwise, the Service is of the
endpoints' family alone."""
import http.client

from drop_cases import counter, drops
from fixture import LB_IP, LB_IP_6, NODE_PORT, VIP, VIP_6, case, check, equal, until
from ipv6_cases import client_that_nginx_saw
from lab import network as net
from lab.network import BACKENDS, BACKENDS6, inside
from lab.servers import ECHO_PORT
from manifests import endpoints, service
from pmtu_cases import LESSONS_MAX, MEGABYTE, NARROW, PORT, WIDE, Peer, path_mtu, payload_of, start_between, transfer

TRANSLATED = {"penstock.io/translate-family": "true"}
OTHER = {"IPv4": "IPv6", "IPv6": "IPv4"}
VIPS = {"IPv4": VIP, "IPv6": VIP_6}
LB_IPS = {"IPv4": LB_IP, "IPv6": LB_IP_6}
UPLINKS = {"IPv4": net.UPLINK, "IPv6": net.UPLINK6}
CLIENTS = {"IPv4": net.CLIENT, "IPv6": net.CLIENT6}
GATEWAYS = {"IPv4": net.CLUSTER, "IPv6": net.CLUSTER6}  # as endpoints see translated clients
ENDPOINTS = {"IPv4": BACKENDS, "IPv6": BACKENDS6}
HEADERS_DIFFER_BY = 20


def web(of_family, backends=None, port=9376, **changes):
    """A Service of one family under addresses of both, and its endpoints."""
    made = service("web", external_ips=[VIP, VIP_6], families=(of_family,), annotations=TRANSLATED, target_port=port, **changes)
    return made, endpoints("web", backends or tuple(BACKENDS), port=port, family=of_family)


def echo(of_family, backends=None, port=ECHO_PORT, **changes):
    made = service("echo", ECHO_PORT, protocol="UDP", target_port=port, external_ips=[VIP, VIP_6], families=(of_family,),
                   annotations=TRANSLATED, **changes)
    return made, endpoints("echo", backends or tuple(BACKENDS), port=port, protocol="UDP", family=of_family)


def described(lab, name="web"):
    return lab.gateway.ctl("describe", "service", f"default/{name}").stdout


@case(client=("IPv6", "IPv4"), driver=("af_packet", "af_xdp"), workers=(1, 2))
def every_way_in_leads_to_endpoints_of_the_other_family_ANN32_DUAL002_XIP005(lab):
    family = lab.variant["client"]
    seen = GATEWAYS[OTHER[family]]
    lab.start(*web(OTHER[family], ingress_ips=[LB_IP, LB_IP_6], node_port=NODE_PORT), *echo(OTHER[family]))
    for address, port in ((VIPS[family], 80), (LB_IPS[family], 80), (UPLINKS[family], NODE_PORT)):
        for _ in range(6):  # each endpoint twice
            equal(client_that_nginx_saw(lab, address, port), seen, f"source that nginx saw behind {address} port {port}")
    equal(set(lab.answered_by(6, VIPS[family])), set(BACKENDS), "endpoints that have answered")
    for count in (0, 1, 2, 7, 512, 1200):
        payload = payload_of(count)
        backend, source, echoed = lab.echo(VIPS[family], ECHO_PORT, payload)
        check(backend in BACKENDS, f"answered by {backend!r}")
        equal((source, echoed == payload), (seen, True), f"source that the echo saw, and {count} bytes")
    # The endpoints' own family is served as before.
    equal(client_that_nginx_saw(lab, VIPS[OTHER[family]]), seen, "source behind the address of the endpoints' family")
    check(f"{OTHER[family]} endpoints behind {family} frontends" in described(lab), f"describe service:\n{described(lab)}")
    check("FamilyMismatch" not in described(lab), f"describe service:\n{described(lab)}")
    equal({name: count for name, count in drops(lab).items() if count and name.startswith("bad_")}, {}, "drops")


@case(client=("IPv6", "IPv4"), workers=(1, 2))
def large_transfers_arrive_intact_both_ways_ANN32_NAT001(lab):
    family = lab.variant["client"]
    lab.start(*web(OTHER[family], ["backend-1"], PORT))
    with Peer(lab, "backend-1"):
        for up, down in ((100_000, 100_000), (5 * MEGABYTE, 1), (1, 5 * MEGABYTE)):
            transfer(lab, "client", VIPS[family], up, down)


@case(client=("IPv6", "IPv4"), driver=("af_xdp",))
def a_client_learns_what_fits_towards_the_other_family_ANN32_ICMP003_ICMP004(lab):
    family = lab.variant["client"]
    start_between(lab, WIDE, NARROW, *web(OTHER[family], ["backend-1"], PORT))
    with Peer(lab, "backend-1"):
        transfer(lab, "client", VIPS[family], 5 * MEGABYTE, MEGABYTE)
    fits = NARROW + HEADERS_DIFFER_BY if family == "IPv6" else NARROW - HEADERS_DIFFER_BY
    equal(path_mtu(lab, "client", VIPS[family]), fits, f"path MTU that the client has learnt for {VIPS[family]}")


@case(client=("IPv6", "IPv4"), driver=("af_xdp",))
def an_endpoint_learns_what_fits_towards_the_other_family_ANN32_ICMP003_ICMP004(lab):
    family = lab.variant["client"]
    start_between(lab, NARROW, WIDE, *web(OTHER[family], ["backend-1"], PORT))
    with Peer(lab, "backend-1"):
        transfer(lab, "client", VIPS[family], MEGABYTE, 5 * MEGABYTE)
    fits = NARROW - HEADERS_DIFFER_BY if family == "IPv6" else NARROW + HEADERS_DIFFER_BY
    equal(path_mtu(lab, "backend-1", GATEWAYS[OTHER[family]]), fits, "path MTU that the endpoint has learnt for the gateway")


@case(client=("IPv6", "IPv4"), workers=(1, 2), driver=("af_xdp",))
def large_datagrams_arrive_whole_ANN32_NAT007(lab):
    family = lab.variant["client"]
    lab.start(*echo(OTHER[family], ["backend-1"]))  # each of them would have to learn the path MTU
    until("next hop is known", lambda: echoes(lab, VIPS[family], b"?"), patience_s=10.0)
    for count in (WIDE - 60, WIDE, 4_000, 9_000, 60_000):
        # Some datagrams that fit only the sender's link are lost while the sender learns the path MTU.
        check(any(echoes(lab, VIPS[family], payload_of(count)) for _ in range(LESSONS_MAX + 1)),
              f"{count} bytes to {VIPS[family]} did not come back: {drops(lab)}")
    check(counter(lab, "fragments_forwarded") > 0, "no fragment was forwarded")


def echoes(lab, address, payload):
    try:
        _, _, echoed = lab.echo(address, ECHO_PORT, payload)
    except OSError:
        return False
    equal(echoed == payload, True, f"each of {len(payload)} bytes")
    return True


@case(client=("IPv6", "IPv4"))
def errors_of_an_endpoint_reach_the_client_ANN32_ICMP001(lab):
    family = lab.variant["client"]
    lab.start(*echo(OTHER[family], port=5999))  # no listener there
    with lab.udp_socket(VIPS[family], ECHO_PORT) as client:
        def refused():
            client.send(b"anyone?")
            try:
                raise AssertionError(f"an answer from a closed port: {client.recv(100)!r}")
            except ConnectionRefusedError:
                return True
            except TimeoutError:
                return False  # a neighbour was not resolved yet
        until("port unreachable, in the client's family", refused, patience_s=10.0)
    check(counter(lab, "icmp_errors_translated") >= 1, "no error was translated")


@case(client=("IPv6", "IPv4"))
def a_vip_answers_ping_itself_and_closed_ports_stay_closed_ICMP007_LB021_ANN32(lab):
    family = lab.variant["client"]
    lab.start(*web(OTHER[family]))
    pinged = lab.network.run("client", "ping", "-6" if family == "IPv6" else "-4", "-c", "3", "-i", "0.2", "-W", "2", VIPS[family])
    check(" 0% packet loss" in pinged.stdout, f"ping {VIPS[family]}:\n{pinged.stdout}{pinged.stderr}")
    equal(lab.connection_outcome(VIPS[family], 81), "silence", "a port that no Service declares")


@case(client=("IPv6", "IPv4"))
def without_any_endpoint_both_families_are_refused_ANN32_REJ001(lab):
    family = lab.variant["client"]
    lab.start(web(OTHER[family])[0])
    for address in VIPS.values():
        equal(lab.connection_outcome(address, 80, timeout_s=5.0), "refused", address)


@case(client=("IPv6", "IPv4"))
def policy_local_keeps_the_client_within_a_family_and_says_that_it_cannot_across_ANN32_ETP002(lab):
    family = lab.variant["client"]
    own = OTHER[family]
    lab.start(*web(own, policy="Local"))
    equal(client_that_nginx_saw(lab, VIPS[own]), CLIENTS[own], "source within the family")
    equal(client_that_nginx_saw(lab, VIPS[family]), GATEWAYS[own], "source across families")
    check("SourceIPNotPreserved" in described(lab), f"describe service:\n{described(lab)}")


@case(client=("IPv6", "IPv4"))
def source_ranges_are_asked_of_the_client_SRC003_ANN32(lab):
    family = lab.variant["client"]
    ranges = {"IPv4": "10.80.1.0/24", "IPv6": "fd00:80:1::/64"}
    lab.start(*web(OTHER[family], ingress_ips=[LB_IP, LB_IP_6], source_ranges=[ranges[family]]))
    equal(lab.get(LB_IPS[family]).status, 200, "the family that is listed")
    equal(lab.connection_outcome(LB_IPS[OTHER[family]], 80), "silence", "the family that is not")


@case(client=("IPv6", "IPv4"), workers=(1, 2))
def a_family_that_gets_endpoints_serves_itself_and_flows_stay_ANN32_DRAIN001(lab):
    family = lab.variant["client"]
    web_of_both = service("web", external_ips=[VIP, VIP_6], families=("IPv4", "IPv6"), annotations=TRANSLATED)
    others, own = (endpoints("web", family=of) for of in (OTHER[family], family))
    lab.start(web_of_both, others)
    with inside(lab.network.namespace("client")):
        long_lived = http.client.HTTPConnection(VIPS[family], 80, timeout=5)
        long_lived.connect()

    def seen_by_long_lived():
        long_lived.request("GET", "/client")
        return long_lived.getresponse().read().decode().strip()
    try:
        equal(seen_by_long_lived(), GATEWAYS[OTHER[family]], "source of the long connection")
        lab.apply(web_of_both, others, own)
        until("new flows go to the family's own endpoints", lambda: client_that_nginx_saw(lab, VIPS[family]) == GATEWAYS[family])
        equal(seen_by_long_lived(), GATEWAYS[OTHER[family]], "source of the long connection, with endpoints of its own family there")
        lab.apply(web_of_both, others)
        until("new flows go to the other family's again", lambda: client_that_nginx_saw(lab, VIPS[family]) == GATEWAYS[OTHER[family]])
        equal(seen_by_long_lived(), GATEWAYS[OTHER[family]], "source of the long connection, after all")
    finally:
        long_lived.close()


@case(client=("IPv6", "IPv4"))
def explain_and_connections_name_both_families_ANN32(lab):
    family = lab.variant["client"]
    seen = GATEWAYS[OTHER[family]]
    lab.start(*web(OTHER[family]))
    equal(lab.get(VIPS[family]).status, 200, "status")
    words = ("explain", "--proto", "tcp", "--src", f"{net.bracketed(CLIENTS[family])}:40000", "--dst", f"{net.bracketed(VIPS[family])}:80")
    told = lab.gateway.json(*words)
    findings = [step["finding"] for step in told["steps"]]
    check(f"families: no {family} endpoint for new flows; {OTHER[family]} ones serve (penstock.io/translate-family)" in findings,
          f"explain: {findings}")
    # held if the next hop of the next endpoint in turn was never resolved
    check(told["verdict"] in ("transmit", "hold"), f"verdict of {told}")
    equal(told["source_after"]["address"], seen, "source after")
    check(told["destination_after"]["address"] in ENDPOINTS[OTHER[family]].values(), f"destination after: {told['destination_after']}")
    with lab.tcp_socket(VIPS[family], 80) as client:
        own = f"{net.bracketed(CLIENTS[family])}:{client.getsockname()[1]}"
        connections = lab.gateway.json("get", "connections", "--client", own)
    equal(len(connections), 1, f"connections of {own}")
    equal(connections[0]["snat"]["address"], seen, "its SNAT address")
    check(connections[0]["backend"]["address"] in ENDPOINTS[OTHER[family]].values(), f"its endpoint: {connections[0]}")


@case()
def a_pinned_client_of_either_family_keeps_its_endpoint_AFF001_ANN32(lab):
    lab.start(*web("IPv4", affinity_timeout_s=600))
    for address in VIPS.values():
        equal(len(lab.answered_by(9, address)), 1, f"endpoints that one client has met at {address}")


@case()
def without_the_annotation_nothing_is_translated_DUAL002_ANN32(lab):
    made, slice_of_made = web("IPv4")
    lab.start(made, slice_of_made)
    equal(lab.get(VIP_6).status, 200, "with the annotation")
    made["metadata"]["annotations"] = {"penstock.io/translate-family": "maybe"}
    lab.apply(made, slice_of_made)
    until("the IPv6 address is served no longer", lambda: lab.connection_outcome(VIP_6, 80, timeout_s=0.3) != "open")
    equal(lab.get(VIP).status, 200, "IPv4")
    check("InvalidAnnotation" in described(lab) and "FamilyMismatch" in described(lab), f"describe service:\n{described(lab)}")
