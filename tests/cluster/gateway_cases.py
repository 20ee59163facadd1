# SPDX-License-Identifier: Apache-2.0
"""One penstock-sync, several gateways: each receives its own state, and an unreachable gateway delays no
other."""
from cluster_bed import PATIENCE_S
from fixture import VIP, VIP2, case, equal, until
from lab.network import BACKENDS


def answering(lab, address):
    return set(lab.answered_by(6, address))


@case()
def each_gateway_has_its_own_desired_state_and_catches_up_after_it_was_away_ETP002(lab):
    """Services with policy Local, so that each Node has a different endpoint."""
    o = lab.objects
    lab.start_gateway()
    second = lab.start_second_gateway(VIP2)
    lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"), "--gateway", second.address)
    # In 1.20 the policy is accepted only for types with node ports.
    lab.apply(o.service("web", kind="NodePort", external_ips=[VIP, VIP2], externalTrafficPolicy="Local"), o.backends("web", ["backend-1"]),
              o.backends("web", ["backend-2"], name="web-2", node="edge-2"), wait_for=["web/tcp"])
    lab.until_open(VIP2)
    equal(answering(lab, VIP), {"backend-1"}, "backends of the first gateway's node")
    equal(answering(lab, VIP2), {"backend-2"}, "backends of the second gateway's node")
    second.daemon.kill()
    second.daemon.wait()
    lab.apply(o.backends("web", ["backend-1", "backend-2"]), o.backends("web", ["backend-3"], name="web-2", node="edge-2"))
    until("the first gateway follows alone", lambda: answering(lab, VIP) == {"backend-1", "backend-2"}, PATIENCE_S)
    second.start_daemon()
    lab.until_open(VIP2)
    until("the second has what it missed", lambda: answering(lab, VIP2) == {"backend-3"}, PATIENCE_S)


@case()
def a_gateway_that_was_never_there_holds_nobody_back(lab):
    o = lab.objects
    lab.start_gateway()
    lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"), "--gateway", f"unix:{lab.run.file('nobody.sock')}")
    lab.apply(o.service("web", external_ips=[VIP]), o.backends("web"), wait_for=["web/tcp"])
    equal(answering(lab, VIP), set(BACKENDS), "backends that answer")
    lab.gateway.daemon.kill()
    lab.gateway.daemon.wait()
    lab.apply(o.service("more", 81, external_ips=[VIP]), o.backends("more"))
    lab.gateway.start_daemon()
    until("it has what it missed", lambda: lab.connection_outcome(VIP, 81, 0.5) == "open", PATIENCE_S)
