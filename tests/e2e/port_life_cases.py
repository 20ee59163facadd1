# SPDX-License-Identifier: Apache-2.0
"""Changes of a port while the gateway runs: its link, its device, its MTU; and idle workers."""
import os
import time

from fixture import VIP, Background, case, check, equal, until
from lab import network as net
from lab.network import BACKENDS
from manifests import endpoints, service


def web():
    return (service("web", external_ips=[VIP]), endpoints("web"),
            service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP]), endpoints("echo", port=5353, protocol="UDP"))


def port_of(lab, twin):
    return next(port for port in lab.gateway.json("get", "ports") if port["twin"] == twin)


def log_lines(lab, *words):
    with open(lab.run.file("penstockd.log"), errors="replace") as log:
        return [line for line in log if all(word in line for word in words)]


def drops_of(lab):
    return lab.gateway.drops()


@case(driver=("af_packet", "af_xdp"))
def the_twin_follows_the_link(lab):
    lab.start(*web())
    equal(lab.get().status, 200, "before")

    def carrier():
        return "NO-CARRIER" not in lab.network.run("gateway", "ip", "link", "show", "uplink0").stdout
    check(carrier(), "the twin has no carrier although the link is up")
    lab.network.ip("client", "link set eth0 down")
    until("the twin lost its carrier", lambda: not carrier(), patience_s=2)
    check(not port_of(lab, "uplink0").get("link_up"), "status says that the link is up")
    check(port_of(lab, "cluster0").get("link_up"), "the other port's link went with it")
    lab.network.ip("client", "link set eth0 up")
    for network, gateway in net.EXTERNAL_RANGES.items():
        if ":" not in network:
            lab.network.ip("client", f"route add {network} via {gateway}")
    until("the twin has its carrier again", carrier, patience_s=2)
    until("requests are answered", lambda: lab.connection_outcome(VIP, 80, timeout_s=0.3) == "open")
    until("the log says both", lambda: len(log_lines(lab, "port 0", "link is")) == 2)


@case(driver=("af_packet", "af_xdp"), workers=(1, 2))
def a_port_that_vanishes_under_load_takes_nothing_else_with_it(lab):
    lab.start(*web())
    with Background(lambda: lab.connection_outcome(VIP, 80, timeout_s=0.05)) as load:
        until("requests flow", lambda: load.results.count("open") > 20)
        lab.network.ip("gateway", "link del gw-cl")
        until("the port is given up", lambda: port_of(lab, "cluster0")["state"] == "removed", patience_s=3)
        seen = len(load.results)
        until("clients go on asking", lambda: len(load.results) > seen + 5)
    equal(load.errors, [], "errors of the load itself")
    equal(port_of(lab, "uplink0")["state"], "running", "the other port")
    equal(len(log_lines(lab, "port 1", "the device is gone")), 1, "log lines")
    twin = lab.network.run("gateway", "ip", "-o", "link", "show", "cluster0").stdout
    check("state DOWN" in twin and ",UP" not in twin, f"the twin is not down: {twin}")
    until("Linux withdrew the routes", lambda: not [r for r in lab.gateway.json("get", "routes") if r["twin"] == "cluster0"])
    drops = drops_of(lab)
    check(drops.get("port_removed", 0) + drops.get("no_route", 0) > 0, f"nothing was dropped by name: {drops}")
    check("removed" in lab.gateway.ctl("get", "ports").stdout, "the table does not say it")
    pinged = lab.network.run("client", "ping", "-c", "2", "-i", "0.2", "-W", "2", net.UPLINK)
    check(" 0% packet loss" in pinged.stdout, f"the host through the other port:\n{pinged.stdout}")

    # The port stays detached until a restart. The restart fails as long as the device is missing, and
    # succeeds when it is back.
    lab.gateway.daemon.terminate()
    equal(lab.gateway.daemon.wait(timeout=10), 0, "exit code of a gateway that lost a port")
    started = lab.network.run("gateway", *lab.gateway.daemon_words(), timeout_s=20)
    equal(started.returncode, 1, "exit code without the device")
    check("iface=gw-cl: there is no such interface" in started.stderr, f"error of the start:\n{started.stderr}")
    lab.network.join("gateway", "gw-cl", "switch", "to-gateway")
    lab.network.ip("switch", "link set to-gateway master br0")
    lab.gateway.start_daemon()
    until("requests are answered", lambda: lab.connection_outcome(VIP, 80, timeout_s=0.3) == "open", patience_s=10)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@case(idle=("adaptive", "poll"))
