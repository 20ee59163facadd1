# SPDX-License-Identifier: Apache-2.0
"""SCTP between two stacks of the Linux kernel through a VIP, on PCI cards."""
import json
import os
import sys

from card_cases import CARDS
from fixture import VIP, VIP_6, case, check, equal, until
from lab import network as net
from manifests import endpoints, service
from neighbours import boot_with_neighbours
from vm_bed import PATIENCE_S

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sctp_stream.py")
PORT, SERVER_PORT, NODE_PORT = 3868, 13868, 30868
KEPT_PORT = 61_868
SIZES = (1, 1_000, 20_000)


def diameter(server, policy="Cluster", **changes):
    made = [service("diameter", PORT, protocol="SCTP", target_port=SERVER_PORT, external_ips=[VIP, VIP_6], families=("IPv4", "IPv6"),
                    node_port=NODE_PORT, policy=policy, **changes)]
    for family, address in zip(("IPv4", "IPv6"), server.addresses):
        slices = endpoints("diameter", ["backend-1"], port=SERVER_PORT, protocol="SCTP", family=family)
        slices["endpoints"][0]["addresses"] = [address]
        made.append(slices)
    return made


def talk(client, address, port=PORT, sizes=SIZES, end_by="close", local_port=0):
    local = client.addresses[":" in address]
    done = client.run(sys.executable, PROGRAM, "talk", f"{local}@{local_port}", address, str(port), *map(str, sizes), "then", end_by,
                      timeout_s=PATIENCE_S)
    check(done.returncode == 0 and done.stdout, f"the client died: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def states(lab):
    return sorted(entry["state"] for entry in lab.gateway.json("get", "connections", "--proto", "sctp"))


@case(card=("e1000e", "vmxnet3"), policy=("Cluster",))
@case(card=("virtio-net-pci",), policy=("Local",))
def kernels_talk_sctp_through_a_vip_SCTP001_SCTP002_SCTP003(lab):
    driver, _, _ = CARDS[lab.variant["card"]]
    client, server = boot_with_neighbours(lab, lab.variant["card"], "up", "cl")
    lab.machine.spawn(server.words(sys.executable, PROGRAM, "serve", str(SERVER_PORT), *server.addresses), "server.log")
    until("the server listens", lambda: "listening" in lab.machine.read("/mnt/share/server.log"), PATIENCE_S, 0.5)
    lab.serve(*diameter(server, lab.variant["policy"]))
    equal([port["driver"] for port in lab.gateway.ports()], [driver] * 2, "drivers")
    kept = lab.variant["policy"] == "Local"
    frontends = ((VIP, PORT), (VIP_6, PORT), (net.UPLINK, NODE_PORT), (net.UPLINK6, NODE_PORT))
    for number, (address, port) in enumerate(frontends):
        end_by = "abort" if number % 2 else "close"
        answer = talk(client, address, port, end_by=end_by, local_port=KEPT_PORT + number)
        source = client.addresses[":" in address] if kept else (net.CLUSTER6 if ":" in address else net.CLUSTER)
        equal(answer, {"local_port": KEPT_PORT + number, "seen": [source, KEPT_PORT + number]}, f"{address} {port}, then {end_by}")
    until("all are over", lambda: set(states(lab)) <= {"closed"}, PATIENCE_S, 0.5)

    # An endpoint is removed: both kernels accept the gateway's ABORT.
    undrained = {"penstock.io/connection-draining": "false"}
    lab.apply(*diameter(server, lab.variant["policy"], annotations=undrained))
    held = lab.machine.spawn(client.words(sys.executable, PROGRAM, "talk", client.addresses[0], VIP, str(PORT), *map(str, SIZES), "then", "hold"),
                             "held.log")
    until("it talks", lambda: "seen" in lab.machine.read("/mnt/share/held.log"), PATIENCE_S, 0.5)
    lab.apply(diameter(server, lab.variant["policy"], annotations=undrained)[0])
    equal(held.wait(PATIENCE_S), 0, "the client ended with")
    equal(json.loads(lab.machine.read("/mnt/share/held.log").splitlines()[-1]), {"ended": "ConnectionResetError"}, "the client was told")
    until("the server's end is over, too", lambda: established(server) == 0, PATIENCE_S, 0.5)
    equal(lab.drops(), {}, "drops")


def established(host):
    """The number of associations in the kernel of that host."""
    return len(host.run("cat", "/proc/net/sctp/assocs").stdout.splitlines()) - 1
