"""How long to wait for other programs. Seconds count only while no task of this machine waits for a processor (pressure stall information), so
that programs beside a test make it slower and not wrong."""
import time

# What the clock allows all the same, as a multiple of the patience: a wait that fails has to end.
CLOCK_FACTOR = 12


class Patience:
    def __init__(self, seconds):
        self.seconds = seconds
        self._began = time.monotonic()
        self._stalled = _stalled_s()

    def lasts(self):
        elapsed = time.monotonic() - self._began
        if elapsed > CLOCK_FACTOR * self.seconds:
            return False
        return elapsed - (_stalled_s() - self._stalled) < self.seconds


def _stalled_s():
    """Since boot, the seconds in which a task waited for a processor. Without the file (CONFIG_PSI) only the clock's limit is left."""
    try:
        with open("/proc/pressure/cpu") as pressure:
            return int(pressure.readline().rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return time.monotonic()
