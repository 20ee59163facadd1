# SPDX-License-Identifier: Apache-2.0
"""Fail static: the end of another process or source interrupts nothing."""
import json
import os
import shutil
import signal
import threading
import urllib.request

from fixture import NODE_PORT, VIP, VIP_6, Background, case, check, equal, until
from lab import network as net
from lab.network import inside
from manifests import endpoints, service


def web():
    return service("web", external_ips=[VIP]), endpoints("web")


@case()
def a_save_that_fails_is_repeated_and_shown_until_there_is_room(lab):
    lab.start(*web())
    until("the first state is saved", lambda: os.path.exists(lab.gateway.state_file))
    # The new file is created beside the old one and renamed. A folder of that temporary name prevents its
    # creation.
    os.makedirs(os.path.join(lab.gateway.state_file + ".new", "in-the-way"))
    lab.apply(service("web", 8000, external_ips=[VIP]), endpoints("web"))
    until("status has the reason", lambda: "Not saved:" in lab.gateway.ctl("status").stdout)
    check(f"{lab.gateway.state_file}.new" in lab.gateway.json("status")["save_error"], "status names the file")
    with inside(lab.network.namespace("gateway")):
        with urllib.request.urlopen("http://127.0.0.1:9105/metrics", timeout=5) as response:
            check("\npenstock_state_save_failing 1\n" in response.read().decode(), "no metric for a failed save")
    shutil.rmtree(lab.gateway.state_file + ".new")
    until("status is well again", lambda: "Not saved:" not in lab.gateway.ctl("status").stdout, patience_s=40)
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    lab.gateway.daemon.kill()
    lab.gateway.daemon.wait()
    lab.gateway.start_daemon()
    until("what was saved late is served after a restart", lambda: lab.connection_outcome(VIP, 8000, timeout_s=0.3) == "open")


@case()
def penstock_sync_killed_and_restarted_is_not_noticed_by_traffic(lab):
    lab.start(*web())
    lab.make_file("slow", 4_000_000)
    download = []
    slow = threading.Thread(target=lambda: download.append(lab.get(path="/slow/slow", timeout_s=30)))
    slow.start()
    with Background(lab.get) as load:
        lab.gateway.sync.kill()
        lab.gateway.sync.wait()
        equal(sum(lab.answered_by(9).values()), 9, "new connections without a control plane")
        lab.gateway.start_sync(lab.manifests)
        lab.apply(*web(), service("more", 81, external_ips=[VIP]), endpoints("more"))
        until("the new process reconciles", lambda: lab.connection_outcome(VIP, 81) == "open")
        check(slow.is_alive(), "the download ended too early to show anything")
    slow.join()
    equal(load.errors, [], "failed requests")
    equal(len(download[0].body), 4_000_000, "bytes of the download that was under way")


@case(workers=(1, 2))
def a_client_keeps_its_endpoint_over_frontends_and_a_restart_of_penstock_sync_AFF001_AFF011(lab):
    objects = service("web", external_ips=[VIP], node_port=NODE_PORT, affinity_timeout_s=3600), endpoints("web")
    lab.start(*objects)
    mine = set(lab.answered_by(6))
    equal(len(mine), 1, "endpoints that one client met by the VIP")
    equal(set(lab.answered_by(6, net.UPLINK, NODE_PORT)), mine, "endpoint by the NodePort")
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    equal(set(lab.answered_by(6)), mine, "endpoint without a control plane")
    lab.gateway.start_sync(lab.manifests)
    lab.apply(*objects, service("more", 81, external_ips=[VIP]), endpoints("more"))
    until("the new process reconciles", lambda: lab.connection_outcome(VIP, 81) == "open")
    equal(set(lab.answered_by(6)), mine, "endpoint after the restart")
    pinned = json.loads(lab.gateway.ctl("-o", "json", "get", "affinity", "default/web").stdout)
    equal([(entry["client"], entry["service"]["name"]) for entry in pinned], [(net.CLIENT, "web")], "entries shown")
    equal(lab.gateway.ctl("clear", "affinity", "default/web").stdout, "cleared 1 entry\n", "the CLI's word")
    equal(lab.gateway.ctl("-o", "json", "get", "affinity").stdout, "[]\n", "entries left")


