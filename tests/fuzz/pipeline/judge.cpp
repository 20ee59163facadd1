// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pipeline/judge.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "dataplane/conn/table.hpp"
#include "tests/fuzz/pipeline/world.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::fuzz {

using test::Outcome;

// One arrived frame and its outcome, as input of all rules below.
struct Case {
    const Arrived& arrived;
    const Outcome& outcome;
    const Rules& rules;
    const std::vector<IpAddr>& spoke;
    FirstFragments& first_fragments;
    Flows& flows;
    Sight in, out;

    [[nodiscard]] const Frame& before() const { return arrived.frame; }
    [[nodiscard]] const Frame& after() const { return outcome.frame; }

    void rule(bool holds, const char* what) const {
        if (holds) [[likely]] {
            return;
        }
        std::fprintf(stderr, "pipeline fuzz: %s\n%s on port %u, verdict %s", what,
                     arrived.from_host ? "from the host" : "from the wire", unsigned{arrived.port.value},
                     to_string(outcome.verdict));
        if (outcome.verdict == Verdict::Drop) {
            std::fprintf(stderr, " (%.*s)", static_cast<int>(text_of(outcome.reason).counter.size()),
                         text_of(outcome.reason).counter.data());
        }
        std::fprintf(stderr, ", egress %u, worker %u\nin  = %s\nout = %s\n", unsigned{outcome.egress.value},
                     unsigned{outcome.worker.value}, test::to_scapy(before()).c_str(),
                     test::to_scapy(after()).c_str());
        std::abort();
    }
    // The same for a check that returns a complaint, or null.
    void accept(const char* complaint) const { rule(complaint == nullptr, complaint); }
};

