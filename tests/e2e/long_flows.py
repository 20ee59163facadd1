# SPDX-License-Identifier: Apache-2.0
"""Hundreds of long-lived flows: one thread repeatedly sends a little through each of them, and records the
answering server."""
import collections
import os
import select
import socket
import sys
import threading
import time

from flow_servers import start_on_backends
from lab.network import inside

PORT = 9377
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "naming_echo.py")


def start_servers(network):
    """They answer with the address that the client used."""
    start_on_backends(network, PORT, lambda role: [sys.executable, SERVER, str(PORT)], "naming")


class Flow:
    def __init__(self, client):
        self.socket = client
        self.answers = []      # (time, server), whenever the server changes
        self.answered = 0
        self.broken = None     # (time, reason)

    @property
    def server(self):
        return self.answers[-1][1] if self.answers else None

    @property
    def servers(self):
        return [server for _, server in self.answers]


class LongFlows:
    """`with LongFlows(lab, "TCP", 200, address, port) as flows:`. Each flow sends every PULSE_S and never
    pauses longer."""

    PULSE_S = 0.2

    def __init__(self, lab, protocol, count, address, port):
        self._stream = protocol == "TCP"
        self.flows = []
        with inside(lab.network.namespace("client")):
            for _ in range(count):
                client = socket.socket(socket.AF_INET, socket.SOCK_STREAM if self._stream else socket.SOCK_DGRAM)
                client.settimeout(10)
                client.connect((address, port))
                client.setblocking(False)
                self.flows.append(Flow(client))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        for flow in self.flows:
            flow.socket.close()

    def by_server(self):
        return collections.Counter(flow.server for flow in self.flows)

    def all_answered_since(self, counts):
        return all(flow.broken or flow.answered > before for flow, before in zip(self.flows, counts))

    def counts(self):
        return [flow.answered for flow in self.flows]

    def _loop(self):
        poll = select.poll()
        by_number = {flow.socket.fileno(): flow for flow in self.flows}
        for number in by_number:
            poll.register(number, select.POLLIN)
        while not self._stopped.is_set():
            for flow in self.flows:
                if not flow.broken:
                    self._try(flow, lambda flow=flow: flow.socket.send(b"?"))
            until = time.monotonic() + self.PULSE_S
            while (left := until - time.monotonic()) > 0:
                for number, _ in poll.poll(1000 * left):
                    flow = by_number[number]
                    self._try(flow, lambda flow=flow: self._take(flow))
                    if flow.broken:
                        poll.unregister(number)
            time.sleep(0)

    def _take(self, flow):
        text = flow.socket.recv(4096)
        if not text:
            raise ConnectionAbortedError("the server closed it")
        # A stream may carry several answers at once. Answers of one flow from different servers are the
        # finding.
        for server in text.decode().split():
            flow.answered += 1
            if server != flow.server:
                flow.answers.append((time.monotonic(), server))

    def _try(self, flow, action):
        try:
            action()
        except BlockingIOError:
            pass
        except OSError as error:
            if self._stream:
                flow.broken = (time.monotonic(), error.strerror or str(error))
            # An ICMP error on a datagram socket does not end the flow.
