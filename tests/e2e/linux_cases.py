# SPDX-License-Identifier: Apache-2.0
"""Linux beside the workers: the twins, their addresses, and all packets outside the gateway's flows."""
import errno
import socket
import threading

from drop_cases import counter, drops
from fixture import LB_IP, NODE_PORT, VIP, VIP2, VIP_6, case, check, equal, until
from lab import network as net
from lab.network import BACKENDS, family_of, inside
from manifests import endpoints, service


def web():
    return service("web", external_ips=[VIP], node_port=NODE_PORT), endpoints("web")


class HostListener:
    """A server on the gateway host itself, on all its addresses."""

    def __init__(self, lab, port):
        with inside(lab.network.namespace("gateway")):
            self._server = socket.create_server(("0.0.0.0", port))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            client.sendall(b"host\n")
            client.close()


class HostEcho:
    """A UDP server on the gateway host itself that returns the source address of each datagram."""

    def __init__(self, lab, address, port):
        with inside(lab.network.namespace("gateway")):
            self._server = socket.socket(family_of(address), socket.SOCK_DGRAM)
            self._server.bind((address, port))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            datagram, client = self._server.recvfrom(65535)
            self._server.sendto(b"host " + client[0].encode() + b" " + datagram, client)


def on_the_host(service_name, address, port=9376, protocol="TCP"):
    """An EndpointSlice whose only endpoint is the gateway's node itself, as for a Pod with hostNetwork."""
    slice_of_any = endpoints(service_name, ["backend-1"], port=port, protocol=protocol, family="IPv6" if ":" in address else "IPv4")
    return {**slice_of_any, "endpoints": [{**slice_of_any["endpoints"][0], "addresses": [address]}]}


def said_by(lab, address, port):
    with inside(lab.network.namespace("client")):
        with socket.create_connection((address, port), timeout=2) as client:
            return client.recv(100)


@case(driver=("af_packet", "af_xdp"))
def the_host_answers_ping_on_both_twins_XIP003(lab):
    lab.start(*web())
    for role, address in (("client", net.UPLINK), ("backend-1", net.CLUSTER)):
        pinged = lab.network.run(role, "ping", "-c", "3", "-i", "0.2", "-W", "2", address)
        check(" 0% packet loss" in pinged.stdout, f"ping {address} from {role}:\n{pinged.stdout}")


@case()
def the_veths_carry_no_address_and_the_kernel_forwards_nothing(lab):
    lab.start(*web())
    equal(lab.network.sysctl("gateway", "ipv4/ip_forward"), "0", "net.ipv4.ip_forward")
    for interface in ("gw-up", "gw-cl"):
        shown = lab.network.run("gateway", "ip", "-o", "address", "show", "dev", interface).stdout
        equal(shown, "", f"addresses of {interface}")
    shown = lab.network.run("gateway", "ip", "-o", "address", "show", "dev", "uplink0").stdout
    check(f"{net.UPLINK}/24" in shown, f"the twin has no {net.UPLINK}: {shown}")


@case()
def a_port_that_no_service_declares_goes_to_the_host_XIP003(lab):
    lab.start(*web())
    # the operator puts the VIP on the twin, so Linux owns it too
    lab.network.ip("gateway", f"address add {VIP}/32 dev uplink0")
    HostListener(lab, 8081)
    equal(said_by(lab, net.UPLINK, 8081), b"host\n", "undeclared port of the gateway's address")
    until("the VIP's other ports reach the host", lambda: lab.connection_outcome(VIP, 8081) == "open")
    equal(said_by(lab, VIP, 8081), b"host\n", "undeclared port of a VIP on the twin")
    equal(lab.get(VIP, 80).status, 200, "declared port of the VIP")
    equal(lab.get(net.UPLINK, NODE_PORT).status, 200, "NodePort of the gateway's address")


@case()
def a_node_port_at_the_hosts_own_address_is_linuxs_for_the_host_itself_NODEPORT002(lab):
    """kube-proxy serves it. The connection never leaves the host's own stack."""
    lab.start(*web())
    equal(lab.get(net.UPLINK, NODE_PORT).status, 200, "the NodePort, for a client outside")

    def connect():
        with inside(lab.network.namespace("gateway")):
            client = socket.socket()
        with client:
            client.settimeout(2)
            return client.connect_ex((net.UPLINK, NODE_PORT))
    equal(connect(), errno.ECONNREFUSED, "the NodePort at the host's own address, for the host")
    HostListener(lab, NODE_PORT)
    equal(connect(), 0, "the same while a program listens")


