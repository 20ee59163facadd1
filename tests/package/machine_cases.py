# SPDX-License-Identifier: Apache-2.0
"""The page docs/install-bare-metal.md, walked as an operator does, on a machine that begins as an empty Debian system with
a real systemd, between real clients and servers."""
import re
import shutil
import signal
import time

from fixture import VIP, Background, case, check, equal, until
from lab import servers, traffic
from pages import blocks_of

import products
from machine import Machine

WALK_MAX_S = 600
# Interfaces of the page: towards the clients, and towards the endpoints.
INTERFACES = (("gw-up", "eth1"), ("gw-cl", "eth2"))
REQUESTS = 60
FRONTEND = traffic.Frontend("ExternalIP", "default/my-service:http/tcp", "tcp", VIP, 80)
MEMORY_MB = 2 * 512  # of the page; an upgrade has two gateways


def blocks():
    """The blocks of the page by the section that they are in."""
    found = blocks_of(products.PAGE)
    check(len(found) == 8, f"{len(found)} blocks of commands on the page")
    return found


def machine_of(lab):
    """A booted machine beside clients and servers, with our packages in /root."""
    pool = products.had("pool")
    lab.run.reserve_hugepages(MEMORY_MB)
    lab.network.build()
    for name, name_on_page in INTERFACES:
        lab.network.ip("gateway", f"link set {name} down\nlink set {name} name {name_on_page}\nlink set {name_on_page} up")
    servers.start(lab.network, lab.run)
    machine = Machine(lab, "gateway", pool)
    machine.make()
    for path in products.debs().values():
        shutil.copy(path, f"{machine.root}/root")
    machine.boot()
    return machine


def send(lab):
    """Requests of a client; all are answered, by every backend."""
    outcome = traffic.http(lab.network, FRONTEND, REQUESTS)
    equal((outcome.requests, dict(outcome.failures)), (REQUESTS, {}), "requests and failures")
    equal(sorted(outcome.answered_by), ["backend-1", "backend-2", "backend-3"], "backends that have answered")


def pids(machine):
    """(first process, gateway process) of penstockd."""
    main = machine.show("penstock-gateway", "MainPID")
    children = machine.run(f"pgrep --parent {main}").stdout.split()
    return main, children[-1] if children else None


@case(waits_s=60)
def commands_of_the_page_lead_from_an_empty_system_to_traffic(lab):
    machine = machine_of(lab)
    try:
        walk(lab, machine)
    finally:
        machine.stop()


def walk(lab, machine):
    install, configure, services, start, check_it, change, update, remove = blocks()
    equal(machine.run("command -v penstockd penstock-sync penstockctl").stdout, "", "programs before the installation")
    began = time.monotonic()
    machine.succeed(install)
    for unit in ("penstock-gateway", "penstock-sync"):
        equal(machine.run(f"systemctl is-enabled {unit} || true; systemctl is-active {unit} || true").stdout.split(), ["disabled", "inactive"], f"{unit} after its installation")
    machine.succeed(configure)
    machine.succeed(services)
    machine.succeed(start)
    shown = machine.succeed(check_it)
    check(shown.split()[:2] == ["active", "active"] and "my-service" in shown, shown)
    send(lab)
    took = time.monotonic() - began
    lab.remarks.append(f"{took:.0f} s from an empty system to traffic")
    check(took < WALK_MAX_S, f"the commands of the page take {took:.0f} s")

    runs_as_installed(machine)
    with Background(lambda: lab.get().status) as load:
        main, gateway = pids(machine)
        machine.succeed(change)
        until("the former process has ended", lambda: pids(machine)[1] != gateway)
        equal(pids(machine)[0], main, "first process after a reload")
        until("the reload is over", lambda: machine.show("penstock-gateway", "ActiveState") == "active")
        sync = machine.show("penstock-sync", "MainPID")
        gateway = pids(machine)[1]
        install_only, reload, status = update.strip().split("\n")
        machine.succeed(install_only)
        equal(pids(machine), (main, gateway), "processes of penstockd after an update of the package")
        check(machine.show("penstock-sync", "MainPID") != sync, "an update of the package does not restart penstock-sync")
        machine.succeed(reload)
        until("the gateway has been replaced", lambda: pids(machine)[1] not in (None, gateway))
        machine.succeed(status)
    equal((set(load.results), load.errors), ({200}, []), "answers during a reload and an update")
    watchdog_restarts_a_gateway_that_hangs(lab, machine)
    machine.succeed(remove)
    equal(machine.run("command -v penstockd penstock-sync penstockctl || true; ls /lib/systemd/system | grep penstock || true; pgrep -a penstock || true").stdout, "",
          "programs, units and processes after the removal")
    check("uplink0" not in lab.network.run("gateway", "ip", "link", "show").stdout, "the twins remain")


def runs_as_installed(machine):
    """Users, rights and files of the running services."""
    equal(machine.show("penstock-gateway", "StatusText"), "ready: 2 ports, 1 workers", "status of penstock-gateway")
    main, gateway = pids(machine)
    for pid in (main, gateway):
        facts = dict(re.findall(r"^(\w+):\s*(.*)$", machine.succeed(f"cat /proc/{pid}/status"), re.MULTILINE))
        equal(facts["NoNewPrivs"], "1", f"no_new_privs of {pid}")
        allowed = 1 << 0 | 1 << 2 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14  # chown, dac_read_search, net_bind_service, net_admin, net_raw, ipc_lock
        equal(int(facts["CapBnd"], 16) & ~allowed, 0, f"capabilities of {pid} beyond those of the unit")
    equal(machine.show("penstock-sync", "User"), "penstock-sync", "user of penstock-sync")
    equal(machine.succeed("stat --format '%U:%G %a' /run/penstock/penstockd.sock").strip(), "root:penstock 660", "socket of penstockd")
    # Another member of the group, without a privilege.
    machine.succeed("useradd --groups penstock member && runuser -u member -- penstockctl get services && runuser -u member -- penstockctl get sync")
    refused = machine.run("useradd visitor && runuser -u visitor -- penstockctl get services")
    check(refused.returncode != 0, "a user outside of the group reads the gateway")
    equal(machine.run("systemctl --failed --no-legend --plain 'penstock*'").stdout, "", "failed units")


def watchdog_restarts_a_gateway_that_hangs(lab, machine):
    """The gateway process is stopped, so no keep-alive is sent. The case shortens WatchdogSec."""
    machine.succeed("mkdir -p /run/systemd/system/penstock-gateway.service.d\n"
                    "printf '[Service]\\nWatchdogSec=4\\n' >/run/systemd/system/penstock-gateway.service.d/watchdog.conf\n"
                    "systemctl daemon-reload\nsystemctl restart penstock-gateway")
    main, gateway = pids(machine)
    machine.succeed(f"kill -{int(signal.SIGSTOP)} {gateway}")
    until("systemd restarts the unit", lambda: machine.show("penstock-gateway", "NRestarts") == "1", 60, 0.2)
    until("it is active again", lambda: machine.show("penstock-gateway", "ActiveState") == "active", 60, 0.2)
    check(pids(machine)[0] != main, "the same process")
    send(lab)
