# SPDX-License-Identifier: Apache-2.0
"""One end of real SCTP associations: usrsctp, the user-space stack that Debian packages as a library, over
raw IP sockets.

    sctp_peer.py serve NAME PORT ADDRESS...    answers each message with NAME, a blank and the message, until
                                               it is ended
    sctp_peer.py talk LOCAL[@PORT] ADDRESS PORT MESSAGES BYTES [close|abort|hold]

`talk` sends MESSAGES messages of BYTES bytes and checks the answers. It prints a line of JSON, {"local_port":
..., "by": NAME} or {"error": ...}. With hold it then sends one more message for each line on its standard
input, and prints the result. Without usrsctp it prints that and exits with 77. A namespace may have
only one such process: each receives all SCTP there, and answers packets of unknown associations with ABORT.
"""
import ctypes
import hashlib
import json
import os
import socket
import struct
import sys
import threading

NOT_THERE = 77
IPPROTO_SCTP = 132
MESSAGE_MAX = 1 << 17

try:
    sctp = ctypes.CDLL("libusrsctp.so.2", use_errno=True)
except OSError as error:
    print(f"no usrsctp: {error}")
    sys.exit(NOT_THERE)

sctp.usrsctp_init.argtypes = [ctypes.c_uint16, ctypes.c_void_p, ctypes.c_void_p]
sctp.usrsctp_init.restype = None
sctp.usrsctp_socket.restype = ctypes.c_void_p
sctp.usrsctp_socket.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
for name in ("bind", "connect"):
    getattr(sctp, f"usrsctp_{name}").argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32]
sctp.usrsctp_listen.argtypes = [ctypes.c_void_p, ctypes.c_int]
sctp.usrsctp_accept.restype = ctypes.c_void_p
sctp.usrsctp_accept.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
sctp.usrsctp_sendv.restype = ctypes.c_ssize_t
sctp.usrsctp_sendv.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32,
                               ctypes.c_uint, ctypes.c_int]
sctp.usrsctp_recvv.restype = ctypes.c_ssize_t
sctp.usrsctp_recvv.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                               ctypes.c_void_p, ctypes.c_void_p]
sctp.usrsctp_close.argtypes = [ctypes.c_void_p]
sctp.usrsctp_close.restype = None
sctp.usrsctp_shutdown.argtypes = [ctypes.c_void_p, ctypes.c_int]
sctp.usrsctp_setsockopt.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
sctp.usrsctp_getladdrs.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p)]

SOL_SOCKET, SO_LINGER = socket.SOL_SOCKET, socket.SO_LINGER
SCTP_INITMSG, SCTP_EXPLICIT_EOR, SCTP_NODELAY = 0x03, 0x1b, 0x04


def failed(what):
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")


def address_of(text, port):
    if ":" in text:
        return struct.pack("=HH", socket.AF_INET6, socket.htons(port)) + bytes(4) + socket.inet_pton(socket.AF_INET6, text) + bytes(4)
    return struct.pack("=HH", socket.AF_INET, socket.htons(port)) + socket.inet_pton(socket.AF_INET, text) + bytes(8)


def open_socket(local, port):
    """Binds to one address only: an association with several would bypass the gateway."""
    family = socket.AF_INET6 if ":" in local else socket.AF_INET
    made = sctp.usrsctp_socket(family, socket.SOCK_STREAM, IPPROTO_SCTP, None, None, 0, None)
    if not made:
        raise failed("socket")
    where = address_of(local, port)
    if sctp.usrsctp_bind(made, where, len(where)) != 0:
        raise failed("bind")
    return made


def send(end, message):
    if sctp.usrsctp_sendv(end, message, len(message), None, 0, None, 0, 0, 0) != len(message):
        raise failed("send")


