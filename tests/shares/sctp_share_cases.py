# SPDX-License-Identifier: Apache-2.0
"""An association of real SCTP stacks (tests/e2e/sctp_lab.py) continues at the heir of a lost primary."""
import socket
import struct

import sctp_lab
from copy_cases import counter
from fixture import LB_IP, case, check, equal, until
from lab import network as net
from lab.network import BACKENDS, inside
from two_gateways import VIA_SECOND, Killed, begin, until_channel, until_via

MESSAGES = 20
HEARTBEAT = b"\x04\x00\x00\x08\x00\x01\x00\x04"  # a chunk with an empty heartbeat info
ROLES = ("client", *BACKENDS)


class Aborts:
    """Counts the packets with an ABORT that pass the router, or arrive at an endpoint."""

    def __init__(self, lab):
        self._lab = lab
        rules = ["add table inet aborts", "add counter inet aborts seen"]
        for hook in ("input", "forward", "output"):
            rules += [f"add chain inet aborts {hook} {{ type filter hook {hook} priority 0; }}",
                      f"add rule inet aborts {hook} sctp chunk abort exists counter name seen"]
        for role in ROLES:
            done = lab.network.run(role, "nft", "-f", "-", stdin="\n".join(rules) + "\n")
            equal((done.returncode, done.stderr), (0, ""), "nft")

    def count(self):
        listed = [self._lab.network.run(role, "nft", "list", "counter", "inet", "aborts", "seen").stdout for role in ROLES]
        return sum(int(text.split("packets ")[1].split()[0]) for text in listed)


def wrong_tags(lab):
    return lab.second.drops()["sctp_wrong_tag"]


def forge(lab, role, source, source_port, address, port):
    """A packet with the addresses and ports of an association and another verification tag."""
    with inside(lab.network.namespace(role)), socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP) as sender:
        sender.bind((source, 0))
        sender.sendto(struct.pack("!HHII", source_port, port, 0x0bad0bad, 0) + HEARTBEAT, (address, 0))


@case(waits_s=15)
def an_sctp_association_of_a_lost_primary_continues_at_its_heir_SCTP002(lab):
    sctp_lab.skip_without_stack()
    begin(lab, share_age_s=3, more_objects=sctp_lab.diameter(families=("IPv4",), external_ips=(), ingress_ips=[LB_IP]))
    sctp_lab.start_servers(lab)
    aborts = Aborts(lab)
    with sctp_lab.HeldAssociation(lab, LB_IP) as association:
        until_channel(lab.second, "complete", copies=1)
        Killed.lose(lab)
        moved_ms = until_via(lab, VIA_SECOND)
        for _ in range(MESSAGES):
            equal(association.ask(), association.by, "the server at the heir")
        equal(counter(lab.second, "connections_taken_over"), 1, "connections taken over")
        (entry,) = lab.second.json("get", "connections", "--proto", "sctp")
        snat, dropped = entry["snat"], wrong_tags(lab)
        forge(lab, "client", net.CLIENT, association.port, LB_IP, sctp_lab.PORT)
        forge(lab, association.by, BACKENDS[association.by], sctp_lab.SERVER_PORT, snat["address"], snat["port"])
        until("both forged packets are dropped", lambda: wrong_tags(lab) == dropped + 2, patience_s=60)
        equal(association.ask(), association.by, "the server after forged packets")
        equal(aborts.count(), 0, "packets with an ABORT")
    check("error" not in sctp_lab.talk(lab, LB_IP, end_by="abort"), "a new association at the heir")
    until("the ABORT of the new one is counted", lambda: aborts.count() > 0, patience_s=60)
    lab.remarks.append(f"the router had the heir after {moved_ms:.0f} ms, then {MESSAGES} messages and answers; no ABORT")
