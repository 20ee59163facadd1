# SPDX-License-Identifier: Apache-2.0
"""Requests and datagrams from the client's namespace, and the counts of the client's kernel.

The client counts by nftables, which makes penstockd's counters verifiable. penstockd's forward packets must
equal the packets that the client sent, its reverse packets those that the client received, and its new flows
the connections that were opened. The comparison is exact."""
import collections
import dataclasses
import json
import select
import socket

from .network import BACKENDS, bracketed, family_of, inside
from .patience import Patience


@dataclasses.dataclass(frozen=True)
class Frontend:
    title: str     # kind of frontend
    service: str   # "default/my-service:web/tcp": service port that must count the traffic
    protocol: str  # "tcp" or "udp"
    address: str
    port: int
    reaches: tuple = tuple(BACKENDS)  # backends: each must receive traffic, and no other may

    def __str__(self):
        return f"{self.title} {self.protocol} {bracketed(self.address)}:{self.port}"


@dataclasses.dataclass
class Outcome:
    requests: int = 0
    flows: int = 0  # connections opened, or distinct UDP sources
    failures: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # by reason
    answered_by: collections.Counter = dataclasses.field(default_factory=collections.Counter)


class ClientCounters:
    """Counts packets to and from each frontend at the client's interface."""

    def __init__(self, network, frontends):
        self._network = network
        self._frontends = list(frontends)
        rules = []
        for i, frontend in enumerate(self._frontends):
            ip = "ip6" if family_of(frontend.address) == socket.AF_INET6 else "ip"
            match = f"{frontend.protocol} %sport {frontend.port} counter"
            rules += [f"add rule inet lab sent {ip} daddr {frontend.address} {match % 'd'} comment \"{i}\"",
                      f"add rule inet lab received {ip} saddr {frontend.address} {match % 's'} comment \"{i}\""]
        chains = ["add table inet lab", "delete table inet lab", "add table inet lab",
                  "add chain inet lab sent { type filter hook postrouting priority 0; }",
                  "add chain inet lab received { type filter hook prerouting priority 0; }"]
        loaded = network.run("client", "nft", "-f", "-", stdin="\n".join(chains + rules) + "\n")
        if loaded.returncode != 0:
            raise RuntimeError(f"nft in the client's namespace: {loaded.stderr.strip()}")

    def read(self):
        """{frontend: (sent, received)} in packets since this object was created."""
        listed = json.loads(self._network.run("client", "nft", "-j", "list", "table", "inet", "lab").stdout)
        packets = {}
        for rule in (entry["rule"] for entry in listed["nftables"] if "rule" in entry):
            count = next(part["counter"]["packets"] for part in rule["expr"] if "counter" in part)
            packets[rule["chain"], int(rule["comment"])] = count
        return {frontend: (packets["sent", i], packets["received", i]) for i, frontend in enumerate(self._frontends)}


def http(network, frontend, requests, at_once=8):
    """Sends requests with real curl, one connection per request, `at_once` in parallel. Stops when a whole
    round has failed, because waiting for the rest to time out would take minutes."""
    outcome = Outcome()
    per_round = 5 * at_once
    while outcome.requests < requests and outcome.failures.total() < per_round:
        _http_round(network, frontend, outcome.requests + 1, min(outcome.requests + per_round, requests), at_once, outcome)
    return outcome


def _http_round(network, frontend, first, last, at_once, outcome):
    done = network.run("client", "curl", "--silent", "--parallel", "--parallel-max", str(at_once), "--max-time", "20",
                       "--header", "Connection: close", "--output", "/dev/null",
                       "--write-out", "%{num_connects} %{http_code} %header{x-backend} %{errormsg}\n",
                       f"http://{bracketed(frontend.address)}:{frontend.port}/?[{first}-{last}]", timeout_s=60)
    for line in done.stdout.splitlines():
        connects, code, rest = line.split(" ", 2)
        backend, _, error = rest.partition(" ")
        outcome.requests += 1
        outcome.flows += int(connects)
        if code == "200" and backend:
            outcome.answered_by[backend] += 1
        else:
            outcome.failures[error or f"HTTP status {code}"] += 1
    if outcome.requests < last:
        raise RuntimeError(f"curl reports {outcome.requests - first + 1} of {last - first + 1} requests: {done.stderr.strip()}")


def udp(network, frontend, datagrams, at_once=16, patience_s=10.0):
    """Sends each datagram from a new socket. All sockets stay open to the end, so each datagram has an L4
    port of its own and is a separate flow."""
    outcome = Outcome()
    sockets = []
    try:
        with inside(network.namespace("client")):
            for first in range(0, datagrams, at_once):
                waiting = {}
                for i in range(first, min(first + at_once, datagrams)):
                    client = socket.socket(family_of(frontend.address), socket.SOCK_DGRAM)
                    sockets.append(client)
                    payload = f"datagram-{i}".encode()
                    outcome.requests += 1
                    try:
                        client.connect((frontend.address, frontend.port))
                        client.send(payload)
                    except OSError as error:
                        outcome.failures[error.strerror] += 1
                        continue
                    outcome.flows += 1
                    waiting[client] = payload
                _collect(waiting, Patience(patience_s), outcome)
    finally:
        for client in sockets:
            client.close()
    return outcome


def _collect(waiting, patience, outcome):
    while waiting and patience.lasts():
        for client in select.select(list(waiting), [], [], 0.1)[0]:
            payload = waiting.pop(client)
            try:
                backend, _, echoed = client.recv(2048).split(b" ", 2)
            except OSError as error:
                outcome.failures[error.strerror] += 1
                continue
            if echoed == payload:
                outcome.answered_by[backend.decode()] += 1
            else:
                outcome.failures[f"sent {payload!r}, got {echoed!r}"] += 1
    if waiting:
        outcome.failures["no answer"] += len(waiting)
