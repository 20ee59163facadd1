# SPDX-License-Identifier: Apache-2.0
"""Path MTU: real TCP stacks between links of different MTU, with ICMP as the only signal about the path MTU.
The SYN of each end offers a larger MSS than its own link carries (advmss of its routes). The negotiated MSS
is therefore too large for the path, as between two hosts with jumbo frames and an ordinary link between
them."""
import hashlib
import re
import socket
import struct
import sys
import threading
import time

from drop_cases import counter, drops
from fixture import VIP, VIP_6, case, check, equal, until
from lab import network as net
from lab import servers
from lab.network import family_of, inside
from lab.patience import Patience
from lab.servers import ECHO_PORT
from manifests import endpoints, service

PORT = 9400      # of the peers' own protocol
WIDE, NARROW = 1500, 1300
MEGABYTE = 1_000_000
TRANSFER_BYTES = 100 * MEGABYTE
CLAIMED_MSS = {socket.AF_INET: WIDE - 40, socket.AF_INET6: WIDE - 60}

# A client and an endpoint, each behind a router of its own.
FAR_CLIENT, FAR_CLIENT_6 = "10.81.1.2", "fd00:81:1::2"
CLIENT_ROUTER, CLIENT_ROUTER_6 = "10.81.1.1", "fd00:81:1::1"
FAR_ENDPOINT, FAR_ENDPOINT_6 = "10.82.1.2", "fd00:82:1::2"
ENDPOINT_ROUTER, ENDPOINT_ROUTER_6 = "10.82.1.1", "fd00:82:1::1"

_LENGTHS = struct.Struct("!QQ")
_CHUNK = bytes(range(256)) * 1024


