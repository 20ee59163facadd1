# SPDX-License-Identifier: Apache-2.0
"""Linux as oracle: sends the same ICMP errors and fragments through the kernel's NAT and through penstockd.
The output must be equal byte by byte, or differ by a choice that is listed in docs/semantics.md and described
in CHOICES."""
import collections
import contextlib
import dataclasses
import shutil

import packets
from fixture import VIP, VIP2, VIP2_6, VIP_6, Skip, case, check, equal
from kernel_nat import (BEHIND_CLIENT, BEHIND_ENDPOINT, CLIENT, ENDPOINT, FAR_CLIENT, FAR_CLIENT_6, FAR_ENDPOINT, FAR_ENDPOINT_6, INNER_ROUTER,
                        INNER_ROUTER_6, OUTER_ROUTER, OUTER_ROUTER_6, Bed, KernelGateway, silence_behind)
from lab import network as net
from manifests import endpoints, service
from packets import ACK, SYN, SYN_ACK, TCP, UDP, Flow, error, fragment, packet, transport

CLUSTER_MTU = 1300
FENCE_PORT, FENCE_TARGET = 5399, 15399
PORTS = {UDP: (5300, 15300), TCP: (80, 15080)}
FAMILIES = {"IPv4": (FAR_CLIENT, FAR_ENDPOINT, OUTER_ROUTER, INNER_ROUTER, VIP, VIP2, net.CLUSTER),
            "IPv6": (FAR_CLIENT_6, FAR_ENDPOINT_6, OUTER_ROUTER_6, INNER_ROUTER_6, VIP_6, VIP2_6, net.CLUSTER6)}


@dataclasses.dataclass
class Question:
    what: str
    side: int    # sending side
    sent: list
    choice: str = ""  # a difference that docs/semantics.md lists
    ours: bytes = b""  # expected output on the other side, if only penstockd's is predictable

    @property
    def far(self):
        return 1 - self.side


@dataclasses.dataclass
class Ways:
    """A flow as seen from both sides, and the other hosts on its path."""
    outside: Flow
    inside: Flow
    family: str

    @property
    def name(self):
        kept = self.outside.source == self.inside.source
        return f"{self.family} {'TCP' if self.outside.protocol == TCP else 'UDP'} {'source kept' if kept else 'full NAT'}"

    @property
    def kept(self):
        return self.outside.source == self.inside.source

    @property
    def routers(self):
        return FAMILIES[self.family][2:4]


def unreachable(family):
    return (3, 3, 0) if family == "IPv4" else (1, 4, 0)


def too_big(family, mtu):
    return (3, 4, mtu) if family == "IPv4" else (2, 0, mtu)


def kinds(family):
    return ([(3, 0, 0), (3, 1, 0), (3, 3, 0), (3, 13, 0), (11, 0, 0), (11, 1, 0), (12, 0, 0x14000000)] if family == "IPv4" else
            [(1, 0, 0), (1, 4, 0), (3, 0, 0), (3, 1, 0), (4, 1, 40)])


