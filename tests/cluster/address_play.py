# SPDX-License-Identifier: Apache-2.0
"""The same 200 Services and the same pools for two allocators, one after the other: Penstock and MetalLB's
controller. play() applies them in steps to one Side. Services of a step that compete for the addresses of one
pool are alike, because the order in which an allocator sees them is open. Groups are therefore compared as
sets of results.

Three namespaces: "base", "shop" (label team=shop) and "bank"."""
import dataclasses

from cluster_bed import PATIENCE_S
from fixture import equal, until

CLASS = "penstock.io/gateway"
# Annotations of MetalLB, which Penstock reads as well.
ADDRESSES, POOL, KEY = "metallb.io/loadBalancerIPs", "metallb.io/address-pool", "metallb.io/allow-shared-ip"
OLD_ADDRESSES = "metallb.universe.tf/loadBalancerIPs"
GROUP = "play-group"
SERVICES = 200


@dataclasses.dataclass(frozen=True)
class Pool:
    name: str
    addresses: tuple
    auto: bool = False  # serves Services without a request
    avoid_buggy: bool = False
    priority: int = 0
    namespaces: tuple = ()
    namespace_labels: tuple = ()  # (key, value)
    service_labels: tuple = ()


def pools():
    return [
        Pool("general", ("198.18.0.0/25", "2001:db8:1::/64"), auto=True),
        Pool("manual", ("198.18.20.0/28",)),
        Pool("buggy", ("198.18.10.254-198.18.11.2",), avoid_buggy=True),
        Pool("four", ("198.18.21.0/29",)),
        Pool("six", ("2001:db8:21::/126",)),
        Pool("tiny", ("198.18.22.0/31",)),
        Pool("pair", ("198.18.23.0/30", "2001:db8:23::/126")),
        Pool("shop-first", ("198.18.30.0/30",), auto=True, priority=10, namespaces=("shop",)),
        Pool("a-shop-second", ("198.18.31.0/30",), auto=True, priority=20, namespace_labels=("team", "shop")),
        Pool("a-shop-last", ("198.18.32.0/30",), auto=True, namespaces=("shop",)),
        Pool("bank-web", ("198.18.33.0/30",), auto=True, priority=5, namespaces=("bank",), service_labels=("tier", "web")),
        Pool("quiet", ("198.18.34.0/30",), priority=1, namespaces=("shop",)),
        Pool("shared", ("198.18.40.0/28",)),
        Pool("keyed", ("198.18.41.0/29",)),
        Pool("cross", ("198.18.42.0/29",)),
        Pool("mixed", ("198.18.43.0/29",)),
        Pool("edited", ("198.18.50.0/30",)),
        Pool("marker", ("198.18.60.0/24",)),
    ]


class Side:
    """One allocator. Subclasses install pools, and wait until every change so far is processed."""
    name = "?"

    def __init__(self, lab, namespaces):
        self.lab, self.namespaces = lab, namespaces
        self.results = {}  # {(step, group): sorted results}
        self.created = 0

    def put(self, *pools):
        raise NotImplementedError

    def settle(self):
        raise NotImplementedError

    # What an allocator writes.

    def services(self):
        """{(namespace, name): Service} of the play."""
        code, answer = self.lab.cluster.request("GET", f"/api/v1/services?labelSelector={GROUP}")
        equal(code, 200, f"list of Services: {answer}")
        return {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in answer["items"]}

    def members(self, group):
        return {name: addresses_of(service) for (_, name), service in self.services().items()
                if service["metadata"]["labels"][GROUP] == group}

    # Steps.

    def create(self, group, count=1, **how):
        self.create_all((group, count, how))

    def create_all(self, *groups):
        """Creates all of them in one step, and records the results of each group under its name."""
        made = [self._service(group, f"{group}-{i}", **how) for group, count, how in groups for i in range(count)]
        self.created += len(made)
        self.lab.kubectl.create(*made)
        self.settle()
        for group, _, _ in groups:
            self.record(group, group)

    def record(self, step, group):
        self.results[step] = sorted(self.members(group).values())

    def delete_lowest(self, group, count=1):
        """Deletes the members with the lowest addresses."""
        holders = sorted((addresses, name) for name, addresses in self.members(group).items() if addresses)[:count]
        namespace = self.namespaces["base"]
        for _, name in holders:
            self.lab.kubectl.delete("service", name, namespace=namespace)
        self.settle()

    def until_all_have_addresses(self, group):
        until(f"{self.name}: each of {group} has an address", lambda: all(self.members(group).values()), PATIENCE_S, 0.2)

    def _service(self, group, name, *, namespace="base", annotations=None, labels=None, port=80, families=("IPv4",), policy="SingleStack",
                 local=False, selector="a", address=None):
        spec = {"loadBalancerClass": CLASS, "allocateLoadBalancerNodePorts": False, "ipFamilies": list(families), "ipFamilyPolicy": policy,
                "selector": {"app": selector}, "externalTrafficPolicy": "Local" if local else "Cluster"}
        if address:
            spec["loadBalancerIP"] = address
        made = self.lab.objects.service(name, port, kind="LoadBalancer", **spec)
        made["metadata"] |= {"namespace": self.namespaces[namespace], "annotations": annotations or {}, "labels": {GROUP: group, **(labels or {})}}
        return made