class Peer:
    """A server at an endpoint: receives as many bytes as the client has announced, sends as many as it has
    requested, then the digest of the received bytes."""

    def __init__(self, lab, role):
        with inside(lab.network.namespace(role)):
            self._socket = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)
        self._thread = threading.Thread(target=self._loop)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() would not
        self._thread.join()
        self._socket.close()

    def _loop(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(60)
                try:
                    up, down = _LENGTHS.unpack(read_exactly(connection, _LENGTHS.size))
                    digest = digest_of(connection, up)
                    send_chunks(connection, down)
                    connection.sendall(digest)
                except OSError:
                    pass  # the client's side reports the error


def read_exactly(connection, count):
    got = b""
    while len(got) < count:
        piece = connection.recv(count - len(got))
        if not piece:
            raise ConnectionError(f"the peer has ended the connection after {len(got)} of {count} bytes")
        got += piece
    return got


def digest_of(connection, count):
    digest, buffer = hashlib.sha256(), bytearray(1 << 18)
    while count > 0:
        got = connection.recv_into(buffer, min(count, len(buffer)))
        if got == 0:
            raise ConnectionError(f"the peer has ended the connection {count} bytes early")
        digest.update(memoryview(buffer)[:got])
        count -= got
    return digest.digest()


def send_chunks(connection, count):
    while count > 0:
        piece = memoryview(_CHUNK)[:min(count, len(_CHUNK))]
        connection.sendall(piece)
        count -= len(piece)


def digest_of_chunks(count):
    digest = hashlib.sha256()
    while count > 0:
        digest.update(memoryview(_CHUNK)[:min(count, len(_CHUNK))])
        count -= min(count, len(_CHUNK))
    return digest.digest()


def transfer(lab, role, address, up, down, patience_s=60):
    """One connection of `role` that sends `up` bytes, then receives `down`; both must arrive unchanged.
    Returns MB/s."""
    began = time.monotonic()
    with inside(lab.network.namespace(role)):
        connection = socket.socket(family_of(address))
    with connection:
        connection.settimeout(patience_s)
        connection.connect((address, 80))
        connection.sendall(_LENGTHS.pack(up, down))
        send_chunks(connection, up)
        check(digest_of(connection, down) == digest_of_chunks(down), f"{down} bytes from {address} are not those that were sent")
        check(read_exactly(connection, 32) == digest_of_chunks(up), f"{up} bytes to {address} are not those that arrived")
    return (up + down) / MEGABYTE / (time.monotonic() - began)


def web(policy="Cluster"):
    return service("web", external_ips=[VIP, VIP_6], families=("IPv4", "IPv6"), policy=policy, target_port=PORT)


def of_backend_1(policy="Cluster"):
    return [web(policy), *(endpoints("web", ["backend-1"], port=PORT, family=family) for family in ("IPv4", "IPv6"))]


def set_mtu(lab, role, interfaces, mtu):
    lab.network.ip(role, "\n".join(f"link set {interface} mtu {mtu}" for interface in interfaces))


def claim_a_wide_link(lab):
    """The MSS that the ends of the ordinary lab offer in their SYNs."""
    wide4, wide6 = CLAIMED_MSS[socket.AF_INET], CLAIMED_MSS[socket.AF_INET6]
    lab.network.ip("client", "\n".join(f"route change {to} via {via} advmss {wide6 if ':' in to else wide4}"
                                       for to, via in net.EXTERNAL_RANGES.items()))
    lab.network.ip("backend-1", f"route change default via {net.CLUSTER} advmss {wide4}\nroute change ::/0 via {net.CLUSTER6} advmss {wide6}\n"
                                f"route change 10.80.2.0/24 dev eth0 advmss {wide4}\n"
                                # before the kernel's own
                                f"route add fd00:80:2::/64 dev eth0 metric 1 advmss {wide6}")


def path_mtu(lab, role, address):
    """The path MTU that the kernel has learnt for this destination; None if none."""
    found = re.search(r"\bmtu (\d+)", lab.network.run(role, "ip", "route", "get", address).stdout)
    return int(found[1]) if found else None


def start_between(lab, uplink_mtu, cluster_mtu, *objects):
    """Sets the MTU of a wire at both of its ends."""
    lab.gateway.port_mtu = {"gw-up": uplink_mtu, "gw-cl": cluster_mtu}
    lab.start(*objects)
    set_mtu(lab, "client", ["eth0"], uplink_mtu)
    set_mtu(lab, "backend-1", ["eth0"], cluster_mtu)
    set_mtu(lab, "switch", ["br0", "to-gateway", "to-backend-1"], cluster_mtu)
    claim_a_wide_link(lab)


def expect_transfers(lab, role, narrow_towards):
    """Large datagrams in the direction with the narrow link, small ones in the other; IPv4, then IPv6."""
    rates = []
    for address in (VIP, VIP_6):
        up, down = (TRANSFER_BYTES, MEGABYTE) if narrow_towards == "endpoint" else (MEGABYTE, TRANSFER_BYTES)
        rates.append(transfer(lab, role, address, up, down))
    lab.remarks.append(f"{TRANSFER_BYTES // MEGABYTE} MB at {rates[0]:.0f} MB/s, over IPv6 at {rates[1]:.0f} MB/s")


@case(driver=("af_xdp",), workers=(1,), policy=("Local",))
@case(driver=("af_xdp",), workers=(2,), policy=("Cluster",))
def the_gateway_tells_a_client_what_fits_towards_an_endpoint_ICMP003_ICMP004(lab):
    start_between(lab, WIDE, NARROW, *of_backend_1(lab.variant["policy"]))
    with Peer(lab, "backend-1"):
        expect_transfers(lab, "client", "endpoint")
    for address in (VIP, VIP_6):
        equal(path_mtu(lab, "client", address), NARROW, f"path MTU that the client has learnt for {address}")
    check(counter(lab, "icmp_errors_sent") >= 2, "the gateway has told nobody")
    equal({name: count for name, count in drops(lab).items() if count and name in ("packet_too_big", "reject_limited", "bad_l4_checksum")}, {},
          "drops")


@case(driver=("af_xdp",), workers=(1,), policy=("Local",))
@case(driver=("af_xdp",), workers=(2,), policy=("Cluster",))
def the_gateway_tells_an_endpoint_what_fits_towards_a_client_ICMP003_ICMP004(lab):
    start_between(lab, NARROW, WIDE, *of_backend_1(lab.variant["policy"]))
    with Peer(lab, "backend-1"):
        expect_transfers(lab, "client", "client")
    seen = (net.CLIENT, net.CLIENT6) if lab.variant["policy"] == "Local" else (net.CLUSTER, net.CLUSTER6)
    for address in seen:
        equal(path_mtu(lab, "backend-1", address), NARROW, f"path MTU that the endpoint has learnt for {address}")
    check(counter(lab, "icmp_errors_sent") >= 2, "the gateway has told nobody")


def start_with_routers(lab, policy="Cluster"):
    """far-client -- client (a router) -- gateway -- switch -- backend-1 (a router) -- far-endpoint; the
    outermost links are narrow."""
    slices = [endpoints("web", ["backend-1"], port=PORT, family=family) for family in ("IPv4", "IPv6")]
    slices += [endpoints("echo", ["backend-1"], port=ECHO_PORT, protocol="UDP", family=family) for family in ("IPv4", "IPv6")]
    for entry in slices:
        entry["endpoints"][0]["addresses"] = [FAR_ENDPOINT if entry["addressType"] == "IPv4" else FAR_ENDPOINT_6]
    echo = service("echo", ECHO_PORT, protocol="UDP", target_port=ECHO_PORT, external_ips=[VIP, VIP_6], families=("IPv4", "IPv6"), policy=policy)
    lab.start(web(policy), echo, *slices)
    for role, router, name in (("far-client", "client", "to-far"), ("far-endpoint", "backend-1", "to-far")):
        lab.network.add(role)
        lab.network.join(role, "eth0", router, name)
        set_mtu(lab, role, ["eth0"], NARROW)
        set_mtu(lab, router, [name], NARROW)
        lab.network.sysctl(router, "ipv4/ip_forward", 1)
        lab.network.sysctl(router, "ipv6/conf/all/forwarding", 1)
    mss4, mss6 = CLAIMED_MSS[socket.AF_INET], CLAIMED_MSS[socket.AF_INET6]
    for role, router, name, ends, routers in (
            ("far-client", "client", "to-far", (FAR_CLIENT, FAR_CLIENT_6), (CLIENT_ROUTER, CLIENT_ROUTER_6)),
            ("far-endpoint", "backend-1", "to-far", (FAR_ENDPOINT, FAR_ENDPOINT_6), (ENDPOINT_ROUTER, ENDPOINT_ROUTER_6))):
        lab.network.ip(role, f"address add {ends[0]}/24 dev eth0\naddress add {ends[1]}/64 dev eth0\n"
                             f"route add default via {routers[0]} advmss {mss4}\nroute add ::/0 via {routers[1]} advmss {mss6}")
        lab.network.ip(router, f"address add {routers[0]}/24 dev {name}\naddress add {routers[1]}/64 dev {name}")
    lab.network.ip("gateway", f"route add 10.81.1.0/24 via {net.CLIENT} dev uplink0\nroute add fd00:81:1::/64 via {net.CLIENT6} dev uplink0\n"
                              f"route add 10.82.1.0/24 via {net.BACKENDS['backend-1']} dev cluster0\n"
                              f"route add fd00:82:1::/64 via {net.BACKENDS6['backend-1']} dev cluster0")


@case(driver=("af_xdp",), workers=(1,), policy=("Local",))
@case(driver=("af_xdp",), workers=(2,), policy=("Cluster",))
def routers_on_either_side_are_heard_through_the_gateway_ICMP001_ICMP002_ICMP003(lab):
    start_with_routers(lab, lab.variant["policy"])
    with Peer(lab, "far-endpoint"):
        # The kernel has the routes before the gateway has read them.
        until("a connection across both routers", lambda: reaches(lab, "far-client", VIP) and reaches(lab, "far-client", VIP_6), step_s=0.05)
        for narrow_towards in ("endpoint", "client"):
            # Each sender's own link has the MTU of the narrow link beyond the gateway. It is widened for the
            # direction under test.
            role, router = ("far-client", "client") if narrow_towards == "endpoint" else ("far-endpoint", "backend-1")
            set_mtu(lab, role, ["eth0"], WIDE)
            set_mtu(lab, router, ["to-far"], WIDE)
            expect_transfers(lab, "far-client", narrow_towards)
            set_mtu(lab, role, ["eth0"], NARROW)
            set_mtu(lab, router, ["to-far"], NARROW)
    check(counter(lab, "icmp_errors_translated") >= 4, "no error was translated")
    equal(counter(lab, "icmp_errors_sent"), 0, "errors of the gateway's own, which sees no narrow link")


def reaches(lab, role, address):
    try:
        transfer(lab, role, address, 1, 1, patience_s=1)
        return True
    except OSError:
        return False


LARGE = (9_000, 60_000)


def payload_of(count):
    """No two parts are equal, so that misplaced pieces are detected."""
    return hashlib.shake_128(b"datagram").digest(count)


@case(driver=("af_xdp",), workers=(1, 2), policy=("Cluster", "Local"), narrow_towards=(None, "endpoint", "client"))
def large_datagrams_arrive_whole_NAT007_ICMP003_ICMP004(lab):
    # If a link is narrower than the fragments that a sender makes for its own link, IPv4 fragments are
    # fragmented again on the path. A sender of IPv6, or of IPv4 with DF, gets an ICMP error, and that
    # datagram is lost.
    narrow_towards = lab.variant["narrow_towards"]
    echo = service("echo", ECHO_PORT, protocol="UDP", target_port=ECHO_PORT, external_ips=[VIP, VIP_6], families=("IPv4", "IPv6"),
                   policy=lab.variant["policy"])
    start_between(lab, NARROW if narrow_towards == "client" else WIDE, NARROW if narrow_towards == "endpoint" else WIDE, echo,
                  *(endpoints("echo", ["backend-1"], port=ECHO_PORT, protocol="UDP", family=family) for family in ("IPv4", "IPv6")))
    sent = 0
    for address in (VIP, VIP_6):
        # next hops are resolved by then
        until(f"{address} answers", lambda address=address: echoes(lab, address, b"?"), patience_s=10.0)
        for count in ((*LARGE, NARROW + 1) if narrow_towards else LARGE):
            for _ in range(LESSONS_MAX + 1):
                sent += 1
                if echoes(lab, address, payload_of(count), patience_s=ECHO_PATIENCE_S):
                    break
            else:
                raise AssertionError(f"{count} bytes to {address} did not come back in {LESSONS_MAX + 1} tries: {drops(lab)}")
    lab.remarks.append(f"{sent} sent, {4 + 2 * bool(narrow_towards)} echoed")
    check(counter(lab, "fragments_forwarded") > 0, "no fragment was forwarded")
    equal(counter(lab, "fragmented_packets") > 0, narrow_towards is not None, "the gateway has cut fragments")
    equal({name: count for name, count in drops(lab).items() if count and name in ("bad_fragment", "fragment_overlap", "fragment_too_small",
                                                                                "bad_l4_checksum", "bad_ip_checksum")}, {}, "drops")


# A datagram that fits only its sender's link is lost while the sender learns the path MTU, once in each
# direction. The same holds for an IPv6 datagram that was fragmented for the link of its sender.
LESSONS_MAX = 2
ECHO_PATIENCE_S = 3.0


def echoes(lab, address, payload, patience_s=2.0):
    try:
        backend, seen, echoed = lab.echo(address, ECHO_PORT, payload, timeout_s=patience_s)
    except OSError:
        return False
    kept = net.CLIENT6 if ":" in address else net.CLIENT
    equal((backend, seen == kept, echoed == payload), ("backend-1", lab.variant["policy"] == "Local", True),
          f"{len(payload)} bytes at {address}: who answered, whether it saw the client, and whether each byte came back")
    return True


_ERRQUEUE_OPTIONS = {socket.AF_INET: (socket.IPPROTO_IP, socket.IP_TTL, 11), socket.AF_INET6: (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 25)}
_SO_EE = struct.Struct("=IBBBBII")  # struct sock_extended_err: errno, origin, type, code, pad, info, data


def probe(lab, role, address, hops, patience_s=2.0):
    """The result of a datagram with this hop limit: ("hop", address) or ("answer", bytes); one step of
    traceroute."""
    family = family_of(address)
    level, ttl_option, recverr = _ERRQUEUE_OPTIONS[family]
    with inside(lab.network.namespace(role)):
        client = socket.socket(family, socket.SOCK_DGRAM)
    with client:
        client.settimeout(0.05)
        client.setsockopt(level, ttl_option, hops)
        client.setsockopt(level, recverr, 1)
        client.connect((address, ECHO_PORT))
        client.send(b"probe")
        patience = Patience(patience_s)
        while patience.lasts():
            try:
                return "answer", client.recv(2048)
            except TimeoutError:
                continue
            except OSError:
                pass  # the error queue, read below, has the error's source
            try:
                _, ancillary, _, _ = client.recvmsg(2048, 1024, socket.MSG_ERRQUEUE)
            except (BlockingIOError, TimeoutError):
                continue
            data = next(data for at, kind, data in ancillary if (at, kind) == (level, recverr))
            offender = data[_SO_EE.size:]
            return "hop", socket.inet_ntop(family, offender[4:8] if family == socket.AF_INET else offender[8:24])
    return "silence", None


@case(driver=("af_xdp",), workers=(1, 2))
def a_trace_through_a_vip_shows_each_hop_ICMP001_ICMP006(lab):
    start_with_routers(lab)
    lab.network.start("far-endpoint", [sys.executable, servers.ECHO_PROGRAM, "far-endpoint", str(ECHO_PORT)], "far-endpoint.log")
    backend = net.BACKENDS["backend-1"], net.BACKENDS6["backend-1"]
    for address, hops in ((VIP, (CLIENT_ROUTER, net.UPLINK, backend[0])), (VIP_6, (CLIENT_ROUTER_6, net.UPLINK6, backend[1]))):
        until(f"{address} answers across both routers", lambda: probe(lab, "far-client", address, 64)[0] == "answer", patience_s=10.0)
        for number, hop in enumerate(hops, start=1):
            equal(probe(lab, "far-client", address, number), ("hop", hop), f"hop {number} towards {address}")
        # The endpoint itself is no separate hop: it answers with the VIP as its source.
        equal(probe(lab, "far-client", address, len(hops) + 1)[0], "answer", f"behind the last router towards {address}")
