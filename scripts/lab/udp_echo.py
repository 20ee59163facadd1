# SPDX-License-Identifier: Apache-2.0
"""UDP echo server on all addresses of both families: udp_echo.py NAME PORT. Answers each datagram with "NAME
CLIENT-ADDRESS PAYLOAD". The client thereby learns the server's name and the client address that the server
received."""
import socket
import sys

name, port = sys.argv[1].encode(), int(sys.argv[2])
server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
server.bind(("::", port))
while True:
    payload, client = server.recvfrom(65535)
    server.sendto(b" ".join((name, client[0].removeprefix("::ffff:").encode(), payload)), client)
