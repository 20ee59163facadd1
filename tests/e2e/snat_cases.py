# SPDX-License-Identifier: Apache-2.0
"""Few SNAT ports and many short connections. A real TCP stack at the endpoint holds each tuple in TIME-WAIT
for a minute after it closed. It answers a SYN on such a tuple with a challenge ACK unless the sequence number
or the timestamp has risen (RFC 6191; ADR 0009).

A challenge is distinguished from a packet lost on a busy machine by its delay: a retransmission timer sends a
SYN again after a second at the earliest, the answer to a challenge ACK causes it at once."""
import contextlib
import dataclasses
import socket
import struct
import threading
import time

from drop_cases import counter, drops, raw_frame
from fixture import VIP, case, check, equal, in_parallel, until
from lab.gateway import traffic_of
from lab.network import inside
from manifests import endpoints, service
from packets import TCP, Flow, packet

PORT = 9400
ENDPOINT = "backend-1"  # one endpoint, so that all flows use the same ports
CLIENTS = [f"10.80.1.{host}" for host in range(21, 29)]
ONE_BLOCK = "20032-20095"    # 64 ports
MANY_BLOCKS = "20480-22527"  # 2,048 ports

_TCP_INFO_TOTAL_RETRANS = 100  # offset of tcpi_total_retrans in struct tcp_info (linux/tcp.h)


