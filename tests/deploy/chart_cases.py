# SPDX-License-Identifier: Apache-2.0
"""charts/penstock and docs/deploy."""
import copy
import json
import os
import re
import shutil
import subprocess

import chart_tools
from chart_tools import CHART, DEPLOY, ROOT, conforms, documents, helm, kubeconform, template, values_files, values_of
from charting import kustomize_base
from fixture import Skip, case, check, equal

obtain = chart_tools.obtain
# Values that the schema refuses, and a part of the error.
BAD = {
    "external without gateways": ({"mode": "external"}, "gateways"),
    "a misspelt value": ({"gateway": {"hugepage": "2Mi"}}, "hugepage"),
    "a mode": ({"mode": "edge"}, "mode"),
    "a prefix": ({"sync": {"allowedExternalCidrs": ["203.0.113.1"]}}, "allowedExternalCidrs"),
    "an option": ({"gateway": {"extraArgs": ["idle=poll"]}}, "extraArgs"),
    "a port": ({"sync": {"httpPort": 0}}, "httpPort"),
    "tables on a disk": ({"gateway": {"hostPaths": {"tables": "/var/lib/tables"}}}, "tables"),
    "a gateway without a port": ({"mode": "external", "external": {"gateways": ["192.0.2.1"]}}, "gateways"),
    "a gateway with port 0": ({"mode": "external", "external": {"gateways": ["192.0.2.1:0"]}}, "gateways"),
    "a gateway with port 65536": ({"mode": "external", "external": {"gateways": ["192.0.2.1:65536"]}}, "gateways"),
    "a gateway twice": ({"mode": "external", "external": {"gateways": ["192.0.2.1:9106", "192.0.2.1:9106"]}}, "gateways"),
    "no CPU": ({"gateway": {"cpu": 0}}, "cpu"),
    "no CPU, as text": ({"gateway": {"cpu": "0m"}}, "cpu"),
    "a negative CPU": ({"sync": {"cpu": -1}}, "cpu"),
    "a CPU in bytes": ({"gateway": {"cpu": "3Gi"}}, "cpu"),
    "no memory": ({"sync": {"memory": "0Mi"}}, "memory"),
    "no device": ({"gateway": {"devices": {"example.com/nic": 0}}}, "/gateway/devices/"),
    "a roll of no gateway": ({"gateway": {"maxUnavailable": "0%"}}, "maxUnavailable"),
    "a roll of no gateway, as number": ({"gateway": {"maxUnavailable": 0}}, "maxUnavailable"),
    "evictions of no replica": ({"external": {"podDisruptionBudget": {"maxUnavailable": "0%"}}}, "maxUnavailable"),
    "no replica": ({"external": {"replicas": 0}}, "replicas"),
    "a prefix length": ({"sync": {"allowedExternalCidrs": ["203.0.113.0/200"]}}, "allowedExternalCidrs"),
    "egress without a port of the API server": ({"external": {"networkPolicy": {"apiServerPorts": []}}}, "apiServerPorts"),
    "an interval of 0": ({"monitors": {"interval": "0s"}}, "interval"),
    "a kind of monitor": ({"monitors": {"kind": "podmonitor"}}, "kind"),
    "a negative drain": ({"gateway": {"drainSeconds": -1}}, "drainSeconds"),
}
# Values that contradict each other, and a part of the error.
CONTRADICTIONS = {
    "the default of another port": ({"sync": {"httpPort": 9105}}, "gateway.metricsPort and sync.httpPort are both 9105"),
    "two ports": ({"gateway": {"healthPort": 9200, "metricsPort": 9200}}, "gateway.healthPort and gateway.metricsPort are both 9200"),
    "health and penstock-sync": ({"gateway": {"healthPort": 9107}}, "gateway.healthPort and sync.httpPort are both 9107"),
    "one folder for two": ({"gateway": {"hostPaths": {"state": "/run/penstock"}}}, "gateway.hostPaths.run and gateway.hostPaths.state are both /run/penstock"),
    "too little memory": ({"gateway": {"hugepages": "none"}}, "gateway.memory is 512Mi, and must exceed gateway.memoryMb (1024 MB)"),
    "exactly the memory": ({"gateway": {"hugepages": "none", "memory": "1Gi"}}, "must exceed gateway.memoryMb"),
    "too little memory, in bytes": ({"gateway": {"hugepages": "none", "memory": 1073741824}}, "must exceed gateway.memoryMb"),
    "an option twice": ({"gateway": {"extraArgs": ["--memory-mb=2048"]}}, "gateway.extraArgs: --memory-mb is set by the chart; use gateway.memoryMb"),
    "another mode": ({"gateway": {"extraArgs": ["--mode=external"]}}, "gateway.extraArgs: --mode is set by the chart"),
    "another source": ({"sync": {"extraArgs": ["--kubeconfig=/x"]}}, "sync.extraArgs: --kubeconfig is set by the chart"),
    "a second port": ({"mode": "external", "external": {"gateways": ["192.0.2.1:9106"]}, "sync": {"extraArgs": ["--http=0.0.0.0:1"]}},
                      "sync.extraArgs: --http is set by the chart; use sync.httpPort"),
    "excluded from nothing": ({"sync": {"addressPoolsExclude": ["10.0.0.0/8"]}}, "sync.addressPoolsExclude requires sync.allocateAddresses: true"),
}
# Values that look like those above, and are valid.
SIMILAR = (
    {"mode": "external", "external": {"gateways": ["192.0.2.1:65535", "192.0.2.2:1"]}, "sync": {"httpPort": 9105}},
    {"gateway": {"cpu": "0.5", "memory": "0.5Gi"}, "sync": {"cpu": "10m"}},
    {"gateway": {"hugepages": "none", "memory": "1.5Gi"}},
    {"gateway": {"hugepages": "none", "memory": "1100M"}},
    {"gateway": {"extraArgs": ["--memory-lock=on", "--listen=192.0.2.1:9106"]}},
    {"gateway": {"maxUnavailable": "100%"}},
)


