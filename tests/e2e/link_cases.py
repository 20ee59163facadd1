# SPDX-License-Identifier: Apache-2.0
"""VIPs of the uplink's own subnet for which workers answer ARP and ND (--vip-presence arp): the client's kernel
resolves them, probes for them, and follows them to another gateway."""
import json
import socket
import struct

from fixture import case, check, equal, until
from lab import gateway as gw
from lab import network as net
from lab.network import inside
from manifests import endpoints, service

VIP_ON_LINK = "10.80.1.80"
VIP_ON_LINK_6 = "fd00:80:1::80"
OTHER_VIP = "10.80.1.81"
SECOND_ON_LINK = gw.Place("gateway-2", "edge-2", (("gw-up", "uplink0", "10.80.1.3/24,fd00:80:1::3/64"),
                                                  ("gw-cl", "cluster0", f"{net.SECOND_CLUSTER}/24")), "penstockd-2")


def web(vips=(VIP_ON_LINK, VIP_ON_LINK_6), **more):
    return service("web", 80, ingress_ips=list(vips), families=("IPv4", "IPv6"), **more)


SLICES = (endpoints("web"), endpoints("web", family="IPv6"))


def start(lab, *objects):
    lab.gateway.more_options = ["--vip-presence", "arp"]
    lab.start(*objects)


def views(gateway):
    return {row["address"]: row for row in gateway.json("get", "vips")}


def becomes(gateway, presence, vip=VIP_ON_LINK):
    until(f"the presence of {vip} is {presence}", lambda: views(gateway).get(vip, {}).get("presence") == presence, patience_s=15)


def shown(lab, role, *words):
    with inside(lab.network.namespace(role)):
        return json.loads(net.command("ip", "-json", *words) or "[]")


def twin_mac(lab, role="gateway"):
    return shown(lab, role, "link", "show", "dev", "uplink0")[0]["address"]


def known(lab, vip):
    """The Ethernet address by which the client's kernel sends to the VIP."""
    entries = shown(lab, "client", "neigh", "show", "to", vip)
    return entries[0].get("lladdr") if entries else None


def nobody_answers_for(lab, vip=VIP_ON_LINK):
    lab.network.ip("client", "neigh flush all")
    equal(lab.connection_outcome(vip, 80, timeout_s=10), "No route to host", f"a client that asks the link for {vip}")


def counter(lab, name):
    return next(int(row["value"]) for row in lab.gateway.json("stats")["counters"] if row["name"] == name)


def arp_probe(lab, vip):
    """RFC 5227: a request without a sender address. Returns the Ethernet address in the reply."""
    with inside(lab.network.namespace("client")):
        link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
    with link:
        link.bind(("eth0", 0x0806))
        link.settimeout(10)
        mac = link.getsockname()[4]
        probe = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, bytes(4), bytes(6), socket.inet_aton(vip))
        link.send(b"\xff" * 6 + mac + struct.pack("!H", 0x0806) + probe)
        while True:
            frame = link.recv(2048)
            operation, sender_mac, sender = struct.unpack("!H6s4s", frame[20:32])
            if operation == 2 and sender == socket.inet_aton(vip):
                equal(frame[:6], mac, "the receiver of the reply")
                return sender_mac.hex(":")


@case(driver=("af_packet", "af_xdp"))
def clients_on_the_link_learn_the_vip_from_workers_PRESENCE006_LB018(lab):
    start(lab, web(), *SLICES)
    for vip in (VIP_ON_LINK, VIP_ON_LINK_6):
        becomes(lab.gateway, "arp", vip)
        equal(lab.get(vip).status, 200, f"{vip} by ARP or ND")
        equal(known(lab, vip), twin_mac(lab), f"the client's entry of {vip}")
        equal(lab.network.run("client", "ping", "-c", "1", "-W", "5", vip).returncode, 0, f"ping to {vip}")
    check(counter(lab, "arp_replies") > 0 and counter(lab, "neighbour_advertisements") > 0, "workers have counted their answers")
    equal(counter(lab, "vip_conflicts"), 0, "vip_conflicts")
    addresses = {entry["local"] for entry in shown(lab, "gateway", "address", "show", "dev", "uplink0")[0]["addr_info"]}
    check(not addresses & {VIP_ON_LINK, VIP_ON_LINK_6}, f"the twin's addresses: {addresses}")
    routes = [(route["dst"], route["dev"], route["metric"]) for family in ("-4", "-6") for route in shown(lab, "gateway", family, "route", "show", "proto", "80")]
    equal(sorted(routes), [(VIP_ON_LINK, "uplink0", 100), (VIP_ON_LINK_6, "uplink0", 100)], "routes for a routing daemon")
    done = lab.network.run("gateway", "curl", "-s", "-o", "/dev/null", "-m", "10", "-w", "%{http_code}", f"http://{VIP_ON_LINK}/")
    equal(done.stdout, "200", "a program on the gateway host")

    lab.network.ip("client", "neigh flush all")
    for own in (net.UPLINK, net.UPLINK6):
        equal(lab.network.run("client", "ping", "-c", "1", "-W", "5", own).returncode, 0, f"{own}, for which Linux answers")
    nobody_answers_for(lab, OTHER_VIP)
    lab.apply(web([VIP_ON_LINK_6]), *SLICES)
    until("the VIP without a Service is gone", lambda: VIP_ON_LINK not in views(lab.gateway), patience_s=15)
    nobody_answers_for(lab)
    equal(lab.get(VIP_ON_LINK_6).status, 200, "the VIP that is left")


