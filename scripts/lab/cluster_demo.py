# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/cluster-demo, which has already installed and built the dependencies."""
import argparse
import os
import subprocess
import sys
import time

from testbed import api_servers
from testbed.cluster import Cluster
from testbed.kubectl import KubectlFailed

from . import gateway as gw
from . import network as net
from . import lifetime, quickstart, routing, servers, state
from .network import BACKENDS

PURPOSE = "cluster-demo"
RBAC = os.path.join(quickstart.ROOT, "docs/deploy/common/rbac.yaml")
POOLS = os.path.join(quickstart.ROOT, "docs/deploy/common/addresspool-crd.yaml")
EXTERNAL_IP = "80.11.12.10"
SERVICE_PORT = "default/my-service:http/tcp"
PATIENCE_S = 30
GATEWAY_AS, ROUTER_AS = 65001, 65000

SERVICE = {
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "my-service", "namespace": "default"},
    "spec": {"ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": servers.HTTP_PORT}], "externalIPs": [EXTERNAL_IP]}}

POOL = {"apiVersion": "penstock.io/v1alpha1", "kind": "AddressPool", "metadata": {"name": "edge"}, "spec": {"addresses": ["203.0.113.16/28"]}}
BALANCER = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "my-balancer", "namespace": "default"},
            "spec": {"type": "LoadBalancer", "loadBalancerClass": "penstock.io/gateway", "selector": {}, "ports": [{"port": 80, "targetPort": servers.HTTP_PORT}]}}


class DemoFailed(Exception):
    pass


