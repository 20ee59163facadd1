# SPDX-License-Identifier: Apache-2.0
"""penstock-sync gives addresses of AddressPools to Services of type LoadBalancer, and writes them into their status."""
import os
import random
import signal
import subprocess
import time

from cluster_bed import PATIENCE_S
from fixture import VIP2, Skip, case, check, equal, until

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
            lab.kubectl("delete", "lease", "-n", "penstock-system", "penstock-sync", "penstock-sync-gateways", "--ignore-not-found")
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
def pools_of_a_file_serve_each_api_server_LB007_STATUS001_STATUS004_STATUS005(lab):
    """Also a server without spec.loadBalancerClass (before 1.21) and ipMode (before 1.29): the status is written once."""
    path = lab.run.file("pools.yaml")
    with open(path, "w") as file:
        file.write("apiVersion: penstock.io/v1alpha1\nkind: AddressPool\nmetadata: {name: edge}\nspec: {addresses: [203.0.113.16/31]}\n")
    made = [lab.objects.service(name, kind="LoadBalancer") for name in ("web", "second", "third")]
    lab.start(options=(*OPTIONS, "--default-lb", "on", "--address-pools", str(path)))
    lab.apply(made[0], lab.objects.backends("web"))
    until_address(lab, "web", "203.0.113.16")
    until("a gateway serves it", lambda: condition(lab, "web", "Programmed") == "True", patience_s=PATIENCE_S)
    equal(lab.get("203.0.113.16").status, 200, "a request to the address")
    version = lab.kubectl.json("get", "service", "-n", lab.kube_namespace, "web")["metadata"]["resourceVersion"]
    lab.apply(*made[1:])
    until("the pool is exhausted", lambda: sorted(condition(lab, name, "Allocated") for name in ("second", "third")) ==
          ["False: PoolExhausted", "True"], patience_s=PATIENCE_S)
    equal(lab.kubectl.json("get", "service", "-n", lab.kube_namespace, "web")["metadata"]["resourceVersion"], version, "no further write")


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


@case(waits_s=60)
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
              patience_s=90, step_s=0.2)
        lab.apply(balancer(lab, "probe"))
        until("it allocates", lambda: condition(lab, "probe", "Allocated") != "", patience_s=90, step_s=0.2)
        equal({name: address(lab, name) for name in before}, before, f"addresses with pool {addresses}")
        lab.delete("service", "probe")


POOLS = "/apis/penstock.io/v1alpha1/addresspools"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/penstock-system/leases/penstock-sync"
LEADS = "this process writes addresses and status"


