# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, the kustomize base and the documentation site, without a cluster: helm lint and template, kubeconform
against the schemas of a Kubernetes release, kustomize, and a strict build of the site.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list] [--minutes N]

A missing program counts as skipped cases with its reason."""
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from fixture import all_cases  # noqa: E402

import chart_cases  # noqa: E402
import site_cases  # noqa: E402,F401

CASE_TIMEOUT_S = 300


class Desk:
    """A folder for one case, in place of a lab."""

    def __init__(self):
        self.remarks = []
        self.path = tempfile.mkdtemp(prefix="penstock-deploy-")

    def file(self, *parts):
        return os.path.join(self.path, *parts)

    def end(self):
        shutil.rmtree(self.path)

    def last_words(self):
        return ""


def main():
    parser = runner.parser()
    parser.add_argument("--minutes", type=float, default=30, help="for building helm and kubeconform if they are not there")
    options = parser.parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    chosen = [case for case in all_cases() if suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    suite.begin()
    if any(case.name.startswith("chart.") for case in chosen):
        chart_cases.obtain(time.monotonic() + 60 * options.minutes)
    runner.run_cases(suite, chosen, lambda case: Desk())
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
