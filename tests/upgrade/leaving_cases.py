# SPDX-License-Identifier: Apache-2.0
"""Endpoints have left their Services, or are about to, when penstockd ends: their flows end by the same rules after
its next start (docs/adr/0017)."""
from fixture import VIP, case, check, equal, until
from kept_flows import PORT, KeptFlows, start_servers
from lab.network import BACKENDS
from manifests import endpoints, service
from restart_cases import restart, tables

FLOWS = 30
STAYS, TERMINATES, GONE = sorted(BACKENDS)
DRAINS = {"penstock.io/connection-draining": "true", "penstock.io/connection-draining-timeout": "600s"}


def objects(left=False, draining=DRAINS):
    made = []
    for name, protocol, port, annotations in (("tcp", "TCP", 80, {}), ("udp", "UDP", 80, {}), ("draining", "TCP", 81, draining)):
        made.append(service(name, port, protocol=protocol, external_ips=(VIP,), annotations=annotations))
        slices = endpoints(name, port=PORT, protocol=protocol)
        if left:
            terminating = {"ready": False, "serving": True, "terminating": True}
            slices["endpoints"] = [{**each, "conditions": terminating} if each["addresses"] == [BACKENDS[TERMINATES]] else each
                                   for each in slices["endpoints"] if each["addresses"] != [BACKENDS[GONE]]]
        made.append(slices)
    return made


def server_of(flow):
    return flow.identities[-1].split()[0].decode()


@case(workers=(1, 2))
def flows_of_endpoints_that_leave_end_by_the_same_rules_after_a_restart_DRAIN004_UDP001(lab):
    lab.start(*objects())
    start_servers(lab.network)
    flows = KeptFlows(lab)
    flows.open("tcp", True, FLOWS, VIP, 80)
    flows.open("udp", False, FLOWS, VIP, 80)
    flows.open("draining", True, FLOWS, VIP, 81)
    with flows:
        flows.until_all_answered()
        before = {flow: server_of(flow) for flow in flows.flows}
        for kind in ("tcp", "udp", "draining"):
            equal({server for flow, server in before.items() if flow.kind == kind}, set(BACKENDS), f"servers of {kind} flows")
        lab.apply(*objects(left=True))
        # Its UDP flows end at once, and their clients get another endpoint.
        until("UDP flows of the endpoint that is gone end",
              lambda: all(server_of(flow) != GONE for flow in flows.flows if flow.kind == "udp"), 30)
        for _ in range(2):
            restart(lab)
            equal(tables(lab)["lost"], [], "connections lost, by reason")
            flows.until_all_answered()
            for flow, server in before.items():
                if flow.kind != "udp" or server != GONE:
                    equal((flow.broken, len(flow.identities)), (None, 1), f"{flow.kind} flow to {server}")
        # The rule for them changes, also for those that have already begun to drain.
        lab.apply(*objects(left=True, draining={"penstock.io/connection-draining": "false"}))
        doomed = [flow for flow, server in before.items() if flow.kind == "draining" and server == GONE]
        until("connections to it are reset", lambda: all(flow.broken for flow in doomed), 30)
        equal({flow.broken for flow in doomed}, {"Connection reset by peer"}, "how they ended")
        broken = [(flow.kind, server) for flow, server in before.items() if flow.broken and flow not in doomed]
        equal(broken, [], "other connections that were reset")
        check(doomed, "no connection was reset")
