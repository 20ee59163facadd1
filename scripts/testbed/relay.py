# SPDX-License-Identifier: Apache-2.0
"""Carries connections of Unix sockets over one byte stream between two machines: the programs of one side
reach the servers of the other. A frame is the connection's number, a length, and as many bytes. The first
frame of a connection has the path of its server; a frame without bytes ends the connection.

One side listens, the other one connects. The guest also uses this file, so it needs few modules."""
import socket
import struct
import threading

_HEADER = struct.Struct("!IH")
_CHUNK = 32_768


class Relay:
    def __init__(self, read, write):
        """`read(count)` returns up to as many bytes, none at the end of the stream; `write(data)` returns the
        number of bytes that it took."""
        self._read, self._write = read, write
        self._writing = threading.Lock()
        self._ends, self._last = {}, 0

    def deliver(self):
        """Passes on what arrives, until the stream ends."""
        while header := self._exactly(_HEADER.size):
            number, length = _HEADER.unpack(header)
            data = self._exactly(length) if length else b""
            if data and number > self._last:
                self._last = number
                self._connect(number, data.decode())
            elif end := self._ends.get(number):  # otherwise this side has ended the connection
                self._pass_on(end, data)

    def listen(self, path, server_path):
        """Lets the programs of this side reach `server_path` of the other side at `path`. The returned socket
        ends this: shutdown()."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(16)
        threading.Thread(target=self._accept, args=(listener, server_path.encode()), daemon=True).start()
        return listener

    def _accept(self, listener, server_path):
        with listener:
            while True:
                try:
                    end = listener.accept()[0]
                except OSError:
                    return
                self._last += 1
                self._carry(self._last, end, server_path)

    def _connect(self, number, path):
        end = socket.socket(socket.AF_UNIX)
        try:
            end.connect(path)
        except OSError:
            end.close()
            self._send(number, b"")
        else:
            self._carry(number, end)

    def _carry(self, number, end, first=b""):
        self._ends[number] = end
        if first:
            self._send(number, first)
        threading.Thread(target=self._pump, args=(number, end), daemon=True).start()

    def _pump(self, number, end):
        with end:
            try:
                while data := end.recv(_CHUNK):
                    self._send(number, data)
            except OSError:
                pass
            del self._ends[number]
            self._send(number, b"")

    def _pass_on(self, end, data):
        try:
            if data:
                end.sendall(data)
            else:
                end.shutdown(socket.SHUT_RDWR)  # the pump ends
        except OSError:
            pass

    def _send(self, number, data):
        left = memoryview(_HEADER.pack(number, len(data)) + data)
        try:
            with self._writing:
                while left:
                    left = left[self._write(left):]
        except OSError:  # the stream has ended
            pass

    def _exactly(self, count):
        """As many bytes, or none if the stream has ended."""
        data = b""
        while len(data) < count:
            if not (more := self._read(count - len(data))):
                return b""
            data += more
        return data
