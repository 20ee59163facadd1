# SPDX-License-Identifier: Apache-2.0
"""Common parts of the suites with a lab: options, interruption, parallel cases, a time limit for each case,
results and counts."""
import argparse
import collections
import contextlib
import json
import os
import re
import resource
import signal
import sys
import time
import traceback

from fixture import Skip
from lab import state
from lab.patience import Patience

INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
BUSY_FACTOR = 3  # a case that hangs on a busy machine ends after this multiple of its limit


def parser(description=None):
    made = argparse.ArgumentParser(description=description, allow_abbrev=False)
    made.add_argument("--build", required=True)
    made.add_argument("--filter", default="")
    made.add_argument("--counts")
    made.add_argument("--list", action="store_true")
    return made


class Runner:
    def __init__(self, options, case_timeout_s):
        self.options, self._timeout_s = options, case_timeout_s
        self.build = os.path.abspath(options.build)
        self._totals = {"ok": 0, "FAIL": 0, "SKIP": 0}

    def chooses(self, name):
        return re.search(self.options.filter, name) is not None

    def begin(self):
        """Called once, before the first lab."""
        for number in INTERRUPTIONS:
            signal.signal(number, _interrupted)
        signal.signal(signal.SIGALRM, self._too_late)
        # For a thousand connections at once, plus the sockets of the load generators.
        resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        state.sweep()

    def run_side_by_side(self, tasks, width=None):
        """Runs tasks, each a name and a function without arguments that calls run() or tell(), in processes of
        their own. As many run at once as there are processors. A lab's names derive from its process, so labs
        do not collide. Results are counted here."""
        width = width or len(os.sched_getaffinity(0))
        waiting, running = collections.deque(tasks), {}
        try:
            while waiting or running:
                while waiting and len(running) < width:
                    self._fork(*waiting.popleft(), running)
                pid, status = os.wait()
                name, began, results = running.pop(pid)
                with os.fdopen(results) as file:
                    self._add(name, began, file.read(), status)
        finally:  # on interruption each process takes its lab down
            for pid in running:
                with contextlib.suppress(ProcessLookupError):  # reaped when the interruption came
                    os.kill(pid, signal.SIGTERM)
            for pid in running:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def _fork(self, name, task, running):
        results, write_end = os.pipe()
        sys.stdout.flush()
        # An interruption before the process is in `running` would leave it behind.
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
        try:
            if pid := os.fork():
                running[pid] = name, time.monotonic(), results
                os.close(write_end)
            else:
                self._carry_out(task, write_end)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)

    def _carry_out(self, task, write_end):
        """The life of a task's process. Does not return: the caller's loop is the parent's."""
        code = 1
        try:
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)
                self._totals = dict.fromkeys(self._totals, 0)
                task()
                code = 0
            except KeyboardInterrupt:
                pass
            except BaseException:
                traceback.print_exc()
            for number in INTERRUPTIONS:  # the lab is taken down whatever comes
                signal.signal(number, signal.SIG_IGN)
            try:
                _undo_own_runs()
            except Exception:
                code = 1
                traceback.print_exc()
            os.write(write_end, json.dumps(self._totals).encode())
            sys.stdout.flush()
        finally:
            os._exit(code)

    def _add(self, name, began, results, status):
        for outcome, count in json.loads(results or "{}").items():
            self._totals[outcome] += count
        if status != 0:
            self.tell("FAIL", name, began, f"its process ended with {os.waitstatus_to_exitcode(status)}")
            state.sweep()  # labs that run hold their locks

    def run(self, name, function, make_lab, reason_to_repeat=None):
        """Runs function(lab), records the outcome and returns it. The lab is always taken down. After a failure,
        reason_to_repeat(lab) may name a fault of the lab itself: the outcome "AGAIN" is printed and not counted."""
        began, lab = time.monotonic(), None
        self._began, self._patience = began, Patience(self._timeout_s)
        signal.alarm(self._timeout_s)
        try:
            lab = make_lab()
            function(lab)
            outcome, detail = "ok", "; ".join(lab.remarks)
        except Skip as skip:
            outcome, detail = "SKIP", str(skip)
        except Exception:
            outcome, detail = "FAIL", f"\n{traceback.format_exc()}{lab.last_words() if lab else ''}"
            if reason := lab and reason_to_repeat and reason_to_repeat(lab):
                outcome, detail = "AGAIN", reason
        finally:
            signal.alarm(0)
            if lab:
                lab.end()
        self.tell(outcome, name, began, detail)
        return outcome

    def tell(self, outcome, name, began, detail):
        if outcome in self._totals:
            self._totals[outcome] += 1
        # One write, so that lines of two processes do not mix.
        sys.stdout.write(f"{outcome:4} {name} ({time.monotonic() - began:.1f} s){': ' if detail else ''}{detail}\n")
        sys.stdout.flush()

    def end(self):
        """The exit code. If a counts file is requested, its reader judges the counts, not the exit code."""
        if self.options.counts:
            with open(self.options.counts, "a") as file:
                print(self._totals["ok"], self._totals["FAIL"], self._totals["SKIP"], file=file)
            return 0
        return int(self._totals["FAIL"] > 0)

    def _too_late(self, *_):
        """A case on a busy machine goes on: only time counts in which no program waits for a processor."""
        if self._patience.lasts() and time.monotonic() - self._began < BUSY_FACTOR * self._timeout_s:
            signal.alarm(5)
            return
        raise TimeoutError(f"the case takes longer than {self._timeout_s} s")


class Turns:
    """The numbers 0 to count - 1, each for one of the processes that take them. They are bytes in a pipe, so
    a process that is killed blocks no other."""

    def __init__(self, count):
        self._end, write_end = os.pipe()
        os.write(write_end, bytes(range(count)))
        os.close(write_end)

    def take(self):
        """The next number, or None after the last."""
        taken = os.read(self._end, 1)
        return taken[0] if taken else None


def run_cases(suite, cases, make_lab, width=None):
    """Runs cases in parallel, and then the cases that must run alone, one after another."""
    def task(case):
        return case.name, lambda: suite.run(case.name, case.function, lambda: make_lab(case))
    suite.run_side_by_side([task(case) for case in cases if not case.alone], width)
    suite.run_side_by_side([task(case) for case in cases if case.alone], width=1)


def run_suite(cases, reason_missing, make_lab, case_timeout_s):
    """The whole of a suite's run.py: lists the chosen cases, skips them with the reason why they cannot run, or runs each in
    make_lab(suite, case). Returns the exit code."""
    options = parser().parse_args()
    suite = Runner(options, case_timeout_s)
    chosen = [case for case in cases if suite.chooses(case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if why_not := reason_missing():
        for case in chosen:
            suite.tell("SKIP", case.name, time.monotonic(), why_not)
    else:
        suite.begin()
        run_cases(suite, chosen, lambda case: make_lab(suite, case))
    return suite.end()


def _undo_own_runs():
    """Undoes what is left of a lab that was interrupted while it was made."""
    for run in state.runs():
        if run.number == str(os.getpid()):
            run.undo()


def _interrupted(*_):
    # A case's process gets the signal of a terminal or of `timeout` and that of its parent. The second one must
    # not interrupt the taking down of the lab.
    for number in INTERRUPTIONS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
