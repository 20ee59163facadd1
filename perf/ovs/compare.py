# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/bench ovs: OVS-DPDK's ct(nat) and Penstock, cycles per packet (G7) and per new
connection (G8).

Both poll the same two net_pcap devices, with the same files, from the same CPU, in alternating windows; sent
packets are discarded. Both translate destinations only, with one endpoint per Service, because a file of
replies cannot contain SNAT ports that are chosen during the run. Cycles are TSC cycles of poll rounds with
packets, reception included: OVS's "processing cycles", Penstock's busy_ticks. Gates use the minima, because a
disturbance can only increase a window's cycles."""
import argparse
import os
import statistics
import sys
import time

import bed
import frames
import sides
from lab import lifetime, state

G7 = {1_000: 4, 50_000: 7}
G8 = 4
LABELS = {1_000: "1k", 50_000: "50k"}
LEAD = 400_000  # frames; OVS drops them within some 50 ms
MBUFS = 262_143  # twice the size of both files of the largest size


def say(name, value, unit):
    print(f"{name} {value:.6g} {unit}", flush=True)


def say_windows(name, cycles):
    say(f"{name}_cycles_min", min(cycles), "cycles/packet")
    say(f"{name}_cycles_median", statistics.median(cycles), "cycles/packet")
    say(f"{name}_cycles_spread", (max(cycles) - min(cycles)) / min(cycles) * 100, "%")


def gate(name, value, limit):
    print(f"gate {name} {value:.3f} >={limit} {'pass' if value >= limit else 'fail'}", flush=True)


def files_of(run, size):
    return [run.file(f"{direction}-{size}.pcap") for direction in ("forward", "reply")]


def prepare(run, ovs, penstock, size):
    """Lets both sides open `size` connections from endless files of both directions, OVS without its EMC."""
    files = files_of(run, size)
    for seed, (path, direction) in enumerate(zip(files, ("forward", "reply"))):
        frames.write(path, size, direction, seed)
    devices = [sides.pcap(i, path, endless=True) for i, path in enumerate(files)]
    ovs.set_emc(False)
    ovs.wake()
    ovs.begin(devices)
    sides.until(f"{size} connections in OVS", lambda: ovs.connections() == size, 60)
    ovs.sleep()
    penstock.begin(devices, 2 * max(G7), MBUFS)
    sides.until(f"{size} connections in Penstock", lambda: penstock.connections() == size, 60)
    penstock.sleep()


