# SPDX-License-Identifier: Apache-2.0
"""kill -9 between any two steps of an upgrade, of either process or of their supervisor. The process that comes to
the step stops itself there (PENSTOCK_TEST_UPGRADE_STOP, control/gateway/upgrade/test_stop.hpp), so that the moment is
exact. Afterwards a gateway forwards, and has all connections."""
import os
import signal

from fixture import case, equal, until
from kept_flows import KeptFlows
from overlap_cases import add_route, children, has_route, request_upgrade, start, twins
from restart_cases import open_flows, tables

# What the processes do, in the order of an upgrade of net_af_packet.
STEPS = ("supervisor starts the successor", "table file created", "EAL started", "routes read", "configuration compiled",
         "ports opened", "ports started", "workers prepared", "prepared", "supervisor orders the hand-over",
         "asked to hand over", "API calls ended", "workers stopped", "handed over", "supervisor orders the take-over",
         "taken over", "locked", "state compared", "names translated", "connections adopted", "table file in force",
         "forwards", "twins served", "API served", "supervisor retires the former process")
SUPERVISOR_STEPS = STEPS[::4]
ROUNDS = int(os.environ.get("PENSTOCK_UPGRADE_KILLS", "1"))


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def has_ended(pid):
    """With all its threads, which may end after the first one, and so with all its locks."""
    try:
        return state_of(pid) in ("", "Z") and len(os.listdir(f"/proc/{pid}/task")) == 1
    except OSError:
        return True


class StopFile:
    """The step at which a process stops itself."""

    def __init__(self, lab):
        self._path = lab.run.file("upgrade-stop")
        os.environ["PENSTOCK_TEST_UPGRADE_STOP"] = self._path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del os.environ["PENSTOCK_TEST_UPGRADE_STOP"]

    def write(self, step):
        with open(self._path + ".new", "w", encoding="ascii") as file:
            file.write(step + "\n")
        os.rename(self._path + ".new", self._path)


def stopped(lab):
    """The process that has stopped itself; 0: none."""
    return next((pid for pid in (lab.gateway.daemon.pid, *children(lab)) if state_of(pid) == "T"), 0)


def send(pid, number):
    """False: the process has ended. There is no successor before the first step, and a former process ends when it has
    handed over."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def kill_at(lab, stop, step, killed):
    """The processes that were killed."""
    [former] = children(lab)
    stop.write(step)
    request_upgrade(lab)
    until(f"a process is at the step: {step}", lambda: stopped(lab), 60)
    stop.write("")
    at_step = stopped(lab)
    victims = {"former": [former], "successor": [pid for pid in children(lab) if pid != former],
               "supervisor": [lab.gateway.daemon.pid]}[killed]
    others = children(lab)
    killed_now = [victim for victim in victims if send(victim, signal.SIGKILL)]
    if at_step not in victims:
        send(at_step, signal.SIGCONT)
    if killed == "supervisor":  # the kernel ends the others with it, and a service manager waits for their end
        until("all processes have ended", lambda: all(has_ended(pid) for pid in others), 20)
    return killed_now


def is_settled(lab):
    """One process is left, and no upgrade is under way; or the supervisor has ended, as it does with its process
    outside an upgrade, and its service manager starts it again."""
    if lab.gateway.daemon.poll() is not None:
        return True
    shown = lab.gateway.ctl("-o", "json", "status")
    return len(children(lab)) == 1 and shown.returncode in (0, 1) and '"state": "RUNNING"' not in shown.stdout


def until_it_forwards(lab, flows, what):
    until(f"one process is left after {what}", lambda: is_settled(lab), 60, 0.05)
    if lab.gateway.daemon.poll() is not None:
        lab.gateway.start_daemon()
    until(f"it answers after {what}", lambda: lab.gateway.ctl("get", "ports").returncode == 0, 30)
    flows.until_all_answered()
    equal(flows.findings(), {}, f"flows that changed after {what}")
    # A process that begins may answer before its workers have made a round.
    until(f"it is ready after {what}", lambda: lab.gateway.ctl("-o", "json", "status").returncode == 0, 30)
    equal(tables(lab)["lost"], [], f"connections lost after {what}, by reason")


@case(killed=("former", "successor", "supervisor"))
def kill_9_between_any_two_steps_of_an_upgrade_leaves_a_gateway_that_forwards(lab):
    killed = lab.variant["killed"]
    steps = SUPERVISOR_STEPS if killed == "supervisor" else STEPS
    with StopFile(lab) as stop:
        stop.write("")
        start(lab)
        add_route(lab)
        kept, supervisor = twins(lab), lab.gateway.daemon.pid
        flows = KeptFlows(lab)
        open_flows(lab, flows, 40)
        count = 0
        with flows:
            flows.until_all_answered()
            for _ in range(ROUNDS):
                for step in steps:
                    count += len(kill_at(lab, stop, step, killed))
                    what = f"kill of the {killed} at the step: {step}"
                    until_it_forwards(lab, flows, what)
                    if lab.gateway.daemon.pid == supervisor:
                        equal((twins(lab), has_route(lab)), (kept, True), f"twins, and a route through one, after {what}")
                    else:  # they have ended with the supervisor
                        add_route(lab)
                        kept, supervisor = twins(lab), lab.gateway.daemon.pid
    lab.remarks.append(f"{count} kills, longest gap {flows.longest_gap_s:.1f} s")
