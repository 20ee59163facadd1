# SPDX-License-Identifier: Apache-2.0
"""The server's side of a memif, between it and a Linux interface: memif_peer.py SOCKET INTERFACE. Frames that
arrive on one leave by the other. When the client goes, the next one is served.

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

ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED, DISCONNECT = range(1, 9)
VERSION = 0x0200
MESSAGE_BYTES, NAME_BYTES = 128, 32
TO_SERVER = 1  # flag of ADD_RING
HEAD_AT, TAIL_AT, DESCRIPTORS_AT, DESCRIPTOR_BYTES = 6, 64, 128, 16
FRAME_MAX = 2048
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
IDLE_S = 0.0005


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


class Client:
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


def move(client, wire):
    """True: a frame has moved."""
    moved = False
    while frame := client.rings[TO_SERVER].take():
        moved = True
        with contextlib.suppress(OSError):  # the interface has no room
            wire.send(frame)
    with contextlib.suppress(BlockingIOError):
        while client.rings[0].put(wire.recv(FRAME_MAX)):
            moved = True
    return moved


def serve(listener, wire):
    control, _ = listener.accept()
    client = Client(control)
    while True:
        is_idle = not (client.is_connected and move(client, wire))
        watched = [control, wire] if client.is_connected else [control]
        ready, _, _ = select.select(watched, [], [], IDLE_S if is_idle else 0)
        if control in ready and not client.hear():
            control.close()
            return


def main(path, interface):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    wire.bind((interface, 0x0003))
    wire.setblocking(False)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    while True:
        serve(listener, wire)


main(*sys.argv[1:])
