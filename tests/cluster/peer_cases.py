# SPDX-License-Identifier: Apache-2.0
"""Penstock beside components of other projects: the addresses that MetalLB's controller gives, and the names
that external-dns publishes."""
import dataclasses
import os

import address_play
from address_cases import CLASS, OPTIONS, address, balancer, pool, until_address, with_pools
from cluster_bed import DEPLOY, PATIENCE_S, needs
from fixture import case, check, equal, until
from peers import ExternalDns, MetalLb, NameServer


@dataclasses.dataclass(frozen=True)
class Choice:
    """A difference that is chosen; docs/semantics.md has its reason under this name. metallb, penstock: the
    results of the step, each a sorted list with the addresses of each Service."""
    step: str
    metallb: object
    penstock: object


CHOICES = {
    "second-family-added": Choice("one-of-two-families", [[]], [["198.18.23.1", "2001:db8:23::"]]),
    "request-repeated": Choice("field-and-annotation", [[]], [["198.18.20.8"]]),
    "first-family-decides": Choice("dual-of-six", [["2001:db8:21::"]], [[]]),
    "order-of-families": Choice("six-first", [["198.18.0.27", "2001:db8:1::29"]], [["2001:db8:1::29", "198.18.0.27"]]),
    "sharing-of-equal-selectors": Choice("mixed-local", [["198.18.43.1"]], [["198.18.43.0"]]),
    "sharing-within-a-namespace": Choice("cross-bank", [["198.18.42.0"]], [["198.18.42.1"]]),
    "shared-before-free": Choice("keyed-81", [["198.18.41.0"]], [["198.18.41.1"]]),
    "edited-pools-keep": Choice("edited-later", [["198.18.51.0"], ["198.18.51.1"]], [["198.18.50.0"], ["198.18.50.1"]]),
    "priority-of-restricted-pools": Choice("priority-alone", [["198.18.52.0"], ["198.18.52.1"]], None),
    # MetalLB takes any pool: None where its result is open.
    "order-of-pools": Choice("more", None, [[f"198.18.53.{i}"] for i in range(4)]),
}


def in_three_namespaces(lab, function):
    """Calls function({"base": NAME, "shop": NAME, "bank": NAME}). All Services are removed afterwards."""
    names = {"base": lab.kube_namespace, **{each: f"{lab.kube_namespace}-{each}" for each in ("shop", "bank")}}
    lab.kubectl.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names[each], "labels": {"team": each}}}
                        for each in ("shop", "bank")))
    try:
        return function(names)
    finally:
        for namespace in names.values():
            equal(lab.cluster.request("DELETE", f"/api/v1/namespaces/{namespace}/services")[0], 200, f"removal of the Services of {namespace}")


def results_of_metallb(lab):
    controller = MetalLb(lab, f"{lab.kube_namespace}-metallb", CLASS)
    lab.logs += ("metallb.log",)

    def run(namespaces):
        side = address_play.MetalLbSide(lab, namespaces, controller)
        side.put(*address_play.pools())
        controller.start()
        address_play.play(side)
        return side.results
    try:
        controller.install()
        return in_three_namespaces(lab, run)
    finally:
        controller.remove()


def results_of_penstock(lab):
    def run(namespaces):
        side = address_play.PenstockSide(lab, namespaces)
        side.put(*address_play.pools())
        # No gateway: each address is read from the API server.
        lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"), "--status-qps", "100", *OPTIONS)
        address_play.play(side)
        return side.results
    return in_three_namespaces(lab, run)


def unlisted(metallb, penstock):
    """Differences that no choice describes, and choices that do not describe the results any more."""
    by_step = {choice.step: (name, choice) for name, choice in CHOICES.items()}
    wrong = []
    for step in sorted(metallb.keys() | penstock.keys()):
        theirs, ours = metallb.get(step), penstock.get(step)
        name, choice = by_step.get(step, ("", None))
        if choice is None:
            if theirs != ours:
                wrong.append(f"{step}: MetalLB gives {theirs}, Penstock {ours}")
        elif theirs != (choice.metallb or theirs) or ours != (choice.penstock or ours):
            wrong.append(f"choice {name}: MetalLB gives {theirs}, Penstock {ours}; expected {choice.metallb} and {choice.penstock}")
    return wrong + [f"choice {name}: there is no step {choice.step}" for name, choice in CHOICES.items() if choice.step not in metallb]


