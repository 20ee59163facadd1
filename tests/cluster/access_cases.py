# SPDX-License-Identifier: Apache-2.0
"""Authentication and authorization of penstock-sync at the API server: each kind of credentials, and exactly
the rights that docs/deploy grants."""
import json
import os
import shutil

from cluster_bed import CRD_VERSION, DEPLOY, PATIENCE_S, RBAC
from fixture import VIP, Skip, case, check, equal, until
from lab.network import BACKENDS
from testbed.cluster import STRANGER

READ, WRITE = ("get", "list", "watch"), ("create", "patch")
# Exactly the rights of RBAC-001, and those for address pools; endpoints only for API servers without
# EndpointSlices.
CLUSTER_WIDE = {("", "services", verb, "") for verb in READ} | {("", "nodes", verb, "") for verb in READ} \
    | {("discovery.k8s.io", "endpointslices", verb, "") for verb in READ} \
    | {(group, "events", verb, "") for group in ("", "events.k8s.io") for verb in WRITE} \
    | {(group, resource, verb, "") for group, resource in (("", "namespaces"), ("penstock.io", "addresspools")) for verb in READ} \
    | {("", "services/status", "patch", ""), ("penstock.io", "addresspools/status", "patch", "")}
IN_ITS_NAMESPACE = {("coordination.k8s.io", "leases", "create", "")} \
    | {("coordination.k8s.io", "leases", verb, name) for name in ("penstock-sync", "penstock-sync-gateways") for verb in ("get", "patch")}
FALLBACK = {("", "endpoints", verb, "") for verb in READ}


def web(lab):
    return lab.objects.service("web", external_ips=[VIP]), lab.objects.backends("web")


def is_served(lab):
    lab.apply(*web(lab), wait_for=["web/tcp"])
    equal(set(lab.answered_by(9)), set(BACKENDS), "backends that answer")


@case(credentials=("token", "tokenFile", "certificate", "inline"))
def a_kubeconfig_lets_it_in_AUTH001_AUTH002(lab):
    cluster, credentials = lab.cluster, lab.variant["credentials"]
    # relative: beside the kubeconfig
    certificate = {"client-certificate": "sync.crt", "client-key": "sync.key"}
    with open(lab.run.file("token"), "w") as file:
        file.write(cluster.tokens["penstock-sync"])
    kubeconfig = {
        "token": lambda: cluster.write_kubeconfig("case", {"token": cluster.tokens["penstock-sync"]}),
        "tokenFile": lambda: cluster.write_kubeconfig("case", {"tokenFile": lab.run.file("token"), "token": "not-this-one"}),
        "certificate": lambda: cluster.write_kubeconfig("case", certificate),
        "inline": lambda: cluster.write_kubeconfig("case", {"client-certificate-data": cluster.base64_of("sync.crt"),
                                                            "client-key-data": cluster.base64_of("sync.key")},
                                                   **{"certificate-authority-data": cluster.base64_of("ca.crt"),
                                                      "certificate-authority": "/nonexistent"}),
    }[credentials]()
    lab.start(kubeconfig=kubeconfig)
    is_served(lab)


