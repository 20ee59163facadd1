"""UDP echo server: udp_echo.py NAME PORT. Answers each datagram with "NAME CLIENT-ADDRESS PAYLOAD", so that the client learns who answered and
whose address that server saw."""
import socket
import sys

name, port = sys.argv[1].encode(), int(sys.argv[2])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", port))
while True:
    payload, client = server.recvfrom(65535)
    server.sendto(b" ".join((name, client[0].encode(), payload)), client)
