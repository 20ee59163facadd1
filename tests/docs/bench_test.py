# SPDX-License-Identifier: Apache-2.0
"""Tests scripts/bench without a measurement: each sub-command is listed and described, `ports` and `peers` explain and check
their options, and their rules and readers are right.

bench_test.py ROOT"""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]
FOLDERS = ["scripts"] + [os.path.join("perf", room) for room in ("wire", "ovs", "ports", "peers")]
sys.path[:0] = [os.path.join(ROOT, folder) for folder in FOLDERS]

import kernel  # noqa: E402
import links  # noqa: E402
import peers  # noqa: E402
import ports  # noqa: E402
import vpp  # noqa: E402


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def bench(*words):
    return subprocess.run([os.path.join(ROOT, "scripts/bench"), *words], capture_output=True, text=True, timeout=60)


def listed_sub_commands():
    lines = bench("--list").stdout.splitlines()
    files = [name for name in os.listdir(os.path.join(ROOT, "scripts/bench.d")) if not name.endswith(".py")]
    check({line.split()[0] for line in lines} == set(files), f"listed: {lines}, files: {files}")
    check(all(len(line.split()) > 3 and len(line) <= 130 for line in lines), f"a description is missing or long: {lines}")
    usage = bench("--help").stdout
    named = re.search(r"SUB-COMMAND  (\S+)\n#? *(\S+)?", usage)
    check(all(name in usage for name in files), f"--help lacks one of {files}: {named}")
    check(bench("nonsense").returncode == 2, "an unknown sub-command is accepted")


def options_of_ports():
    parse = lambda *words: ports.options_of(["--no-kernel", *words])
    check([kind.name for kind in parse("--kinds", "tap,memif").kinds] == ["tap", "memif"], "--kinds keeps the order")
    long = parse("--kinds", "", "--variant", "slots:af_packet,framecnt=4096;--burst 32 --idle adaptive").kinds[0]
    check(long == links.Kind("slots", "af_packet", ",framecnt=4096", ("--burst", "32", "--idle", "adaptive")), f"--variant: {long}")
    for wrong in (("--kinds", "token_ring"), ("--variant", "x:token_ring"), ("--variant", ":tap"), ("--new", "300000")):
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "perf/ports/ports.py"), "--no-kernel", *wrong], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": ":".join(sys.path[:len(FOLDERS)])})
        check(done.returncode == 2 and "error:" in done.stderr, f"{wrong}: {done}")


def best_values_and_ratios():
    rows = ports.Rows()
    for value in (1.0, 3.0, 2.0):
        rows.add("tap", "flood", value)
        rows.add("tap", "cycles", value)
    rows.add(kernel.ROLE, "flood", 1.5)
    rows.add(kernel.ROLE, "cycles", 4.0)
    printed = {}
    ports.say = lambda name, value, unit: printed.__setitem__(name, (value, unit))
    rows.print(0.25)
    check(printed["ports_tap_flood"] == (3.0, "Mpps") and printed["ports_tap_cycles"] == (1.0, "cycles/packet"), f"the best of three: {printed}")
    check(printed["ports_tap_flood_ratio"][0] == 2.0 and printed["ports_tap_cycles_ratio"][0] == 4.0, f"above 1 is better: {printed}")
    check(printed["ports_tap_driver"][0] == 0.75 and "ports_kernel_driver" not in printed, f"the driver's part: {printed}")


def rules_of_the_kernel():
    rules = kernel.rules(ports.testpmd_rules())
    check(rules.count("goto service-") == 16 and rules.count("{") == rules.count("}"), rules)
    check("203.0.113.16 : goto service-15" in rules and "7 : 10.80.2.138 }:9376" in rules, "the last Service and its last endpoint")


def runtime_of_vpp():
    shown = ("Thread 0 vpp_main (lcore 0)\n             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call  \n"
             "pg-input                        polling             900             9000               0          9.00e9            0.00\n---------------\n"
             "Thread 1 vpp_wk_0 (lcore 1)\nTime 1.0, 10 sec internal node vector rate 256.00 loops/sec 8000\n"
             "             Name                 State         Calls          Vectors        Suspends         Clocks       Vectors/Call  \n"
             "ethernet-input                   active             100            25600               0          1.50e1          256.00\n"
             "nat44-ed-out2in                  active             100            25600               0          1.00e2          256.00\n"
             "pg-input                        polling             100            25600               0          4.00e1          256.00\n"
             "pg1-tx                           active             100            12800               0          1.00e1          128.00\n")
    seen = vpp.per_packet(shown)
    check(seen == {"packets": 25600, "sent_share": 0.5, "cycles": 120.0}, f"the worker's nodes alone: {seen}")
    try:
        vpp.per_packet("Thread 0 vpp_main (lcore 0)\n")
        raise AssertionError("no worker is no error")
    except RuntimeError:
        pass


def table_of_peers():
    class Options:
        sizes, vpp = [1_000], None
    printed = []
    peers.compare.say = lambda *words: printed.append(words)
    cycles = {("penstock", 1_000): [100, 120], ("ovs", 1_000): [700, 650], ("kernel", 1_000): [2_500, 3_500], peers.LINK: [500, 700],
              ("penstock", peers.FIRST): [400], ("ovs", peers.FIRST): [2_400]}
    peers.print_results(Options, cycles)
    check(("peers_ovs_1k_ratio", 6.5, "ratio") in printed and ("peers_ovs_setup_ratio", 6.0, "ratio") in printed, f"ratios of minima: {printed}")
    check(("peers_kernel_1k_min", 2_000, "cycles/packet") in printed and ("peers_kernel_1k_median", 2_400, "cycles/packet") in printed,
          f"the kernel without its link: {printed}")


for test in (listed_sub_commands, options_of_ports, best_values_and_ratios, rules_of_the_kernel, runtime_of_vpp, table_of_peers):
    test()
print("ok")