class PenstockSide(Side):
    name = "Penstock"

    def put(self, *pools):
        self.lab.kubectl.apply(*map(self._object, pools))

    def _object(self, pool):
        spec = {"addresses": list(pool.addresses), "autoAssign": pool.auto, "avoidBuggyIPs": pool.avoid_buggy, "priority": pool.priority}
        if pool.namespaces:
            spec["namespaces"] = [self.namespaces[each] for each in pool.namespaces]
        for field, labels in (("namespaceSelector", pool.namespace_labels), ("serviceSelector", pool.service_labels)):
            if labels:
                spec[field] = {"matchLabels": dict([labels])}
        return {"apiVersion": "penstock.io/v1alpha1", "kind": "AddressPool", "metadata": {"name": pool.name}, "spec": spec}

    def settle(self):
        until("each pool is accepted", self._has_pools, PATIENCE_S, 0.1)
        until("each Service is decided", lambda: all(map(is_decided, self.services().values())), 2 * PATIENCE_S, 0.1)

    def _has_pools(self):
        listed = self.lab.kubectl.json("get", "addresspools")["items"]
        return all(any(each["type"] == "Accepted" and each["status"] == "True" and each["observedGeneration"] == pool["metadata"]["generation"]
                       for each in pool.get("status", {}).get("conditions", [])) for pool in listed)


class MetalLbSide(Side):
    name = "MetalLB"

    def __init__(self, lab, namespaces, controller):
        super().__init__(lab, namespaces)
        self._controller, self._markers = controller, 0

    def put(self, *pools):
        self.lab.kubectl.apply(*map(self._object, pools))

    def _object(self, pool):
        spec = {"addresses": list(pool.addresses), "autoAssign": pool.auto, "avoidBuggyIPs": pool.avoid_buggy}
        to = {}
        if pool.priority:
            to["priority"] = pool.priority
        if pool.namespaces:
            to["namespaces"] = [self.namespaces[each] for each in pool.namespaces]
        for field, labels in (("namespaceSelectors", pool.namespace_labels), ("serviceSelectors", pool.service_labels)):
            if labels:
                to[field] = [{"matchLabels": dict([labels])}]
        if to:
            spec["serviceAllocation"] = to
        return {"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "metadata": {"name": pool.name, "namespace": self._controller.namespace},
                "spec": spec}

    def until_known(self, pool):
        """The controller has read a new pool."""
        until(f"MetalLB knows pool {pool.name}",
              lambda: self.lab.kubectl.json("get", "ipaddresspool", "-n", self._controller.namespace, pool.name).get("status"), PATIENCE_S, 0.2)

    def settle(self):
        """The controller processes Services in the order of their events: once it has given a later Service
        the requested address, it has processed those before."""
        marker = self._service("marker", f"marker-{self._markers}", annotations={ADDRESSES: f"198.18.60.{self._markers}"})
        self._markers += 1
        self.lab.kubectl.create(marker)
        name = marker["metadata"]["name"]

        def is_given():
            self._controller.check_runs()
            return self.members("marker")[name] != []
        until(f"MetalLB gives {name} its address", is_given, 2 * PATIENCE_S, 0.1)


def addresses_of(service):
    """In the order of the status; [] for none."""
    return [entry["ip"] for entry in service["status"].get("loadBalancer", {}).get("ingress", [])]


def is_decided(service):
    """Penstock has written its decision."""
    allocated = next((each for each in service["status"].get("conditions", []) if each["type"] == "penstock.io/Allocated"), None)
    return allocated is not None and allocated["reason"] != "Pending" and (allocated["status"] == "True") == bool(addresses_of(service))


DUAL, REQUIRED = {"families": ("IPv4", "IPv6"), "policy": "PreferDualStack"}, {"families": ("IPv4", "IPv6"), "policy": "RequireDualStack"}


def asks(addresses, **how):
    return {"annotations": {ADDRESSES: addresses}, **how}


def in_pool(pool, addresses=None, key=None, **how):
    return {"annotations": {POOL: pool, **({ADDRESSES: addresses} if addresses else {}), **({KEY: key} if key else {})}, **how}


def play(side):
    """All steps. The pools are installed, and the allocator runs."""
    requests(side)
    families(side)
    restrictions(side)
    exhaustion(side)
    sharing(side)
    changes_of_pools(side)
    equal(side.created, SERVICES, "Services of the play")


