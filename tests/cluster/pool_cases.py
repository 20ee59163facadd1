# SPDX-License-Identifier: Apache-2.0
"""The custom resource AddressPool (docs/deploy/common/addresspool-crd.yaml): what the API server itself refuses, its
defaults, and its status."""
from fixture import case, check, equal
from testbed.cluster import SYNC_USER
from testbed.kubectl import KubectlFailed

GOOD = {
    "both": {"addresses": ["192.0.2.0/24", "198.51.100.10-198.51.100.20", "203.0.113.1 - 203.0.113.9", "2001:db8::/64",
                           "2001:db8:1::1-2001:db8:1::ff"]},
    "pinned": {"addresses": ["10.1.0.0/16"], "autoAssign": False, "priority": 5, "namespaces": ["shop"], "enforce": True,
               "namespaceSelector": {"matchLabels": {"team": "edge"}},
               "serviceSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web"]},
                                                        {"key": "canary", "operator": "DoesNotExist"}]},
               "reservations": [{"address": "10.1.0.1", "namespace": "shop", "name": "web"}]},
    # each list at its maximum length: the rules of the CRD stay within their cost
    "large": {"addresses": [f"10.{2 + i // 256}.{i % 256}.0/24" for i in range(256)],
              "namespaces": [f"namespace-{i}" for i in range(256)],
              "reservations": [{"address": f"10.2.{i // 256}.{i % 256}", "namespace": "shop", "name": f"web-{i}"} for i in range(1024)]},
}
LIST = {"addresses": ["192.0.2.0/24"]}
# The spec, and a part of the error.
BAD = {
    "no-addresses": ({}, "addresses"),
    "empty-list": ({"addresses": []}, "at least 1"),
    "one-address": ({"addresses": ["192.0.2.1"]}, "must be a CIDR"),
    "octet": ({"addresses": ["192.0.2.256/32"]}, "must be a CIDR"),
    "length": ({"addresses": ["192.0.2.0/33"]}, "must be a CIDR"),
    "length-of-ipv6": ({"addresses": ["2001:db8::/129"]}, "must be a CIDR"),
    "both-families": ({"addresses": ["192.0.2.1-2001:db8::1"]}, "must be a CIDR"),
    "twice": ({"addresses": ["192.0.2.0/24", "192.0.2.0/24"]}, "Duplicate value"),
    "priority": ({**LIST, "priority": -1}, "greater than or equal to 0"),
    "namespace": ({**LIST, "namespaces": ["Shop"]}, "spec.namespaces[0]"),
    "enforce": ({**LIST, "enforce": True}, "enforce requires namespaces or namespaceSelector"),
    "operator": ({**LIST, "serviceSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}, "Unsupported value"),
    "values": ({**LIST, "serviceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "In and NotIn require values"),
    "reservation": ({**LIST, "reservations": [{"address": "192.0.2.1", "name": "web"}]}, "namespace"),
    "reserved-twice": ({**LIST, "reservations": [{"address": "192.0.2.1", "namespace": "a", "name": name} for name in "bc"]}, "Duplicate value"),
}


def pool(name, spec):
    return {"apiVersion": "penstock.io/v1alpha1", "kind": "AddressPool", "metadata": {"name": name}, "spec": spec}


@case()
def the_api_server_refuses_malformed_pools_LB015(lab):
    lab.install_pools()
    try:
        lab.kubectl.apply(*(pool(name, spec) for name, spec in GOOD.items()))
        for name, (spec, reason) in BAD.items():
            try:
                lab.kubectl.apply(pool(name, spec))
            except KubectlFailed as refusal:
                check(reason in str(refusal), f"{name}: {reason!r} is not in {refusal}")
            else:
                check(False, f"{name} was accepted")
        equal({each["metadata"]["name"] for each in lab.kubectl.json("get", "apool")["items"]}, set(GOOD), "pools by their short name")
        equal(lab.kubectl.json("get", "apool", "both")["spec"],
              {**GOOD["both"], "autoAssign": True, "avoidBuggyIPs": False, "priority": 0, "enforce": False, "internal": False,
               "disabled": False, "reassign": False}, "a pool with the defaults")
    finally:
        lab.remove_pools()


@case()
def the_status_of_a_pool_is_written_apart_from_its_spec_RBAC001(lab):
    lab.install_pools()
    try:
        lab.kubectl.apply(pool("both", GOOD["both"]))
        status = {"ipv4": {"total": 276, "used": 1, "free": 275}, "ipv6": {"total": 2**63 - 1, "used": 0, "free": 2**63 - 1},
                  "conditions": [{"type": "Accepted", "status": "True", "reason": "Valid", "message": "", "observedGeneration": 1,
                                  "lastTransitionTime": "2026-01-02T03:04:05Z"}]}
        path, token = "/apis/penstock.io/v1alpha1/addresspools/both", lab.cluster.tokens[SYNC_USER]
        merge = "application/merge-patch+json"
        code, answer = lab.cluster.request("PATCH", f"{path}/status", {"spec": {"priority": 7}, "status": status}, token, merge)
        equal(code, 200, f"a patch of the status: {answer}")
        equal(answer["status"], status, "the status")
        equal((answer["spec"]["priority"], answer["metadata"]["generation"]), (0, 1), "the spec stays")
        equal(lab.cluster.request("PATCH", path, {"spec": {"priority": 7}}, token, merge)[0], 403, "a patch of the spec")
        columns = lab.kubectl("get", "apool", "both").split("\n")
        check(columns[0].split() == ["NAME", "AUTO", "PRIORITY", "USED4", "FREE4", "USED6", "FREE6", "ACCEPTED", "AGE"], columns[0])
        equal(columns[1].split()[:8], ["both", "true", "0", "1", "275", "0", str(2**63 - 1), "True"], "columns")
    finally:
        lab.remove_pools()