def two_ports(scope, backends=tuple(net.BACKENDS)):
    """A Service with affinity, HTTP on TCP 80 and an echo on UDP 5353, and its slices of both families."""
    made = service("web", external_ips=[VIP, VIP_6], families=("IPv4", "IPv6"), affinity_timeout_s=3600,
                   annotations={"penstock.io/affinity-scope": scope})
    made["spec"]["ports"] = [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 9376},
                             {"name": "echo", "port": 5353, "protocol": "UDP", "targetPort": 5353}]
    slices = [endpoints("web", backends, family=family) for family in ("IPv4", "IPv6")]
    for each in slices:
        each["ports"] = [{"name": "http", "port": 9376, "protocol": "TCP"}, {"name": "echo", "port": 5353, "protocol": "UDP"}]
    return made, *slices


@case(workers=(1, 2))
def a_client_has_one_endpoint_on_all_ports_of_a_service_AFF002_AFF005_AFF007(lab):
    lab.start(*two_ports("service"), wait_for={"default/web:http/tcp", "default/web:echo/udp"})

    def by_http(vip):
        return lab.get(vip).backend

    def by_echo(vip):
        return lab.echo(vip, 5353)[0]

    met = set()
    # Each order of the ports, repeatedly: independent schedulers would soon choose different endpoints.
    for orders in ((by_http, by_echo), (by_http, by_echo), (by_echo, by_http), (by_echo, by_http), (by_http, by_echo)):
        for vip in (VIP, VIP_6):
            first = orders[0](vip)
            met.add(first)
            for again in (orders[1], orders[0], orders[1]):
                equal(again(vip), first, f"endpoint at {vip}")
        equal(lab.gateway.ctl("clear", "affinity", "default/web").stdout, "cleared 2 entries\n", "one entry a client")
    check(len(met) > 1, f"one endpoint for all rounds shows nothing: {met}")

    first = by_http(VIP)
    pinned = json.loads(lab.gateway.ctl("-o", "json", "get", "affinity", "default/web").stdout)
    equal([(entry["client"], entry["all_ports"]) for entry in pinned], [(net.CLIENT, True)], "entries shown")
    lab.apply(*two_ports("service", [name for name in net.BACKENDS if name != first]))

    def has_moved():
        try:
            return lab.echo(VIP, 5353, timeout_s=1)[0] != first
        except TimeoutError:
            return False  # in flight to the endpoint, or back, when the endpoint was removed (UDP-001)
    until("the endpoint is gone", has_moved)
    moved = by_echo(VIP)
    equal(by_http(VIP), moved, "endpoint by HTTP after the first one has gone")
    lab.apply(*two_ports("service"))
    until("the endpoint is back", lambda: net.BACKENDS[first] in
          [each["endpoint"]["address"] for each in lab.gateway.json("get", "backends", "default/web") if each.get("sets")])
    equal((by_http(VIP), by_echo(VIP)), (moved, moved), "endpoints after the first one has come back")

    # The stored state contains the scope.
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    lab.gateway.daemon.kill()
    lab.gateway.daemon.wait()
    lab.gateway.start_daemon()
    until("requests are answered", lambda: lab.connection_outcome(VIP, 80, timeout_s=0.3) == "open")
    equal(by_echo(VIP), by_http(VIP), "endpoints after a restart without a control plane")
    told = lab.gateway.json("explain", "--proto", "udp", "--src", f"{net.CLIENT}:40000", "--dst", f"{VIP}:5353")
    findings = [step["finding"] for step in told["steps"] if step["stage"] == "affinity"]
    check(len(findings) == 1 and findings[0].startswith("pinned to ") and findings[0].endswith(", on all ports of the Service"),
          f"explain: {told['steps']}")

    lab.gateway.start_sync(lab.manifests)
    lab.apply(*two_ports("port"))
    until("the other scope starts empty", lambda: lab.gateway.ctl("-o", "json", "get", "affinity").stdout == "[]\n")
    by_http(VIP), by_echo(VIP)
    pinned = json.loads(lab.gateway.ctl("-o", "json", "get", "affinity", "default/web").stdout)
    equal(sorted(entry["service"]["port_name"] for entry in pinned), ["echo", "http"], "entries of scope port")