def main():
    parser = argparse.ArgumentParser(description="scripts/cluster-demo is what people call")
    parser.add_argument("action", choices=("show", "keep", "stop"))
    parser.add_argument("--server", choices=("current", "1.20"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--build", default=os.path.join(quickstart.ROOT, "build"))
    options = parser.parse_args()
    swept = state.sweep()
    if swept:
        print(f"cleaned up after {', '.join(swept)}, which did not end by itself")
    kept = [run for run in state.runs() if run.kept and run.name.startswith(PURPOSE)]
    if options.action == "stop":
        for run in kept:
            run.undo()
        print(f"{PURPOSE}: {'stopped' if kept else 'nothing is running'}")
        return 0
    if kept and options.action == "keep":
        print(f"{PURPOSE}: one is already running; scripts/cluster-demo --stop ends it", file=sys.stderr)
        return 1
    return lifetime.carry_out(PURPOSE, lambda run: show(run, options),
                              (DemoFailed, api_servers.NotToBeHad, RuntimeError, KubectlFailed, net.CommandFailed, subprocess.TimeoutExpired))


def find_server(options):
    deadline = time.monotonic() + 60 * options.minutes
    reasons = []
    for build in (False, True):  # existing builds first: a new build takes minutes
        for name in [options.server] if options.server else api_servers.names():
            try:
                if build:
                    print(f"{PURPOSE}: building kube-apiserver ({name}); this takes minutes, once", file=sys.stderr)
                return api_servers.obtain(name, deadline, build)
            except api_servers.NotToBeHad as why:
                reasons.append(f"{name}: {why}")
    raise api_servers.NotToBeHad("no API server: " + "; ".join(reasons[len(reasons) // 2:]))


def show(run, options):
    demo = Demo(run, find_server(options), options.build)
    demo.start()
    demo.serve()
    demo.scale()
    demo.balance()
    demo.announce()
    if options.action == "keep":
        run.keep()
        demo.tell_what_to_try()
    else:
        demo.delete()
    print(f"{PURPOSE}: ok")


class Demo:
    def __init__(self, run, server, build):
        self._run = run
        self._network = net.Network(run)
        self._gateway = gw.Gateway(self._network, run, build)
        self._cluster = Cluster(run, server)
        self._kubectl = self._cluster.admin

    def start(self):
        step(f"etcd and kube-apiserver {self._cluster.server_version} on {self._cluster.url}")
        self._cluster.start()
        self._cluster.grant(RBAC)
        step("a client, a gateway and backends, each in a network namespace of its own")
        self._network.build()
        servers.start(self._network, self._run)
        step("penstockd, and penstock-sync with the rights of docs/deploy/common/rbac.yaml")
        # on failure penstockd logs it and runs without hugepages
        self._run.reserve_hugepages(self._gateway.memory_mb)
        self._gateway.more_options = ["--vip-presence", "routes"]
        self._gateway.start_daemon()
        if self._has_pools:
            self._kubectl("apply", "-f", POOLS)
        self._gateway.start_sync_of_cluster("--kubeconfig", self._cluster.file("sync.kubeconfig"),
                                            "--allocate-addresses", "on" if self._has_pools else "off")

    def serve(self):
        self._apply("a Service with an ExternalIP, and its EndpointSlice with two endpoints", SERVICE, self._slice("backend-1", "backend-2"))
        self._gateway.until_served({SERVICE_PORT}, PATIENCE_S)
        self._curl({"backend-1", "backend-2"})
        self._show_services()

    def scale(self):
        self._apply("the EndpointSlice scaled to three", self._slice(*BACKENDS))
        self._curl(set(BACKENDS))
        self._show_services()

    @property
    def _has_pools(self):
        """Custom resources with rules."""
        return self._cluster.version >= (1, 25)

    def balance(self):
        """An address from a pool, in the status and announced as a kernel route."""
        if not self._has_pools:
            return
        slice_of = {**self._slice(*BACKENDS), "metadata": {"name": "my-balancer", "namespace": "default", "labels": {"kubernetes.io/service-name": "my-balancer"}}}
        slice_of["ports"] = [{"port": servers.HTTP_PORT, "protocol": "TCP"}]
        self._apply("an AddressPool, and a Service of type LoadBalancer", POOL, BALANCER, slice_of)
        wait_until("the Service is served", lambda: any(each["type"] == "penstock.io/Programmed" and each["status"] == "True"
                                                        for each in self._balancer_status().get("conditions", [])))
        print("  kubectl get service my-balancer")
        print(indented(self._kubectl("get", "service", "my-balancer", "-n", "default")))
        address = self._balancer_status()["loadBalancer"]["ingress"][0]["ip"]
        print("  penstockctl get pools")
        print(indented(self._gateway.ctl("--sync-server", self._gateway.sync_address, "get", "pools").stdout))
        wait_until("the route is announced", lambda: address in self._routes())
        print("  ip route show proto 80    (what a routing daemon exports)")
        print(indented(self._routes()))
        done = self._network.run("client", "curl", "--silent", "--max-time", "5", f"http://{address}/")
        if done.returncode != 0:
            raise DemoFailed(f"{address} does not answer")
        print(f"  curl http://{address}/: {done.stdout.strip()}")

    def announce(self):
        """The client's namespace becomes a router that reaches only what it learns by BGP."""
        if not self._has_pools:
            return
        step("BIRD beside penstockd (docs/examples/announce/bird.conf) and at the client, which loses its static routes")
        for prefix in net.EXTERNAL_RANGES:
            self._network.ip("client", f"route del {prefix}")
        router = routing.Bird(self, "client", net.CLIENT, ROUTER_AS, {net.UPLINK: GATEWAY_AS})
        beside = routing.Bird(self, "gateway", net.UPLINK, GATEWAY_AS, {net.CLIENT: ROUTER_AS})
        router.start(announces=False)
        beside.start(announces=True)
        beside.until_established()
        address = self._balancer_status()["loadBalancer"]["ingress"][0]["ip"]
        # The prefix list of the example does not have that of the other Service.
        wait_until("the router has learned the address", lambda: set(router.learned()) == {address})
        self._show_learned(address)
        step("penstockctl drain")
        done = self._gateway.ctl("drain")
        if done.returncode != 0:
            raise DemoFailed(f"drain: {done.stderr.strip()}")
        wait_until("the router has lost the address", lambda: not router.learned())
        print("  the router has no route any more; connections that exist continue")
        step("penstockctl undrain")
        self._gateway.ctl("undrain")
        wait_until("the router has learned the address again", lambda: set(router.learned()) == {address})
        self._show_learned(address)

    def _show_learned(self, address):
        print("  ip route show proto bird    (at the router)")
        print(indented(self._network.run("client", "ip", "route", "show", "proto", "bird").stdout))
        done = self._network.run("client", "curl", "--silent", "--max-time", "5", f"http://{address}/")
        if done.returncode != 0:
            raise DemoFailed(f"{address} does not answer over the learned route")
        print(f"  curl http://{address}/: {done.stdout.strip()}")

    @property
    def network(self):  # of routing.Daemon
        return self._network

    @property
    def run(self):
        return self._run

    def _balancer_status(self):
        return self._kubectl.json("get", "service", "my-balancer", "-n", "default")["status"]

    def _routes(self):
        return self._network.run("gateway", "ip", "route", "show", "proto", "80").stdout

    def delete(self):
        step("kubectl delete service my-service")
        print(indented(self._kubectl("delete", "service,endpointslice", "my-service", "-n", "default", "--wait=false")))
        wait_until("the Service is withdrawn", lambda: SERVICE_PORT not in self._gateway.services())
        done = self._network.run("client", "curl", "--silent", "--max-time", "2", f"http://{EXTERNAL_IP}/")
        if done.returncode == 0:
            raise DemoFailed(f"{EXTERNAL_IP} still answers: {done.stdout.strip()}")
        print(f"  curl http://{EXTERNAL_IP}/ fails now, as it should")
        self._show_services()

    def tell_what_to_try(self):
        ctl = f"build/penstockctl --gateway {self._gateway.address}"
        print(f"""
It keeps running. Try:
  export KUBECONFIG={self._cluster.file("admin.kubeconfig")}
  kubectl get services,endpointslices
  kubectl patch service my-service --type=merge -p '{{"spec": {{"externalIPs": ["80.11.12.11"]}}}}'
  ip netns exec {self._network.namespace("client")} curl http://80.11.12.11/
  {ctl} get services
  {ctl} get connections
scripts/cluster-demo --stop ends it.
""")

    def _apply(self, what, *objects):
        step(f"kubectl apply: {what}")
        print(indented(self._kubectl.apply(*objects)))

    def _slice(self, *backends):
        """In the API version of this API server (beta before 1.21)."""
        old = self._cluster.version < (1, 21)
        return {"apiVersion": f"discovery.k8s.io/{'v1beta1' if old else 'v1'}", "kind": "EndpointSlice", "addressType": "IPv4",
                "metadata": {"name": "my-service", "namespace": "default", "labels": {"kubernetes.io/service-name": "my-service"}},
                "ports": [{"name": "http", "port": servers.HTTP_PORT, "protocol": "TCP"}],
                "endpoints": [{"addresses": [BACKENDS[name]], "conditions": {"ready": True}} for name in backends]}

    def _curl(self, expected):
        """Waits until each of the backends answers in turn, and no other backend."""
        def answered():
            done = self._network.run("client", "curl", "--silent", "--max-time", "5", *[f"http://{EXTERNAL_IP}/"] * 6,
                                     "--header", "Connection: close")
            return done.stdout.split()
        last = []

        def all_there():
            last[:] = answered()
            return len(last) == 6 and set(last) == expected
        try:
            wait_until(f"{', '.join(sorted(expected))} answer", all_there)
        finally:
            print(f"  curl http://{EXTERNAL_IP}/ (6 times): {' '.join(last)}")

    def _show_services(self):
        print("  penstockctl get services")
        print(indented(self._gateway.ctl("get", "services").stdout))


def step(what):
    print(f"* {what}", flush=True)


def indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines()).rstrip("\n")


def wait_until(what, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise DemoFailed(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
