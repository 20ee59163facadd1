# SPDX-License-Identifier: Apache-2.0
"""penstockd ends by any signal and starts again: connections continue, with the same endpoint and the same SNAT
address and port."""
import os
import signal
import time

from fixture import VIP, VIP2, VIP2_6, VIP_6, case, check, equal, until
from kept_flows import PORT, KeptFlows, NewFlows, start_servers
from lab import network as net
from manifests import endpoints, service

RESTARTS = int(os.environ.get("PENSTOCK_RESTARTS", "3"))  # 20 by hand
LONG_FLOWS = 1000
NEW_FLOWS_A_SECOND = 200
BOTH = ("IPv4", "IPv6")


def objects():
    made = []
    for name, protocol, vips, policy in (("tcp", "TCP", (VIP, VIP_6), "Cluster"), ("udp", "UDP", (VIP, VIP_6), "Cluster"),
                                         ("tcp-local", "TCP", (VIP2, VIP2_6), "Local"), ("udp-local", "UDP", (VIP2, VIP2_6), "Local")):
        made.append(service(name, 80, protocol=protocol, external_ips=vips, families=BOTH, policy=policy))
        made += [endpoints(name, port=PORT, protocol=protocol, family=family) for family in BOTH]
    # Endpoints of the other family, behind addresses of both (docs/annotations.md).
    for family, port in (("IPv6", 82), ("IPv4", 83)):
        for protocol in ("TCP", "UDP"):
            name = f"{protocol.lower()}-to-{family.lower()}"
            made.append(service(name, port, protocol=protocol, external_ips=(VIP, VIP_6), families=(family,),
                                annotations={"penstock.io/translate-family": "true"}))
            made.append(endpoints(name, port=PORT, protocol=protocol, family=family))
    # One client is pinned to one endpoint.
    made.append(service("pinned", 81, external_ips=(VIP,), affinity_timeout_s=3600))
    made.append(endpoints("pinned", port=PORT))
    return made


def start(lab):
    lab.start(*objects())
    start_servers(lab.network)
    until("the state is saved", lambda: os.path.exists(lab.gateway.state_file))


def open_flows(lab, flows, long_flows=LONG_FLOWS):
    few = max(2, long_flows // 20)
    flows.open("tcp", True, long_flows - 12 * few, VIP, 80)
    flows.open("tcp6", True, few, VIP_6, 80)
    flows.open("tcp source kept", True, few, VIP2, 80)
    flows.open("tcp6 source kept", True, few, VIP2_6, 80)
    flows.open("udp", False, few, VIP, 80)
    flows.open("udp6", False, few, VIP_6, 80)
    flows.open("udp source kept", False, few, VIP2, 80)
    flows.open("udp6 source kept", False, few, VIP2_6, 80)
    flows.open("tcp to IPv6 endpoints", True, few, VIP, 82)
    flows.open("udp to IPv6 endpoints", False, few, VIP, 82)
    flows.open("tcp6 to IPv4 endpoints", True, few, VIP_6, 83)
    flows.open("udp6 to IPv4 endpoints", False, few, VIP_6, 83)
    # Datagrams in three fragments in each direction. The kernel joins those of IPv4 before net_af_packet gets them.
    flows.open("udp6 in fragments", False, few, VIP_6, 80, question=bytes(3000))


def end(lab, how=signal.SIGKILL):
    lab.gateway.end_daemon(how)


def restart(lab, how=signal.SIGKILL):
    end(lab, how)
    lab.gateway.start_daemon()


def kernel_resets(lab):
    """Resets that the gateway's kernel has sent: to packets of flows that it got while penstockd was away."""
    names, values = (line.split() for line in lab.network.run("gateway", "cat", "/proc/net/snmp").stdout.splitlines()
                     if line.startswith("Tcp:"))
    return int(values[names.index("OutRsts")])


def tables(lab):
    return lab.gateway.json("status")["tables"]


def pinned_endpoint(lab):
    """The endpoint of a new connection."""
    with lab.tcp_socket(VIP, 81) as client:
        client.sendall(b"?")
        return client.recv(100).split()[0]


@case(driver=("af_xdp",))
@case(workers=(1, 2))
def a_connection_survives_kill_9(lab):
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, 40)
    with flows:
        flows.until_all_answered()
        mine = pinned_endpoint(lab)
        for _ in range(2):
            restart(lab)
            equal(tables(lab)["lost"], [], "connections lost, by reason")
            flows.until_all_answered()
            equal(flows.findings(), {}, "flows that changed")
        for _ in range(4):
            equal(pinned_endpoint(lab), mine, "endpoint of the pinned client")
    lab.remarks.append(f"longest gap {flows.longest_gap_s:.1f} s")


