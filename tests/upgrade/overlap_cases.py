# SPDX-License-Identifier: Apache-2.0
"""penstockd is replaced by a successor that starts beside it (--supervise on, `penstockctl upgrade` or SIGUSR2):
connections, twins and their addresses stay."""
import json
import os
import re
import shutil
import signal
import urllib.request

from fixture import VIP, case, check, equal, until
from kept_flows import KeptFlows, NewFlows, start_servers
from lab.network import inside
from notify_socket import NotifySocket
from restart_cases import LONG_FLOWS, NEW_FLOWS_A_SECOND, objects, open_flows, pinned_endpoint, tables
from wires import WIRES, Wires

UPGRADES = int(os.environ.get("PENSTOCK_UPGRADES", "5"))  # 50 by hand
# Three times the aim, because the machine may also compile. The pauses are printed.
PAUSE_MAX_MS = 3 * 50
XDP_PAUSE_MAX_MS = 1000  # most of it passes in the kernel and in libxdp (docs/adr/0040)
TWINS = ("uplink0", "cluster0")
ROUTE = "198.18.77.0/24"  # through a twin, as a routing daemon would add it


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


def upgrade(lab, *options):
    """The record of the upgrade."""
    done = lab.gateway.ctl("upgrade", "--wait", *options)
    equal(done.returncode, 0, f"exit code of penstockctl upgrade, which prints {done.stdout}{done.stderr}")
    until("the former process has ended", lambda: len(children(lab)) == 1, 60)
    return record_of(lab)


def record_of(lab):
    """Of the last upgrade. The exit code of status is 1 without a configuration."""
    return json.loads(lab.gateway.ctl("-o", "json", "status").stdout)["upgrade"]


def pause_ms(record):
    return int(record["pause_us"]) / 1000


def check_order(record):
    """What does not need the former process's ports is done before the pause."""
    at_us = {step["name"]: int(step["at_us"]) for step in record["steps"]}
    equal(len(at_us), len(record["steps"]), "steps, each once")
    for name in ("EAL started", "configuration compiled", "workers prepared"):
        check(at_us[name] < at_us["workers stopped"], f"step '{name}' is a part of the pause: {at_us}")


def numbers(values):
    return " ".join(f"{value:.0f}" for value in sorted(values))


def twins(lab):
    """Index and addresses of the twins: a twin that is made anew has another index."""
    text = lab.network.run("gateway", "ip", "-o", "addr", "show").stdout
    return sorted(line.split(" valid_lft")[0] for line in text.splitlines()
                  if any(f" {twin} " in line for twin in TWINS))


def add_route(lab):
    equal(lab.network.run("gateway", "ip", "route", "add", ROUTE, "dev", TWINS[0]).returncode, 0, "exit code of ip route add")


def has_route(lab):
    return ROUTE in lab.network.run("gateway", "ip", "route", "show", "dev", TWINS[0]).stdout


@case(alone=True, driver=("af_packet", "af_xdp", "tap", "memif", "memif-server"))
def an_upgrade_keeps_connections_twins_and_routes(lab):
    wires = WIRES.get(lab.variant["driver"], Wires)(lab)
    start(lab)
    wires.connect()
    flows = KeptFlows(lab)
    flows.PULSE_S = wires.PULSE_S
    open_flows(lab, flows, 40)
    with flows, NewFlows(lab, 50, VIP, 80) as new:
        flows.until_all_answered()
        add_route(lab)
        mine = pinned_endpoint(lab)
        kept, supervisor = twins(lab), lab.gateway.daemon.pid
        check(len(kept) >= 2, f"addresses of twins: {kept}")
        flows.longest_gap_s = 0.0
        pauses, gaps = [], []
        for i in range(5):
            record = upgrade(lab)
            check_order(record)
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows that changed at upgrade {i + 1}")
            equal(tables(lab)["lost"], [], f"connections lost by upgrade {i + 1}")
            equal(twins(lab), kept, "twins and their addresses")
            check(has_route(lab), "the route is gone")
            equal(pinned_endpoint(lab), mine, "endpoint of the pinned client")
            pauses.append(pause_ms(record))
            gaps.append(flows.longest_gap_s * 1000)
            flows.longest_gap_s = 0.0
        counted = new.answered
        until("new flows are answered", lambda: new.answered > counted + 20, 20)
    equal((lab.gateway.daemon.pid, lab.gateway.daemon.poll()), (supervisor, None), "the supervisor")
    equal(dict(new.failures), {}, f"failures of {new.opened} new flows")
    lab.remarks.append(f"pauses {numbers(pauses)} ms, gaps between answers {numbers(gaps)} ms, {new.opened} new flows; the last one: "
                       + ", ".join(f"{step['name']} {int(step['at_us']) / 1000:.1f}" for step in record["steps"]))
    limit = XDP_PAUSE_MAX_MS if lab.variant["driver"] == "af_xdp" else PAUSE_MAX_MS
    check(sorted(pauses)[2] < limit, f"median of the pauses {numbers(pauses)} ms")


