# SPDX-License-Identifier: Apache-2.0
"""One side of a memif, between it and a Linux interface: memif_peer.py server|client SOCKET INTERFACE. Frames that
arrive on one leave by the other. When the other side goes, the server serves the next client, and the client
connects again. A SOCKET that begins with @ is a name in the abstract namespace.

The messages and rings are those of memif 2.0, as DPDK has them (drivers/net/memif/memif.h): one region, which the
client owns, and one ring in each direction. On the ring towards the server the client advances the head and the
server the tail; on the other one, the client offers buffers by the head, and the server fills them by the tail."""
import contextlib
import mmap
import os
import select
import socket
import struct
import sys
import time

ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
VERSION = 0x0200
MESSAGE_BYTES, NAME_BYTES = 128, 32
TO_SERVER = 1  # flag of ADD_RING
HEAD_AT, TAIL_AT, DESCRIPTORS_AT, DESCRIPTOR_BYTES = 6, 64, 128, 16
FRAME_MAX = 2048
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
IDLE_S = 0.0005
# Of a client.
COOKIE = 0x3E31F20
LOG2_RING = 10
RING_BYTES = DESCRIPTORS_AT + (DESCRIPTOR_BYTES << LOG2_RING)
RETRY_S = 0.002


class Ring:
    def __init__(self, memory, offset, log2_size):
        self._memory, self._offset, self._mask = memory, offset, (1 << log2_size) - 1
        self._done = 0  # head or tail of this side

    def _field(self, at):
        return struct.unpack_from("<H", self._memory, self._offset + at)[0]

    def _descriptor(self):
        return self._offset + DESCRIPTORS_AT + (self._done & self._mask) * DESCRIPTOR_BYTES

    def take(self):
        """The next frame of the client, or None."""
        if self._field(HEAD_AT) == self._done:
            return None
        _, _, length, at = struct.unpack_from("<HHII", self._memory, self._descriptor())
        frame = self._memory[at:at + length]
        self._advance()
        return frame

    def put(self, frame):
        """False: the client offers no buffer."""
        if self._field(HEAD_AT) == self._done:
            return False
        descriptor = self._descriptor()
        _, region, _, at = struct.unpack_from("<HHII", self._memory, descriptor)
        self._memory[at:at + len(frame)] = frame
        struct.pack_into("<HHI", self._memory, descriptor, 0, region, len(frame))
        self._advance()
        return True

    def _advance(self):
        self._done = (self._done + 1) & 0xffff
        struct.pack_into("<H", self._memory, self._offset + TAIL_AT, self._done)


class OwnRing:
    """The client's side of a ring: its buffers have fixed places in the region, one for each descriptor."""

    def __init__(self, memory, offset, buffers_at):
        self._memory, self._offset, self._buffers_at = memory, offset, buffers_at
        self._size, self._done = 1 << LOG2_RING, 0
        struct.pack_into("<I", memory, offset, COOKIE)
        for number in range(self._size):
            self._describe(number, FRAME_MAX)

    def _describe(self, number, length):
        slot = number % self._size
        struct.pack_into("<HHII", self._memory, self._offset + DESCRIPTORS_AT + slot * DESCRIPTOR_BYTES, 0, 0, length, self._buffer(slot))

    def _buffer(self, number):
        return self._buffers_at + number % self._size * FRAME_MAX

    def _tail(self):
        return struct.unpack_from("<H", self._memory, self._offset + TAIL_AT)[0]

    def _advance_head(self, head):
        struct.pack_into("<H", self._memory, self._offset + HEAD_AT, head & 0xffff)

    def offer(self):
        """All buffers, when the server has set the ring to its start."""
        self._advance_head(self._size)

    def take(self):
        """The next frame of the server, or None."""
        if self._tail() == self._done:
            return None
        slot = self._done % self._size
        length = struct.unpack_from("<I", self._memory, self._offset + DESCRIPTORS_AT + slot * DESCRIPTOR_BYTES + 4)[0]
        frame = self._memory[self._buffer(slot):self._buffer(slot) + length]
        self._describe(slot, FRAME_MAX)
        self._done = (self._done + 1) & 0xffff
        self._advance_head(self._done + self._size)
        return frame

    def put(self, frame):
        """False: the server has not taken enough of the former ones."""
        if (self._done - self._tail()) & 0xffff == self._size:
            return False
        at = self._buffer(self._done)
        self._memory[at:at + len(frame)] = frame
        self._describe(self._done, len(frame))
        self._done = (self._done + 1) & 0xffff
        self._advance_head(self._done)
        return True