@case()
def another_context_is_chosen_by_name_AUTH001(lab):
    path = lab.cluster.write_kubeconfig("case", {"token": lab.cluster.tokens["penstock-sync"]})
    with open(path) as file:
        document = json.load(file)
    document["contexts"].append({"name": "wrong", "context": {"cluster": "nowhere", "user": "test"}})
    document["clusters"].append({"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}})
    document["current-context"] = "wrong"
    with open(path, "w") as file:
        json.dump(document, file)
    lab.start(kubeconfig=path, options=["--context", "test"])
    is_served(lab)


@case()
def a_pods_own_credentials_let_it_in_AUTH003_RBAC001(lab):
    """A ServiceAccount, with its token in kubelet's place and the API server's address in kubelet's
    environment variables."""
    account = account_of_deployment(lab)
    token = lab.cluster.service_account_token(*account)
    lab.start_gateway()
    secret = lab.run.file("serviceaccount")
    os.mkdir(secret)
    shutil.copy(lab.cluster.file("ca.crt"), secret)
    with open(os.path.join(secret, "token"), "w") as file:
        file.write(token)
    # A mount namespace emulates the pod's file system: a /run of its own, which contains the gateway's socket
    # and the secret. The mounts are not visible outside.
    lab.gateway.wrap_sync = ["unshare", "--mount", "sh", "-euc", """
        lab=$1; shift
        mount --rbind /run /mnt
        mount -t tmpfs tmpfs /run
        mkdir -p "$lab" /run/secrets/kubernetes.io/serviceaccount
        mount --bind "/mnt/${lab#/run/}" "$lab"
        mount --bind "$lab/serviceaccount" /run/secrets/kubernetes.io/serviceaccount
        exec "$@" """, "sh", lab.run.path]
    lab.start_sync("--in-cluster", env={**os.environ, "KUBERNETES_SERVICE_HOST": lab.cluster.address, "KUBERNETES_SERVICE_PORT": str(lab.cluster.port)})
    is_served(lab)


@case()
def its_rights_are_exactly_those_it_needs_RBAC001(lab):
    """The rights as the API server reports them, without those of every authenticated user."""
    namespace, name = account_of_deployment(lab)
    account = lab.cluster.service_account_token(namespace, name)
    lab.kubectl.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": namespace}})
    nobody = lab.cluster.service_account_token(namespace, "nobody")

    def own_rules(token, where):
        (resources, urls), (everybodys, everybodys_urls) = lab.cluster.rules_of(token, where), lab.cluster.rules_of(nobody, where)
        equal(urls - everybodys_urls, set(), "URLs that are no resources")
        return resources - everybodys
    for user, token in (("the ServiceAccount", account), ("the token user", lab.cluster.tokens["penstock-sync"])):
        held = own_rules(token, "default")
        equal(held - CLUSTER_WIDE - FALLBACK, set(), f"rights of {user} beyond RBAC-001")
        equal(CLUSTER_WIDE - held, set(), f"rights of RBAC-001 that {user} lacks")
    equal(own_rules(account, namespace) - CLUSTER_WIDE - FALLBACK, IN_ITS_NAMESPACE, "rights in its own namespace alone")
    for question in ("list secrets", "list pods", "delete services", "update services", "patch services", "create services", "list leases.coordination.k8s.io",
                     "create leases.coordination.k8s.io", "update services/status", "create namespaces", "delete events", "* *"):
        verb, resource = question.split()
        allowed = lab.kubectl.can_i(verb, resource, f"system:serviceaccount:{namespace}:{name}")
        check(not allowed, f"the API server lets it {question}")


@case(waits_s=30)
def reading_is_enough_to_forward_and_may_be_granted_late_APISYNC013_RBAC001(lab):
    kubeconfig = lab.cluster.write_kubeconfig("case", {"token": lab.cluster.tokens[STRANGER]})
    lab.start(*web(lab), kubeconfig=kubeconfig)
    until("it is told that it may not", lambda: "403" in lab.sync_log() or "orbidden" in lab.sync_log(), PATIENCE_S, 0.1)
    equal(lab.gateway.services(), {}, "services before it may read")
    lab.kubectl("create", "clusterrole", "reader", "--verb=get,list,watch", "--resource=services,nodes,endpointslices.discovery.k8s.io")
    lab.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", f"--user={STRANGER}")
    try:
        lab.gateway.until_served({lab.key("web/tcp")}, 120)  # the back-off is 30 to 60 s
        # A refused Event must not stop penstock-sync.
        lab.apply(lab.objects.service("more", 81, external_ips=[VIP, "198.51.100.9"]), lab.objects.backends("more"), wait_for=["more/tcp"])
        equal(set(lab.answered_by(9, port=81)), set(BACKENDS), "backends that answer")
    finally:
        lab.kubectl("delete", "clusterrolebinding,clusterrole", "reader")


@case()
def its_shipped_manifests_are_accepted_by_the_api_server(lab):
    # PodMonitors need the definitions of the Prometheus operator.
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(DEPLOY) for name in names
                   if name.endswith(".yaml") and name != "kustomization.yaml" and not folder.endswith("/monitoring"))
    check(len(files) >= 6, f"files: {files}")
    if lab.cluster.version < (1, 21):  # policy/v1beta1, which the chart renders for it
        files = [path for path in files if not path.endswith("disruption-budget.yaml")]
    # A dry run creates no namespace, and the other objects need one. rbac.yaml, which contains it, is applied
    # already.
    words = [word for path in files for word in ("-f", path)]
    # kubectl refuses fields that the server does not know; before 1.25, the rules of the CRD.
    options = [] if lab.cluster.version >= CRD_VERSION else ["--validate=false"]
    said = lab.kubectl("apply", "--dry-run=server", *options, *words)
    check(len(said.splitlines()) >= len(files), f"fewer objects than files:\n{said}")
    lab.remarks.append(f"{len(said.splitlines())} objects of {len(files)} files")


def account_of_deployment(lab):
    """(namespace, name) of the ServiceAccount in docs/deploy/common/rbac.yaml, which the cluster has applied."""
    account = next((entry for entry in lab.cluster.rbac if entry["kind"] == "ServiceAccount"), None)
    if account is None:
        raise Skip(f"no ServiceAccount in {os.path.relpath(RBAC)}")
    return account["metadata"]["namespace"], account["metadata"]["name"]
