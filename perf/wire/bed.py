# SPDX-License-Identifier: Apache-2.0
"""penstockd on two net_memif ports, in a network namespace of its own, and the generator at their other ends.

The network is drawn in perf/traffic/network.hpp, which also defines the numbers repeated here. No packet
passes the kernel. The namespace is for penstockd's TAP twins; their routes and permanent neighbours give
penstockd the paths to clients and endpoints."""
import json
import os
import subprocess

from lab import gateway as gw
from lab import network as net

SERVICES = 16
ENDPOINTS_PER_SERVICE = 8
TWINS = (("uplink0", "10.80.1.1/24", "02:00:00:00:00:0a"), ("cluster0", "10.80.2.1/24", "02:00:00:00:00:0b"))
ROUTER = ("10.80.1.2", "02:00:00:00:01:02")
ENDPOINT_MAC = "02:00:00:00:02:02"
SNAT_ADDRESSES = ("192.0.2.1", "192.0.2.2")
GENERATOR_MB = 128
# Upper bound of the memory for a connection in all of penstockd's tables together. If it is too low,
# penstockd reports the missing memory.
BYTES_PER_CONNECTION = 512
MEMORY_MB = 320  # in addition
# Both ends poll at a high priority. Other processes get only the small remainder of the CPUs, for the
# duration of a run.
FIRST_IN_LINE = ("nice", "-n", "-20")


def let_session_go_first(pid):
    """Raises the priority. If the kernel shares the CPU between sessions first, a nice value applies only
    within one session."""
    try:
        with open(f"/proc/{pid}/autogroup", "w") as group:
            group.write("-20")
    except FileNotFoundError:
        pass


def endpoint(number):
    return f"10.80.2.{11 + number}"


def manifests():
    objects = []
    for k in range(SERVICES):
        name = f"wire-{k}"
        objects.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
                        "spec": {"externalIPs": [f"203.0.113.{1 + k}"], "externalTrafficPolicy": "Cluster",
                                 "ports": [{"port": 80, "protocol": "UDP", "targetPort": 9376}]}})
        addresses = [endpoint(k * ENDPOINTS_PER_SERVICE + i) for i in range(ENDPOINTS_PER_SERVICE)]
        objects.append({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                        "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
                        "ports": [{"name": "", "port": 9376, "protocol": "UDP"}],
                        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses]})
    return "".join(f"---\n{json.dumps(entry)}\n" for entry in objects)


class Namespace(net.Network):
    def build(self):
        self._run.record("netns", name=self.namespace("gateway"))
        net.command("ip", "netns", "add", self.namespace("gateway"))
        self.ip("gateway", "link set lo up")
        self.sysctl("gateway", "ipv6/conf/all/disable_ipv6", 1)
        self.sysctl("gateway", "ipv6/conf/default/disable_ipv6", 1)

    def teach_neighbours(self):
        """Adds routes and neighbours. Needs the twins and their carrier; without a carrier Linux accepts no
        route."""
        lines = [f"neigh replace {ROUTER[0]} lladdr {ROUTER[1]} nud permanent dev uplink0", f"route replace default via {ROUTER[0]} dev uplink0"]
        for number in range(SERVICES * ENDPOINTS_PER_SERVICE):
            lines.append(f"neigh replace {endpoint(number)} lladdr {ENDPOINT_MAC} nud permanent dev cluster0")
        self.ip("gateway", "\n".join(lines))

    def has_carrier(self, twin):
        return "LOWER_UP" in self.ip("gateway", f"link show dev {twin}").split(">")[0]


class Gateway(gw.Gateway):
    def __init__(self, network, run, build, connections, worker_cpu, main_cpu, ring):
        super().__init__(network, run, build)
        self._connections, self._worker_cpu, self._main_cpu, self._ring = connections, worker_cpu, main_cpu, ring

    @property
    def memory_mb(self):
        return MEMORY_MB + self._connections * BYTES_PER_CONNECTION // 2**20

    def wire(self, twin):
        return self._run.file(f"{twin}.memif")

    def daemon_words(self):
        words = [*FIRST_IN_LINE, self.program("penstockd"), "--listen", self.address, "--state-file", "none", "--metrics-listen", "off", "--mode", "node",
                 "--gateway-name", "edge-1", "--node-name", "edge-1", "--memory-mb", str(self.memory_mb), "--main-core", str(self._main_cpu),
                 "--worker-cores", str(self._worker_cpu), "--connections", str(self._connections)]
        for address in SNAT_ADDRESSES:
            words += ["--snat-address", address]
        for i, (twin, address, mac) in enumerate(TWINS):
            words += ["--port", f"device={self.device(i, twin, mac)};twin={twin};address={address}"]
        return words + self.more_options

    def device(self, i, twin, mac):
        return f"net_memif{i},role=server,socket-abstract=no,socket={self.wire(twin)},rsize={self._ring},mac={mac}"

    def peer_device(self, i, twin):
        """The other end of device(), for a generator."""
        return f"net_memif{i},role=client,socket-abstract=no,socket={self.wire(twin)}"

    def peer_devices(self):
        return [self.peer_device(i, twin) for i, (twin, _, _) in enumerate(TWINS)]

    def start_daemon(self):
        super().start_daemon()
        let_session_go_first(self.daemon.pid)

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait(timeout=20)

    def counts(self):
        """Counters and drop reasons of the one worker, as numbers."""
        shown = self.json("stats")
        found = {counter["name"]: int(counter["value"]) for counter in shown["counters"]}
        found["drops"] = {drop["reason"]: int(drop["packets"]) for drop in shown["drops"]}
        return found

    def preemptions(self):
        """The number of times that the kernel has preempted the worker."""
        tasks = f"/proc/{self.daemon.pid}/task"  # `ip netns exec` and `nice` become the program they start
        total = 0
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/status") as status:
                fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
            if fields["Cpus_allowed_list"] == str(self._worker_cpu):
                total += int(fields["nonvoluntary_ctxt_switches"])
        return total


class Generator:
    def __init__(self, namespace, run, program, cpu, devices):
        with open(run.file("generator.log"), "ab") as log:
            self._process = subprocess.Popen(
                ["ip", "netns", "exec", namespace, *FIRST_IN_LINE, program, str(cpu), str(GENERATOR_MB), *devices], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        let_session_go_first(self._process.pid)
        self._log = run.file("generator.log")

    def until_linked(self):
        """Waits for the link. Returns the fingerprint lines that the generator printed before."""
        lines = []
        while (line := self._line()).startswith(("fingerprint", "#")):
            lines.append(line)
        if json.loads(line) != {"link": "up"}:
            raise RuntimeError(f"the generator says {line}")
        return lines

    def ask(self, *words):
        print(*words, file=self._process.stdin, flush=True)
        return json.loads(self._line())

    def quit(self):
        print("quit", file=self._process.stdin, flush=True)
        self._process.wait(timeout=10)

    def _line(self):
        line = self._process.stdout.readline()
        if not line:
            with open(self._log, errors="replace") as log:
                raise RuntimeError(f"the generator ended with {self._process.wait()}: {log.read().strip()[-500:]}")
        return line.rstrip("\n")
