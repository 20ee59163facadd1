# SPDX-License-Identifier: Apache-2.0
"""A blocklist with and without drops in the NIC: real flow rules of net_tap, and virtio-net without rules."""
import socket

from card_cases import web_and_echo
from fixture import VIP, case, equal, until
from lab import network as net
from lab.network import inside
from steering_cases import dropped_by_traffic_control
from vm_bed import PATIENCE_S, pair_of

BLOCKLIST = "/run/blocklist"
BLOCKED, BLOCKED_CLIENT = "198.51.100.0/24", "198.51.100.7"
DATAGRAMS = 50


def devices_of_net_tap(lab, cards):
    """The cards stay with Linux. net_tap takes their frames and installs its rules by traffic control."""
    return [f"net_tap{i},iface=dtap{i},remote={lab.machine.drive_by_kernel(card)}" for i, card in enumerate(cards)]


def rules_about_sources(lab):
    return {(rule.get("port", 0), rule.get("match", "")): (rule["state"], rule.get("reason", ""))
            for rule in lab.gateway.json("get", "flows") if rule["kind"] == "source-drop"}


def forwarded(lab):
    return int(lab.gateway.services()["default/echo/udp"]["traffic"]["forward_packets"])


@case(driver=("net_tap", "net_virtio"))
def a_blocked_source_is_dropped_by_the_nic_or_else_by_software(lab):
    by_rule = lab.variant["driver"] == "net_tap"
    cards = pair_of("virtio-net-pci")
    lab.boot(cards, vfio=not by_rule)
    if by_rule:
        lab.gateway.devices = devices_of_net_tap(lab, cards)
    lab.machine.write(BLOCKLIST, f"{BLOCKED}  # says the test\n")
    lab.gateway.more_options = ["--blocklist", BLOCKLIST]
    lab.serve(*web_and_echo())
    equal([port["driver"] for port in lab.gateway.ports()], [lab.variant["driver"]] * 2, "drivers")
    if by_rule:
        installed = {(port, f"from {BLOCKED}"): ("INSTALLED", "") for port in (0, 1)}
        until("the rules are installed", lambda: rules_about_sources(lab) == installed, PATIENCE_S, 0.5)
    else:
        refused = {(port, ""): ("NOT_USED", "the driver has no rte_flow") for port in (0, 1)}
        equal(rules_about_sources(lab), refused, "rules")

    # One client with two addresses. The blocked address has a route back, so that only the blocklist prevents
    # answers.
    lab.network.ip("client", f"address add {BLOCKED_CLIENT}/32 dev eth0")
    lab.machine.command("ip", "route", "add", BLOCKED, "via", net.CLIENT)
    equal(lab.get(VIP, timeout_s=20).status, 200, "a request of the client that is not on the list")
    before = forwarded(lab)
    equal(lab.echo(VIP, 5353, b"hello", timeout_s=10)[2], b"hello", "a datagram of it")
    equal(forwarded(lab) - before, 1, "datagrams forwarded")
    with inside(lab.network.namespace("client")):
        blocked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with blocked:
        blocked.bind((BLOCKED_CLIENT, 0))
        blocked.connect((VIP, 5353))
        for _ in range(DATAGRAMS):
            blocked.send(b"let me in")

        def dropped():
            return dropped_by_traffic_control(lab.machine, "dtap0") if by_rule else lab.drops().get("source_blocked", 0)
        until(f"{DATAGRAMS} datagrams are dropped", lambda: dropped() >= DATAGRAMS, PATIENCE_S, 0.2)
        equal(dropped(), DATAGRAMS, "datagrams dropped")
        equal((lab.drops().get("source_blocked", 0), forwarded(lab) - before), (0 if by_rule else DATAGRAMS, 1),
              "datagrams dropped by software, and forwarded")
        equal(lab.get(VIP, timeout_s=20).status, 200, "a request of the other one meanwhile")

        lab.machine.write(BLOCKLIST, "# nobody\n", replace=True)
        until("no rule drops", lambda: not any(match for _, match in rules_about_sources(lab)), PATIENCE_S, 0.5)

        def answered():
            blocked.settimeout(2)
            blocked.send(b"and now?")
            try:
                return blocked.recv(65535).endswith(b"and now?")
            except TimeoutError:
                return False
        until("the client that was on the list is answered", answered, PATIENCE_S)
    lab.remarks.append(f"{DATAGRAMS} of {DATAGRAMS} dropped by {'the rule' if by_rule else 'software'}; answered once the list was empty")