@case(alone=True)
def a_thousand_connections_survive_repeated_kill_9_beside_new_ones(lab):
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows)
    with flows, NewFlows(lab, NEW_FLOWS_A_SECOND, VIP, 80) as new:
        flows.until_all_answered()
        for i in range(RESTARTS):
            restart(lab)
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows that changed at restart {i + 1}")
            lost = {each["reason"]: int(each["count"]) for each in tables(lab)["lost"]}
            equal(lost, {}, f"connections lost by restart {i + 1}")
        counted = new.answered
        until("new flows are answered", lambda: new.answered > counted + 50, 20)
    equal(kernel_resets(lab), 0, "resets that the gateway's kernel sent")
    equal(dict(new.failures), {}, f"failures of {new.opened} new flows")
    check(new.answered == new.opened, f"{new.answered} of {new.opened} new flows were answered")
    lab.remarks.append(f"{RESTARTS} restarts, {len(flows.flows)} long and {new.opened} new flows, longest gap {flows.longest_gap_s:.1f} s, "
                       f"adoption {int(tables(lab)['adoption_us']) / 1000:.1f} ms")


@case(end=("SIGTERM", "SIGKILL"))
def connections_move_to_other_workers_after_a_restart_with_another_number(lab):
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, 100)
    with flows:
        flows.until_all_answered()
        mine = pinned_endpoint(lab)
        for workers in (2, 3, 1):
            end(lab, getattr(signal, lab.variant["end"]))
            lab.gateway.set_workers(workers)
            lab.gateway.start_daemon()
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows that changed with {workers} workers")
            equal(tables(lab)["lost"], [], "connections lost, by reason")
            equal(pinned_endpoint(lab), mine, "endpoint of the pinned client")


@case()
def only_connections_outside_a_new_snat_range_are_lost_and_counted(lab):
    lab.gateway.more_options = ["--snat-ports", "20000-29999"]
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, 100)
    with flows:
        flows.until_all_answered()
        end(lab)
        lab.gateway.more_options = ["--snat-ports", "24000-33999"]
        lab.gateway.start_daemon()
        translated = [flow for flow in flows.flows if "source kept" not in flow.kind]
        outside = [flow for flow in translated if not 24000 <= int(flow.identities[0].split()[2]) <= 33999]
        check(0 < len(outside) < len(translated), f"{len(outside)} of {len(translated)} flows show nothing")
        lost = {each["reason"]: int(each["count"]) for each in tables(lab)["lost"]}
        equal(lost, {"no_snat_port": len(outside)}, "connections lost, by reason")
        kept = [flow for flow in flows.flows if flow not in outside]
        before = [flow.answered for flow in kept]
        until("the others go on", lambda: all(flow.answered > count for flow, count in zip(kept, before)), 30, 0.05)
        equal([(flow.kind, flow.broken, flow.identities) for flow in kept if flow.broken or len(flow.identities) != 1], [],
              "flows inside the range that changed")
        until("TCP flows outside it are reset", lambda: all(flow.broken for flow in outside if flow.stream), 30, 0.05)


@case()
def flows_of_an_endpoint_that_the_last_good_configuration_lacks_end_by_its_rules(lab):
    """Its Services do not drain: TCP connections continue, UDP flows end."""
    start(lab)
    flows = KeptFlows(lab)
    flows.open("tcp", True, 60, VIP, 80)
    flows.open("udp", False, 60, VIP, 80)
    with flows:
        flows.until_all_answered()
        # The penstockd that makes the other state has no connections, and would reset those that send.
        flows.fall_silent()
        lab.gateway.sync.kill()
        lab.gateway.sync.wait()
        end(lab)
        gone = flows.flows[0].identities[0].split()[0].decode()
        leave_state_without(lab, gone)
        lab.gateway.start_daemon()
        theirs = [flow for flow in flows.flows if flow.identities[0].split()[0].decode() == gone]
        ending = [flow for flow in theirs if not flow.stream]
        check(0 < len(ending) < len(theirs), f"{len(ending)} of {len(theirs)} flows of {gone} are of UDP")
        equal({each["reason"]: int(each["count"]) for each in tables(lab)["lost"]}, {"no_endpoint": len(ending)}, "lost")
        before = [flow.answered for flow in flows.flows]
        flows.go_on()
        until("all go on", lambda: all(flow.answered > count for flow, count in zip(flows.flows, before)), 30, 0.05)
        equal([(flow.kind, flow.broken, flow.identities) for flow in flows.flows
               if flow not in ending and (flow.broken or len(flow.identities) != 1)], [], "flows that changed")
        until("clients of ended flows get another endpoint",
              lambda: all(flow.identities[-1].split()[0].decode() != gone for flow in ending), 30)


def leave_state_without(lab, backend):
    """Replaces the state file by one of a configuration without this backend, made by another penstockd run."""
    lab.gateway.table_dir, tables_of_the_flows = "off", lab.gateway.table_dir
    lab.apply(*(entry if entry["kind"] != "EndpointSlice" else
                {**entry, "endpoints": [each for each in entry["endpoints"]
                                        if each["addresses"][0] not in (net.BACKENDS[backend], net.BACKENDS6[backend])]}
                for entry in objects()))
    os.unlink(lab.gateway.state_file)
    lab.gateway.start_daemon()
    lab.gateway.start_sync(lab.manifests)
    until("the other state is saved", lambda: os.path.exists(lab.gateway.state_file), 20)
    lab.gateway.sync.kill()
    lab.gateway.sync.wait()
    end(lab, signal.SIGTERM)
    lab.gateway.table_dir = tables_of_the_flows


