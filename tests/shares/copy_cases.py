# SPDX-License-Identifier: Apache-2.0
"""The heir of a share continues the connections of a lost primary."""
import contextlib
import errno
import functools

from fixture import LB_IP, case, check, equal, until
from kept_flows import KeptFlows
from two_gateways import (LOSSES, LOSSES_OF_WORKERS, VIA_FIRST, VIA_SECOND, Killed, begin, peer_of, route_to_other_uplink, until_channel,
                          until_heirs_are_ready, until_via)

TCP_FLOWS, UDP_FLOWS = 200, 50


def open_flows(flows, tcp=TCP_FLOWS, udp=UDP_FLOWS):
    """On a machine that is busy for the detection time, BFD ends the routes of a gateway for a moment."""
    def opened(kind, stream):
        try:
            flows.open(kind, stream, 1, LB_IP, 80)
        except OSError as error:
            if error.errno not in (errno.ENETUNREACH, errno.EHOSTUNREACH):
                raise
            return False
        return True
    for kind, stream, count in (("tcp", True, tcp), ("udp", False, udp)):
        for _ in range(count):
            until(f"a flow by {kind}", functools.partial(opened, kind, stream), patience_s=60)


def counter(gateway, name):
    return next(int(row["value"]) for row in gateway.json("stats")["counters"] if row["name"] == name)


def copies_are_those_of_the_primary(lab, at_least=0):
    """Every connection of the first gateway has a copy at the second one, which has no other copy."""
    held = int(peer_of(lab.second).get("copies", 0))
    return held == int(peer_of(lab.gateway).get("copies_there", 0)) == counter(lab.gateway, "connections") and held >= at_least


@contextlib.contextmanager
def copied_flows(lab, **how):
    """The lab of two gateways with 40 TCP and 10 UDP flows, which are copied. how: of begin()."""
    begin(lab, **how)
    flows = KeptFlows(lab)
    open_flows(flows, 40, 10)
    with flows:
        flows.until_all_answered()
        until_channel(lab.second, "complete", copies=50)
        yield flows


def lose_and_continue(lab, flows, loss):
    """The first gateway is lost. Each of its connections continues at the second one."""
    loss.lose(lab)
    moved_ms = until_via(lab, VIA_SECOND)
    flows.until_all_answered()
    equal(flows.findings(), {}, "flows that did not continue as they began")
    taken = counter(lab.second, "connections_taken_over")
    check(taken >= len(flows.flows), f"the heir has taken over {taken} of {len(flows.flows)} connections")
    return moved_ms


@case(alone=True, loss=tuple(LOSSES))
def connections_of_a_lost_primary_continue_at_its_heir(lab):
    begin(lab)
    flows = KeptFlows(lab)
    open_flows(flows)
    with flows:
        flows.until_all_answered()
        complete_ms = until_channel(lab.second, "complete", copies=len(flows.flows))
        there = int(peer_of(lab.gateway)["copies_there"])
        check(there >= len(flows.flows), f"copies by the account of the primary: {there}")
        flows.longest_gap_s = 0.0
        moved_ms = lose_and_continue(lab, flows, LOSSES[lab.variant["loss"]])
        gap_ms = 1000 * flows.longest_gap_s
        # A frozen gateway closes no connection: the stream is given up after 10 s of silence.
        until_channel(lab.second, "connecting")
        flows.until_all_answered()
        equal(flows.findings(), {}, "flows after the channel has ended")
    lab.remarks.append(f"{TCP_FLOWS} TCP and {UDP_FLOWS} UDP flows, copied after {complete_ms:.0f} ms: 0 reset; the longest time "
                       f"without an answer was {gap_ms:.0f} ms; the router had the heir after {moved_ms:.0f} ms at the latest")


@case(alone=True)
def connections_continue_while_workers_of_the_primary_stop(lab):
    begin(lab, bfd="workers")
    flows = KeptFlows(lab)
    open_flows(flows)
    with flows:
        flows.until_all_answered()
        until_channel(lab.second, "complete", copies=len(flows.flows))
        for name, loss in LOSSES_OF_WORKERS.items():
            flows.longest_gap_s = 0.0
            moved_ms = lose_and_continue(lab, flows, loss)
            lab.remarks.append(f"{name}: the longest time without an answer was {1000 * flows.longest_gap_s:.0f} ms, the router had the heir after "
                               f"{moved_ms:.0f} ms at the latest")
            loss.mend(lab)
            until_via(lab, VIA_FIRST)
            flows.until_all_answered()
            equal(flows.findings(), {}, f"flows when the workers go on that were {name}")
            until_channel(lab.second, "complete")
            until_heirs_are_ready(lab)
    lab.remarks.append(f"{len(flows.flows)} flows: 0 reset")


