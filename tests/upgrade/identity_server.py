# SPDX-License-Identifier: Apache-2.0
"""Server on TCP and UDP, both families: identity_server.py NAME PORT. Answers each byte of a stream, and each
datagram, with the line "NAME CLIENT-ADDRESS CLIENT-PORT". The answer to a datagram is not shorter than the datagram."""
import select
import socket
import sys

name, port = sys.argv[1], int(sys.argv[2])
listener = socket.create_server(("::", port), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True)
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
datagrams.bind(("::", port))
poll = select.epoll()
connections = {}


def line_for(client):
    return f"{name} {client[0].removeprefix('::ffff:')} {client[1]}\n".encode()


for server in (listener, datagrams):
    poll.register(server, select.EPOLLIN)
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            connection, client = listener.accept()
            connections[connection.fileno()] = connection, line_for(client)
            poll.register(connection, select.EPOLLIN)
        elif number == datagrams.fileno():
            asked, client = datagrams.recvfrom(65536)
            datagrams.sendto(line_for(client)[:-1].ljust(len(asked) - 1) + b"\n", client)
        else:
            connection, line = connections[number]
            try:
                asked = connection.recv(4096)
                if asked:
                    connection.sendall(len(asked) * line)
                    continue
            except OSError:
                pass
            poll.unregister(number)
            connections.pop(number)
            connection.close()