def errors(ways):
    """Errors from both sides, sent by the far end itself and by a router before it, about packets that the
    gateway had sent there."""
    v4, about = ways.family == "IPv4", unreachable(ways.family)
    header = 20 if v4 else 40
    for side, sent, received, router, flags in ((ENDPOINT, ways.inside, ways.outside, ways.routers[1], SYN),
                                                (CLIENT, ways.outside.reverse(), ways.inside.reverse(), ways.routers[0], SYN_ACK)):
        where = f"{ways.name}, from the {'endpoint' if side == ENDPOINT else 'client'}'s side"

        def small(flow, flags=flags):
            return packet(flow, b"what was sent", flags, ttl=63)

        def large(flow, flags=flags):
            return packet(flow, bytes(1352), flags, ttl=63, dont_fragment=v4)[:500]
        options = packet(sent, b"?", flags, ttl=63, options=b"\1\1\1\1" if v4 else b"\1\4\0\0\0\0")
        first, later = (fragment(sent, transport(sent, bytes(1200), flags), *piece, 77, ttl=63) for piece in ((0, 800), (800, 1200)))
        wrong = small(sent)[:-1] + b"?"
        passing = [*((f"type {kind[0]} code {kind[1]}", kind, small(sent)) for kind in kinds(ways.family)),
                   ("too big", too_big(ways.family, 1290), large(sent)), ("8 bytes of the transport's header", about, small(sent)[:header + 8]),
                   ("a first fragment", about, first), ("options", about, options), ("a quote whose sum was wrong before", about, wrong)]
        for what, kind, quoted in passing:
            yield Question(f"{where}, the far end: {what}", side, [error(sent.destination, sent.source, *kind, quoted)])
            # Linux does not treat a host that keeps its source towards the endpoint as the far end of a
            # translation either.
            choice = "hops-keep-their-names" if side == ENDPOINT or not ways.kept else ""
            yield Question(f"{where}, a router: {what}", side, [error(router, sent.source, *kind, quoted)], choice)

        def ask(what, kind, quoted, choice="", ours=b"", where=where, side=side, sent=sent):
            return Question(f"{where}: {what}", side, [error(sent.destination, sent.source, *kind, quoted)], choice, ours)

        def told(kind, quoted, received=received):
            return error(received.destination, received.source, *kind, quoted, ttl=63)
        untranslated = "nothing-untranslated" if side == ENDPOINT and ways.kept else ""
        yield ask("4 bytes of the transport's header", about, small(sent)[:header + 4], "ports-are-enough",
                  told(about, small(received)[:header + 4]))
        yield ask("a later fragment", about, later, untranslated)
        yield ask("about no flow", about, small(dataclasses.replace(sent, destination_port=sent.destination_port ^ 1)), untranslated)
        yield Question(f"{where}: its own sum is wrong", side, [error(sent.destination, sent.source, *about, small(sent))[:-1] + b"?"], untranslated)
        yield ask("an MTU that the packet fitted", too_big(ways.family, 1290), small(sent), "believable-mtus")
        yield ask("an MTU below any link's", too_big(ways.family, 60 if v4 else 1200), large(sent), "believable-mtus")
        if v4:
            if side == CLIENT and not ways.kept:
                yield ask("an MTU of 500", too_big(ways.family, 500), large(sent), "believable-mtus", told(too_big(ways.family, 1280), large(received)))
            else:
                yield ask("an MTU of 500", too_big(ways.family, 500), large(sent))
            yield ask("source quench", (4, 0, 0), small(sent), "no-source-quench")
            yield ask("a redirect", (5, 1, int.from_bytes(packets.raw(ways.routers[0]), "big")), small(sent))


def own_errors(ways):
    """Errors that the gateway itself sends."""
    v4 = ways.family == "IPv4"
    for side, sent, flags in ((CLIENT, ways.outside, SYN), (ENDPOINT, ways.inside.reverse(), SYN_ACK)):
        where = f"{ways.name}, to the {'endpoint' if side == ENDPOINT else 'client'}"
        for ttl in (1, 0):
            yield Question(f"{where}: a TTL of {ttl}", side, [packet(sent, b"0123456789", flags, ttl=ttl)],
                           "hops-keep-their-names" if side == CLIENT else "")
    flags = ACK if ways.outside.protocol == TCP else 0
    yield Question(f"{ways.name}, to the client: what does not fit", CLIENT, [packet(ways.outside, bytes(1400), flags, dont_fragment=v4)])
    if v4:
        yield Question(f"{ways.name}: what is cut", CLIENT, [packet(ways.outside, bytes(range(250)) * 5 + bytes(100), flags, ident=4711)])


def fragments(ways):
    """Fragments from both sides."""
    for side, sent, flags in ((CLIENT, ways.outside, SYN), (ENDPOINT, ways.inside.reverse(), SYN_ACK)):
        # over IPv6 the protocol does not identify a datagram
        ident = 100 * (ways.outside.source_port % 100) + 50 * side
        where = f"{ways.name}, from the {'endpoint' if side == ENDPOINT else 'client'}"
        body = transport(sent, bytes(range(256)) * 6, flags)
        cuts = ((0, 600), (600, 1200), (1200, len(body)))
        for what, order in (("in order", (0, 1, 2)), ("reversed", (2, 1, 0)), ("the middle first", (1, 0, 2)), ("one twice", (0, 1, 1, 2))):
            ident += 1
            yield Question(f"{where}: fragments, {what}", side, [fragment(sent, body, *cuts[i], ident) for i in order])
        # Over IPv6 Linux does not translate such a fragment either (RFC 7112). It answers with an error if it
        # is the destination, and otherwise forwards the fragment unchanged; towards a VIP there is no route.
        tiny = "no-tiny-fragments" if sent.protocol == TCP else ""
        if tiny and ways.family == "IPv6":
            tiny = "" if side == CLIENT else "nothing-untranslated" if ways.kept else "no-tiny-fragments"
        for what, pieces, choice in (("that overlap", ((0, 600), (592, 1200), (1200, len(body))), "fragments-as-they-come"),
                                     ("of which one is missing", ((0, 600), (1200, len(body))), "fragments-as-they-come"),
                                     ("of which the first is missing", ((600, 1200), (1200, len(body))), ""),
                                     ("of which the first has 8 bytes", ((0, 8), (8, 808), (808, len(body))), tiny),
                                     ("of which the first has 16 bytes", ((0, 16), (16, 816), (816, len(body))), tiny)):
            ident += 1
            yield Question(f"{where}: fragments {what}", side, [fragment(sent, body, *piece, ident) for piece in pieces], choice)
        ident += 1
        contradiction = [fragment(sent, body, *cuts[0], ident), fragment(sent, body, *cuts[2], ident), fragment(sent, body[:900], 600, 900, ident)]
        yield Question(f"{where}: fragments that end in two places", side, contradiction, "fragments-as-they-come")


