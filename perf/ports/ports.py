# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/bench ports: penstockd with full NAT through each kind of port that needs no NIC, beside the
kernel's own NAT on veth.

  flood     both directions at saturation: packets through the gateway in a second, and its cycles per packet
  rate      the highest rate at which at most 0.1 % are lost
  new       connections opened in a second, each answered once, and cycles per connection of two packets
  flowgen   dpdk-testpmd sends to 256 VIPs by turns and receives the forwarded packets on the same port
  txonly    dpdk-testpmd sends one flow; the other port discards what penstockd forwards

The first three rows are loaded by the generator of scripts/bench wire, which checks each packet's addresses and one in 64
checksums. Rounds repeat all kinds in turn. Rates are the maxima, cycles the minima over all rounds. Cycles are TSC
cycles of the worker's rounds with packets, reception, transmission and system calls included; of the kernel, the
softirq time of the worker's CPU. The kernel delivers a frame on the CPU of its sender, so the receive half of
af_packet, af_xdp and tap is in `softirq`, the softirq cycles of all CPUs for each packet, and not in the cycles of the
worker. `driver` is what a packet costs in addition to the worker on memory rings (scripts/bench worker)."""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

import bed
import kernel
import links
import testpmd
import wire
from lab import lifetime, network as net, state

LOSS_TOLERATED = 0.001
FLOWS = 1_000
FLOWGEN_ENDPOINTS = [f"10.80.1.{11 + i}" for i in range(8)]
HEADROOM = 1.3  # start of a search, relative to the rate that passed in a flood
TWO_MACS = tuple(mac for _, _, mac in bed.TWINS)
MODES = ("flowgen", "txonly")
# Of each value: its unit, and the better one of two.
VALUES = {"flood": ("Mpps", max), "cycles": ("cycles/packet", min), "softirq": ("cycles/packet", min), "rate": ("Mpps", max),
          "new": ("connections/s", max), "new_cycles": ("cycles/connection", min), "flowgen": ("Mpps", max),
          "flowgen_cycles": ("cycles/packet", min), "flowgen_returned": ("share", max), "txonly": ("Mpps", max),
          "txonly_cycles": ("cycles/packet", min)}


class Rows:
    """The best value of each name, by kind."""

    def __init__(self):
        self._best = {}
        self.wrong = self.trials = self.disturbed = 0

    def add(self, kind, name, value):
        row = self._best.setdefault(kind, {})
        row[name] = VALUES[name][1](row.get(name, value), value)

    def print(self, worker_cycles):
        for kind, row in self._best.items():
            for name, value in row.items():
                say(f"ports_{kind}_{name}", value, VALUES[name][0])
            if worker_cycles and "cycles" in row and kind != kernel.ROLE:
                say(f"ports_{kind}_driver", row["cycles"] - worker_cycles, "cycles/packet")
        for kind, row in self._best.items():
            for name in row if kind != kernel.ROLE else ():
                yardstick = self._best.get(kernel.ROLE, {}).get(name)
                if yardstick and name not in ("softirq", "flowgen_returned"):
                    better = row[name] / yardstick if VALUES[name][1] is max else yardstick / row[name]
                    say(f"ports_{kind}_{name}_ratio", better, "ratio")
        say("ports_trials", self.trials, "trials")
        say("ports_trials_disturbed", self.disturbed, "trials")
        say("ports_wrong_packets", self.wrong, "packets")


def say(name, value, unit):
    print(f"{name} {value:.6g} {unit}", flush=True)


class Bed:
    """What one kind of gateway offers to the trials below."""

    def __init__(self, gateway, network, load_role, devices, before_new=lambda: None):
        self.gateway, self.network, self.load_role, self.devices, self.before_new = gateway, network, load_role, devices, before_new


def own_trials(options, rows, kind, place, generator, hz):
    """Flood, rate without loss and new connections, by the generator of scripts/bench wire."""
    trials = wire.Wire(place.gateway, generator, options.seconds, options.steps)
    trials.establish(FLOWS)
    passed = 0
    for _ in range(options.windows):
        before, packets = kernel.softirq_seconds(), place.gateway.counts()["rx_packets"]
        flood = trials.established(50e6, FLOWS, 1)
        received = place.gateway.counts()["rx_packets"] - packets
        rows.add(kind, "softirq", (kernel.softirq_seconds() - before) * hz / max(1, received))
        rows.add(kind, "flood", flood["passed_mpps"])
        rows.add(kind, "cycles", flood["cycles"])
        passed = max(passed, flood["passed_mpps"])
    best = trials.search(lambda rate, loss: trials.established(rate, FLOWS, loss), LOSS_TOLERATED, HEADROOM * passed / 2 * 1e6)
    rows.add(kind, "rate", best["mpps"] if best else 0)
    for _ in range(options.windows):
        place.before_new()
        new = trials.fresh(50e6, options.new)
        rows.add(kind, "new", new["new"] / new["seconds"])
        rows.add(kind, "new_cycles", 2 * new["cycles"])
    rows.wrong += trials.wrong
    rows.trials += trials.trials
    rows.disturbed += trials.disturbed


def testpmd_trials(options, rows, kind, place, load):
    """flowgen and txonly."""
    wire.until("the link of testpmd", load.has_link, 20)
    for mode in MODES:
        place.before_new()
        begun = place.gateway.counts()
        load.start(mode)
        try:
            wire.until(f"the first packets of {mode}", lambda: place.gateway.counts()["tx_packets"] > begun["tx_packets"] + testpmd.FLOWGEN_VIPS)
            for _ in range(options.windows):
                before, since = place.gateway.counts(), time.monotonic()
                time.sleep(options.seconds)
                after, until = place.gateway.counts(), time.monotonic()
                packets = after["rx_packets"] - before["rx_packets"]
                rows.add(kind, mode, (after["tx_packets"] - before["tx_packets"]) / (until - since) / 1e6)
                rows.add(kind, f"{mode}_cycles", (after["busy_ticks"] - before["busy_ticks"]) / max(1, packets))
        finally:
            sent, received = load.stop()
            ended = place.gateway.counts()
            print_drops(f"{kind}, {mode}", begun, ended)
        if mode == "flowgen":
            rows.add(kind, "flowgen_returned", received / max(1, sent))
        if ended["connections"] < (testpmd.FLOWGEN_VIPS if mode == "flowgen" else 1):
            raise RuntimeError(f"{kind}, {mode}: only {ended['connections']} connections")


def print_drops(what, before, after):
    """Everything that penstockd dropped in between, by reason."""
    dropped = {reason: count - before["drops"].get(reason, 0) for reason, count in after["drops"].items()}
    listed = [f"{count} {reason}" for reason, count in sorted(dropped.items()) if count]
    if listed:
        print(f"# {what}: dropped by penstockd: {', '.join(listed)} of {after['rx_packets'] - before['rx_packets']} received", flush=True)


def service(name, vips, port, endpoints):
    return [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
             "spec": {"externalIPs": vips, "externalTrafficPolicy": "Cluster", "ports": [{"port": port, "protocol": "UDP", "targetPort": 9376}]}},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
             "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
             "ports": [{"name": "", "port": 9376, "protocol": "UDP"}],
             "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in endpoints]}]


def testpmd_manifests():
    objects = service("flowgen", [f"10.253.0.{i}" for i in range(testpmd.FLOWGEN_VIPS)], testpmd.FLOWGEN_PORT, FLOWGEN_ENDPOINTS)
    objects += service("txonly", [testpmd.TXONLY_VIP], testpmd.TXONLY_PORT, [bed.endpoint(i) for i in range(8)])
    return "".join(f"---\n{json.dumps(entry)}\n" for entry in objects)


def testpmd_rules():
    """The same two Services for the kernel."""
    choices = lambda endpoints: ", ".join(f"{i} : {address}" for i, address in enumerate(endpoints))
    return (f"ip daddr 10.253.0.0/24 udp dport {testpmd.FLOWGEN_PORT} dnat to numgen random mod 8 map {{ {choices(FLOWGEN_ENDPOINTS)} }}:9376\n"
            f"ip daddr {testpmd.TXONLY_VIP} udp dport {testpmd.TXONLY_PORT} dnat to numgen random mod 8 map "
            f"{{ {choices([bed.endpoint(i) for i in range(8)])} }}:9376")


def clients_side_neighbours(interface):
    return [f"neigh replace {address} lladdr {bed.ROUTER[1]} nud permanent dev {interface}" for address in FLOWGEN_ENDPOINTS]


def serve(network, gateway, run, name, manifests, services):
    """Starts penstock-sync, waits until penstockd serves the Services, and ends it: the load uses its CPU."""
    wire.until("the twins' carrier", lambda: all(network.has_carrier(twin) for twin, _, _ in bed.TWINS))
    network.teach_neighbours()
    network.ip("gateway", "\n".join(clients_side_neighbours("uplink0")))
    folder = run.file(name)
    os.mkdir(folder)
    with open(os.path.join(folder, "services.yaml"), "w") as file:
        file.write(manifests)
    gateway.start_sync(folder)
    gateway.until_served(services)
    gateway.sync.terminate()
    gateway.sync.wait(timeout=10)


class Part:
    """A run of its own, so that namespaces and processes of one kind are gone before the next one begins."""

    def __init__(self, purpose):
        self._purpose = purpose

    def __enter__(self):
        self._run = state.Run.start(self._purpose)
        return self._run

    def __exit__(self, failure, *_):
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        try:
            self._undo(failure)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def _undo(self, failure):
        if failure is None or failure is KeyboardInterrupt:
            self._run.undo()
            return
        logs = lifetime.save_logs(self._run)
        self._run.undo()
        print(f"# logs are in {logs}", flush=True)


def start_generator(options, run, place):
    generator = bed.Generator(place.network.namespace(place.load_role), run, os.path.join(options.build, "perf/wire/generator"), options.load_cpu,
                              place.devices)
    fingerprint = generator.until_linked()
    hz = next(float(line.split()[2]) for line in fingerprint if line.startswith("fingerprint tsc_mhz")) * 1e6
    return generator, fingerprint, hz


def penstock(options, rows, kind):
    """Both loads through one kind of port. Returns the fingerprint."""
    with Part("ports") as run:
        network = links.Namespaces(run)
        network.build(kind, TWO_MACS)
        gateway = links.Gateway(network, run, options.build, options, kind, TWO_MACS)
        run.reserve_hugepages(gateway.memory_mb + bed.GENERATOR_MB)
        gateway.start_daemon()
        place = Bed(gateway, network, network.load_role(kind), gateway.peer_devices())
        generator, fingerprint, hz = start_generator(options, run, place)
        serve(network, gateway, run, "manifests", bed.manifests(), {f"default/wire-{k}/udp" for k in range(bed.SERVICES)})
        if kind.driver == "af_xdp":
            print(f"# {kind.name}: {gateway.copy_mode()}. Zero-copy cannot be had on veth: its driver has no XDP_SETUP_XSK_POOL", flush=True)
        own_trials(options, rows, kind.name, place, generator, hz)
        gateway.stop()  # before the generator: see generator.cpp
        generator.quit()
    if options.testpmd:
        with Part("ports") as run:
            macs = (links.FLOWGEN_MAC, TWO_MACS[1])
            network = links.Namespaces(run)
            network.build(kind, macs)
            gateway = links.Gateway(network, run, options.build, options, kind, macs, sink=True)
            run.reserve_hugepages(gateway.memory_mb + testpmd.MEMORY_MB)
            gateway.start_daemon()
            place = Bed(gateway, network, network.load_role(kind), gateway.peer_devices())
            if kind.driver == "tap":
                # testpmd sends from the address of the interface, and penstockd drops frames from its own address.
                network.ip("gateway", f"link set tap0 address {links.TAP_LOAD_MAC}")
            load = testpmd.Testpmd(network, place.load_role, run, place.devices[0], options.load_cpu, macs[0])
            serve(network, gateway, run, "manifests", testpmd_manifests(), {"default/flowgen/udp", "default/txonly/udp"})
            testpmd_trials(options, rows, kind.name, place, load)
            gateway.stop()
            load.quit()
    return fingerprint


def kernel_nat(options, rows):
    """The yardstick. Returns the fingerprint."""
    with Part("ports") as run:
        network = kernel.Network(run)
        network.build(TWO_MACS, options.worker_cpu)
        network.translate(kernel.rules())
        run.reserve_hugepages(bed.GENERATOR_MB)
        place = Bed(None, network, "load", [links.packet_device(i, f"load{i}") for i in range(2)])
        generator, fingerprint, hz = start_generator(options, run, place)
        place.gateway = kernel.Kernel(network, options.worker_cpu, hz)
        place.before_new = place.gateway.forget
        own_trials(options, rows, kernel.ROLE, place, generator, hz)
        generator.quit()
    if options.testpmd:
        with Part("ports") as run:
            macs = (links.FLOWGEN_MAC, TWO_MACS[1])
            network = kernel.Network(run)
            network.build(macs, options.worker_cpu)
            network.translate(kernel.rules(testpmd_rules()))
            network.ip(kernel.ROLE, "\n".join(clients_side_neighbours(kernel.UPLINK)))
            run.reserve_hugepages(testpmd.MEMORY_MB)
            place = Bed(kernel.Kernel(network, options.worker_cpu, hz), network, "load", [])
            place.before_new = place.gateway.forget
            load = testpmd.Testpmd(network, "load", run, links.packet_device(0, "load0"), options.load_cpu, macs[0])
            testpmd_trials(options, rows, kernel.ROLE, place, load)
            load.quit()
    return fingerprint


def worker_cycles(options):
    """Cycles per packet of a whole worker on memory rings, from scripts/bench worker; None if it cannot run."""
    program = os.path.join(options.build, "perf/worker/worker_bench")
    try:
        done = subprocess.run(["taskset", "-c", str(options.worker_cpu), program, "--quick", "--sizes", "1k", "--windows", "5", "--v4-only",
                               "--warm-only"], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        print("# the worker on memory rings was not measured within 120 s")
        return None
    found = [float(cycles) for cycles in re.findall(r"^worker\.v4\.(?:forward|reply)\S*\.min (\S+) ", done.stdout, re.MULTILINE)]
    if done.returncode != 0 or not found:
        print(f"# the worker on memory rings could not be measured: {done.stderr.strip()[-200:]}")
        return None
    say("ports_worker_cycles", sum(found) / len(found), "cycles/packet")
    return sum(found) / len(found)


def measure(options, _):
    rows, printed = Rows(), False
    sides = [lambda: kernel_nat(options, rows)] if options.kernel else []
    sides += [lambda kind=kind: penstock(options, rows, kind) for kind in options.kinds]
    try:
        for _ in range(options.rounds):
            for side in sides:
                fingerprint = side()
                if not printed:
                    print("\n".join(fingerprint), flush=True)
                    printed = True
    except KeyboardInterrupt:
        rows.print(None)  # what there is
        raise
    rows.print(worker_cycles(options))
    print("# virtio is not measured: a virtual machine by software emulation has no meaningful rates; suite vm runs it")
    if rows.wrong:
        raise RuntimeError(f"{rows.wrong} packets came out wrong")


def options_of(arguments):
    quick = bool(os.environ.get("BENCH_QUICK"))
    cpus = sorted(os.sched_getaffinity(0))
    kinds = {kind.name: kind for kind in links.KINDS}
    parser = argparse.ArgumentParser(prog="scripts/bench ports", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="check the files of perf/pktgen with the parsers of their generators, and end")
    parser.add_argument("--build", default=os.environ.get("BENCH_BUILD"), help="build directory with the programs")
    parser.add_argument("--kinds", default="af_packet" if quick else ",".join(kinds), help=f"kinds of ports, of {','.join(kinds)}")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME:DRIVER[,ARGUMENT=VALUE...][;OPTION...]",
                        help="a further kind: other arguments of the device, or options of penstockd")
    parser.add_argument("--no-kernel", dest="kernel", action="store_false", help="without the yardstick")
    parser.add_argument("--no-testpmd", dest="testpmd", action="store_false", help="without flowgen and txonly")
    parser.add_argument("--rounds", type=int, default=1 if quick else 2, help="of all kinds in turn")
    parser.add_argument("--windows", type=int, default=1 if quick else 2, help="of each measurement in a round")
    parser.add_argument("--seconds", type=float, default=0.3 if quick else 1.0, help="of a window")
    parser.add_argument("--steps", type=int, default=2 if quick else 6, help="trials of a search")
    parser.add_argument("--new", type=int, default=10_000 if quick else 30_000, help="connections of a trial")
    parser.add_argument("--connections", type=int, default=2**18, help="capacity of penstockd's table")
    parser.add_argument("--ring", type=int, default=10, help="log2 of a memif ring")
    parser.add_argument("--worker-cpu", type=int, default=cpus[-1])
    parser.add_argument("--load-cpu", type=int, default=cpus[0])
    options = parser.parse_args(arguments)
    unknown = [name for name in options.kinds.split(",") if name and name not in kinds]
    if unknown:
        parser.error(f"unknown kind {unknown[0]}")
    try:
        options.kinds = [kinds[name] for name in options.kinds.split(",") if name] + [links.variant(text) for text in options.variant]
    except ValueError as text:
        parser.error(f"--variant {text}: NAME:DRIVER with a driver memif, tap, af_packet or af_xdp")
    if options.check:
        parser.error("--check is the only option then, and the first word")
    needed = (options.windows + 1) * options.new + FLOWS  # of one penstockd; each round starts another
    if needed > options.connections or (options.kernel and options.new + FLOWS > kernel.most_connections()):
        parser.error(f"--new {options.new}: the trials open {needed} connections, more than fit in a table")
    return options


def main():
    options = options_of(sys.argv[1:])
    if os.geteuid() != 0:
        print("ports: must be root: it makes network namespaces", file=sys.stderr)
        return 1
    if options.worker_cpu == options.load_cpu:
        print("ports: needs two CPUs", file=sys.stderr)
        return 1
    state.sweep()
    return lifetime.carry_out("ports-all", lambda run: measure(options, run), failures=(RuntimeError, OSError, net.CommandFailed))


if __name__ == "__main__":
    sys.exit(main())
