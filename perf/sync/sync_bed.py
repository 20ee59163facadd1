# SPDX-License-Identifier: Apache-2.0
"""An API server and a penstock-sync beside the penstockd and the generator of scripts/bench wire.

The API server is either this folder's own (a generated cluster, negligible cost) or a real one of the test
bed."""
import json
import os
import subprocess
import time
import urllib.request

import bed  # of scripts/bench wire
from lab import gateway as gw
from testbed import api_servers, bulk
from testbed.cluster import Cluster, free_ports

MEMORY_MB = 512
CONNECTIONS = 2**18
RING_LOG2 = 10


class Gateway(bed.Gateway):
    """The penstockd of scripts/bench wire, plus the last-good file, whose writing is part of the cost of a
    change."""
    def __init__(self, network, run, build):
        cpus = gw.cores_allowed()
        super().__init__(network, run, build, CONNECTIONS, gw.core_of_worker(0), cpus[0], RING_LOG2)

    @property
    def memory_mb(self):
        return MEMORY_MB

    def daemon_words(self):
        words = super().daemon_words()
        words[words.index("--state-file") + 1] = self.state_file
        return words

    def control_cpu_s(self):
        """Processor seconds of all threads except the worker, which always polls."""
        tasks = f"/proc/{self.daemon.pid}/task"  # `ip netns exec` and `nice` become the program they start
        return sum(cpu_s(f"{self.daemon.pid}/task/{task}") for task in os.listdir(tasks) if not self._is_worker(f"{tasks}/{task}/status"))

    def _is_worker(self, status):
        with open(status) as file:
            return any(line.split() == ["Cpus_allowed_list:", str(self._worker_cpu)] for line in file)


def traffic_objects(allocated=True):
    """The Services of scripts/bench wire as objects of an API server; the generator sends to them."""
    for number, line in enumerate(bed.manifests().removeprefix("---\n").split("---\n")):
        entry = json.loads(line)
        entry["metadata"] |= {"uid": f"00000000-0000-4000-8000-{number:012}", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if entry["kind"] == "Service":
            if allocated:  # an API server assigns it by itself
                entry["spec"] |= {"clusterIP": f"10.111.255.{number}", "type": "ClusterIP", "ipFamilies": ["IPv4"]}
            entry["spec"]["ports"][0]["name"] = ""
        yield "services" if entry["kind"] == "Service" else "slices", entry


class MadeUpServer:
    """This folder's api_server."""
    def __init__(self, run, program, services, endpoints):
        self.text = "this folder's own, plain HTTP/1.1 on loopback"
        more = run.file("traffic-objects")
        with open(more, "w") as file:
            file.writelines(f"{collection} {json.dumps(entry)}\n" for collection, entry in traffic_objects())
        self._process = subprocess.Popen([program, str(services), str(endpoints), more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = json.loads(self._process.stdout.readline())["port"]
        self.pid = self._process.pid
        self.kubeconfig = run.file("kubeconfig")
        with open(self.kubeconfig, "w") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "bench",
                       "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
                       "users": [{"name": "bench", "user": {}}],
                       "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}]}, file)

    def flip(self, count, per_second):
        """Changes single endpoints at a constant rate; returns when all changes have been written."""
        print("flip", count, per_second, file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())["seconds"]

    def cpu_s(self):
        return cpu_s(self._process.pid)

    def end(self):
        self._process.stdin.close()
        self._process.wait(timeout=10)


class RealServer:
    """kube-apiserver and etcd of the test bed, over TLS, with objects of the same shape and number."""
    def __init__(self, run, services, endpoints):
        self._cluster = Cluster(run, api_servers.obtain("current", time.monotonic() + 10, build=False))
        self._cluster.start()
        self.text = f"kube-apiserver {self._cluster.server_version} and etcd, TLS"
        self.kubeconfig = self._cluster.file("admin.kubeconfig")
        self._slices = [bench_slice(number, endpoints) for number in range(services)]
        self._next = 0
        bulk.create(self._cluster, (bench_service(number) for number in range(services)))
        bulk.create(self._cluster, iter(self._slices))
        bulk.create(self._cluster, (entry | {"metadata": {key: value for key, value in entry["metadata"].items() if key in ("name", "namespace", "labels")}}
                                    for _, entry in traffic_objects(allocated=False)))

    def flip(self, count, per_second):
        began = time.monotonic()

        def due():
            for i in range(count):
                time.sleep(max(0.0, began + i / per_second - time.monotonic()))
                entry = self._slices[self._next % len(self._slices)]
                conditions = entry["endpoints"][self._next // len(self._slices) % len(entry["endpoints"])]["conditions"]
                conditions["ready"] = not conditions["ready"]
                self._next += 1
                yield entry
        bulk.replace(self._cluster, due())
        return time.monotonic() - began

    def cpu_s(self):
        return cpu_s(self._cluster.api_server.pid) + cpu_s(self._cluster.etcd.pid)

    def end(self):
        """Nothing to do: the run ends both."""


def bench_service(number):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"svc-{number:06}", "namespace": "default"},
            "spec": {"externalIPs": [f"10.{112 + number // 65536}.{number // 256 % 256}.{number % 256}"],
                     "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}


def bench_slice(number, endpoints):
    def endpoint(pod):
        return {"addresses": [f"10.{128 + pod // 65536}.{pod // 256 % 256}.{pod % 256}"], "conditions": {"ready": True},
                "nodeName": f"node-pool-a-{pod // 110:06}", "zone": f"zone-{'abc'[pod // 110 % 3]}"}
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": f"svc-slice-{number:06}", "namespace": "default", "labels": {"kubernetes.io/service-name": f"svc-{number:06}"}},
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": [endpoint(number * endpoints + i) for i in range(endpoints)]}


class Sync:
    """A penstock-sync outside the namespace, next to the API server."""
    def __init__(self, run, gateway, kubeconfig):
        self._log = run.file("penstock-sync.log")
        self._socket = run.file("penstock-sync.sock")
        self._gateway = gateway
        (port,) = free_ports("127.0.0.1", 1)
        self.metrics_url = f"http://127.0.0.1:{port}/metrics"
        self.began = time.monotonic()
        # Started by the run, which ends it even if this program cannot.
        self.process = run.spawn(
            [*bed.FIRST_IN_LINE, gateway.program("penstock-sync"), "--kubeconfig", kubeconfig, "--gateway", gateway.address,
             "--listen", f"unix:{self._socket}", "--http", f"127.0.0.1:{port}", "--events", "off",
             "--allowed-external-cidrs", "203.0.113.0/24,10.112.0.0/14"], "penstock-sync.log")
        self.pid = self.process.pid  # `nice` becomes the program it starts
        bed.let_session_go_first(self.pid)

    def until_programmed(self, services, endpoints, patience_s=300):
        """Seconds since it was started."""
        deadline = self.began + patience_s
        while True:
            asked = self._gateway.ctl("-o", "json", "status")
            if asked.returncode == 0:
                shown = json.loads(asked.stdout)
                if shown.get("services") == services and shown.get("backends") == endpoints:
                    return time.monotonic() - self.began
            if self.process.poll() is not None or time.monotonic() > deadline:
                with open(self._log, errors="replace") as log:
                    raise RuntimeError("not programmed:\n" + "".join(log.readlines()[-15:]))
            time.sleep(0.1)

    def metrics(self):
        """{name with its labels: value}"""
        with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
