# SPDX-License-Identifier: Apache-2.0
"""Sends traffic through frontends and compares the counts of the client's kernel with penstockd's counters,
for each service port."""
import collections
import dataclasses
import time

from . import traffic
from .gateway import traffic_of
from .patience import Patience


@dataclasses.dataclass
class Account:
    """The counts of one service port. Each pair is (counted at the client, counted by penstockd); both must
    be equal."""
    flows: tuple
    forward_packets: tuple
    reverse_packets: tuple

    def pairs(self):
        return dataclasses.asdict(self)

    def is_settled(self):
        return all(at_client == counted for at_client, counted in self.pairs().values())


@dataclasses.dataclass
class Report:
    requests_each: int
    outcomes: dict  # by frontend
    accounts: dict  # by service port

    @property
    def packets(self):
        """The counts of penstockd."""
        return sum(account.forward_packets[1] + account.reverse_packets[1] for account in self.accounts.values())

    def problems(self):
        found = []
        for frontend, outcome in self.outcomes.items():
            if outcome.requests != self.requests_each:
                found.append(f"{frontend}: {outcome.requests} of {self.requests_each} requests were made")
            found += [f"{frontend}: {count} x {reason}" for reason, count in outcome.failures.items()]
            found += [f"{frontend}: no request reached {name}" for name in frontend.reaches if not outcome.answered_by[name]]
            found += [f"{frontend}: {name} answered" for name in outcome.answered_by if name not in frontend.reaches]
        for service, account in self.accounts.items():
            found += [f"{service}: the client saw {at_client} {what.replace('_', ' ')}, penstockd counted {counted}"
                      for what, (at_client, counted) in account.pairs().items() if at_client != counted]
        return found


def send_and_settle(network, gateway, frontends, requests_each):
    before = {service: traffic_of(status) for service, status in gateway.services().items()}
    seen_by_client = traffic.ClientCounters(network, frontends)
    outcomes = {}
    for frontend in frontends:
        send = traffic.http if frontend.protocol == "tcp" else traffic.udp
        outcomes[frontend] = send(network, frontend, requests_each)
    return Report(requests_each, outcomes, _settled(gateway, before, outcomes, seen_by_client))


def _settled(gateway, before, outcomes, seen_by_client, patience_s=10):
    """Compares the accounts. The last acknowledgement of a connection may still be in flight when curl
    returns, so the comparison is repeated for a moment."""
    patience = Patience(patience_s)
    while True:
        now, at_client, accounts = gateway.services(), seen_by_client.read(), {}
        for service in {frontend.service for frontend in outcomes}:
            mine = [frontend for frontend in outcomes if frontend.service == service]
            counted = collections.Counter(traffic_of(now[service]))
            counted.subtract(before[service])
            accounts[service] = Account(flows=(sum(outcomes[f].flows for f in mine), counted["new_flows"]),
                                        forward_packets=(sum(at_client[f][0] for f in mine), counted["forward_packets"]),
                                        reverse_packets=(sum(at_client[f][1] for f in mine), counted["reverse_packets"]))
        if all(account.is_settled() for account in accounts.values()) or not patience.lasts():
            return accounts
        time.sleep(0.1)
