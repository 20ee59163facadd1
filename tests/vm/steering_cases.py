# SPDX-License-Identifier: Apache-2.0
"""How frames reach their queue: by the RSS of QEMU's virtio-net, an independent implementation, and by rules
that Linux installs."""
import itertools
import json
import os

from fixture import VIP, VIP_6, case, check, equal, until
from frames import TCP, UDP, frame, send
from lab import accounting, traffic
from manifests import endpoints, service
from vm_bed import PATIENCE_S, card, pair_of

QUEUES = 4
FRAMES_OF_A_KIND = 100
FLOWS_EACH = 100  # through each frontend
KINDS = {"TCP over IPv4": (TCP, "198.18.{}.{}"), "UDP over IPv4": (UDP, "198.18.{}.{}"),
         "TCP over IPv6": (TCP, "2001:db8:{:x}::{:x}"), "UDP over IPv6": (UDP, "2001:db8:{:x}::{:x}")}


class Watch:
    """tests/vm/watch in the guest, and its output."""

    def __init__(self, lab, device, workers, frames, *more, seconds=PATIENCE_S):
        self._lab = lab
        program = os.path.join(lab.build, "tests/vm/watch")
        self._process = lab.machine.spawn([program, device, str(workers), str(frames), str(seconds), *more], "watch.log")
        until("the port is watched", lambda: self._ended() or any("ready" in line for line in self.told()), PATIENCE_S, 0.5)
        check(not self._ended(), f"watch ended: {self.told()}")

    def told(self):
        with open(os.path.join(self._lab.machine.share, "watch.log")) as log:
            return [json.loads(line) for line in log if line.startswith("{") and line.endswith("\n")]

    def one(self, key):
        return next(line for line in self.told() if key in line)

    def all(self, key):
        return [line for line in self.told() if key in line]

    def end(self):
        """Waits until it has received all frames, or reached its time limit."""
        equal(self._process.wait(2 * PATIENCE_S), 0, "watch ended with")

    def _ended(self):
        return self._process.poll() is not None


def flows_of(protocol, pattern, count):
    """(source, its port, destination, its port, protocol), as for a client and a gateway; all different."""
    for i in range(count):
        yield (pattern.format(1, 1 + i % 7), 9376 + i % 3, pattern.format(2, 1 + i % 2), 1024 + 613 * i % 60_000, protocol)


