# SPDX-License-Identifier: Apache-2.0
"""penstockctl top: rates of real traffic, in a pipe and on a terminal of 80 columns."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from fixture import VIP, Background, case, check, equal, until
from lab.patience import Patience
from manifests import endpoints, service


def rates(lab, *words):
    done = lab.gateway.ctl("top", "--once", "--interval", "0.5", "-o", "json", *words)
    equal(done.returncode, 0, f"exit code of top ({done.stderr.strip()})")
    return json.loads(done.stdout)


class Screen:
    """penstockctl on a terminal of its own."""

    def __init__(self, lab, *words, columns=80, lines=24):
        self._terminal, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._former = termios.tcgetattr(other)
        self._other = other
        self.process = subprocess.Popen([lab.gateway.program("penstockctl"), "--gateway", lab.gateway.address, *words],
                                        stdin=other, stdout=other, stderr=subprocess.STDOUT, start_new_session=True,
                                        env={**os.environ, "TERM": "xterm"})
        self.text = ""

    def read(self):
        while select.select([self._terminal], [], [], 0)[0]:
            self.text += os.read(self._terminal, 65536).decode()
        return self.text

    def frame(self):
        """The lines of the newest whole frame, without escape sequences."""
        frames = self.read().split("\033[H")
        return [re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", line) for line in frames[-2].split("\r\n")] if len(frames) > 2 else []

    def press(self, keys):
        self.text = ""
        os.write(self._terminal, keys.encode())

    def ended(self, what, expected):
        patience = Patience(10)
        while self.process.poll() is None:
            self.read()
            check(patience.lasts(), f"top does not end after {what}")
            time.sleep(0.01)
        self.read()
        equal(self.process.returncode, expected, f"exit code after {what}")
        equal(termios.tcgetattr(self._other), self._former, f"settings of the terminal after {what}")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._terminal)
        os.close(self._other)


@case()
def top_reports_the_rates_of_traffic_to_pipes(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    idle = rates(lab)
    equal(idle["rows"][0]["new_flows_per_second"], 0, "new flows of an idle Service")
    with Background(lambda: lab.get().status) as load:
        until("requests are answered", lambda: len(load.results) > 5, patience_s=20)
        before = len(load.results)
        began = time.monotonic()
        rows = {row["name"]: row for row in rates(lab)["rows"]}
        rate = (len(load.results) - before) / (time.monotonic() - began)
        for view, column in (("backends", "new_flows_per_second"), ("workers", "packets_per_second"), ("ports", "rx_packets_per_second"),
                             ("clients", "connections")):
            answer = rates(lab, "--view", view)
            check(max(row[column] for row in answer["rows"]) > 0, f"no traffic in the view {view}: {answer}")
            check(answer["totals"]["rx_packets_per_second"] > 0, f"no traffic in the totals of {view}")
    web = rows["default/web:http/TCP"] if "default/web:http/TCP" in rows else next(iter(rows.values()))
    # Both intervals overlap, but are not the same.
    check(rate / 3 < web["new_flows_per_second"] < rate * 3, f"{web['new_flows_per_second']} new flows a second, {rate:.1f} requests")
    equal(load.errors, [], "errors of the clients")
    table = lab.gateway.ctl("top", "--once", "--interval", "0.2", "--view", "workers", "--sort", "busy%")
    check("BUSY%v" in table.stdout and "\033" not in table.stdout, table.stdout)
    refused = lab.gateway.ctl("top", "--view", "pods")
    equal(refused.returncode, 2, "exit code of a wrong view")


@case()
def top_on_a_terminal_has_views_sort_and_an_end(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    with contextlib.closing(Screen(lab, "top", "--interval", "0.1")) as screen:
        until("a frame is shown", lambda: any(line.startswith("SERVICE") for line in screen.frame()), patience_s=20)
        frame = screen.frame()
        equal(len(frame), 24, f"lines of {frame}")
        check(max(map(len, frame)) <= 80, f"a line has more than 80 columns: {frame}")
        check("\033[?1049h" in screen.text and "\033[7m" in screen.text, "no full screen or no colour")
        screen.press("w>>>")
        until("the workers are sorted by their load", lambda: any("BUSY%v" in line for line in screen.frame()), patience_s=20)
        screen.press("r")
        until("the order is reversed", lambda: any("BUSY%^" in line for line in screen.frame()), patience_s=20)
        screen.press("q")
        screen.ended("q", 0)
        check(screen.text.rstrip().endswith("\033[?1049l"), f"the screen is not restored: {screen.text[-40:]!r}")
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.closing(Screen(lab, "top", "--view", "drops", columns=40, lines=10)) as screen:
            until("a frame is shown", lambda: "DROP-REASON" in screen.read(), patience_s=20)
            screen.process.send_signal(number)
            screen.ended(f"signal {number}", 0)
            check(screen.text.rstrip().endswith("\033[?1049l"), "the screen is not restored")


@case()
def top_survives_a_restart_of_the_gateway(lab):
    lab.start(service("web", external_ips=[VIP]), endpoints("web"))
    with contextlib.closing(Screen(lab, "top", "--interval", "0.1", "--timeout", "1")) as screen:
        until("a frame is shown", lambda: any(line.startswith("SERVICE") for line in screen.frame()), patience_s=20)
        lab.gateway.daemon.terminate()
        lab.gateway.daemon.wait()
        until("the error is shown", lambda: any("not reachable" in line for line in screen.frame()), patience_s=20)
        lab.gateway.start_daemon()
        screen.text = ""
        until("rates are shown again", lambda: any(line.startswith("in ") for line in screen.frame()), patience_s=30)
        screen.press("q")
        screen.ended("q", 0)
