# SPDX-License-Identifier: Apache-2.0
"""SCTP between two real stacks (sctp_peer.py) through the gateway."""
import json
import subprocess
import sys

from fixture import LB_IP, VIP, VIP_6, case, check, equal, until
from lab import network as net
from lab.network import BACKENDS, inside
from sctp_lab import NODE_PORT, PEER, PORT, begin, diameter, states, talk


@case(driver=("af_packet", "af_xdp"), workers=(1, 2))
def real_stacks_talk_on_every_frontend_and_close_SCTP001_SCTP002_SCTP004(lab):
    begin(lab, *diameter(ingress_ips=[LB_IP], node_port=NODE_PORT))
    told = lab.gateway.json("explain", "--proto", "sctp", "--src", f"{net.CLIENT}:5000", "--dst", f"{VIP}:{PORT}")
    check(told["verdict"] in ("transmit", "hold"), f"explain: {told}")
    served = set()
    frontends = ((VIP, PORT), (LB_IP, PORT), (net.UPLINK, NODE_PORT), (VIP_6, PORT), (net.UPLINK6, NODE_PORT))
    for address, port in frontends:
        # each starts a stack, which is slow
        for size in (1, 1000, 20_000) if address in (VIP, VIP_6) else (1000,):
            answer = talk(lab, address, port, size=size)
            check("error" not in answer, f"{address} {port}, {size} bytes: {answer}")
            served.add(answer["by"])
    until("more than one endpoint has served", lambda: len(served) > 1 or served.add(talk(lab, VIP).get("by")), patience_s=30)
    check(served <= set(BACKENDS), f"by {served}")
    until("all are closed", lambda: set(states(lab)) == {"closed"})
    until("closed associations are gone", lambda: not states(lab), patience_s=25, step_s=0.5)


@case(policy=("Cluster", "Local"))
def an_association_keeps_its_port_and_ends_by_abort_SCTP002_SCTP003(lab):
    begin(lab, *diameter(policy=lab.variant["policy"]))
    answer = talk(lab, VIP, local=f"{net.CLIENT}@5000", end_by="abort")
    equal(answer.get("local_port"), 5000, "the client's port")
    until("the ABORT has passed", lambda: states(lab) == ["closed"])
    (entry,) = lab.gateway.json("get", "connections", "--proto", "sctp")
    equal(entry["client"]["port"], 5000, "the client's port")
    equal("snat" in entry, lab.variant["policy"] == "Cluster", "whether the source is translated")
    equal(entry.get("snat", entry["client"])["port"], 5000, "the port that the backend sees")
    # The tuple is free again at once.
    check("error" not in talk(lab, VIP, local=f"{net.CLIENT}@5000"), "the same port once more")


@case()
def an_endpoint_that_is_gone_ends_its_associations_by_abort_DRAIN004_SCTP005(lab):
    undrained = {"penstock.io/connection-draining": "false"}
    begin(lab, *diameter(["backend-1"], annotations=undrained))
    with inside(lab.network.namespace("client")):
        client = subprocess.Popen([sys.executable, PEER, "talk", net.CLIENT, VIP, str(PORT), "2", "100", "hold"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
    try:
        equal(json.loads(client.stdout.readline()).get("by"), "backend-1", "served by")
        lab.apply(*diameter(["backend-2"], annotations=undrained))
        until("the association is over", lambda: states(lab) == ["aborting"])
        said, _ = client.communicate("go on\n", timeout=10)
        check("error" in json.loads(said.splitlines()[-1]), f"it was told: {said}")
    finally:
        client.kill()
        client.wait()
    equal(talk(lab, VIP).get("by"), "backend-2", "served by")


@case()
def a_refused_association_is_told_by_abort_REJ004(lab):
    lab.gateway.more_options += ["--sctp-reject", "abort"]
    begin(lab, *diameter([]))
    answer = talk(lab, VIP)
    check("refused" in answer.get("error", ""), f"the client learns at once: {answer}")
    answer = talk(lab, VIP_6)
    check("refused" in answer.get("error", ""), f"the client learns at once: {answer}")