@case(workers=(1, 2))
def an_endpoint_on_the_gateway_host_answers_EP007(lab):
    lab.start(service("web", external_ips=[VIP], node_port=NODE_PORT), on_the_host("web", net.CLUSTER),
              service("kept", 81, external_ips=[VIP], policy="Local"), on_the_host("kept", net.CLUSTER),
              service("echo", 53, protocol="UDP", external_ips=[VIP]), on_the_host("echo", net.CLUSTER, 5353, "UDP"),
              service("echo6", 53, protocol="UDP", external_ips=[VIP_6], families=("IPv6",)),
              on_the_host("echo6", net.CLUSTER6, 5353, "UDP"))
    HostListener(lab, 9376)
    HostEcho(lab, net.CLUSTER, 5353)
    HostEcho(lab, net.CLUSTER6, 5353)
    for address, port in ((VIP, 80), (net.UPLINK, NODE_PORT), (VIP, 81)):
        for _ in range(8):  # ports of different workers
            equal(said_by(lab, address, port), b"host\n", f"answer of {address}:{port}")
    for address, client in ((VIP, net.CLIENT), (VIP_6, net.CLIENT6)):
        for _ in range(8):
            equal(lab.echo(address, 53), ("host", client, b"hello"), f"answer of {address}:53")
    told = lab.gateway.ctl("explain", "--proto", "tcp", "--src", f"{net.CLIENT}:4000", "--dst", f"{VIP}:80").stdout
    check("delivered to the host" in told, f"explain:\n{told}")


@case(workers=(1, 2))
def the_gateway_host_is_a_client_of_services_ETP006_SRC007(lab):
    ranges = [f"{net.CLUSTER}/32"]  # the host connects from its uplink's address
    lab.start(service("web", external_ips=[VIP], policy="Local"), endpoints("web"),
              service("elsewhere", 81, external_ips=[VIP], policy="Local"), endpoints("elsewhere", node="edge-2"),
              service("guarded", ingress_ips=[LB_IP], source_ranges=ranges), endpoints("guarded"),
              service("empty", external_ips=[VIP2]))
    lab.network.ip("gateway", f"route add default via {net.CLIENT} dev uplink0")

    def asked_by_host(address):
        return lab.network.run("gateway", "curl", "--silent", "--max-time", "5", f"http://{address}/client").stdout.strip()
    until("the mirror has the route", lambda: any(route["destination"] == "0.0.0.0/0" for route in lab.gateway.json("get", "routes")))
    for address in (VIP, f"{VIP}:81", LB_IP):  # no Pod CIDR is configured here
        for _ in range(6):
            equal(asked_by_host(address), net.CLUSTER, f"source that nginx saw behind {address}")
    with inside(lab.network.namespace("gateway")):
        try:
            socket.create_connection((VIP2, 80), timeout=5).close()
            raise AssertionError("a Service without endpoints answered")
        except ConnectionRefusedError:
            pass


@case()
def the_host_reaches_its_neighbours_through_the_twins(lab):
    lab.start(*web())
    done = lab.network.run("gateway", "curl", "--silent", "--max-time", "5", f"http://{BACKENDS['backend-2']}:9376/")
    equal(done.stdout, "backend-2\n", "curl on the gateway host")


@case()
def routes_and_neighbours_are_mirrored(lab):
    lab.start(*web())
    lab.answered_by(6)
    routes = {route["destination"]: route for route in lab.gateway.json("get", "routes")}
    check("10.80.1.0/24" in routes and "10.80.2.0/24" in routes, f"routes: {sorted(routes)}")
    neighbours = {entry["address"]: entry for entry in lab.gateway.json("get", "neighbours")}
    for address in (net.CLIENT, *BACKENDS.values()):
        check(neighbours.get(address, {}).get("mac"), f"neighbour {address}: {neighbours.get(address)}")
    lab.network.ip("gateway", f"route add 198.18.0.0/15 via {net.CLIENT} dev uplink0")
    until("a route added on the twin", lambda: any(route["destination"] == "198.18.0.0/15" for route in lab.gateway.json("get", "routes")))


@case()
def a_backend_that_changes_its_mac_is_found_again(lab):
    """The kernel sees no flow traffic, so the gateway re-confirms next hops in use for it; a gratuitous ARP
    is enough."""
    lab.start(service("web", external_ips=[VIP]), endpoints("web", ["backend-1"]))
    equal(lab.get().status, 200, "before")
    lab.network.ip("backend-1", "link set eth0 down\nlink set eth0 address 02:00:00:00:be:01\nlink set eth0 up\n"
                                f"route replace default via {net.CLUSTER}")
    lab.network.run("backend-1", "ping", "-c", "1", "-W", "2", net.CLUSTER)

    def works():
        try:
            return lab.get(timeout_s=1).status == 200
        except OSError:
            return False
    until("the new MAC is used", works, patience_s=10)


def arp_request(mac, asked):
    sender = mac + socket.inet_aton(net.CLIENT)
    return b"\xff" * 6 + mac + b"\x08\x06" + b"\0\1\x08\0\6\4\0\1" + sender + b"\0" * 6 + socket.inet_aton(asked)


