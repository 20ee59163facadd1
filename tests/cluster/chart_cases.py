# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, the kustomize base and the commands of the installation and backup pages, with a real API server. No
kubelet and no controller runs, so there are no Pods."""
import json
import os
import re
import subprocess
import sys

from address_cases import OPTIONS, address, balancer, pool, until_address, with_pools
from cluster_bed import CRD_VERSION, RBAC
from fixture import Skip, case, check, equal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests/deploy"))

import chart_tools  # noqa: E402

obtain = chart_tools.obtain
DAEMON_SET = ("daemonset", "penstockd")


def blocks_of(page):
    """The blocks of commands of a page, one text each."""
    with open(os.path.join(ROOT, "docs", page)) as file:
        return re.findall(r"^```\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)


class Shell:
    """Runs commands of a page as an administrator of the cluster, in the namespace of the case."""

    def __init__(self, lab, namespace):
        cluster = lab.cluster
        self._lab, self._namespace = lab, namespace
        bin_folder = lab.run.file("bin")
        os.mkdir(bin_folder)
        os.symlink(chart_tools.had("helm"), os.path.join(bin_folder, "helm"))
        os.symlink(cluster.server.program("kubectl"), os.path.join(bin_folder, "kubectl"))
        self._environment = {**os.environ, "KUBECONFIG": cluster.file("admin.kubeconfig"), "HOME": lab.run.path,
                             "KUBECACHEDIR": cluster.file("kubectl-cache"), "PATH": f"{bin_folder}:{os.environ['PATH']}"}
        os.symlink(os.path.join(ROOT, "charts"), lab.run.file("charts"))

    def __call__(self, block):
        script = block.replace("penstock-system", self._namespace)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self._lab.run.path, capture_output=True, text=True, timeout=120,
                              env=self._environment)
        equal(done.returncode, 0, f"exit code of {script}: {done.stdout}{done.stderr}")
        return done.stdout


def with_own_roles(function):
    """The roles that the lane has applied are not those of a Helm release, which therefore could not be installed."""
    def run(lab):
        if lab.cluster.version < CRD_VERSION:
            raise Skip("the custom resource needs an API server of 1.25")
        cluster_wide = ("clusterrole/penstock-sync", "clusterrolebinding/penstock-sync")
        lab.kubectl("delete", *cluster_wide)
        try:
            function(lab)
        finally:
            lab.kubectl("delete", "--ignore-not-found", *cluster_wide)
            lab.kubectl("apply", "-f", RBAC)
            lab.kubectl("delete", "--ignore-not-found", "crd/addresspools.penstock.io")
    run.__name__, run.__module__ = function.__name__, function.__module__
    return run


@case()
@with_own_roles
def commands_of_the_page_install_upgrade_and_remove_the_chart(lab):
    namespace = f"{lab.kube_namespace}-chart"
    shell, kubectl = Shell(lab, namespace), lab.kubectl

    def image():
        daemon = kubectl.json("get", *DAEMON_SET, "-n", namespace)
        return daemon["spec"]["template"]["spec"]["containers"][0]["image"]
    create, values, install, own_pool, upgrade, rollback, remove = blocks_of("install-in-cluster.md")
    shell(create)
    shell(values)
    shell(install)
    equal(image(), "registry.example/penstock:0.1.0", "image after the installation")
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/addresspools.penstock.io")
    shell(own_pool)
    equal(kubectl.json("get", "addresspool", "public")["spec"]["addresses"], ["203.0.113.10-203.0.113.50"], "the pool")
    check(kubectl.can_i("list", "addresspools.penstock.io", f"system:serviceaccount:{namespace}:penstock-sync"), "the release grants no rights")
    shell(upgrade)
    equal(image(), "registry.example/penstock:0.1.1", "image after the upgrade")
    shell(rollback)
    equal(image(), "registry.example/penstock:0.1.0", "image after the rollback")
    shell(remove)
    equal(kubectl.json("get", "daemonset,role,configmap", "-n", namespace, "-l", "app.kubernetes.io/part-of=penstock")["items"], [], "objects after the removal")
    check(kubectl.json("get", "addresspool", "public"), "the pool is gone")


@case()
@with_own_roles
def commands_of_the_page_install_the_control_plane_of_gateways_in_front(lab):
    namespace = f"{lab.kube_namespace}-front"
    shell = Shell(lab, namespace)
    for name in ("edge-sync.pem", "edge-sync.key", "ca.pem"):
        with open(lab.run.file(name), "w") as file:
            file.write("stands for a file of certificates.md\n")
    create, values, install = blocks_of("install-in-front.md")[1:]  # the first one is a drawing
    shell(create)
    shell(values)
    shell(install)
    container, = lab.kubectl.json("get", "deployment", "penstock-sync", "-n", namespace)["spec"]["template"]["spec"]["containers"]
    equal([word for word in container["args"] if word.startswith("--gateway")], ["--gateway=192.0.2.1:9106", "--gateway=192.0.2.2:9106"], "gateways")
    equal(set(lab.kubectl.json("get", "secret", "penstock-sync-tls", "-n", namespace)["data"]), {"tls.crt", "tls.key", "ca.crt"}, "files of the Secret")
    lab.kubectl("get", "networkpolicy,poddisruptionbudget", "penstock-sync", "-n", namespace)


@case()
def each_rendering_is_accepted_by_the_api_server(lab):
    lab.install_pools()
    try:
        for path in chart_tools.values_files():
            values = {**chart_tools.values_of(path), "monitors": {"kind": "none"}}  # these belong to another project
            if values.get("gateway", {}).get("privileged"):  # the API server of the suite admits no such Pods
                values["gateway"] = {**values["gateway"], "privileged": False}
            rendering = chart_tools.kustomize_base.template(chart_tools.had("helm"), lab.run.path, chart_tools.CHART, values,
                                                            "--kube-version", f"{lab.cluster.server_version}.0")
            said = lab.kubectl("apply", "--dry-run=server", "-f", "-", stdin=rendering)
            lab.remarks.append(f"{os.path.basename(path)}: {len(said.splitlines())} objects")
            check(len(said.splitlines()) == len(chart_tools.documents(rendering)), f"{path}: {said}")
    finally:
        lab.remove_pools()


@case(waits_s=20)
@with_pools
def commands_of_the_page_back_up_and_restore_pools_and_addresses(lab):
    *_, save_pools, save_addresses, restore = blocks_of("backup.md")
    shell = Shell(lab, "penstock-system")
    lab.start(kubeconfig=None, options=OPTIONS)
    lab.kubectl.apply(pool("edge", "203.0.113.64/29", avoidBuggyIPs=True))
    # The first address is given to a Service that is not restored first.
    lab.kubectl.apply(balancer(lab, "a"))
    until_address(lab, "a", "203.0.113.64")
    lab.kubectl.apply(balancer(lab, "b"))
    until_address(lab, "b", "203.0.113.65")
    shell(save_pools)
    shell(save_addresses)
    with open(lab.run.file("addresses.txt")) as file:
        equal(sorted(file.read().split("\n")), ["", f"{lab.kube_namespace} a 203.0.113.64", f"{lab.kube_namespace} b 203.0.113.65"], "saved addresses")
    with open(lab.run.file("pools.json")) as file:
        check("status" not in json.load(file)["items"][0], "the status of the pool is saved")

    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    lab.kubectl("delete", "service", "a", "b", "-n", lab.kube_namespace)
    lab.kubectl("delete", "addresspool", "edge")
    # In the other order: without the annotations b would get the lowest address.
    lab.kubectl.apply(balancer(lab, "b"))
    equal(address(lab, "b"), "", "address before the restore")
    lab.kubectl.apply(balancer(lab, "a"))
    shell(restore)
    lab.start_sync("--kubeconfig", lab.cluster.file("sync.kubeconfig"), *OPTIONS)
    until_address(lab, "b", "203.0.113.65")
    until_address(lab, "a", "203.0.113.64")
