# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions, read by mandoc and the shells.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list]"""
import os
import shutil
import sys
import time

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
    options = runner.parser().parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    chosen = [case for case in all_cases() if suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if why_not := reason_missing():
        for case in chosen:
            suite.tell("SKIP", case.name, time.monotonic(), why_not)
    else:
        suite.begin()
        runner.run_cases(suite, chosen, lambda case: Lab(suite.build, case.variant, "package"))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
