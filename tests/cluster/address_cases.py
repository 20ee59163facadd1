# SPDX-License-Identifier: Apache-2.0
"""penstock-sync gives addresses of AddressPools to Services of type LoadBalancer, and writes them into their status."""
import os
import signal

from cluster_bed import PATIENCE_S
from fixture import Skip, case, check, equal, until

OPTIONS = ("--allocate-addresses", "on")
CLASS = "penstock.io/gateway"


def pool(name, *addresses, **spec):
    return {"apiVersion": "penstock.io/v1alpha1", "kind": "AddressPool", "metadata": {"name": name}, "spec": {"addresses": list(addresses), **spec}}


def balancer(lab, name, annotations=None, **spec):
    made = lab.objects.service(name, kind="LoadBalancer", loadBalancerClass=CLASS, **spec)
    made["metadata"]["annotations"] = annotations or {}
    return made


def status(lab, name):
    return lab.kubectl.json("get", "service", "-n", lab.kube_namespace, name)["status"]


def address(lab, name):
    return next((entry["ip"] for entry in status(lab, name).get("loadBalancer", {}).get("ingress", [])), "")


def condition(lab, name, kind):
    """"True", "False: REASON", or "" without the condition."""
    found = next((each for each in status(lab, name).get("conditions", []) if each["type"] == f"penstock.io/{kind}"), None)
    return "" if found is None else found["status"] if found["status"] == "True" else f"{found['status']}: {found['reason']}"


def until_address(lab, name, wanted):
    return until(f"{name} has the address {wanted!r}", lambda: address(lab, name) == wanted, patience_s=PATIENCE_S)


def with_pools(function):
    def run(lab):
        lab.install_pools()
        try:
            function(lab)
        finally:
            if lab.gateway.sync:
                lab.gateway.sync.kill()
            lab.kubectl("delete", "lease", "-n", "penstock-system", "penstock-sync", "--ignore-not-found")
            lab.remove_pools()
    run.__name__, run.__module__ = function.__name__, function.__module__
    return run


@case()
@with_pools
def a_service_gets_an_address_and_serves_it_LB007_LB020_STATUS001_PRESENCE001(lab):
    lab.start(options=OPTIONS)
    lab.kubectl.apply(pool("edge", "203.0.113.16/28"))
    lab.apply(balancer(lab, "web"), lab.objects.backends("web"))
    given_ms = until_address(lab, "web", "203.0.113.16")
    until("a gateway serves it", lambda: condition(lab, "web", "Programmed") == "True", patience_s=PATIENCE_S)
    equal(condition(lab, "web", "Allocated"), "True", "condition Allocated")
    equal(lab.get("203.0.113.16").status, 200, "a request to the address")
    ingress = status(lab, "web")["loadBalancer"]["ingress"][0]
    equal((ingress["ipMode"], ingress["ports"]), ("VIP", [{"port": 80, "protocol": "TCP"}]), "the ingress")
    check("finalizers" not in lab.kubectl.json("get", "service", "-n", lab.kube_namespace, "web")["metadata"], "LB-020: no finalizer")
    until("the pool shows its use", lambda: lab.kubectl.json("get", "apool", "edge").get("status", {}).get("ipv4", {}).get("used") == 1, patience_s=PATIENCE_S)
    shown = lab.gateway.ctl("--sync-server", lab.gateway.sync_address, "get", "pools")
    check("edge" in shown.stdout, f"penstockctl get pools: {shown.stdout}{shown.stderr}")

    lab.apply(balancer(lab, "second"))
    until_address(lab, "second", "203.0.113.17")
    lab.delete("service", "web")
    lab.apply(balancer(lab, "third"))
    until_address(lab, "third", "203.0.113.16")
    lab.remarks.append(f"address after {given_ms:.0f} ms")


