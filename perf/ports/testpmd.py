# SPDX-License-Identifier: Apache-2.0
"""Debian's dpdk-testpmd as the load: a generator of another project, on one CPU.

flowgen   one client sends to FLOWGEN_VIPS addresses in turn, one flow each, and receives what comes back by the
          same link: the endpoints of these VIPs are on the clients' side
txonly    one client, one flow, sends as fast as it can and receives nothing; its endpoint is behind the other port
"""
import os
import re
import select
import subprocess
import time

from bed import FIRST_IN_LINE, let_session_go_first

PROGRAM = "dpdk-testpmd"
MEMORY_MB = 192
FLOWGEN_VIPS = 256
FLOWGEN_PORT = 1001   # of the VIPs 10.253.0.0 and following
TXONLY_CLIENT, TXONLY_VIP, TXONLY_PORT = "198.18.0.1", "10.253.255.1", 9
PROMPT = "testpmd> "
PATIENCE_S = 30


class Testpmd:
    def __init__(self, network, role, run, device, cpu, mac):
        self._log_path = run.file("testpmd.log")
        self._log = open(self._log_path, "ab")
        words = [PROGRAM, "--lcores", f"0@{cpu},1@{cpu}", "--no-pci", "--in-memory", "-m", str(MEMORY_MB), f"--vdev={device}", "--", "-i",
                 "--nb-cores=1", "--total-num-mbufs=16384", "--rxd=1024", "--txd=1024", "--burst=32", "--txpkts=64", "--no-lsc-interrupt",
                 f"--flowgen-flows={FLOWGEN_VIPS}", f"--eth-peer=0,{mac}", f"--tx-ip={TXONLY_CLIENT},{TXONLY_VIP}", f"--tx-udp={TXONLY_PORT}"]
        self._process = subprocess.Popen(["ip", "netns", "exec", network.namespace(role), *FIRST_IN_LINE, "stdbuf", "-oL", *words], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=self._log, start_new_session=True)
        let_session_go_first(self._process.pid)
        self._until_prompt()

    def start(self, mode):
        self.command(f"set fwd {mode}")
        self.command("start")

    def stop(self):
        """Frames sent and received since start()."""
        shown = self.command("stop")
        totals = shown.rsplit("Accumulated forward statistics", 1)[-1]
        counts = {name: int(value) for name, value in re.findall(r"([RT]X-packets): (\d+)", totals)}
        if set(counts) != {"RX-packets", "TX-packets"}:
            raise RuntimeError(f"testpmd: no statistics in {shown[-400:]!r}")
        return counts["TX-packets"], counts["RX-packets"]

    def has_link(self):
        return "Link status: up" in self.command("show port info 0")

    def command(self, words):
        self._process.stdin.write(f"{words}\n".encode())
        self._process.stdin.flush()
        return self._until_prompt()

    def quit(self):
        self._process.stdin.write(b"quit\n")
        self._process.stdin.flush()
        self._process.communicate(timeout=PATIENCE_S)
        self._log.close()

    def _until_prompt(self):
        """The output up to the next prompt. testpmd ends its prompt without a newline."""
        seen, deadline = b"", time.monotonic() + PATIENCE_S
        pipe = self._process.stdout.fileno()
        while not seen.endswith(PROMPT.encode()):
            if not select.select([pipe], [], [], max(0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"testpmd has no prompt after {PATIENCE_S} s: {seen[-500:].decode(errors='replace')} (log: {self._log_path})")
            more = os.read(pipe, 1 << 16)
            if not more:
                raise RuntimeError(f"testpmd ended with {self._process.wait()}: {seen[-500:].decode(errors='replace')} (log: {self._log_path})")
            seen += more
        self._log.write(seen)
        self._log.flush()
        return seen.decode(errors="replace")
