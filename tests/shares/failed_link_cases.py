# SPDX-License-Identifier: Apache-2.0
"""The link between the router and a primary fails and is restored. The primary and the channel to its heir stay."""
from bgp_cases import SilentLink
from copy_cases import copied_flows, counter, open_flows
from fixture import case, check, equal, until
from kept_flows import KeptFlows
from two_gateways import LASTING_DETECT_MS, VIA_FIRST, VIA_SECOND, peer_of, until_via


class CutLink:
    """Both ends lose their carrier."""

    @staticmethod
    def cut(lab):
        lab.network.ip("client", "link set eth0 down")

    @staticmethod
    def mend(lab):
        lab.network.ip("client", "link set eth0 up")


LINKS = {"cut": CutLink, "silent": SilentLink}


@case(waits_s=20, link=tuple(LINKS))
def flows_continue_at_the_heir_of_a_failed_link_and_when_it_is_back(lab):
    link = LINKS[lab.variant["link"]]
    with copied_flows(lab, detect_ms=LASTING_DETECT_MS) as flows:
        later = KeptFlows(lab)

        def all_continue(what, *kept):
            for each in kept:
                each.until_all_answered()
                equal(each.findings(), {}, f"flows {what}")
        link.cut(lab)
        cut_ms = until_via(lab, VIA_SECOND)
        all_continue("at the heir", flows)
        taken = counter(lab.second, "connections_taken_over")
        check(taken >= len(flows.flows), f"the heir has taken over {taken} of {len(flows.flows)} connections")
        open_flows(later, 40, 10)
        with later:
            all_continue("that the heir has opened", later)
            until("the primary has their copies", lambda: int(peer_of(lab.gateway).get("copies", 0)) >= len(later.flows), patience_s=60)
            link.mend(lab)
            back_ms = until_via(lab, VIA_FIRST)
            all_continue("after the return of the link", flows, later)
            taken = counter(lab.gateway, "connections_taken_over")
            check(taken >= len(later.flows), f"the primary has taken over {taken} of {len(later.flows)} connections")
    lab.remarks.append(f"{len(flows.flows + later.flows)} flows: 0 reset; the router had the heir after {cut_ms:.0f} ms and the primary "
                       f"{back_ms:.0f} ms after the link was back")
