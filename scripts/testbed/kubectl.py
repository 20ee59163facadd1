# SPDX-License-Identifier: Apache-2.0
"""kubectl, bound to one kubeconfig. A call costs at least a fifth of a second, so a step passes all its
objects in one call."""
import json
import os
import subprocess


class KubectlFailed(Exception):
    pass


class Kubectl:
    def __init__(self, program, kubeconfig, cache):
        self._program, self._kubeconfig = program, kubeconfig
        # Discovery is cached by address, and addresses are reused: the cache is a folder of the run.
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig, "KUBECACHEDIR": cache, "HOME": cache}

    def __call__(self, *words, stdin=None, timeout_s=60):
        asked = subprocess.run([self._program, *words], input=stdin, capture_output=True, text=True, timeout=timeout_s, env=self._environment)
        if asked.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(words)}: {asked.stderr.strip()}")
        return asked.stdout

    def json(self, *words):
        return json.loads(self(*words, "-o", "json"))

    def apply(self, *objects, options=()):
        return self("apply", *options, "-f", "-", stdin=as_list(objects))

    def create(self, *objects):
        return self("create", "-f", "-", stdin=as_list(objects))

    def patch(self, kind, name, namespace, change):
        return self("patch", kind, name, "-n", namespace, "--type=merge", "-p", json.dumps(change))

    def can_i(self, verb, resource, user):
        asked = subprocess.run([self._program, "auth", "can-i", verb, resource, "--as", user], capture_output=True, text=True, timeout=60,
                               env=self._environment)
        answer = asked.stdout.strip()
        if answer not in ("yes", "no"):
            raise KubectlFailed(f"kubectl auth can-i {verb} {resource}: {asked.stderr.strip()}")
        return answer == "yes"

    def delete(self, kind, *names, namespace):
        return self("delete", kind, *names, "-n", namespace, "--wait=false", "--ignore-not-found")


def as_list(objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
