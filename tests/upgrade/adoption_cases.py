# SPDX-License-Identifier: Apache-2.0
"""The time for which a gateway with many connections is away after kill -9, the start of EAL included."""
import json
import os
import socket
import struct
import time

from fixture import VIP, VIP2, case, check, equal, until
from kept_flows import PORT, KeptFlows, start_servers
from lab import network as net
from lab.network import inside
from manifests import endpoints, service
from restart_cases import end, tables

CONNECTIONS = int(os.environ.get("PENSTOCK_CONNECTIONS", "100000"))  # 1,000,000 by hand
AWAY_MAX_S = 3 * 1.5  # three times the aim, because the machine may also compile
SINK_PORT = 9379
PORTS_OF_CLIENT = range(1024, 61024)
PASSES = 12
AT_ONCE = 500  # datagrams; a ring of net_af_packet has 2,048 slots
REST_S = 0.002
BYTES_PER_CONNECTION = 512  # in all tables of penstockd together


def checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def mac_of_twin(lab, twin):
    [facts] = json.loads(lab.network.run("gateway", "ip", "-json", "link", "show", "dev", twin).stdout)
    return bytes.fromhex(facts["address"].replace(":", ""))


class Wire:
    """Sends UDP datagrams through a twin, from a role's namespace, with any source."""

    def __init__(self, lab, role, twin):
        with inside(lab.network.namespace(role)):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._socket.bind(("eth0", 0))
        self._link = mac_of_twin(lab, twin) + self._socket.getsockname()[4] + b"\x08\x00"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send_to_all(self, ports, before, after):
        """A frame for each of the ports, with the port between these parts."""
        for number, port in enumerate(ports):
            self._socket.send(before + port.to_bytes(2, "big") + after)
            if number % AT_ONCE == 0:
                time.sleep(REST_S)

    def headers(self, source, target):
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(target))
        return self._link + header[:10] + struct.pack("!H", checksum(header)) + header[12:]


def open_connections(lab, count):
    """A datagram from each of `count` addresses and ports of the client's network, which its Service keeps, and an
    answer to it: connections without an answer soon expire."""
    with Wire(lab, "client", "uplink0") as client, Wire(lab, "backend-1", "cluster0") as backend:
        for number in range(-(-count // len(PORTS_OF_CLIENT))):
            address = f"10.80.1.{10 + number}"
            ports = PORTS_OF_CLIENT[:count - number * len(PORTS_OF_CLIENT)]
            before, after = client.headers(address, VIP2), struct.pack("!HHH", 80, 8, 0)
            client.send_to_all(ports, before, after)
            before, after = backend.headers(net.BACKENDS["backend-1"], address) + SINK_PORT.to_bytes(2, "big"), struct.pack("!HH", 8, 0)
            backend.send_to_all(ports, before, after)


def known_connections(lab):
    return sum(int(counter["value"]) for counter in lab.gateway.json("stats")["counters"] if counter["name"] == "connections")


@case(alone=True)
def many_connections_continue_soon_after_kill_9(lab):
    lab.gateway.more_options = ["--connections", str(CONNECTIONS * 5 // 4)]
    lab.gateway.more_memory_mb = CONNECTIONS * 5 // 4 * BYTES_PER_CONNECTION >> 20
    lab.start(service("many", 80, protocol="UDP", external_ips=(VIP2,), policy="Local", annotations={"penstock.io/idle-timeout": "1h"}),
              endpoints("many", ["backend-1"], port=SINK_PORT, protocol="UDP"),
              service("udp", 80, protocol="UDP", external_ips=(VIP,)), endpoints("udp", port=PORT, protocol="UDP"))
    start_servers(lab.network)
    until("the state is saved", lambda: os.path.exists(lab.gateway.state_file))
    with inside(lab.network.namespace("backend-1")), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("", SINK_PORT))  # never read
        for _ in range(PASSES):
            open_connections(lab, CONNECTIONS)
            if known_connections(lab) >= CONNECTIONS:
                break
        opened = known_connections(lab)
        check(opened >= CONNECTIONS, f"{opened} connections were opened; drops: {lab.gateway.ctl('stats').stdout}")
        flows = KeptFlows(lab)
        flows.PULSE_S = 0.01
        flows.open("udp", False, 4, VIP, 80)
        with flows:
            flows.until_all_answered()
            flows.longest_gap_s = 0.0
            end(lab)
            lab.gateway.start_daemon()
            flows.until_all_answered()
            away_s = flows.longest_gap_s
            equal(flows.findings(), {}, "flows that changed")
    status = tables(lab)
    equal(status["lost"], [], "connections lost, by reason")
    check(int(status["adopted"]) >= CONNECTIONS, f"{status['adopted']} connections adopted")
    lab.remarks.append(f"{status['adopted']} connections: away for {away_s:.2f} s, adoption {int(status['adoption_us']) / 1000:.0f} ms")
    check(away_s < AWAY_MAX_S, f"away for {away_s:.2f} s")
