# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/bench wire: penstockd's throughput without loss, the latency of packets, and the number
of new connections per second.

Full NAT, both directions: an endpoint answers every packet of a client. The worker has one CPU, the generator
another. Rates count packets through the gateway, both directions together. A search halves the span between a
rate that passed and one that failed (RFC 2544, 26.1). If the kernel preempted the worker or the generator,
the trial is invalid and repeated."""
import argparse
import os
import sys
import time

import bed
from lab import lifetime, state

LOSS_TOLERATED = 0.001
ESTABLISH_RATE = 300_000  # clients' packets per second while the connections for later trials are set up
ESTABLISH_PASSES = 8
REPEATS = 4               # repetitions of a disturbed trial
PAUSE_US = 400  # of the generator; its queues of 1,024 hold this much at 2.5 million packets a second
HEADROOM = 1.3             # start of a search, relative to the rate that passed in a flood


class Wire:
    def __init__(self, gateway, generator, seconds, steps):
        self._gateway, self._generator, self._seconds, self._steps = gateway, generator, seconds, steps
        self.trials = self.disturbed = self.wrong = 0
        self._fresh = 1 << 24  # flows that were never used: numbered far above the established ones

    def establish(self, flows, rate=ESTABLISH_RATE):
        """Repeats until penstockd has each of the flows. All flows are sent again, because a busy machine may
        lose some."""
        for _ in range(ESTABLISH_PASSES):
            self._trial("once", rate, 0, flows)
            known = self._gateway.counts()["connections"]
            if known >= flows:
                return
        raise RuntimeError(f"of {flows} connections only {known} were set up; lost in the gateway: {self._drops()}")

    def established(self, rate, flows, tolerated):
        for _ in range(REPEATS):
            result = self._watched("random", rate, self._seconds, flows)
            if result["loss"] <= tolerated or not result["disturbed"]:
                break
        return result

    def fresh(self, rate, count):
        first, self._fresh = self._fresh, self._fresh + count
        return self._watched("once", rate, first, count)

    def search(self, trial, loss, top):
        """The result of the highest rate at which trial(rate, loss) loses at most that share; None if there
        is none."""
        low, high, best = 0.0, top, None
        for step in range(self._steps):
            rate = high if step == 0 else (low + high) / 2
            result = trial(rate, loss)
            if result["loss"] <= loss:
                low, best = rate, result
                if step == 0:
                    break
            else:
                high = rate
        return best

    def _watched(self, *words):
        before = self._gateway.preemptions()
        result = self._trial(*words)
        result["disturbed"] = result["longest_pause_us"] > PAUSE_US or self._gateway.preemptions() > before
        self.disturbed += result["disturbed"]
        return result

    def _trial(self, *words):
        before = self._gateway.counts()
        result = self._generator.ask(*words)
        after = self._gateway.counts()
        self.trials += 1
        self.wrong += result["wrong"]
        packets = after["rx_packets"] - before["rx_packets"]
        result["loss"] = (result["offered"] - result["returned"]) / max(1, result["offered"] + result["reached"])
        # Both directions.
        result["mpps"] = 2 * result["offered"] / result["seconds"] / 1e6
        result["passed_mpps"] = (result["reached"] + result["returned"]) / result["seconds"] / 1e6
        result["cycles"] = (after["busy_ticks"] - before["busy_ticks"]) / max(1, packets)
        result["new"] = after["new_connections"] - before["new_connections"]
        result["busy_share"] = 1 - (after["empty_polls"] - before["empty_polls"]) / max(1, after["polls"] - before["polls"])
        return result

    def _drops(self):
        return {reason: count for reason, count in self._gateway.counts()["drops"].items() if count}


def say(name, value, unit):
    print(f"{name} {value:.6g} {unit}", flush=True)


def say_latency(name, result):
    for direction in ("forward", "reverse"):
        for share, us in result[f"{direction}_us"].items():
            say(f"{name}_{direction}_{share}", us, "us")


def measure_established(wire, flows, label, loads):
    wire.establish(flows)
    name = f"wire_{label}"
    # Above the generator's maximum rate: the passed rate is the gateway's capacity or the generator's, and
    # every burst is full.
    flood = wire.established(50e6, flows, 1)
    say(f"{name}_flood", flood["passed_mpps"], "Mpps")
    say(f"{name}_flood_offered", flood["mpps"], "Mpps")
    say(f"{name}_cycles", flood["cycles"], "cycles/packet")
    top = min(flood["mpps"], HEADROOM * flood["passed_mpps"]) / 2 * 1e6
    result = wire.search(lambda rate, loss: wire.established(rate, flows, loss), LOSS_TOLERATED, top)
    if result is None:
        print(f"# {name}: every rate lost more than {LOSS_TOLERATED:.1%}")
        return
    say(f"{name}_loss_0.1pct", result["mpps"], "Mpps")
    limit = result["mpps"] / 2 * 1e6
    clean = wire.search(lambda rate, loss: wire.established(rate, flows, loss), 0, limit)
    say(f"{name}_no_loss", clean["mpps"] if clean else 0, "Mpps")
    if clean:
        limit = clean["mpps"] / 2 * 1e6
    for percent in loads:
        at = wire.established(limit * percent / 100, flows, 0)
        say_latency(f"{name}_at_{percent}pct", at)
        say(f"{name}_at_{percent}pct_lost", at["offered"] - at["returned"], "packets")


def measure_new(wire, budget, per_trial, ticks_per_second):
    """Each packet of a client opens a connection and is answered, so half of the packets are new
    connections."""
    left = budget

    def trial(rate, tolerated):
        nonlocal left
        for _ in range(REPEATS):
            if left < per_trial:
                return {"loss": 1.0}  # the table has reached this measurement's limit
            result = wire.fresh(rate, per_trial)
            left -= per_trial
            if result["loss"] <= tolerated or not result["disturbed"]:
                break
        return result

    # Bursts are full, so this is the minimum cost of a connection. The search determines the connections per
    # second.
    flood = trial(50e6, 1)
    cycles = 2 * flood["cycles"]
    say("wire_new_cycles", cycles, "cycles/connection_of_two_packets")
    best = wire.search(trial, LOSS_TOLERATED, HEADROOM * ticks_per_second / cycles)
    say("wire_new_loss_0.1pct", best["new"] / best["seconds"] if best else 0, "connections/s")


def measure(options, run):
    network = bed.Namespace(run)
    network.build()
    gateway = bed.Gateway(network, run, options.build, options.connections, options.worker_cpu, options.generator_cpu, options.ring)
    # Reserved by the run and not by the two programs, so that the next run can release them if this one is
    # killed.
    run.reserve_hugepages(gateway.memory_mb + bed.GENERATOR_MB)
    gateway.start_daemon()
    generator = bed.Generator(network.namespace("gateway"), run, os.path.join(options.build, "perf/wire/generator"), options.generator_cpu,
                              gateway.peer_devices())
    fingerprint = generator.until_linked()
    print("\n".join(fingerprint), flush=True)
    ticks_per_second = next(float(line.split()[2]) for line in fingerprint if line.startswith("fingerprint tsc_mhz")) * 1e6
    until("the twins' carrier", lambda: all(network.has_carrier(twin) for twin in ("uplink0", "cluster0")))
    network.teach_neighbours()
    manifests = run.file("manifests")
    os.mkdir(manifests)
    with open(os.path.join(manifests, "wire.yaml"), "w") as file:
        file.write(bed.manifests())
    gateway.start_sync(manifests)
    gateway.until_served({f"default/wire-{k}/udp" for k in range(bed.SERVICES)})
    gateway.sync.terminate()  # the configuration stays; the generator uses the CPU from now on
    gateway.sync.wait(timeout=10)

    wire = Wire(gateway, generator, options.seconds, options.steps)
    for flows, label in options.flows:
        measure_established(wire, flows, label, options.loads)
    budget = options.connections - max(flows for flows, _ in options.flows) - options.connections // 8
    measure_new(wire, budget, budget // (options.steps + 2), ticks_per_second)
    say("wire_trials", wire.trials, "trials")
    say("wire_trials_disturbed", wire.disturbed, "trials")
    say("wire_wrong_packets", wire.wrong, "packets")
    gateway.stop()  # before the generator: see generator.cpp
    generator.quit()
    if wire.wrong:
        raise RuntimeError(f"{wire.wrong} packets came out wrong")


def until(what, condition, patience_s=10):
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {patience_s} s: {what}")
        time.sleep(0.05)


def main():
    quick = bool(os.environ.get("BENCH_QUICK"))
    cpus = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="scripts/bench wire", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("BENCH_BUILD"), help="build directory with the programs")
    parser.add_argument("--seconds", type=float, default=0.1 if quick else 1.0, help="of a trial")
    parser.add_argument("--steps", type=int, default=4 if quick else 9, help="trials of a search")
    parser.add_argument("--connections", type=int, default=2**18 if quick else 2**22, help="capacity of penstockd's table")
    parser.add_argument("--flows", type=sizes, default=sizes("64k" if quick else "1k,64k,1M"), help="established connections, as 64k,1M")
    parser.add_argument("--loads", type=lambda text: [int(word) for word in text.split(",")], default=[50] if quick else [10, 50, 90],
                        help="percent of the rate without loss at which latency is taken")
    parser.add_argument("--ring", type=int, default=10, help="log2 of a memif ring (10: 1,024 slots, as many as a NIC's queue)")
    parser.add_argument("--worker-cpu", type=int, default=cpus[-1])
    parser.add_argument("--generator-cpu", type=int, default=cpus[0])
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("wire: must be root: it makes a network namespace and TAP interfaces", file=sys.stderr)
        return 1
    if options.worker_cpu == options.generator_cpu:
        print("wire: needs two CPUs", file=sys.stderr)
        return 1
    state.sweep()
    return lifetime.carry_out("wire", lambda run: measure(options, run))


def sizes(text):
    """[(65536, "64k"), ...]"""
    units = {"k": 2**10, "M": 2**20}
    return [(int(word[:-1]) * units[word[-1]], word) for word in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