class Listener:
    """Accepts connections at the endpoint. "closes first": closes each connection at once, and its kernel
    keeps the TIME-WAIT; "answers": closes it after the client has closed."""

    def __init__(self, lab, behaviour):
        self._behaviour = behaviour
        with inside(lab.network.namespace(ENDPOINT)):
            self._socket = socket.create_server(("", PORT), backlog=1024)
        self._threads = [threading.Thread(target=self._loop) for _ in range(8 if behaviour == "closes first" else 80)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the threads in accept(), which close() would not
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _loop(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                if self._behaviour == "answers":
                    connection.recv(1)


@dataclasses.dataclass
class Opening:
    again: int  # retransmissions of the SYN by the client's kernel
    seconds: float

    @property
    def challenged(self):
        return self.again > 0 and self.seconds < 1


@dataclasses.dataclass
class Bench:
    lab: object
    known: dict

    @staticmethod
    def start(lab, ports, timestamps=1):
        lab.gateway.more_options = ["--snat-ports", ports]
        lab.start(service("short", PORT, target_port=PORT, external_ips=[VIP]), endpoints("short", [ENDPOINT], port=PORT),
                  service("other", 80, external_ips=[VIP]), endpoints("other", [ENDPOINT]))
        lab.network.ip("client", "\n".join(f"address add {address}/24 dev eth0" for address in CLIENTS))
        for role in ("client", ENDPOINT):
            lab.network.sysctl(role, "ipv4/tcp_timestamps", timestamps)
        # Neighbours are resolved before the counts begin. The traffic uses another port of the endpoint,
        # which has other tuples.
        with inside(lab.network.namespace("client")):
            for address in CLIENTS:
                socket.create_connection((VIP, 80), timeout=8, source_address=(address, 0)).close()
        return Bench(lab, _facts(lab))

    def since(self):
        """The changes since the start: flows of the service, drops by reason."""
        flows, reasons = _facts(self.lab).values()
        return {"flows": flows - self.known["flows"],
                "drops": {name: n - self.known["drops"][name] for name, n in reasons.items() if n != self.known["drops"][name]}}


def _facts(lab):
    return {"flows": traffic_of(lab.gateway.services()["default/short/tcp"])["new_flows"], "drops": drops(lab)}


def connect(lab, source, timeout_s=8.0):
    with inside(lab.network.namespace("client")):
        client = socket.socket()
    client.settimeout(timeout_s)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    client.bind(source)
    deadline = time.monotonic() + timeout_s
    while True:
        began = time.monotonic()
        try:
            client.connect((VIP, PORT))
            seconds = time.monotonic() - began
            info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
            return client, Opening(struct.unpack_from("I", info, _TCP_INFO_TOTAL_RETRANS)[0], seconds)
        except OSError as error:
            # EADDRNOTAVAIL: the client's own kernel still waits for the last ACK of the previous connection,
            # which is in flight.
            if isinstance(error, (TimeoutError, ConnectionError)) or began > deadline:
                client.close()
                raise
            time.sleep(0.001)


def short_connection(lab, source):
    """Opens a connection, waits for the endpoint's FIN, closes."""
    client, opening = connect(lab, source)
    with client:
        equal(client.recv(1), b"", "what came before the endpoint's FIN")
    return opening


@case(workers=(1, 2), timestamps=(1, 0))
def short_connections_never_meet_a_time_wait_while_ports_can_rest_NAT002(lab):
    bench = Bench.start(lab, MANY_BLOCKS, lab.variant["timestamps"])
    with Listener(lab, "closes first"):
        openings = sum(in_parallel(lambda address: [short_connection(lab, (address, 0)) for _ in range(75)], CLIENTS), [])
    equal(bench.since(), {"flows": 600, "drops": {}}, "of 600 connections through 2,048 ports")
    equal(sum(opening.challenged for opening in openings), 0, "connections that the endpoint challenged")


@case(timestamps=(1, 0))
def a_client_may_use_its_port_again_at_once_NAT002(lab):
    """Opens more connections than there are ports: the SYN meets TIME-WAITs at the endpoint, all of them of
    this client, as without a gateway."""
    bench = Bench.start(lab, ONE_BLOCK, lab.variant["timestamps"])
    with Listener(lab, "closes first"):
        openings = [short_connection(lab, (CLIENTS[0], 30000)) for _ in range(200)]
    equal(bench.since(), {"flows": 200, "drops": {}}, "of 200 connections through 64 ports")
    equal(sum(opening.challenged for opening in openings), 0, "connections that the endpoint challenged")


@case(timestamps=(1, 0))
def a_tuple_that_another_client_left_in_time_wait_costs_no_waiting_NAT002(lab):
    """Whether a SYN is challenged depends on random sequence numbers. The client's answer clears the tuple,
    and Linux sends the SYN again within two ticks, once. A second repetition means that the gateway changed
    the tuple (or the machine stalled for a second)."""
    bench = Bench.start(lab, ONE_BLOCK, lab.variant["timestamps"])
    with Listener(lab, "closes first"):
        openings = sum(in_parallel(lambda address: [short_connection(lab, (address, 30000)) for _ in range(40)], CLIENTS), [])
    most = max(opening.again for opening in openings)
    lab.remarks.append(f"{sum(opening.challenged for opening in openings)} of 320 challenged, SYN sent again at most {most} times")
    equal(bench.since()["flows"], 320, "new flows")
    check(most <= 2, f"a client sent its SYN {most} times again")


@case()
def exhausted_ports_are_named_and_served_again_once_free_NAT002(lab):
    bench = Bench.start(lab, ONE_BLOCK)
    with Listener(lab, "answers"), contextlib.ExitStack() as held:
        first, *_ = [held.enter_context(connect(lab, (CLIENTS[i % len(CLIENTS)], 31000 + i))[0]) for i in range(64)]
        equal(lab.connection_outcome(VIP, PORT, timeout_s=0.5), "silence", "a 65th connection")
        equal(list(bench.since()["drops"]), ["snat_ports_exhausted"], "drops")
        # A released port is available to the next connection at once.
        source = first.getsockname()
        # closes with a RST, so that no TIME-WAIT remains
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        first.close()
        held.enter_context(connect(lab, source)[0])


def _reclaimed(lab):
    return counter(lab, "reclaimed_snat_ports")


@case()
def spoofed_syns_leave_an_endpoint_served_NAT002(lab):
    """SYNs of hosts that do not exist, eight times as many as there are ports before each connection. None of
    them has idled out by then."""
    bench = Bench.start(lab, ONE_BLOCK)
    with Listener(lab, "answers"):
        for n in range(5):
            raw_frame(lab, *[packet(Flow(f"10.80.1.{100 + source % 100}", 1024 + 512 * n + source, VIP, PORT, TCP)) for source in range(512)])
            client, _ = connect(lab, (CLIENTS[n], 32000 + n), timeout_s=20.0)
            client.close()
    check(bench.since()["flows"] > 64, "more flows than ports were opened")
    check(_reclaimed(lab) > 0, "ports were reclaimed")


@case()
def one_shot_queries_are_answered_whatever_their_number_NAT002(lab):
    """One socket, and so one SNAT port, for each query; eight times as many as there are ports, within the
    idle timeout of a flow."""
    lab.gateway.more_options = ["--snat-ports", ONE_BLOCK]
    lab.start(service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP]),
              endpoints("echo", [ENDPOINT], port=5353, protocol="UDP"))
    for n in range(512):
        until(f"query {n} is answered", lambda n=n: _is_answered(lab, b"query %d" % n), patience_s=20.0)
    check(_reclaimed(lab) > 0, "ports were reclaimed")


def _is_answered(lab, query):
    try:
        return lab.echo(VIP, 5353, query)[2] == query
    except TimeoutError:
        return False