def same_but_for_its_source(question, ours, theirs):
    """The source of an error: a router's address unchanged; the gateway's own if it answers itself."""
    sender = packets.addresses(question.sent[0])[0]
    side, source = (question.far, sender) if packets.body_of(question.sent[0])[0] in (packets.ICMP, packets.ICMP6) else (
        question.side, net.UPLINK6 if packets.is_v6(sender) else net.UPLINK)
    return not theirs[1 - side] and ours[1 - side] == [] and ours[side] == [packets.with_source(packet, source) for packet in theirs[side]]


def pieces_of_what_never_completes(question, ours, theirs):
    def piece(packet):
        _, offset, more, _, body = packets.body_of(packet)
        return offset, more, body[8 if offset == 0 else 0:][-100:]  # a first one has other ports
    left, sent = [piece(packet) for packet in ours[question.far]], [piece(packet) for packet in question.sent]
    return not any(theirs) and not ours[question.side] and left and len(left) < 3 and all(one in sent for one in left)


def silence_instead(question, ours, theirs):
    return not any(ours) and theirs[question.far] and not theirs[question.side]


def foretold_instead(question, ours, theirs):
    return ours[question.far] == [question.ours] and not ours[question.side] and not theirs[question.side]


# Permitted differences. Each has its row in docs/semantics.md under "Where Linux's NAT differs", by this
# name.
CHOICES = {
    "hops-keep-their-names": same_but_for_its_source,
    "ports-are-enough": foretold_instead,
    "believable-mtus": lambda question, *left: (foretold_instead if question.ours else silence_instead)(question, *left),
    "no-source-quench": silence_instead,
    "nothing-untranslated": silence_instead,
    "fragments-as-they-come": pieces_of_what_never_completes,
    "no-tiny-fragments": lambda question, ours, theirs: not any(ours) and any(theirs),
}


QUESTIONS = {"errors": errors, "own_errors": own_errors, "fragments": fragments}


def start(lab):
    if not shutil.which("nft"):
        raise Skip("no nft")
    lab.gateway.port_mtu = {"gw-cl": CLUSTER_MTU}
    families, objects = ("IPv4", "IPv6"), []
    for name, policy, vips in (("translated", "Cluster", (VIP, VIP_6)), ("kept", "Local", (VIP2, VIP2_6))):
        for protocol, word in ((UDP, "UDP"), (TCP, "TCP")):
            objects += of_far_endpoint(f"{name}-{word.lower()}", word, *PORTS[protocol], vips, policy, families)
    lab.start(*objects, *of_far_endpoint("fence", "UDP", FENCE_PORT, FENCE_TARGET, (VIP, VIP_6), "Cluster", families))
    silence_behind(lab.network, "client", "backend-1")
    lab.network.ip("gateway", "\n".join(f"route add {prefix} via {via} dev {device}" for device, routes in
                                        (("uplink0", BEHIND_CLIENT), ("cluster0", BEHIND_ENDPOINT)) for prefix, via in routes))


def of_far_endpoint(name, protocol, port, target, vips, policy, families):
    slices = [endpoints(name, ["backend-1"], port=target, protocol=protocol, family=family) for family in families]
    for entry in slices:
        entry["endpoints"][0]["addresses"] = [FAR_ENDPOINT if entry["addressType"] == "IPv4" else FAR_ENDPOINT_6]
    return [service(name, port, protocol=protocol, target_port=target, external_ips=vips, families=families, policy=policy), *slices]


def outside_flows(family):
    client, vips = FAMILIES[family][0], FAMILIES[family][4:6]
    return [Flow(client, 40_000 + 10 * number + protocol % 10, vip, PORTS[protocol][0], protocol)
            for number, vip in enumerate(vips) for protocol in (UDP, TCP)]


