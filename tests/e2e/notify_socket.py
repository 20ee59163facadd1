# SPDX-License-Identifier: Apache-2.0
"""A service manager's socket (sd_notify(3)): receives the reports of a daemon and the process ids of their senders,
which the kernel fills in."""
import dataclasses
import os
import socket
import struct
import threading

from fixture import until

PASS_CREDENTIALS, CREDENTIALS = 16, 2  # SO_PASSCRED, SCM_CREDENTIALS


@dataclasses.dataclass(frozen=True)
class Report:
    pid: int
    lines: tuple

    def __contains__(self, line):
        return line in self.lines

    @property
    def status(self):
        return next((line.removeprefix("STATUS=") for line in self.lines if line.startswith("STATUS=")), None)


class NotifySocket:
    """name: a path, or "@" and an abstract name, which is one of the current network namespace."""

    def __init__(self, name):
        self.name = name
        self.reports = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, PASS_CREDENTIALS, 1)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)
        if not name.startswith("@"):
            os.chmod(name, 0o777)
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        while True:
            data, extra, _, _ = self._socket.recvmsg(65536, socket.CMSG_SPACE(12))
            (pid,) = [struct.unpack("3i", value)[0] for level, kind, value in extra
                      if (level, kind) == (socket.SOL_SOCKET, CREDENTIALS)]
            self.reports.append(Report(pid, tuple(data.decode().split("\n"))))

    def environment(self, watchdog_ms=0):
        """A command prefix that sets the variables of a service."""
        words = ["env", f"NOTIFY_SOCKET={self.name}"]
        return words + [f"WATCHDOG_USEC={watchdog_ms * 1000}"] if watchdog_ms else words

    def until(self, what, condition, since=0, patience_s=20):
        """Waits for a report for which the condition holds. Returns its index."""
        found = []

        def look():
            found[:] = [i for i, report in enumerate(self.reports[since:], since) if condition(report)][:1]
            return found
        until(f"{what}; reports: {self.reports[-8:]}", look, patience_s)
        return found[0]
