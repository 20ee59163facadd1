# SPDX-License-Identifier: Apache-2.0
"""VPP's nat44-ed as a side of scripts/bench peers: one worker, packets from VPP's own packet generator, which replays the
files of the other sides. A build of VPP is not part of Debian, so it must be named.

The cycles are the sum of all nodes except pg-input in `show runtime`, as TSC cycles for each packet. VPP prints them with
three digits."""
import glob
import os
import re
import subprocess
import time

import frames
import sides
from bed import ENDPOINT_MAC, ROUTER

VPP_MB = 1024
ENDLESS = 10**15  # packets; a stream without a limit plays its file once


class Vpp(sides.Side):
    def __init__(self, run, namespace, prefix, main_cpu, worker_cpu):
        self._run, self._namespace, self._prefix, self._cpus = run, namespace, prefix, (main_cpu, worker_cpu)
        self._socket = run.file("vpp-cli.sock")
        for program in ("vpp", "vppctl"):
            if not os.access(self._program(program), os.X_OK):
                raise RuntimeError(f"--vpp {prefix}: no program {self._program(program)}; name a folder with bin/vpp, as build-root/install-vpp-native/vpp")
        plugins = [os.path.dirname(path) for path in glob.glob(os.path.join(prefix, "lib*/**/nat_plugin.so"), recursive=True)]
        if not plugins:
            raise RuntimeError(f"--vpp {prefix}: the build has no nat_plugin.so")
        self._plugins = plugins[0]

    def begin(self, files, connections):
        """A new process: forward frames of files[0] from the clients' side, replies of files[1] from the endpoints'."""
        configuration = (f"unix {{ nodaemon cli-listen {self._socket} runtime-dir {self._run.file('vpp')} }}\n"
                         f"cpu {{ main-core {self._cpus[0]} corelist-workers {self._cpus[1]} }}\n"
                         f"memory {{ main-heap-size {VPP_MB}M main-heap-page-size 2M }}\n"
                         f"plugins {{ path {self._plugins} plugin default {{ disable }} plugin nat_plugin.so {{ enable }} }}\n")
        path = self._run.file("vpp.conf")
        with open(path, "w") as file:
            file.write(configuration)
        with open(self._run.file("vpp.log"), "ab") as log:
            self.polls = self.start(self._namespace, [self._program("vpp"), "-c", path], log, stdin=subprocess.DEVNULL, stdout=log)
        sides.until("VPP's command line", lambda: self._answers("show version"), 60)
        for words in set_up(connections):
            self._ctl(words)
        for number, (name, file) in enumerate(zip(("forward", "reply"), files)):
            self._ctl(f"packet-generator new pcap {file} source pg{number} name {name} worker 0 limit {ENDLESS}")
        self._ctl("packet-generator enable-stream forward")
        sides.until(f"{connections} connections in VPP", lambda: self.connections() == connections, 60)
        self._ctl("packet-generator enable-stream reply")

    def connections(self):
        found = re.search(r"^total sessions: (\d+)", self._ctl("show nat44 summary"), re.MULTILINE)
        return int(found[1]) if found else 0

    def window(self, seconds):
        self._ctl("clear runtime")
        time.sleep(seconds)
        return per_packet(self._ctl("show runtime"))

    def _program(self, name):
        return os.path.join(self._prefix, "bin", name)

    def _answers(self, words):
        return subprocess.run([self._program("vppctl"), "-s", self._socket, words], capture_output=True).returncode == 0

    def _ctl(self, words):
        done = subprocess.run([self._program("vppctl"), "-s", self._socket, words], capture_output=True, text=True, timeout=30)
        # vppctl succeeds even if a command fails.
        if done.returncode != 0 or re.search(r"unknown (input|command)|^\S+: .*(failed|error)", done.stdout, re.IGNORECASE | re.MULTILINE):
            raise RuntimeError(f"VPP: {words}: {(done.stdout + done.stderr).strip()}")
        return done.stdout


def set_up(connections):
    """The commands of the configuration. One endpoint for each Service, as in the files."""
    yield f"nat44 plugin enable sessions {2 * connections}"
    for number, (mac, address) in enumerate(((frames.UP_MAC, "10.80.1.1/24"), (frames.CLUSTER_MAC, "10.80.2.1/24"))):
        yield f"create packet-generator interface pg{number}"
        yield f"set interface mac address pg{number} {mac.hex(':')}"
        yield f"set interface ip address pg{number} {address}"
        yield f"set interface state pg{number} up"
    yield f"set ip neighbor pg0 {ROUTER[0]} {ROUTER[1]} static"
    yield f"ip route add 198.18.0.0/15 via {ROUTER[0]} pg0"
    yield "set interface nat44 out pg0 in pg1"
    for service in range(frames.SERVICES):
        endpoint, vip = sides.dotted(frames.endpoint_of(service)), sides.dotted(frames.VIP + service)
        yield f"set ip neighbor pg1 {endpoint} {ENDPOINT_MAC} static"
        yield f"nat44 add static mapping udp local {endpoint} 9376 external {vip} 80"


def per_packet(shown):
    """Packets, cycles per packet and the share of sent packets from `show runtime`: the worker's thread alone."""
    worker = next((part for part in re.split(r"^-{3,}\s*$|^(?=Thread )", shown, flags=re.MULTILINE) if re.search(r"vpp_wk_\d", part)), "")
    nodes = {name: (int(vectors), float(clocks)) for name, vectors, clocks in
             re.findall(r"^(\S+)\s+\S+(?:\s\S+)?\s+\d+\s+(\d+)\s+\d+\s+([\d.e+]+)\s+[\d.]+\s*$", worker, re.MULTILINE)}
    if "pg-input" not in nodes:
        raise RuntimeError(f"VPP: no packet generator in the runtime of the worker: {shown[-600:]}")
    packets = max(1, nodes["pg-input"][0])
    sent = sum(vectors for name, (vectors, _) in nodes.items() if re.fullmatch(r"pg\d+-tx", name))
    cycles = sum(vectors * clocks for name, (vectors, clocks) in nodes.items() if name != "pg-input")
    return {"packets": packets, "sent_share": sent / packets, "cycles": cycles / packets}
