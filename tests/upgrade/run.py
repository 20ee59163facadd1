# SPDX-License-Identifier: Apache-2.0
"""penstockd ends, by kill -9 and otherwise, and starts again under long-lived and new flows of real TCP stacks.
The cases assert that connections go on with the same endpoint and the same SNAT address and port.

run.py --build DIR [--other-layout DIR] [--filter REGEX] [--counts FILE] [--list]

--other-layout: folder with a penstockd whose tables have another layout (-Dtable_layout=test). Without it, the
cases that need it are skipped.

Environment, for longer runs by hand; the aims are in parentheses:
PENSTOCK_RESTARTS: restarts after kill -9 with a thousand connections (default 3; 20)
PENSTOCK_UPGRADES: upgrades with a thousand connections, and with BGP sessions (default 5; 50)
PENSTOCK_LAYOUT_CHANGES: changes to another layout and another number of workers (default 6; 10)
PENSTOCK_UPGRADE_KILLS: rounds of kill -9 at each step of an upgrade (default 1)
PENSTOCK_CONNECTIONS: connections that a start after kill -9 finds (default 100,000; 1,000,000)"""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "tests/announce"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from fixture import Lab, all_cases  # noqa: E402

import adoption_cases  # noqa: E402,F401
import kill_cases  # noqa: E402,F401
import layout_cases  # noqa: E402
import leaving_cases  # noqa: E402,F401
import overlap_cases  # noqa: E402,F401
import restart_cases  # noqa: E402,F401
import routing_cases  # noqa: E402,F401
import transport_cases  # noqa: E402,F401

CASE_TIMEOUT_S = 900


def main():
    parser = runner.parser()
    parser.add_argument("--other-layout")
    options = parser.parse_args()
    layout_cases.other_folder = options.other_layout and os.path.abspath(options.other_layout)
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    chosen = [case for case in all_cases() if suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if os.geteuid() != 0:
        for case in chosen:
            suite.tell("SKIP", case.name, time.monotonic(), "network namespaces need root")
    else:
        suite.begin()
        runner.run_cases(suite, chosen, lambda case: Lab(suite.build, case.variant, "upgrade"))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