namespace {

// Maximum difference between an answer that quotes a whole packet and that packet: ICMP's 8 bytes and an IP
// header.
constexpr size_t kAnswerOverhead4 = 28, kAnswerOverhead6 = 48;
constexpr size_t kIcmpErrorMax4 = 576, kIcmpErrorMax6 = 1280;  // RFC 1812, 4.3.2.3; RFC 4443, 2.4 (c)
constexpr size_t kIpv6MtuMin = 1280;                           // RFC 8200, 5
constexpr size_t kLongerAsIpv6 = 28;                           // its header, and a fragment header
constexpr size_t kFrameMin = 60;
constexpr uint8_t kRst = 0x04;

// The flow of a packet; empty if the packet shows no ports.
std::optional<packet::FlowKey> flow_of(const Frame& frame, const Sight& sight) {
    if (!sight.has_ports(frame)) {
        return std::nullopt;
    }
    return packet::FlowKey{sight.source,
                           sight.destination,
                           word_at(frame, sight.l4),
                           word_at(frame, sight.l4 + 2),
                           sight.protocol == kTcp   ? Protocol::Tcp
                           : sight.protocol == kUdp ? Protocol::Udp
                                                    : Protocol::Sctp,
                           {}};
}

bool is_group_mac(const Frame& frame) {
    return !frame.empty() && (frame[0] & 1) != 0;
}
bool is_blocked(const Case& the) {
    return the.in.vlan_tags <= 2 && the.rules.has_blocklist && !the.arrived.from_host && the.in.is_ip &&
           (the.in.source == kBlocked4 || the.in.source == kBlocked6);
}
uint8_t tcp_flags(const Frame& frame, const Sight& sight) {
    return sight.is_ip && sight.protocol == kTcp && !sight.is_later_fragment && sight.l4_bytes() >= 14
               ? frame[sight.l4 + 13]
               : uint8_t{0};
}
uint8_t icmp_type(const Frame& frame, const Sight& sight) {
    const bool is_icmp = sight.is_ip && !sight.is_later_fragment &&
                         sight.protocol == (sight.is_v4 ? kIcmp : kIcmpv6) && sight.l4_bytes() >= 8;
    return is_icmp ? frame[sight.l4] : uint8_t{255};
}
bool is_echo_request(const Frame& frame, const Sight& sight) {
    return icmp_type(frame, sight) == (sight.is_v4 ? 8 : 128);
}
bool is_echo_reply(const Frame& frame, const Sight& sight) {
    return icmp_type(frame, sight) == (sight.is_v4 ? 0 : 129);
}
bool is_sctp_abort(const Frame& frame, const Sight& sight) {
    return sight.is_ip && sight.protocol == kSctp && !sight.is_fragment && sight.l4_bytes() >= 16 &&
           frame[sight.l4 + 12] == 6;
}

// Whether the gateway originated the outgoing packet instead of forwarding one; determined by its type.
bool is_answer(const Case& the) {
    return (is_icmp_error(the.after(), the.out) && !is_icmp_error(the.before(), the.in)) ||
           (is_echo_reply(the.after(), the.out) && is_echo_request(the.before(), the.in)) ||
           ((tcp_flags(the.after(), the.out) & kRst) != 0 && (tcp_flags(the.before(), the.in) & kRst) == 0) ||
           (is_sctp_abort(the.after(), the.out) && !is_sctp_abort(the.before(), the.in));
}

void judge_ethernet(const Case& the) {
    const NicPortId egress = the.outcome.egress;
    the.rule(egress == test::kUp || egress == test::kCluster, "it leaves by a port that is there");
    const MacAddr& own = egress == test::kUp ? test::kUpMac : test::kClusterMac;
    the.rule(std::equal(own.bytes.begin(), own.bytes.end(), the.after().begin() + 6),
             "it leaves with the port's own source address");
    const MacAddr neighbour = egress == test::kUp ? test::kClientMac : test::backend_mac(the.after()[5]);
    const bool is_known = std::equal(neighbour.bytes.begin(), neighbour.bytes.end(), the.after().begin());
    the.rule(is_known, "it leaves for a neighbour's Ethernet address");
}

uint32_t long_at(const Frame& frame, size_t at) {
    return uint32_t{word_at(frame, at)} << 16 | word_at(frame, at + 2);
}
bool has_ports_exchanged(const Case& the) {
    return word_at(the.after(), the.out.l4) == word_at(the.before(), the.in.l4 + 2) &&
           word_at(the.after(), the.out.l4 + 2) == word_at(the.before(), the.in.l4);
}

// Checks that the sender of the segment must accept the RST as an answer to it (RFC 9293, 3.10.7.1).
void judge_reset(const Case& the) {
    constexpr uint8_t kFin = 0x01, kSyn = 0x02, kAck = 0x10;
    const size_t in = the.in.l4, out = the.out.l4;
    const uint8_t flags = tcp_flags(the.before(), the.in);
    the.rule(has_ports_exchanged(the), "a RST comes from the port that was asked");
    the.rule(the.out.l4_bytes() == 20, "a RST is bare");
    if ((flags & kAck) != 0) {
        the.rule(long_at(the.after(), out + 4) == long_at(the.before(), in + 8),
                 "a RST is where its receiver expects the next segment");
        return;
    }
    const size_t header = (the.before()[in + 12] >> 4U) * size_t{4};
    const size_t length =
        the.in.l4_bytes() - header + ((flags & kSyn) != 0 ? 1 : 0) + ((flags & kFin) != 0 ? 1 : 0);
    the.rule(
        long_at(the.after(), out + 4) == 0 && (tcp_flags(the.after(), the.out) & kAck) != 0 &&
            long_at(the.after(), out + 8) == long_at(the.before(), in + 4) + static_cast<uint32_t>(length),
        "a RST acknowledges all of the segment that it answers");
}

// RFC 9260, 8.4: the sender's own tag if the packet contains it, otherwise the packet's tag with the T bit
// set.
void judge_abort(const Case& the) {
    constexpr uint8_t kInit = 1, kReflected = 0x01;
    the.rule(has_ports_exchanged(the), "an ABORT comes from the port that was asked");
    const bool begins = the.before()[the.in.l4 + 12] == kInit;
    const bool is_reflected = (the.after()[the.out.l4 + 13] & kReflected) != 0;
    the.rule(begins != is_reflected, "an ABORT says whose tag it has");
    the.rule(long_at(the.after(), the.out.l4 + 4) == long_at(the.before(), the.in.l4 + (begins ? 16 : 4)),
             "an ABORT has a tag that is taken");
}

void judge_echo(const Case& the) {
    the.rule(the.out.l4_bytes() == the.in.l4_bytes(), "an echo is as long as its request");
    the.rule(std::equal(the.before().begin() + static_cast<ptrdiff_t>(the.in.l4 + 4),
                        the.before().begin() + static_cast<ptrdiff_t>(the.in.l3 + the.in.l3_bytes),
                        the.after().begin() + static_cast<ptrdiff_t>(the.out.l4 + 4)),
             "an echo says what its request said");
}

void judge_answer(const Case& the) {
    the.rule(the.in.is_ip && the.in.ip_sum_right && l4_sum(the.before(), the.in) != L4Sum::Wrong,
             "what came damaged is not answered");
    the.rule(!is_icmp_error(the.before(), the.in) && !the.in.is_later_fragment,
             "neither ICMP errors nor later fragments are answered");
    the.rule(!is_group_mac(the.before()) && !is_nobodys(the.in.destination) && !is_nobodys(the.in.source),
             "nothing to a group or from nobody is answered");
    the.rule(the.out.is_v4 == the.in.is_v4, "an answer is of the family of what it answers");
    the.rule(the.out.destination == the.in.source, "an answer goes to who asked");
    the.rule(the.out.source == the.in.destination || is_own(the.out.source),
             "an answer comes from whom was asked, or from the gateway");
    the.rule(l4_sum(the.after(), the.out) == L4Sum::Right, "an answer's checksum is right");
    the.rule(the.out.ttl >= 32, "an answer has a time to live");
    the.rule(the.out.l3_bytes <= the.in.l3_bytes + (the.in.is_v4 ? kAnswerOverhead4 : kAnswerOverhead6),
             "an answer does not amplify");
    if (!is_icmp_error(the.after(), the.out)) {
        return the.out.protocol == kTcp    ? judge_reset(the)
               : the.out.protocol == kSctp ? judge_abort(the)
                                           : judge_echo(the);
    }
    the.rule(the.out.l3_bytes <= (the.out.is_v4 ? kIcmpErrorMax4 : kIcmpErrorMax6),
             "an ICMP error is not too long");
    const Frame quote = quoted_by(the.after(), the.out);
    the.rule(!quote.empty() && quote.size() - kEtherBytes <= the.in.l3_bytes,
             "an ICMP error quotes no more than there was");
    for (size_t at = 0; at < quote.size() - kEtherBytes; ++at) {
        // TTL and the checksum that covers it.
        const bool counts_hops = the.in.is_v4 ? at == 8 || at == 10 || at == 11 : at == 7;
        the.rule(counts_hops || quote[kEtherBytes + at] == the.before()[the.in.l3 + at],
                 "an ICMP error quotes what its receiver sent");
    }
}

// One's-complement sum of addresses, ports and checksum of a message. A translation leaves it unchanged,
// whatever else the checksum covers.
uint32_t translated_sum(const Frame& frame, const Sight& sight, size_t checksum_at) {
    uint32_t sum = 0;
    for (size_t at = sight.is_v4 ? 12 : 8; at < (sight.is_v4 ? 20 : 40); at += 2) {
        sum += word_at(frame, sight.l3 + at);
    }
    sum += uint32_t{word_at(frame, sight.l4)} + word_at(frame, sight.l4 + 2) +
           word_at(frame, sight.l4 + checksum_at);
    return sum % 0xffff;
}

bool is_same(const Case& the, size_t in_from, size_t out_from) {
    const auto end_of = [](const Frame& frame, const Sight& sight) {
        return frame.begin() + static_cast<ptrdiff_t>(sight.l3 + sight.l3_bytes);
    };
    return std::equal(the.before().begin() + static_cast<ptrdiff_t>(in_from), end_of(the.before(), the.in),
                      the.after().begin() + static_cast<ptrdiff_t>(out_from), end_of(the.after(), the.out));
}

void judge_tcp_header(const Case& the) {
    constexpr size_t kSequence = 4, kChecksum = 16, kUrgent = 18;
    const auto field = [&](size_t at) {
        return word_at(the.before(), the.in.l4 + at) == word_at(the.after(), the.out.l4 + at);
    };
    for (size_t at = kSequence; at < kChecksum; at += 2) {
        the.rule(field(at), "sequence numbers, flags and window of a segment are its ends' business");
    }
    the.rule(field(kUrgent), "urgent pointers stay");
}

// Whether the MSS of a SYN is the only difference, if the rules allow one.
bool is_mss_lowered(const Case& the) {
    const size_t in = the.in.l4, out = the.out.l4;
    if (!the.rules.clamps_mss || (tcp_flags(the.before(), the.in) & 0x02) == 0 || the.in.l4_bytes() < 24 ||
        is_same(the, in + 20, out + 20)) {
        return false;
    }
    // The grammar makes it the first option.
    the.rule(long_at(the.after(), out + 20) == (0x0204'0000U | kMssMax) &&
                 word_at(the.before(), in + 20) == 0x0204 && word_at(the.before(), in + 22) > kMssMax &&
                 is_same(the, in + 24, out + 24),
             "of a SYN's options only an MSS is changed, and only to what the port takes");
    return true;
}

// Checks the transport header of a whole packet or a first fragment, and all bytes behind it.
void judge_message(const Case& the) {
    const size_t in = the.in.l4, out = the.out.l4;
    switch (the.in.protocol) {
        case kTcp:
            if (the.in.l4_bytes() >= 20) {
                judge_tcp_header(the);
                if (is_mss_lowered(the)) {
                    return;  // judge_forwarded() checks the checksum
                }
                the.rule(is_same(the, in + 20, out + 20), "a segment's options and payload stay");
                the.rule(translated_sum(the.before(), the.in, 16) == translated_sum(the.after(), the.out, 16),
                         "a segment's checksum is as right as it was");
            }
            return;
        case kUdp:
            if (the.in.l4_bytes() >= 8) {
                the.rule(word_at(the.before(), in + 4) == word_at(the.after(), out + 4) &&
                             is_same(the, in + 8, out + 8),
                         "a datagram's payload stays");
                const bool has_none = word_at(the.before(), in + 6) == 0;
                the.rule(has_none == (word_at(the.after(), out + 6) == 0) ||
                             (has_none && the.in.is_v4 && !the.out.is_v4),
                         "a checksum that was not sent is not made up, but for IPv6, nor lost");
                the.rule(has_none || translated_sum(the.before(), the.in, 6) ==
                                         translated_sum(the.after(), the.out, 6),
                         "a datagram's checksum is as right as it was");
            }
            return;
        case kSctp:
            the.rule(
                the.in.l4_bytes() < 12 || (is_same(the, in + 12, out + 12) &&
                                           std::equal(the.before().begin() + static_cast<ptrdiff_t>(in + 4),
                                                      the.before().begin() + static_cast<ptrdiff_t>(in + 8),
                                                      the.after().begin() + static_cast<ptrdiff_t>(out + 4))),
                "an SCTP packet's tag and chunks stay");
            return;
        default:
            return;
    }
}

// A quoted packet, which may be truncated behind its header, as a whole packet of the quoted length.
struct Inner {
    Frame frame;
    Sight sight;
};
std::optional<Inner> inner_of(const Frame& quote, bool is_v4) {
    const size_t header = is_v4 ? 20 : 40;
    if (quote.size() < kEtherBytes + header) {
        return std::nullopt;
    }
    Inner inner{quote, {}};
    if (is_v4) {
        set_word(inner.frame, kEtherBytes + 2, static_cast<uint16_t>(quote.size() - kEtherBytes));
    } else {
        set_word(inner.frame, kEtherBytes + 4, static_cast<uint16_t>(quote.size() - kEtherBytes - header));
    }
    inner.sight = look(inner.frame);
    return inner.sight.is_ip ? std::optional(std::move(inner)) : std::nullopt;
}

// A quoted transport checksum is as correct as before, as far as a truncated packet shows it.
bool has_same_inner_sum(const Inner& was, const Inner& is) {
    const size_t at = was.sight.protocol == kTcp ? 16 : was.sight.protocol == kUdp ? 6 : 0;
    if (at == 0 || was.sight.l4_bytes() < at + 2 ||
        (was.sight.protocol == kUdp && word_at(was.frame, was.sight.l4 + at) == 0)) {
        return true;
    }
    return translated_sum(was.frame, was.sight, at) == translated_sum(is.frame, is.sight, at);
}

void judge_error(const Case& the) {
    const Frame quoted_in = quoted_by(the.before(), the.in), quoted_out = quoted_by(the.after(), the.out);
    the.rule(quoted_in.size() == quoted_out.size() && !quoted_out.empty(), "a quote keeps its length");
    const std::optional<Inner> was = inner_of(quoted_in, the.in.is_v4),
                               is = inner_of(quoted_out, the.out.is_v4);
    the.rule(was && is, "an error that passes quotes a packet that can be read");
    the.rule(is->sight.source == the.out.destination, "an error goes to who sent the packet that it quotes");
    // The host may be an endpoint itself. What it sent to a client that is an endpoint too is quoted with an
    // endpoint's address.
    the.rule(!is_endpoint(is->sight.destination) || is_endpoint(the.out.destination) ||
                 is_own(the.out.destination),
             "a quote tells no client of an endpoint");
    // Other senders on the path keep their own source address.
    the.rule(the.out.source != was->sight.destination || was->sight.destination == is->sight.destination,
             "an endpoint's own error shows its client the Service's address");
    the.rule(is->sight.protocol == was->sight.protocol, "a quote keeps its protocol");
    const std::optional<packet::FlowKey> left = flow_of(was->frame, was->sight),
                                         came = flow_of(is->frame, is->sight);
    the.rule(left && came, "an error that passes quotes a packet that shows its ports");
    the.accept(the.flows.wrong_with_quote(*left, *came, the.outcome.worker));
    the.rule(has_same_inner_sum(*was, *is), "a quoted packet's checksum is as right as it was");
    if (the.in.is_v4) {
        // Sums over the original quotes, because the inner packets have a replaced length field.
        const auto sum = [](const Frame& quote, const Inner& inner) {
            return test::reference_checksum(
                std::span(quote).subspan(kEtherBytes, inner.sight.l4 - kEtherBytes));
        };
        the.rule((sum(quoted_in, *was) == 0) == (sum(quoted_out, *is) == 0),
                 "a quoted header's checksum is as right as it was");
    }
}

// Only the first fragment shows the flow of a datagram; the other fragments get the same addresses and
// protocol. An id may belong to another datagram later, but never to one before its first fragment has left.
// A receiver of IPv6 ignores the protocol of later fragments (RFC 8200, 4.5), so it is forwarded unchanged
// there. In IPv4 another protocol means another datagram.
void judge_fragment(const Case& the) {
    auto& left_with =
        the.first_fragments[{the.in.source, the.in.destination, the.in.datagram_id, the.arrived.from_host}];
    const uint8_t protocol = the.in.is_v4 || the.out.is_v4 ? the.out.protocol : uint8_t{0};
    const std::tuple leaves(the.out.source, the.out.destination, protocol, the.out.datagram_id);
    // A SNAT address may be the host's own. The host's datagrams then share it with clients' datagrams, and
    // get ids from the gateway as well.
    the.rule(the.out.source != the.in.source || is_own(the.out.source) ||
                 the.out.datagram_id == the.in.datagram_id,
             "with its sender's address it has its sender's id");
    if (the.in.is_later_fragment) {
        the.rule(left_with.contains(leaves),
                 "a later fragment leaves with the addresses, the protocol and the id of its datagram's "
                 "first one, behind it");
        return;
    }
    the.rule(
        the.in.protocol == kUdp ? the.in.l4_bytes() >= 8 : the.in.protocol == kTcp && the.in.l4_bytes() >= 20,
        "a first fragment that passes shows its transport header");
    left_with.insert(leaves);
}

void judge_flow(const Case& the) {
    const std::optional<packet::FlowKey> came = flow_of(the.before(), the.in),
                                         left = flow_of(the.after(), the.out);
    the.rule(came && left, "only packets of flows are passed on, and errors about them");
    the.accept(the.flows.wrong_with_passage(*came, *left, the.outcome.worker));
}

// Whether a port belongs to a Service with endpoints of one family only, or the packet shows no ports.
bool may_be_mixed(const Case& the) {
    const auto is_one = [&](size_t at) {
        const uint16_t port = word_at(the.before(), the.in.l4 + at);
        return std::ranges::find(kMixedPorts, port) != kMixedPorts.end() ||
               std::ranges::find(kMixedBackendPorts, port) != kMixedBackendPorts.end();
    };
    return !the.in.has_ports(the.before()) || is_one(0) || is_one(2);
}

// The equivalent of an error in the other family (RFC 7915, 4.2 and 5.2), as type << 8 | code; empty if there
// is none.
std::optional<uint16_t> error_in_other_family(bool is_v4, uint8_t type, uint8_t code) {
    const auto named = [](unsigned new_type, unsigned new_code) {
        return std::optional(static_cast<uint16_t>(new_type << 8 | new_code));
    };
    if (is_v4) {
        switch (type) {
            case 3: {
                constexpr uint8_t kProtocolUnreachable = 2, kPortUnreachable = 3, kTooBig = 4,
                                  kPrecedence = 14;
                const bool is_prohibited = code == 9 || code == 10 || code == 13 || code == 15;
                return code == kProtocolUnreachable       ? named(4, 1)
                       : code == kPortUnreachable         ? named(1, 4)
                       : code == kTooBig                  ? named(2, 0)
                       : code == kPrecedence || code > 15 ? std::nullopt
                       : is_prohibited                    ? named(1, 1)
                                                          : named(1, 0);
            }
            case 11:
                return named(3, code);
            case 12:
                return code == 0 || code == 2 ? named(4, 0) : std::nullopt;
            default:
                return std::nullopt;
        }
    }
    switch (type) {
        case 1:
            return code > 4 ? std::nullopt : named(3, code == 1 ? 10 : code == 4 ? 3 : 1);
        case 2:
            return named(3, 4);
        case 3:
            return named(11, code);
        case 4:
            return code == 0 ? named(12, 0) : code == 1 ? named(3, 2) : std::nullopt;
        default:
            return std::nullopt;
    }
}

// Number of bytes behind a packet's IP header, from its length field, whether they are quoted or not.
int declared_l4_bytes(const Frame& quote, const Sight& sight) {
    const int headers = static_cast<int>(sight.l4 - sight.l3);
    return sight.is_v4 ? word_at(quote, kEtherBytes + 2) - headers
                       : word_at(quote, kEtherBytes + 4) + 40 - headers;
}

// Checks an error about a mixed flow.
void judge_converted_error(const Case& the) {
    the.rule(is_icmp_error(the.after(), the.out), "an error becomes an error");
    the.rule(l4_sum(the.before(), the.in) == L4Sum::Right && l4_sum(the.after(), the.out) == L4Sum::Right,
             "an error that passes is right");
    the.rule(the.out.l3_bytes <= (the.out.is_v4 ? kIcmpErrorMax4 : kIcmpErrorMax6),
             "an ICMP error is not too long");
    const std::optional<uint16_t> name =
        error_in_other_family(the.in.is_v4, the.before()[the.in.l4], the.before()[the.in.l4 + 1]);
    the.rule(name == word_at(the.after(), the.out.l4), "an error says the same in the other family's words");
    if (*name == (the.out.is_v4 ? 0x0304 : 0x0200)) {
        const uint32_t was =
            the.in.is_v4 ? word_at(the.before(), the.in.l4 + 6) : long_at(the.before(), the.in.l4 + 4);
        const uint32_t is =
            the.out.is_v4 ? word_at(the.after(), the.out.l4 + 6) : long_at(the.after(), the.out.l4 + 4);
        the.rule(
            the.out.is_v4 ? is + 20 <= was : is >= kIcmpErrorMax6 && (was < kIcmpErrorMax6 || is <= was + 20),
            "a converted packet fits the MTU that is told");
    }
    const Frame quoted_in = quoted_by(the.before(), the.in), quoted_out = quoted_by(the.after(), the.out);
    const std::optional<Inner> was = inner_of(quoted_in, the.in.is_v4),
                               is = inner_of(quoted_out, the.out.is_v4);
    the.rule(was && is, "an error that passes quotes a packet of its family, before and after");
    the.rule(is->sight.source == the.out.destination, "an error goes to who sent the packet that it quotes");
    the.rule(!is_endpoint(is->sight.destination), "a quote tells nobody of an endpoint of the other family");
    the.rule(is->sight.protocol == was->sight.protocol, "a quote keeps its protocol");
    the.rule(is_vip(the.out.source) || is_own(the.out.source),
             "an error of the other family is the gateway's own to say");
    const std::optional<packet::FlowKey> left = flow_of(was->frame, was->sight),
                                         came = flow_of(is->frame, is->sight);
    the.rule(left && came, "an error that passes quotes a packet that shows its ports");
    the.accept(the.flows.wrong_with_quote(*left, *came, the.outcome.worker));
    the.rule(has_same_inner_sum(*was, *is), "a quoted packet's checksum is as right as it was");
    const int bytes = declared_l4_bytes(quoted_in, was->sight);
    the.rule(bytes < 0 || bytes > UINT16_MAX - 60 || declared_l4_bytes(quoted_out, is->sight) == bytes,
             "a quote says how long its packet was");
    the.rule(!the.out.is_v4 || is->sight.l4 - is->sight.l3 == 20,
             "a quote has no options of the other family");
    // The bytes behind the ports, up to a checksum.
    const size_t quoted = std::min(was->sight.l4_bytes(), is->sight.l4_bytes());
    const size_t compared = std::min<size_t>(quoted, was->sight.protocol == kTcp   ? 16
                                                     : was->sight.protocol == kUdp ? 6
                                                                                   : 8);
    the.rule(compared < 4 || std::equal(was->frame.begin() + static_cast<ptrdiff_t>(was->sight.l4 + 4),
                                        was->frame.begin() + static_cast<ptrdiff_t>(was->sight.l4 + compared),
                                        is->frame.begin() + static_cast<ptrdiff_t>(is->sight.l4 + 4)),
             "a quote shows what was sent");
}

uint8_t traffic_class(const Frame& frame, const Sight& sight) {
    return sight.is_v4 ? frame[sight.l3 + 1] : static_cast<uint8_t>(word_at(frame, sight.l3) >> 4);
}
bool has_df(const Frame& frame, const Sight& sight) {
    return (frame[sight.l3 + 6] & 0x40) != 0;
}

// Checks the new header's fields against those of the old one (RFC 7915, 4.1 and 5.1).
void judge_converted_header(const Case& the) {
    the.rule(the.in.is_fragment == the.out.is_fragment, "it stays what it is");
    const size_t header = the.out.l4 - the.out.l3;
    const bool is_cut = the.outcome.verdict == Verdict::Split;
    if (!the.out.is_v4) {
        the.rule(header == (the.in.is_fragment || is_cut ? 48U : 40U),
                 "as IPv6 a packet has a fragment header where it needs one, and nothing else");
        the.rule((long_at(the.after(), the.out.l3) & 0xfffff) == 0, "as IPv6 a packet has no flow label");
        const size_t plain = the.out.l3_bytes - (is_cut && !the.in.is_fragment ? 8 : 0);
        // Packets to the host itself are not fragmented, because they use no link.
        const bool is_to_be_cut = plain > std::min<size_t>(kIpv6MtuMin, the.rules.mtu()) &&
                                  !has_df(the.before(), the.in) && the.outcome.verdict != Verdict::Punt;
        the.rule(is_cut == is_to_be_cut, "IPv4 that may be cut becomes IPv6 that fits any link");
    } else {
        the.rule(header == 20, "as IPv4 a packet has no options");
        const bool is_cut_by_sender = the.in.has_fragment_header;
        the.rule(has_df(the.after(), the.out) == (!is_cut_by_sender && the.out.l3_bytes > kIpv6MtuMin - 20),
                 "as IPv4 a packet may be cut where no sender of IPv6 would make it shorter");
    }
    the.rule(traffic_class(the.before(), the.in) == traffic_class(the.after(), the.out),
             "a packet keeps its traffic class");
    the.rule(the.in.fragment_offset == the.out.fragment_offset && the.in.has_more == the.out.has_more,
             "a fragment stays where it is");
}

// Checks a packet of a flow between a client and an endpoint of different families.
void judge_converted(const Case& the) {
    const IpAddr &from = the.out.source, &to = the.out.destination;
    the.rule(from.is_v4() == to.is_v4() && from.is_v4() == the.out.is_v4, "it is of one family");
    the.rule(is_vip(from) || is_own(from), "the other family sees the Service or the gateway");
    if (is_icmp_error(the.before(), the.in)) {
        the.rule(the.out.l4 - the.out.l3 == (the.out.is_v4 ? 20U : 40U),
                 "an error has no options of the other family");
        return judge_converted_error(the);
    }
    // A later fragment of IPv6 may name any protocol, which receivers ignore (RFC 8200, 4.5).
    the.rule(the.out.protocol == the.in.protocol || (the.in.is_later_fragment && !the.in.is_v4),
             "it stays what it is");
    judge_converted_header(the);
    the.rule(the.in.l4_bytes() == the.out.l4_bytes(), "its payload keeps its length");
    the.rule(may_be_mixed(the), "only who asks for it is served by the other family");
    if (is_endpoint(to) && !is_vip(from)) {
        the.rule(is_own(from) && (is_vip(the.in.destination) || is_own(the.in.destination)),
                 "only a Service's clients get to its endpoints");
    } else {
        the.rule(is_endpoint(the.in.source), "only endpoints answer for a Service");
        the.rule(std::ranges::find(the.spoke, to) != the.spoke.end(),
                 "nobody gets packets who never sent one");
    }
    if (the.in.is_later_fragment) {
        return the.rule(is_same(the, the.in.l4, the.out.l4), "a later fragment is payload");
    }
    const L4Sum was = l4_sum(the.before(), the.in), is = l4_sum(the.after(), the.out);
    the.rule(was == is || the.in.is_fragment || (was == L4Sum::None && is == L4Sum::Right),
             "a checksum is as right as it was");
    judge_message(the);
    judge_flow(the);
}

void judge_forwarded(const Case& the) {
    the.rule(the.in.is_ip && the.in.vlan_tags == 0 && the.in.ip_sum_right,
             "only a well-formed packet is passed on");
    the.rule(!is_group_mac(the.before()), "a frame to a group is not passed on");
    the.rule(the.out.ttl + 1 == the.in.ttl, "a hop costs one of its time to live");
    the.rule(!is_nobodys(the.in.source) && !is_nobodys(the.out.destination),
             "nothing from nobody or to nobody is passed on");
    if (the.in.is_fragment) {
        judge_fragment(the);
    }
    if (the.in.is_v4 != the.out.is_v4) {
        return judge_converted(the);
    }
    the.rule(the.in.protocol == the.out.protocol && the.in.is_fragment == the.out.is_fragment,
             "it stays what it is");
    the.rule(the.in.l4 - the.in.l3 == the.out.l4 - the.out.l3 && the.in.l3_bytes == the.out.l3_bytes,
             "headers keep their lengths");

    const bool is_error = is_icmp_error(the.before(), the.in);
    const IpAddr &from = the.out.source, &to = the.out.destination;
    if (is_endpoint(from) && !is_error) {
        the.rule(
            (is_endpoint(to) || is_own(to)) && from == the.in.source,
            "an endpoint's address is shown to another endpoint that it is a client of, and to nobody else");
    }
    if (is_endpoint(to) && !(is_vip(from) || is_error)) {
        the.rule(is_vip(the.in.destination) || is_own(the.in.destination),
                 "only a Service's clients get to its endpoints");
        the.rule(is_own(from) || from == the.in.source, "an endpoint sees the gateway, or the client");
        if (the.in.has_ports(the.before()) && the.in.protocol == kTcp &&
            word_at(the.before(), the.in.l4 + 2) == kRangedPort && is_vip(the.in.destination)) {
            the.rule(is_in_ranges(the.in.source), "source ranges hold");
        }
    } else if (!is_endpoint(to) && !is_own(to)) {
        the.rule(std::ranges::find(the.spoke, to) != the.spoke.end(),
                 "nobody gets packets who never sent one");
        the.rule(is_vip(from) || is_own(from) || (is_error && from == the.in.source),
                 "a client sees the Service's address");
        the.rule(is_endpoint(the.in.source) || is_own(the.in.source) || is_error,
                 "only endpoints answer for a Service");
    }

    const L4Sum was = l4_sum(the.before(), the.in), is = l4_sum(the.after(), the.out);
    the.rule(was == is || the.in.is_fragment, "a checksum is as right as it was");
    if (is_error) {
        return judge_error(the);
    }
    if (the.in.is_later_fragment) {
        return the.rule(is_same(the, the.in.l4, the.out.l4), "a later fragment is payload");
    }
    judge_message(the);
    judge_flow(the);
}

// For a packet that leaves in fragments, `after` is the whole packet.
void judge_fragments(const Case& the) {
    const bool is_converted = !the.out.is_v4 && the.in.is_v4;
    the.rule(is_converted ? !has_df(the.before(), the.in) : the.out.is_v4 && !has_df(the.after(), the.out),
             "only an IPv4 packet without DF is cut");
    const size_t link = is_converted ? std::min<size_t>(the.rules.mtu(), kIpv6MtuMin) : the.rules.mtu();
    the.rule(the.outcome.fragments.size() > 1, "a packet that is cut has fragments");
    Frame together;
    for (const Frame& frame : the.outcome.fragments) {
        const Sight fragment = look(frame);
        the.rule(fragment.is_ip && fragment.is_v4 == the.out.is_v4 && fragment.ip_sum_right &&
                     fragment.is_fragment,
                 "what a packet is cut into are fragments");
        the.rule(fragment.l3_bytes <= link && frame.size() == kEtherBytes + fragment.l3_bytes,
                 "a fragment fits its link");
        the.rule(fragment.datagram_id == the.out.datagram_id || the.out.is_v4,
                 "a fragment has its datagram's id");
        the.rule(fragment.fragment_offset == the.out.fragment_offset + together.size(),
                 "a fragment lies where the last one ended");
        the.rule(fragment.has_more == (the.out.has_more || &frame != &the.outcome.fragments.back()),
                 "the last fragment is the end");
        the.rule(fragment.source == the.out.source && fragment.destination == the.out.destination &&
                     fragment.ttl == the.out.ttl,
                 "a fragment goes where its packet would have gone");
        together.insert(together.end(), frame.begin() + static_cast<ptrdiff_t>(fragment.l4), frame.end());
    }
    const auto payload = the.after().begin() + static_cast<ptrdiff_t>(the.out.l4);
    the.rule(std::equal(together.begin(), together.end(), payload,
                        payload + static_cast<ptrdiff_t>(the.out.l4_bytes())),
             "the fragments are the packet");
}

// Ethernet addresses are excluded, because a delivery to the host may change them.
bool is_untouched(const Case& the) {
    const size_t addresses = std::min<size_t>(12, the.before().size());
    return the.before().size() == the.after().size() &&
           std::equal(the.before().begin() + static_cast<ptrdiff_t>(addresses), the.before().end(),
                      the.after().begin() + static_cast<ptrdiff_t>(addresses));
}

constexpr uint16_t kArpType = 0x0806;
constexpr size_t kArpBytes = 28;

bool is_arp(const Frame& frame) {
    return frame.size() >= kEtherBytes + kArpBytes && word_at(frame, 12) == kArpType;
}

// What ARP (operation 1) or a solicitation asks for, or a reply (2) or advertisement has.
std::optional<IpAddr> asked_on_link(const Frame& frame, const Sight& sight) {
    if (is_arp(frame)) {
        const size_t at = kEtherBytes + (frame[21] == 2 ? 14 : 24);
        return IpAddr::v4(frame[at], frame[at + 1], frame[at + 2], frame[at + 3]);
    }
    const uint8_t type = icmp_type(frame, sight);
    if (!sight.is_ip || sight.is_v4 || sight.protocol != kIcmpv6 || (type != 135 && type != 136) ||
        sight.l4_bytes() < 24) {
        return std::nullopt;
    }
    std::array<uint8_t, 16> target;
    std::copy_n(frame.begin() + static_cast<ptrdiff_t>(sight.l4) + 8, target.size(), target.begin());
    return IpAddr::v6(target);
}

bool is_link_answer(const Case& the) {
    const bool is_reply = is_arp(the.after()) ? the.after()[21] == 2 : icmp_type(the.after(), the.out) == 136;
    return !the.arrived.from_host && is_reply && asked_on_link(the.after(), the.out).has_value();
}

void judge_link_answer(const Case& the) {
    const auto asked = asked_on_link(the.before(), the.in), told = asked_on_link(the.after(), the.out);
    the.rule(the.rules.has_link_vips && the.arrived.port == test::kUp && the.outcome.egress == test::kUp &&
                 the.outcome.verdict == Verdict::Transmit,
             "answers of the link are sent where they are configured, on the link of the query");
    the.rule(asked == told && std::ranges::find(kLinkVips, *told) != kLinkVips.end() &&
                 is_served(*told, the.rules.publication),
             "an answer is about the VIP that was asked for");
    const auto& own = test::kUpMac.bytes;
    the.rule(std::equal(own.begin(), own.end(), the.after().begin() + 6), "the VIP is at the port's address");
    if (is_arp(the.after())) {
        the.rule(is_arp(the.before()) && the.before()[20] == 0 && the.before()[21] == 1 &&
                     the.after().size() == kEtherBytes + kArpBytes,
                 "a reply answers a request");
        the.rule(std::equal(own.begin(), own.end(), the.after().begin() + 22) &&
                     std::equal(the.after().begin(), the.after().begin() + 6, the.before().begin() + 22) &&
                     std::equal(the.after().begin() + 32, the.after().end(), the.before().begin() + 22,
                                the.before().begin() + 32),
                 "a reply goes to who asked");
        return;
    }
    the.rule(icmp_type(the.before(), the.in) == 135 && the.in.ttl == 255 &&
                 the.before()[the.in.l4 + 1] == 0 && l4_sum(the.before(), the.in) == L4Sum::Right &&
                 !is_blocked(the),
             "an advertisement answers a valid solicitation");
    the.rule(the.out.ttl == 255 && l4_sum(the.after(), the.out) == L4Sum::Right && the.out.l4_bytes() == 32 &&
                 the.out.source == *told,
             "an advertisement is valid");
    const bool is_probe = the.in.source.is_unspecified();
    the.rule(the.after()[the.out.l4 + 4] == (is_probe ? 0x20 : 0x60), "its flags follow the solicitation");
    the.rule(the.out.destination == (is_probe ? *IpAddr::parse("ff02::1") : the.in.source),
             "it goes to who asked, or to all");
}

void judge_left(const Case& the) {
    if (the.arrived.from_host && the.before() == the.after()) {
        the.rule(the.outcome.egress == the.arrived.port,
                 "what is nobody's flow leaves by the port that Linux chose");
        return;
    }
    if (is_link_answer(the)) {
        return judge_link_answer(the);
    }
    the.rule(!is_blocked(the), "nothing comes of a blocked source's packet");
    the.rule(the.out.is_ip && the.out.vlan_tags == 0 && the.out.l3 == kEtherBytes,
             "what leaves is a whole IP packet in a plain frame");
    the.rule(the.out.ip_sum_right, "the IPv4 checksum of what leaves is right");
    the.rule(the.outcome.verdict == Verdict::Split || the.out.l3_bytes <= the.rules.mtu(),
             "what leaves fits its link");
    the.rule(the.out.ttl >= 1, "what leaves may still live");
    const size_t packet = kEtherBytes + the.out.l3_bytes;
    the.rule(the.after().size() == packet || the.after().size() <= std::max(the.before().size(), kFrameMin),
             "no stale bytes behind an answer");
    if (the.outcome.verdict != Verdict::Hold && !the.outcome.waits) {
        judge_ethernet(the);
    }
    if (the.outcome.verdict == Verdict::Split) {
        judge_fragments(the);
    }
    is_answer(the) ? judge_answer(the) : judge_forwarded(the);
}

void judge_punted(const Case& the) {
    the.rule(!is_blocked(the), "nothing comes of a blocked source's packet");
    the.rule(!the.arrived.from_host || !(the.before() == the.after()),
             "Linux does not get back what it sent");
    if (!is_untouched(the)) {
        the.rule(the.out.is_ip && the.out.ip_sum_right, "what is delivered to the host is a whole IP packet");
        return is_answer(the) ? judge_answer(the) : judge_forwarded(the);
    }
    if (!the.in.is_ip || is_group_mac(the.before()) ||
        !is_served(the.in.destination, the.rules.publication) || the.in.vlan_tags > 0) {
        return;
    }
    const uint8_t type = icmp_type(the.before(), the.in);
    const bool is_asked = the.in.is_v4 ? type == 8 : type == 128 || type == 135 || type == 136;
    the.rule(is_asked && the.rules.has_present_vips &&
                 std::ranges::find(kPresentVips, the.in.destination) != kPresentVips.end(),
             "Linux is not asked about an address that only Services have");
}

// Maximum number of IP bytes that may leave.
size_t bytes_to_leave(const Case& the) {
    return the.in.l3_bytes + (the.in.is_ip && the.in.is_v4 && may_be_mixed(the) ? kLongerAsIpv6 : 0);
}

// A packet without any defect, as far as an observer of the wire can determine.
bool is_faultless(const Case& the) {
    const MacAddr& own = the.arrived.port == test::kUp ? test::kUpMac : test::kClusterMac;
    const bool has_macs = std::equal(own.bytes.begin(), own.bytes.end(), the.before().begin()) &&
                          !std::equal(own.bytes.begin(), own.bytes.end(), the.before().begin() + 6);
    const bool stands_right =
        the.arrived.port == test::kCluster ? is_endpoint(the.in.source) : is_client(the.in.source);
    return has_macs && stands_right && the.in.vlan_tags == 0 && the.in.ip_sum_right && the.in.ttl > 1 &&
           !the.in.is_fragment && the.in.l4 - the.in.l3 == (the.in.is_v4 ? 20U : 40U) &&
           bytes_to_leave(the) <= the.rules.mtu() && the.in.l3 == kEtherBytes;
}

// Whether the packet arrived on the wire of one port with a source address of the other port's link.
bool is_of_other_link(const Case& the) {
    static const std::array<Prefix, 2> kUpLink{*Prefix::parse("10.80.1.0/24"),
                                               *Prefix::parse("fd00:80:1::/64")};
    static const std::array<Prefix, 2> kClusterLink{*Prefix::parse("10.80.2.0/24"),
                                                    *Prefix::parse("fd00:80:2::/64")};
    const auto& other = the.arrived.port == test::kUp ? kClusterLink : kUpLink;
    return !the.arrived.from_host && the.in.is_ip &&
           std::ranges::any_of(other, [&](const Prefix& link) { return link.contains(the.in.source); });
}

// Necessary conditions of the reasons, as far as an observer of the wire can check them.
bool may_be_dropped_for(const Case& the, DropReason reason) {
    const Sight& in = the.in;
    switch (reason) {
        case DropReason::BadIpChecksum:
            return !in.is_ip || !in.ip_sum_right;
        case DropReason::TtlExpired:
            return in.is_ip && in.ttl <= 1;
        case DropReason::SourceBlocked:
            return is_blocked(the);
        case DropReason::ReversePath:
            return is_of_other_link(the);
        case DropReason::SourceNotAllowed:
            return in.is_ip && !is_in_ranges(in.source);
        case DropReason::NoUdpChecksum:
            return in.is_ip && in.protocol == kUdp && (!in.is_v4 || (in.is_fragment && may_be_mixed(the)));
        case DropReason::PacketTooBig:
            return bytes_to_leave(the) > the.rules.mtu();
        case DropReason::BadL4Checksum:
            return l4_sum(the.before(), in) != L4Sum::Right;
        case DropReason::InvalidTcpFlags:
            return in.protocol == kTcp;
        case DropReason::SctpNoAssociation:
        case DropReason::SctpWrongTag:
            return in.protocol == kSctp;
        case DropReason::IcmpUnknownFlow:
        case DropReason::IcmpNotTranslated:
            return is_icmp_error(the.before(), in);
        case DropReason::VipPortClosed:
            return is_vip(in.destination);
        case DropReason::BadLinkMessage: {
            const auto asked = asked_on_link(the.before(), in);
            return the.rules.has_link_vips && the.arrived.port == test::kUp &&
                   std::ranges::find(kLinkVips, asked.value_or(in.destination)) != kLinkVips.end();
        }
        case DropReason::VipEcho:
        case DropReason::ResetLimited:
        case DropReason::FrameTooLong:
        case DropReason::NextHopUnresolved:
        case DropReason::PendingFull:
        case DropReason::HandoffRingFull:
        case DropReason::HandoffLoop:
        case DropReason::PuntRingFull:
        case DropReason::PuntControlFull:
        case DropReason::PuntFailed:
        case DropReason::HostFrameInvalid:
        case DropReason::FromHostRingFull:
        case DropReason::PortRemoved:
        case DropReason::TxQueueFull:
        case DropReason::NoBuffer:
            return false;  // cannot occur here
        case DropReason::Fragment:
        case DropReason::BadFragment:
        case DropReason::FragmentTooSmall:
        case DropReason::FragmentOverlap:
        case DropReason::FragmentExpired:
        case DropReason::FragmentsFull:
            return !in.is_ip || in.is_fragment;
        default:
            return true;
    }
}

void judge_dropped(const Case& the) {
    the.rule(static_cast<size_t>(the.outcome.reason) < kDropReasons, "a drop has a reason");
    the.rule(may_be_dropped_for(the, the.outcome.reason), "a drop has a reason that holds");
    if (the.arrived.from_host || !the.in.is_ip || the.in.protocol != kUdp ||
        l4_sum(the.before(), the.in) != L4Sum::Right || !is_faultless(the) || is_blocked(the)) {
        return;
    }
    const std::optional<packet::FlowKey> key = flow_of(the.before(), the.in);
    the.rule(!key || !the.flows.has(*key), "a sound datagram of a connection is not dropped");
}

}  // namespace

void Judge::judge(const Arrived& arrived, const Outcome& outcome, const Rules& rules) {
    // The gateway ignores priority tags. Tags on frames from Linux are left to Linux.
    if (!arrived.from_host && has_priorities(arrived.frame)) {
        return judge_untagged({without_priorities(arrived.frame), arrived.port, false}, outcome, rules);
    }
    judge_untagged(arrived, outcome, rules);
}

void Judge::judge_untagged(const Arrived& arrived, const Outcome& outcome, const Rules& rules) {
    const Case the{
        arrived, outcome, rules, spoke_, first_fragments_, flows_, look(arrived.frame), look(outcome.frame)};
    if (the.in.is_ip && !has_spoken(the.in.source)) {
        spoke_.push_back(the.in.source);
    }
    count(the);
    judge_openings(the);
    switch (outcome.verdict) {
        case Verdict::Drop:
            return judge_dropped(the);
        case Verdict::Transmit:
        case Verdict::Split:
        case Verdict::Hold:
            return judge_left(the);
        case Verdict::Punt:
            return judge_punted(the);
        case Verdict::Await:
            the.rule(the.in.is_later_fragment, "only fragments wait, and for a first one");
            return the.rule(!is_blocked(the), "nothing comes of a blocked source's packet");
        case Verdict::Handoff:
            return the.rule(false, "no packet goes in circles");
        case Verdict::None:
            return the.rule(false, "every packet has a verdict");
    }
}

void Judge::judge_openings(const Case& the) {
    uint64_t opened = 0;
    for (uint32_t w = 0; w < workers_; ++w) {
        opened +=
            gateway_.has_worked(w) ? gateway_.worker(w).count()[stats::Counter::NewConnections].read() : 0;
    }
    const uint64_t opened_now = opened - std::exchange(opened_, opened);
    if (opened_now == 0) {
        return;
    }
    the.rule(opened_now == 1 && flow_of(the.before(), the.in),
             "a packet opens one connection at most, and shows its ports");
    the.rule(!is_of_other_link(the), "nobody opens a connection with an address of another port's link");
    if (the.in.protocol != kTcp) {
        return;
    }
    constexpr uint8_t kFin = 0x01, kSyn = 0x02, kAck = 0x10;
    const uint8_t flags = tcp_flags(the.before(), the.in) & (kFin | kSyn | kRst | kAck);
    const bool is_picked_up =
        the.rules.picks_up_midstream && flags == kAck && !the.arrived.from_host &&
        may_be_picked_up(the.rules.publication, the.in.destination, word_at(the.before(), the.in.l4 + 2));
    the.rule(flags == kSyn || is_picked_up,
             "a connection of TCP begins with a SYN, or in the middle where that is asked for");
    const bool leaves = the.outcome.verdict == Verdict::Transmit || the.outcome.verdict == Verdict::Split ||
                        the.outcome.verdict == Verdict::Hold;
    the.rule(flags == kSyn || !leaves || is_answer(the) || the.out.source == the.in.source,
             "what is picked up keeps its source");
}

AnswerBudget& Judge::budget_of(const Case& the) {
    if (is_echo_reply(the.after(), the.out)) {
        return echoes_;
    }
    const uint8_t type = the.after()[the.out.l4], code = the.after()[the.out.l4 + 1];
    const bool is_too_big = the.out.is_v4 ? type == 3 && code == 4 : type == 2;
    const bool is_expiry = type == (the.out.is_v4 ? 11 : 3);
    if (!is_icmp_error(the.after(), the.out) || (!is_too_big && !is_expiry)) {
        return refusals_;
    }
    std::array<uint8_t, 16> network = the.out.destination.bytes();
    std::fill(network.begin() + (the.out.is_v4 ? 15 : 7), network.end(), uint8_t{0});
    return errors_.try_emplace({is_too_big, network}, kAnswersPerSecond, kAnswersBurst).first->second;
}

void Judge::count(const Case& the) {
    const bool leaves = the.outcome.verdict == Verdict::Transmit || the.outcome.verdict == Verdict::Hold ||
                        the.outcome.verdict == Verdict::Split || the.outcome.verdict == Verdict::Punt;
    if (!leaves || is_untouched(the)) {
        return;
    }
    if (is_answer(the)) {
        ++answered_;
        the.rule(budget_of(the).spend(the.outcome.worker), "no more answers than the limit allows");
    } else if (is_icmp_error(the.before(), the.in)) {
        ++errors_passed_;
    }
}

void Judge::audit() const {
    const auto books = [](bool agree, const char* what) {
        if (!agree) {
            std::fprintf(stderr, "pipeline fuzz: %s\n", what);
            std::abort();
        }
    };
    uint32_t waiting = 0;
    uint64_t answered = 0, errors_passed = 0;
    for (uint32_t w = 0; w < workers_; ++w) {
        if (!gateway_.has_worked(w)) {
            continue;
        }
        pipeline::WorkerContext& context = gateway_.worker(w);
        waiting += context.fragments.waiting();
        uint64_t of_services = 0, of_backends = 0;
        for (const stats::ServiceCounters& row : context.counters.services) {
            of_services += row.connections.read();
        }
        for (const stats::BackendCounters& row : context.counters.backends) {
            of_backends += row.connections.read();
            books(row.open.read() <= row.connections.read(), "a backend has more open flows than flows");
        }
        const uint32_t size = context.connections.size();
        books(of_services == size && of_backends == size,
              "connections, and what Services and backends count of them, differ");
        books(context.count()[stats::Counter::Connections].read() == size,
              "the level of connections is not how many there are");
        books(context.connections.units_used() <= context.connections.capacity(),
              "the connection table exceeds its bound");
        books(context.fragments.waiting() <= limits::kFragmentsWaitingMax, "more fragments wait than may");
        using stats::Counter;
        answered += context.count()[Counter::Rejected].read() +
                    context.count()[Counter::IcmpErrorsSent].read() +
                    context.count()[Counter::EchoReplies].read();
        errors_passed += context.count()[Counter::IcmpErrorsTranslated].read();
        const uint64_t opened = context.count()[stats::Counter::NewConnections].read(),
                       closed = context.count()[stats::Counter::ClosedConnections].read();
        books(opened - closed == size,
              "connections opened less connections closed are not those that are there");
    }
    books(answered == answered_, "answers that were given are not those that were counted");
    books(errors_passed == errors_passed_, "ICMP errors that were passed on are not those that were counted");
    books(waiting == gateway_.fragments_waiting(),
          "a fragment has a slot and is not there, or is there and has none");
}

}  // namespace penstock::fuzz
