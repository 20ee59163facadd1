# SPDX-License-Identifier: Apache-2.0
"""The same tests over IPv6, and both families side by side."""
import hashlib
import socket

from drop_cases import counter
from fixture import LB_IP, LB_IP_6, NODE_PORT, VIP, VIP2_6, VIP_6, case, check, equal, until
from lab import accounting, traffic
from lab import gateway as gw
from lab import network as net
from lab.network import BACKENDS6, inside
from manifests import endpoints, service

MEGABYTE = 1_000_000
DUAL = ("IPv4", "IPv6")


def web(families=("IPv6",), **changes):
    addresses = [address for family, address in (("IPv4", VIP), ("IPv6", VIP_6)) if family in families]
    return [service("web", external_ips=addresses, families=families, **changes), *(endpoints("web", family=family) for family in families)]


def echo(**changes):
    return [service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP_6], node_port=30053, families=("IPv6",), **changes),
            endpoints("echo", port=5353, protocol="UDP", family="IPv6")]


def counted(lab, key):
    return gw.traffic_of(lab.gateway.services()[key])


def client_that_nginx_saw(lab, address, port=80):
    return lab.get(address, port, "/client").body.decode().strip()


@case(driver=("af_packet", "af_xdp"), workers=(1, 2, 4))
def every_way_in_is_served_and_counted_exactly_XIP001_LB001_NODEPORT001_NAT001(lab):
    lab.start(*web(ingress_ips=[LB_IP_6], node_port=NODE_PORT), *echo())
    frontends = [traffic.Frontend("ExternalIP", "default/web/tcp", "tcp", VIP_6, 80),
                 traffic.Frontend("LoadBalancer", "default/web/tcp", "tcp", LB_IP_6, 80),
                 traffic.Frontend("NodePort", "default/web/tcp", "tcp", net.UPLINK6, NODE_PORT),
                 traffic.Frontend("NodePort, other address", "default/web/tcp", "tcp", net.CLUSTER6, NODE_PORT),
                 traffic.Frontend("ExternalIP", "default/echo/udp", "udp", VIP_6, 5353),
                 traffic.Frontend("NodePort", "default/echo/udp", "udp", net.UPLINK6, 30053)]
    lab.network.ip("client", f"route add {net.CLUSTER6}/128 via {net.UPLINK6}")
    report = accounting.send_and_settle(lab.network, lab.gateway, frontends, 60)
    equal(report.problems(), [], "problems")


@case(workers=(1, 2))
def a_dual_stack_service_serves_each_family_from_its_own_DUAL001_DUAL002_DUAL005(lab):
    lab.start(*web(DUAL, ingress_ips=[LB_IP, LB_IP_6], node_port=NODE_PORT))
    frontends = [traffic.Frontend("ExternalIP", "default/web/tcp", "tcp", VIP, 80),
                 traffic.Frontend("ExternalIP", "default/web/tcp", "tcp", VIP_6, 80),
                 traffic.Frontend("LoadBalancer", "default/web/tcp", "tcp", LB_IP, 80),
                 traffic.Frontend("LoadBalancer", "default/web/tcp", "tcp", LB_IP_6, 80),
                 traffic.Frontend("NodePort", "default/web/tcp", "tcp", net.UPLINK, NODE_PORT),
                 traffic.Frontend("NodePort", "default/web/tcp", "tcp", net.UPLINK6, NODE_PORT)]
    report = accounting.send_and_settle(lab.network, lab.gateway, frontends, 30)
    equal(report.problems(), [], "problems")
    equal(client_that_nginx_saw(lab, VIP), net.CLUSTER, "source behind the IPv4 address")
    equal(client_that_nginx_saw(lab, VIP_6), net.CLUSTER6, "source behind the IPv6 address")
    shown = lab.gateway.ctl("-o", "wide", "get", "services").stdout
    check(f"[{VIP_6}]:80" in shown and f"[{net.UPLINK6}]:{NODE_PORT}" in shown, f"get services -o wide:\n{shown}")


@case(workers=(1, 2), driver=("af_packet", "af_xdp"))
def local_policy_shows_the_client_to_the_backend_ETP002_NAT003(lab):
    lab.start(*web(node_port=NODE_PORT, policy="Local"), *echo(policy="Local"))
    for address, port in ((VIP_6, 80), (net.UPLINK6, NODE_PORT)):
        for _ in range(6):  # each backend twice
            equal(client_that_nginx_saw(lab, address, port), net.CLIENT6, f"source that nginx saw behind {address} port {port}")
    equal(lab.echo(VIP_6, 5353)[1], net.CLIENT6, "source that the echo saw")


