# SPDX-License-Identifier: Apache-2.0
"""IP packets of both families as bytes, each checksum computed from the bytes that it covers, and a one-line
description of a packet."""
import dataclasses
import socket
import struct

from lab.network import family_of

TCP, UDP, ICMP, ICMP6, FRAGMENT = 6, 17, 1, 58, 44
SYN, ACK, SYN_ACK = 0x02, 0x10, 0x12
# Sequence numbers of a connection that a client opens and continues, and an endpoint answers: by flags,
# inside Linux's windows.
_SEQUENCES = {SYN: (1000, 0), SYN_ACK: (5000, 1001), ACK: (1001, 5001)}


def raw(address):
    return socket.inet_pton(family_of(address), address)


def is_v6(address):
    return ":" in address


@dataclasses.dataclass(frozen=True)
class Flow:
    """The addresses and ports of one direction."""
    source: str
    source_port: int
    destination: str
    destination_port: int
    protocol: int

    def reverse(self):
        return Flow(self.destination, self.destination_port, self.source, self.source_port, self.protocol)


def sum_of(data):
    """Internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _with_sum(source, destination, protocol, body, at):
    """`body` with the checksum at this offset, over the pseudo header too, unless it is ICMP of IPv4."""
    pseudo = b"" if protocol == ICMP else raw(source) + raw(destination) + struct.pack("!II", len(body), protocol)
    value = sum_of(pseudo + body)
    if protocol == UDP:
        value = value or 0xFFFF
    return body[:at] + struct.pack("!H", value) + body[at + 2:]


def transport(flow, payload=b"", flags=SYN):
    if flow.protocol == UDP:
        body = struct.pack("!HHHH", flow.source_port, flow.destination_port, 8 + len(payload), 0) + payload
        return _with_sum(flow.source, flow.destination, UDP, body, 6)
    body = struct.pack("!HHIIBBHHH", flow.source_port, flow.destination_port, *_SEQUENCES[flags], 5 << 4, flags, 8192, 0, 0) + payload
    return _with_sum(flow.source, flow.destination, TCP, body, 16)


def ip(source, destination, protocol, body, ttl=64, ident=1, dont_fragment=False, offset=0, more=False, options=b""):
    """`offset` in bytes. Options of IPv4 are whole words; over IPv6 they are the body of a destination
    options header, of 8n + 6 bytes."""
    if not is_v6(source):
        words = 5 + len(options) // 4
        flags = (0x4000 if dont_fragment else 0) | (0x2000 if more else 0) | offset // 8
        header = struct.pack("!BBHHHBBH", 0x40 | words, 0, 4 * words + len(body), ident, flags, ttl, protocol, 0) + raw(source) + raw(destination)
        header += options
        return header[:10] + struct.pack("!H", sum_of(header)) + header[12:] + body
    if options:
        body, protocol = struct.pack("!BB", protocol, len(options) // 8) + options + body, 60
    if offset or more:
        body, protocol = struct.pack("!BBHI", protocol, 0, offset | more, ident) + body, FRAGMENT
    return struct.pack("!IHBB", 6 << 28, len(body), protocol, ttl) + raw(source) + raw(destination) + body


def packet(flow, payload=b"", flags=SYN, **of_ip):
    return ip(flow.source, flow.destination, flow.protocol, transport(flow, payload, flags), **of_ip)


def fragment(flow, body, begin, end, ident, **of_ip):
    """Bytes `begin` to `end` of the transport's packet `body`."""
    return ip(flow.source, flow.destination, flow.protocol, body[begin:end], ident=ident, offset=begin, more=end < len(body), **of_ip)


def error(source, destination, kind, code, rest, quoted, ttl=64):
    protocol = ICMP6 if is_v6(source) else ICMP
    body = _with_sum(source, destination, protocol, struct.pack("!BBHI", kind, code, 0, rest) + quoted, 2)
    return ip(source, destination, protocol, body, ttl=ttl)


def trimmed(data):
    """The packet without Ethernet's padding."""
    return data[:struct.unpack("!H", data[2:4])[0]] if data[0] >> 4 == 4 else data[:40 + struct.unpack("!H", data[4:6])[0]]


