"""End-to-end cases: penstockd, penstock-sync and penstockctl as they are shipped, between real clients and real servers.

run.py --build DIR [--filter REGEX] [--counts FILE] [--list]

Each case gets a network of its own (scripts/lab) and takes it down again. Case names end in the requirements that they stand for.
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
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts")]

from fixture import Lab, Skip, all_cases  # noqa: E402
from lab import state  # noqa: E402

import changes_cases, drop_cases, fail_static_cases, forwarding_cases, ipv6_cases, linux_cases, management_cases  # noqa: E402,E401,F401
import policy_cases, snat_cases, start_cases  # noqa: E402,E401,F401

CASE_TIMEOUT_S = 120


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--build", required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--counts")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [case for case in all_cases() if re.search(options.filter, case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0

    totals = {"ok": 0, "FAIL": 0, "SKIP": 0}
    why_not = reason_to_skip_all()
    if why_not is None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupted)
        signal.signal(signal.SIGALRM, _too_late)
        # A thousand connections at once, and the sockets of the load around them.
        resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        state.sweep()
    for case in chosen:
        began = time.monotonic()
        outcome, detail = ("SKIP", why_not) if why_not else run(case, os.path.abspath(options.build))
        totals[outcome] += 1
        print(f"{outcome:4} {case.name} ({time.monotonic() - began:.1f} s){': ' if detail else ''}{detail}", flush=True)
    if options.counts:
        with open(options.counts, "a") as file:
            print(totals["ok"], totals["FAIL"], totals["SKIP"], file=file)
    return 0 if options.counts else int(totals["FAIL"] > 0)


def reason_to_skip_all():
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not os.path.exists("/dev/net/tun"):
        return "no /dev/net/tun"
    return None


def run(case, build):
    lab = Lab(build, case.variant)
    signal.alarm(CASE_TIMEOUT_S)
    try:
        case.function(lab)
        return "ok", "; ".join(lab.remarks)
    except Skip as skip:
        return "SKIP", str(skip)
    except Exception:
        return "FAIL", f"\n{traceback.format_exc()}{lab.last_words()}"
    finally:
        signal.alarm(0)
        lab.end()


def _interrupted(*_):
    raise KeyboardInterrupt


def _too_late(*_):
    raise TimeoutError(f"the case takes longer than {CASE_TIMEOUT_S} s")


if __name__ == "__main__":
    sys.exit(main())
