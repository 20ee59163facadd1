# SPDX-License-Identifier: Apache-2.0
"""Compares a Service behind both gateways. Endpoints are chosen at random, so each frontend is probed many
times, until both gateways have shown the same set."""
import collections
import random
from concurrent.futures import ThreadPoolExecutor

ROUNDS_MIN = 24    # a uniformly drawn set of four is incomplete in 4 of 1,000 times
ROUNDS_MAX = 150
ROUNDS_OF_SILENCE = 2  # results other than open do not vary, and a timeout takes a second


def outcomes_of(lab, targets):
    """Returns ({target: set of Outcome} of Penstock, the same of kube-proxy)."""
    seen = [collections.defaultdict(set), collections.defaultdict(set)]
    asked, rounds = list(targets), 0
    order, gateways = random.Random(len(targets)), (lab.through_penstock, lab.through_kube_proxy)
    while asked and rounds < ROUNDS_MAX:
        # Frontends of one Service share its rotation. In a fixed order each would get the same endpoints
        # repeatedly.
        order.shuffle(asked)
        with ThreadPoolExecutor() as side_by_side:
            for outcomes, into in zip(side_by_side.map(lambda gateway: gateway(asked), gateways), seen):
                for target, outcome in outcomes.items():
                    into[target].add(outcome)
        rounds += 1
        if rounds >= ROUNDS_OF_SILENCE:
            asked = [target for target in asked if _is_open(seen[0][target]) and _is_open(seen[1][target])
                     and (rounds < ROUNDS_MIN or seen[0][target] != seen[1][target])]
    return seen


def _is_open(outcomes):
    return any(outcome.kind == "open" for outcome in outcomes)


# Permitted differences. Each has its paragraph in docs/semantics.md under "Where kube-proxy differs", by this
# name.
def choice_behind(target, penstock, proxy, world):
    """The name of the choice that explains the difference, or None."""
    ours, theirs = ({outcome.kind for outcome in outcomes} for outcomes in (penstock, proxy))
    if "undeclared port" in target.what and ours == {"silence"} and "open" not in theirs:
        return "closed-vip-port"
    if target.what in world.closed_to_client and ours == {"silence"} and theirs == {"refused"}:
        return "closed-source-without-endpoints"
    affinity = world.with_affinity.get(target.what.split()[0], 0)
    if 0 < len(penstock) <= affinity and 0 < len(proxy) <= affinity and ours == theirs == {"open"}:
        if {outcome.source for outcome in penstock} == {outcome.source for outcome in proxy}:
            return "affinity-draws"
    return None


def text_of(target, penstock, proxy):
    def show(outcomes):
        return ", ".join(" ".join(filter(None, (one.kind, one.endpoint, one.source))) for one in sorted(outcomes)) or "nothing"
    return f"{target.what} {target.address}:{target.port}/{target.protocol}: penstock {show(penstock)}; kube-proxy {show(proxy)}"
