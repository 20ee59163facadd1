# SPDX-License-Identifier: Apache-2.0
"""One end of SCTP associations, using the kernel's own stack.

    sctp_stream.py serve PORT ADDRESS...       answers each message with the peer's address and port, a blank
                                               and the message
    sctp_stream.py talk LOCAL[@PORT] ADDRESS PORT SIZE... [then close|abort|hold]

`talk` sends a message of each size, checks the echo, and prints a line of JSON: {"local_port": ..., "seen":
[address, port]} or {"error": ...}. With `hold` it then waits until the other end sends or ends the
association, and prints the result: "closed", "spoken to", or the name of the error.
"""
import hashlib
import json
import socket
import struct
import sys
import threading


def open_socket(local, port):
    """Binds to one address: an association with several addresses could bypass the gateway."""
    made = socket.socket(socket.AF_INET6 if ":" in local else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((local, port))
    return made


def read(end, count):
    got = b""
    while len(got) < count and (piece := end.recv(count - len(got))):
        got += piece
    return got


# A message is prefixed by its length, because a stream socket does not keep message boundaries.
def send_message(end, message):
    framed = struct.pack("!I", len(message)) + message
    while framed:
        framed = framed[end.send(framed):]


def receive_message(end):
    head = read(end, 4)
    return read(end, struct.unpack("!I", head)[0]) if len(head) == 4 else None


def answer(end, peer):
    try:
        while (message := receive_message(end)) is not None:
            send_message(end, f"{peer[0]} {peer[1]} ".encode() + message)
    except OSError:
        pass  # aborted by the other end, or by the gateway on its behalf
    end.close()


def serve(port, addresses):
    listeners = [open_socket(address, port) for address in addresses]
    for listener in listeners:
        listener.listen(16)
    print("listening", flush=True)

    def accept_all(listener):
        while True:
            threading.Thread(target=answer, args=listener.accept(), daemon=True).start()
    for listener in listeners:
        threading.Thread(target=accept_all, args=(listener,)).start()


def exchange(end, size):
    message = hashlib.shake_128(str(size).encode()).digest(size)
    send_message(end, message)
    address, port, echoed = receive_message(end).split(b" ", 2)
    if echoed != message:
        raise ValueError(f"{size} bytes came back changed")
    return address.decode(), int(port)


def talk(local, remote, port, sizes, end_by):
    host, _, local_port = local.rpartition("@") if "@" in local else (local, "", "0")
    with open_socket(host, int(local_port)) as end:
        end.settimeout(60)
        end.connect((remote, port))
        seen = {exchange(end, size) for size in sizes}
        if len(seen) != 1:
            raise ValueError(f"one association was seen as {seen}")
        print(json.dumps({"local_port": end.getsockname()[1], "seen": seen.pop()}), flush=True)
        if end_by == "hold":
            try:
                print(json.dumps({"ended": "closed" if not end.recv(100) else "spoken to"}), flush=True)
            except OSError as error:
                print(json.dumps({"ended": type(error).__name__}), flush=True)
        if end_by == "abort":
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))


def main(words):
    if words[0] == "serve":
        return serve(int(words[1]), words[2:])
    words, _, end_by = words[1:-2], words[-2], words[-1]
    try:
        talk(words[0], words[1], int(words[2]), [int(size) for size in words[3:]], end_by)
    except (OSError, ValueError) as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
    return None


main(sys.argv[1:])
