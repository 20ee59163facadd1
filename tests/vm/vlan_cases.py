# SPDX-License-Identifier: Apache-2.0
"""A VLAN interface on a twin: Linux hosts exchange tagged frames, while penstockd serves untagged frames of
the same card."""
from blocklist_cases import BLOCKLIST
from card_cases import CARDS, web_and_echo
from fixture import VIP, Background, case, check, equal, until
from neighbours import INTERFACE, boot_with_neighbours
from vm_bed import PATIENCE_S

VLAN = 5
# On the VLAN; no other route leads to these addresses.
OURS, THEIRS = ("10.85.0.1", "fd00:85::1"), ("10.85.0.2", "fd00:85::2")
FULL_SIZE, FULL_SIZE_6 = 1500 - 28, 1500 - 48  # a ping's payload in an IP packet of 1,500 bytes after the tag


def add_vlan(link, addresses):
    return (f"link add link {link} name tagged type vlan id {VLAN}", "link set tagged up", f"address add {addresses[0]}/24 dev tagged",
            f"address add {addresses[1]}/64 dev tagged nodad")


@case(card=tuple(CARDS))
def linux_talks_over_a_tag_while_vips_are_served_without_one(lab):
    driver, _, _ = CARDS[lab.variant["card"]]
    peer, = boot_with_neighbours(lab, lab.variant["card"], "up")
    lab.machine.write(BLOCKLIST, "")
    lab.gateway.more_options = ["--blocklist", BLOCKLIST]
    lab.serve(*web_and_echo())
    equal([port["driver"] for port in lab.gateway.ports()], [driver] * 2, "drivers")
    lab.machine.command("ip", "-batch", "-", stdin="\n".join(add_vlan("uplink0", OURS)) + "\n")
    peer.ip(*add_vlan(INTERFACE, THEIRS))

    def answered(words, *more):
        return " 0% packet loss" in words("ping", "-c", "1", "-W", "2", *more).stdout
    with Background(lambda: lab.get(VIP, timeout_s=20).status) as load:
        for ours, theirs, size in zip(OURS, THEIRS, (FULL_SIZE, FULL_SIZE_6)):
            until(f"{theirs} answers over the tag", lambda theirs=theirs: answered(lab.machine.run, theirs), PATIENCE_S)
            for words, address in ((lab.machine.run, theirs), (peer.run, ours)):
                for _ in range(3):  # one by one: after a first answer, ping waits for others only twice as long
                    pinged = words("ping", "-c", "1", "-W", "10", "-M", "do", "-s", str(size), address)
                    check(" 0% packet loss" in pinged.stdout, f"ping {address}:\n{pinged.stdout}{pinged.stderr}")
        until("requests without a tag are answered", lambda: len(load.results) > 5, PATIENCE_S)
        # The blocklist also applies to tagged frames, and only to the listed addresses.
        lab.machine.write(BLOCKLIST, f"{THEIRS[0]}\n", replace=True)
        until("the list counts", lambda: not answered(peer.run, OURS[0]), PATIENCE_S)
        before = lab.drops()["source_blocked"]
        check(not answered(peer.run, OURS[0]), "somebody on the list was answered")
        equal(lab.drops()["source_blocked"] - before, 1, "packets of a blocked source dropped")
        check(answered(peer.run, OURS[1]), "the address that is not on the list")
        lab.machine.write(BLOCKLIST, "# nobody\n", replace=True)
        until("whoever was on the list is answered", lambda: answered(peer.run, OURS[0]), PATIENCE_S)
        seen = len(load.results)
        until("requests without a tag go on", lambda: len(load.results) > seen, PATIENCE_S)
    equal((load.errors, set(load.results)), ([], {200}), "errors and answers of the load")
    equal(set(lab.drops()), {"source_blocked"}, "drops")
    lab.remarks.append(f"{len(load.results)} requests without a tag meanwhile")
