# SPDX-License-Identifier: Apache-2.0
"""Follows the kernel's routes of a namespace by netlink, as a routing daemon does."""
import collections
import socket
import struct
import threading
import time

from lab.network import inside

VIP_ROUTES, BGP_ROUTES, BIRD_ROUTES = 80, 186, 12  # protocols


class Monitor:
    """The kernel's messages about routes of some protocols in a namespace, from the moment of creation:
    (time, "added" or "deleted", address, metric)."""
    NEW, DELETED = 24, 25  # RTM_NEWROUTE, RTM_DELROUTE
    GROUPS = 1 << 6 | 1 << 10  # RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE

    def __init__(self, namespace, *protocols):
        self._changes, self._received = [], collections.deque()
        self._protocols = protocols or (VIP_ROUTES,)
        with inside(namespace):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((0, self.GROUPS))
        self.socket.settimeout(0.1)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._read)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.socket.close()

    def last(self, what):
        """Time of the last change of that kind, or None."""
        return max((at for at, changed, _, _ in self.changes if changed == what), default=None)

    def of(self, address):
        return [(what, metric) for _, what, changed, metric in self.changes if changed == address]

    def _read(self):
        while True:
            is_last = self.over.is_set()
            try:
                message = self.socket.recv(1 << 16)
                self._received.append((time.time(), message))
            except TimeoutError:
                if is_last:
                    return

    @property
    def received(self):
        """Number of messages that are not decoded yet, of all protocols. For waits that must cost little."""
        return len(self._received)

    @property
    def changes(self):
        """Decoded here, so that the times of many messages in a row are right."""
        while self._received:
            self._take(*self._received.popleft())
        return self._changes

    def _take(self, at_s, data):
        while len(data) >= 16:
            length, kind = struct.unpack_from("=IH", data)
            if kind in (self.NEW, self.DELETED) and data[16 + 5] in self._protocols:  # rtm_protocol
                facts, at = {}, 16 + 12
                while at + 4 <= length:
                    size, attribute = struct.unpack_from("=HH", data, at)
                    facts[attribute] = data[at + 4:at + size]
                    at += (size + 3) & ~3
                address = socket.inet_ntop(data[16], facts[1])  # RTA_DST
                metric = struct.unpack("=I", facts.get(6, bytes(4)))[0]  # RTA_PRIORITY
                self._changes.append((at_s, "added" if kind == self.NEW else "deleted", address, metric))
            data = data[(length + 3) & ~3:]