@case()
def a_primary_that_returns_continues_the_connections_of_its_heir(lab):
    with copied_flows(lab) as flows:
        lose_and_continue(lab, flows, Killed)
        later = KeptFlows(lab)
        open_flows(later, 40, 10)
        with later:
            later.until_all_answered()
            until("the heir has the later connections", lambda: counter(lab.second, "connections") >= 100, patience_s=60)
            lab.gateway.start_daemon()
            route_to_other_uplink(lab)  # the route ended with the twin
            back_ms = until_via(lab, VIA_FIRST)
            for one in (flows, later):
                one.until_all_answered()
                equal(one.findings(), {}, "flows that did not continue as they began")
            for gateway in (lab.gateway, lab.second):
                until("no gateway returns any more", lambda gateway=gateway: not any(
                    share.get("returns") for share in gateway.json("get", "shares")), patience_s=60)
    taken = counter(lab.gateway, "connections_taken_over")
    check(taken >= 50, f"the primary has taken over {taken} of the 50 later connections")
    lab.remarks.append(f"the router had the primary again {back_ms:.0f} ms after it served, with the connections of its heir: 0 reset")


@case()
def idle_connections_continue_at_a_primary_that_returns_without_its_tables(lab):
    """They have no packet while the heir serves, so the heir has only their copies. Then the primary is lost once more."""
    lab.gateway.table_dir = "off"
    begin(lab)
    idle, busy = KeptFlows(lab), KeptFlows(lab)
    open_flows(idle, 40, 10)
    open_flows(busy, 10, 0)
    with idle, busy:
        for flows in (idle, busy):
            flows.until_all_answered()
        until_channel(lab.second, "complete", copies=60)
        idle.fall_silent()
        Killed.lose(lab)
        until_via(lab, VIA_SECOND)
        busy.until_all_answered()
        lab.gateway.start_daemon()
        route_to_other_uplink(lab)
        until_via(lab, VIA_FIRST)
        equal(counter(lab.gateway, "connections_taken_over") <= 10, True, "only the busy ones continue before the others have a packet")
        busy.until_all_answered()
        until_channel(lab.second, "complete", copies=50)
        idle.go_on()
        for flows in (idle, busy):
            flows.until_all_answered()
            equal(flows.findings(), {}, "flows that did not continue as they began")
        taken = counter(lab.gateway, "connections_taken_over")
        check(taken >= 60, f"the primary has taken over {taken} of 60 connections")
        # The heir's own entries of the busy ones end: the primary serves them, and the heir has their copies.
        until("the heir has no connections, only copies", lambda: counter(lab.second, "connections") == 0, patience_s=120)
        until_channel(lab.second, "complete", copies=60)
        Killed.lose(lab)
        until_via(lab, VIA_SECOND)
        for flows in (idle, busy):
            flows.until_all_answered()
            equal(flows.findings(), {}, "flows that did not continue after the second loss")


@case()
def a_channel_that_was_cut_is_complete_again_when_it_is_back(lab):
    with copied_flows(lab) as flows:
        lab.network.ip("gateway-2", "link set peers down")
        cut_ms = until_channel(lab.second, "connecting", copies=50)
        status = lab.second.ctl("status").stdout
        check("copies connecting" in status, f"status:\n{status}")
        equal(flows.findings(), {}, "flows while the channel is cut")
        more = KeptFlows(lab)
        open_flows(more, 40, 10)
        with more:
            more.until_all_answered()
            lab.network.ip("gateway-2", "link set peers up")
            back_ms = until_channel(lab.second, "complete", copies=100)
            lose_and_continue(lab, more, Killed)
            flows.until_all_answered()
    equal(flows.findings(), {}, "flows that are older than the cut")
    lab.remarks.append(f"cut: shown after {cut_ms:.0f} ms; back: complete after {back_ms:.0f} ms")


@case()
def a_gateway_with_the_certificate_of_another_one_gets_no_copies(lab):
    begin(lab, certificate_of_second="edge-9", until_complete=False)
    flows = KeptFlows(lab)
    open_flows(flows, 4, 4)
    with flows:
        flows.until_all_answered()
        until("the refusal is shown", lambda: "permission denied" in peer_of(lab.second).get("channel_fault", ""), patience_s=60)
        # The first gateway refuses the name in the certificate, as the host of its address.
        until("the first gateway has tried, too", lambda: peer_of(lab.gateway).get("channel_fault"), patience_s=60)
        flows.until_all_answered()
        equal(flows.findings(), {}, "flows")
    for gateway in (lab.gateway, lab.second):
        peer = peer_of(gateway)
        equal((peer["channel"], int(peer.get("copies", 0)), int(peer.get("records_sent", 0))), ("connecting", 0, 0), "copies")
