# SPDX-License-Identifier: Apache-2.0
"""Endpoints roll under long-lived flows: flows of remaining endpoints continue, and no new flow reaches a
leaving endpoint."""
import manifests
from fixture import VIP, Background, case, check, equal, until
from lab.network import BACKENDS
from long_flows import PORT, LongFlows, start_servers

STAYING, ROLLING, STEP, FLOWS = 50, 50, 10, 200


def pods(first, count):
    """Addresses of "pods", distributed over the backends in turn: 10.81.0.0/16 is backend-1's, 10.82
    backend-2's, 10.83 backend-3's."""
    return [f"10.{81 + i % 3}.0.{1 + i // 3}" for i in range(first, first + count)]


def slices(ready, terminating=()):
    made = []
    for protocol, name in (("TCP", "long"), ("UDP", "long-udp")):
        entry = manifests.endpoints(name, [], port=PORT, protocol=protocol)
        entry["endpoints"] = [{"addresses": [pod], "nodeName": "edge-1",
                               "conditions": {"ready": pod not in terminating, "serving": True, "terminating": pod in terminating}}
                              for pod in [*ready, *terminating]]
        made.append(entry)
    return made


def services(**annotations):
    return [manifests.service("long", 80, external_ips=[VIP], annotations=annotations),
            manifests.service("long-udp", 80, protocol="UDP", external_ips=[VIP], annotations=annotations)]


def start(lab, ready, **annotations):
    lab.start(*services(**annotations), *slices(ready))
    start_servers(lab.network)
    for i, role in enumerate(BACKENDS):
        network = f"10.{81 + i}.0.0/16"
        lab.network.ip(role, f"route add local {network} dev lo")
        lab.network.ip("gateway", f"route add {network} via {BACKENDS[role]} dev cluster0")
    until("the gateway has the routes", lambda: lab.connection_outcome(VIP, 80) == "open", 20)


def usable(lab):
    return {backend["endpoint"]["address"] for backend in lab.gateway.json("get", "backends")
            if backend.get("sets") and backend["service"]["name"] == "long-udp"}


def show(lab, ready, terminating=(), **annotations):
    lab.apply(*services(**annotations), *slices(ready, terminating))
    until(f"{len(ready)} endpoints are usable", lambda: usable(lab) == set(ready), 30, 0.05)


def new_connection(lab):
    with lab.tcp_socket(VIP, 80) as client:
        client.sendall(b"?")
        return client.recv(100).decode().split()[0]


@case(workers=(1, 2))
def four_hundred_flows_outlive_the_rolling_of_fifty_endpoints_DRAIN001_DRAIN002_DRAIN004_UDP001_UDP003_UDP004(lab):
    staying, old, new = pods(0, STAYING), pods(STAYING, ROLLING), pods(STAYING + ROLLING, ROLLING)
    start(lab, staying + old)
    with LongFlows(lab, "TCP", FLOWS, VIP, 80) as tcp, LongFlows(lab, "UDP", FLOWS, VIP, 80) as udp:
        until("every flow is answered", lambda: all(flow.server for flow in tcp.flows + udp.flows), 30)
        first = {flow: flow.server for flow in tcp.flows + udp.flows}
        check(len(set(first.values())) == STAYING + ROLLING, "flows should have been spread over all endpoints")
        gone, answered = [], []
        for done in range(STEP, ROLLING + 1, STEP):
            leaving = old[done - STEP:done]
            kept = staying + old[done:] + new[:done]
            show(lab, kept + leaving)
            show(lab, kept, terminating=leaving)
            with Background(lambda: new_connection(lab)) as fresh:
                before = tcp.counts() + udp.counts()
                until("terminating endpoints go on answering their flows",
                      lambda: tcp.all_answered_since(before[:FLOWS]) and udp.all_answered_since(before[FLOWS:]), 30)
                until("new connections were made meanwhile", lambda: len(fresh.results) > 20, 30)
            equal(fresh.errors, [], "failed new connections")
            equal(set(fresh.results) & set(leaving + gone), set(), "terminating endpoints that got new connections")
            answered += fresh.results
            for flow in udp.flows:
                check(flow.server not in gone, f"a UDP flow is still with {flow.server}, which is gone")
            show(lab, kept)
            gone += leaving
            until("UDP flows have left the endpoints that are gone", lambda: not {flow.server for flow in udp.flows} & set(gone), 10)
        moved = [flow for flow in tcp.flows + udp.flows if first[flow] in staying and flow.servers != [first[flow]]]
        equal([flow.servers for flow in moved], [], "flows of endpoints that stayed and met another")
        equal([flow.broken for flow in tcp.flows if flow.broken], [], "broken connections; draining is not asked for")
        for flow in udp.flows:
            for server in flow.servers[1:]:
                check(server in staying + old + new, f"a UDP flow met {server}")
        rehomed = sum(len(flow.servers) > 1 for flow in udp.flows)
        equal(rehomed, sum(first[flow] in old for flow in udp.flows), "UDP flows that met a second endpoint: those whose first one went")
        lab.remarks.append(f"{FLOWS} TCP and {FLOWS} UDP flows, {sum(tcp.counts()) + sum(udp.counts())} answers, {rehomed} UDP flows re-homed, "
                           f"{len(answered)} new connections")


@case()
def connections_of_a_gone_endpoint_are_reset_when_the_Service_does_not_drain_DRAIN004_DRAIN005_ANN01(lab):
    staying, leaving = pods(0, 2), pods(2, 2)
    no_draining = {"penstock.io/connection-draining": "false"}
    start(lab, staying + leaving, **no_draining)
    with LongFlows(lab, "TCP", 40, VIP, 80) as tcp:
        until("every flow is answered", lambda: all(flow.server for flow in tcp.flows), 30)
        show(lab, staying, terminating=leaving, **no_draining)
        before = tcp.counts()
        until("terminating endpoints keep their connections", lambda: tcp.all_answered_since(before), 30)
        equal([flow.broken for flow in tcp.flows if flow.broken], [], "connections broken by an endpoint that terminates")
        show(lab, staying, **no_draining)
        doomed = [flow for flow in tcp.flows if flow.server in leaving]
        until("connections of the endpoints that are gone are reset", lambda: all(flow.broken for flow in doomed), 10)
        equal({flow.broken[1] for flow in doomed}, {"Connection reset by peer"}, "how they ended")
        equal([flow.broken for flow in tcp.flows if flow.broken and flow not in doomed], [], "connections of endpoints that stay")
        lab.remarks.append(f"{len(doomed)} of {len(tcp.flows)} connections reset")
