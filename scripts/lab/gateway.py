# SPDX-License-Identifier: Apache-2.0
"""penstockd in the gateway's namespace, penstock-sync beside it, and penstockctl queries: started as an
operator starts them."""
import dataclasses
import json
import os
import signal
import subprocess
import time

from . import network as net
from .patience import Patience

ALLOWED_EXTERNAL_CIDRS = ",".join(net.EXTERNAL_RANGES)


@dataclasses.dataclass(frozen=True)
class Place:
    role: str   # network namespace
    name: str   # name of the gateway and of its Node
    ports: tuple
    files: str = "penstockd"

    @property
    def log(self):
        return f"{self.files}.log"


FIRST = Place("gateway", "edge-1", (("gw-up", "uplink0", f"{net.UPLINK}/24,{net.UPLINK6}/64"),
                                    ("gw-cl", "cluster0", f"{net.CLUSTER}/24,{net.CLUSTER6}/64")))
SECOND = Place("gateway-2", "edge-2", (("gw-up", "uplink0", f"{net.SECOND_UPLINK}/24"), ("gw-cl", "cluster0", f"{net.SECOND_CLUSTER}/24")),
               "penstockd-2")
THIRD = Place("gateway-3", "edge-3", (("gw-up", "uplink0", f"{net.THIRD_UPLINK}/24"), ("gw-cl", "cluster0", f"{net.THIRD_CLUSTER}/24")),
              "penstockd-3")


