# SPDX-License-Identifier: Apache-2.0
"""The body of scripts/bench peers: OVS-DPDK and the kernel's NAT beside Penstock on one CPU, in alternating windows.

OVS and Penstock poll the same net_pcap devices as in scripts/bench ovs and translate destinations only. The kernel
translates both ends between two veth pairs (DNAT to a random endpoint, masquerade). What a veth pair and the socket of
the generator cost without a gateway is measured in the same rounds and subtracted. scripts/bench ports has Penstock on the same
links. Cycles are TSC cycles per packet of established
connections; of a first packet, cycles per connection. For the kernel they are the softirq time of its CPU, and a first
packet is a new connection of two packets less one established packet. With --vpp, VPP's nat44-ed replays the same files
by its own packet generator, which is not in its cycles; it translates destinations only. The table has minimum / median of the
windows, and the ratio of the minima to Penstock's."""
import argparse
import os
import statistics
import sys

import bed
import compare
import kernel
import links
import sides
import vpp
import wire
from lab import lifetime, network as net, state

SIZES = (1_000, 50_000)
SIDES = {"penstock": "Penstock", "ovs": "OVS-DPDK `ct(nat)`, EMC off", "ovs_emc": "the same, EMC on", "kernel": "Linux nftables, DNAT and masquerade",
         "vpp": "VPP nat44-ed"}
FIRST = "first packet"
LINK = "link"
KERNEL_ESTABLISH_RATE = 30_000  # packets per second of new connections that the kernel forwards also on a busy machine


def start_generator(options, run, network, role):
    """The generator of scripts/bench wire on load0 and load1, and the TSC's frequency."""
    generator = bed.Generator(network.namespace(role), run, os.path.join(options.build, "perf/wire/generator"), options.main_cpu,
                              [links.packet_device(i, f"load{i}") for i in range(2)])
    fingerprint = generator.until_linked()
    return generator, next(float(line.split()[2]) for line in fingerprint if line.startswith("fingerprint tsc_mhz")) * 1e6


class KernelSide:
    """The kernel's NAT between two veth pairs, and beside it a veth pair alone."""

    def __init__(self, options, run):
        self._link, self._seconds = kernel.DirectLink(run, options.worker_cpu), options.seconds
        self._link_generator, self._hz = start_generator(options, run, self._link, self._link.ROLE)
        network = kernel.Network(run)
        network.build(tuple(mac for _, _, mac in bed.TWINS), options.worker_cpu)
        network.translate(kernel.rules())
        self._generator, _ = start_generator(options, run, network, "load")
        self._gateway = kernel.Kernel(network, options.worker_cpu, self._hz)
        self._trials = wire.Wire(self._gateway, self._generator, options.seconds, 1)

    def prepare(self, size):
        self._gateway.forget()
        self._trials.establish(size, KERNEL_ESTABLISH_RATE)

    def turn(self, size):
        return self._checked(self._trials.established(50e6, size, 1))["cycles"]

    def link_turn(self):
        return self._link.cycles(self._link_generator, self._hz, self._seconds)

    def first_packet(self, count):
        """Cycles for the two packets of a new connection."""
        self._gateway.forget()
        return 2 * self._checked(self._trials.fresh(50e6, count))["cycles"]

    def end(self):
        self._generator.quit()
        self._link_generator.quit()

    @staticmethod
    def _checked(result):
        if result["wrong"] or result["returned"] == 0:
            raise RuntimeError(f"the kernel: {result['wrong']} wrong packets, {result['returned']} of {result['offered']} returned")
        return result


def established(options, run, ovs, penstock, linux, other, size, cycles):
    compare.prepare(run, ovs, penstock, size)
    linux.prepare(size)
    if other:
        other.begin(compare.files_of(run, size), size)
        other.sleep()
    column = {side: cycles.setdefault((side, size), []) for side in SIDES}
    for _ in range(options.rounds):
        if other:
            column["vpp"].append(compare.turn(other, options.seconds, size))
        column["ovs"].append(compare.turn(ovs, options.seconds, size))
        column["penstock"].append(compare.turn(penstock, options.seconds, size))
        column["kernel"].append(linux.turn(size))
        cycles.setdefault(LINK, []).append(linux.link_turn())
    if other:
        other.end()
    ovs.wake()
    ovs.set_emc(True)
    for _ in range(options.rounds):
        column["ovs_emc"].append(compare.turn(ovs, options.seconds, size))
    penstock.end()
    ovs.wake()
    ovs.remove_ports()