def receive(end, bytes_wanted):
    """Receives this number of bytes, or fewer if the association ends. A stream socket may deliver a message
    in pieces."""
    buffer = ctypes.create_string_buffer(MESSAGE_MAX)
    received = b""
    while len(received) < bytes_wanted:
        flags = ctypes.c_int(0)
        info_length, info_type = ctypes.c_uint32(0), ctypes.c_uint(0)
        count = sctp.usrsctp_recvv(end, buffer, min(MESSAGE_MAX, bytes_wanted - len(received)), None, None, None, ctypes.byref(info_length),
                                   ctypes.byref(info_type), ctypes.byref(flags))
        if count < 0:
            raise failed("receive")
        if count == 0:
            break
        received += buffer.raw[:count]
    return received


# Messages are prefixed by their length, because a stream socket need not preserve their boundaries.
def send_message(end, message):
    send(end, struct.pack("!I", len(message)) + message)


def receive_message(end):
    head = receive(end, 4)
    return None if len(head) < 4 else receive(end, struct.unpack("!I", head)[0])


def answer(end, name):
    try:
        while (message := receive_message(end)) is not None:
            send_message(end, name.encode() + b" " + message)
    except OSError:
        pass  # the other end has sent ABORT
    sctp.usrsctp_close(end)


def accept_all(listener, name):
    while True:
        end = sctp.usrsctp_accept(listener, None, None)
        if end:
            threading.Thread(target=answer, args=(end, name), daemon=True).start()


def serve(name, port, addresses):
    threads = []
    for address in addresses:
        listener = open_socket(address, port)
        if sctp.usrsctp_listen(listener, 64) != 0:
            raise failed("listen")
        threads.append(threading.Thread(target=accept_all, args=(listener, name)))
    print("listening", flush=True)
    for thread in threads:
        thread.start()


def local_port_of(end):
    addresses = ctypes.c_void_p()
    if sctp.usrsctp_getladdrs(end, 0, ctypes.byref(addresses)) < 1:
        raise failed("getladdrs")
    return struct.unpack("!H", ctypes.string_at(addresses.value + 2, 2))[0]


def exchange(end, number, size):
    """The name of the answering server."""
    message = hashlib.shake_128(str(number).encode()).digest(size)
    send_message(end, message)
    reply = receive_message(end)
    if reply is None:
        raise ConnectionResetError(f"the association ended instead of message {number}")
    name, _, echoed = reply.partition(b" ")
    if echoed != message:
        raise ValueError(f"message {number} came back changed")
    return name.decode()


def talk(local, remote, port, messages, size, end_by):
    host, _, local_port = local.rpartition("@") if "@" in local else (local, "", "0")
    end = open_socket(host, int(local_port))
    where = address_of(remote, port)
    if sctp.usrsctp_connect(end, where, len(where)) != 0:
        raise failed("connect")
    names = {exchange(end, number, size) for number in range(messages)}
    print(json.dumps({"local_port": local_port_of(end), "by": ",".join(sorted(names))}), flush=True)
    if end_by == "hold":
        for number, _ in enumerate(sys.stdin, messages):
            print(json.dumps({"by": exchange(end, number, size)}), flush=True)
    if end_by == "abort":
        linger = struct.pack("=ii", 1, 0)
        sctp.usrsctp_setsockopt(end, SOL_SOCKET, SO_LINGER, linger, len(linger))
    sctp.usrsctp_close(end)
    # The library's thread completes the shutdown: SHUTDOWN, its answer, and SHUTDOWN COMPLETE.
    for _ in range(500):  # 10 s: a lost packet is retransmitted after at least 1 s
        if sctp.usrsctp_finish() == 0:
            break
        threading.Event().wait(0.02)


def main(words):
    sctp.usrsctp_init(0, None, None)
    if words[0] == "serve":
        return serve(words[1], int(words[2]), words[3:])
    try:
        talk(words[1], words[2], int(words[3]), int(words[4]), int(words[5]), words[6] if len(words) > 6 else "close")
    except (OSError, ValueError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
    os._exit(0)  # the library's threads would wait indefinitely


main(sys.argv[1:])
