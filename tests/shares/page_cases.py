# SPDX-License-Identifier: Apache-2.0
"""The pages docs/shares-*.md, walked as an operator does, on two gateways with a router and clients. Files of the pages
are in a folder of each gateway; where a page calls the service manager, the case does what the manager does."""
import os
import shutil
import subprocess

from copy_cases import counter, open_flows
from daemons import frr_data_plane
from fixture import LB_IP, case, check, equal
from kept_flows import KeptFlows
from lab import network as net
from pages import blocks_of
from share_cases import FIRST, OTHER_VIP, SECOND
from two_gateways import (FIRST_PEER, LASTING_DETECT_MS, SECOND_PEER, SNAT, VIA_FIRST, VIA_SECOND, Killed, add_second, bring_up, build_network,
                          route_to_other_uplink, until_channel, until_via)

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs")
RESTART = "systemctl restart penstock-gateway\n"
KILL = "systemctl kill --signal=KILL penstock-gateway\n"
BLOCKS = {"shares-two-gateways.md": 11, "shares-behind-ecmp.md": 4, "shares-failures.md": 2}


def blocks(page):
    found = blocks_of(os.path.join(DOCS, page))
    equal(len(found), BLOCKS[page], f"blocks of commands in {page}")
    return found


class Host:
    """The machine of a gateway: its folder for /etc/penstock, and programs that reach this gateway."""

    def __init__(self, lab, role, gateway):
        self._lab, self._role, self.gateway = lab, role, gateway
        self.etc, programs = lab.run.file(f"etc-{gateway.name}"), lab.run.file(f"bin-{gateway.name}")
        os.mkdir(self.etc)
        os.mkdir(programs)
        self._path = f"{programs}:{os.environ['PATH']}"
        for name, options in (("penstockctl", f"--gateway {gateway.address} "), ("penstockd", "")):
            with open(os.path.join(programs, name), "w") as file:
                file.write(f'#!/bin/sh\nexec {gateway.program(name)} {options}"$@"\n')
            os.chmod(file.name, 0o755)
        self._keep_base_of_page()

    def _keep_base_of_page(self):
        """penstockd.ini with the lab's options of this gateway, without those that the pages set."""
        words = self.gateway.daemon_words()[1:]
        with open(os.path.join(self.etc, "penstockd.ini"), "w") as file:
            for name, value in zip(words[::2], words[1::2]):
                if name not in ("--listen", "--gateway-name"):
                    file.write(f"{name.removeprefix('--')} = {value}\n")
        program = self.gateway.program("penstockd")
        self.gateway.daemon_words = lambda: [program, "--config", os.path.join(self.etc, "penstockd.ini"), *self.gateway.more_options]

    def run(self, block):
        """Its standard output."""
        text = block.replace("/etc/penstock", self.etc).replace("/run/penstock/penstockd.sock", self.gateway.socket)
        text = text.replace("/run/frr/bfdd-dp.sock", frr_data_plane(self._lab, self._role))
        done = self._lab.network.run(self._role, "env", f"PATH={self._path}", "bash", "-eu", "-c", text, timeout_s=240)
        equal(done.returncode, 0, f"exit code on {self.gateway.name} of\n{block}\n{done.stdout}{done.stderr}\n")
        return done.stdout


def hosts_of(lab):
    """Two machines with certificates, by the page."""
    build_network(lab)
    add_second(lab)
    hosts = Host(lab, "gateway", lab.gateway), Host(lab, "gateway-2", lab.second)
    certificates = blocks("shares-two-gateways.md")[0]
    folder = lab.run.file("ca")
    os.mkdir(folder)
    subprocess.run(["bash", "-eu", "-c", certificates], cwd=folder, check=True, capture_output=True)
    for host in hosts:
        for name, copy in (("ca.pem", "ca.pem"), (f"{host.gateway.name}.pem", "gateway.pem"), (f"{host.gateway.name}.key", "gateway.key")):
            shutil.copy(os.path.join(folder, "certificates", name), os.path.join(host.etc, copy))
    return hosts


def configure(hosts, plan):
    options = blocks("shares-two-gateways.md")[2]
    for host, peer in zip(hosts, (FIRST_PEER, SECOND_PEER)):
        host.run(plan)
        host.run(options.replace(FIRST, host.gateway.name).replace(FIRST_PEER, peer))
        host.gateway.more_options = []


def shares_of(host):
    return host.gateway.json("get", "shares")


