# SPDX-License-Identifier: Apache-2.0
"""Two or three gateways with copies of each other's connections (--shares, addresses in the plan), an FRR router, real
clients and endpoints. The cases assert that the connections of a lost gateway continue at its heir.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list]

Environment, for longer runs by hand:
PENSTOCK_SHARE_FLOWS: TCP connections of the lost gateway in many_cases (default 10,000)"""
import os
import resource
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), *(os.path.join(ROOT, "tests", name) for name in ("e2e", "announce", "upgrade")),
                os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from daemons import reason_missing  # noqa: E402
from fixture import Lab, all_cases  # noqa: E402

import channel_cases, copy_cases, fail_back_cases, failed_link_cases, holder_cases, many_cases, page_cases  # noqa: E402,E401
import sctp_share_cases, split_cases, stray_cases, three_cases, upkeep_cases  # noqa: E402,E401

ROOMS = (channel_cases, copy_cases, fail_back_cases, failed_link_cases, holder_cases, many_cases, page_cases, sctp_share_cases, split_cases,
         stray_cases, three_cases, upkeep_cases)
CASE_TIMEOUT_S = 300


def main():
    options = runner.parser().parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    # The cases of other suites are imported with what they share.
    own = {room.__name__ for room in ROOMS}
    chosen = [case for case in all_cases() if case.function.__module__ in own and suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    why_not = "network namespaces need root" if os.geteuid() != 0 else reason_missing()
    if why_not:
        for case in chosen:
            suite.tell("SKIP", case.name, time.monotonic(), why_not)
    else:
        suite.begin()
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a socket for each flow
        runner.run_cases(suite, chosen, lambda case: Lab(suite.build, case.variant, "shares"))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
