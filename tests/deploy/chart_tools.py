# SPDX-License-Identifier: Apache-2.0
"""helm, kubeconform and the schemas for it, from the cache. Shared with suite cluster."""
import functools
import json
import os
import shutil
import subprocess

import yaml

from charting import kustomize_base, schemas
from fixture import Skip, equal
from testbed.api_servers import CURRENT, NotToBeHad, cache
from testbed.go_programs import HELM, KUBECONFORM, module_folder

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "charts/penstock")
DEPLOY = os.path.join(ROOT, "docs/deploy")
VALUES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "values")
KUBERNETES = CURRENT[0][0]
# Without a schema: the API server checks it in suite cluster.
SKIPPED = ("CustomResourceDefinition",)
OPERATOR, OPERATOR_VERSION = "github.com/prometheus-operator/prometheus-operator", "v0.85.0"
MONITORS = ("PodMonitor", "ServiceMonitor")  # kinds of the Prometheus operator

_had, _why_not = {}, {}


def obtain(deadline):
    """Builds what is missing before the first case: the time for building must not count as time of cases."""
    for name, make in (("helm", lambda: os.path.join(HELM.obtain(deadline), "helm")),
                       ("kubeconform", lambda: os.path.join(KUBECONFORM.obtain(deadline), "kubeconform")),
                       ("schemas", lambda: _schemas(deadline)),
                       ("schemas of monitors", lambda: _monitor_schemas(deadline))):
        try:
            _had[name] = make()
        except NotToBeHad as why:
            _why_not[name] = f"{name}: {why}"


def had(name):
    if name not in _had:
        raise Skip(_why_not.get(name, f"{name} was not built"))
    return _had[name]


def _schemas(deadline):
    def make():
        with open(os.path.join(module_folder("k8s.io/kubernetes", KUBERNETES, deadline), "api/openapi-spec/swagger.json")) as file:
            return schemas.of_openapi(json.load(file))
    return _cached(KUBERNETES, make)


def _monitor_schemas(deadline):
    def make():
        crds = os.path.join(module_folder(OPERATOR, OPERATOR_VERSION, deadline), "example/prometheus-operator-crd")
        made = {}
        for kind in MONITORS:
            made |= schemas.of_crd(values_of(os.path.join(crds, f"monitoring.coreos.com_{kind.lower()}s.yaml")))
        return made
    return _cached(f"prometheus-operator-{OPERATOR_VERSION}", make)


def _cached(name, make):
    folder = os.path.join(cache(), "schemas", name)
    if not os.path.isdir(folder):
        new = f"{folder}.{os.getpid()}"
        schemas.write(new, make())
        try:
            os.rename(new, folder)  # a folder that exists is complete
        except OSError:  # another run was faster
            shutil.rmtree(new)
    return folder


@functools.cache
def values_files():
    return tuple(sorted(os.path.join(VALUES, name) for name in os.listdir(VALUES)))


def values_of(path):
    with open(path) as file:
        return yaml.safe_load(file)


def helm(desk, *words, stdin=None):
    return kustomize_base.helm(had("helm"), desk.path, *words, stdin=stdin)


def template(desk, values, *options):
    return kustomize_base.template(had("helm"), desk.path, CHART, values, *options)


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def kubeconform(desk, text):
    """(exit code, output) for the documents of a text. Monitors are left out if their schemas cannot be had; the case of the
    monitors is then skipped, with the reason."""
    own = desk.file("schemas")
    if not os.path.isdir(own):
        schemas.write(own, schemas.of_crd(values_of(os.path.join(CHART, "crds/addresspools.yaml"))))
    monitors = _had.get("schemas of monitors")
    skipped, folders = (SKIPPED, (monitors,)) if monitors else (SKIPPED + MONITORS, ())
    done = subprocess.run([had("kubeconform"), "-strict", "-summary", "-skip", ",".join(skipped),
                           *(word for folder in (had("schemas"), own, *folders) for word in ("-schema-location", os.path.join(folder, schemas.LOCATION)))],
                          input=text, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def conforms(desk, text, what):
    code, said = kubeconform(desk, text)
    equal(code, 0, f"kubeconform of {what}: {said}")
