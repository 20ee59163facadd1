# SPDX-License-Identifier: Apache-2.0
"""BFD sessions of FRR that the gateway's workers run (--bfd frr:PATH): the router sees the gateway go as soon as its
workers stop forwarding."""
import contextlib
import os
import time

from bgp_cases import BFD_LIMIT_S, LOSSES, SLICES, start, until_learned, web
from daemons import frr_data_plane
from fixture import LB_IP, VIP_6, case, check, equal, until
from lab import network as net
from route_monitor import BGP_ROUTES, BIRD_ROUTES, Monitor
from stopped_thread import stopped, threads_of

# A worker is missed within two intervals, then the router's detection time of three passes. penstockd itself removes
# the routes of a stalled worker after 1 s at the earliest.
STALL_LIMIT_S = 0.9


class StoppedWorker:
    """The last worker: BFD packets are sent by the first one."""

    def __init__(self):
        self._stack = contextlib.ExitStack()

    def cut(self, lab):
        workers = threads_of(lab.gateway.daemon.pid, "rte-worker")
        equal(len(workers), lab.variant["workers"], "worker threads")
        self._stack.enter_context(stopped(workers[-1]))

    def mend(self, lab):
        self._stack.close()


def sessions(lab):
    return lab.gateway.json("get", "bfd")


def begin(lab, router, detect_ms=150):
    # A worker that polls stops within a round, and not in a system call.
    start(lab, web(), *SLICES, announcer="frr", router=router, bfd="workers", detect_ms=detect_ms,
          options=["--bfd", f"frr:{frr_data_plane(lab)}", "--idle", "poll"])
    until_learned(lab, LB_IP, VIP_6)
    until(f"the router detects a loss within {detect_ms} ms",
          lambda: lab.router.bfd_detection_ms() == {net.UPLINK: detect_ms}, patience_s=60)
    until("the session is up here", lambda: [session["state"] for session in sessions(lab)] == ["up"], patience_s=60)


def lose(lab, loss, limit_s):
    """Returns the time until the router's kernel had no route, in ms."""
    with Monitor(lab.network.namespace("client"), BGP_ROUTES, BIRD_ROUTES) as monitor:
        lost_at = time.time()
        loss.cut(lab)
        until("the router has no route", lambda: {address for _, what, address, _ in monitor.changes if what == "deleted"} == {LB_IP, VIP_6},
              patience_s=limit_s)
    return 1000 * (monitor.last("deleted") - lost_at)


@case(router=("frr", "bird"), workers=(1, 2))
def a_router_sees_that_a_worker_has_stopped_PRESENCE002(lab):
    begin(lab, lab.variant["router"])
    [session] = sessions(lab)
    equal((session["peer"], session["local"], session["twin"]), (net.CLIENT, net.UPLINK, "uplink0"), "session")
    equal((session["min_rx_us"], session["detect_multiplier"], session["remote_min_tx_us"]), (50_000, 3, 50_000), "intervals")
    equal(lab.get(LB_IP).status, 200, "a request")
    loss = StoppedWorker()
    stopped_ms = lose(lab, loss, STALL_LIMIT_S)
    loss.mend(lab)
    until_learned(lab, LB_IP, VIP_6)
    until("the session is up again", lambda: sessions(lab)[0]["state"] == "up", patience_s=60)
    check(int(sessions(lab)[0]["times_down"]) >= 1, "the session counts that it was down")
    until("the status has it", lambda: "1 of 1 sessions are up" in lab.gateway.ctl("status").stdout, patience_s=60)
    equal(lab.get(LB_IP).status, 200, "a request afterwards")
    lab.remarks.append(f"gone from the router's kernel {stopped_ms:.0f} ms after the worker stopped; limit {STALL_LIMIT_S * 1000:.0f} ms")


@case(loss=tuple(LOSSES))
def the_sessions_of_workers_end_the_routes_of_a_lost_gateway_PRESENCE002(lab):
    begin(lab, "frr")
    loss = LOSSES[lab.variant["loss"]]
    lost_ms = lose(lab, loss, BFD_LIMIT_S)
    loss.mend(lab)
    until_learned(lab, LB_IP, VIP_6)
    lab.remarks.append(f"gone from the router's kernel after {lost_ms:.0f} ms; limit {BFD_LIMIT_S * 1000:.0f} ms")


@case()
def sessions_of_workers_outlive_a_restart_of_bfdd_PRESENCE002(lab):
    """bgpd ends its BGP session when bfdd ends. The BFD session stays up. With a detection time of 2.5 s, only a loss of
    the session can take it down, not a busy machine."""
    begin(lab, "frr", detect_ms=2500)
    before = lab.router.bfd_counters(net.UPLINK)["session-down"], int(sessions(lab)[0]["times_down"])
    lab.announcer.restart_bfdd()
    until("bfdd is connected again", lambda: "1 of 1 sessions are up\n" in lab.gateway.ctl("status").stdout, patience_s=60)
    # Beyond the router's detection time: 40 x 125 ms, less a quarter (RFC 5880, 6.8.7), is 3.75 s.
    sent = int(sessions(lab)[0]["sent"])
    until("many packets follow", lambda: int(sessions(lab)[0]["sent"]) > sent + 40, patience_s=60)
    [session] = sessions(lab)
    equal((lab.router.bfd_counters(net.UPLINK)["session-down"], int(session["times_down"])), before,
          "how often the session went down at the router and here")
    equal(session["state"], "up", "the session here")


@case()
def bfdd_shows_the_sessions_of_workers(lab):
    begin(lab, "frr", detect_ms=2500)
    counters = lab.announcer.bfd_counters(net.CLIENT)
    check(counters["control-packet-input"] > 0 and counters["control-packet-output"] > 0, f"counters of bfdd: {counters}")
    [session] = sessions(lab)
    check(int(session["sent"]) >= counters["control-packet-output"], f"sent {session['sent']}, as bfdd has it {counters}")
    metrics = lab.network.run("gateway", "curl", "-s", "http://127.0.0.1:9105/metrics").stdout
    check(f'penstock_bfd_session_up{{peer="{net.CLIENT}",twin="uplink0"}} 1\n' in metrics, "metrics")
    os.kill(lab.announcer.bfdd.pid, 9)
    until("the loss of bfdd is shown", lambda: "no connection to bfdd: " in lab.gateway.ctl("status").stdout, patience_s=60)
