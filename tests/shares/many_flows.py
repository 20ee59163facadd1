# SPDX-License-Identifier: Apache-2.0
"""Thousands of long-lived flows, by the program share-flows (flows.cpp): clients of a VIP, and the servers on the
backends. The servers answer KeptFlows as well."""
import json
import os
import subprocess

from fixture import until
from flow_servers import start_on_backends
from kept_flows import PORT


def program_of(lab):
    return os.path.join(lab.gateway.build, "tests/shares/share-flows")


def start_servers(lab):
    start_on_backends(lab.network, PORT, lambda role: [program_of(lab), "serve", role, str(PORT)], "flows")


class ManyFlows:
    """`with ManyFlows(lab, 10_000, 2_500, LB_IP, 80) as flows:`. `fast` of each kind send every fast_ms, the others every
    slow_ms. A flow that breaks before mark() is opened again."""

    def __init__(self, lab, tcp, udp, address, port, fast=50, fast_ms=20, slow_ms=2000):
        self.count = tcp + udp
        self._words = ["ip", "netns", "exec", lab.network.namespace("client"), program_of(lab), "client", address, str(port),
                       *(str(number) for number in (tcp, udp, fast, fast_ms, slow_ms))]

    def __enter__(self):
        self._process = subprocess.Popen(self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def _request(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"share-flows has ended with {self._process.wait(timeout=20)}")
        return json.loads(line)

    def mark(self):
        return self._request("mark")

    def report(self):
        return self._request("report")

    def until_all_answered(self, patience_s=120):
        """Each flow that is not broken gets an answer to something that it sends from now on."""
        self._request("epoch")

        def all_answered():
            report = self.report()
            return report["answered"] + report["broken"] == report["flows"]
        return until(f"all {self.count} flows are answered", all_answered, patience_s, 0.05)
