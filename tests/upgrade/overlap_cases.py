# SPDX-License-Identifier: Apache-2.0
"""penstockd is replaced by a successor that starts beside it (--supervise on, SIGUSR2): connections, twins and their
addresses stay, whatever ends at whatever moment."""
import os
import re
import shutil
import signal
import time

from fixture import VIP, case, check, equal, until
from kept_flows import KeptFlows, NewFlows, start_servers
from restart_cases import objects, open_flows, tables

UPGRADES = int(os.environ.get("PENSTOCK_UPGRADES", "5"))  # 50 by hand
PAUSE_MAX_S = 1.5  # a machine that also compiles; the pause is printed
PULSE_S = 0.01
TWINS = ("uplink0", "cluster0")


def start(lab):
    lab.gateway.more_options = ["--supervise", "on"]
    lab.start(*objects())
    start_servers(lab.network)
    until("the state is saved", lambda: os.path.exists(lab.gateway.state_file))


def children(lab):
    """Process ids of the gateway's processes, the oldest first."""
    parent = lab.gateway.daemon.pid
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if name.isdigit() and int(fields[1]) == parent and fields[0] != "Z":
            found.append((int(fields[19]), int(name)))
    return [pid for _, pid in sorted(found)]


def log(lab):
    with open(lab.run.file("penstockd.log"), encoding="utf-8") as file:
        return file.read()


def request_upgrade(lab):
    lab.gateway.daemon.send_signal(signal.SIGUSR2)


def upgrade(lab):
    before = children(lab)[0]
    request_upgrade(lab)
    until("the successor is the only process", lambda: children(lab) and before not in children(lab) and len(children(lab)) == 1, 60)
    until("it answers", lambda: lab.gateway.ctl("get", "ports").returncode == 0, 30)


def twins(lab):
    """Index and addresses of the twins: a twin that is made anew has another index."""
    text = lab.network.run("gateway", "ip", "-o", "addr", "show").stdout
    return sorted(line.split(" valid_lft")[0] for line in text.splitlines()
                  if any(f" {twin} " in line for twin in TWINS))


@case(alone=True)
def an_upgrade_keeps_connections_twins_and_routes(lab):
    start(lab)
    flows = KeptFlows(lab)
    flows.PULSE_S = PULSE_S
    open_flows(lab, flows, 40)
    with flows, NewFlows(lab, 50, VIP, 80) as new:
        flows.until_all_answered()
        # A route that a routing daemon would have installed.
        twin = TWINS[0]
        lab.network.run("gateway", "ip", "route", "add", "198.18.77.0/24", "dev", twin)
        kept, supervisor = twins(lab), lab.gateway.daemon.pid
        check(len(kept) >= 2, f"addresses of twins: {kept}")
        flows.longest_gap_s = 0.0
        pauses = []
        for i in range(UPGRADES):
            upgrade(lab)
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows that changed at upgrade {i + 1}")
            equal(tables(lab)["lost"], [], f"connections lost by upgrade {i + 1}")
            equal(twins(lab), kept, "twins and their addresses")
            check("198.18.77.0/24" in lab.network.run("gateway", "ip", "route", "show", "dev", twin).stdout, "the route is gone")
            pauses.append(flows.longest_gap_s)
            flows.longest_gap_s = 0.0
        counted = new.answered
        until("new flows are answered", lambda: new.answered > counted + 20, 20)
    equal((lab.gateway.daemon.pid, lab.gateway.daemon.poll()), (supervisor, None), "the supervisor")
    equal(dict(new.failures), {}, f"failures of {new.opened} new flows")
    check(max(pauses) < PAUSE_MAX_S, f"pauses {pauses}")
    lab.remarks.append(f"{UPGRADES} upgrades, {new.opened} new flows, pauses " + " ".join(f"{pause * 1000:.0f}" for pause in pauses) + " ms")


@case(killed=("former", "successor"))
def kill_9_of_a_process_at_any_moment_of_an_upgrade_leaves_a_gateway_that_forwards(lab):
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, 40)
    with flows:
        flows.until_all_answered()
        for delay_ms in (5, 100, 200, 300, 400, 600):
            former = children(lab)[0]
            request_upgrade(lab)
            until("there is a successor", lambda: children(lab) != [former], 10, 0.005)
            time.sleep(delay_ms / 1000)
            found = [pid for pid in children(lab) if (pid == former) == (lab.variant["killed"] == "former")]
            if found:
                os.kill(found[0], signal.SIGKILL)
                until("it has ended", lambda: found[0] not in children(lab), 10)
            # Outside of an upgrade the supervisor ends with its process, and its service manager starts it again.
            until("one process is left", lambda: lab.gateway.daemon.poll() is not None or len(children(lab)) == 1, 30)
            if lab.gateway.daemon.poll() is not None:
                lab.gateway.start_daemon()
            until("it answers", lambda: lab.gateway.ctl("get", "ports").returncode == 0, 30)
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows that changed after {delay_ms} ms")
            equal(tables(lab)["lost"], [], "connections lost, by reason")


@case()
def a_binary_that_fails_leaves_the_former_process_running(lab):
    own = lab.run.file("bin")
    os.mkdir(own)
    shutil.copy2(os.path.join(lab.gateway.daemon_folder, "penstockd"), own)
    lab.gateway.daemon_folder = own
    start(lab)
    binary, former = os.path.join(own, "penstockd"), children(lab)
    for mode, content, said in ((0o755, "#!/bin/sh\nexit 3\n", "the successor has ended, its log has the reason; the former process continues"),
                                (0o644, "", "the upgrade is refused: binary .*: Permission denied"),
                                (None, None, "the upgrade is refused: binary .*: No such file")):
        os.unlink(binary)
        if content is not None:
            with open(binary, "w", encoding="ascii") as file:
                file.write(content)
            os.chmod(binary, mode)
        request_upgrade(lab)
        until(f"the log has: {said}", lambda: re.search(said, log(lab)), 20)
        equal(children(lab), former, "processes")
    with lab.tcp_socket(VIP, 80) as client:
        client.sendall(b"?")
        check(client.recv(100), "new connections")


@case()
def twins_end_with_the_process_outside_an_upgrade(lab):
    start(lab)
    check(twins(lab), "there are no twins")
    os.kill(children(lab)[0], signal.SIGKILL)
    lab.gateway.daemon.wait(timeout=20)
    until("the twins are gone", lambda: not twins(lab), 10)
    lab.gateway.start_daemon()
    check(twins(lab), "there are no twins after a restart")
    os.kill(lab.gateway.daemon.pid, signal.SIGKILL)
    lab.gateway.daemon.wait(timeout=20)
    until("the twins end with the supervisor", lambda: not twins(lab), 10)
    lab.gateway.start_daemon()


@case()
def sigterm_ends_supervisor_and_gateway(lab):
    start(lab)
    child = children(lab)[0]
    lab.gateway.daemon.send_signal(signal.SIGTERM)
    equal(lab.gateway.daemon.wait(timeout=20), 0, "exit code")
    check(not os.path.exists(f"/proc/{child}"), "the gateway's process is left")
    lab.gateway.start_daemon()
