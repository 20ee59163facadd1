# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a live penstockd and penstock-sync. The cases run each expression of the dashboards and
rules that scripts/monitoring writes, and promtool's checks of metrics, rules and alerts.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list]"""
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from fixture import Lab, all_cases  # noqa: E402

import flow_cases  # noqa: E402,F401
import latency_cases  # noqa: E402,F401
import query_cases  # noqa: E402,F401
import rule_cases  # noqa: E402,F401

CASE_TIMEOUT_S = 300


def reason_missing():
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [name for name in ("prometheus", "promtool") if not shutil.which(name)]
    return f"{' and '.join(missing)} missing: scripts/setup observe" if missing else ""


def main():
    return runner.run_suite(all_cases(), reason_missing, lambda suite, case: Lab(suite.build, case.variant, "observe"), CASE_TIMEOUT_S)


if __name__ == "__main__":
    sys.exit(main())
