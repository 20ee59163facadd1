# SPDX-License-Identifier: Apache-2.0
"""Runs meson's test suites and counts single cases; meson itself counts programs. Called by scripts/test.

test_results.py targets BUILD FILTER SUITE...     prints the ninja targets that these suites need
test_results.py run BUILD FILTER COUNTS SUITE...  runs them; prints failures and reasons of skips; appends
                                                  "passed failed skipped" to COUNTS

FILTER is a regular expression on the names of test programs; "" matches all. RUN_WITH in the environment is
the command prefix for programs built for another processor, as in "qemu-aarch64 -L /usr/aarch64-linux-gnu".
"""
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor


def tests_of(build, name_filter, suites):
    listed = json.loads(subprocess.check_output(["meson", "introspect", build, "--tests"], text=True))
    # meson writes a suite as "project:suite".
    return [test for test in listed
            if {name.rpartition(":")[2] for name in test["suite"]} & set(suites) and re.search(name_filter, test["name"])]


def targets(build, name_filter, suites):
    known = json.loads(subprocess.check_output(["meson", "introspect", build, "--targets"], text=True))
    path_of = {target["id"]: os.path.relpath(target["filename"][0], build) for target in known}
    for path in sorted({path_of[target] for test in tests_of(build, name_filter, suites) for target in test["depends"]}):
        print(path)
    return 0


def run_one(build, test, reports):
    """Returns (test, exit code or None for a timeout, its output, path of its report)."""
    report = os.path.join(reports, test["name"].replace("/", "_").replace(" ", "_") + ".xml")
    words = list(test["cmd"])
    if os.path.isabs(words[0]) and os.path.commonpath([words[0], os.path.realpath(build)]) == os.path.realpath(build):
        # an interpreter of this machine needs no prefix
        words = os.environ.get("RUN_WITH", "").split() + words
    if test["protocol"] == "gtest":
        words.append(f"--gtest_output=xml:{report}")
    code, output = run_while_it_works(words, test["timeout"] * TIMEOUT_FACTOR, cwd=test["workdir"], env={**os.environ, **test["env"]})
    return test, code, output, report


# Sanitized programs are up to ten times slower, and shared machines slower still.
TIMEOUT_FACTOR = 10
# A program that waits for an event for ever uses less than this in its limit. One that waits for a processor,
# at the lowest priority (SCHED_IDLE), gets more.
WORKS_S = 0.1
POLL_S = 1.0


class Work:
    """Whether a program still works. So a limit does not depend on the load of the machine. limit_s 0: no limit."""

    def __init__(self, limit_s, now_s):
        self._limit_s, self._printed, self._used_s, self._since_s = limit_s, 0, 0.0, now_s

    def is_over(self, now_s, printed, used_s):
        """printed: bytes so far. used_s: processor time so far. True after limit_s of processor time, or of time in
        which the program printed nothing and used less than WORKS_S of processor time."""
        if printed != self._printed or used_s >= self._used_s + WORKS_S:
            self._printed, self._used_s, self._since_s = printed, used_s, now_s
        return 0 < self._limit_s <= max(used_s, now_s - self._since_s)


def run_while_it_works(words, limit_s, **options):
    """Returns the exit code and the output. The code is None if the program and its descendants were ended."""
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, **options) as program:
            work, code = Work(limit_s, time.monotonic()), None
            while code is None:
                try:
                    code = program.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    ticks = ticks_of_tree(program.pid)
                    used_s = sum(ticks.values()) / os.sysconf("SC_CLK_TCK")
                    if work.is_over(time.monotonic(), os.fstat(output.fileno()).st_size, used_s):
                        for pid in ticks:
                            with contextlib.suppress(ProcessLookupError):
                                os.kill(pid, signal.SIGKILL)
                        break
        output.seek(0)
        return code, output.read().decode(errors="replace")


def ticks_of_tree(root):
    """Processor time of a process and of its descendants by process ID, with that of children that they have waited
    for."""
    children, ticks = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            children.setdefault(int(fields[1]), []).append(int(entry))
            ticks[int(entry)] = sum(map(int, fields[11:15]))
    tree, found = {}, [root]
    while found:
        pid = found.pop()
        tree[pid] = ticks.get(pid, 0)
        found += children.get(pid, [])
    return tree


def reason_of(skip):
    text = " ".join((skip.get("message") or skip.text or "no reason given").split())
    return re.sub(r"^\S+:\d+ ", "", text)  # gtest prefixes the message with file and line


def cases_in(report):
    """Yields (name, "passed" | "failed" | "skipped", reason)."""
    for suite in xml.parse(report).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if case.find("failure") is not None:
                yield name, "failed", ""
            elif skip is not None:
                yield name, "skipped", reason_of(skip)
            elif case.get("status") == "notrun":  # disabled by a DISABLED_ name
                yield name, "skipped", "disabled by its name"
            else:
                yield name, "passed", ""


def run(build, name_filter, counts_file, suites):
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    tests = tests_of(build, name_filter, suites)
    together = [test for test in tests if test["is_parallel"]]
    alone = [test for test in tests if not test["is_parallel"]]  # multi-threaded tests: they need all cores
    with tempfile.TemporaryDirectory() as reports, ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        done = itertools.chain(pool.map(lambda test: run_one(build, test, reports), together), (run_one(build, test, reports) for test in alone))
        for test, code, output, report in done:
            ended = "timed out" if code is None else f"ended with {code}"
            try:
                cases = list(cases_in(report))
            except (FileNotFoundError, xml.ParseError):
                # No gtest, or the program died before its report: the program counts as one case.
                cases = [(test["name"], "passed" if code == 0 else "failed", ended)]
            if code != 0 and not any(outcome == "failed" for _, outcome, _ in cases):
                cases.append((test["name"], "failed", ended))  # for example a sanitizer's report at exit
            for name, outcome, reason in cases:
                totals[outcome] += 1
                if outcome != "passed":
                    print(f"{'SKIP' if outcome == 'skipped' else 'FAIL'} {name}{': ' if reason else ''}{reason}")
            if any(outcome == "failed" for _, outcome, _ in cases):
                print(f"--- {test['name']} {ended}; its output:\n{output.rstrip()}\n---")
    with open(counts_file, "a") as file:
        print(totals["passed"], totals["failed"], totals["skipped"], file=file)
    return 0


if __name__ == "__main__":
    action, *arguments = sys.argv[1:]
    if action == "targets":
        sys.exit(targets(arguments[0], arguments[1], arguments[2:]))
    sys.exit(run(arguments[0], arguments[1], arguments[2], arguments[3:]))