def an_idle_gateway_leaves_the_cpu_alone_unless_told_to_poll(lab):
    if lab.variant["idle"] == "poll":
        lab.gateway.more_options = ["--idle", "poll"]
    lab.start(*web())
    equal(lab.get().status, 200, "before")
    pid = lab.gateway.daemon.pid  # `ip netns exec` has replaced itself with penstockd
    before, began = cpu_seconds(pid), time.monotonic()
    workers_before = lab.gateway.json("get", "workers")[0]
    time.sleep(3)
    share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
    worker = lab.gateway.json("get", "workers")[0]
    slept = int(worker["sleeps"]) - int(workers_before["sleeps"])
    lab.remarks.append(f"{100 * share:.0f} % of a CPU, {slept} sleeps")
    if lab.variant["idle"] == "poll":
        equal((worker["idle"], slept), ("poll", 0), "what a polling worker does")
    else:
        equal(worker["idle"], "sleep", "what the worker does")
        check(slept > 1000, f"slept {slept} times in 3 s")
        check(share < 0.6, f"an idle gateway took {100 * share:.0f} % of a CPU")
    equal(lab.get().status, 200, "after")


def make_jumbo(lab, mtu, roles=("client", *BACKENDS)):
    for role in roles:
        lab.network.ip(role, f"link set eth0 mtu {mtu}")
    if "backend-1" in roles:
        for link in ("to-gateway", *(f"to-{role}" for role in BACKENDS), "br0"):
            lab.network.ip("switch", f"link set {link} mtu {mtu}")


@case(workers=(1, 2))
def jumbo_frames_pass_as_they_are(lab):
    lab.gateway.port_fields = ";mtu=9000"
    lab.gateway.more_memory_mb = 256
    lab.start(*web())
    make_jumbo(lab, 9000)
    for port in lab.gateway.json("get", "ports"):
        equal(port["mtu"], 9000, f"MTU of {port['twin']}")
    payload = os.urandom(8_900)
    until("large datagrams come back", lambda: lab.echo(VIP, 5353, payload)[2] == payload)
    before = lab.gateway.json("stats")
    equal(lab.echo(VIP, 5353, payload)[2], payload, "one more")
    rx = {row["name"]: int(row["value"]) for row in lab.gateway.json("stats")["counters"]}
    rx_before = {row["name"]: int(row["value"]) for row in before["counters"]}
    packets, total = (rx[name] - rx_before[name] for name in ("rx_packets", "rx_bytes"))
    check(total >= 2 * 8_900 and packets < 10, f"{total} bytes in {packets} packets: they were cut into fragments")
    content = lab.make_file("large", 5_000_000)
    equal(lab.get(path="/files/large", timeout_s=20).body == content, True, "5 MB by TCP, with segments of 8,948 bytes")
    drops = drops_of(lab)
    equal({name: drops.get(name, 0) for name in ("frame_shorter_than_ip", "packet_too_big", "no_buffer")},
          {"frame_shorter_than_ip": 0, "packet_too_big": 0, "no_buffer": 0}, "drops")


@case()
def an_mtu_that_the_port_cannot_take_is_refused_by_name(lab):
    lab.build_network()
    for driver, fields, code, reason in (
            ("af_packet", ";mtu=9601", 2, "must be 576 to 9600 bytes"),
            ("af_xdp", ";mtu=3600", 1, "MTU 3600 is outside the range of net_af_xdp, 68 to 3542"),
            ("af_xdp", ";mtu=3400", 1, "net_af_xdp: one page, so an mtu of at most 3050")):
        lab.gateway.port_fields = fields
        words = [word.replace("net_af_packet", f"net_{driver}") for word in lab.gateway.daemon_words()]
        started = lab.network.run("gateway", *words, timeout_s=20)
        equal(started.returncode, code, f"exit code with {driver} {fields}")
        check(reason in started.stderr, f"what it says to {driver} {fields}:\n{started.stderr}")


@case(driver=("af_xdp",), force_copy=(False, True))
def af_xdp_tells_whether_it_copies(lab):
    asked = "copy" if lab.variant["force_copy"] else "zero-copy"
    lab.gateway.device_arguments = ",force_copy=1" if lab.variant["force_copy"] else ""
    lab.start(*web())
    equal(lab.get().status, 200, "status")
    mode = next(setting for setting in port_of(lab, "uplink0")["settings"] if setting["name"] == "af-xdp-mode")
    # A veth has no shared buffers.
    equal((mode["asked"], mode["granted"], bool(mode.get("reason"))), (asked, "copy", asked != "copy"), "what was asked, what is, and why")
