# SPDX-License-Identifier: Apache-2.0
"""Cluster cases: penstock-sync follows a real kube-apiserver and etcd, changed by kubectl. The cases assert
packets and the output of penstockctl.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list] [--server NAME] [--minutes N] [--minute]

All cases run against each available API server (scripts/testbed/build-api-server); an unavailable one counts
as one skipped case with its reason. --minute: outages last a minute instead of 20 s."""
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "scripts")]

import peers  # noqa: E402
import runner  # noqa: E402
from cluster_bed import RBAC, ClusterLab  # noqa: E402
from fixture import all_cases  # noqa: E402
from lab import state  # noqa: E402
from testbed import api_servers  # noqa: E402
from testbed.cluster import Cluster  # noqa: E402

import access_cases, address_cases, chart_cases, endpoint_cases, event_cases, gateway_cases, outage_cases, peer_cases, pool_cases, service_cases  # noqa: E402,E401,F401

CASE_TIMEOUT_S = 300
# Each lane has an API server of its own, of 0.5 GB. Cases wait for back-offs and Leases most of their time, so
# there are more lanes than processors.
LANES_PER_PROCESSOR = 2


def main():
    parser = runner.parser()
    parser.add_argument("--server", choices=("current", "1.20"))
    parser.add_argument("--minutes", type=float, default=60, help="for building API servers that are not there")
    parser.add_argument("--minute", action="store_true")
    options = parser.parse_args()
    outage_cases.outage_s = 60 if options.minute else 20
    suite = runner.Runner(options, CASE_TIMEOUT_S)
    names = api_servers.names() if not options.server else (options.server,)
    chosen = {name: [case for case in all_cases() if suite.chooses(f"{name} {case.name}")] for name in names}
    if options.list:
        print("\n".join(f"{name} {case.name}" for name in names for case in chosen[name]))
        return 0
    suite.begin()
    deadline = time.monotonic() + 60 * options.minutes
    servers = obtain(suite, names, chosen, deadline)
    if any(server.name != "1.20" for server in servers):
        peers.obtain([case for cases in chosen.values() for case in cases], deadline)
    if any(case.name.startswith("chart.") for cases in chosen.values() for case in cases):
        chart_cases.obtain(deadline)
    for server in servers:
        run_against(suite, server, chosen[server.name])
    return suite.end()


def obtain(suite, names, chosen, deadline):
    """Builds all servers before the first case, because the time for building must not count as time of
    cases."""
    servers = []
    for name in names:
        began = time.monotonic()
        try:
            if os.geteuid() != 0:
                raise api_servers.NotToBeHad("network namespaces need root")
            if chosen[name]:
                servers.append(api_servers.obtain(name, deadline))
        except api_servers.NotToBeHad as why:
            suite.tell("SKIP", f"{name} API server", began, str(why))
    return servers


def run_against(suite, server, cases):
    cases = sorted(cases, key=lambda case: -case.waits_s)
    turns = runner.Turns(len(cases))
    lanes = min(len(cases), LANES_PER_PROCESSOR * len(os.sched_getaffinity(0)))
    suite.run_side_by_side([(f"{server.name} API server", lambda: run_lane(suite, server, cases, turns))] * lanes, lanes)


def run_lane(suite, server, cases, turns):
    """Runs case after case against one API server, because its start takes longer than a case. After a failed
    case it is replaced."""
    began, run = time.monotonic(), None
    try:
        while True:
            if run is None:
                run = state.Run.start("apiserver")
                cluster = ready_cluster(run, server)
            number = turns.take()
            if number is None:
                return
            case = cases[number]
            outcome = suite.run(f"{server.name} {case.name}", case.function, lambda: ClusterLab(cluster, suite.build, case, number))
            if outcome == "FAIL":
                run.undo()
                run = None
            else:
                cluster.clear(f"case-{number}")
    except Exception:
        suite.tell("FAIL", f"{server.name} API server", began, f"\n{traceback.format_exc()}")
    finally:
        if run:
            run.undo()


def ready_cluster(run, server):
    began, cluster = time.monotonic(), Cluster(run, server)
    cluster.start()
    cluster.grant(RBAC)
    # One write, so that lines of two processes do not mix.
    sys.stdout.write(f"{server.name}: kube-apiserver {cluster.server_version} ({server.origin}), ready after {time.monotonic() - began:.0f} s\n")
    sys.stdout.flush()
    return cluster


if __name__ == "__main__":
    sys.exit(main())