@case(workers=(1, 2))
def no_endpoint_refuses_tcp_and_udp_at_once_REJ001_REJ002(lab):
    lab.start(service("web", external_ips=[VIP_6], families=("IPv6",)),
              service("echo", 53, protocol="UDP", external_ips=[VIP_6], families=("IPv6",)))
    equal(lab.connection_outcome(VIP_6, 80, timeout_s=5.0), "refused", "TCP")
    with lab.udp_socket(VIP_6, 53) as client:
        client.send(b"anyone?")
        try:
            answer = client.recv(100)
            raise AssertionError(f"an answer without an endpoint: {answer!r}")
        except ConnectionRefusedError:  # the kernel reports ICMPv6 port unreachable on a connected socket
            pass
    # One, unless the client retransmitted its SYN because the machine was busy.
    check(counted(lab, "default/web/tcp")["rejected"] >= 1, "the TCP reject is not counted")
    equal(counted(lab, "default/echo/udp")["rejected"], 1, "UDP rejects counted")


@case()
def a_family_without_endpoints_is_refused_and_the_other_served_DUAL002(lab):
    lab.start(service("web", external_ips=[VIP, VIP_6], families=DUAL), endpoints("web"))
    equal(lab.get(VIP).status, 200, "IPv4")
    equal(lab.connection_outcome(VIP_6, 80), "refused", "IPv6, whose only endpoints would be IPv4's")
    described = lab.gateway.ctl("describe", "service", "default/web").stdout
    check("Set 0:           3 endpoints" in described and "Set 1:           0 endpoints" in described, f"describe service:\n{described}")


@case()
def an_address_of_a_family_that_the_service_lacks_is_refused_by_name_XIP005(lab):
    lab.start(service("web", external_ips=[VIP, VIP_6]), endpoints("web"), endpoints("web", family="IPv6"))
    equal(lab.get(VIP).status, 200, "IPv4")
    check(lab.connection_outcome(VIP_6, 80) != "open", "an IPv6 address of an IPv4 Service is served")
    described = lab.gateway.ctl("describe", "service", "default/web").stdout
    check("FamilyMismatch" in described and VIP_6 in described, f"describe service does not name the rule:\n{described}")


@case()
def source_ranges_of_one_family_close_the_other_SRC003(lab):
    lab.start(service("web", ingress_ips=[LB_IP, LB_IP_6], source_ranges=["10.80.1.0/24"], families=DUAL), endpoints("web"),
              endpoints("web", family="IPv6"),
              service("inside", 81, ingress_ips=[LB_IP_6], source_ranges=["fd00:80:1::/64"], families=("IPv6",)),
              endpoints("inside", family="IPv6"))
    equal(lab.get(LB_IP).status, 200, "IPv4, listed")
    equal(lab.connection_outcome(LB_IP_6, 80), "silence", "IPv6, not listed")
    equal(lab.get(LB_IP_6, 81).status, 200, "IPv6, listed")


@case(workers=(1, 2), policy=("Cluster", "Local"))
def download_of_20_megabytes_arrives_intact_NAT001_ETP002(lab):
    lab.start(*web(policy=lab.variant["policy"]))
    content = lab.make_file("big", 20 * MEGABYTE)
    answer = lab.get(VIP_6, 80, "/files/big", timeout_s=60)
    equal(answer.status, 200, "status")
    equal(hashlib.sha256(answer.body).hexdigest(), hashlib.sha256(content).hexdigest(), "SHA-256")


@case()
def datagrams_of_any_size_that_fits_come_back_NAT001(lab):
    lab.start(*echo())
    for size in (0, 1, 2, 7, 512, 1420):  # the echo adds some 25 bytes to the answer; 1452 fit the MTU
        payload = (bytes(range(256)) * 6)[:size]
        backend, _, echoed = lab.echo(VIP_6, 5353, payload)
        check(backend in BACKENDS6, f"answered by {backend!r}")
        equal(echoed, payload, f"{size} bytes")


@case()
def explain_tells_an_ipv6_flow_without_side_effects(lab):
    lab.start(*web())
    lab.answered_by(3, VIP_6)
    words = ("explain", "--proto", "tcp", "--src", f"[{net.CLIENT6}]:40000", "--dst", f"[{VIP_6}]:80")
    before = counted(lab, "default/web/tcp")["new_flows"]
    told = lab.gateway.json(*words)
    equal(told["verdict"], "transmit", f"verdict of {told}")
    equal(told["source_after"]["address"], net.CLUSTER6, "source after")
    check(told["destination_after"]["address"] in BACKENDS6.values(), f"destination after: {told['destination_after']}")
    equal(told["egress_twin"], "cluster0", "twin")
    shown = lab.gateway.ctl(*words).stdout
    check(f"Leaves as: [{net.CLUSTER6}]:(free port) -> [fd00:80:2::" in shown, f"explain:\n{shown}")
    equal(counted(lab, "default/web/tcp")["new_flows"], before, "flows after explain")
    with inside(lab.network.namespace("client")):
        client = socket.create_connection((VIP_6, 80), timeout=5)
    with client:
        own = f"[{net.CLIENT6}]:{client.getsockname()[1]}"
        connections = lab.gateway.json("get", "connections", "--client", own, "--frontend", f"[{VIP_6}]:80")
    equal(len(connections), 1, f"connections of {own}")
    equal(connections[0]["snat"]["address"], net.CLUSTER6, "its SNAT address")