def name_of(path):
    return os.path.basename(path)


@case()
def helm_lint_accepts_each_values_file(lab):
    for path in values_files():
        helm(lab, "lint", "--strict", CHART, "--values", path)
    said = helm(lab, "lint", "--strict", CHART)
    check("0 chart(s) failed" in said, said)


@case()
def kubeconform_accepts_each_rendering(lab):
    for path in values_files():
        rendering = template(lab, values_of(path), "--kube-version", chart_tools.KUBERNETES)
        conforms(lab, rendering, name_of(path))
        kinds = [document["kind"] for document in documents(rendering)]
        lab.remarks.append(f"{name_of(path)}: {len(kinds)} objects")
    misspelt = template(lab, {}).replace("terminationGracePeriodSeconds:", "terminationGraceSeconds:")
    code, said = kubeconform(lab, misspelt)
    check(code != 0 and "terminationGraceSeconds" in said, f"kubeconform accepts a misspelt field: {said}")


@case()
def monitors_conform_to_the_schemas_of_the_prometheus_operator(lab):
    chart_tools.had("schemas of monitors")
    for kind, field in (("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")):
        rendering = template(lab, {"monitors": {"kind": kind, "labels": {"release": "prometheus"}}})
        code, said = kubeconform(lab, rendering)
        equal(code, 0, f"kubeconform of a {kind}: {said}")
        for right, wrong in ((f"{field}:", f"{field}s:"), ("honorLabels:", "honourLabels:"), ("targetLabel:", "target:"),
                             ("matchLabels:\n      app.kubernetes.io/name", "matchLabel:\n      app.kubernetes.io/name")):
            parts = rendering.split("---\n")
            at = next(i for i, part in enumerate(parts) if f"kind: {kind}\n" in part)
            check(right in parts[at], f"the {kind} has no {right}")
            parts[at] = parts[at].replace(right, wrong)
            code, said = kubeconform(lab, "---\n".join(parts))
            check(code != 0 and kind in said, f"kubeconform accepts a {kind} with {wrong} {said}")


@case()
def wrong_and_contradicting_values_are_refused(lab):
    for what, (values, part) in {**BAD, **CONTRADICTIONS}.items():
        try:
            template(lab, values)
        except kustomize_base.HelmFailed as refusal:
            check(part in str(refusal), f"{what}: {part} is not in {refusal}")
        else:
            check(False, f"{what} was accepted")
    for values in SIMILAR:
        template(lab, values)


@case()
def requests_for_hugepages_are_whole_pages(lab):
    for pages, megabytes, expected in (("2Mi", 1023, "1024Mi"), ("2Mi", 1024, "1024Mi"), ("1Gi", 1025, "2Gi")):
        rendering = template(lab, {"gateway": {"hugepages": pages, "memoryMb": megabytes}})
        daemon, = (document for document in documents(rendering) if document["kind"] == "DaemonSet")
        equal(daemon["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"][f"hugepages-{pages}"], expected, f"{megabytes} MB")


@case()
def old_api_servers_get_their_version_of_a_disruption_budget(lab):
    for version, expected in (("1.20.0", "policy/v1beta1"), ("1.21.0", "policy/v1")):
        budgets = [one for one in documents(template(lab, {}, "--kube-version", version)) if one["kind"] == "PodDisruptionBudget"]
        equal([one["apiVersion"] for one in budgets], [expected], f"for {version}")