def other_sync(lab, priority):
    """A second penstock-sync of the same gateway and objects, with a status socket of its own."""
    address = f"unix:{lab.run.file(f'other-sync-{priority}.sock')}"
    words = [*lab.gateway.sync_words(lab.manifests), "--sync-priority", str(priority)]
    words[words.index("--listen") + 1] = address
    process = lab.network.start("gateway", words, f"other-sync-{priority}.log")

    def gateway_row():
        asked = lab.gateway.ctl("-o", "json", "--sync-server", address, "get", "sync")
        return json.loads(asked.stdout)["gateways"][0] if asked.returncode == 0 else {}
    return process, gateway_row


@case()
def of_two_penstock_syncs_one_leads_and_the_other_waits(lab):
    lab.start(*web())
    equal(lab.gateway.sync_status()["gateways"][0]["full_states"], 1, "full states of the first")
    source = lab.gateway.json("status")["control_source"]
    second, row_of_second = other_sync(lab, 0)
    until("the second waits", lambda: row_of_second().get("leader", "").startswith(source))
    status = lab.gateway.json("status")
    equal((status["control_source"], status["control_waiting"]), (source, 1), "leader and waiting")
    equal(row_of_second()["full_states"], 0, "full states of the second")
    with Background(lab.get) as load:
        lab.gateway.sync.kill()
        lab.gateway.sync.wait()
        until("the second leads", lambda: row_of_second().get("connected"))
        lab.apply(*web(), service("more", 81, external_ips=[VIP]), endpoints("more"))
        until("a change of the second is in force", lambda: lab.connection_outcome(VIP, 81) == "open")
        # A higher priority takes the lead at once. The former leader waits and does not preempt.
        _, row_of_third = other_sync(lab, 5)
        until("the third leads", lambda: row_of_third().get("connected"))
        until("the second waits again", lambda: row_of_second().get("leader", "").endswith("(priority 5)"))
        equal(lab.gateway.sync.poll() is not None and second.poll() is None, True, "the second runs on")
        equal(row_of_third()["full_states"], 1, "full states of the third")
    equal(load.errors, [], "failed requests")


@case(end=("SIGTERM", "SIGKILL"))
def penstockd_alone_forwards_its_last_good_configuration(lab):
    lab.start(*web())
    equal(lab.get().status, 200, "before")
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    lab.gateway.daemon.send_signal(getattr(signal, lab.variant["end"]))
    lab.gateway.daemon.wait(timeout=10)
    lab.gateway.start_daemon()
    until("requests are answered", lambda: lab.connection_outcome(VIP, 80, timeout_s=0.3) == "open")
    equal(sum(lab.answered_by(9).values()), 9, "answers before any control plane came back")
    equal(oct(os.stat(lab.gateway.state_file).st_mode & 0o777), "0o600", "mode of the last-good file")


@case()
def a_damaged_last_good_file_is_named_and_the_start_is_empty(lab):
    lab.start(*web())
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    lab.gateway.daemon.terminate()
    lab.gateway.daemon.wait(timeout=10)
    with open(lab.gateway.state_file, "r+b") as file:
        file.seek(os.path.getsize(lab.gateway.state_file) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x40]))
    lab.gateway.start_daemon()
    equal(lab.gateway.services(), {}, "services after a start with a damaged file")
    with open(lab.run.file("penstockd.log")) as log:
        said = log.read()
    check(lab.gateway.state_file in said, f"the log does not name the file:\n{said[-2000:]}")
    lab.gateway.start_sync(lab.manifests)
    lab.gateway.until_served({"default/web/tcp"})
    equal(lab.get().status, 200, "after the control plane came back")
