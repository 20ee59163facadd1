# SPDX-License-Identifier: Apache-2.0
"""Time limits for waiting for other programs. Seconds count only while no task of this machine waits for a
processor (pressure stall information). Programs that run beside a test therefore slow it down but do not make
it fail."""
import time

# The limit in wall-clock time, as a multiple of the patience, because a failing wait has to end.
CLOCK_FACTOR = 12


class Patience:
    def __init__(self, seconds):
        self.seconds = seconds
        self._began = time.monotonic()
        self._stalled = stalled_s()

    def lasts(self):
        elapsed = time.monotonic() - self._began
        if elapsed > CLOCK_FACTOR * self.seconds:
            return False
        return elapsed - (stalled_s() - self._stalled) < self.seconds


def stalled_s():
    """Seconds since boot in which a task waited for a processor. If the file is missing (CONFIG_PSI), only
    the wall-clock limit applies."""
    try:
        with open("/proc/pressure/cpu") as pressure:
            return int(pressure.readline().rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return time.monotonic()
