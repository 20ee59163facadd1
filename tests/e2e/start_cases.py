# SPDX-License-Identifier: Apache-2.0
"""Start, stop, and kill."""
import json
import os
import signal
import socket
import time
import urllib.request

from fixture import VIP, case, check, equal, until
from lab.network import inside
from manifests import endpoints, service


def web():
    return service("web", external_ips=[VIP]), endpoints("web")


def tables(lab):
    listed = json.loads(lab.network.run("gateway", "nft", "-j", "list", "tables").stdout)
    return [entry["table"]["name"] for entry in listed["nftables"] if "table" in entry]


@case(number=("SIGTERM", "SIGINT"))
def a_signal_stops_penstockd_cleanly(lab):
    lab.start(*web())
    equal(lab.get().status, 200, "before")
    lab.gateway.daemon.send_signal(getattr(signal, lab.variant["number"]))
    equal(lab.gateway.daemon.wait(timeout=10), 0, "exit code")
    equal(tables(lab), [], "nft tables left")
    links = lab.network.run("gateway", "ip", "-o", "link").stdout
    check("uplink0" not in links and "cluster0" not in links, f"twins left:\n{links}")


def log_of(lab, name):
    with open(lab.run.file(name), errors="replace") as file:
        return file.read()


@case()
def other_signals_end_no_program_and_are_logged(lab):
    lab.start(*web())
    held = lab.tcp_socket(VIP, 80)
    for program, log in ((lab.gateway.daemon, "penstockd.log"), (lab.gateway.sync, "penstock-sync.log")):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPROF, signal.SIGRTMIN):
            program.send_signal(number)
        program.send_signal(signal.SIGHUP)
        until(f"{log} has a line for each signal", lambda: all(
            f"{name} is ignored" in log_of(lab, log) for name in ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGPROF", "SIGRTMIN+0"))
            and "SIGHUP: " in log_of(lab, log))
        equal(program.poll(), None, "exit code")
    held.sendall(b"GET / HTTP/1.0\r\n\r\n")
    check(held.recv(4096).startswith(b"HTTP/1."), "a connection of before the signals is answered")
    held.close()


@case()
def sighup_reads_the_files_again_and_logs_each(lab):
    blocklist, policy = lab.run.file("blocklist"), lab.run.file("policy.yaml")
    for file, text in ((blocklist, "198.51.100.0/24\n"), (policy, "externalIPs:\n  - namespaces: ['*']\n    cidrs: [198.51.100.0/24]\n")):
        with open(file, "w") as opened:
            opened.write(text)
    lab.gateway.more_options = ["--blocklist", blocklist]
    sync_words = lab.gateway.sync_words
    lab.gateway.sync_words = lambda manifests: [*sync_words(manifests), "--external-ip-policy", policy]
    lab.start(*web())
    for program, log, line in ((lab.gateway.daemon, "penstockd.log", f"{blocklist}: unchanged, 1 prefixes are blocked"),
                               (lab.gateway.sync, "penstock-sync.log", f"{policy}: unchanged, 1 rules grant external IPs")):
        program.send_signal(signal.SIGHUP)
        until(f"{log} has: {line}", lambda: line in log_of(lab, log))
    equal(lab.get().status, 200, "after")


@case(driver=("af_packet", "af_xdp"))
def penstockd_runs_in_its_sandbox(lab):
    lab.start(*web())
    tasks = f"/proc/{lab.gateway.daemon.pid}/task"
    # NET_ADMIN, NET_RAW, IPC_LOCK, NET_BIND_SERVICE, DAC_READ_SEARCH
    allowed = {"af_packet": 1 << 12 | 1 << 13 | 1 << 14 | 1 << 10 | 1 << 2}
    # BPF, PERFMON, SYS_ADMIN, SYS_RESOURCE
    allowed["af_xdp"] = allowed["af_packet"] | 1 << 39 | 1 << 38 | 1 << 21 | 1 << 24
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/status") as status:
            facts = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        for field in ("CapEff", "CapPrm", "CapBnd"):
            equal(int(facts[field], 16) & ~allowed[lab.variant["driver"]], 0, f"{field} of {facts['Name']} beyond what is used")
        equal((facts["NoNewPrivs"], facts["Seccomp"]), ("1", "2"), f"no_new_privs and seccomp of {facts['Name']}")
    equal(lab.get().status, 200, "status")
    lab.gateway.daemon.send_signal(signal.SIGTERM)
    equal(lab.gateway.daemon.wait(timeout=10), 0, "exit code")
    equal(tables(lab), [], "nft tables left")


@case()
def a_busy_metrics_port_is_a_warning_and_is_tried_again(lab):
    build, others = lab.network.build, []

    def build_with_a_busy_port():
        build()
        with inside(lab.network.namespace("gateway")):
            others.append(socket.create_server(("127.0.0.1", 9105)))
    lab.network.build = build_with_a_busy_port
    lab.start(*web())
    equal(lab.get().status, 200, "status")
    check("--metrics-listen" in log_of(lab, "penstockd.log"), "no warning about the busy port")
    others.pop().close()

    def scraped():
        with inside(lab.network.namespace("gateway")):
            try:
                with urllib.request.urlopen("http://127.0.0.1:9105/metrics", timeout=2) as response:
                    return response.status == 200
            except OSError:
                return False
    until("metrics are served", scraped, patience_s=40, step_s=0.2)


@case()
def check_config_names_each_mistake_and_starts_nothing(lab):
    lab.build_network()
    words = [*lab.gateway.daemon_words(), "--check-config"]
    done = lab.network.run("gateway", *words)
    equal((done.returncode, done.stderr), (0, ""), "exit code and mistakes of what the other cases run with")
    words[words.index("--listen") + 1] = f"unix:{lab.run.file('nowhere')}/d.sock"
    done = lab.network.run("gateway", *words)
    equal(done.returncode, 2, "exit code")
    check(f"there is no folder {lab.run.file('nowhere')}" in done.stderr, done.stderr)
    done = lab.network.run("gateway", *[word for word in words if word != "--check-config"])
    equal(done.returncode, 1, "exit code of a start with the same mistake")
    check(not os.path.exists(lab.run.file("nowhere")), "a misspelt folder was made")
    done = lab.network.run("gateway", *words, "--burst", "1", "--worker", "2")
    equal((done.returncode, done.stderr.splitlines()),
          (2, ["penstockd: unrecognised option '--worker'; did you mean --workers?", "penstockd: --burst: \"1\" must be 4 to 64 packets",
               "penstockd --help lists the options"]), "exit code and all mistakes of the options")
    ini, pools = lab.run.file("sync.ini"), lab.run.file("pools.yaml")
    with open(pools, "w") as file:
        for name, addresses in (("a", "192.0.2.0/28"), ("b", "192.0.2.8-192.0.2.9")):
            file.write("---\napiVersion: penstock.io/v1alpha1\nkind: AddressPool\n"
                       f"metadata: {{name: {name}}}\nspec: {{addresses: [\"{addresses}\"]}}\n")
    done = lab.network.run("gateway", lab.gateway.program("penstock-sync"), "--manifests", pools, "--address-pools", pools, "--check-config")
    equal((done.returncode, done.stderr),
          (2, "penstock-sync: --address-pools: pool \"b\": addresses: 192.0.2.8-192.0.2.9 overlaps 192.0.2.0-192.0.2.15 of pool \"a\"\n"),
          "a pool that breaks a rule")
    with open(ini, "w") as file:
        file.write("# what is followed\nmanifests = /tmp\nallowed-external-cidrs = 80.11.12.1/24\n")
    done = lab.network.run("gateway", lab.gateway.program("penstock-sync"), "--config", ini, "--check-config")
    equal(done.returncode, 2, "exit code of penstock-sync")
    check(f"{ini}:3: --allowed-external-cidrs: \"80.11.12.1/24\" has bits set after the prefix length: write 80.11.12.0/24 or 80.11.12.1/32" in done.stderr,
          done.stderr)


@case()
def kill_9_gives_the_interface_back(lab):
    lab.start(*web())
    check(tables(lab), "no nft table keeps the kernel off the interface while penstockd runs")
    lab.gateway.daemon.kill()
    lab.gateway.daemon.wait()
    until("the kernel dropped the table", lambda: tables(lab) == [])
    lab.network.ip("gateway", "address add 10.80.1.1/24 dev gw-up")
    pinged = lab.network.run("client", "ping", "-c", "2", "-i", "0.2", "-W", "2", "10.80.1.1")
    check(" 0% packet loss" in pinged.stdout, f"ping:\n{pinged.stdout}")


@case(driver=("af_packet", "af_xdp"))
def a_start_after_kill_9_works(lab):
    lab.start(*web())
    lab.gateway.daemon.kill()
    lab.gateway.daemon.wait()
    lab.gateway.start_daemon()
    until("requests are answered", lambda: lab.connection_outcome(VIP, 80, timeout_s=0.3) == "open")
    equal(lab.get().status, 200, "status")


@case(workers=(2,))
def a_worker_without_a_snat_port_is_refused_by_name_NAT002(lab):
    lab.build_network()
    lab.gateway.more_options = ["--snat-ports", "20032-20095"]  # one block of 64, which belongs to worker 1
    started = lab.network.run("gateway", *lab.gateway.daemon_words(), timeout_s=20)
    equal(started.returncode, 1, "exit code")
    check("--snat-ports: 20032-20095 leaves worker 0 without a port" in started.stderr, f"what it says:\n{started.stderr}")


def second_start(lab, words):
    lab.run.reserve_hugepages(lab.gateway.memory_mb)
    began = time.monotonic()
    second = lab.network.run("gateway", *words, timeout_s=20)
    check(second.returncode != 0, "a second penstockd started")
    check(time.monotonic() - began < 15, "the refusal was slow")
    equal(lab.get().status, 200, "the first one's traffic")
    return second.stdout + second.stderr


@case()
def a_second_penstockd_on_the_same_socket_is_refused_by_name(lab):
    lab.start(*web())
    said = second_start(lab, lab.gateway.daemon_words())
    check(lab.gateway.socket in said, f"the refusal does not name the socket:\n{said}")


@case()
def a_second_penstockd_on_the_same_port_is_refused_by_name(lab):
    lab.start(*web())
    words = lab.gateway.daemon_words()
    words[words.index("--listen") + 1] = f"unix:{lab.run.file('second.sock')}"
    words[words.index("--state-file") + 1] = lab.run.file("second.pb")
    words[words.index("--table-dir") + 1] = lab.run.memory_folder("second")
    said = second_start(lab, words)
    check("gw-up" in said, f"the refusal does not name the port's interface:\n{said}")


@case()
def an_unknown_option_is_refused_by_name(lab):
    lab.build_network()
    for program in ("penstockd", "penstock-sync", "penstockctl"):
        done = lab.network.run("gateway", lab.gateway.program(program), "--no-such-option")
        check(done.returncode != 0 and "no-such-option" in done.stderr + done.stdout, f"{program}: {done.returncode} {done.stderr}")
        done = lab.network.run("gateway", lab.gateway.program(program), "--help")
        equal(done.returncode, 0, f"exit code of {program} --help")


@case()
def penstockctl_says_plainly_that_nobody_is_there(lab):
    lab.build_network()
    asked = lab.gateway.ctl("get", "services")
    check(asked.returncode != 0, "exit code 0 without a daemon")
    check(lab.gateway.socket in asked.stderr, f"stderr does not name the socket: {asked.stderr}")


@case()
def explain_tells_the_path_and_changes_nothing(lab):
    lab.start(*web())
    asked = lab.gateway.ctl("explain", "--proto", "tcp", "--src", "10.80.1.2:40000", "--dst", f"{VIP}:80")
    equal(asked.returncode, 0, "exit code")
    check("10.80.2.1" in asked.stdout and "web" in asked.stdout, f"explain:\n{asked.stdout}")
    equal(lab.gateway.json("get", "connections"), [], "connections after explain")
