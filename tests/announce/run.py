# SPDX-License-Identifier: Apache-2.0
"""VIPs announced by routing daemons of others: FRR and BIRD beside the gateway, as docs/examples/announce configures
them, and FRR, BIRD and GoBGP as the router. The cases assert the router's kernel routes and a client's requests over them.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list] [--minutes N]"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from daemons import obtain_gobgp, reason_missing  # noqa: E402
from fixture import Lab, all_cases  # noqa: E402

import bfd_cases, bgp_cases, share_cases  # noqa: E402,E401,F401

CASE_TIMEOUT_S = 300


def main():
    parser = runner.parser()
    parser.add_argument("--minutes", type=float, default=10, help="for building GoBGP if it is not there")
    options = parser.parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    chosen = [case for case in all_cases() if suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    why_not = "network namespaces need root" if os.geteuid() != 0 else reason_missing()
    if why_not:
        for case in chosen:
            suite.tell("SKIP", case.name, time.monotonic(), why_not)
    else:
        if any("gobgp" in case.name for case in chosen):
            obtain_gobgp(options.minutes)
        suite.begin()
        runner.run_cases(suite, chosen, lambda case: Lab(suite.build, case.variant, "announce"))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
