# SPDX-License-Identifier: Apache-2.0
"""Reports to a service manager, as systemd receives them: ready, alive, stopping. tests/upgrade has those of a
reload, suite package runs the units."""
import os
import signal
import time

from fixture import VIP, case, check, equal, until
from lab import servers
from lab.network import inside
from manifests import endpoints, service
from notify_socket import NotifySocket
from stopped_thread import stopped, threads_of

KEEP_ALIVES = 4  # control/process/service_reports.hpp


def web():
    return service("web", external_ips=[VIP]), endpoints("web")


def as_service(lab, manager, watchdog_ms=0):
    """penstockd starts in the environment of a service."""
    words = lab.gateway.daemon_words
    lab.gateway.daemon_words = lambda: manager.environment(watchdog_ms) + words()


def start_without_a_configuration(lab, manager, watchdog_ms=0):
    as_service(lab, manager, watchdog_ms)
    lab.build_network()
    lab.gateway.start_daemon()
    lab.apply(*web())


@case(name=("path", "abstract"))
def a_start_is_complete_when_a_configuration_is_in_force(lab):
    build = lab.network.build
    made = []

    def build_with_a_manager():
        build()
        with inside(lab.network.namespace("gateway")):
            made.append(NotifySocket(lab.run.file("notify") if lab.variant["name"] == "path" else "@penstock-notify"))
    lab.network.build = build_with_a_manager
    words = lab.gateway.daemon_words
    lab.gateway.daemon_words = lambda: made[0].environment() + words()
    lab.build_network()
    servers.start(lab.network, lab.run)
    (manager,) = made
    lab.gateway.start_daemon()
    lab.apply(*web())
    manager.until("it waits", lambda report: report.status == "starting, waits for: no configuration is in force")
    # More rounds of its threads change nothing.
    lab.gateway.ctl("status")
    check(not any("READY=1" in report for report in manager.reports), "ready without a configuration")
    lab.gateway.start_sync(lab.manifests)
    ready = manager.until("it is ready", lambda report: "READY=1" in report)
    equal(manager.reports[ready].status, "ready: 2 ports, 1 workers", "status")
    equal({report.pid for report in manager.reports}, {lab.gateway.daemon.pid}, "senders")
    check(not any("WATCHDOG=1" in report for report in manager.reports), "keep-alives that no one requests")
    equal(lab.get().status, 200, "answer")


@case()
def a_start_without_a_control_plane_is_complete_if_none_is_expected(lab):
    manager = NotifySocket(lab.run.file("notify"))
    lab.gateway.more_options = ["--allow-empty", "on"]
    start_without_a_configuration(lab, manager)
    manager.until("it is ready", lambda report: "READY=1" in report)


@case()
def a_restart_is_complete_with_the_last_good_configuration(lab):
    manager = NotifySocket(lab.run.file("notify"))
    as_service(lab, manager)
    lab.start(*web())
    manager.until("it is ready", lambda report: "READY=1" in report)
    until("the state is saved", lambda: os.path.exists(lab.gateway.state_file))
    lab.gateway.sync.terminate()
    lab.gateway.sync.wait()
    lab.gateway.daemon.terminate()
    equal(lab.gateway.daemon.wait(timeout=20), 0, "exit code")
    since = manager.until("it stops", lambda report: "STOPPING=1" in report)
    equal(manager.reports[since].status, "stopping on SIGTERM", "status")
    lab.gateway.start_daemon()
    manager.until("it is ready again", lambda report: "READY=1" in report, since)


@case()
def a_worker_that_stalls_stops_the_watchdog_until_it_continues(lab):
    interval_ms = 2000
    manager = NotifySocket(lab.run.file("notify"))
    as_service(lab, manager, interval_ms)
    lab.start(*web())
    since = manager.until("it is ready", lambda report: "READY=1" in report)
    for _ in range(3):
        since = manager.until("it is alive", lambda report: "WATCHDOG=1" in report, since + 1)
    (worker,) = threads_of(lab.gateway.daemon.pid, "rte-worker")
    with stopped(worker):
        stalls = manager.until("the stall is reported", lambda report: (report.status or "").startswith("not ready: worker 0 has made no round"), since)
        # The other threads go on, and as many keep-alives would be due.
        time.sleep(interval_ms / 1000)
        until("the control thread answers", lambda: lab.gateway.ctl("status").returncode == 1)
        silent = manager.reports[stalls:]
    equal([report for report in silent if "WATCHDOG=1" in report], [], "keep-alives during the stall")
    back = manager.until("it is well again", lambda report: (report.status or "").startswith("ready: "), stalls)
    manager.until("it is alive again", lambda report: "WATCHDOG=1" in report, back)
    equal(lab.get().status, 200, "answer")


@case()
def a_drain_before_the_stop_extends_the_time_limit(lab):
    manager = NotifySocket(lab.run.file("notify"))
    lab.gateway.more_options = ["--drain-on-stop", "120"]
    as_service(lab, manager)
    lab.start(*web())
    with lab.tcp_socket(VIP, 80) as client:
        lab.gateway.daemon.send_signal(signal.SIGTERM)
        stopping = manager.until("it stops", lambda report: "STOPPING=1" in report)
        check("EXTEND_TIMEOUT_USEC=150000000" in manager.reports[stopping], f"{manager.reports[stopping]}")
        manager.until("it drains", lambda report: report.status == "draining before the stop")
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        check(client.recv(100), "the open connection")
    lab.gateway.daemon.send_signal(signal.SIGTERM)
    equal(lab.gateway.daemon.wait(timeout=20), 0, "exit code")


@case()
def penstock_sync_reports_ready_status_and_stop(lab):
    manager = NotifySocket(lab.run.file("notify"))
    words = lab.gateway.sync_words
    lab.gateway.sync_words = lambda manifests: manager.environment(1000) + words(manifests)
    lab.start(*web())
    since = manager.until("it is ready", lambda report: "READY=1" in report)
    status = f"follows manifests {lab.manifests}; 1 of 1 gateways connected"
    manager.until("it follows", lambda report: report.status == status)
    for _ in range(KEEP_ALIVES):
        since = manager.until("it is alive", lambda report: "WATCHDOG=1" in report, since + 1)
    lab.gateway.daemon.terminate()
    lab.gateway.daemon.wait()
    manager.until("its gateway is gone", lambda report: (report.status or "").endswith("0 of 1 gateways connected"), since)
    lab.gateway.sync.terminate()
    equal(lab.gateway.sync.wait(timeout=20), 0, "exit code")
    manager.until("it stops", lambda report: "STOPPING=1" in report, since)
    equal({report.pid for report in manager.reports}, {lab.gateway.sync.pid}, "senders")