@case(workers=(1, 2))
def control_frames_pass_beside_a_flood_for_the_host(lab):
    """A flood has a ring of its own. It may or may not overflow on a given machine, but no control frame may
    be lost because of it."""
    lab.start(*web())
    mac = bytes.fromhex(lab.network.run("client", "cat", "/sys/class/net/eth0/address").stdout.strip().replace(":", ""))
    stopped = threading.Event()
    with inside(lab.network.namespace("client")):
        junk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
        wire.bind(("eth0", 0x0806))
    junk.connect((net.UPLINK, 9))
    sent = []

    def flood():
        while not stopped.is_set():
            try:
                sent.append(junk.send(b"x"))
            except OSError:
                pass  # port unreachable
    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        until("a flood of 100 datagrams", lambda: len(sent) > 100, patience_s=20)
        wire.settimeout(0.2)
        for number in range(30):
            def answered():
                # A busy machine may lose a request in the NIC's own ring, so it is repeated.
                wire.send(arp_request(mac, net.UPLINK))
                try:
                    frame = wire.recv(2048)
                except TimeoutError:
                    return False
                return frame[20:22] == b"\0\2" and frame[28:32] == socket.inet_aton(net.UPLINK)
            until(f"answer {number} to ARP", answered, patience_s=20)
    finally:
        stopped.set()
        flooding.join()
    equal(drops(lab)["punt_control_full"], 0, "control frames lost")


def twin_statistics(lab, twin):
    shown = lab.network.run("gateway", "cat", "/proc/self/net/dev").stdout
    columns = next(line for line in shown.splitlines() if line.strip().startswith(f"{twin}:")).split(":")[1].split()
    return {"sent": int(columns[9]), "dropped": int(columns[11])}


@case(workers=(1, 2))
def each_frame_that_linux_sends_is_counted(lab):
    """Sends more packets at once than fit into the ring towards a worker. The taken, the dropped and those
    that Linux itself dropped must add up."""
    lab.start(*web())
    lab.network.ip("gateway", f"neigh replace {net.CLIENT} lladdr 02:00:00:00:00:99 dev uplink0 nud permanent")
    with inside(lab.network.namespace("gateway")):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
            client.connect((net.CLIENT, 9))
            sent = 0
            for _ in range(20_000):
                try:
                    client.send(b"x")
                    sent += 1
                except OSError:
                    pass

    def books():
        reasons = drops(lab)
        ports = {port["twin"]: port for port in lab.gateway.json("get", "ports")}
        linux = {twin: twin_statistics(lab, twin) for twin in ports}
        # The packets that the twin refused were punted before (docs/counters.md).
        dropped = sum(reasons.values()) - reasons["punt_failed"]
        return {"frames of Linux": (sum(one["sent"] for one in linux.values()), counter(lab, "from_host")),
                "frames that Linux dropped": (sum(one["dropped"] for one in linux.values()),
                                              sum(int(port.get("twin_dropped", 0)) for port in ports.values())),
                "all": (sum(counter(lab, name) for name in ("rx_packets", "from_host", "fragments_made", "segments_made")),
                        sum(counter(lab, name) for name in ("tx_packets", "punted", "fragmented_packets")) + dropped)}
    try:
        until("the books close", lambda: all(one == other for one, other in books().values()), patience_s=10)
    except AssertionError as error:
        raise AssertionError(f"{error}: {books()}, drops {({name: count for name, count in drops(lab).items() if count})}") from None
    lab.remarks.append(f"{sent} sent, {drops(lab)['from_host_ring_full']} found the ring full, "
                       f"{books()['frames that Linux dropped'][0]} the twin's queue")
    check(counter(lab, "from_host") + books()["frames that Linux dropped"][0] >= sent, f"of {sent} frames some are in no counter: {books()}")


@case(slots=("", ",framesz=16384"))
def fragments_that_the_kernel_joins_need_room_in_the_ring_NAT007(lab):
    """docs/operations.md, Fragments: af_packet's sockets receive IPv4 datagrams whole, and truncate those
    that exceed a slot of the ring."""
    has_room = lab.variant["slots"] != ""
    lab.gateway.device_arguments = lab.variant["slots"]
    lab.gateway.more_memory_mb = 512 if has_room else 0
    lab.start(service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP]), endpoints("echo", port=5353, protocol="UDP"))
    until("the Service answers", lambda: lab.echo(VIP, 5353)[2] == b"hello")
    before = drops(lab)["frame_shorter_than_ip"]
    if has_room:
        equal(lab.echo(VIP, 5353, b"x" * 8000)[2], b"x" * 8000, "8,000 bytes in fragments, there and back")
        equal(drops(lab)["frame_shorter_than_ip"], before, "datagrams cut")
        return
    with lab.udp_socket(VIP, 5353) as client:
        client.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: IP_PMTUDISC_DONT
        client.send(b"x" * 8000)
        until("the datagram is dropped by name", lambda: drops(lab)["frame_shorter_than_ip"] > before)