def refused(lab):
    return tables(lab)["refused_files"]


def header_patch(lab, offset, content):
    """Overwrites bytes of the table file."""
    (name,) = (name for name in os.listdir(lab.gateway.table_dir) if name.startswith("tables."))
    with open(os.path.join(lab.gateway.table_dir, name), "r+b") as file:
        file.seek(offset)
        file.write(content)
    return name


@case()
def a_table_file_that_cannot_be_used_is_named_and_set_aside(lab):
    start(lab)
    end(lab)
    name = header_patch(lab, 24, b"\xff" * 8)
    lab.gateway.start_daemon()
    equal(refused(lab), [f"{name} has a header whose checksum is wrong"], "what status says")
    check(sorted(os.listdir(lab.gateway.table_dir))[0] == f"refused.{name.removeprefix('tables.')}.damaged", "it is not set aside")
    equal(pinned_endpoint(lab).decode() in net.BACKENDS, True, "new connections")
    end(lab)
    (name,) = (name for name in os.listdir(lab.gateway.table_dir) if name.startswith("tables."))
    os.truncate(os.path.join(lab.gateway.table_dir, name), 1 << 20)
    lab.gateway.start_daemon()
    check(f"{name} has 1048576 of the" in refused(lab)[0], f"what status says: {refused(lab)}")


@case()
def a_folder_that_cannot_be_used_ends_connections_with_the_process_and_is_named(lab):
    lab.gateway.table_dir = lab.run.file("on-disk")
    start(lab)
    status = tables(lab)
    equal(status["file"], "", "file")
    check("on-disk" in status["why_not"], f"reason: {status['why_not']}")
    check("Tables:         end with penstockd: " in lab.gateway.ctl("status").stdout, "status as text")
    equal(pinned_endpoint(lab).decode() in net.BACKENDS, True, "new connections")


@case()
def a_full_file_system_ends_connections_with_the_process_and_is_named(lab):
    folder = lab.run.file("full")
    os.mkdir(folder)
    net.command("mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "none", folder)
    try:
        lab.gateway.table_dir = os.path.join(folder, "tables")
        start(lab)
        status = tables(lab)
        equal(status["file"], "", "file")
        check("No space left on device" in status["why_not"], f"reason: {status['why_not']}")
        equal(pinned_endpoint(lab).decode() in net.BACKENDS, True, "new connections")
    finally:
        end(lab)
        net.command("umount", folder)


@case()
def tables_in_hugepages_survive_a_restart(lab):
    folder = lab.run.file("huge")
    os.mkdir(folder)
    net.command("mount", "-t", "hugetlbfs", "-o", "pagesize=2M,mode=0700", "none", folder)
    try:
        lab.gateway.table_dir = os.path.join(folder, "tables")
        start(lab)
        check(tables(lab)["in_hugepages"], f"not in hugepages: {tables(lab)}")
        flows = KeptFlows(lab)
        open_flows(lab, flows, 40)
        with flows:
            for _ in range(2):
                flows.until_all_answered()
                restart(lab)
                equal((tables(lab)["lost"], tables(lab)["in_hugepages"]), ([], True), "lost, and whether in hugepages")
                flows.until_all_answered()
                equal(flows.findings(), {}, "flows that changed")
        equal(len(os.listdir(lab.gateway.table_dir)), 1, "files in the folder")
    finally:
        end(lab)
        net.command("umount", folder)


@case()
def a_second_penstockd_with_the_same_table_folder_is_refused_by_name(lab):
    start(lab)
    words = lab.gateway.daemon_words()
    words[words.index("--listen") + 1] = f"unix:{lab.run.file('second.sock')}"
    words[words.index("--state-file") + 1] = lab.run.file("second.pb")
    second = lab.network.run("gateway", *words, timeout_s=20)
    equal(second.returncode, 1, "exit code")
    check(f"--table-dir: table folder {lab.gateway.table_dir} is in use by another process" in second.stdout + second.stderr,
          f"what it says:\n{second.stdout}{second.stderr}")


@case()
def kill_9_during_a_start_leaves_what_was_there(lab):
    """At whatever moment of a start: the flows go on after the next one."""
    start(lab)
    flows = KeptFlows(lab)
    open_flows(lab, flows, 40)
    with flows:
        flows.until_all_answered()
        end(lab)
        for delay_ms in (5, 50, 100, 200, 300, 400, 600, 800):
            daemon = lab.network.start("gateway", lab.gateway.daemon_words(), "penstockd.log")
            time.sleep(delay_ms / 1000)
            daemon.kill()
            daemon.wait()
        lab.gateway.start_daemon()
        flows.until_all_answered()
        equal(flows.findings(), {}, "flows that changed")
        equal(tables(lab)["lost"], [], "connections lost, by reason")