class Gateway:
    def __init__(self, network, run, build, driver="af_packet", workers=1, place=FIRST):
        self._network, self._run, self.build = network, run, build
        self._workers, self._place = workers, place
        self.daemon_folder = build  # the one with penstockd; from the next start on
        self.socket = run.file(f"{place.files}.sock")
        self.state_file = run.file("last-good.pb" if place is FIRST else f"{place.files}-last-good.pb")
        self.table_dir = run.memory_folder(place.files)  # "off": connections end with penstockd
        self.more_options = []  # options of penstockd
        self.port_fields = ""  # appended to each --port
        self.port_mtu = {}  # IP bytes by interface; 1500 if absent
        self.device_arguments = ""  # appended to each device
        self.device_of = lambda i, interface: f"net_{driver}{i},iface={interface}{self.device_arguments}"
        self.more_memory_mb = 0
        self.wrap_sync = []  # command prefix of penstock-sync, for example unshare
        self.daemon = self.sync = None

    def set_workers(self, workers):
        """From the next start on."""
        self._workers = workers

    @property
    def name(self):
        return self._place.name

    @property
    def role(self):
        return self._place.role

    # Commands that an operator types to reach this gateway.
    @property
    def address(self):
        return f"unix:{self.socket}"

    @property
    def sync_address(self):
        return f"unix:{self._run.file('penstock-sync.sock')}"

    @property
    def memory_mb(self):
        """The memory option of penstockd. A worker's tables take 27 MB at their default capacity, packet
        buffers up to 80 MB more."""
        return max(256, 128 * self._workers) + self.more_memory_mb

    def program(self, name):
        return os.path.join(self.build, name)

    def daemon_words(self):
        cores = ",".join(str(core_of_worker(worker)) for worker in range(self._workers))
        words = [os.path.join(self.daemon_folder, "penstockd"), "--listen", self.address, "--state-file", self.state_file,
                 "--table-dir", self.table_dir, "--mode", "node",
                 "--gateway-name", self._place.name, "--node-name", self._place.name, "--memory-mb", str(self.memory_mb),
                 "--main-core", str(cores_allowed()[0]), "--worker-cores", cores]
        for i, (interface, twin, addresses) in enumerate(self._place.ports):
            device = self.device_of(i, interface)
            mtu = f";mtu={self.port_mtu[interface]}" if interface in self.port_mtu else ""
            words += ["--port", f"device={device};twin={twin};address={addresses}{mtu}{self.port_fields}"]
        return words + self.more_options

    def sync_words(self, manifests):
        return [self.program("penstock-sync"), "--manifests", manifests, "--gateway", self.address,
                "--allowed-external-cidrs", ALLOWED_EXTERNAL_CIDRS, "--listen", self.sync_address]

    def start_daemon(self):
        self.daemon = self._network.start(self._place.role, self.daemon_words(), self._place.log)
        self._until("penstockd answers", lambda: self.ctl("get", "ports").returncode == 0, self.daemon, self._place.log)

    def end_daemon(self, how=signal.SIGKILL):
        self.daemon.send_signal(how)
        self.daemon.wait()

    def start_sync(self, manifests):
        self.sync = self._network.start(self._place.role, self.sync_words(manifests), "penstock-sync.log")

    def start_sync_of_cluster(self, *options, env=None):
        """Starts penstock-sync on the host, because the API server listens on its loopback interface. It
        reaches this gateway by a Unix socket."""
        words = [*self.wrap_sync, self.program("penstock-sync"), "--gateway", self.address,
                 "--allowed-external-cidrs", ALLOWED_EXTERNAL_CIDRS, "--listen", self.sync_address, *options]
        self.sync = self._run.spawn(words, "penstock-sync.log", env)

    def until_served(self, services, patience_s=15, backends=True):
        """Waits until each of these service ports has a frontend and, unless `backends` is False, a backend
        for new flows. Objects that are applied one by one may reach the gateway one by one."""
        def served():
            known = self.services()
            return (all(known.get(key, {}).get("listening") for key in services)
                    and (not backends or set(services) <= self._ports_with_backends()))
        self._until(f"{', '.join(sorted(services))} served", served, self.sync, "penstock-sync.log", patience_s)

    def _ports_with_backends(self):
        return {key_of(backend["service"]) for backend in self.json("get", "backends") if backend.get("sets")}

    def ctl(self, *words, timeout_s=60):
        return subprocess.run([self.program("penstockctl"), "--gateway", self.address, *words], capture_output=True, text=True,
                              timeout=timeout_s)

    def json(self, *words):
        asked = self.ctl("-o", "json", *words)
        if asked.returncode != 0:
            raise RuntimeError(f"penstockctl {' '.join(words)}: {asked.stderr.strip()}")
        return json.loads(asked.stdout)

    def sync_status(self):
        """The status of penstock-sync."""
        return self.json("--sync-server", self.sync_address, "get", "sync")

    def drops(self):
        """Packets by reason."""
        return {row["reason"]: int(row["packets"]) for row in self.json("stats")["drops"]}

    def services(self):
        """The ServiceStatus of each service port, by key: {"default/my-service:web/tcp": ServiceStatus}"""
        return {key_of(status["desired"]["key"]): status for status in self.json("get", "services")}

    def _until(self, what, condition, process, log, patience_s=15):
        began, patience = time.monotonic(), Patience(patience_s)
        while not condition():
            if process.poll() is not None:
                raise RuntimeError(f"waiting until {what}: the process ended with {process.returncode}\n{self._tail(log)}")
            if not patience.lasts():
                raise RuntimeError(f"not within {patience_s} s: {what}\n{self._tail(log)}")
            # A question costs processor time that other tests need: after a long wait, the next is less urgent.
            time.sleep(min(0.5, max(0.05, (time.monotonic() - began) / 10)))

    def _tail(self, log):
        with open(self._run.file(log), errors="replace") as file:
            return "".join(file.readlines()[-15:]).rstrip()


def key_of(key):
    port = f":{key['port_name']}" if key["port_name"] else ""
    return f"{key['namespace']}/{key['name']}{port}/{key['protocol'].lower()}"


def traffic_of(status):
    """The counters of a ServiceStatus as numbers. JSON carries counters above 2^53 as strings."""
    return {name: int(count) for name, count in status["traffic"].items()}


def core_of_worker(worker):
    """The cores of the workers. Workers poll, so they avoid the first core, where control, servers and
    clients run. With too few cores they share."""
    others = cores_allowed()[1:] or cores_allowed()
    return others[worker % len(others)]


def cores_allowed():
    return sorted(os.sched_getaffinity(0))
