# SPDX-License-Identifier: Apache-2.0
"""Both gateways of a share are drained and upgraded in turn."""
from copy_cases import open_flows
from fixture import LB_IP, case, equal, until
from kept_flows import KeptFlows, NewFlows
from two_gateways import LASTING_DETECT_MS, VIA_FIRST, VIA_SECOND, begin, until_channel, until_via
from lab import network as net

VIA_NO_SECOND = dict.fromkeys(VIA_FIRST, net.UPLINK)


def upgrade(gateway):
    done = gateway.ctl("upgrade", "--wait")
    equal(done.returncode, 0, f"exit code of penstockctl upgrade of {gateway.name}, which prints {done.stdout}{done.stderr}")


def until_complete(lab, copies):
    for gateway in (lab.gateway, lab.second):
        until_channel(gateway, "complete")
    until_channel(lab.second, "complete", copies=copies)


@case()
def gateways_upgraded_and_drained_in_turn_keep_all_connections(lab):
    begin(lab, detect_ms=LASTING_DETECT_MS, options=["--supervise", "on"])
    lab.run.reserve_hugepages(lab.gateway.memory_mb)  # of a successor
    flows = KeptFlows(lab)
    open_flows(flows, 200, 50)

    def all_continue(what):
        flows.until_all_answered()
        equal(flows.findings(), {}, f"flows {what}")
    with flows:
        flows.until_all_answered()
        until_complete(lab, copies=250)
        with NewFlows(lab, 50, LB_IP, 80) as new:
            for gateway in (lab.second, lab.gateway):
                upgrade(gateway)
                all_continue(f"after the upgrade of {gateway.name}")
                until_complete(lab, copies=250)
                until_via(lab, VIA_FIRST)
                all_continue(f"with copies after the upgrade of {gateway.name}")
        equal(dict(new.failures), {}, f"failures of {new.opened} new flows during the upgrades")
        moved_ms = []
        for gateway, via in ((lab.gateway, VIA_SECOND), (lab.second, VIA_NO_SECOND)):
            equal(gateway.ctl("drain").returncode, 0, "exit code of drain")
            moved_ms.append(until_via(lab, via))
            all_continue(f"after the drain of {gateway.name}")
            equal(gateway.ctl("undrain").returncode, 0, "exit code of undrain")
            moved_ms.append(until_via(lab, VIA_FIRST))
            all_continue(f"after the drain of {gateway.name} ended")
            until_complete(lab, copies=0)
    lab.remarks.append(f"250 flows and {new.opened} new ones: 0 reset; the router followed drains after {' '.join(f'{ms:.0f}' for ms in moved_ms)} ms")
