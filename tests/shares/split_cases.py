# SPDX-License-Identifier: Apache-2.0
"""Split brain: both gateways live, do not reach each other, and the router sends flows of one VIP to each."""
import collections
import itertools

from copy_cases import counter, lose_and_continue, open_flows
from fixture import LB_IP, case, check, equal
from kept_flows import KeptFlows
from lab import network as net
from two_gateways import LASTING_DETECT_MS, SNAT, Killed, begin, until_channel

TABLE, MARK = 100, 1
HEIR_CLIENT_PORTS = 20_000, 20_999  # flows that the router sends to the heir from the start on
HEIR_PART = 7  # port % 8 of the SNAT ports with which an heir opens flows


class Split:
    """A second path of the router, through the second gateway, for some flows in both directions. A router has no state
    of flows. Two routers with different routes have this effect, and replies have the router of the endpoint."""

    def __init__(self, lab):
        self._lab = lab
        lab.network.ip("client", f"route add {LB_IP}/32 via {net.SECOND_UPLINK} table {TABLE}\nroute add {SNAT}/32 via "
                                 f"{net.SECOND_UPLINK} table {TABLE}\nrule add fwmark {MARK} lookup {TABLE}")
        low, high = HEIR_CLIENT_PORTS
        self._nft("add table ip split", "add set ip split clients { type inet_proto . inet_service; }",
                  "add set ip split replies { type ipv4_addr . inet_proto . inet_service; }",
                  "add chain ip split sent { type route hook output priority mangle; }",
                  "add chain ip split received { type filter hook prerouting priority mangle; }",
                  f"add rule ip split sent ip daddr {LB_IP} meta l4proto {{ tcp, udp }} th sport {low}-{high} meta mark set {MARK}",
                  f"add rule ip split sent ip daddr {LB_IP} meta l4proto . th sport @clients meta mark set {MARK}",
                  f"add rule ip split received ip daddr {SNAT} meta l4proto {{ tcp, udp }} th dport & 7 == {HEIR_PART} meta mark set {MARK}",
                  f"add rule ip split received ip daddr {SNAT} ip saddr . meta l4proto . th dport @replies meta mark set {MARK}")

    def _nft(self, *commands):
        done = self._lab.network.run("client", "nft", "-f", "-", stdin="\n".join(commands) + "\n")
        equal((done.returncode, done.stderr), (0, ""), "nft")

    def move(self, flows):
        """These flows, in both directions, go through the second gateway from now on."""
        clients, replies = [], []
        for flow in flows:
            protocol = "tcp" if flow.stream else "udp"
            clients.append(f"{protocol} . {flow.socket.getsockname()[1]}")
            backend, snat, port = endpoint_and_source(flow)
            equal(snat, SNAT, "source of a flow at the endpoint")
            replies.append(f"{net.BACKENDS[backend]} . {protocol} . {port}")
        self._nft(f"add element ip split clients {{ {', '.join(clients)} }}", f"add element ip split replies {{ {', '.join(replies)} }}")

    def end(self):
        """All flows go through the gateway that the router prefers."""
        self._nft("delete table ip split")


def endpoint_and_source(flow):
    """Of a flow that has been answered: name of the backend, and the source that it sees."""
    _, backend, source, port = flow.identities[-1].decode().split(" ")
    return backend, source, int(port)


class HeirFlows(KeptFlows):
    """Flows that the router sends to the heir."""

    def __init__(self, lab):
        super().__init__(lab)
        self._ports = itertools.count(HEIR_CLIENT_PORTS[0])

    def bind(self, client):
        client.bind(("", next(self._ports)))


def check_sources(kept):
    """No two flows of one endpoint have the same source."""
    seen = collections.Counter((flow.stream, *endpoint_and_source(flow)) for flows in kept for flow in flows.flows)
    equal([flow for flow, count in seen.items() if count > 1], [], "flows with one source at one endpoint")


@case(waits_s=20)
def split_brain_breaks_no_connection_of_either_gateway(lab):
    begin(lab, detect_ms=LASTING_DETECT_MS, faults=True)
    early = KeptFlows(lab)
    open_flows(early, 40, 10)
    here, there = KeptFlows(lab), HeirFlows(lab)
    kept = [early, here, there]

    def all_continue(what):
        for flows in kept:
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows {what}")
        check_sources(kept)
    with early:
        early.until_all_answered()
        until_channel(lab.second, "complete", copies=50)
        lab.wire.set_faults(loss=1.0)
        # Each gateway gives its stream up after 10 s of silence. Nothing else of a gateway depends on the channel, so a
        # longer time changes nothing.
        cut_ms = max(until_channel(gateway, "connecting") for gateway in (lab.gateway, lab.second))
        split = Split(lab)
        split.move(early.flows[::2])
        open_flows(here, 40, 10)
        open_flows(there, 40, 10)
        with here, there:
            all_continue("of split gateways")
            equal({endpoint_and_source(flow)[2] % 8 for flow in there.flows}, {HEIR_PART}, "part of the ports of flows that the heir has opened")
            check(HEIR_PART not in {endpoint_and_source(flow)[2] % 8 for flow in early.flows + here.flows}, "part of the primary's ports")
            taken = counter(lab.second, "connections_taken_over")
            check(taken >= 25, f"the heir has taken over {taken} of the 25 flows that moved to it")
            lab.wire.mend()
            healed_ms = max(until_channel(gateway, "complete") for gateway in (lab.gateway, lab.second))
            until_channel(lab.gateway, "complete", copies=50)
            all_continue("of healed gateways")
            split.end()
            all_continue("that the router sends to the primary again")
            taken = counter(lab.gateway, "connections_taken_over")
            check(taken >= 50, f"the primary has taken over {taken} of the 50 flows that the heir has opened")
            until_channel(lab.second, "complete")
            lose_and_continue(lab, early, Killed)
            all_continue("after the loss of the primary")
    lab.wire.stop()
    lab.remarks.append(f"150 flows, 75 at each gateway: 0 reset; the channel was given up after {cut_ms:.0f} ms and complete {healed_ms:.0f} ms "
                       "after it was back")
