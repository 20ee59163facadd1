# SPDX-License-Identifier: Apache-2.0
"""A primary is lost with thousands of connections under load."""
import os

from copy_cases import copies_are_those_of_the_primary, counter
from fixture import LB_IP, case, check, equal, until
from lab.patience import stalled_s
from many_flows import ManyFlows
from two_gateways import VIA_SECOND, Killed, begin, until_via

TCP_FLOWS = int(os.environ.get("PENSTOCK_SHARE_FLOWS", "10000"))
UDP_FLOWS = TCP_FLOWS // 4


@case(alone=True)
def ten_thousand_connections_of_a_lost_primary_continue_at_its_heir(lab):
    begin(lab, share_age_s=3, detect_ms=150)
    with ManyFlows(lab, TCP_FLOWS, UDP_FLOWS, LB_IP, 80) as flows:
        flows.until_all_answered()
        # Also a connection that was opened again, because BFD had moved it before it had a copy.
        complete_ms = until("the heir has a copy of each connection", lambda: copies_are_those_of_the_primary(lab, flows.count), patience_s=60)
        flows.until_all_answered()
        before = flows.mark()
        waited_s = stalled_s()
        Killed.lose(lab)
        moved_ms = until_via(lab, VIA_SECOND)
        flows.until_all_answered()
        waited_ms = 1000 * (stalled_s() - waited_s)
        after = flows.report()
        equal((after["findings"], after["broken"]), ({}, 0), "flows that did not continue as they began")
    taken = counter(lab.second, "connections_taken_over")
    check(taken >= flows.count, f"the heir has taken over {taken} of {flows.count} connections")
    gap_ms, udp_ms, tcp_ms = (after[name] / 1000 for name in ("gap_us", "udp_gap_us", "tcp_gap_us"))
    lab.remarks.append(f"{TCP_FLOWS} TCP and {UDP_FLOWS} UDP flows, copied after {complete_ms:.0f} ms, {before['failures']} opened again "
                       f"before: 0 reset; the longest time without an answer was {gap_ms:.0f} ms of all flows together, {udp_ms:.0f} ms of a "
                       f"UDP flow that sends each 20 ms, {tcp_ms:.0f} ms of such a TCP flow, of which programs waited {waited_ms:.0f} ms for a "
                       f"processor; the router had the heir after {moved_ms:.0f} ms")
