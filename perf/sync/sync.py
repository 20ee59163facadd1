# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/bench sync: the time for a cluster's configuration to reach the workers, and the cost
of following it. The API server is this folder's own, with a negligible cost, and also a real one if the test
bed has it.

cold       penstock-sync starts against an API server that has everything and a penstockd that has nothing,
           until penstockd has the whole configuration. The processor seconds of the two programs (without the
           worker's, which polls) are Penstock's cost. The API server's are printed beside them, because it
           shares the machine.
change     one endpoint of a slice becomes unready, or ready again: from the arrival of the watch event's
           bytes until the last worker uses the new state, as penstock-sync measures it; single (idle), and at
           1,000 a second (storm).
memory     resident, as the kernel counts it, without penstockd's hugepages.
"""
import argparse
import contextlib
import os
import re
import sys
import threading
import time

import bed  # this module and the next are of scripts/bench wire
import wire
import sync_bed
from lab import lifetime, state
from testbed import api_servers

# SIZE: services, endpoints of each
SIZES = {"1000x10": (1_000, 10), "10000x10": (10_000, 10), "5000x50": (5_000, 50)}
LARGEST = "5000x50"
# Limits of the gates for the largest size.
COLD_OWN_S = 10
CHANGE_P99_MS = 20
BYTES_PER_ENDPOINT = 1024
APPLY_HISTOGRAM = "penstock_sync_apply_latency_seconds"


def say(name, value, unit):
    print(f"{name} {value:.6g} {unit}", flush=True)


def gate(name, value, limit):
    print(f"gate {name} {value:.6g} {limit:g} {'pass' if value <= limit else 'fail'}", flush=True)


def histogram(metrics):
    """[(upper bound in ms, number of samples up to that bound)] of all gateways together, bounds
    ascending."""
    buckets = {}
    for name, count in metrics.items():
        found = re.match(APPLY_HISTOGRAM + r'_bucket\{.*le="([^"]+)"', name)
        if found:
            bound = 1000 * float(found[1].replace("+Inf", "inf"))
            buckets[bound] = buckets.get(bound, 0) + count
    return sorted(buckets.items())


def quantile(before, after, share):
    """The upper bound of the bucket that contains the quantile, so the result is never too low."""
    since = dict(before)
    counts = [(bound, count - since.get(bound, 0)) for bound, count in after]
    total = counts[-1][1] if counts else 0
    return next((bound for bound, count in counts if total and count >= share * total), float("nan"))


class Figures:
    def __init__(self):
        self.p99_idle_ms = self.own_s = self.per_endpoint = self.wrong = None


def measure_changes(server, sync, gateway, name, label, count, per_second):
    sync_cpu, daemon_cpu, before = sync_bed.cpu_s(sync.pid), gateway.control_cpu_s(), histogram(sync.metrics())
    seconds = server.flip(count, per_second)
    after = None
    while after != (now := histogram(sync.metrics())):  # until all changes are applied
        after = now
        time.sleep(0.5)
    say(f"sync_{name}_{label}_p50", quantile(before, after, 0.5), "ms")
    p99 = quantile(before, after, 0.99)
    say(f"sync_{name}_{label}_p99", p99, "ms")
    say(f"sync_{name}_{label}_applied", after[-1][1] - before[-1][1], "states")
    say(f"sync_{name}_{label}_rate", count / seconds, "changes/s")
    say(f"sync_{name}_{label}_sync_cpu", sync_bed.cpu_s(sync.pid) - sync_cpu, "s")
    say(f"sync_{name}_{label}_penstockd_cpu", gateway.control_cpu_s() - daemon_cpu, "s")
    return p99


def measure(options, run, size, kind):
    name = f"{kind}_{size}"
    services, per_service = SIZES[size]
    endpoints = services * per_service
    network = bed.Namespace(run)
    network.build()
    gateway = sync_bed.Gateway(network, run, options.build)
    run.reserve_hugepages(gateway.memory_mb + bed.GENERATOR_MB)
    if kind == "real":
        server = sync_bed.RealServer(run, services, per_service)
    else:
        server = sync_bed.MadeUpServer(run, os.path.join(options.build, "perf/sync/api_server"), services, per_service)
    print(f"# {name}: the API server is {server.text}", flush=True)
    gateway.start_daemon()
    server_before = server.cpu_s()
    daemon_before, empty = gateway.control_cpu_s(), sync_bed.resident_bytes(gateway.daemon.pid)
    sync = sync_bed.Sync(run, gateway, server.kubeconfig)
    figures = Figures()
    wall = sync.until_programmed(services + bed.SERVICES, endpoints + bed.SERVICES * bed.ENDPOINTS_PER_SERVICE)
    sync_cpu, daemon_cpu = sync_bed.cpu_s(sync.pid), gateway.control_cpu_s() - daemon_before
    figures.own_s = sync_cpu + daemon_cpu
    say(f"sync_{name}_cold_wall", wall, "s")
    say(f"sync_{name}_cold_own", figures.own_s, "s")
    say(f"sync_{name}_cold_sync_cpu", sync_cpu, "s")
    say(f"sync_{name}_cold_penstockd_cpu", daemon_cpu, "s")
    say(f"sync_{name}_cold_api_server_cpu", server.cpu_s() - server_before, "s")
    time.sleep(options.settle_s)  # follow-up work of the start: the last-good file, freed memory
    resident = sync_bed.resident_bytes(sync.pid)
    figures.per_endpoint = resident / endpoints
    say(f"sync_{name}_resident", resident / 2**20, "MiB")
    say(f"sync_{name}_resident_per_endpoint", figures.per_endpoint, "bytes")
    say(f"sync_{name}_resident_peak", sync_bed.peak_bytes(sync.pid) / 2**20, "MiB")
    say(f"sync_{name}_penstockd_resident", (sync_bed.resident_bytes(gateway.daemon.pid) - empty) / 2**20, "MiB_more_than_empty")
    figures.p99_idle_ms = measure_changes(server, sync, gateway, name, "idle", options.changes, 10)
    measure_changes(server, sync, gateway, name, "storm", options.storm, 1000)

    traffic = Traffic(options, network, gateway, run)
    with traffic.during(options.storm / 1000):
        server.flip(options.storm, 1000)
    say(f"sync_{name}_storm_packets", traffic.result["offered"], "packets")
    say(f"sync_{name}_storm_packets_lost", traffic.result["offered"] - traffic.result["returned"], "packets")
    figures.wrong = traffic.result["wrong"]
    say(f"sync_{name}_storm_packets_wrong", figures.wrong, "packets")
    sync.end()
    server.end()
    gateway.stop()  # before the generator: see generator.cpp
    traffic.generator.quit()
    return figures


class Traffic:
    """Established flows of unchanged Services, while others change. The generator shares its CPU with the API
    server and penstock-sync, so its rate is limited to the number of packets that a queue of 1,024 bridges
    while the generator waits for the CPU."""
    FLOWS = 4096
    RATE = 20_000

    def __init__(self, options, network, gateway, run):
        cpus = sorted(os.sched_getaffinity(0))
        self.generator = bed.Generator(network.namespace("gateway"), run, os.path.join(options.build, "perf/wire/generator"), cpus[0],
                                       gateway.peer_devices())
        self.generator.until_linked()
        wire.until("the twins' carrier", lambda: all(network.has_carrier(twin) for twin in ("uplink0", "cluster0")))
        network.teach_neighbours()
        self.generator.ask("once", self.RATE, 0, self.FLOWS)
        # packets lost during the resolution of next hops are sent again
        self.generator.ask("once", self.RATE, 0, self.FLOWS)
        self.result = None

    @contextlib.contextmanager
    def during(self, seconds):
        def play():
            self.result = self.generator.ask("random", self.RATE, seconds, self.FLOWS)
        player = threading.Thread(target=play)
        player.start()
        try:
            yield
        finally:
            player.join()


def main():
    quick = bool(os.environ.get("BENCH_QUICK"))
    parser = argparse.ArgumentParser(prog="scripts/bench sync", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("BENCH_BUILD"), help="build directory with the programs")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["1000x10"] if quick else list(SIZES))
    parser.add_argument("--servers", nargs="+", choices=("made-up", "real"), default=["made-up"] if quick else ["made-up", "real"],
                        help="real: the test bed's current one, where it is in the cache")
    parser.add_argument("--changes", type=int, default=50 if quick else 300, help="single changes, ten a second")
    parser.add_argument("--storm", type=int, default=2_000 if quick else 10_000, help="changes at 1,000 a second")
    parser.add_argument("--settle-s", type=float, default=1 if quick else 5)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("sync: must be root: it makes a network namespace and TAP interfaces", file=sys.stderr)
        return 1
    state.sweep()
    for kind, size in ((kind, size) for kind in options.servers for size in options.sizes):
        code = lifetime.carry_out("sync", lambda run, kind=kind, size=size: measure_and_judge(options, run, size, kind))
        if code != 0:
            return code
    return 0


def measure_and_judge(options, run, size, kind):
    try:
        figures = measure(options, run, size, kind)
    except api_servers.NotToBeHad as why:
        print(f"# no real API server: {why}; scripts/testbed/build-api-server makes one")
        return
    if size == LARGEST:
        gate(f"SYNC-COLD-{kind}", figures.own_s, COLD_OWN_S)
        # A real API server uses the measured processors at unpredictable times: its figures are printed, but
        # no gate applies.
        if kind == "made-up":
            gate("SYNC-CHANGE-P99", figures.p99_idle_ms, CHANGE_P99_MS)
        gate(f"SYNC-MEMORY-{kind}", figures.per_endpoint, BYTES_PER_ENDPOINT)
        gate(f"SYNC-WRONG-{kind}", figures.wrong, 0)


if __name__ == "__main__":
    sys.exit(main())