class Restarts:
    """penstock-sync, ended again and again at a random point of its start. No gateway: each address is read
    from the API server."""

    def __init__(self, lab, seed):
        self.lab, self.seed, self.chance, self.count = lab, seed, random.Random(seed), 0
        self.services = f"/api/v1/namespaces/{lab.kube_namespace}/services"
        self.extra = []  # pools that were added, as numbers

    def request(self, method, path, body=None, *expected, kind="application/json"):
        code, answer = self.lab.cluster.request(method, path, body, kind=kind)
        check(code in (expected or (200, 201)), f"{method} {path}: HTTP {code} {answer}")
        return answer

    def change(self, name, spec):
        self.request("PATCH", f"{POOLS}/{name}", {"spec": spec}, kind="application/merge-patch+json")

    def addresses(self):
        """{name: address} of the Services that have one."""
        items = self.request("GET", self.services)["items"]
        return {item["metadata"]["name"]: item["status"]["loadBalancer"]["ingress"][0]["ip"] for item in items
                if item["status"]["loadBalancer"].get("ingress")}

    def start(self):
        self.log_bytes = os.path.getsize(log) if os.path.exists(log := self.lab.run.file("penstock-sync.log")) else 0
        self.lab.start_sync("--kubeconfig", self.lab.cluster.file("sync.kubeconfig"), *OPTIONS)

    def new_log(self):
        with open(self.lab.run.file("penstock-sync.log"), "rb") as log:
            log.seek(self.log_bytes)
            return log.read().decode(errors="replace")

    def until_allocated(self, name):
        """A Service is new, and the process has decided on it."""
        self.request("POST", self.services, balancer(self.lab, name))

        def decided():
            conditions = self.request("GET", f"{self.services}/{name}")["status"].get("conditions", [])
            return any(each["type"] == "penstock.io/Allocated" and each["reason"] != "Pending" for each in conditions)
        until(f"restart {self.count} of seed {self.seed}: {name} is decided on", decided, patience_s=PATIENCE_S)

    def edit_a_pool(self):
        """The pool in use is shrunk, restored, disabled, restricted to a namespace that may be another one, or
        gets another place in the order; others come and go."""
        chance = self.chance
        edit = chance.choice(("shrink", "restore", "disable", "restrict", "order", "add", "add", "remove"))
        if edit == "shrink":
            first = chance.randrange(0, 60)
            self.change("edge", {"addresses": [f"203.0.113.{first}-203.0.113.{chance.randrange(first, 64)}"]})
        elif edit == "restore":
            self.change("edge", {"addresses": ["203.0.113.0/26"], "disabled": False, "namespaces": None, "priority": 0, "enforce": False})
        elif edit == "disable":
            self.change("edge", {"disabled": chance.random() < 0.5})
        elif edit == "restrict":
            self.change("edge", {"namespaces": [chance.choice((self.lab.kube_namespace, "elsewhere"))], "enforce": chance.random() < 0.5})
        elif edit == "order":
            self.change("edge", {"namespaces": [self.lab.kube_namespace], "priority": chance.randrange(5)})
        elif edit == "add" or not self.extra:
            number = len(self.extra) and self.extra[-1] + 1
            # sorts before and after the name "edge"
            self.request("POST", POOLS, pool(f"{chance.choice(('a', 'z'))}-{number}", f"10.250.{number}.0/30", autoAssign=chance.random() < 0.5))
            self.extra.append(number)
        else:
            number = self.extra.pop(chance.randrange(len(self.extra)))
            for name in (f"a-{number}", f"z-{number}"):
                self.request("DELETE", f"{POOLS}/{name}", None, 200, 404)

    def end(self, how):
        self.lab.gateway.sync.send_signal(how)
        try:
            self.lab.gateway.sync.wait(timeout=60)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"penstock-sync does not end after {how.name}") from None
        if how == signal.SIGKILL:
            # Its Lease would expire after 15 s. Nobody else writes, so it can be removed at once.
            self.request("DELETE", LEASE, None, 200, 404)


@case(waits_s=60)
@with_pools
def a_hundred_restarts_with_edited_pools_move_no_address_LB008_LB014_LEASE003(lab):
    seed = int(os.environ.get("PENSTOCK_SEED") or random.randrange(2**32))
    restarts = Restarts(lab, seed)
    lab.kubectl.apply(pool("edge", "203.0.113.0/26"))
    names = [f"web-{i}" for i in range(50)]
    # Two have no address, so each term begins with writes.
    outside = [balancer(lab, f"outside-{i}", {"penstock.io/load-balancer-ips": f"198.51.100.{i}"}) for i in range(2)]
    lab.apply(*(balancer(lab, name) for name in names), *outside)
    restarts.start()
    until("all have addresses", lambda: len(restarts.addresses()) == len(names), patience_s=PATIENCE_S)
    before = restarts.addresses()
    equal(len(set(before.values())), len(names), "distinct addresses")
    for freed in ("web-3", "web-7"):  # lower addresses become free
        lab.delete("service", freed)
        before.pop(freed)
    points = ["at once", "log", "leads", "allocates"] * 25
    restarts.chance.shuffle(points)
    began = time.monotonic()
    for restarts.count, point in enumerate(points, 1):
        restarts.end(signal.SIGKILL if restarts.count % 2 else signal.SIGTERM)
        restarts.edit_a_pool()
        restarts.start()
        if point == "allocates":
            restarts.until_allocated(f"probe-{restarts.count}")
        elif point != "at once":
            until(f"restart {restarts.count} of seed {seed}: {point}", lambda point=point: (LEADS if point == "leads" else "\n") in restarts.new_log(),
                  patience_s=PATIENCE_S)
            time.sleep(restarts.chance.random() / 20)  # any point of the writes that follow
        now = restarts.addresses()
        equal({name: now.get(name) for name in before}, before, f"addresses after restart {restarts.count} ({point}) of seed {seed}")
        equal(len(set(now.values())), len(now), f"distinct addresses after restart {restarts.count} of seed {seed}")
        before = {name: now[name] for name in now if not name.startswith("outside")}
    restarts.until_allocated("probe-last")
    now = restarts.addresses()
    equal({name: now.get(name) for name in before}, before, f"addresses at the end of seed {seed}")
    lab.remarks.append(f"seed {seed}: {len(now)} addresses, {len(points)} restarts in {time.monotonic() - began:.0f} s")


