# SPDX-License-Identifier: Apache-2.0
"""Builds UDP and TCP frames as on a wire, and sends them."""
import socket
import struct

from lab.network import family_of, inside

SENDER_MAC = "02:00:00:00:00:07"
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP


def frame(destination_mac, source, source_port, destination, destination_port, protocol=UDP):
    """One datagram, or a TCP segment with SYN."""
    ipv6 = family_of(source) == socket.AF_INET6
    addresses = socket.inet_pton(family_of(source), source) + socket.inet_pton(family_of(source), destination)
    if protocol == UDP:
        l4, at = struct.pack("!HHHH", source_port, destination_port, 12, 0) + b"test", 6
    else:
        l4, at = struct.pack("!HHIIBBHHH", source_port, destination_port, 1, 0, 5 << 4, 2, 8192, 0, 0), 16
    checksum = _sum(addresses + struct.pack("!II", len(l4), protocol) + l4) or 0xFFFF
    l4 = l4[:at] + struct.pack("!H", checksum) + l4[at + 2:]
    if ipv6:
        header = struct.pack("!IHBB", 6 << 28, len(l4), protocol, 64) + addresses
    else:
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(l4), 1, 0, 64, protocol, 0) + addresses
        header = header[:10] + struct.pack("!H", _sum(header)) + header[12:]
    return _mac(destination_mac) + _mac(SENDER_MAC) + (b"\x86\xdd" if ipv6 else b"\x08\x00") + header + l4


def send(namespace, interface, frames):
    with inside(namespace), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
        wire.bind((interface, 0))
        for each in frames:
            wire.send(each)


def _sum(data):
    """RFC 1071."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _mac(text):
    return bytes.fromhex(text.replace(":", ""))