class Server:
    """The other side of a client."""
    RINGS_AT = {TO_SERVER: 0, 0: RING_BYTES}

    def __init__(self, control):
        self.control, self.is_connected = control, False
        region = os.memfd_create("memif_peer")
        size = 2 * (RING_BYTES + (FRAME_MAX << LOG2_RING))
        os.ftruncate(region, size)
        memory = mmap.mmap(region, size)
        self.given = OwnRing(memory, self.RINGS_AT[TO_SERVER], 2 * RING_BYTES)
        self.taken = OwnRing(memory, self.RINGS_AT[0], 2 * RING_BYTES + (FRAME_MAX << LOG2_RING))
        rings = [(ADD_RING, struct.pack("<HHHIBH", direction, 0, 0, at, LOG2_RING, 0), os.eventfd(0, os.EFD_NONBLOCK)) for direction, at in self.RINGS_AT.items()]
        self._to_send = [(INIT, struct.pack("<HIB24s32s", VERSION, 0, 0, b"", b"memif_peer"), None),
                         (ADD_REGION, struct.pack("<HQ", 0, size), region), *rings, (CONNECT, b"memif_peer".ljust(NAME_BYTES, b"\0"), None)]

    def hear(self):
        """False: the server has gone, or cannot have a client yet."""
        try:
            message = self.control.recv(MESSAGE_BYTES)
        except ConnectionError:
            return False
        kind = struct.unpack_from("<H", message)[0] if message else DISCONNECT
        if kind in (HELLO, ACK) and self._to_send:  # one message after another
            kind_to_send, body, descriptor = self._to_send.pop(0)
            text = (struct.pack("<H", kind_to_send) + body).ljust(MESSAGE_BYTES, b"\0")
            with contextlib.suppress(ConnectionError):  # the next recv() reports it
                socket.send_fds(self.control, [text], [] if descriptor is None else [descriptor])
            if descriptor is not None:
                os.close(descriptor)
        elif kind == CONNECTED:
            self.taken.offer()
            self.is_connected = True
        return kind != DISCONNECT

    def end(self):
        for _, _, descriptor in self._to_send:
            if descriptor is not None:
                os.close(descriptor)
        self.control.close()


class Client:
    """The other side of a server."""

    def __init__(self, control):
        self.control = control
        self._memory, self.rings, self.is_connected = None, {}, False
        self._send(HELLO, struct.pack("<32sHHHHHB", b"memif_peer", VERSION, VERSION, 1, 0, 0, 14))

    def _send(self, kind, body=b""):
        self.control.send((struct.pack("<H", kind) + body).ljust(MESSAGE_BYTES, b"\0"))

    def hear(self):
        """False: the client has gone."""
        try:
            message, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, 4)
        except ConnectionError:
            return False
        kind = struct.unpack_from("<H", message)[0] if message else DISCONNECT
        if kind == ADD_REGION:
            _, size = struct.unpack_from("<HQ", message, 2)
            self._memory = mmap.mmap(descriptors[0], size)
        elif kind == ADD_RING:
            flags, _, _, offset, log2_size = struct.unpack_from("<HHHIB", message, 2)
            self.rings[flags & TO_SERVER] = Ring(self._memory, offset, log2_size)
        for descriptor in descriptors:
            os.close(descriptor)
        if kind == CONNECT:
            self._send(CONNECTED, b"memif_peer".ljust(NAME_BYTES, b"\0"))
            self.is_connected = True
        elif kind in (INIT, ADD_REGION, ADD_RING):
            self._send(ACK)
        return kind != DISCONNECT

    @property
    def taken(self):
        return self.rings[TO_SERVER]

    @property
    def given(self):
        return self.rings[0]

    def end(self):
        self.control.close()


def move(peer, wire):
    """True: a frame has moved."""
    moved = False
    while frame := peer.taken.take():
        moved = True
        with contextlib.suppress(OSError):  # the interface has no room
            wire.send(frame)
    with contextlib.suppress(BlockingIOError):
        while peer.given.put(wire.recv(FRAME_MAX)):
            moved = True
    return moved


def exchange(peer, wire):
    """Returns when the peer has gone."""
    while True:
        is_idle = not (peer.is_connected and move(peer, wire))
        watched = [peer.control, wire] if peer.is_connected else [peer.control]
        ready, _, _ = select.select(watched, [], [], IDLE_S if is_idle else 0)
        if peer.control in ready and not peer.hear():
            peer.end()
            return


def serve(path, wire):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    while True:
        exchange(Client(listener.accept()[0]), wire)


def connect(path, wire):
    while True:
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            control.connect(path)
        except OSError:  # nobody listens yet
            control.close()
        else:
            exchange(Server(control), wire)
        time.sleep(RETRY_S)


def main(role, path, interface):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    wire.bind((interface, 0x0003))
    wire.setblocking(False)
    {"server": serve, "client": connect}[role](path.replace("@", "\0", 1) if path.startswith("@") else path, wire)


main(*sys.argv[1:])
