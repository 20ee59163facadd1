# SPDX-License-Identifier: Apache-2.0
"""helm, kubeconform and the schemas for it, from the cache. Shared with suite cluster."""
import functools
import json
import os
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
# Kinds without a schema: our CustomResourceDefinition, which the API server checks, and those of the Prometheus operator, whose
# schemas are in no module that can be fetched. Their fields are not checked.
SKIPPED = ("CustomResourceDefinition", "PodMonitor", "ServiceMonitor")

_had, _why_not = {}, {}


def obtain(deadline):
    """Builds what is missing before the first case: the time for building must not count as time of cases."""
    for name, make in (("helm", lambda: os.path.join(HELM.obtain(deadline), "helm")),
                       ("kubeconform", lambda: os.path.join(KUBECONFORM.obtain(deadline), "kubeconform")),
                       ("schemas", lambda: _schemas(deadline))):
        try:
            _had[name] = make()
        except NotToBeHad as why:
            _why_not[name] = f"{name}: {why}"


def had(name):
    if name not in _had:
        raise Skip(_why_not.get(name, f"{name} was not built"))
    return _had[name]


def _schemas(deadline):
    folder = os.path.join(cache(), "schemas", KUBERNETES)
    if not os.path.isdir(folder):
        with open(os.path.join(module_folder("k8s.io/kubernetes", KUBERNETES, deadline), "api/openapi-spec/swagger.json")) as file:
            made = schemas.of_openapi(json.load(file))
        schemas.write(f"{folder}.{os.getpid()}", made)
        os.rename(f"{folder}.{os.getpid()}", folder)
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
    """(exit code, output) for the documents of a text."""
    own = desk.file("schemas")
    if not os.path.isdir(own):
        schemas.write(own, schemas.of_crd(values_of(os.path.join(CHART, "crds/addresspools.yaml"))))
    done = subprocess.run([had("kubeconform"), "-strict", "-summary", "-skip", ",".join(SKIPPED),
                           *(word for folder in (had("schemas"), own) for word in ("-schema-location", os.path.join(folder, schemas.LOCATION)))],
                          input=text, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def conforms(desk, text, what):
    code, said = kubeconform(desk, text)
    equal(code, 0, f"kubeconform of {what}: {said}")
