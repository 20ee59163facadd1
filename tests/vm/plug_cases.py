# SPDX-License-Identifier: Apache-2.0
"""A cable is unplugged or a card is removed while the gateway runs."""
from card_cases import CARDS, web_and_echo
from fixture import VIP, Background, case, check, equal, until
from vm_bed import PATIENCE_S, pair_of, pulls_a_card, spare


@case(card=tuple(CARDS))
@pulls_a_card
def a_card_that_is_pulled_takes_nothing_else_with_it(lab):
    pulled = spare(lab.variant["card"])
    lab.boot([*pair_of("e1000e"), pulled])
    address = lab.gateway.devices[2]
    lab.serve(*web_and_echo())
    with Background(lambda: lab.get(VIP, timeout_s=20).status) as load:
        until("requests are answered", lambda: len(load.results) > 5, PATIENCE_S)
        lab.machine.monitor("device_del", id=pulled.id)
        until("the port is given up", lambda: lab.gateway.ports()[2]["state"] == "removed", PATIENCE_S, 0.5)
        # Linux removes the card when no process holds it any more.
        until("the card is gone", lambda: address not in lab.machine.command("ls", "/sys/bus/pci/devices").split(), PATIENCE_S, 0.5)
        seen = len(load.results)
        until("requests go on being answered", lambda: len(load.results) > seen + 5, PATIENCE_S)
    equal((load.errors, set(load.results)), ([], {200}), "errors and answers of the load")
    equal([port["state"] for port in lab.gateway.ports()], ["running", "running", "removed"], "states of the ports")
    check(lab.gateway.daemon.poll() is None, "penstockd ended")
    # The kernel's frames through the spare's twin (it joins multicast groups) had no port to leave by.
    equal(set(lab.drops()) - {"port_removed"}, set(), "drops but for what the spare should have sent")
    lab.remarks.append(f"{len(load.results)} requests around the pull")


@case(card=tuple(CARDS))
def the_twin_follows_the_link_of_the_card(lab):
    cards = pair_of(lab.variant["card"])
    lab.boot(cards)
    lab.gateway.start_daemon()

    def seen():
        """(link up in penstockd, link up in Linux at the twin)."""
        return (bool(lab.gateway.ports()[0].get("link_up")),
                "NO-CARRIER" not in lab.machine.command("ip", "link", "show", "uplink0"))
    until("the link is up", lambda: seen() == (True, True), PATIENCE_S, 0.5)
    for up in (False, True):
        lab.machine.monitor("set_link", name=f"net-{cards[0].id}", up=up)
        until(f"the link is {'up' if up else 'down'}", lambda up=up: seen() == (up, up), PATIENCE_S, 0.5)
        check(lab.gateway.ports()[1].get("link_up"), "the other port's link went with it")
    lab.remarks.append(lab.gateway.interrupts())
