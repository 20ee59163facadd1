# SPDX-License-Identifier: Apache-2.0
"""The channel between two gateways has faults: frames between them are late, lost, out of order, or none arrives
(wire.py). The packet path is not affected, the memory of the gateways is bounded, and the copies are right afterwards: as
many as the primary has connections, and all continue after its loss."""
import contextlib

from copy_cases import copies_are_those_of_the_primary, lose_and_continue, open_flows
from fixture import LB_IP, case, check, equal, until
from kept_flows import KeptFlows, NewFlows
from two_gateways import LASTING_DETECT_MS, Killed, begin, peer_of, until_channel

# Values of Wire.set_faults(), and the counter of the wire that shows their effect.
FAULTS = {"delayed by 200 ms": ({"delay_s": 0.2}, "delayed"), "10 % lost": ({"loss": 0.1}, "lost"),
          "a fifth out of order": ({"overtaken": 0.2}, "overtaken"), "cut": ({"loss": 1.0}, "lost")}
NEW_FLOWS_A_SECOND = 100
NEW_FLOWS_IN_A_FAULT = 200  # answered while the fault lasts
COMPLETE_WITHIN_S = 60
# 1 MB was measured. The tables, the store of copies and the packet buffers are taken at the start.
GROWTH_MAX_MB = 8


def resident_mb(gateway):
    """Without hugepages."""
    with open(f"/proc/{gateway.daemon.pid}/smaps_rollup") as file:
        return int(next(line for line in file if line.startswith("Rss:")).split()[1]) / 1024


@case(waits_s=30)
def a_channel_with_faults_delays_copies_and_nothing_else(lab):
    begin(lab, detect_ms=LASTING_DETECT_MS, faults=True)
    every, remarks = KeptFlows(lab), []
    open_flows(every, 40, 10)
    kept = [every]
    with every, contextlib.ExitStack() as stack:
        stack.callback(lab.wire.stop)
        until_channel(lab.second, "complete", copies=50)
        before_mb = [resident_mb(gateway) for gateway in (lab.gateway, lab.second)]
        for fault, (values, effect) in FAULTS.items():
            without = getattr(lab.wire, effect)
            lab.wire.set_faults(**values)
            more = KeptFlows(lab)
            open_flows(more, 20, 5)
            kept.append(more)
            stack.enter_context(more)
            with NewFlows(lab, NEW_FLOWS_A_SECOND, LB_IP, 80) as new:
                until("new flows are answered", lambda new=new: new.answered >= NEW_FLOWS_IN_A_FAULT, 60)
                until(f"frames are {effect} while the channel is {fault}, seed {lab.wire.seed}",
                      lambda effect=effect, without=without: getattr(lab.wire, effect) > without, 60)
                if fault == "cut":
                    until_channel(lab.second, "connecting")
            for flows in kept:
                flows.until_all_answered()
                equal(flows.findings(), {}, f"flows while the channel is {fault}")
            lab.wire.mend()
            mended_ms = until(f"copies are complete after the channel was {fault}, seed {lab.wire.seed}", lambda: (
                peer_of(lab.second)["channel"] == "complete" and copies_are_those_of_the_primary(lab)), COMPLETE_WITHIN_S, 0.2)
            remarks.append(f"{fault}: as at the primary after {mended_ms:.0f} ms")
        growth_mb = [resident_mb(gateway) - before for gateway, before in zip((lab.gateway, lab.second), before_mb)]
        check(max(growth_mb) <= GROWTH_MAX_MB, f"resident memory has grown by {growth_mb} MB")
        lose_and_continue(lab, every, Killed)
        for flows in kept:
            flows.until_all_answered()
            equal(flows.findings(), {}, "flows that did not continue as they began")
    lab.remarks.append(f"{'; '.join(remarks)}; {lab.wire.lost} frames lost, {lab.wire.overtaken} overtaken, {lab.wire.passed} passed; resident "
                       f"memory grew by {' and '.join(f'{growth:.1f}' for growth in growth_mb)} MB; then the primary was lost: 0 reset")
