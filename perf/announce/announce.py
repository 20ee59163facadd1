# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/bench announce, on the network of suite announce: the client's namespace is the router.

routes   10,000 VIPs into the gateway's kernel and out, by the kernel's messages: from the first route to the
         last; out also from the command that takes the uplink's link down.
answer   one Service after another is applied. From the write of its manifest, or from the request to the API
         server, until a client behind the router has the first packet of its VIP (SYN-ACK). The endpoints are
         there before. The client has no route to the VIP before that, and tries each millisecond.

The API server is used if the test bed has one already (scripts/testbed/build-api-server)."""
import argparse
import os
import select
import socket
import time

import manifests
from daemons import Bird, Frr
from fixture import Lab, Skip, until
from lab import network as net
from lab import servers
from lab.network import inside
from route_monitor import VIP_ROUTES, Monitor
from testbed import api_servers
from testbed.cluster import Cluster

ROUTES = 10_000
PER_SERVICE = 500
GATEWAY_AS, ROUTER_AS = 65001, 65000


def say(name, value, unit):
    print(f"{name} {value:.6g} {unit}", flush=True)


def tell_load(when):
    with open("/proc/loadavg") as file:
        print(f"fingerprint load {when}: {' '.join(file.read().split()[:3])}, {os.cpu_count()} processors", flush=True)


def gateway_of(lab):
    lab.gateway.more_options = ["--vip-presence", "routes"]
    lab.build_network()
    servers.start(lab.network, lab.run)
    lab.gateway.start_daemon()
    for prefix in net.EXTERNAL_RANGES:
        lab.network.ip("client", f"route del {prefix}")


# ---- routes

def routes(build, count):
    lab = Lab(build, {}, "bench-announce")
    try:
        gateway_of(lab)
        vips = [f"2001:db8:80:1::{i:x}" for i in range(1, count + 1)]
        services = [manifests.service(f"many-{i}", 80, ingress_ips=vips[i:i + PER_SERVICE], families=("IPv6",))
                    for i in range(0, count, PER_SERVICE)]
        lab.apply()
        lab.gateway.start_sync(lab.manifests)
        namespace = lab.network.namespace("gateway")
        for what, change, kind in (("in", lambda: lab.apply(*services), "added"), ("out", lab.apply, "deleted"),
                                   ("in_again", lambda: lab.apply(*services), "added"),
                                   ("lost_link", lambda: lab.network.ip("client", "link set eth0 down"), "deleted")):
            with Monitor(namespace, VIP_ROUTES) as monitor:
                began = time.time()
                change()
                until(f"{count} routes are {kind}", lambda: monitor.received >= count, patience_s=120, step_s=0.02)
            times = [at for at, changed, _, _ in monitor.changes if changed == kind]
            span_s = times[-1] - times[0]
            say(f"routes.{what}.per_second", len(times) / span_s, "routes/s")
            say(f"routes.{what}.first_to_last", 1000 * span_s, "ms")
            say(f"routes.{what}.until_last", 1000 * (times[-1] - began), "ms")
    finally:
        lab.end()


# ---- answer

def first_answer(lab, vip):
    """Time of the first packet from the VIP to the client."""
    while True:
        with inside(lab.network.namespace("client")):
            client = socket.socket(net.family_of(vip))
        with client:
            client.setblocking(False)
            error = client.connect_ex((vip, 80))
            if error in (0, 115):  # EINPROGRESS; anything else: no route yet
                _, writable, _ = select.select([], [client], [], 0.2)
                if writable and client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    return time.monotonic()
        time.sleep(0.001)


def answers(lab, name, daemon, count, apply, prepare):
    announcer = daemon(lab, "gateway", net.UPLINK, GATEWAY_AS, {net.CLIENT: ROUTER_AS})
    router = daemon(lab, "client", net.CLIENT, ROUTER_AS, {net.UPLINK: GATEWAY_AS})
    router.start(announces=False)
    announcer.start(announces=True)
    announcer.until_established()
    taken_ms = []
    prepare([f"web-{i}" for i in range(count + 1)])
    for i in range(count + 1):
        vip = f"203.0.113.{i + 1}"
        began = time.monotonic()
        apply(f"web-{i}", vip)
        taken_ms.append(1000 * (first_answer(lab, vip) - began))
    taken_ms = sorted(taken_ms[1:])  # without the first, for which backends are resolved by ARP
    for share in (50, 99):
        say(f"answer.{name}.p{share}", taken_ms[min(len(taken_ms) - 1, len(taken_ms) * share // 100)], "ms")
    say(f"answer.{name}.max", taken_ms[-1], "ms")


def answers_of_manifests(build, daemon, count):
    lab = Lab(build, {}, "bench-announce")
    try:
        gateway_of(lab)
        lab.apply()
        lab.gateway.start_sync(lab.manifests)
        answers(lab, f"manifest.{daemon.__name__.lower()}", daemon, count,
                apply=lambda name, vip: lab.apply(manifests.service(name, 80, external_ips=[vip]), file=f"{name}.yaml"),
                prepare=lambda names: lab.apply(*map(manifests.endpoints, names)))
    finally:
        lab.end()


def answers_of_api_server(build, daemon, count):
    server = api_servers.obtain("current", 0, build=False)
    lab = Lab(build, {}, "bench-announce")
    try:
        cluster = Cluster(lab.run, server)
        cluster.start()
        gateway_of(lab)
        lab.gateway.start_sync_of_cluster("--kubeconfig", cluster.file("admin.kubeconfig"))

        def create(path, made):
            status, answer = cluster.request("POST", path, made)
            if status != 201:
                raise RuntimeError(f"{path}: HTTP {status} {answer}")

        def prepare(names):
            for name in names:
                made = manifests.endpoints(name)
                made["metadata"]["namespace"] = "default"
                create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", made)

        def apply(name, vip):
            create("/api/v1/namespaces/default/services",
                   {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
                    "spec": {"externalIPs": [vip], "ports": [{"port": 80, "targetPort": 9376, "protocol": "TCP"}]}})
        answers(lab, f"api_server.{daemon.__name__.lower()}", daemon, count, apply, prepare)
    finally:
        lab.end()


def main():
    argparse.ArgumentParser(prog="scripts/bench announce", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    build, quick = os.environ["BENCH_BUILD"], bool(os.environ.get("BENCH_QUICK"))
    count = 20 if quick else 100
    tell_load("before")
    routes(build, 1_000 if quick else ROUTES)
    for daemon in (Frr, Bird):
        answers_of_manifests(build, daemon, count)
    try:
        answers_of_api_server(build, Frr, count)
    except (api_servers.NotToBeHad, Skip) as why:
        print(f"# skipped, with an API server: {why}", flush=True)
    tell_load("after")


if __name__ == "__main__":
    main()
