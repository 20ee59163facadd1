# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions, read by mandoc and the shells.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list]"""
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from fixture import Lab, all_cases  # noqa: E402

import page_cases  # noqa: E402,F401

CASE_TIMEOUT_S = 600
PROGRAMS = ("mandoc", "zsh", "fish")


def reason_missing():
    if os.geteuid() != 0:
        return "folders of labs need root"
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    return f"{' and '.join(missing)} missing: scripts/setup package" if missing else ""


def main():
    return runner.run_suite(all_cases(), reason_missing, lambda suite, case: Lab(suite.build, case.variant, "package"), CASE_TIMEOUT_S)


if __name__ == "__main__":
    sys.exit(main())
