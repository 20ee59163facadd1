# SPDX-License-Identifier: Apache-2.0
"""Records the API of a release for tests/api/compatibility_test.cpp: its .proto files without comments, and
messages that its programs exchange, into tests/api/former/REVISION. Run it after each release, as root, and name
the folder in compatibility_test.cpp:

    record_former.py --revision REVISION --build DIR

REVISION is the release's commit, DIR has its three programs. penstockd, penstock-sync and penstockctl run in
network namespaces, as in the suite e2e, with a proxy between them that keeps a copy of what passes."""
import argparse
import os
import re
import socket
import struct
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "tests/upgrade"),
                os.path.join(ROOT, "scripts")]

from scapy.contrib import http2  # noqa: E402

import kept_flows  # noqa: E402
import restart_cases  # noqa: E402
from fixture import VIP, Lab  # noqa: E402
from lab import servers  # noqa: E402
from manifests import service, service_ports_of  # noqa: E402

FORMER = os.path.join(HERE, "former")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, CONTINUATION = 0, 1, 9
END_HEADERS, PADDED = 4, 8
MESSAGES_OF_A_KIND = 4  # of one direction of a call
GATEWAY_COMMANDS = (
    "status", "get ports", "get flows", "get workers", "get services", "get backends", "get connections",
    "get affinity", "stats", "get routes", "get neighbours", "get vips", f"explain --proto tcp --src 10.80.1.2:40000 --dst {VIP}:80",
    "clear affinity --all", "set log-level debug", "drain", "undrain")
SYNC_COMMANDS = ("get sync", "get pools", "get addresses")


class Half:
    """One direction of an HTTP/2 connection: splits it into messages of calls."""

    def __init__(self, calls, direction, keep):
        self._calls, self._direction, self._keep = calls, direction, keep
        self._bytes, self._begun, self._table = b"", False, http2.HPackHdrTable()
        self._block, self._bodies = b"", {}

    def add(self, received):
        self._bytes += received
        if self._direction == "request" and not self._begun:
            if len(self._bytes) < len(PREFACE):
                return
            self._bytes, self._begun = self._bytes.removeprefix(PREFACE), True
        while len(self._bytes) >= 9 and len(self._bytes) >= 9 + (length := int.from_bytes(self._bytes[:3], "big")):
            frame, self._bytes = self._bytes[:9 + length], self._bytes[9 + length:]
            self._take(frame[3], frame[4], int.from_bytes(frame[5:9], "big") & 0x7fffffff, frame)

    def _take(self, kind, flags, stream, frame):
        if kind == DATA:
            body = frame[9:]
            if flags & PADDED:
                body = body[1:len(body) - body[0]]
            self._bodies[stream] = self._bodies.get(stream, b"") + body
            self._messages(stream)
        elif kind in (HEADERS, CONTINUATION) and self._direction == "request":
            if not flags & END_HEADERS or kind == CONTINUATION:
                raise RuntimeError("headers in several frames are not read")
            text = self._table.gen_txt_repr(http2.H2Frame(frame).payload.hdrs)
            text = text.decode() if isinstance(text, bytes) else text
            self._calls[stream] = re.search(r"^:path (\S+)", text, re.M).group(1)

    def _messages(self, stream):
        body = self._bodies[stream]
        while len(body) >= 5 and len(body) >= 5 + (length := struct.unpack(">I", body[1:5])[0]):
            if body[0]:
                raise RuntimeError("compressed messages are not read")
            self._keep(self._calls[stream], self._direction, body[5:5 + length])
            body = body[5 + length:]
        self._bodies[stream] = body


class Proxy:
    """Forwards connections from one Unix socket to another."""

    def __init__(self, path, to, keep):
        self.path, self._to, self._keep = path, to, keep
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self._listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._to)
            calls = {}
            for source, target, direction in ((client, server, "request"), (server, client, "response")):
                half = Half(calls, direction, self._keep)
                threading.Thread(target=self._copy, args=(source, target, half), daemon=True).start()

    @staticmethod
    def _copy(source, target, half):
        try:
            while received := source.recv(65536):
                half.add(received)  # first, so that the call is known before it is answered
                target.sendall(received)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Records:
    def __init__(self):
        self._lock, self.kinds = threading.Lock(), {}

    def keep(self, call, direction, message):
        with self._lock:
            kind = self.kinds.setdefault((call, direction), [])
            if message not in kind and len(kind) < MESSAGES_OF_A_KIND:
                kind.append(message)

    def write(self, path, revision):
        with open(path, "w") as file:
            file.write("# SPDX-License-Identifier: Apache-2.0\n"
                       f"# Messages between the programs of {revision}: call, direction, bytes (record_former.py).\n")
            for (call, direction), messages in sorted(self.kinds.items()):
                for message in messages:
                    file.write(f"{call} {direction} {message.hex()}\n".replace(" \n", "\n"))


def copy_schema(revision):
    folder = os.path.join(FORMER, revision, "penstock/v1")
    os.makedirs(folder, exist_ok=True)
    listed = subprocess.run(["git", "-C", ROOT, "ls-tree", "--name-only", f"{revision}:control/api/penstock/v1"], check=True,
                            capture_output=True, text=True).stdout.split()
    for name in listed:
        text = subprocess.run(["git", "-C", ROOT, "show", f"{revision}:control/api/penstock/v1/{name}"], check=True,
                              capture_output=True, text=True).stdout
        lines = [re.sub(r"\s*//.*", "", line) for line in text.splitlines()]
        with open(os.path.join(folder, name), "w") as file:
            file.write("// SPDX-License-Identifier: Apache-2.0\n" + "".join(f"{line}\n" for line in lines if line))


def record(build, records):
    lab = Lab(build, {}, "record")
    gateway = lab.gateway
    try:
        daemon_words = gateway.daemon_words
        known = subprocess.run([gateway.program("penstockd"), "--help"], capture_output=True, text=True, check=True).stdout

        def words_of_that_release():
            words = daemon_words()
            at = words.index("--table-dir")
            return words if "--table-dir" in known else words[:at] + words[at + 2:]
        gateway.daemon_words = words_of_that_release
        lab.build_network()
        servers.start(lab.network, lab.run)
        lab.apply(*restart_cases.objects())
        gateway.start_daemon()
        gateway.socket = Proxy(lab.run.file("recorded.sock"), gateway.socket, records.keep).path
        gateway.start_sync(lab.manifests)
        gateway.until_served(service_ports_of(restart_cases.objects()), backends=False)
        kept_flows.start_servers(lab.network)
        flows = kept_flows.KeptFlows(lab)
        restart_cases.open_flows(lab, flows, 20)
        with flows:
            flows.until_all_answered()
            restart_cases.pinned_endpoint(lab)
            for command in GATEWAY_COMMANDS:
                gateway.ctl(*command.split())
            sync = Proxy(lab.run.file("recorded-sync.sock"), gateway.sync_address.removeprefix("unix:"), records.keep)
            for command in SYNC_COMMANDS:
                gateway.ctl("--sync-server", f"unix:{sync.path}", *command.split())
            # A delta.
            lab.apply(*restart_cases.objects(), service("more", 90, external_ips=(VIP,)))
            restart_cases.until("the delta is applied", lambda: "default/more/tcp" in gateway.services(), 30)
    finally:
        lab.end()


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    records = Records()
    record(os.path.abspath(options.build), records)
    copy_schema(options.revision)
    records.write(os.path.join(FORMER, options.revision, "messages.txt"), options.revision)
    for (call, direction), messages in sorted(records.kinds.items()):
        print(f"{len(messages)} {direction} of {call}")


if __name__ == "__main__":
    main()
