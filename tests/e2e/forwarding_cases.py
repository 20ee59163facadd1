# SPDX-License-Identifier: Apache-2.0
"""Packets are forwarded in both directions unchanged, and all of them are counted."""
import hashlib
import socket

from fixture import LB_IP, NODE_PORT, VIP, VIP2, case, check, equal, in_parallel
from lab import accounting, traffic
from lab import network as net
from lab.network import BACKENDS, inside
from manifests import endpoints, service

MEGABYTE = 1_000_000


def web(**changes):
    return [service("web", external_ips=[VIP], ingress_ips=[LB_IP], node_port=NODE_PORT, **changes), endpoints("web")]


def echo(**changes):
    return [service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP], node_port=30053, **changes),
            endpoints("echo", port=5353, protocol="UDP")]


@case(driver=("af_packet", "af_xdp"), workers=(1, 2, 4))
def every_way_in_is_served_and_counted_exactly_XIP001_LB001_NODEPORT001_NAT001(lab):
    lab.start(*web(), *echo())
    frontends = [traffic.Frontend("ExternalIP", "default/web/tcp", "tcp", VIP, 80),
                 traffic.Frontend("LoadBalancer", "default/web/tcp", "tcp", LB_IP, 80),
                 traffic.Frontend("NodePort", "default/web/tcp", "tcp", net.UPLINK, NODE_PORT),
                 traffic.Frontend("NodePort, other address", "default/web/tcp", "tcp", net.CLUSTER, NODE_PORT),
                 traffic.Frontend("ExternalIP", "default/echo/udp", "udp", VIP, 5353),
                 traffic.Frontend("NodePort", "default/echo/udp", "udp", net.UPLINK, 30053)]
    lab.network.ip("client", f"route add {net.CLUSTER}/32 via {net.UPLINK}")
    report = accounting.send_and_settle(lab.network, lab.gateway, frontends, 60)
    equal(report.problems(), [], "problems")


@case(workers=(1, 2), policy=("Cluster", "Local"))
def download_of_100_megabytes_arrives_intact_NAT001_ETP002(lab):
    lab.start(*web(policy=lab.variant["policy"]))
    content = lab.make_file("big", 100 * MEGABYTE)
    answer = lab.get(VIP, 80, "/files/big", timeout_s=60)
    equal(answer.status, 200, "status")
    equal(hashlib.sha256(answer.body).hexdigest(), hashlib.sha256(content).hexdigest(), "SHA-256")
    lab.remarks.append(f"{8 * len(content) / answer.ms / 1000:.0f} Mbit/s")


@case(workers=(1, 2))
def thousand_connections_at_once_are_all_served_and_listed_NAT001(lab):
    lab.start(*web())
    clients = []
    try:
        with inside(lab.network.namespace("client")):
            for _ in range(1000):
                client = socket.socket()
                client.setblocking(False)
                clients.append(client)
                client.connect_ex((VIP, 80))
        for client in clients:
            client.settimeout(10)
            _wait_connected(client)
        equal(len(lab.gateway.json("get", "connections")), 1000, "connections listed")
        for i, client in enumerate(clients):
            client.sendall(f"GET /?{i} HTTP/1.1\r\nHost: web\r\n\r\n".encode())
        answers = [client.recv(4096) for client in clients]
        equal(sum(answer.startswith(b"HTTP/1.1 200") for answer in answers), 1000, "answers with status 200")
        for name in BACKENDS:
            share = sum(f"X-Backend: {name}".encode() in answer for answer in answers)
            check(320 <= share <= 345, f"{name} answered {share} of 1000")
    finally:
        for client in clients:
            client.close()


def _wait_connected(client):
    import select
    if not select.select([], [client], [], 10)[1]:
        raise AssertionError("a connection is not open after 10 s")
    error = client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    equal(error, 0, "error of a connect()")


@case()
def backends_take_turns_exactly_SCHED002(lab):
    lab.start(*web())
    equal(dict(lab.answered_by(30)), {name: 10 for name in BACKENDS}, "answers of 30 requests")


@case()
def datagrams_of_any_size_that_fits_come_back_NAT001(lab):
    lab.start(*echo())
    for size in (0, 1, 2, 7, 512, 1440):  # the echo adds up to 20 bytes to the answer; 1472 fit the MTU
        payload = bytes(range(256)) * 6
        backend, _, echoed = lab.echo(VIP, 5353, payload[:size])
        check(backend in BACKENDS, f"answered by {backend!r}")
        equal(echoed, payload[:size], f"{size} bytes")


@case()
def one_address_is_shared_by_services_on_other_ports_and_protocols_XIP007_SVC008(lab):
    objects = [service("a", 80, external_ips=[VIP]), endpoints("a", ["backend-1"]),
               service("b", 81, external_ips=[VIP]), endpoints("b", ["backend-2"]),
               service("c", 80, protocol="UDP", target_port=5353, external_ips=[VIP]),
               endpoints("c", ["backend-3"], port=5353, protocol="UDP")]
    lab.start(*objects)
    equal(lab.get(VIP, 80).backend, "backend-1", "TCP 80")
    equal(lab.get(VIP, 81).backend, "backend-2", "TCP 81")
    equal(lab.echo(VIP, 80)[0], "backend-3", "UDP 80")


@case()
def a_udp_flow_stays_with_its_backend_DRAIN001(lab):
    lab.start(*echo())
    with lab.udp_socket(VIP, 5353) as client:
        seen = set()
        for _ in range(20):
            client.send(b"again")
            seen.add(client.recv(100).split()[0])
    equal(len(seen), 1, "backends that answered one flow")


@case(workers=(2,))
def uploads_and_downloads_at_the_same_time_stay_intact_NAT001(lab):
    lab.start(*web())
    content = lab.make_file("medium", 5 * MEGABYTE)
    answers = in_parallel(lambda address: lab.get(address, 80, "/files/medium", timeout_s=60).body, [VIP, LB_IP] * 4)
    check(all(body == content for body in answers), "a download differs from the file")


@case()
def a_second_address_of_a_service_works_like_the_first_XIP001(lab):
    lab.start(service("web", external_ips=[VIP, VIP2]), endpoints("web"))
    equal(lab.get(VIP).status, 200, "first")
    equal(lab.get(VIP2).status, 200, "second")
