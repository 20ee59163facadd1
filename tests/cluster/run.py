"""Cluster cases: penstock-sync follows a real kube-apiserver and etcd, driven by kubectl; asserted are packets and what penstockctl shows.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list] [--server NAME] [--minutes N] [--minute]

All cases run against each API server that can be had (scripts/testbed/build-api-server); one that cannot is one skipped case with its
reason. --minute: outages last a minute instead of 20 s.
"""
import argparse
import os
import re
import resource
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "scripts")]

from bed import RBAC, ClusterLab  # noqa: E402
from fixture import Skip, all_cases  # noqa: E402
from lab import state  # noqa: E402
from testbed import api_servers  # noqa: E402
from testbed.cluster import Cluster  # noqa: E402

import access_cases, endpoint_cases, event_cases, gateway_cases, outage_cases, service_cases  # noqa: E402,E401,F401

CASE_TIMEOUT_S = 300


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--build", required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--counts")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--server", choices=("current", "1.20"))
    parser.add_argument("--minutes", type=float, default=60, help="for building API servers that are not there")
    parser.add_argument("--minute", action="store_true")
    options = parser.parse_args()
    outage_cases.outage_s = 60 if options.minute else 20
    names = api_servers.names() if not options.server else (options.server,)
    chosen = {name: [case for case in all_cases() if re.search(options.filter, f"{name} {case.name}")] for name in names}
    if options.list:
        print("\n".join(f"{name} {case.name}" for name in names for case in chosen[name]))
        return 0

    totals = {"ok": 0, "FAIL": 0, "SKIP": 0}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    signal.signal(signal.SIGALRM, _too_late)
    # A thousand connections at once, and the sockets of the load around them.
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    state.sweep()
    for server in obtain(names, chosen, options.minutes, totals):
        run_against(server, chosen[server.name], os.path.abspath(options.build), totals)
    if options.counts:
        with open(options.counts, "a") as file:
            print(totals["ok"], totals["FAIL"], totals["SKIP"], file=file)
    return 0 if options.counts else int(totals["FAIL"] > 0)


def obtain(names, chosen, minutes, totals):
    """All of them before the first case: the time for building them is no time for cases."""
    servers, deadline = [], time.monotonic() + 60 * minutes
    for name in names:
        began = time.monotonic()
        try:
            if os.geteuid() != 0:
                raise api_servers.NotToBeHad("network namespaces need root")
            if chosen[name]:
                servers.append(api_servers.obtain(name, deadline))
        except api_servers.NotToBeHad as why:
            tell(totals, "SKIP", f"{name} API server", began, str(why))
    return servers


def run_against(server, cases, build, totals):
    """One API server for all of them: starting it takes longer than a case."""
    began = time.monotonic()
    run = state.Run.start("apiserver")
    try:
        cluster = Cluster(run, server)
        cluster.start()
        cluster.grant(RBAC)
        print(f"{server.name}: kube-apiserver {cluster.server_version} ({server.origin}), ready after {time.monotonic() - began:.0f} s",
              flush=True)
        for number, case in enumerate(cases):
            began = time.monotonic()
            outcome, detail = run_case(cluster, build, case, number)
            tell(totals, outcome, f"{server.name} {case.name}", began, detail)
            cluster.clear(f"case-{number}")
    except Exception:
        tell(totals, "FAIL", f"{server.name} API server", began, f"\n{traceback.format_exc()}")
    finally:
        run.undo()


def run_case(cluster, build, case, number):
    lab = None
    signal.alarm(CASE_TIMEOUT_S)
    try:
        lab = ClusterLab(cluster, build, case, number)
        case.function(lab)
        return "ok", "; ".join(lab.remarks)
    except Skip as skip:
        return "SKIP", str(skip)
    except Exception:
        return "FAIL", f"\n{traceback.format_exc()}{lab.last_words() if lab else ''}"
    finally:
        signal.alarm(0)
        if lab:
            lab.end()


def tell(totals, outcome, name, began, detail):
    totals[outcome] += 1
    print(f"{outcome:4} {name} ({time.monotonic() - began:.1f} s){': ' if detail else ''}{detail}", flush=True)


def _interrupted(*_):
    raise KeyboardInterrupt


def _too_late(*_):
    raise TimeoutError(f"the case takes longer than {CASE_TIMEOUT_S} s")


if __name__ == "__main__":
    sys.exit(main())
