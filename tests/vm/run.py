# SPDX-License-Identifier: Apache-2.0
"""penstockd on real PCI drivers, VFIO, an IOMMU and real rte_flow rules, in a virtual machine by software
emulation.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list]

Each case has its own network and gateway. Cases use a machine one after another; after a failed case it is
replaced. Case names end in the requirements that they verify.
"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "tests/upgrade"),
                os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from fixture import all_cases  # noqa: E402
from testbed import vm_image  # noqa: E402
from testbed.api_servers import NotToBeHad  # noqa: E402
from vm_bed import ALL_PAIRS, SPARES, Hosts, VmLab, cards_for  # noqa: E402

import blocklist_cases, card_cases, kernel_sctp_cases, plug_cases, steering_cases, upgrade_cases, vlan_cases  # noqa: E402,E401,F401

CASE_TIMEOUT_S = 480  # ten times the duration of a case on two idle cores
IMAGE_PATIENCE_S = 300
# At the same time. QEMU emulates the two processors of a machine in turns, on one of the host's.
MACHINES = 2
ATTEMPTS = 3


def main():
    options = runner.parser().parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    chosen = [case for case in all_cases() if suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not chosen:
        return suite.end()
    began = time.monotonic()
    try:
        image = image_to_boot(began + IMAGE_PATIENCE_S)
    except NotToBeHad as why:
        suite.tell("SKIP", "virtual machine", began, str(why))
        return suite.end()
    print(f"kernel {image.version}, ready after {time.monotonic() - began:.0f} s", flush=True)
    suite.begin()
    lanes = []
    for cards in (SPARES, ALL_PAIRS):
        if cases := [case for case in chosen if cards_for(case) == cards]:
            turns = runner.Turns(len(cases))
            count = min(len(cases), 1 if cards == SPARES else MACHINES)
            lanes += [("virtual machine", lambda cases=cases, turns=turns: run_lane(suite, cases, turns, image))] * count
    suite.run_side_by_side(lanes, MACHINES)
    return suite.end()


def run_lane(suite, cases, turns, image):
    """Runs case after case on one machine. It is booted for the first of them, and again after a failed case."""
    hosts = Hosts(image, suite.build)
    try:
        while (number := turns.take()) is not None:
            run_case(suite, cases[number], hosts)
    finally:
        hosts.discard()


def run_case(suite, case, hosts):
    """QEMU's cards have assertions that fail when VFIO gives a card to another process while an interrupt is
    pending (7.2: e1000e, vmxnet3). The case is then repeated on a new machine."""
    for _ in range(ATTEMPTS):
        began = time.monotonic()
        outcome = suite.run(case.name, case.function, lambda: VmLab(case, suite.build, hosts), VmLab.reason_of_abort)
        if outcome in ("FAIL", "AGAIN"):
            hosts.discard()
        if outcome != "AGAIN":
            return
    suite.tell("SKIP", case.name, began, f"QEMU aborted in each of {ATTEMPTS} attempts")


def image_to_boot(deadline):
    if os.geteuid() != 0:
        raise NotToBeHad("network namespaces need root")
    if not os.path.exists("/dev/net/tun"):
        raise NotToBeHad("no /dev/net/tun")
    return vm_image.obtain(deadline)


if __name__ == "__main__":
    sys.exit(main())
