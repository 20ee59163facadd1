# SPDX-License-Identifier: Apache-2.0
"""Drop reasons: each case sends a packet for one reason and expects exactly that reason to be counted."""
import os
import socket
import struct

from fixture import VIP, case, check, equal, until
from lab import network as net
from lab.network import inside
from manifests import endpoints, service


def udp_service():
    return service("echo", 5353, protocol="UDP", target_port=5353, external_ips=[VIP]), endpoints("echo", port=5353, protocol="UDP")


def drops(lab):
    return lab.gateway.drops()


def counter(lab, name):
    return next(int(row["value"]) for row in lab.gateway.json("stats")["counters"] if row["name"] == name)


def expect_one_drop(lab, reason, send, packets=1, patience_s=5.0):
    """After `send` the counter of this reason, and no other, has increased by this number of packets."""
    before = drops(lab)
    send()
    until(f"{packets} x {reason}", lambda: drops(lab)[reason] - before[reason] >= packets, patience_s=patience_s)
    moved = {name: count - before[name] for name, count in drops(lab).items() if count != before[name]}
    equal(moved, {reason: packets}, "drops")


def udp_datagram(lab, address, port, payload=b"x", ttl=64):
    with inside(lab.network.namespace("client")):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
            client.sendto(payload, (address, port))


def raw_frame(lab, *ip_packets):
    """Frames that no kernel would send."""
    gateway_mac = lab.network.run("gateway", "cat", "/sys/class/net/gw-up/address").stdout.strip()
    with inside(lab.network.namespace("client")):
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
            wire.bind(("eth0", 0))
            for ip_packet in ip_packets:
                wire.send(bytes.fromhex(gateway_mac.replace(":", "")) + b"\x02\0\0\0\0\x07" + b"\x08\x00" + ip_packet)


def ip_header(total_length, protocol=17, source=net.CLIENT, destination=VIP, ttl=64, flags_and_offset=0):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total_length, 1, flags_and_offset, ttl, protocol, 0, socket.inet_aton(source),
                         socket.inet_aton(destination))
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:]


@case(driver=("af_packet", "af_xdp"))
def an_undeclared_port_of_a_vip_is_silence(lab):
    lab.start(*udp_service())
    expect_one_drop(lab, "vip_port_closed", lambda: udp_datagram(lab, VIP, 5354))
    equal(lab.connection_outcome(VIP, 80, timeout_s=0.5), "silence", "TCP to a VIP that serves only UDP")


@case()
def a_ttl_that_runs_out_is_told_or_named_ICMP006(lab):
    lab.start(*udp_service())
    # the gateway's address is resolved at the client by now
    expect_one_drop(lab, "vip_port_closed", lambda: udp_datagram(lab, VIP, 5354))
    udp_datagram(lab, VIP, 5353, ttl=1)
    until("time exceeded is sent", lambda: counter(lab, "icmp_errors_sent") == 1)
    # A packet from the broadcast address of a subnet must not be answered.
    datagram = ip_header(28, source="10.80.1.255", ttl=1) + struct.pack("!HHHH", 5000, 5353, 8, 0)
    expect_one_drop(lab, "martian_source", lambda: raw_frame(lab, datagram))
    equal(counter(lab, "icmp_errors_sent"), 1, "ICMP errors sent")


@case(driver=("af_xdp",))
def fragments_that_belong_to_nothing_are_named_NAT007(lab):
    """On af_xdp, because the kernel reassembles fragments before af_packet receives them."""
    lab.start(*udp_service())
    later = ip_header(20 + 64, flags_and_offset=0x2000 | 8) + bytes(64)
    expect_one_drop(lab, "fragment_expired", lambda: raw_frame(lab, later))
    expect_one_drop(lab, "bad_fragment", lambda: raw_frame(lab, ip_header(20 + 63, flags_and_offset=0x2000 | 8) + bytes(63)))
    expect_one_drop(lab, "fragment_too_small", lambda: raw_frame(lab, ip_header(20 + 8, protocol=6, flags_and_offset=0x2000) + bytes(8)))
    expect_one_drop(lab, "fragment", lambda: raw_frame(lab, ip_header(20 + 64, protocol=1, flags_and_offset=0x2000) + bytes(64)))


