# SPDX-License-Identifier: Apache-2.0
"""pcap files for net_pcap: 60-byte UDP frames of the flows that perf/traffic/network.hpp numbers, one
endpoint per Service, sources kept."""
import random
import struct

PCAP_HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
SERVICES = 16
VIP, ENDPOINT, CLIENT = 0xCB007101, 0x0A50020B, 0xC6120000  # 203.0.113.1, 10.80.2.11, 198.18.0.0
UP_MAC, CLUSTER_MAC = bytes.fromhex("02000000000a"), bytes.fromhex("02000000000b")
ROUTER_MAC, ENDPOINT_MAC = bytes.fromhex("020000000102"), bytes.fromhex("020000000202")
# Destination MAC of the lead's frames. It belongs to no host on this wire, so both sides drop the frames by
# their address.
LEAD_MAC = bytes.fromhex("02000000ffff")


def endpoint_of(service):
    """The first endpoint of a Service. Each Service has eight endpoint addresses and uses the first."""
    return ENDPOINT + 8 * service


def write(path, flows, direction, seed, lead=0):
    """One frame of each flow in random order: `forward` as clients send, `reply` as endpoints answer. They
    are preceded by `lead` frames to be dropped, for a receiver that polls before it is ready."""
    order = list(range(flows))
    random.Random(seed).shuffle(order)
    macs = UP_MAC + ROUTER_MAC if direction == "forward" else CLUSTER_MAC + ENDPOINT_MAC
    with open(path, "wb") as file:
        file.write(PCAP_HEADER)
        file.write(_record(_udp(LEAD_MAC + ROUTER_MAC, CLIENT, VIP, 1023, 80)) * lead)
        for flow in order:
            client, port, service = CLIENT + flow // 32768, 1024 + flow % 32768, flow % SERVICES
            if direction == "forward":
                frame = _udp(macs, client, VIP + service, port, 80)
            else:
                frame = _udp(macs, endpoint_of(service), client, 9376, port)
            file.write(_record(frame))


def _record(frame):
    return struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame


def _udp(macs, source, destination, source_port, destination_port):
    payload = bytes(18)
    udp_bytes = 8 + len(payload)
    pseudo = struct.pack("!IIHH", source, destination, 17, udp_bytes)
    udp = struct.pack("!HHHH", source_port, destination_port, udp_bytes, 0)
    udp = udp[:6] + struct.pack("!H", _checksum(pseudo + udp + payload) or 0xFFFF)
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 20 + udp_bytes, 0, 0, 64, 17, 0, source, destination)
    ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
    return macs + b"\x08\x00" + ip + udp + payload


def _checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
