# SPDX-License-Identifier: Apache-2.0
"""Histograms of the connect time and the first-byte time, with an endpoint that answers late."""
import re
import socket
import threading
import time

from fixture import VIP, case, check, equal, in_parallel
from lab.network import BACKENDS, inside
from manifests import endpoints, service
from query_cases import GATEWAY, fetch

PORT = 9377
# The endpoint waits twice as long as the bound that each value must exceed: a worker that loses its CPU for a while between
# the begin of its round and the packet does not matter.
WAIT_S, BOUND = 1.0, "0.5"
CONNECTIONS = 8


class LateServer:
    """Answers each connection WAIT_S after its request."""

    def __init__(self, namespace):
        with inside(namespace):
            self._listener = socket.create_server(("0.0.0.0", PORT), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    @staticmethod
    def _answer(connection):
        with connection:
            if connection.recv(100):
                time.sleep(WAIT_S)
                connection.send(b"late")

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def histogram(page, name, **labels):
    """({bound: cumulative count}, count, sum) of the only series with these labels."""
    def of(suffix):
        lines = re.findall(rf"^penstock_{name}_seconds_{suffix}{{(.*)}} (\S+)$", page, re.MULTILINE)
        return [(dict(re.findall(r'(\w+)="([^"]*)"', words)), float(value)) for words, value in lines
                if all(f'{label}="{wanted}"' in words for label, wanted in labels.items())]
    (_, count), = of("count")
    (_, total), = of("sum")
    return {words["le"]: value for words, value in of("bucket")}, count, total


@case(workers=(1, 2))
def a_late_endpoint_is_seen_in_its_first_byte_time(lab):
    lab.gateway.more_options = ["--metrics-listen", GATEWAY, "--latency-histograms", "backends", "--metrics-backends", "10"]
    lab.start(service("late", 81, target_port=PORT, external_ips=[VIP]), endpoints("late", ("backend-1",), port=PORT),
              service("idle", 82, external_ips=[VIP]), endpoints("idle"), service("dns", 53, protocol="UDP", external_ips=[VIP]),
              endpoints("dns", protocol="UDP"))
    server = LateServer(lab.network.namespace("backend-1"))
    try:
        def ask(_):
            with lab.tcp_socket(VIP, 81) as client:
                client.send(b"request")
                return client.recv(100)
        equal(in_parallel(ask, range(CONNECTIONS)), [b"late"] * CONNECTIONS, "answers")
    finally:
        server.close()
    page = fetch(lab, f"{GATEWAY}/metrics")
    for kind, labels in (("service", {"service": "late"}), ("backend", {"backend": f"{BACKENDS['backend-1']}:{PORT}"})):
        buckets, count, total = histogram(page, f"{kind}_first_byte", **labels)
        equal((buckets[BOUND], buckets["10"], buckets["+Inf"], count), (0, CONNECTIONS, CONNECTIONS, CONNECTIONS), f"first bytes by {kind}")
        check(float(BOUND) * CONNECTIONS < total < 10 * CONNECTIONS, f"sum of the first-byte times by {kind}: {total}")
        buckets, count, total = histogram(page, f"{kind}_connect", **labels)
        equal((buckets["10"], count), (CONNECTIONS, CONNECTIONS), f"connects by {kind}")
        check(total > 0, f"sum of the connect times by {kind}: {total}")
    equal(histogram(page, "service_first_byte", service="idle")[1], 0, "first bytes of a Service without connections")
    check('seconds_count{namespace="default",service="dns"' not in page, "a UDP port has latencies")
