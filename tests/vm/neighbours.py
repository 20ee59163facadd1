# SPDX-License-Identifier: Apache-2.0
"""Hosts beside the gateway that use the guest's kernel: namespaces of the machine, each behind its own card
on one of the two wires. For features that the kernel of the test host may lack and the guest's kernel has:
VLAN interfaces and SCTP."""
from lab import network as net
from vm_bed import card, pair_of

# By wire: the gateway's addresses on it, and those of the host beside the gateway.
_PLACES = {"up": ((net.UPLINK, net.UPLINK6), ("10.80.1.3", "fd00:80:1::3")),
           "cl": ((net.CLUSTER, net.CLUSTER6), ("10.80.2.21", "fd00:80:2::21"))}
INTERFACE = "eth0"


class Neighbour:
    def __init__(self, lab, side, card):
        self._machine, self._name = lab.machine, f"host-{side}"
        self._gateway, self.addresses = _PLACES[side]
        interface = self._machine.drive_by_kernel(card)
        self._machine.command("ip", "netns", "add", self._name)
        self._machine.command("ip", "link", "set", interface, "netns", self._name, "name", INTERFACE)
        self.ip("link set lo up", f"link set {INTERFACE} up", f"address add {self.addresses[0]}/24 dev {INTERFACE}",
                f"address add {self.addresses[1]}/64 dev {INTERFACE} nodad",
                f"route add default via {self._gateway[0]}", f"route add ::/0 via {self._gateway[1]}")

    def words(self, *words):
        """The command that runs `words` on this host."""
        return ["ip", "netns", "exec", self._name, *words]

    def run(self, *words, timeout_s=30, stdin=None):
        return self._machine.run(*self.words(*words), timeout_s=timeout_s, stdin=stdin)

    def ip(self, *lines):
        self._machine.command("ip", "-n", self._name, "-batch", "-", stdin="\n".join(lines) + "\n")


def boot_with_neighbours(lab, kind, *sides):
    """Boots the machine with a pair of such cards for penstockd, and a neighbour on each wire of `sides`."""
    pair, others = pair_of(kind), [card("host", side) for side in sides]
    lab.boot([*pair, *others], vfio=False)
    for one in pair:
        lab.machine.give_to_vfio(one)
    lab.gateway.devices = [lab.machine.address_of(one) for one in pair]
    return [Neighbour(lab, side, card) for side, card in zip(sides, others, strict=True)]
