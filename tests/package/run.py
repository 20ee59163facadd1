# SPDX-License-Identifier: Apache-2.0
"""The products of scripts/package: Debian packages, units, image, and the page that installs them; and the manual pages
and completions, read by mandoc and the shells.

run.py --build DIR [--packages DIR] [--filter REGEX] [--counts FILE] [--list]

--packages: the folder that scripts/package has written. What cannot be had (a registry, a program) counts as skipped
cases with its reason."""
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from fixture import Lab, all_cases  # noqa: E402

import products  # noqa: E402
import deb_cases, image_cases, machine_cases, page_cases, unit_cases  # noqa: E402,E401,F401

CASE_TIMEOUT_S = 600
PROGRAMS = ("mandoc", "zsh", "fish", "lintian", "umoci")
# What the cases of a file need from the registry.
NEEDS = {"machine": {"pool"}, "unit": {"pool"}, "image": {"image", "bundle", "spdx"}}


def reason_missing():
    if os.geteuid() != 0:
        return "labs, and files of a system, need root"
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    return f"{' and '.join(missing)} missing: scripts/setup package" if missing else ""


def main():
    parser = runner.parser()
    parser.add_argument("--packages", default=os.path.join(ROOT, "build-package"))
    options = parser.parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    chosen = [case for case in all_cases() if suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if why_not := reason_missing():
        for case in chosen:
            suite.tell("SKIP", case.name, time.monotonic(), why_not)
        return suite.end()
    suite.begin()
    rooms = {case.name.partition(".")[0] for case in chosen}
    products.obtain(os.path.abspath(options.packages), set().union(*(NEEDS.get(room, set()) for room in rooms)))
    runner.run_cases(suite, sorted(chosen, key=lambda case: -case.waits_s), lambda case: Lab(suite.build, case.variant, "package"))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