@case()
def a_hop_limit_that_runs_out_is_told_ICMP006(lab):
    lab.start(*echo())

    def send():
        with inside(lab.network.namespace("client")), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 1)
            client.sendto(b"x", (VIP_6, 5353))
    lab.echo(VIP_6, 5353)  # every neighbour is resolved by now
    send()
    until("time exceeded is sent", lambda: counter(lab, "icmp_errors_sent") == 1)


@case(driver=("af_packet", "af_xdp"))
def the_host_answers_ping_on_both_twins_and_its_link_local_addresses(lab):
    lab.start(*web())
    link_local = link_local_of(lab, "gateway", "uplink0")
    for role, address in (("client", net.UPLINK6), ("backend-1", net.CLUSTER6), ("client", f"{link_local}%eth0")):
        pinged = lab.network.run(role, "ping", "-6", "-c", "3", "-i", "0.2", "-W", "2", address)
        check(" 0% packet loss" in pinged.stdout, f"ping {address} from {role}:\n{pinged.stdout}{pinged.stderr}")


@case()
def linux_answers_solicitations_for_a_vip_on_a_twin_and_for_no_other_XIP003(lab):
    """Neighbour Discovery on the link does not find a VIP that is on no twin: it has to be routed to the
    gateway."""
    lab.start(service("web", external_ips=[VIP_6, VIP2_6], families=("IPv6",)), endpoints("web", family="IPv6"))
    lab.network.ip("client", f"route replace {VIP_6}/128 dev eth0\nroute replace {VIP2_6}/128 dev eth0")
    lab.network.ip("gateway", f"address add {VIP_6}/128 dev uplink0 nodad")
    until("the VIP on the twin is served", lambda: lab.connection_outcome(VIP_6, 80, timeout_s=0.3) == "open")
    equal(lab.get(VIP_6).status, 200, "the VIP on the twin")
    check(lab.connection_outcome(VIP2_6, 80, timeout_s=1.0) != "open", "somebody answered for a VIP that is on no twin")
    pinged = lab.network.run("client", "ping", "-6", "-c", "5", "-i", "0.2", "-W", "2", VIP_6)
    equal(pinged.returncode, 0, f"exit code of ping {VIP_6}:\n{pinged.stdout}")
    equal(client_that_nginx_saw(lab, VIP_6), net.CLUSTER6, "the source, which is not the VIP")


@case()
def replies_follow_a_link_local_next_hop(lab):
    lab.start(*web(policy="Local"))
    equal(client_that_nginx_saw(lab, VIP_6), net.CLIENT6, "source on the link")
    far = "2001:db8:99::2"  # of the client, reached through it as through a router
    lab.network.ip("client", f"address add {far}/128 dev lo")
    lab.network.ip("gateway", f"route add 2001:db8:99::/64 via {link_local_of(lab, 'client', 'eth0')} dev uplink0")
    until("the route is mirrored", lambda: any(route["destination"] == "2001:db8:99::/64" for route in lab.gateway.json("get", "routes")))
    with inside(lab.network.namespace("client")), socket.create_connection((VIP_6, 80), timeout=5, source_address=(far, 0)) as client:
        client.sendall(b"GET /client HTTP/1.0\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    equal(answer.split(b"\r\n\r\n")[1].strip().decode(), far, "source that nginx saw")


@case()
def routes_and_neighbours_are_mirrored(lab):
    lab.start(*web())
    lab.answered_by(6, VIP_6)
    routes = {route["destination"]: route for route in lab.gateway.json("get", "routes")}
    check("fd00:80:1::/64" in routes and "fd00:80:2::/64" in routes, f"routes: {sorted(routes)}")
    neighbours = {entry["address"]: entry for entry in lab.gateway.json("get", "neighbours")}
    for address in (net.CLIENT6, *BACKENDS6.values()):
        check(neighbours.get(address, {}).get("mac"), f"neighbour {address}: {neighbours.get(address)}")


def link_local_of(lab, role, interface):
    shown = lab.network.run(role, "ip", "-o", "-6", "address", "show", "dev", interface, "scope", "link").stdout
    check("fe80::" in shown, f"{interface} of {role} has no link-local address:\n{shown}")
    return shown.split()[3].split("/")[0]
