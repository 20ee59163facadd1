# SPDX-License-Identifier: Apache-2.0
"""ICMP between real stacks: errors that reach a client and an endpoint, and pings to VIPs."""
import socket

from drop_cases import drops
from fixture import VIP, VIP_6, case, check, equal
from lab import network as net
from lab.network import BACKENDS, BACKENDS6, family_of, inside
from manifests import endpoints, service

DUAL = ("IPv4", "IPv6")


def datagrams(port=5300, target_port=9, **changes):
    """A UDP Service of both families with one endpoint; port 9 has no listener there."""
    return [service("datagrams", port, protocol="UDP", target_port=target_port, external_ips=[VIP, VIP_6], families=DUAL, **changes),
            *(endpoints("datagrams", ["backend-1"], port=target_port, protocol="UDP", family=family) for family in DUAL)]


def error_of(sock, patience_s=20.0):
    """The name of the error that the socket reports, or the data that it received instead."""
    sock.settimeout(patience_s)
    try:
        return f"received {sock.recv(100)!r}"
    except OSError as error:
        return type(error).__name__


@case(policy=("Cluster", "Local"), workers=(1, 2))
def a_client_hears_that_nobody_listens_at_the_endpoint_ICMP001(lab):
    lab.start(*datagrams(policy=lab.variant["policy"]))
    for vip in (VIP, VIP_6):
        with inside(lab.network.namespace("client")), socket.socket(family_of(vip), socket.SOCK_DGRAM) as client:
            client.connect((vip, 5300))
            client.send(b"is anybody there?")
            equal(error_of(client), "ConnectionRefusedError", f"what the client of {vip} hears")


@case(workers=(1, 2))
def an_endpoint_hears_that_its_client_is_gone_ICMP002(lab):
    lab.start(*datagrams(target_port=5301))
    for vip, address in ((VIP, BACKENDS["backend-1"]), (VIP_6, BACKENDS6["backend-1"])):
        with inside(lab.network.namespace("backend-1")):
            server = socket.socket(family_of(address), socket.SOCK_DGRAM)
            server.bind((address, 5301))
        with server:
            with inside(lab.network.namespace("client")), socket.socket(family_of(vip), socket.SOCK_DGRAM) as client:
                client.connect((vip, 5300))
                client.send(b"and gone")
                server.settimeout(5)
                server.connect(server.recvfrom(100)[1])
            server.send(b"too late")
            equal(error_of(server), "ConnectionRefusedError", f"what the endpoint behind {vip} hears")


@case(driver=("af_packet", "af_xdp"), workers=(1, 2))
def a_vip_answers_ping_ICMP007(lab):
    lab.start(*datagrams())
    for vip in (VIP, VIP_6):
        for size in ("0", "56", "1400"):
            pinged = lab.network.run("client", "ping", "-c", "2", "-i", "0.2", "-W", "5", "-s", size, vip)
            check(" 0% packet loss" in pinged.stdout, f"ping {vip} with {size} bytes:\n{pinged.stdout}{pinged.stderr}")


@case()
def a_vip_is_silent_where_the_operator_says_so_ICMP007(lab):
    lab.gateway.more_options = ["--vip-icmp-echo", "drop"]
    lab.start(*datagrams())
    for vip in (VIP, VIP_6):
        pinged = lab.network.run("client", "ping", "-c", "1", "-W", "1", vip)
        check(" 100% packet loss" in pinged.stdout, f"ping {vip}:\n{pinged.stdout}{pinged.stderr}")
    equal(drops(lab)["vip_echo"], 2, "pings dropped by name")
    pinged = lab.network.run("client", "ping", "-c", "1", "-W", "5", net.UPLINK)
    check(" 0% packet loss" in pinged.stdout, f"the host's own address:\n{pinged.stdout}")
