# SPDX-License-Identifier: Apache-2.0
"""naming_echo.py PORT: answers each message, over long-lived TCP connections and by UDP, with the local
address that the client used and a blank."""
import select
import socket
import struct
import sys

IP_PKTINFO = 8  # Linux; this Python does not define it

port = int(sys.argv[1])
listener = socket.create_server(("0.0.0.0", port), backlog=1024)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
datagrams.bind(("0.0.0.0", port))
poll = select.epoll()
connections = {}
for server in (listener, datagrams):
    poll.register(server, select.EPOLLIN)
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            connection, _ = listener.accept()
            connections[connection.fileno()] = connection
            poll.register(connection, select.EPOLLIN)
        elif number == datagrams.fileno():
            _, ancillary, _, client = datagrams.recvmsg(2048, 512)
            address = ancillary[0][2][4:8]  # in_pktinfo: index, source to use, destination
            datagrams.sendmsg([socket.inet_ntoa(address).encode() + b" "],
                              [(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("I4s4s", 0, address, bytes(4)))], 0, client)
        else:
            connection = connections[number]
            try:
                asked = connection.recv(4096)
                if asked:
                    connection.sendall(len(asked) * (connection.getsockname()[0].encode() + b" "))
                    continue
            except OSError:
                pass
            poll.unregister(number)
            connections.pop(number).close()