@case()
def a_host_that_probes_for_the_vip_learns_of_the_conflict_PRESENCE006(lab):
    start(lab, web(), *SLICES)
    for vip in (VIP_ON_LINK, VIP_ON_LINK_6):
        becomes(lab.gateway, "arp", vip)
    equal(arp_probe(lab, VIP_ON_LINK), twin_mac(lab), "the reply to an ARP probe")
    for key in ("accept_dad", "dad_transmits"):
        lab.network.sysctl("client", f"ipv6/conf/eth0/{key}", 1)
    lab.network.ip("client", f"address add {VIP_ON_LINK_6}/128 dev eth0")

    def failed():
        rows = [row for row in shown(lab, "client", "-6", "address", "show", "dev", "eth0") if row]
        return any(entry.get("local") == VIP_ON_LINK_6 and entry.get("dadfailed") for row in rows for entry in row["addr_info"])
    until("the client's kernel has found the duplicate", failed, patience_s=15)
    lab.network.ip("client", f"address del {VIP_ON_LINK_6}/128 dev eth0")
    equal(lab.get(VIP_ON_LINK_6).status, 200, "afterwards")


@case()
def a_drain_stops_the_answers_and_keeps_the_traffic_DRAIN006_PRESENCE003_PRESENCE006(lab):
    start(lab, web(), *SLICES)
    becomes(lab.gateway, "arp")
    lab.make_file("large", 8_000_000)
    with lab.tcp_socket(VIP_ON_LINK, 80, timeout_s=30) as download:
        download.send(b"GET /slow/large HTTP/1.0\r\n\r\n")
        received = len(download.recv(1000))
        equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
        until("workers answer no more", lambda: views(lab.gateway)[VIP_ON_LINK]["presence"] != "arp", patience_s=15)
        while chunk := download.recv(1 << 16):
            received += len(chunk)
    check(received > 8_000_000, f"a flow from before the drain ended after {received} bytes")
    nobody_answers_for(lab)
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    becomes(lab.gateway, "arp")
    equal(lab.get(VIP_ON_LINK).status, 200, "afterwards")


def start_second(lab):
    """A second gateway on the client's link, which becomes a bridge; it is drained."""
    lab.network.add("gateway-2")
    lab.network.join("gateway-2", "gw-up", "client", "eth1")
    lab.network.join("gateway-2", "gw-cl", "switch", "to-gateway-2")
    lab.network.ip("switch", "link set to-gateway-2 master br0")
    lab.network.ip("client", "link add link0 type bridge mcast_snooping 0\nlink set link0 up\n"
                             "address flush dev eth0\nlink set eth0 master link0\nlink set eth1 master link0\n"
                             f"address add {net.CLIENT}/24 dev link0\naddress add {net.CLIENT6}/64 dev link0")
    second = gw.Gateway(lab.network, lab.run, lab.gateway.build, place=SECOND_ON_LINK)
    second.more_options = ["--vip-presence", "arp"]
    lab.run.reserve_hugepages(second.memory_mb)
    second.start_daemon()
    equal(second.ctl("drain").returncode, 0, "exit code of drain")
    lab.network.start("gateway-2", [second.program("penstock-sync"), "--manifests", lab.manifests, "--gateway", second.address, "--listen", "off",
                                    "--http", "off"], "penstock-sync-2.log")
    until("the second gateway serves the VIP", lambda: any(status.get("listening") for status in second.services().values()), patience_s=60)
    return second


@case()
def the_vip_moves_to_the_gateway_that_announces_it_PRESENCE004(lab):
    """No entry of the client is flushed: it follows the announcements."""
    start(lab, web(), *SLICES)
    second = start_second(lab)
    vips = (VIP_ON_LINK, VIP_ON_LINK_6)
    for vip in vips:
        becomes(lab.gateway, "arp", vip)
    equal(lab.get(VIP_ON_LINK).status, 200, "through the first gateway")
    until("the client's entry of the IPv6 VIP", lambda: lab.get(VIP_ON_LINK_6).status == 200, patience_s=15)
    for vip in vips:
        equal(known(lab, vip), twin_mac(lab), f"the client's entry of {vip}")
    equal(lab.gateway.ctl("drain").returncode, 0, "exit code of drain")
    until("the first gateway answers no more", lambda: views(lab.gateway)[VIP_ON_LINK]["presence"] != "arp", patience_s=15)
    equal(second.ctl("undrain").returncode, 0, "exit code of undrain")
    for vip in vips:
        until(f"the client sends to the second gateway for {vip}", lambda vip=vip: known(lab, vip) == twin_mac(lab, "gateway-2"), patience_s=15)
    equal(lab.get(VIP_ON_LINK).status, 200, "through the second gateway")

    mac = twin_mac(lab)
    second.end_daemon()
    equal(lab.gateway.ctl("undrain").returncode, 0, "exit code of undrain")
    for vip in vips:
        until(f"the client sends to the first gateway for {vip}", lambda vip=vip: known(lab, vip) == mac, patience_s=15)
    equal(lab.get(VIP_ON_LINK).status, 200, "through the first gateway again")