def requests(side):
    side.create_all(
        ("by-annotation", 1, asks("198.18.20.5")),
        ("by-old-annotation", 1, {"annotations": {OLD_ADDRESSES: "198.18.20.6"}}),
        ("by-field", 1, {"address": "198.18.20.7"}),
        ("of-an-automatic-pool", 1, asks("198.18.0.3")),
        ("both-families", 1, asks("198.18.0.5,2001:db8:1::5", **DUAL)),
        ("one-of-two-families", 1, asks("198.18.23.1", **DUAL)),
        ("field-and-annotation", 1, asks("198.18.20.8", address="198.18.20.8")),
        ("field-against-annotation", 1, asks("198.18.20.9", address="198.18.20.10")),
        ("outside", 1, asks("192.0.2.77")),
        ("malformed", 1, asks("here")),
        ("wrong-family", 1, asks("2001:db8:1::7")),
        ("too-many-families", 1, asks("198.18.20.11,2001:db8:1::8")),
        ("by-pool", 1, in_pool("manual")),
        ("by-pool-and-address", 1, in_pool("manual", "198.18.20.12")),
        ("of-another-pool", 1, in_pool("four", "198.18.20.13")),
        ("unknown-pool", 1, in_pool("nowhere")),
        ("buggy-zero", 1, asks("198.18.11.0")),
        ("buggy-255", 1, asks("198.18.10.255")))
    side.create("taken", **asks("198.18.20.5"))


def families(side):
    side.create("dual", 20, **DUAL)
    side.create("dual-required", 5, **REQUIRED)
    side.create("six", 15, families=("IPv6",))
    side.create_all(
        ("six-first", 1, {"families": ("IPv6", "IPv4"), "policy": "PreferDualStack"}),
        ("dual-of-four", 1, in_pool("four", **DUAL)),
        ("required-of-six", 1, in_pool("six", **REQUIRED)),
        ("four-of-six", 1, in_pool("six")))
    side.create("dual-of-six", **in_pool("six", **DUAL))
    side.create("plain", 81)


def restrictions(side):
    side.create("shop", 14, namespace="shop")  # three pools of four, then the general one
    side.create("bank-web", 2, namespace="bank", labels={"tier": "web"})
    side.create_all(
        ("bank", 1, {"namespace": "bank"}),
        ("bank-asks-pool", 1, in_pool("shop-first", namespace="bank")),
        ("bank-asks-address", 1, asks("198.18.34.1", namespace="bank")),
        ("shop-asks-address", 1, asks("198.18.34.2", namespace="shop")))


def exhaustion(side):
    side.create("buggy", 4, **in_pool("buggy"))
    side.create("tiny", 3, **in_pool("tiny"))
    side.delete_lowest("tiny")
    side.until_all_have_addresses("tiny")
    side.record("tiny-freed", "tiny")
    side.delete_lowest("plain", 3)
    side.create("plain-again", 3)


def sharing(side):
    for group, how in (
            ("share", in_pool("shared", key="a")),
            ("share-81", in_pool("shared", key="a", port=81)),
            ("share-same-port", in_pool("shared", key="a")),
            ("share-other-key", in_pool("shared", key="b", port=82)),
            ("share-without-key", in_pool("shared", port=83)),
            ("share-by-address", in_pool("shared", "198.18.40.0", key="a", port=84)),
            ("share-by-address-other-key", in_pool("shared", "198.18.40.0", key="b", port=85)),
            ("share-local", in_pool("shared", key="l", local=True)),
            ("share-local-81", in_pool("shared", key="l", local=True, port=81)),
            ("share-local-other-selector", in_pool("shared", key="l", local=True, port=82, selector="b")),
            ("mixed", in_pool("mixed", key="m")),
            ("mixed-local", in_pool("mixed", key="m", local=True, port=81)),
            ("cross-shop", in_pool("cross", key="x", namespace="shop")),
            ("cross-bank", in_pool("cross", key="x", namespace="bank", port=81)),
            ("keyed-lowest", in_pool("keyed")),
            ("keyed", in_pool("keyed", key="k"))):
        side.create(group, **how)
    side.delete_lowest("keyed-lowest")
    side.create("keyed-81", **in_pool("keyed", key="k", port=81))


def changes_of_pools(side):
    side.create("edited", 2, **in_pool("edited"))
    side.put(Pool("edited", ("198.18.51.0/30",)))
    side.settle()
    if isinstance(side, MetalLbSide):
        until("MetalLB has read the edited pool", lambda: all(each and each[0].startswith("198.18.51.") for each in side.members("edited").values()), PATIENCE_S, 0.2)
    side.record("edited-later", "edited")

    add(side, Pool("zz-first", ("198.18.52.0/31",), auto=True, priority=1))
    side.create("priority-alone", 2)
    add(side, Pool("a-more", ("198.18.53.0/29",), auto=True))
    side.create("more", 4)


def add(side, pool):
    side.put(pool)
    if isinstance(side, MetalLbSide):
        side.until_known(pool)
    side.settle()