@case(alone=True)
def a_thousand_connections_survive_repeated_upgrades_beside_new_ones(lab):
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, LONG_FLOWS)
    pauses = []
    with flows, NewFlows(lab, NEW_FLOWS_A_SECOND, VIP, 80) as new:
        flows.until_all_answered()
        for i in range(UPGRADES):
            pauses.append(pause_ms(upgrade(lab)))
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows that changed at upgrade {i + 1}")
            equal(tables(lab)["lost"], [], f"connections lost by upgrade {i + 1}")
    equal(dict(new.failures), {}, f"failures of {new.opened} new flows")
    lab.remarks.append(f"{UPGRADES} upgrades, {len(flows.flows)} long and {new.opened} new flows, pauses {numbers(pauses)} ms")


@case()
def settings_of_interfaces_are_restored_by_the_last_process(lab):
    lab.gateway.more_options = ["--supervise", "on"]
    lab.build_network()
    ipv6_off = "/proc/sys/net/ipv6/conf/gw-up/disable_ipv6"
    lab.network.run("gateway", "sh", "-c", f"echo 0 > {ipv6_off}")
    lab.gateway.start_daemon()
    for _ in range(2):
        upgrade(lab)
        equal(lab.network.run("gateway", "cat", ipv6_off).stdout.strip(), "1", "whether IPv6 is off during the run")
    lab.gateway.daemon.send_signal(signal.SIGTERM)
    lab.gateway.daemon.wait(timeout=20)
    equal(lab.network.run("gateway", "cat", ipv6_off).stdout.strip(), "0", "whether IPv6 is off afterwards")