def established(options, run, ovs, penstock, size):
    """G7 at one number of connections."""
    prepare(run, ovs, penstock, size)
    cycles = {"ovs": [], "ovs_emc": [], "penstock": []}
    for _ in range(options.windows):
        cycles["ovs"].append(turn(ovs, options.seconds, size))
        cycles["penstock"].append(turn(penstock, options.seconds, size))
    ovs.wake()
    ovs.set_emc(True)
    time.sleep(0.5)
    for _ in range(max(3, options.windows // 2)):
        cycles["ovs_emc"].append(turn(ovs, options.seconds, size))
    penstock.end()
    ovs.wake()
    ovs.remove_ports()
    label = LABELS.get(size, str(size))
    for side, values in cycles.items():
        say_windows(f"{side}_{label}", values)
    say(f"ovs_emc_ratio_{label}", min(cycles["ovs_emc"]) / min(cycles["penstock"]), "ratio")
    ratio = min(cycles["ovs"]) / min(cycles["penstock"])
    if size in G7:
        gate(f"G7.{label}", ratio, G7[size])
    else:
        say(f"ovs_ratio_{label}", ratio, "ratio")


def turn(side, seconds, size):
    """Cycles of one window in which each received packet was translated and sent, and no connection was
    opened or closed."""
    side.wake()
    for _ in range(3):
        seen = side.window(seconds)
        # OVS clears asynchronously, in its PMD thread, and once did so just before this read
        if seen["cycles"] > 0:
            break
    connections = side.connections()
    side.sleep()
    # Only a burst in progress at either end of the window may be missing.
    if connections != size or seen["cycles"] == 0 or not 0.99 < seen["sent_share"] < 1.01:
        raise RuntimeError(f"{type(side).__name__}: {seen['sent_share']:.1%} of {seen['packets']} packets sent, {connections} of {size} connections")
    return seen["cycles"]


def set_up_cycles(options, run, ovs, penstock):
    """Each packet opens a connection, the file is played once, and the table reports the number of new
    connections. Returns the cycles for each connection, and all measured cycles, by side.

    OVS polls a port before the port's flows are installed, so the file begins with a lead of frames that both
    sides drop. The cost of the lead is measured with a file of the lead alone, and subtracted."""
    size = options.new
    files = {0: run.file("lead.pcap"), size: run.file("new.pcap")}
    for flows, path in files.items():
        frames.write(path, flows, "forward", 3, LEAD)
    cycles = {(side, flows): [] for side in ("ovs", "penstock") for flows in files}
    ovs.set_emc(False)
    for _ in range(options.repeats):
        for flows, path in files.items():
            devices = [sides.pcap(0, path, endless=False), "net_null0,size=64,no-rx=1"]
            ovs.wake()
            ovs.clear()
            ovs.begin(devices)
            cycles["ovs", flows].append(played(ovs, flows))
            ovs.remove_ports()
            ovs.sleep()
            penstock.begin(devices, 2 * size, MBUFS)
            cycles["penstock", flows].append(played(penstock, flows))
            penstock.end()
    each = {side: (min(cycles[side, size]) - min(cycles[side, 0])) / size for side in ("ovs", "penstock")}
    return each, cycles


def set_up(options, run, ovs, penstock, ticks_per_second):
    """G8."""
    size = options.new
    each, cycles = set_up_cycles(options, run, ovs, penstock)
    for side, value in each.items():
        say(f"{side}_setup_cycles", value, "cycles/connection")
        say(f"{side}_setup_spread", (max(cycles[side, size]) / min(cycles[side, size]) - 1) * 100, "%")
        say(f"{side}_setup_rate", ticks_per_second / value, "connections/s")
    gate("G8", each["ovs"] / each["penstock"], G8)


def played(side, flows):
    """All cycles for the file."""
    sides.until("the end of the file", lambda: side.totals()["packets"] >= LEAD + flows, 60)
    seen = side.totals()
    connections = side.connections()
    if connections != flows or seen["packets"] != LEAD + flows:
        raise RuntimeError(f"{type(side).__name__}: {connections} connections from {seen['packets']} packets, of {flows}")
    return seen["cycles"] * seen["packets"]


def measure(options, run):
    namespace = bed.Namespace(run)
    namespace.build()
    run.reserve_hugepages(sides.OVS_MB + sides.PENSTOCK_MB)
    name = namespace.namespace("gateway")
    penstock = sides.Penstock(run, name, os.path.join(options.build, "perf/ovs/replay"), options.main_cpu, options.worker_cpu)
    ovs = sides.Ovs(run, name, options.main_cpu, options.worker_cpu)
    for size in options.sizes:
        established(options, run, ovs, penstock, size)
    print("\n".join(penstock.fingerprint), flush=True)
    ticks = next(float(line.split()[2]) for line in penstock.fingerprint if line.startswith("fingerprint tsc_mhz")) * 1e6
    set_up(options, run, ovs, penstock, ticks)
    ovs.end()


def main():
    quick = bool(os.environ.get("BENCH_QUICK"))
    cpus = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="scripts/bench ovs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("BENCH_BUILD"), help="build directory with the programs")
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=list(G7), help="connections, as 1000,50000")
    parser.add_argument("--new", type=int, default=20_000 if quick else 100_000, help="connections to set up, at most 120,000")
    parser.add_argument("--windows", type=int, default=2 if quick else 7)
    parser.add_argument("--seconds", type=float, default=0.2 if quick else 1.0, help="of a window")
    parser.add_argument("--repeats", type=int, default=2 if quick else 5, help="of the set-up file")
    parser.add_argument("--main-cpu", type=int, default=cpus[0])
    parser.add_argument("--worker-cpu", type=int, default=cpus[-1])
    options = parser.parse_args()
    if os.geteuid() != 0 or options.main_cpu == options.worker_cpu:
        print("ovs: needs root and two CPUs", file=sys.stderr)
        return 1
    state.sweep()
    return lifetime.carry_out("ovs", lambda run: measure(options, run))


if __name__ == "__main__":
    sys.exit(main())
