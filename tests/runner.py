"""What the suites with a lab have in common: options, interruptions, each case within its time, telling and counting."""
import argparse
import os
import re
import resource
import signal
import time
import traceback

from fixture import Skip
from lab import state


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
        """Once, before the first lab."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupted)
        signal.signal(signal.SIGALRM, self._too_late)
        # A thousand connections at once, and the sockets of the load around them.
        resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        state.sweep()

    def run(self, name, function, make_lab):
        """function(lab), and what became of it. The lab is taken down whatever happens."""
        began, lab = time.monotonic(), None
        signal.alarm(self._timeout_s)
        try:
            lab = make_lab()
            function(lab)
            outcome, detail = "ok", "; ".join(lab.remarks)
        except Skip as skip:
            outcome, detail = "SKIP", str(skip)
        except Exception:
            outcome, detail = "FAIL", f"\n{traceback.format_exc()}{lab.last_words() if lab else ''}"
        finally:
            signal.alarm(0)
            if lab:
                lab.end()
        self.tell(outcome, name, began, detail)

    def tell(self, outcome, name, began, detail):
        self._totals[outcome] += 1
        print(f"{outcome:4} {name} ({time.monotonic() - began:.1f} s){': ' if detail else ''}{detail}", flush=True)

    def end(self):
        """The exit code. Where counts are asked for, whoever asked judges them."""
        if self.options.counts:
            with open(self.options.counts, "a") as file:
                print(self._totals["ok"], self._totals["FAIL"], self._totals["SKIP"], file=file)
            return 0
        return int(self._totals["FAIL"] > 0)

    def _too_late(self, *_):
        raise TimeoutError(f"the case takes longer than {self._timeout_s} s")


def _interrupted(*_):
    raise KeyboardInterrupt
