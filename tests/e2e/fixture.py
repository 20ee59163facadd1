# SPDX-License-Identifier: Apache-2.0
"""Shared by the cases: the register of cases, a running gateway, clients, and bounded waiting."""
import dataclasses
import http.client
import itertools
import os
import socket
import threading
import time
from collections import Counter

import manifests
from lab import gateway as gw
from lab import network as net
from lab import servers, state
from lab.network import family_of, inside
from lab.patience import Patience

# Addresses and ports of the cases' Services.
VIP = "80.11.12.10"
VIP2 = "80.11.12.11"
LB_IP = "203.0.113.20"
NODE_PORT = 30080
VIP_6 = "2001:db8:80::10"
VIP2_6 = "2001:db8:80::11"
LB_IP_6 = "2001:db8:203::20"


class Skip(Exception):
    pass


@dataclasses.dataclass
class Case:
    name: str
    function: object
    variant: dict
    alone: bool = False  # no other case of the run is running
    waits_s: int = 0  # long cases start first


_cases = []


def case(alone=False, waits_s=0, **variants):
    """Registers a function of one Lab. case(workers=(1, 2)) registers it once for each value. alone: for a
    case that measures time. waits_s: seconds that the case waits on every machine, approximately."""
    def register(function):
        room = function.__module__.removesuffix("_cases")
        combinations = [{}]
        for key, values in variants.items():
            combinations = [{**given, key: value} for given in combinations for value in values]
        for variant in combinations:
            label = "".join(f" {key}={value}" for key, value in variant.items())
            _cases.append(Case(f"{room}.{function.__name__}{label}", function, variant, alone, waits_s))
        return function
    return register


def all_cases():
    return _cases


@dataclasses.dataclass
class Answer:
    status: int
    backend: str
    body: bytes
    ms: float