@case()
@with_pools
def a_restart_moves_uncovered_addresses_where_a_pool_reassigns_LB014(lab):
    restarts = Restarts(lab, 0)
    lab.kubectl.apply(pool("edge", "203.0.113.16/30"))
    restarts.start()
    names = ("a", "b", "c", "d")
    for name in names:
        restarts.until_allocated(name)
    equal(restarts.addresses(), {name: f"203.0.113.{16 + i}" for i, name in enumerate(names)}, "addresses before")
    restarts.end(signal.SIGTERM)
    # The pool keeps the addresses of c and d; the new one takes over those that no pool has any more.
    restarts.change("edge", {"addresses": ["203.0.113.18/31"]})
    lab.kubectl.apply(pool("next", "203.0.113.32/31", reassign=True))
    restarts.start()
    until("a and b have moved", lambda: {restarts.addresses().get(name, "") for name in "ab"} == {"203.0.113.32", "203.0.113.33"}, patience_s=PATIENCE_S)
    now = restarts.addresses()
    equal((now["c"], now["d"]), ("203.0.113.18", "203.0.113.19"), "addresses that the pool still has")


@case(waits_s=15)
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
        until("the second one gives addresses", lambda: all(address(lab, name) for name in "bcd"), patience_s=90, step_s=0.2)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    lab.apply(*(balancer(lab, name) for name in "efg"))
    until("all have addresses", lambda: all(address(lab, name) for name in "abcdefg"), patience_s=90, step_s=0.2)
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


def programmed_by(lab, name):
    """The gateways in the condition Programmed, as text; "" without it."""
    found = next((each for each in status(lab, name).get("conditions", []) if each["type"] == "penstock.io/Programmed"), {})
    return found.get("message", "")


@case(waits_s=30)
@with_pools
def programmed_covers_gateways_of_all_processes_PRESENCE001_STATUS001_LEASE004(lab):
    """Two gateways with a penstock-sync each. Services have policy Cluster, so both serve them."""
    lab.start_gateway()
    second = lab.start_second_gateway(VIP2)
    kubeconfig = lab.cluster.file("sync.kubeconfig")
    lab.start_sync("--kubeconfig", kubeconfig, *OPTIONS)
    words = [lab.gateway.program("penstock-sync"), "--gateway", second.address, "--kubeconfig", kubeconfig, "--listen", "off", "--http", "off", *OPTIONS]
    lab.run.spawn(words, "penstock-sync-2.log", None)
    lab.logs += ("penstock-sync-2.log",)
    lab.kubectl.apply(pool("edge", "203.0.113.16/28"))
    lab.apply(balancer(lab, "web"), lab.objects.backends("web"))

    def until_programmed(name, wanted):
        return until(f"{name} is programmed: {wanted!r}", lambda: programmed_by(lab, name) == wanted, patience_s=90, step_s=0.2)
    both = until_programmed("web", "served by edge-1, edge-2")
    report = lab.kubectl.json("get", "lease", "-n", "penstock-system", "penstock-sync-gateways")["metadata"]["annotations"]
    equal(set(report), {"gateway.penstock.io/edge-1", "gateway.penstock.io/edge-2"}, "annotations of the second Lease")
    second.daemon.kill()
    second.daemon.wait()
    lab.apply(balancer(lab, "more"), lab.objects.backends("more"))
    until_programmed("more", "served by edge-1")
    until_programmed("web", "served by edge-1")
    second.start_daemon()
    until_programmed("web", "served by edge-1, edge-2")
    # One process ends, and the other one is the leader afterwards. It keeps the condition, until the report about
    # the gateway of the former is too old.
    version = lab.kubectl.json("get", "service", "-n", lab.kube_namespace, "web")["metadata"]["resourceVersion"]
    began = time.monotonic()
    lab.gateway.sync.terminate()
    lab.apply(balancer(lab, "last"), lab.objects.backends("last"))
    until("last has an address", lambda: address(lab, "last"), patience_s=90, step_s=0.2)
    now = lab.kubectl.json("get", "service", "-n", lab.kube_namespace, "web")["metadata"]["resourceVersion"]
    took_s = time.monotonic() - began
    check(now == version or took_s > 40, "the successor has written the status of web")
    until_programmed("web", "served by edge-2")
    lab.remarks.append(f"both gateways after {both:.0f} ms, successor after {took_s:.0f} s")
