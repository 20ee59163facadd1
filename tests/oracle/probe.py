# SPDX-License-Identifier: Apache-2.0
"""Result of the first packet of a flow: many flows at once, through both gateways, each from a port of its
own. A port is not reused while UDP flows of it are still in a table. Two flows from the same socket to the
same endpoint through two frontends would need source translation to distinguish them, in which Penstock and
the kernel differ."""
import dataclasses
import errno
import itertools
import select
import socket
import time

from lab.network import family_of, inside

# Afterwards the result is silence. If an ICMP error arrives while connect() still holds its socket, it is
# reported only for the next SYN, a second later.
PATIENCE_S = 2.5


@dataclasses.dataclass(frozen=True, order=True)
class Target:
    """A destination of the client. `address` is the word node for a NodePort, because each gateway has
    addresses of its own."""
    what: str  # description, for output: "svc-3 external IP"
    address: str
    port: int
    protocol: str


@dataclasses.dataclass(frozen=True, order=True)
class Outcome:
    kind: str           # "open", "refused", "silence", or the kernel's text for another ICMP error
    endpoint: str = ""  # "10.81.1.7:9376"
    source: str = ""    # "kept", "translated"


_ports = itertools.cycle(range(20_000, 60_000))  # more ports than all worlds of a run use


def _bind(client, source):
    for port in itertools.islice(_ports, 1_000):
        try:
            return client.bind((source, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise RuntimeError("1,000 ports in a row are in use")


def probe(network, source, targets, node_address):
    """{target: Outcome}, from one flow for each target."""
    waiting, outcomes = {}, {}
    with inside(network.namespace("client")):
        for target in targets:
            address = node_address if target.address == "node" else target.address
            kind = socket.SOCK_STREAM if target.protocol == "TCP" else socket.SOCK_DGRAM
            client = socket.socket(family_of(address), kind)
            client.setblocking(False)
            _bind(client, source)
            try:
                client.connect((address, target.port))
                if kind == socket.SOCK_DGRAM:
                    client.send(b"?")
            except BlockingIOError:
                pass
            except OSError as error:
                outcomes[target] = Outcome(error.strerror)
                client.close()
                continue
            waiting[client] = target
    deadline = time.monotonic() + PATIENCE_S
    poll = select.poll()
    by_number = {client.fileno(): client for client in waiting}
    for number in by_number:
        poll.register(number, select.POLLIN)
    while by_number and (left := deadline - time.monotonic()) > 0:
        for number, _ in poll.poll(1000 * left):
            outcome = _read(by_number[number], source)
            if outcome is not None:
                outcomes[waiting[by_number.pop(number)]] = outcome
                poll.unregister(number)
    for client, target in waiting.items():
        outcomes.setdefault(target, Outcome("silence"))
        client.close()
    return outcomes


def _read(client, source):
    """The result, or None if there is none yet."""
    try:
        text = client.recv(200).decode().split()
    except BlockingIOError:
        return None
    except ConnectionRefusedError:
        return Outcome("refused")
    except OSError as error:
        return Outcome(error.strerror)
    if len(text) != 2:
        return Outcome("closed without an answer")
    return Outcome("open", text[0], "kept" if text[1] == source else "translated")
