#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden frames: each file beside this one holds a frame, the operation on it, and the expected
output frame.

Both frames are written here field by field and their checksums are computed by scapy, so the expected result
does not depend on Penstock's own rewriting or answering code. make.py writes the files; make.py --check
compares them with what it would write (exit 77: no scapy)."""
import pathlib
import sys

try:
    from scapy.all import (ARP, ICMP, IP, TCP, UDP, Ether, ICMPv6DestUnreach, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr,
                           ICMPv6NDOptSrcLLAddr, IPOption_Router_Alert, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                           IPv6ExtHdrHopByHop, PadN, Padding, Raw)
except ImportError:
    print("scapy is not installed (python3-scapy)")
    sys.exit(77)

CLIENT, VIP, SNAT, BACKEND = "192.0.2.10", "80.11.12.10", "10.1.0.1", "10.2.0.7"
CLIENT6, VIP6, SNAT6, BACKEND6 = "2001:db8:1::10", "2001:db8:80::10", "fd00:1::1", "fd00:2::7"
# source and destination of the received frame
CLIENT_MAC, GATEWAY_OUT_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
# source and destination of the sent frame
GATEWAY_IN_MAC, BACKEND_MAC = "02:00:00:00:00:03", "02:00:00:00:00:04"
COMES = {"src": CLIENT_MAC, "dst": GATEWAY_OUT_MAC}
LEAVES = {"src": GATEWAY_IN_MAC, "dst": BACKEND_MAC}
ANSWERS = {"src": GATEWAY_OUT_MAC, "dst": CLIENT_MAC}
MSS_AND_SACK = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (123456789, 0)), ("NOP", None), ("WScale", 7)]

REWRITE_FORWARD = f"rewrite {SNAT}:40001 {BACKEND}:9376 {GATEWAY_IN_MAC} {BACKEND_MAC}"
REWRITE_REVERSE = f"rewrite {VIP}:80 {CLIENT}:51000 {GATEWAY_IN_MAC} {BACKEND_MAC}"
REWRITE_FORWARD6 = f"rewrite {SNAT6}:40001 {BACKEND6}:9376 {GATEWAY_IN_MAC} {BACKEND_MAC}"
REWRITE_REVERSE6 = f"rewrite {VIP6}:80 {CLIENT6}:51000 {GATEWAY_IN_MAC} {BACKEND_MAC}"


def zero_sum_payload(packet, words):
    """Two bytes of payload that make the UDP sum of `packet` zero, which is then sent as 0xffff."""
    probe = packet / Raw(b"\0\0" + words)
    sum_without = packet.__class__(bytes(probe))[UDP].chksum
    return sum_without.to_bytes(2, "big") + words


def cases():
    syn = TCP(sport=51000, dport=80, flags="S", seq=1000, options=MSS_AND_SACK)
    yield ("nat_forward_tcp", "Full NAT, client to endpoint: a SYN with the options that Linux sends (NAT-001, NAT-002).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=63, id=4711, flags="DF", tos=0x10) / syn, REWRITE_FORWARD,
           Ether(**LEAVES) / IP(src=SNAT, dst=BACKEND, ttl=62, id=4711, flags="DF", tos=0x10) /
           TCP(sport=40001, dport=9376, flags="S", seq=1000, options=MSS_AND_SACK))

    body = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
    yield ("nat_reverse_tcp", "Full NAT, endpoint to client: data, and an odd number of bytes of it (NAT-001).",
           Ether(**COMES) / IP(src=BACKEND, dst=SNAT, ttl=64, id=1) / TCP(sport=9376, dport=40001, flags="PA", seq=7, ack=9) / Raw(body),
           REWRITE_REVERSE,
           Ether(**LEAVES) / IP(src=VIP, dst=CLIENT, ttl=63, id=1) / TCP(sport=80, dport=51000, flags="PA", seq=7, ack=9) / Raw(body))

    yield ("nat_keep_source_tcp", "Source-preserving DNAT: only the destination changes (NAT-003).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=2) / TCP(sport=51000, dport=80, flags="A", seq=5, ack=6),
           f"rewrite {CLIENT}:51000 {BACKEND}:9376 {GATEWAY_IN_MAC} {BACKEND_MAC}",
           Ether(**LEAVES) / IP(src=CLIENT, dst=BACKEND, ttl=1) / TCP(sport=51000, dport=9376, flags="A", seq=5, ack=6))

    yield ("nat_forward_udp", "Full NAT of a datagram, client to endpoint (NAT-001).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=64) / UDP(sport=51000, dport=80) / Raw(b"ping!"), REWRITE_FORWARD,
           Ether(**LEAVES) / IP(src=SNAT, dst=BACKEND, ttl=63) / UDP(sport=40001, dport=9376) / Raw(b"ping!"))

    yield ("nat_reverse_udp", "Full NAT of a datagram, endpoint to client (NAT-001).",
           Ether(**COMES) / IP(src=BACKEND, dst=SNAT, ttl=64) / UDP(sport=9376, dport=40001) / Raw(b"pong"), REWRITE_REVERSE,
           Ether(**LEAVES) / IP(src=VIP, dst=CLIENT, ttl=63) / UDP(sport=80, dport=51000) / Raw(b"pong"))

    yield ("nat_udp_without_checksum", "A UDP checksum of zero means none was sent: it stays zero (NAT-001, RFC 768).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=64) / UDP(sport=51000, dport=80, chksum=0) / Raw(b"ping"), REWRITE_FORWARD,
           Ether(**LEAVES) / IP(src=SNAT, dst=BACKEND, ttl=63) / UDP(sport=40001, dport=9376, chksum=0) / Raw(b"ping"))

    out_ip, out_udp = IP(src=SNAT, dst=BACKEND, ttl=63), UDP(sport=40001, dport=9376)
    payload = zero_sum_payload(out_ip / out_udp, b"tail")
    yield ("nat_udp_checksum_comes_out_zero", "The new sum is zero and must be written 0xffff (RFC 768).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=64) / UDP(sport=51000, dport=80) / Raw(payload), REWRITE_FORWARD,
           Ether(**LEAVES) / out_ip / out_udp / Raw(payload))

    alert = [IPOption_Router_Alert()]
    yield ("nat_ip_options", "IP options stay where they are and under the header checksum.",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=64, options=alert) / TCP(sport=51000, dport=80, flags="PA", seq=1, ack=2) / Raw(b"x"),
           REWRITE_FORWARD,
           Ether(**LEAVES) / IP(src=SNAT, dst=BACKEND, ttl=63, options=alert) / TCP(sport=40001, dport=9376, flags="PA", seq=1, ack=2) /
           Raw(b"x"))

    yield ("nat_padded_frame", "Ethernet padding behind a short packet is no part of it and passes unread.",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=64) / TCP(sport=51000, dport=80, flags="A", seq=1, ack=2) / Padding(b"\xaa" * 6),
           REWRITE_FORWARD,
           Ether(**LEAVES) / IP(src=SNAT, dst=BACKEND, ttl=63) / TCP(sport=40001, dport=9376, flags="A", seq=1, ack=2) / Padding(b"\xaa" * 6))

    def reset(**fields):
        return Ether(**ANSWERS) / IP(src=VIP, dst=CLIENT, ttl=64, id=0, flags="DF") / TCP(sport=80, dport=51000, window=0, **fields)

    yield ("reject_syn", "RST to a SYN: seq 0, ack seq+1, RST and ACK (REJ-002).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP, ttl=63, tos=0x10) / syn, "reject", reset(flags="RA", seq=0, ack=1001))

    yield ("reject_syn_with_data", "The data of a SYN is acknowledged too, across the end of sequence space (REJ-002).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP) / TCP(sport=51000, dport=80, flags="S", seq=0xfffffffe) / Raw(b"hello"), "reject",
           reset(flags="RA", seq=0, ack=4))

    yield ("reject_ack", "RST to a segment with ACK: its ack as seq, no ACK (RFC 9293, 3.10.7.1).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP) / TCP(sport=51000, dport=80, flags="PA", seq=77, ack=0x80000001) / Raw(b"data"), "reject",
           reset(flags="R", seq=0x80000001, ack=0))

    yield ("reject_fin_without_ack", "A segment without ACK: what it occupies of sequence space is acknowledged, FIN included (RFC 9293).",
           Ether(**COMES) / IP(src=CLIENT, dst=VIP) / TCP(sport=51000, dport=80, flags="F", seq=500) / Raw(b"bye"), "reject",
           reset(flags="RA", seq=0, ack=504))

    def unreachable(quoted):
        return Ether(**ANSWERS) / IP(src=VIP, dst=CLIENT, ttl=64, id=0, flags="DF", tos=0xc0, proto=1) / ICMP(type=3, code=3) / Raw(quoted)

    query = IP(src=CLIENT, dst=VIP, ttl=61, id=99) / UDP(sport=51000, dport=53) / Raw(b"who is there?")
    yield ("reject_udp", "ICMP port unreachable quoting the whole datagram, from the address it was sent to (REJ-002).",
           Ether(**COMES) / query, "reject", unreachable(bytes(query)))

    long = IP(src=CLIENT, dst=VIP, options=alert) / UDP(sport=51000, dport=53) / Raw(bytes(range(256)) * 4)
    yield ("reject_udp_long", "The quote ends where the answer is 576 bytes long (RFC 1812, 4.3.2.3); IP options are quoted.",
           Ether(**COMES) / long, "reject", unreachable(bytes(long)[:548]))

    bare = IP(src=CLIENT, dst=VIP) / UDP(sport=51000, dport=53, chksum=0)
    yield ("reject_udp_empty", "An empty datagram without checksum: the quote is its two headers.",
           Ether(**COMES) / bare, "reject", unreachable(bytes(bare)))

    yield from cases_of_ipv6()
    yield from cases_of_links()


def cases_of_links():
    """What a host of the link asks, and what the worker that has the VIP answers."""
    answer = f"answer {GATEWAY_OUT_MAC}"
    broadcast, group, group_mac = "ff:ff:ff:ff:ff:ff", "ff02::1:ff00:10", "33:33:ff:00:00:10"
    link_local = "fe80::10"

    def arp_reply(client):
        return Ether(**ANSWERS) / ARP(op=2, hwsrc=GATEWAY_OUT_MAC, psrc=VIP, hwdst=CLIENT_MAC, pdst=client)

    yield ("link_arp_request", "ARP request for a VIP, padded as NICs do, and the reply (RFC 826).",
           Ether(src=CLIENT_MAC, dst=broadcast) / ARP(op=1, hwsrc=CLIENT_MAC, psrc=CLIENT, pdst=VIP) / Padding(b"\0" * 18), answer,
           arp_reply(CLIENT))
    yield ("link_arp_probe", "ARP probe of a host that is about to use the VIP itself: it learns of the conflict (RFC 5227, 2.1.1).",
           Ether(src=CLIENT_MAC, dst=broadcast) / ARP(op=1, hwsrc=CLIENT_MAC, psrc="0.0.0.0", pdst=VIP) / Padding(b"\0" * 18), answer,
           arp_reply("0.0.0.0"))

    def advertisement(to, to_mac, **flags):
        return (Ether(src=GATEWAY_OUT_MAC, dst=to_mac) / IPv6(src=VIP6, dst=to, hlim=255) / ICMPv6ND_NA(R=0, O=1, tgt=VIP6, **flags) /
                ICMPv6NDOptDstLLAddr(lladdr=GATEWAY_OUT_MAC))

    solicitation = ICMPv6ND_NS(tgt=VIP6)
    yield ("link_solicitation", "Neighbour solicitation to the group of a VIP, from a link-local address (RFC 4861, 7.2.4).",
           Ether(src=CLIENT_MAC, dst=group_mac) / IPv6(src=link_local, dst=group, hlim=255) / solicitation /
           ICMPv6NDOptSrcLLAddr(lladdr=CLIENT_MAC), answer, advertisement(link_local, CLIENT_MAC, S=1))
    yield ("link_solicitation_unicast", "Verification of a neighbour entry, without the sender's Ethernet address: the answer is longer.",
           Ether(**COMES) / IPv6(src=CLIENT6, dst=VIP6, hlim=255) / solicitation, answer, advertisement(CLIENT6, CLIENT_MAC, S=1))
    yield ("link_duplicate_address", "Duplicate address detection for a VIP: all hosts get the answer (RFC 4862, 5.4.3).",
           Ether(src=CLIENT_MAC, dst=group_mac) / IPv6(src="::", dst=group, hlim=255) / solicitation, answer,
           advertisement("ff02::1", "33:33:00:00:00:01", S=0))


def cases_of_ipv6():
    marks = {"tc": 0xb8, "fl": 0xabcde}
    syn = {"flags": "S", "seq": 1000, "options": MSS_AND_SACK}
    yield ("nat6_forward_tcp", "Full NAT over IPv6: traffic class and flow label stay (NAT-001).",
           Ether(**COMES) / IPv6(src=CLIENT6, dst=VIP6, hlim=63, **marks) / TCP(sport=51000, dport=80, **syn), REWRITE_FORWARD6,
           Ether(**LEAVES) / IPv6(src=SNAT6, dst=BACKEND6, hlim=62, **marks) / TCP(sport=40001, dport=9376, **syn))

    yield ("nat6_reverse_udp", "Full NAT of a datagram over IPv6, endpoint to client (NAT-001).",
           Ether(**COMES) / IPv6(src=BACKEND6, dst=SNAT6, hlim=64) / UDP(sport=9376, dport=40001) / Raw(b"pong!"), REWRITE_REVERSE6,
           Ether(**LEAVES) / IPv6(src=VIP6, dst=CLIENT6, hlim=63) / UDP(sport=80, dport=51000) / Raw(b"pong!"))

    def behind_extensions(source, destination, hops):
        return (IPv6(src=source, dst=destination, hlim=hops) / IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)]) /
                IPv6ExtHdrFragment(offset=0, m=0, id=0x1234) / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 12)]))

    yield ("nat6_extension_headers", "Extension headers stay as they are, the fragment header of a whole packet too (RFC 6946).",
           Ether(**COMES) / behind_extensions(CLIENT6, VIP6, 9) / TCP(sport=51000, dport=80, flags="PA", seq=1, ack=2) / Raw(b"odd"),
           REWRITE_FORWARD6,
           Ether(**LEAVES) / behind_extensions(SNAT6, BACKEND6, 8) / TCP(sport=40001, dport=9376, flags="PA", seq=1, ack=2) / Raw(b"odd"))

    out_ip, out_udp = IPv6(src=SNAT6, dst=BACKEND6, hlim=63), UDP(sport=40001, dport=9376)
    payload = zero_sum_payload(out_ip / out_udp, b"tail")
    yield ("nat6_udp_checksum_comes_out_zero", "Over IPv6 zero is not even allowed: it is written 0xffff (RFC 8200, 8.1).",
           Ether(**COMES) / IPv6(src=CLIENT6, dst=VIP6, hlim=64) / UDP(sport=51000, dport=80) / Raw(payload), REWRITE_FORWARD6,
           Ether(**LEAVES) / out_ip / out_udp / Raw(payload))

    yield ("reject6_syn", "RST to a SYN over IPv6, without the extension headers that it came with (REJ-002).",
           Ether(**COMES) / behind_extensions(CLIENT6, VIP6, 63) / TCP(sport=51000, dport=80, flags="S", seq=1000), "reject",
           Ether(**ANSWERS) / IPv6(src=VIP6, dst=CLIENT6, hlim=64) / TCP(sport=80, dport=51000, flags="RA", seq=0, ack=1001, window=0))

    def unreachable(quoted):
        return Ether(**ANSWERS) / IPv6(src=VIP6, dst=CLIENT6, hlim=64, tc=0xc0, nh=58) / ICMPv6DestUnreach(code=4) / Raw(quoted)

    query = IPv6(src=CLIENT6, dst=VIP6, hlim=61, **marks) / UDP(sport=51000, dport=53) / Raw(b"who is there?")
    yield ("reject6_udp", "ICMPv6 port unreachable quoting the whole datagram, from the address it was sent to (REJ-002).",
           Ether(**COMES) / query, "reject", unreachable(bytes(query)))

    long = behind_extensions(CLIENT6, VIP6, 61) / UDP(sport=51000, dport=53) / Raw(bytes(range(256)) * 5)
    yield ("reject6_udp_long", "The quote ends where the answer is 1280 bytes long (RFC 4443, 2.4 c); extension headers are quoted.",
           Ether(**COMES) / long, "reject", unreachable(bytes(long)[:1232]))


def lines_of(frame):
    frame = bytes(frame)
    return [frame[at:at + 16].hex(" ") for at in range(0, len(frame), 16)]


def text_of(meaning, before, operation, after):
    return "\n".join([f"# {meaning}", "in", *lines_of(before), operation, "out", *lines_of(after), ""])


def main():
    folder = pathlib.Path(__file__).parent
    wanted = {f"{name}.txt": text_of(*rest) for name, *rest in cases()}
    if sys.argv[1:] == ["--check"]:
        stored = {path.name: path.read_text() for path in folder.glob("*.txt")}
        wrong = sorted(name for name in wanted.keys() | stored.keys() if wanted.get(name) != stored.get(name))
        print(f"{len(wanted)} golden frames, {len(wrong)} differ from make.py {' '.join(wrong)}")
        return 1 if wrong else 0
    for name, text in wanted.items():
        (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