@case()
def penstockctl_reports_steps_and_result_and_names_refusals(lab):
    own = lab.run.file("bin")
    os.mkdir(own)
    binary = os.path.join(own, "penstockd")
    shutil.copy2(os.path.join(lab.gateway.daemon_folder, "penstockd"), binary)
    lab.gateway.more_options = ["--supervise", "off"]
    lab.start(*objects())
    refused = lab.gateway.ctl("upgrade", "--wait")
    equal((refused.returncode, "the upgrade is refused: penstockd has no supervisor" in refused.stderr), (1, True), f"without a supervisor: {refused.stderr}")
    check("Upgrade:" not in lab.gateway.ctl("status").stdout, "status without a supervisor")
    lab.gateway.daemon.send_signal(signal.SIGTERM)
    lab.gateway.daemon.wait(timeout=20)

    lab.gateway.more_options = ["--supervise", "on", "--metrics-listen", "127.0.0.1:9105"]
    lab.gateway.start_daemon()
    check("Upgrade:        none since the start of the supervisor" in lab.gateway.ctl("status").stdout, "status before the first upgrade")
    for mode, code, said in ((0o644, 1, "Permission denied: it is no executable file"), (0o775, 1, "its group or others can write it")):
        os.chmod(binary, mode)
        refused = lab.gateway.ctl("upgrade", "--binary", binary)
        equal((refused.returncode, said in refused.stderr), (code, True), f"mode {mode:o}: {refused.stderr}")
    os.chmod(binary, 0o755)
    for path, code, said in (("/nowhere/penstockd", 1, "binary /nowhere/penstockd: No such file or directory"), ("penstockd", 2, "must be an absolute path")):
        refused = lab.gateway.ctl("upgrade", "--binary", path)
        equal((refused.returncode, said in refused.stderr), (code, True), f"{path}: {refused.stderr}")

    done = lab.gateway.ctl("upgrade", "--binary", binary, "--wait")
    equal(done.returncode, 0, f"exit code:\n{done.stdout}{done.stderr}")
    check(re.fullmatch(rf"upgrade 1 to {binary} \(penstockd \S+\) is done, the pause was \d+\.\d ms\n", done.stdout), f"output: {done.stdout}")
    for name in ("successor started", "prepared", "workers stopped", "handed over", "forwards"):
        check(f": {name}\n" in done.stderr, f"no step {name}:\n{done.stderr}")
    until("the former process has ended", lambda: len(children(lab)) == 1, 60)
    equal(os.readlink(f"/proc/{children(lab)[0]}/exe"), binary, "binary of the process")
    record = record_of(lab)
    equal((record["state"], record["binary"], int(record["done"]), int(record["failed"])), ("DONE", binary, 1, 0), "record")
    check(record["requested_by"].startswith("unix:"), f"client: {record['requested_by']}")
    check(f"upgrade 1 to {binary}, requested by unix:" in log(lab), "the log has no client")
    check(re.search(rf"upgrade 1 of {binary} is done, the pause was .* ms; ms since its request: successor started", log(lab)), "the log has no summary")
    with inside(lab.network.namespace("gateway")), urllib.request.urlopen("http://127.0.0.1:9105/metrics", timeout=10) as page:
        text = page.read().decode()
    check('penstock_upgrades_total{outcome="done"} 1\n' in text, "the metric of the upgrade")

    os.unlink(binary)
    with open(binary, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\necho a reason of its own >&2\nexit 3\n")
    os.chmod(binary, 0o755)
    failed = lab.gateway.ctl("upgrade", "--binary", binary, "--wait")
    equal(failed.returncode, 1, f"exit code:\n{failed.stdout}{failed.stderr}")
    check(re.search(r"failed: the successor has ended with exit code \d+; .*the former process continues\nlast lines of the successor's log:\n  \S", failed.stderr),
          f"output: {failed.stderr}")
    equal(record_of(lab)["state"], "FAILED", "state of the record")


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
    lab.gateway.end_daemon()
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


WATCHDOG_MS = 4000


@case()
def an_upgrade_is_a_reload_for_the_service_manager(lab):
    """systemd follows the supervisor, and gets reports of all its processes (NotifyAccess=all)."""
    own = lab.run.file("bin")
    os.mkdir(own)
    shutil.copy2(os.path.join(lab.gateway.daemon_folder, "penstockd"), own)
    lab.gateway.daemon_folder = own
    manager = NotifySocket(lab.run.file("notify"))
    words = lab.gateway.daemon_words
    lab.gateway.daemon_words = lambda: manager.environment(WATCHDOG_MS) + words()
    start(lab)
    supervisor, (former,) = lab.gateway.daemon.pid, children(lab)
    ready = manager.until("it is ready", lambda report: "READY=1" in report)
    equal(manager.reports[ready].pid, former, "sender of READY=1")
    alive = manager.until("it is alive", lambda report: report.pid == former and "WATCHDOG=1" in report)

    upgrade(lab)
    (successor,) = children(lab)
    reload = manager.until("the reload is reported", lambda report: "RELOADING=1" in report, alive)
    equal(manager.reports[reload].pid, supervisor, "sender of RELOADING=1")
    check(any(line.startswith("MONOTONIC_USEC=") for line in manager.reports[reload].lines), "RELOADING=1 has no time")
    ready = manager.until("the reload is over", lambda report: "READY=1" in report, reload)
    equal(manager.reports[ready].pid, successor, "sender of READY=1")
    manager.until("the successor is alive", lambda report: report.pid == successor and "WATCHDOG=1" in report, ready)
    check(not any("STOPPING=1" in report for report in manager.reports), "the former process reports a stop of the service")

    # An upgrade that fails is a reload that ends as well.
    binary = os.path.join(own, "penstockd")
    os.unlink(binary)
    with open(binary, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nexit 3\n")
    os.chmod(binary, 0o755)
    since = len(manager.reports)
    request_upgrade(lab)
    reload = manager.until("the second reload is reported", lambda report: "RELOADING=1" in report, since)
    ready = manager.until("the second reload is over", lambda report: "READY=1" in report, reload)
    equal(manager.reports[ready].pid, supervisor, "sender of READY=1")
    equal(children(lab), [successor], "processes")
    lab.gateway.daemon.send_signal(signal.SIGTERM)
    equal(lab.gateway.daemon.wait(timeout=20), 0, "exit code")
    stopping = manager.until("it stops", lambda report: "STOPPING=1" in report, ready)
    equal(manager.reports[stopping].pid, successor, "sender of STOPPING=1")