class Lab:
    logs = ("penstockd.log", "penstock-sync.log")

    def __init__(self, build, variant, purpose="e2e"):
        self.remarks = []  # printed with the result
        self.variant = variant
        self.run = state.Run.start(purpose)
        self.network = net.Network(self.run)
        self.gateway = gw.Gateway(self.network, self.run, build, variant.get("driver", "af_packet"), variant.get("workers", 1))
        self.manifests = self.run.file("manifests")
        os.mkdir(self.manifests)
        self._udp_ports = itertools.count(20_000)  # below the kernel's own choices

    def start(self, *objects, wait_for=()):
        """Starts network, servers, penstockd and penstock-sync. Returns when the Services among the objects
        are served."""
        self.build_network()
        servers.start(self.network, self.run)
        self.apply(*objects)
        self.gateway.start_daemon()
        self.gateway.start_sync(self.manifests)
        # A folder is read as a whole, so frontends and backends arrive together. Some cases need Services
        # without backends.
        self.gateway.until_served(wait_for or manifests.service_ports_of(objects), backends=False)

    def build_network(self):
        """The network alone, and the hugepages of one penstockd. Without pages of its own, a penstockd takes
        those of a case beside it, and one of the two does not start."""
        self.run.reserve_hugepages(self.gateway.memory_mb)
        self.network.build()

    def apply(self, *objects, file="objects.yaml"):
        """Replaces the file atomically, as editors and kubectl-like tools do."""
        path = os.path.join(self.manifests, file)
        with open(path + ".new", "w") as new:
            new.write(manifests.text_of(objects))
        os.rename(path + ".new", path)

    def end(self):
        self.run.undo()

    def last_words(self):
        words = []
        for log in self.logs:
            try:
                with open(self.run.file(log), errors="replace") as file:
                    words.append(f"--- {log}\n{''.join(file.readlines()[-25:])}")
            except FileNotFoundError:
                pass
        return "".join(words)

    # Clients. All of them run inside the client's namespace.

    def get(self, address=VIP, port=80, path="/", timeout_s=20.0):
        """One HTTP request on a connection of its own. Raises OSError as the kernel reports it."""
        began = time.monotonic()
        with inside(self.network.namespace("client")):
            connection = http.client.HTTPConnection(address, port, timeout=timeout_s)
            try:
                connection.request("GET", path, headers={"Connection": "close"})
                response = connection.getresponse()
                body = response.read()
            finally:
                connection.close()
        return Answer(response.status, response.headers.get("X-Backend", ""), body, 1000 * (time.monotonic() - began))

    def answered_by(self, requests, address=VIP, port=80):
        """{backend: answers}. Any failed request raises."""
        return Counter(self.get(address, port).backend for _ in range(requests))

    def udp_socket(self, address, port, timeout_s=10.0):
        """Has a source port that no earlier socket of this lab had: a datagram from an earlier one's port would
        continue its flow."""
        with inside(self.network.namespace("client")):
            client = socket.socket(family_of(address), socket.SOCK_DGRAM)
        client.settimeout(timeout_s)
        client.bind(("", next(self._udp_ports)))
        client.connect((address, port))
        return client

    def tcp_socket(self, address, port, timeout_s=20.0):
        with inside(self.network.namespace("client")):
            client = socket.socket(family_of(address))
        client.settimeout(timeout_s)
        client.connect((address, port))
        return client

    def echo(self, address, port, payload=b"hello", timeout_s=10.0):
        """Returns (backend, the client's address as the backend saw it, the returned payload)."""
        with self.udp_socket(address, port, timeout_s) as client:
            client.send(payload)
            backend, seen, echoed = client.recv(65535).split(b" ", 2)
            return backend.decode(), seen.decode(), echoed

    def connection_outcome(self, address, port, timeout_s=1.0):
        """"open", "refused", "silence" or the kernel's text for an ICMP error: the result of a client's
        connect()."""
        with inside(self.network.namespace("client")):
            client = socket.socket(family_of(address))
        client.settimeout(timeout_s)
        try:
            client.connect((address, port))
            return "open"
        except ConnectionRefusedError:
            return "refused"
        except TimeoutError:
            return "silence"
        except OSError as error:
            return error.strerror
        finally:
            client.close()

    def make_file(self, name, size):
        """A file of random bytes, the same on each backend at /files/NAME and, at 2 MB/s, at /slow/NAME."""
        content = os.urandom(size)
        with open(self.run.file("files", name), "wb") as file:
            file.write(content)
        return content


class Background:
    """Sends requests one after another, from a thread of its own, until stopped. `with Background(function)
    as load:`"""

    def __init__(self, function, pause_s=0.0):
        self._function, self._pause_s = function, pause_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop)
        self.results, self.errors = [], []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _loop(self):
        while not self._stopped.wait(self._pause_s):
            try:
                self.results.append(self._function())
            except Exception as error:  # noqa: BLE001: any exception is the finding
                self.errors.append(f"{type(error).__name__}: {error}")


def in_parallel(function, arguments):
    """Results of function(argument), each in a thread of its own; the first exception is raised."""
    results, errors = [None] * len(arguments), []

    def one(i, argument):
        try:
            results[i] = function(argument)
        except Exception as error:  # noqa: BLE001
            errors.append(error)
    threads = [threading.Thread(target=one, args=(i, argument)) for i, argument in enumerate(arguments)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise AssertionError(f"{len(errors)} of {len(arguments)} failed, first: {errors[0]!r}") from errors[0]
    return results


def until(what, condition, patience_s=5.0, step_s=0.005):
    """Waits for a condition. Returns the milliseconds that it took. The patience is in seconds of
    lab/patience.py."""
    began, patience = time.monotonic(), Patience(patience_s)
    while not condition():
        if not patience.lasts():
            raise AssertionError(f"not within {patience_s} s: {what}")
        time.sleep(step_s)
    return 1000 * (time.monotonic() - began)


def equal(actual, expected, what):
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def check(condition, what):
    if not condition:
        raise AssertionError(what)