@case()
def each_value_has_an_effect(lab):
    """A value that is in no template would be refused by nothing and do nothing."""
    text = "".join(open(os.path.join(CHART, "templates", name)).read() for name in os.listdir(os.path.join(CHART, "templates")))
    for section, values in values_of(os.path.join(CHART, "values.yaml")).items():
        for value in values if isinstance(values, dict) else ():
            check(re.search(rf"\.{value}\b", text), f"{section}.{value} is in no template")


@case()
def the_kustomize_base_is_that_of_the_chart(lab):
    helm_program = chart_tools.had("helm")
    made = kustomize_base.files(helm_program, lab.path, CHART)
    for name, text in made.items():
        with open(os.path.join(DEPLOY, name)) as file:
            equal(file.read(), text, f"docs/deploy/{name} (run scripts/chart)")
    present = {os.path.relpath(os.path.join(folder, name), DEPLOY) for folder, _, names in os.walk(DEPLOY) for name in names if name.endswith(".yaml")}
    equal(present, set(made), "files of docs/deploy")
    check(not re.search(r"helm\.sh|managed-by", "".join(made.values())), "labels of a release are left")


def kubectl_program():
    kubectl = shutil.which("kubectl")
    if not kubectl:
        raise Skip("there is no kubectl; scripts/setup deploy installs it")
    said = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True, timeout=60).stdout
    if "Kustomize Version" not in said:
        raise Skip("the kustomize of this kubectl is older than 4.5")
    return kubectl


@case()
def kustomize_builds_each_folder(lab):
    kubectl = kubectl_program()
    for folder, kinds in (("node", {"DaemonSet", "ClusterRole", "CustomResourceDefinition", "PodDisruptionBudget"}),
                          ("external", {"Deployment", "NetworkPolicy", "Namespace"}), ("monitoring", {"PodMonitor"})):
        built = subprocess.run([kubectl, "kustomize", os.path.join(DEPLOY, folder)], capture_output=True, text=True, timeout=60)
        equal(built.returncode, 0, f"kubectl kustomize docs/deploy/{folder}: {built.stderr}")
        check(kinds <= {document["kind"] for document in documents(built.stdout)}, f"{folder} lacks one of {kinds}")
        conforms(lab, built.stdout, f"docs/deploy/{folder}")


@case()
def the_overlay_of_the_page_replaces_what_it_names(lab):
    with open(os.path.join(DEPLOY, "README.md")) as page:
        overlay = re.search(r"```yaml\n(.*?)```", page.read(), re.DOTALL).group(1)
    shutil.copytree(DEPLOY, lab.file("docs/deploy"))
    os.mkdir(lab.file("overlay"))
    with open(lab.file("overlay/kustomization.yaml"), "w") as file:
        file.write(overlay)
    built = subprocess.run([kubectl_program(), "kustomize", lab.file("overlay")], capture_output=True, text=True, timeout=60)
    equal(built.returncode, 0, f"kubectl kustomize: {built.stderr}")
    daemon, = (document for document in documents(built.stdout) if document["kind"] == "DaemonSet")
    containers = daemon["spec"]["template"]["spec"]["containers"]
    equal({container["image"] for container in containers}, {"registry.example/penstock:0.1.0"}, "images")
    ranges = [word for word in containers[1]["args"] if word.startswith("--allowed-external-cidrs")]
    equal((ranges, len(set(containers[1]["args"])), "--in-cluster=on" in containers[1]["args"]),
          (["--allowed-external-cidrs=198.51.100.0/24"], len(containers[1]["args"]), True), "options of penstock-sync")


@case()
def the_version_is_that_of_the_programs(lab):
    with open(os.path.join(ROOT, "meson.build")) as file:
        version = re.search(r"^  version: '([^']+)'", file.read(), re.MULTILINE).group(1)
    chart = values_of(os.path.join(CHART, "Chart.yaml"))
    equal((chart["appVersion"], chart["version"]), (version, version), "appVersion and version of the chart")


@case()
def renderings_differ_only_where_a_value_says_so(lab):
    """Values that mean the default change nothing."""
    defaults = values_of(os.path.join(CHART, "values.yaml"))
    equal(template(lab, copy.deepcopy(defaults)), template(lab, {}), "the rendering with all defaults given")
    without = documents(template(lab, {"monitors": {"kind": "PodMonitor"}}))
    text = json.dumps(without)
    check("prometheus.io/scrape" not in text, "Pods are scraped twice")
    daemon, = (document for document in without if document["kind"] == "DaemonSet")
    ports = {port["name"] for container in daemon["spec"]["template"]["spec"]["containers"] for port in container["ports"]}
    monitor, = (document for document in without if document["kind"] == "PodMonitor")
    equal({endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}, ports - {"health"}, "scraped ports")
    check(all(endpoint["honorLabels"] for endpoint in monitor["spec"]["podMetricsEndpoints"]), "labels of the metrics are replaced")
