# SPDX-License-Identifier: Apache-2.0
"""End-to-end cases: penstockd, penstock-sync and penstockctl as they are shipped, between real clients and
real servers.

run.py --build DIR [--filter REGEX] [--rooms ROOM,...] [--counts FILE] [--list]

--rooms runs only the cases of these files: `rollout` is rollout_cases.py.

Each case creates a network of its own (scripts/lab) and takes it down again. Case names end in the IDs of the
requirements that they test."""
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "scripts")]

import runner  # noqa: E402
from fixture import Lab, all_cases  # noqa: E402

import announce_cases, capture_cases, changes_cases, context_cases, drop_cases, fail_static_cases, forwarding_cases, ipv6_cases, linux_cases, management_cases  # noqa: E402,E401,F401
import health_cases, kernel_nat_cases, pmtu_cases, policy_cases, port_life_cases, presence_cases, protocols_cases  # noqa: E402,E401,F401
import doctor_cases, flow_records_cases, link_cases, other_family_cases, rollout_cases, sctp_cases, service_manager_cases, snat_cases, start_cases, top_cases  # noqa: E402,E401,F401

CASE_TIMEOUT_S = 300


def main():
    parser = runner.parser()
    parser.add_argument("--rooms", type=lambda names: set(names.split(",")))
    options = parser.parse_args()
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    chosen = [case for case in all_cases()
              if suite.chooses(case.name) and (not options.rooms or case.name.partition(".")[0] in options.rooms)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    why_not = reason_to_skip_all()
    if why_not is None:
        suite.begin()
    if why_not:
        for case in chosen:
            suite.tell("SKIP", case.name, time.monotonic(), why_not)
    else:
        runner.run_cases(suite, chosen, lambda case: Lab(suite.build, case.variant))
    return suite.end()


def reason_to_skip_all():
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun"
    return None


if __name__ == "__main__":
    sys.exit(main())
