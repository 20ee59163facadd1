# SPDX-License-Identifier: Apache-2.0
"""docs/deploy: the kustomize base, rendered from the chart. One file for each template, without the labels of a
release."""
import json
import os
import re
import subprocess

RELEASE, NAMESPACE = "penstock", "penstock-system"
LICENSE = "# SPDX-License-Identifier: Apache-2.0\n"
MARK = "# Rendered from charts/penstock by scripts/chart. Change the chart, not this file.\n"
HELM_LABEL = re.compile(r"^ *(app\.kubernetes\.io/(instance|managed-by)|helm\.sh/chart): .*\n", re.MULTILINE)
SOURCE = re.compile(r"^# Source: penstock/(?:templates|crds)/(\S+)\n", re.MULTILINE)
# Values that no cluster keeps; docs/deploy/README.md names them.
EXAMPLE = {"sync": {"allowedExternalCidrs": ["203.0.113.0/24"]}, "external": {"gateways": ["192.0.2.1:9106"]}}
NODE = {**EXAMPLE, "mode": "node", "namespace": {"create": True}}
EXTERNAL = {**EXAMPLE, "mode": "external"}
# Folder: (values, file of the folder -> files of the chart).
FOLDERS = {
    "common": (NODE, {"rbac.yaml": ("namespace.yaml", "rbac.yaml"), "addresspool-crd.yaml": ("addresspools.yaml",)}),
    "node": (NODE, {name: (name,) for name in ("penstockd-daemonset.yaml", "disruption-budget.yaml")}),
    "external": (EXTERNAL, {name: (name,) for name in ("sync-deployment.yaml", "disruption-budget.yaml", "network-policy.yaml")}),
}
# helm assumes an old release if it is not given one.
KUBERNETES = "1.36.0"
MONITORS = {"node-monitor.yaml": {**NODE, "monitors": {"kind": "PodMonitor"}},
            "external-monitor.yaml": {**EXTERNAL, "monitors": {"kind": "PodMonitor"}}}


class HelmFailed(Exception):
    pass


def helm(program, home, *words, stdin=None):
    """Runs helm without files and caches of the user."""
    environment = {**os.environ, "HOME": home, **{f"HELM_{name}_HOME": os.path.join(home, "helm") for name in ("CACHE", "CONFIG", "DATA")}}
    done = subprocess.run([program, *words], input=stdin, capture_output=True, text=True, timeout=120, env=environment)
    if done.returncode != 0:
        raise HelmFailed(f"helm {' '.join(words)}: {done.stderr.strip()}{done.stdout.strip()}")
    return done.stdout


def template(program, home, chart, values, *options):
    """The rendering of the chart. `values`: JSON is YAML."""
    return helm(program, home, "template", RELEASE, chart, "--namespace", NAMESPACE, "--kube-version", KUBERNETES, "--values", "-", *options, stdin=json.dumps(values))


def by_source(rendering):
    """{file of the chart: its documents as text}."""
    parts = re.split(r"^---\n", rendering, flags=re.MULTILINE)
    found = {}
    for part in parts:
        source = SOURCE.search(part)
        body = HELM_LABEL.sub("", SOURCE.sub("", part)).strip("\n")
        if source and body.strip():
            found[source[1]] = found[source[1]] + "\n---\n" + body if source[1] in found else body
    return {name: body.removeprefix(LICENSE) for name, body in found.items()}


def file_of(*bodies):
    return LICENSE + MARK + "\n---\n".join(bodies) + "\n"


def kustomization(resources):
    return (LICENSE + MARK + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
            + "".join(f"  - {name}\n" for name in resources))


def files(program, home, chart):
    """{path below docs/deploy: text}."""
    made = {}
    for folder, (values, names) in FOLDERS.items():
        rendered = by_source(template(program, home, chart, values, "--include-crds"))
        for name, sources in names.items():
            made[f"{folder}/{name}"] = file_of(*(rendered[source] for source in sources))
        made[f"{folder}/kustomization.yaml"] = kustomization([*(["../common"] if folder != "common" else []), *names])
    for name, values in MONITORS.items():
        made[f"monitoring/{name}"] = file_of(by_source(template(program, home, chart, values))["monitors.yaml"])
    made["monitoring/kustomization.yaml"] = kustomization(MONITORS)
    return made
