# SPDX-License-Identifier: Apache-2.0
"""All pods of a node. Answers each TCP connection and each UDP datagram on these ports, on any local address,
with "ADDRESS:PORT CLIENT-ADDRESS": the address of the pod, and the client address that it received.

pod_server.py PORT..."""
import ipaddress
import select
import socket
import struct
import sys

IP_PKTINFO = 8  # Linux; this Python does not define it


def main():
    servers = {}
    for port in map(int, sys.argv[1:]):
        tcp = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
        servers[tcp] = accept
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        udp.bind(("0.0.0.0", port))
        servers[udp] = answer
        udp6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        udp6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        udp6.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        udp6.bind(("::", port))
        servers[udp6] = answer
    while True:
        for server in select.select(servers, [], [])[0]:
            try:
                servers[server](server)
            except OSError:
                pass  # the client has gone


def accept(server):
    connection, client = server.accept()
    with connection:
        local = connection.getsockname()
        connection.sendall(words(local[0], local[1], client[0]))


def answer(server):
    _, ancillary, _, client = server.recvmsg(2048, 512)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, IP_PKTINFO):
            asked = socket.inet_ntoa(data[4:8])  # in_pktinfo: index, source to use, destination
            reply = struct.pack("I4s4s", 0, data[4:8], bytes(4))
        else:
            asked = str(ipaddress.IPv6Address(data[:16]))
            reply = data[:16] + bytes(4)
        server.sendmsg([words(asked, server.getsockname()[1], client[0])], [(level, kind, reply)], 0, client)


def words(address, port, client):
    plain = [text.removeprefix("::ffff:") for text in (address, client)]
    return f"{plain[0]}:{port} {plain[1]}\n".encode()


main()