@case(queues=(QUEUES,))
def each_frame_comes_out_of_the_queue_that_toeplitz_foretold_NAT002(lab):
    lab.boot([card(f"rss-{QUEUES}", "up")])
    flows = list(itertools.chain.from_iterable(flows_of(*kind, FRAMES_OF_A_KIND) for kind in KINDS.values()))
    watch = Watch(lab, lab.gateway.devices[0], QUEUES, len(flows))
    port = watch.one("driver")
    equal((port["driver"], port["rx_queues"], port["check_failed"]), ("net_virtio", QUEUES, ""), "driver, queues, self-check")
    equal(port["steering"], "predictable-rss", f"steering, because {port['reason']}")
    send(lab.network.namespace("client"), "eth0", [frame(port["mac"], *flow) for flow in flows])
    watch.end()
    seen = watch.all("queue")
    equal(len(seen), len(flows), "frames that came out")
    elsewhere = [line for line in seen if line["queue"] != line["foretold"]]
    equal(elsewhere, [], "frames that came out of another queue than foretold")
    for queue in range(QUEUES):
        share = sum(line["queue"] == queue for line in seen)
        check(share >= len(flows) // QUEUES // 2, f"queue {queue} got {share} of {len(flows)} frames: nothing was spread")
    lab.remarks.append(f"{len(seen)} of {len(flows)} frames on the queue foretold, {', '.join(KINDS)}")


@case(workers=(2, 4))
def replies_of_many_connections_come_home_by_predictable_rss_NAT002_NAT003(lab):
    workers = lab.variant["workers"]
    lab.boot(pair_of(f"rss-{workers}"))
    lab.serve(service("web", external_ips=[VIP]), endpoints("web"),
              service("web6", external_ips=[VIP_6], families=("IPv6",)), endpoints("web6", family="IPv6"),
              service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP]), endpoints("echo", port=5353, protocol="UDP"))
    frontends = [traffic.Frontend("ExternalIP", "default/web/tcp", "tcp", VIP, 80),
                 traffic.Frontend("ExternalIP", "default/web6/tcp", "tcp", VIP_6, 80),
                 traffic.Frontend("ExternalIP", "default/echo/udp", "udp", VIP, 5353)]
    report = accounting.send_and_settle(lab.network, lab.gateway, frontends, FLOWS_EACH)
    equal(report.problems(), [], "problems")
    for port in lab.gateway.ports():
        equal((port["driver"], port["rx_queues"], port["steering"]), ("net_virtio", workers, "predictable-rss"),
              f"driver, queues, steering, because {port['steering_reason']}")
        counted = {name: int(port[name]) for name in ("handed_off", "handoff_lost", "replies_misplaced")}
        equal(counted, {"handed_off": 0, "handoff_lost": 0, "replies_misplaced": 0}, f"handoffs of what came in at {port['twin']}")
    per_worker = lab.gateway.json("get", "workers")
    equal([int(worker["handed_off"]) for worker in per_worker], [0] * workers, "packets handed to another worker")
    # Each worker has a share: if one worker owned all connections, no reply could be misplaced.
    shares = [int(worker["connections"]) for worker in per_worker]
    check(min(shares) >= sum(shares) // workers // 4, f"connections by worker: {shares}")
    lab.remarks.append(f"{report.packets} packets of {len(frontends) * FLOWS_EACH} flows, none handed over; connections by worker {shares}")
    lab.remarks.append(lab.gateway.interrupts())


@case()
def rules_on_net_tap_lead_and_drop_as_they_say(lab):
    # The card stays with Linux: net_tap takes its frames by traffic control, and its rules act on the card as
    # well as on the TAP.
    driven = card("virtio-net-pci", "up")
    lab.boot([driven], vfio=False)
    interface = lab.machine.drive_by_kernel(driven)
    to_each = 20
    led = [(4001, UDP, 1), (4002, UDP, 2), (4003, TCP, 3)]
    watch = Watch(lab, f"net_tap0,iface=dtap0,remote={interface}", QUEUES, len(led) * to_each + 1, "rules")
    asked = {line["rule"]: line for line in watch.all("rule")}
    equal({rule: line["why"] for rule, line in asked.items()},
          {"from 198.51.100.0/24 -> drop": "", "ipv4 udp port 4001 -> queue 1": "", "ipv4 udp port 4002 -> queue 2": "",
           "ipv4 tcp port 4003 -> queue 3": "",
           # tc flower, as the driver writes it, supports neither bits of a port nor marks.
           "ipv4 udp port 64-127/256 -> queue 1": "item not supported (item)",
           "to 203.0.113.20 tcp port 80 -> mark 7": "action not supported (action)"}, "rules and why they were refused")

    mac = watch.one("driver")["mac"]
    sources = [f"203.0.113.{host}" for host in range(1, to_each + 1)]
    frames = [frame(mac, source, 5000, "198.18.0.1", port, protocol) for source in sources for port, protocol, _ in led]
    blocked = [frame(mac, f"198.51.100.{host}", 5000, "198.18.0.1", 4001) for host in range(1, to_each + 1)]
    client = lab.network.namespace("client")
    send(client, "eth0", [*blocked, *frames])  # the blocked ones first, so that they cannot merely be late
    until("all frames but the blocked ones", lambda: len(watch.all("queue")) >= len(frames), PATIENCE_S, 0.2)
    dropped = dropped_by_traffic_control(lab.machine, "dtap0")
    # The last frame that `watch` waits for.
    send(client, "eth0", [frame(mac, "203.0.113.200", 5000, "198.18.0.1", 4001)])
    watch.end()
    seen = [(line["flow"].split()[0], int(line["flow"].rsplit(":", 1)[1]), line["queue"]) for line in watch.all("queue")]
    expected = [("UDP" if protocol == UDP else "TCP", port, queue) for _ in sources for port, protocol, queue in led]
    equal(sorted(seen), sorted([*expected, ("UDP", 4001, 1)]), "protocol, port and queue of what came")
    equal(dropped, to_each, "frames that Linux's traffic control says it has dropped")
    lab.remarks.append(f"{len(seen)} frames on their rule's queue, {dropped} dropped by the rule")


def dropped_by_traffic_control(machine, interface):
    """Drops by the rules on the path to the TAP. The rules of the card itself only redirect to it."""
    filters = json.loads(machine.command("tc", "-j", "-s", "filter", "show", "dev", interface))
    actions = [action for entry in filters for action in entry.get("options", {}).get("actions", [])]
    return sum(action["stats"]["drops"] for action in actions if action.get("control_action", {}).get("type") == "drop")
