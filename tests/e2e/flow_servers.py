# SPDX-License-Identifier: Apache-2.0
"""Servers of long-lived flows: one program on each backend, with one port for TCP and UDP."""
import functools
import socket

from fixture import until
from lab.network import BACKENDS, inside


def start_on_backends(network, port, words_of, log):
    """`words_of`: program and arguments by role. `log`: end of the file names. Returns when all programs answer."""
    for role in BACKENDS:
        network.start(role, words_of(role), f"{role}-{log}.log")
    for role in BACKENDS:
        with inside(network.namespace(role)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(0.5)
            until(f"the server on {role} answers", functools.partial(_answers, client, port), 20)


def _answers(client, port):
    """By UDP, which the programs open last."""
    try:
        client.connect(("127.0.0.1", port))
        client.send(b"?")
        return bool(client.recv(100))
    except OSError:
        return False