def addresses(data):
    family, at, size = (socket.AF_INET, 12, 4) if data[0] >> 4 == 4 else (socket.AF_INET6, 8, 16)
    return socket.inet_ntop(family, data[at:at + size]), socket.inet_ntop(family, data[at + size:at + 2 * size])


def body_of(data):
    """(protocol, fragment offset in bytes, more fragments follow, id, payload behind the headers)"""
    if data[0] >> 4 == 4:
        ident, flags = struct.unpack("!HH", data[4:8])
        return data[9], 8 * (flags & 0x1FFF), bool(flags & 0x2000), ident, data[4 * (data[0] & 15):]
    protocol, at, offset, more, ident = data[6], 40, 0, False, 0
    while protocol in (60, FRAGMENT):
        if protocol == FRAGMENT:
            word, ident = struct.unpack("!HI", data[at + 2:at + 8])
            protocol, at, offset, more = data[at], at + 8, word & 0xFFF8, bool(word & 1)
        else:
            protocol, at = data[at], at + 8 * (1 + data[at + 1])
    return protocol, offset, more, ident, data[at:]


def sums_are_right(data):
    """Checks the checksums of the IP header and of the body; those of a fragment's and of a quote's body
    cannot be checked."""
    source, destination = addresses(data)
    protocol, offset, more, _, body = body_of(data)
    if data[0] >> 4 == 4 and sum_of(data[:4 * (data[0] & 15)]):
        return False
    if offset or more or protocol not in (TCP, UDP, ICMP, ICMP6):
        return True
    pseudo = b"" if protocol == ICMP else raw(source) + raw(destination) + struct.pack("!II", len(body), protocol)
    return sum_of(pseudo + body) == 0


def _with_header_sum(data):
    return data[:10] + struct.pack("!H", sum_of(data[:10] + b"\0\0" + data[12:20])) + data[12:]


def with_source(data, source):
    """An ICMP error without options, as another host would send it."""
    destination = addresses(data)[1]
    protocol, _, _, _, body = body_of(data)
    body = _with_sum(source, destination, protocol, body[:2] + b"\0\0" + body[4:], 2)
    if protocol == ICMP6:
        return data[:8] + raw(source) + data[24:40] + body
    return _with_header_sum(data[:12] + raw(source) + data[16:20] + body)


def with_plain_header(data):
    """The packet without class, flow label, id and DF, if it has no options; a fragment keeps its id."""
    if data[0] >> 4 == 6:
        return b"\x60\0\0\0" + data[4:]
    return data if body_of(data)[1] or body_of(data)[2] else _with_header_sum(data[:1] + b"\0" + data[2:4] + bytes(4) + data[8:])


def without_fragment_id(data, over_ipv4):
    """Permission to fragment: over IPv6, where the path may reassemble and fragment it again; over IPv4 only
    if the caller expects another id."""
    if data[0] >> 4 == 6:
        return data[:44] + bytes(4) + data[48:] if data[6] == FRAGMENT else data
    is_fragment = body_of(data)[1] or body_of(data)[2]
    return _with_header_sum(data[:4] + bytes(2) + data[6:]) if over_ipv4 and is_fragment else data


def text_of(data):
    """A one-line description of a packet."""
    source, destination = addresses(data)
    protocol, offset, more, ident, body = body_of(data)
    ttl = data[8] if data[0] >> 4 == 4 else data[7]
    text = f"{source} > {destination} ttl {ttl}"
    if offset or more:
        text += f" id {ident:#x} bytes {offset}-{offset + len(body)}{'+' if more else ''}"
    if protocol in (TCP, UDP) and not offset and len(body) >= 4:
        text += " {} {} > {}".format("tcp" if protocol == TCP else "udp", *struct.unpack("!HH", body[:4]))
    elif protocol in (ICMP, ICMP6) and len(body) >= 8:
        kind, code, _, rest = struct.unpack("!BBHI", body[:8])
        text += f" icmp {kind}/{code} {rest:#x}"
        text += f" [{text_of(body[8:])}, {len(body) - 8} bytes]" if len(body) >= 28 else ""
    return text + ("" if sums_are_right(data) else " wrong sum")