@case(waits_s=60)
@with_pools
def addresses_are_those_of_metallb_apart_from_the_listed_choices_LB007_LB009_LB010_LB011_LB012_DUAL004(lab):
    needs(lab, (1, 29), "the API of this MetalLB")
    metallb = results_of_metallb(lab)
    penstock = results_of_penstock(lab)
    given = sum(1 for results in metallb.values() for each in results if each)
    wrong = unlisted(metallb, penstock) + undocumented()
    check(not wrong, "differences that are on no list:\n" + "\n".join(wrong))
    lab.remarks.append(f"{address_play.SERVICES} Services, {len(metallb)} comparisons with {given} addresses, {len(CHOICES)} choices")


def undocumented():
    with open(os.path.join(DEPLOY, "../semantics.md")) as page:
        text = page.read()
    return [f"choice {name}: docs/semantics.md does not explain it" for name in CHOICES if f"| `{name}`:" not in text]


ZONE = "example.test"


def named(lab, name, host, requested=None, **spec):
    """A Service with a DNS name. external-dns 0.22 has replaced the second key by the first."""
    annotations = {f"external-dns.{domain}/hostname": f"{host}.{ZONE}" for domain in ("kubernetes.io", "alpha.kubernetes.io")}
    return balancer(lab, name, annotations | ({"penstock.io/load-balancer-ips": requested} if requested else {}), **spec)


@case(waits_s=20)
@with_pools
def external_dns_publishes_the_addresses_of_services_LB007_LB009_LB013_STATUS001(lab):
    needs(lab, (1, 29), "the client of this external-dns")
    server = NameServer(lab, ZONE)
    external_dns = ExternalDns(lab, server)
    lab.logs += ("external-dns.log", "named.log")
    server.start()
    lab.kubectl.apply(pool("edge", "203.0.113.16/28", "2001:db8:113::/64"))
    lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"), *OPTIONS)
    external_dns.start()
    both = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "PreferDualStack"}
    lab.apply(named(lab, "web", "web", **both))
    until_address(lab, "web", "203.0.113.16")
    lab.apply(named(lab, "mail", "mail"), balancer(lab, "unnamed"))
    equal([entry["ip"] for entry in lab.kubectl.json("get", "service", "-n", lab.kube_namespace, "web")["status"]["loadBalancer"]["ingress"]],
          ["203.0.113.16", "2001:db8:113::"], "addresses of web")
    published_ms = server.until("web", A=["203.0.113.16"], AAAA=["2001:db8:113::"])
    until("mail has an address", lambda: address(lab, "mail"), PATIENCE_S)
    server.until("mail", A=[address(lab, "mail")], AAAA=[])
    # moves to another address
    lab.apply(named(lab, "web", "web", "203.0.113.30,2001:db8:113::30", **both))
    server.until("web", A=["203.0.113.30"], AAAA=["2001:db8:113::30"])
    # loses one family, then its type
    lab.patch("web", {"spec": {"ipFamilyPolicy": "SingleStack"},
                      "metadata": {"annotations": {"penstock.io/load-balancer-ips": "203.0.113.30"}}})
    server.until("web", A=["203.0.113.30"], AAAA=[])
    lab.patch("web", {"spec": {"type": "ClusterIP", "loadBalancerClass": None}})
    server.until("web", A=[], AAAA=[])
    # An address that a pool refuses is no name: the Service waits without one.
    lab.apply(named(lab, "later", "later", "198.51.100.1"))
    lab.apply(named(lab, "last", "last"))
    until("last has an address", lambda: address(lab, "last"), PATIENCE_S)
    server.until("last", A=[address(lab, "last")])
    equal(server.lookup("later", "A"), [], "names of a Service without an address")
    lab.delete("service", "mail")
    server.until("mail", A=[], AAAA=[])
    lab.remarks.append(f"first name after {published_ms:.0f} ms")