def first_packets(options, run, ovs, penstock, linux, cycles):
    each, _ = compare.set_up_cycles(options, run, ovs, penstock)
    for side, value in each.items():
        cycles[side, FIRST] = [value]
    established_packet = min(cycles["kernel", min(options.sizes)])  # with its link, like the second packet below
    cycles["kernel", FIRST] = [linux.first_packet(options.new) - established_packet for _ in range(options.rounds)]


def low_and_middle(cycles, side, column):
    """Minimum and median. The kernel's are without those of the link, which was measured in the same rounds."""
    values = cycles.get((side, column))
    if not values:
        return None
    link = cycles.get(LINK, [0]) if side == "kernel" else [0]
    return min(values) - min(link), statistics.median(values) - statistics.median(link)


def print_results(options, cycles):
    columns = [*options.sizes, FIRST]
    label = lambda column: "setup" if column == FIRST else compare.LABELS.get(column, str(column))
    ours = {column: min(cycles["penstock", column]) for column in columns}
    if LINK in cycles:
        compare.say("peers_kernel_link_min", min(cycles[LINK]), "cycles/packet")
    table = ["| | " + " | ".join(f"{label(column)}" if column != FIRST else FIRST for column in columns) + " |", "| --- |" + " --- |" * len(columns)]
    for side, text in SIDES.items():
        cells = []
        for column in columns:
            measured = low_and_middle(cycles, side, column)
            if not measured:
                cells.append("")
                continue
            low, middle = measured
            unit = "cycles/connection" if column == FIRST else "cycles/packet"
            compare.say(f"peers_{side}_{label(column)}_min", low, unit)
            compare.say(f"peers_{side}_{label(column)}_median", middle, unit)
            ratio = low / ours[column]
            if side != "penstock":
                compare.say(f"peers_{side}_{label(column)}_ratio", ratio, "ratio")
            cells.append(f"{low:,.0f} / {middle:,.0f}" + (f", {ratio:.1f}x" if side != "penstock" else ""))
        table.append(f"| {text} | " + " | ".join(cells) + " |")
    print("\n".join(f"# {line}" for line in table), flush=True)
    if not options.vpp:
        print("# VPP is not measured: Debian has no package of it; --vpp names the folder of a build")


def measure(options, run):
    namespace = bed.Namespace(run)
    namespace.build()
    run.reserve_hugepages(sides.OVS_MB + sides.PENSTOCK_MB + 2 * bed.GENERATOR_MB + (vpp.VPP_MB if options.vpp else 0))
    name = namespace.namespace("gateway")
    penstock = sides.Penstock(run, name, os.path.join(options.build, "perf/ovs/replay"), options.main_cpu, options.worker_cpu)
    ovs = sides.Ovs(run, name, options.main_cpu, options.worker_cpu)
    other = vpp.Vpp(run, name, options.vpp, options.main_cpu, options.worker_cpu) if options.vpp else None
    cycles, linux = {}, KernelSide(options, run)
    for size in options.sizes:
        established(options, run, ovs, penstock, linux, other, size, cycles)
    print("\n".join(penstock.fingerprint), flush=True)
    first_packets(options, run, ovs, penstock, linux, cycles)
    linux.end()
    ovs.end()
    print_results(options, cycles)


def main():
    quick = bool(os.environ.get("BENCH_QUICK"))
    cpus = sorted(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="scripts/bench peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("BENCH_BUILD"), help="build directory with the programs")
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=list(SIZES), help="connections, as 1000,50000")
    parser.add_argument("--rounds", type=int, default=2 if quick else 7, help="windows of each side, in turn")
    parser.add_argument("--seconds", type=float, default=0.2 if quick else 1.0, help="of a window")
    parser.add_argument("--new", type=int, default=20_000 if quick else 100_000, help="connections to set up, at most 120,000")
    parser.add_argument("--repeats", type=int, default=2 if quick else 5, help="of the set-up file")
    parser.add_argument("--vpp", metavar="FOLDER", help="a build of VPP: the folder with bin/vpp, bin/vppctl and the NAT plugin")
    parser.add_argument("--main-cpu", type=int, default=cpus[0])
    parser.add_argument("--worker-cpu", type=int, default=cpus[-1])
    options = parser.parse_args()
    if os.geteuid() != 0 or options.main_cpu == options.worker_cpu:
        print("peers: needs root and two CPUs", file=sys.stderr)
        return 1
    state.sweep()
    return lifetime.carry_out("peers", lambda run: measure(options, run), failures=(RuntimeError, OSError, net.CommandFailed))


if __name__ == "__main__":
    sys.exit(main())