@case()
@with_pools
def refusals_have_names_and_end_when_their_cause_does_LB009_LB024_LB013(lab):
    lab.start(options=OPTIONS)
    lab.apply(balancer(lab, "web"))
    until("no pool", lambda: condition(lab, "web", "Allocated") == "False: NoPool", patience_s=PATIENCE_S)
    lab.kubectl.apply(pool("edge", "203.0.113.16/32"))
    until_address(lab, "web", "203.0.113.16")
    lab.apply(balancer(lab, "more"), balancer(lab, "taken", {"penstock.io/load-balancer-ips": "203.0.113.16"}),
              balancer(lab, "outside", {"penstock.io/load-balancer-ips": "198.51.100.1"}))
    for name, reason in (("more", "PoolExhausted"), ("taken", "AddressTaken"), ("outside", "AddressOutsidePools")):
        until(f"{name}: {reason}", lambda name=name, reason=reason: condition(lab, name, "Allocated") == f"False: {reason}", patience_s=PATIENCE_S)
        equal(address(lab, name), "", f"address of {name}")
    events = lab.kubectl.json("get", "events", "-n", lab.kube_namespace)["items"]
    until("an Event names the pool", lambda: any(event["reason"] == "PoolExhausted" and "edge" in event["message"]
                                                 for event in lab.kubectl.json("get", "events", "-n", lab.kube_namespace)["items"]), patience_s=PATIENCE_S)
    del events
    lab.delete("service", "web")
    until("the address is given again", lambda: "203.0.113.16" in (address(lab, "more"), address(lab, "taken")), patience_s=PATIENCE_S)
    # another type: the address and the conditions go
    holder = "more" if address(lab, "more") else "taken"
    lab.patch(holder, {"spec": {"type": "ClusterIP", "loadBalancerClass": None}})
    until("the status is cleared", lambda: not address(lab, holder) and not condition(lab, holder, "Allocated"), patience_s=PATIENCE_S)


@case()
@with_pools
def restarts_with_other_pools_move_no_address_LB008_LB014(lab):
    lab.start(options=OPTIONS)
    lab.kubectl.apply(pool("edge", "203.0.113.16/28"))
    names = [f"web-{i}" for i in range(6)]
    lab.apply(*(balancer(lab, name) for name in names))
    until("all have addresses", lambda: all(address(lab, name) for name in names), patience_s=PATIENCE_S)
    before = {name: address(lab, name) for name in names}
    lab.delete("service", "web-0")  # a lower address becomes free
    before.pop("web-0")
    for addresses in ("203.0.113.0/27", "203.0.113.20/30", "203.0.113.16/28", "203.0.113.19-203.0.113.31"):
        lab.gateway.sync.send_signal(signal.SIGKILL)
        lab.gateway.sync.wait()
        lab.kubectl.apply(pool("edge", addresses))
        lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"), *OPTIONS)
        # The new process waits until the Lease of the killed one has expired.
        until("the new process is the leader", lambda: lab.gateway.ctl("--sync-server", lab.gateway.sync_address, "get", "pools").stdout.find("assigning") >= 0
              or lab.kubectl.json("get", "lease", "-n", "penstock-system", "penstock-sync")["spec"].get("holderIdentity", "").find(f"-{lab.gateway.sync.pid}-") >= 0,
              patience_s=90)
        lab.apply(balancer(lab, "probe"))
        until("it allocates", lambda: condition(lab, "probe", "Allocated") != "", patience_s=90)
        equal({name: address(lab, name) for name in before}, before, f"addresses with pool {addresses}")
        lab.delete("service", "probe")


@case()
@with_pools
def a_frozen_leader_gives_no_address_twice_LEASE004_STATUS002(lab):
    """The second process takes over while the first is frozen, and the first continues then."""
    lab.start(options=OPTIONS)
    lab.kubectl.apply(pool("edge", "203.0.113.16/28"))
    lab.apply(balancer(lab, "a"))
    until_address(lab, "a", "203.0.113.16")
    first = lab.gateway.sync
    os.kill(first.pid, signal.SIGSTOP)
    try:
        lab.apply(*(balancer(lab, name) for name in "bcd"))
        words = [lab.gateway.program("penstock-sync"), "--gateway", lab.gateway.address, "--kubeconfig", lab.cluster.file("sync.kubeconfig"),
                 "--listen", "off", "--http", "off", *OPTIONS]
        lab.run.spawn(words, "penstock-sync-2.log", None)
        until("the second one gives addresses", lambda: all(address(lab, name) for name in "bcd"), patience_s=90)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    lab.apply(*(balancer(lab, name) for name in "efg"))
    until("all have addresses", lambda: all(address(lab, name) for name in "abcdefg"), patience_s=90)
    given = [address(lab, name) for name in "abcdefg"]
    equal(len(set(given)), 7, f"distinct addresses of {given}")
    equal(given[0], "203.0.113.16", "the first one stays")


@case()
def without_the_custom_resource_forwarding_is_untouched_LB007(lab):
    if lab.cluster.version < (1, 25):
        raise Skip("custom resources need an API server of 1.25")
    lab.start(options=OPTIONS)
    lab.apply(lab.objects.service("web", external_ips=["80.11.12.10"]), lab.objects.backends("web"), wait_for=["web/tcp"])
    equal(lab.get("80.11.12.10").status, 200, "a request")
    until("one line names the resource", lambda: "addresspools" in lab.sync_log(), patience_s=PATIENCE_S)
    equal(lab.sync_log().count("addresspools is not served"), min(1, lab.sync_log().count("addresspools is not served")), "lines about it")
