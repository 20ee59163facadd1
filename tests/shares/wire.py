# SPDX-License-Identifier: Apache-2.0
"""The link between two gateways, with faults. A namespace between the two has an interface to each, and a thread that
passes frames from one to the other: late, in another order, or not at all. The kernel of the test machine has no
netem."""
import heapq
import itertools
import os
import random
import select
import socket
import threading
import time

from lab.network import inside

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4
FRAME_MAX = 2048


class Wire:
    """Between interface `peers` of gateway and of gateway-2. From the start on it has no fault."""

    def __init__(self, network):
        network.add("wire")
        self._ends = []
        for end, role in (("one", "gateway"), ("two", "gateway-2")):
            network.join(role, "peers", "wire", end)
            network.ip("wire", f"link set {end} arp off")
            with inside(network.namespace("wire")):
                made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            made.bind((end, ETH_P_ALL))
            made.setblocking(False)
            self._ends.append(made)
        self.seed = int(os.environ.get("PENSTOCK_SEED") or random.randrange(1 << 32))
        self._random = random.Random(self.seed)
        self.passed = self.lost = self.overtaken = self.delayed = 0
        self.mend()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def mend(self):
        self.set_faults()

    def set_faults(self, delay_s=0.0, loss=0.0, overtaken=0.0, overtaken_by_s=0.05):
        """loss: part of the frames that is lost; 1.0 cuts the wire, and the links stay up. overtaken: part of the frames
        that is later than the others, by overtaken_by_s, so that others pass it."""
        self._faults = delay_s, loss, overtaken, overtaken_by_s

    def stop(self):
        self._stopped.set()
        self._thread.join()
        for end in self._ends:
            end.close()

    def _run(self):
        waiting, order = [], itertools.count()
        out_of = {self._ends[0].fileno(): (self._ends[0], self._ends[1]), self._ends[1].fileno(): (self._ends[1], self._ends[0])}
        poll = select.poll()
        for number in out_of:
            poll.register(number, select.POLLIN)
        while not self._stopped.is_set():
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, out, frame = heapq.heappop(waiting)
                self._send(out, frame)
            left_ms = 50 if not waiting else max(0, min(50, 1000 * (waiting[0][0] - now)))
            for number, _ in poll.poll(left_ms):
                receive, out = out_of[number]
                self._take(receive, out, waiting, order)

    def _take(self, receive, out, waiting, order):
        try:
            frame, (_, _, kind, *_) = receive.recvfrom(FRAME_MAX)
        except OSError:  # the link is down for a moment
            return
        if kind == PACKET_OUTGOING:
            return
        delay_s, loss, overtaken, overtaken_by_s = self._faults
        if self._random.random() < loss:
            self.lost += 1
            return
        if self._random.random() < overtaken:
            self.overtaken += 1
            delay_s += overtaken_by_s
        if delay_s > 0:
            self.delayed += 1
            heapq.heappush(waiting, (time.monotonic() + delay_s, next(order), out, frame))
        else:
            self._send(out, frame)

    def _send(self, out, frame):
        try:
            out.send(frame)
            self.passed += 1
        except OSError:  # a full queue, or the other gateway is gone
            self.lost += 1
