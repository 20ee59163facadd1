# SPDX-License-Identifier: Apache-2.0
"""penstockd on PCI cards: DPDK's drivers through vfio-pci, behind an IOMMU, with real TCP."""
import hashlib
import re

from fixture import LB_IP, NODE_PORT, VIP, case, check, equal
from lab import accounting, traffic
from lab import network as net
from manifests import endpoints, service
from vm_bed import pair_of

# By kind of card: DPDK's driver, queues for two workers, and the reason for handoff of replies.
CARDS = {
    "e1000e": ("net_e1000_em", 2, r"RSS"),
    "vmxnet3": ("net_vmxnet3", 2, r"RSS"),
    "virtio-net-pci": ("net_virtio", 1, r"1 receive queue"),
}


def web_and_echo():
    return (service("web", external_ips=[VIP], ingress_ips=[LB_IP], node_port=NODE_PORT), endpoints("web"),
            service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP]), endpoints("echo", port=5353, protocol="UDP"))


@case(card=tuple(CARDS), workers=(2,))
def tcp_and_udp_pass_real_drivers_and_are_counted_exactly_XIP001_LB001_NODEPORT001_NAT001(lab):
    driver, queues, reason = CARDS[lab.variant["card"]]
    lab.boot(pair_of(lab.variant["card"]))
    lab.serve(*web_and_echo())
    frontends = [traffic.Frontend("ExternalIP", "default/web/tcp", "tcp", VIP, 80),
                 traffic.Frontend("LoadBalancer", "default/web/tcp", "tcp", LB_IP, 80),
                 traffic.Frontend("NodePort", "default/web/tcp", "tcp", net.UPLINK, NODE_PORT),
                 traffic.Frontend("ExternalIP", "default/echo/udp", "udp", VIP, 5353)]
    report = accounting.send_and_settle(lab.network, lab.gateway, frontends, 30)
    equal(report.problems(), [], "problems")

    # Frames of full size. The cards do not compute their checksums: rewrites update them incrementally.
    content = lab.make_file("download", 500_000)
    answer = lab.get(VIP, 80, "/files/download", timeout_s=60)
    equal((answer.status, hashlib.sha256(answer.body).hexdigest()), (200, hashlib.sha256(content).hexdigest()), "status and SHA-256")

    for port in lab.gateway.ports():
        equal(port["driver"], driver, "driver")
        equal((port["link_up"], port["rx_queues"], port["tx_queues"]), (True, queues, queues), "link and queues")
        equal(port["steering"], "handoff", "steering")
        check(re.search(reason, port["steering_reason"]), f"the reason of handoff is {port['steering_reason']!r}")
        equal([name for name in port.get("offloads", []) if name.startswith("tx")], [], "transmit offloads, which nobody uses")
        equal(int(port["rx_missed"]), 0, "missed by the card")
        settings = {setting["name"]: setting for setting in port["settings"]}
        equal((settings["rx-interrupts"]["granted"], settings["rx-interrupts"]["reason"]), ("on", ""), "interrupts of receive queues")
    equal(lab.drops(), {}, "drops")
    lab.remarks.append(f"{report.packets} packets counted alike by the client and by penstockd")
    lab.remarks.append(lab.gateway.interrupts())
