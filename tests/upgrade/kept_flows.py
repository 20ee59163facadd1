# SPDX-License-Identifier: Apache-2.0
"""Long-lived flows that must go on while the gateway's process ends and starts again, and new flows meanwhile. A
thread sends one byte through each flow every PULSE_S. Each answer names the server and the client's address and
port as the server sees them. Any change of these is the finding."""
import collections
import os
import select
import socket
import sys
import threading
import time

from fixture import until
from flow_servers import start_on_backends
from lab.network import family_of, inside

PORT = 9378
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "identity_server.py")


def start_servers(network):
    start_on_backends(network, PORT, lambda role: [sys.executable, SERVER, role, str(PORT)], "identity")


class Flow:
    def __init__(self, kind, client, question):
        self.kind, self.socket, self.question = kind, client, question
        self.stream = client.type == socket.SOCK_STREAM
        self.partial = b""
        self.identities = []  # what the answers said, whenever it changes
        self.sent, self.answered = 0, 0
        self.broken = None

    def ask(self):
        self.sent += self.socket.send(self.question)

    def take(self):
        received = self.socket.recv(65536)
        if self.stream and not received:
            raise ConnectionAbortedError("the server closed it")
        *lines, self.partial = (self.partial + received).split(b"\n")
        for line in lines:
            self.answered += 1
            if not self.identities or line != self.identities[-1]:
                self.identities.append(line)


class KeptFlows:
    """`with KeptFlows(lab) as flows:` after open()."""

    PULSE_S = 0.25

    def __init__(self, lab):
        self._lab = lab
        self.flows = []
        self.longest_gap_s = 0.0  # between any two answers of all flows together
        self._stopped, self._quiet = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def open(self, kind, stream, count, address, port, question=b"?", source=None):
        """`source`: the client's address; None: as Linux chooses."""
        with inside(self._lab.network.namespace("client")):
            for _ in range(count):
                client = socket.socket(family_of(address), socket.SOCK_STREAM if stream else socket.SOCK_DGRAM)
                client.settimeout(20)
                if source:
                    client.bind((source, 0))
                else:
                    self.bind(client)
                client.connect((address, port))
                client.setblocking(False)
                self.flows.append(Flow(kind, client, question))

    def bind(self, client):
        """Hook: before a socket is connected."""

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()
        for flow in self.flows:
            flow.socket.close()

    def until_all_answered(self, patience_s=120):
        """Each flow that is not broken gets an answer to something that it sends from now on."""
        before = [flow.answered for flow in self.flows]
        until("all flows are answered", lambda: all(flow.broken or flow.answered > count
                                                    for flow, count in zip(self.flows, before)), patience_s, 0.05)

    def fall_silent(self):
        """Returns when nothing is under way on any stream, so that no TCP sends a segment until go_on()."""
        self._quiet.set()
        until("all streams are answered", lambda: all(flow.broken or not flow.stream or flow.answered == flow.sent
                                                      for flow in self.flows), 60, 0.05)

    def go_on(self):
        self._quiet.clear()

    def findings(self, kinds=None):
        """{what happened: number of flows}; empty: all go on as they began."""
        found = collections.Counter()
        for flow in self.flows:
            if kinds is None or flow.kind in kinds:
                if flow.broken:
                    found[f"{flow.kind}: {flow.broken}"] += 1
                elif len(flow.identities) != 1:
                    found[f"{flow.kind}: answered as {b', '.join(flow.identities).decode() or 'nobody'}"] += 1
        return dict(found)

    def _loop(self):
        poll = select.epoll()
        by_number = {flow.socket.fileno(): flow for flow in self.flows}
        for number in by_number:
            poll.register(number, select.EPOLLIN)
        last_answer = None
        while not self._stopped.is_set():
            for flow in self.flows:
                if not flow.broken and not self._quiet.is_set():
                    self._try(flow, flow.ask)
            pulse_ends = time.monotonic() + self.PULSE_S
            while (left := pulse_ends - time.monotonic()) > 0:
                ready = poll.poll(left)
                now = time.monotonic()
                for number, _ in ready:
                    flow = by_number[number]
                    before = flow.answered
                    self._try(flow, flow.take)
                    if flow.answered > before:
                        if last_answer is not None:
                            self.longest_gap_s = max(self.longest_gap_s, now - last_answer)
                        last_answer = now
                    if flow.broken:
                        poll.unregister(number)

    @staticmethod
    def _try(flow, action):
        try:
            action()
        except BlockingIOError:
            pass
        except OSError as error:
            # An ICMP error on a datagram socket does not end the flow. The first reason counts: Linux reports a reset
            # once, to send() or to recv(), and an end of the stream afterwards.
            if flow.stream and not flow.broken:
                flow.broken = error.strerror or str(error)


class NewFlows:
    """Connections of one question and one answer, `rate` a second, each in its turn. One that fails, is reset
    or is not answered within PATIENCE_S is a finding."""

    PATIENCE_S = 180  # a start may take long on a busy machine, and SYNs are sent again for 127 s

    def __init__(self, lab, rate, address, port):
        self._lab, self._rate, self._target = lab, rate, (address, port)
        self.opened, self.answered = 0, 0
        self.failures = collections.Counter()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _loop(self):
        poll, waiting = select.epoll(), {}  # descriptor: (socket, has asked, deadline)
        next_at = time.monotonic()
        while not (self._stopped.is_set() and not waiting):
            now = time.monotonic()
            if not self._stopped.is_set() and now >= next_at:
                next_at = max(next_at + 1 / self._rate, now - 0.2)
                self._open(poll, waiting, now)
            for number, events in poll.poll(max(0, min(next_at - now, 0.05))):
                self._advance(poll, waiting, number, events)
            for number in [number for number, (_, _, deadline) in waiting.items() if now > deadline]:
                self._end(poll, waiting, number, "no answer in time")

    def _open(self, poll, waiting, now):
        with inside(self._lab.network.namespace("client")):
            client = socket.socket(family_of(self._target[0]))
        client.setblocking(False)
        client.connect_ex(self._target)
        waiting[client.fileno()] = client, False, now + self.PATIENCE_S
        poll.register(client.fileno(), select.EPOLLOUT)
        self.opened += 1

    def _advance(self, poll, waiting, number, events):
        client, has_asked, deadline = waiting[number]
        try:
            if (error := client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) != 0:
                raise OSError(error, os.strerror(error))
            if not has_asked:
                client.send(b"?")
                waiting[number] = client, True, deadline
                poll.modify(number, select.EPOLLIN)
            elif client.recv(100):
                self.answered += 1
                self._end(poll, waiting, number)
            else:
                self._end(poll, waiting, number, "closed without an answer")
        except OSError as error:
            self._end(poll, waiting, number, error.strerror or str(error))

    def _end(self, poll, waiting, number, why=None):
        if why:
            self.failures[why] += 1
        poll.unregister(number)
        waiting.pop(number)[0].close()
