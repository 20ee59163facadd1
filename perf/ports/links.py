# SPDX-License-Identifier: Apache-2.0
"""The kinds of ports without a NIC, each with the link behind it: the device of penstockd, and the device of the
load generator at the other end."""
import dataclasses

import bed

# The destination MAC address of testpmd's flowgen frames, which no option changes.
FLOWGEN_MAC = "00:01:02:03:04:01"
# Of the Linux side of a TAP port, which otherwise has the address of the port.
TAP_LOAD_MAC = "02:00:00:00:03:01"


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    driver: str     # memif, tap, af_packet or af_xdp
    arguments: str = ""  # appended to penstockd's devices
    options: tuple = ()  # of penstockd

    @property
    def has_veth(self):
        return self.driver in ("af_packet", "af_xdp")


KINDS = (Kind("memif", "memif"), Kind("tap", "tap"), Kind("af_packet", "af_packet"), Kind("af_xdp", "af_xdp"),
         Kind("af_xdp_no_busy_poll", "af_xdp", ",busy_budget=0"))


def variant(text):
    """A Kind from the command line, NAME:DRIVER[,ARGUMENT=VALUE...][;OPTION...]. The options are penstockd's."""
    name, _, rest = text.partition(":")
    device, *options = rest.split(";")
    driver, comma, arguments = device.partition(",")
    if not name or driver not in ("memif", "tap", "af_packet", "af_xdp"):
        raise ValueError(text)
    return Kind(name, driver, comma + arguments, tuple(word for option in options for word in option.split()))


class Namespaces(bed.Namespace):
    """penstockd's namespace, and one for the load generator at the other ends of veth pairs. A memif or TAP port
    needs no second namespace."""

    def build(self, kind, macs):
        self.add("gateway")
        if kind.has_veth:
            self.add("load")
            self.sysctl("load", "ipv6/conf/default/disable_ipv6", 1)
            for number, mac in enumerate(macs):
                self.join("gateway", f"gw{number}", "load", f"load{number}")
                self.ip("gateway", f"link set gw{number} address {mac}")

    def load_role(self, kind):
        return "load" if kind.has_veth else "gateway"


class Gateway(bed.Gateway):
    """penstockd with one worker on two ports of a kind. With `sink`, the second port discards what it sends, so that
    one process can be the whole load."""

    def __init__(self, network, run, build, options, kind, macs, sink=False):
        super().__init__(network, run, build, options.connections, options.worker_cpu, options.load_cpu, options.ring)
        self._kind, self._macs, self._sink = kind, macs, sink
        self.socket = run.file(f"{kind.name}-{'sink' if sink else 'both'}.sock")
        self.more_options = list(kind.options)

    def wire(self, twin):
        return self._run.file(f"{self._kind.name}-{'sink' if self._sink else 'both'}-{twin}.memif")

    def device(self, i, twin, mac):
        kind, mac = self._kind, self._macs[i]
        if self._sink and i == 1:
            return "net_null1,size=64,no-rx=1"
        if kind.driver == "memif":
            return super().device(i, twin, mac) + kind.arguments
        if kind.driver == "tap":
            return f"net_tap{i},iface=tap{i},mac={mac}{kind.arguments}"
        return f"net_{kind.driver}{i},iface=gw{i}{kind.arguments}"

    def peer_device(self, i, twin):
        if self._kind.driver == "memif":
            return super().peer_device(i, twin)
        return packet_device(i, f"{'tap' if self._kind.driver == 'tap' else 'load'}{i}")

    def sync_words(self, manifests):
        words = super().sync_words(manifests)
        words[words.index("--allowed-external-cidrs") + 1] += ",10.253.0.0/16"
        return words

    def copy_mode(self):
        """The granted af-xdp-mode of the first port and the reason for it; None for other drivers."""
        for port in self.json("get", "ports"):
            for setting in port.get("settings", []):
                if setting["name"] == "af-xdp-mode":
                    return f"{setting['granted']} ({setting['reason'] or 'as requested'})"
        return None


def packet_device(i, interface):
    """net_af_packet of the generators, with rings as long as those that penstockd requests."""
    return f"net_af_packet{i},iface={interface},blocksz=65536,framesz=2048,framecnt=2048,qdisc_bypass=1"