@case(waits_s=20)
def the_page_two_gateways_leads_to_connections_that_outlive_a_gateway(lab):
    _, plan, _, start, check_it, kill, after_loss, after_return, drain, undrain, move = blocks("shares-two-gateways.md")
    equal((start, kill), (RESTART, KILL), "calls of the service manager")
    first, second = hosts = hosts_of(lab)
    configure(hosts, plan)
    bring_up(lab, [], bfd="workers", detect_ms=LASTING_DETECT_MS, has_network=True)
    until_via(lab, VIA_FIRST)
    for host in hosts:
        shown = host.run(check_it)
        check(" complete " in shown and "Share 0\n" in shown and "203.0.113.200" in shown and " up " in shown, f"{host.gateway.name}:\n{shown}")
        described = host.gateway.json("describe", "share", "0")
        equal({vip["address"] for vip in described["vips"]}, {LB_IP, SNAT}, "addresses of share 0")
        equal((described["primary"]["name"], described["heir"]["name"]), (FIRST, SECOND), "gateways of share 0")
    flows = KeptFlows(lab)
    open_flows(flows, 40, 10)
    with flows:
        def all_continue(what):
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows {what}")
        all_continue("at the beginning")
        # Copies are of connections older than --share-age.
        until_channel(lab.second, "complete", copies=50)
        Killed.lose(lab)
        until_via(lab, VIA_SECOND)
        all_continue("after a loss")
        shown = second.run(after_loss)
        check(counter(lab.second, "connections_taken_over") >= 50 and "connections_taken_over" in shown, shown)
        lab.gateway.start_daemon()
        route_to_other_uplink(lab)
        shown = first.run(after_return)
        check("returns" not in shown and "primary" in shown, shown)
        until_via(lab, VIA_FIRST)
        all_continue("after a return")
        for host in hosts:
            failures = [host.run(block) for block in blocks("shares-failures.md")]
            check("connections_taken_over" in failures[0] and '"copies"' in failures[1], f"shares-failures.md: {failures}")
        first.run(drain)
        until_via(lab, VIA_SECOND)
        all_continue("during a drain")
        first.run(undrain)
        until_via(lab, VIA_FIRST)
        all_continue("after a drain")
        until_channel(lab.gateway, "complete")
        until_channel(lab.second, "complete", copies=0)
        for host in (second, first):
            host.run(move)
        until_via(lab, VIA_SECOND)
        all_continue("of a moved share")
        check("edge-2 (this gateway)" in second.run("penstockctl describe share 0"), "primary of the moved share")


def expected_routes(hosts, shares):
    """Next hop by address, if these gateways run: each share at its primary, otherwise at its heir."""
    uplinks = dict(zip((host.gateway.name for host in hosts), (net.UPLINK, net.SECOND_UPLINK)))
    owner = {address: share for share in shares for address in share["snat"]}
    owner |= {vip["address"]: shares[int(vip["share"])] for vip in hosts[0].gateway.json("get", "vips")}
    return {address: uplinks.get(share["primary"]) or uplinks[share["heir"]] for address, share in owner.items()}


@case(waits_s=20)
def the_page_edge_nodes_behind_ecmp_distributes_vips_among_gateways(lab):
    plan, show, show_vips, remove = blocks("shares-behind-ecmp.md")
    hosts = hosts_of(lab)
    configure(hosts, plan)
    bring_up(lab, [], bfd="workers", detect_ms=LASTING_DETECT_MS, has_network=True)
    for host in hosts:
        shown = host.run(show)
        check(all(name in shown for name in (FIRST, SECOND, "edge-3", "203.0.113.215")), shown)
        shown = host.run(show_vips)
        check(LB_IP in shown and OTHER_VIP in shown and "Share 0\n" in shown, shown)
    before = shares_of(hosts[0])
    equal([(share["primary"], share["heir"]) for share in shares_of(hosts[1])], [(share["primary"], share["heir"]) for share in before],
          "roles by the other gateway")
    check({share["primary"] for share in before} == {FIRST, SECOND, "edge-3"}, f"primaries: {before}")
    until_via(lab, expected_routes(hosts, before))
    for host in hosts:
        host.run(remove)
    after = shares_of(hosts[0])
    for was, now in zip(before, after):
        if "edge-3" not in (was["primary"], was["heir"]):
            equal((now["primary"], now["heir"]), (was["primary"], was["heir"]), f"roles in share {was['number']}")
    until_via(lab, expected_routes(hosts, after))
    flows = KeptFlows(lab)
    open_flows(flows, 8, 2)
    with flows:
        flows.until_all_answered()
        equal(flows.findings(), {}, "flows")