def fence(family):
    return Flow(FAMILIES[family][0], 41_000, FAMILIES[family][4], FENCE_PORT, UDP)


def opened(bed, family):
    """The flows, open in both directions."""
    ways, endpoint = [], FAMILIES[family][1]
    bed.ready(endpoint)
    for outside in outside_flows(family):
        ways.append(Ways(outside, bed.open(outside, endpoint), family))
        bed.after(ENDPOINT, packet(ways[-1].inside.reverse(), b"answer", SYN_ACK))
        bed.after(CLIENT, packet(outside, b"", ACK))
    return ways


def asked(bed, questions):
    return [bed.after(question.side, *question.sent) for question in questions]


def comparable(question, left, about):
    """Removes the parts that are not guaranteed: the order of fragments; their id over IPv6, and over IPv4
    too if the source changes, because the gateway gives each such datagram an id of its own; the id, DF and
    class of the gateway's own packets."""
    # replies leave with the VIP as their source
    own_ids = "full NAT" in question.what or question.side == ENDPOINT

    def plain(packet):
        packet = packets.with_plain_header(packet) if about == "own_errors" else packet
        return packets.without_fragment_id(packet, over_ipv4=own_ids)
    return [sorted(map(plain, side)) for side in left]


def ids_of_fragments(side):
    return {ident for _, offset, more, ident, _ in map(packets.body_of, side) if offset or more}


def verdict_on(question, ours, theirs):
    """"same", the name of the choice that explains the difference, or a description of an unexplained
    difference."""
    if ours == theirs and not question.choice:
        return "same"
    if ours != theirs and question.choice and CHOICES[question.choice](question, ours, theirs):
        return question.choice
    return "\n  ".join([f"{question.what}, expected {question.choice or 'the same'}", *(f"sent: {packets.text_of(packet)}" for packet in question.sent),
                        *(f"{who} to the {('client', 'endpoint')[side]}: {packets.text_of(packet)}"
                          for who, sides in (("penstock", ours), ("Linux", theirs)) for side in (CLIENT, ENDPOINT) for packet in sides[side])])


@case(driver=("af_xdp",), family=("IPv4", "IPv6"), about=tuple(QUESTIONS))
def what_leaves_is_what_linux_would_let_leave_ICMP001_ICMP002_ICMP003_ICMP004_ICMP005_ICMP006_NAT007(lab):
    family, about = lab.variant["family"], lab.variant["about"]
    start(lab)
    macs = {device: lab.network.run("gateway", "cat", f"/sys/class/net/{device}/address").stdout.strip() for device in ("gw-up", "gw-cl")}
    hosts = ("client", macs["gw-up"]), ("backend-1", macs["gw-cl"])
    with contextlib.closing(Bed(lab.network, hosts, fence(family))) as bed:
        ways = opened(bed, family)
        questions = [question for way in ways for question in QUESTIONS[about](way)]
        ours = asked(bed, questions)
    kernel = KernelGateway(lab.network, CLUSTER_MTU)
    if why := kernel.why_not():
        raise Skip(f"nftables translates nothing here: {why}")
    rules = [(way.outside, way.inside.destination, way.inside.destination_port, None if way.kept else way.inside.source_port) for way in ways]
    kernel.translate([*rules, (fence(family), FAMILIES[family][1], FENCE_TARGET, fence(family).source_port)])
    with contextlib.closing(Bed(lab.network, kernel.hosts(), fence(family))) as bed:
        equal([way.inside for way in opened(bed, family)], [way.inside for way in ways], "flows as the endpoint sees them")
        theirs = asked(bed, questions)
    wrong = [packets.text_of(packet) for left in ours for side in left for packet in side if not packets.sums_are_right(packet)]
    equal(wrong, [], "packets of penstockd's with a wrong sum")
    mixed = [question.what for question, left in zip(questions, ours, strict=True) for side in left if len(ids_of_fragments(side)) > 1]
    equal(mixed, [], "datagrams whose fragments left with several ids")
    verdicts = collections.Counter(verdict_on(question, comparable(question, one, about), comparable(question, other, about))
                                   for question, one, other in zip(questions, ours, theirs, strict=True))
    unexplained = sorted(set(verdicts) - {"same", *CHOICES})
    check(not unexplained, f"{len(unexplained)} differences that nothing explains:\n" + "\n".join(unexplained[:10]))
    lab.remarks.append(", ".join(f"{verdict} {count}" for verdict, count in verdicts.most_common()))