@case()
def a_frame_that_was_cut_is_named(lab):
    lab.start(*udp_service())
    udp = struct.pack("!HHHH", 4000, 5353, 408, 0)
    expect_one_drop(lab, "frame_shorter_than_ip", lambda: raw_frame(lab, ip_header(428) + udp + bytes(100)))


@case()
def a_broken_ip_checksum_is_named(lab):
    lab.start(*udp_service())
    header = bytearray(ip_header(36))
    header[10] ^= 0x55
    expect_one_drop(lab, "bad_ip_checksum", lambda: raw_frame(lab, bytes(header) + struct.pack("!HHHH", 4000, 5353, 16, 0) + bytes(8)))


@case()
def a_backend_that_nobody_has_is_named(lab):
    objects = list(udp_service())
    objects[1]["endpoints"] = [{"addresses": ["10.80.2.99"], "conditions": {"ready": True}, "nodeName": "edge-1"}]
    lab.start(*objects)
    expect_one_drop(lab, "next_hop_unresolved", lambda: udp_datagram(lab, VIP, 5353), patience_s=10)
    objects = list(udp_service())
    lab.apply(*objects)
    until("the other backends are used", lambda: _echoes(lab))


def _echoes(lab):
    try:
        return lab.echo(VIP, 5353, timeout_s=0.3)[2] == b"hello"
    except OSError:
        return False


@case()
def a_backend_without_a_route_is_named(lab):
    objects = list(udp_service())
    objects[1]["endpoints"] = [{"addresses": ["198.51.100.1"], "conditions": {"ready": True}, "nodeName": "edge-1"}]
    lab.start(*objects)
    expect_one_drop(lab, "no_route", lambda: udp_datagram(lab, VIP, 5353))
    check("no_route" in lab.gateway.ctl("explain", "--proto", "udp", "--src", f"{net.CLIENT}:4000", "--dst", f"{VIP}:5353").stdout,
          "explain does not name the reason")


@case()
def a_source_that_belongs_behind_another_port_is_named(lab):
    """Without the check, one datagram with a forged source would circulate between two services that answer
    each other."""
    lab.start(*udp_service())
    until("the service echoes", lambda: _echoes(lab))
    inside_address = "10.80.2.13"
    datagram = ip_header(29, source=inside_address) + struct.pack("!HHHH", 5353, 5353, 9, 0) + b"x"
    expect_one_drop(lab, "reverse_path", lambda: raw_frame(lab, datagram))
    explain = ("explain", "--proto", "udp", "--src", f"{inside_address}:5353", "--dst", f"{VIP}:5353")
    check("Verdict: drop (reverse_path)" in lab.gateway.ctl(*explain, "--port", "0").stdout, "explain passes it by the uplink")
    check("reverse_path" not in lab.gateway.ctl(*explain).stdout, "explain drops it by its own port")


def _log_says(lab, words):
    with open(lab.run.file("penstockd.log")) as log:
        return words in log.read()


@case(driver=("af_packet", "af_xdp"))
def a_blocked_source_is_named_and_the_list_is_followed(lab):
    blocklist = lab.run.file("blocklist")

    def block(text):
        with open(blocklist + ".new", "w") as file:
            file.write(text)
        os.rename(blocklist + ".new", blocklist)

    block("# nobody yet\n")
    lab.gateway.more_options = ["--blocklist", blocklist]
    lab.start(*udp_service())
    until("the service echoes", lambda: _echoes(lab))
    block(f"198.51.100.0/24\n{net.CLIENT}   # the client\n")
    until("the client is blocked", lambda: not _echoes(lab))
    expect_one_drop(lab, "source_blocked", lambda: udp_datagram(lab, VIP, 5353))
    expect_one_drop(lab, "source_blocked", lambda: udp_datagram(lab, net.UPLINK, 9))  # the host's own address
    check("source_blocked" in lab.gateway.ctl("explain", "--proto", "udp", "--src", f"{net.CLIENT}:4000", "--dst", f"{VIP}:5353").stdout,
          "explain does not name the reason")
    block(f"{net.UPLINK}/32\n")  # the gateway's own address is rejected, and the last good list stays
    until("the log names the line", lambda: _log_says(lab, "line 1: "))
    expect_one_drop(lab, "source_blocked", lambda: udp_datagram(lab, VIP, 5353))
    block("")
    until("the client is let in again", lambda: _echoes(lab))
