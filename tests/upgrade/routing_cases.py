# SPDX-License-Identifier: Apache-2.0
"""Routing daemons on a twin, with a hold time of 3 s and a keepalive each second, keep their sessions through
upgrades. The client's namespace is the router, and reaches the VIPs by BGP alone."""
import os
import re
import signal
import time

from daemons import Bird, Frr, frr_data_plane, reason_missing
from fixture import LB_IP, VIP_6, Skip, case, check, equal, until
from kept_flows import PORT, KeptFlows, start_servers
from lab import network as net
from manifests import endpoints, service
from overlap_cases import UPGRADES, numbers, pause_ms, twins, upgrade
from route_monitor import BGP_ROUTES, BIRD_ROUTES, Monitor

DAEMONS = {"frr": Frr, "bird": Bird}
GATEWAY_AS, ROUTER_AS = 65001, 65000
HOLD_S = 3
SILENCE_MAX_MS = 1000  # a keepalive interval; the machine may also compile


class TwinEcho:
    """Linux behind a twin answers an ICMP echo request each INTERVAL_S."""
    INTERVAL_S = 0.01

    def __init__(self, lab):
        self._log = lab.run.file("ping.log")
        self._ping = lab.network.start("client", ["ping", "-D", "-n", "-i", str(self.INTERVAL_S), net.UPLINK], "ping.log")

    def __enter__(self):
        until("a twin answers", lambda: self._answers(), 20)
        return self

    def __exit__(self, *_):
        self._ping.send_signal(signal.SIGINT)
        self._ping.wait(timeout=20)

    def _answers(self):
        with open(self._log, encoding="ascii") as file:
            return [float(at) for at in re.findall(r"^\[([0-9.]+)\] \d+ bytes from", file.read(), re.MULTILINE)]

    def longest_gap_ms(self, since):
        times = [at for at in self._answers() if at >= since]
        return 1000 * max(later - earlier for earlier, later in zip(times, times[1:]))


def start(lab, announcer, router, bfd=False, detect_ms=150):
    """bfd: "workers" run the sessions of FRR on the gateway."""
    of_workers = ("--bfd", f"frr:{frr_data_plane(lab)}") if bfd == "workers" else ()
    lab.gateway.more_options = ["--supervise", "on", "--vip-presence", "routes", *of_workers]
    lab.start(service("web", 80, ingress_ips=[LB_IP, VIP_6], families=("IPv4", "IPv6")),
              *(endpoints("web", port=PORT, family=family) for family in ("IPv4", "IPv6")))
    start_servers(lab.network)
    until("the state is saved", lambda: os.path.exists(lab.gateway.state_file))
    for prefix in net.EXTERNAL_RANGES:
        lab.network.ip("client", f"route del {prefix}")
    near = DAEMONS[announcer](lab, "gateway", net.UPLINK, GATEWAY_AS, {net.CLIENT: ROUTER_AS}, bfd, detect_ms)
    far = DAEMONS[router](lab, "client", net.CLIENT, ROUTER_AS, {net.UPLINK: GATEWAY_AS}, bfd, detect_ms)
    far.start(announces=False)
    near.start(announces=True)
    near.until_established()
    far.until_established()
    until("the router has the VIPs", lambda: set(far.learned()) == {LB_IP, VIP_6}, 60)
    return near, far


@case(alone=True, announcer=("frr", "bird"))
def a_bgp_session_on_a_twin_stays_established_through_upgrades_PRESENCE002(lab):
    """FRR at one end, BIRD at the other one."""
    if why_not := reason_missing():
        raise Skip(why_not)
    announcer = lab.variant["announcer"]
    near, far = start(lab, announcer, "bird" if announcer == "frr" else "frr")
    before, kept = (near.sessions(), far.sessions()), twins(lab)
    pauses, gaps = [], []
    flows = KeptFlows(lab)
    flows.open("tcp", True, 10, LB_IP, 80)
    flows.open("tcp6", True, 10, VIP_6, 80)
    frr = near if announcer == "frr" else far
    with flows, TwinEcho(lab) as echo, Monitor(lab.network.namespace("client"), BGP_ROUTES, BIRD_ROUTES) as monitor:
        for i in range(UPGRADES):
            began = time.time()
            pauses.append(pause_ms(upgrade(lab)))
            flows.until_all_answered()
            gaps.append(echo.longest_gap_ms(began))
            equal((near.sessions(), far.sessions()), before, f"sessions after upgrade {i + 1}")
            equal(twins(lab), kept, f"twins and their addresses after upgrade {i + 1}")
        # Longer than the hold time, which a keepalive may have just begun when the last upgrade ended.
        received = frr.keepalives()
        until("keepalives arrive", lambda: frr.keepalives() > received + HOLD_S, 60, 0.1)
        equal((near.sessions(), far.sessions()), before, "sessions afterwards")
        equal(flows.findings(), {}, "flows that changed")
    equal(monitor.changes, [], "changes of the router's routes")
    lab.remarks.append(f"{UPGRADES} upgrades, pauses {numbers(pauses)} ms, a twin was silent for {numbers(gaps)} ms")
    check(sorted(gaps)[len(gaps) // 2] < SILENCE_MAX_MS, f"median of the times without an answer of a twin {numbers(gaps)} ms")


def packets_sent(lab):
    [session] = lab.gateway.json("get", "bfd")
    return int(session["sent"])


@case(alone=True)
def bfd_sessions_of_workers_stay_up_through_upgrades_PRESENCE002(lab):
    """A successor continues the sessions, on the connection to bfdd of its former process. With a detection time of 2.5 s
    at both ends, only a loss of the session can take it down, not a busy machine."""
    if why_not := reason_missing():
        raise Skip(why_not)
    near, far = start(lab, "frr", "bird", bfd="workers", detect_ms=2500)
    until("the router detects a loss within 2.5 s", lambda: far.bfd_detection_ms() == {net.UPLINK: 2500}, 60)
    until("the session is up", lambda: [session["state"] for session in lab.gateway.json("get", "bfd")] == ["up"], 60)
    before, changes = (near.sessions(), far.sessions()), far.bfd_sessions()
    pauses = []
    flows = KeptFlows(lab)
    flows.open("tcp", True, 10, LB_IP, 80)
    with flows, Monitor(lab.network.namespace("client"), BGP_ROUTES, BIRD_ROUTES) as monitor:
        for i in range(UPGRADES):
            pauses.append(pause_ms(upgrade(lab)))
            flows.until_all_answered()
            # Beyond the router's detection time: 40 x 125 ms, less a quarter (RFC 5880, 6.8.7), is 3.75 s.
            sent = packets_sent(lab)
            until("many packets follow", lambda: packets_sent(lab) > sent + 40, 60)
            equal(far.bfd_sessions(), changes, f"the router's BFD session after upgrade {i + 1}, with a pause of {pauses[-1]} ms")
            equal([(session["state"], int(session["times_down"])) for session in lab.gateway.json("get", "bfd")], [("up", 0)], "the session here")
            equal((near.sessions(), far.sessions()), before, f"BGP sessions after upgrade {i + 1}")
        equal(flows.findings(), {}, "flows that changed")
    equal(monitor.changes, [], "changes of the router's routes")
    lab.remarks.append(f"{UPGRADES} upgrades, pauses {numbers(pauses)} ms")
