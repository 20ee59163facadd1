// SPDX-License-Identifier: Apache-2.0
// Any frame through the packet room: the parser's guarantees, then translation and rejection of each Flow,
// and conversion to the other family. Checksums are verified with the tests' own arithmetic, a second
// implementation. An input is a frame as received from the wire.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "dataplane/base/check.hpp"
#include "dataplane/packet/answers/echo.hpp"
#include "dataplane/packet/answers/link_answer.hpp"
#include "dataplane/packet/answers/reject.hpp"
#include "dataplane/packet/common_packet.hpp"
#include "dataplane/packet/fragment.hpp"
#include "dataplane/packet/link_message.hpp"
#include "dataplane/packet/other_family.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/parse_any.hpp"
#include "dataplane/packet/quoted.hpp"
#include "dataplane/packet/rewrite.hpp"
#include "dataplane/packet/vlan.hpp"
#include "dataplane/packet/wire.hpp"
#include "tests/support/other_family.hpp"
#include "tests/support/packet_builder.hpp"

namespace penstock::packet {
namespace {

using test::reference_checksum;
using Frame = std::vector<uint8_t>;

// Tailrooms with which an ICMP answer does not fit, just fits, is truncated, and has its full size.
constexpr size_t kTailrooms[] = {0, 27, 28, 100, 600};

Be16 field_at(ByteView frame, size_t offset) {
    return load<Be16>(frame.data() + offset);
}

// IPv6 has no header checksum.
bool has_right_ip_checksum(ByteView frame, const Parsed& parsed) {
    return parsed.family == IpFamily::V6 ||
           reference_checksum(frame.subspan(parsed.l3_offset, size_t{parsed.l4_offset} - parsed.l3_offset)) ==
               0;
}
// The correct checksum of the SCTP packet, and the one in the packet.
uint32_t right_crc(ByteView frame, const Parsed& parsed) {
    Frame sctp(frame.begin() + parsed.l4_offset, frame.begin() + parsed.l3_offset + parsed.l3_length);
    store(sctp.data() + offsetof(SctpHeader, checksum), uint32_t{0});
    return test::reference_crc32c(sctp);
}
uint32_t crc_in(ByteView frame, const Parsed& parsed) {
    return load<uint32_t>(frame.data() + parsed.l4_offset + offsetof(SctpHeader, checksum));
}
bool is_without_l4_checksum(ByteView frame, const Parsed& parsed) {
    if (parsed.key.protocol == Protocol::Sctp) {
        return crc_in(frame, parsed) == 0 && right_crc(frame, parsed) != 0;
    }
    return parsed.key.protocol == Protocol::Udp &&
           field_at(frame, parsed.l4_offset + offsetof(UdpHeader, checksum)).raw() == 0;
}
bool has_right_l4_checksum(ByteView frame, const Parsed& parsed) {
    if (parsed.key.protocol == Protocol::Sctp) {
        return crc_in(frame, parsed) == right_crc(frame, parsed);
    }
    const bool udp = parsed.key.protocol == Protocol::Udp;
    const uint16_t sent = field_at(frame, parsed.l4_offset + (udp ? offsetof(UdpHeader, checksum)
                                                                  : offsetof(TcpHeader, checksum)))
                              .host();
    // Zero has two representations; they differ in meaning for UDP only.
    return sent % 0xffff == test::reference_l4_checksum(frame) % 0xffff;
}

void check_offsets(ByteView frame, const Parsed& parsed) {
    if (parsed.kind == PacketKind::Other) {
        return;
    }
    PENSTOCK_CHECK(parsed.l3_offset +
                       (parsed.family == IpFamily::V4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header)) <=
                   parsed.l4_offset);
    PENSTOCK_CHECK(parsed.key.source.family() == parsed.family &&
                   parsed.key.destination.family() == parsed.family);
    PENSTOCK_CHECK(parsed.l4_offset <= parsed.payload_offset);
    PENSTOCK_CHECK(parsed.payload_offset <= parsed.l3_offset + parsed.l3_length);
    PENSTOCK_CHECK(size_t{parsed.l3_offset} + parsed.l3_length <= frame.size());
    if (parsed.kind == PacketKind::Flow) {
        PENSTOCK_CHECK(parsed.key.source_port != 0 && parsed.key.destination_port != 0);
        PENSTOCK_CHECK(parsed.key.source != parsed.key.destination);
    }
}

void translate(const Frame& before, const Parsed& parsed) {
    const bool is_v4 = parsed.family == IpFamily::V4;
    const Rewrite rewrite{
        is_v4 ? IpAddr::v4(10, 1, 0, 1) : IpAddr::v6({0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
        is_v4 ? IpAddr::v4(10, 255, 255, 255) : IpAddr::v6({0x20, 1, 0xff, 0xff, 0xff, 0xff}), 1024, 65535};
    Frame frame = before;
    apply(frame, parsed, rewrite);

    const bool ip_was_right = has_right_ip_checksum(before, parsed);
    Parsed after;
    PENSTOCK_CHECK(parse(frame, after, IpChecksum::KnownGood).has_value());
    PENSTOCK_CHECK(after.key ==
                   (FlowKey{rewrite.source, rewrite.destination, 1024, 65535, parsed.key.protocol, {}}));
    PENSTOCK_CHECK(after.ttl == parsed.ttl - 1 && after.payload_offset == parsed.payload_offset);
    PENSTOCK_CHECK(has_right_ip_checksum(frame, after) == ip_was_right);
    PENSTOCK_CHECK(is_without_l4_checksum(frame, after) == is_without_l4_checksum(before, parsed));
    if (!is_without_l4_checksum(before, parsed)) {
        PENSTOCK_CHECK(has_right_l4_checksum(frame, after) == has_right_l4_checksum(before, parsed));
    }
    PENSTOCK_CHECK(std::equal(frame.begin() + after.payload_offset, frame.end(),
                              before.begin() + after.payload_offset, before.end()));
}

void check_answer(Frame frame, const Parsed& asked, SctpRefusal sctp) {
    Parsed answer;
    PENSTOCK_CHECK(parse(frame, answer).has_value());
    PENSTOCK_CHECK(answer.key.source == asked.key.destination && answer.key.destination == asked.key.source);
    PENSTOCK_CHECK(frame.size() == size_t{answer.l3_offset} + answer.l3_length &&
                   answer.l3_length <= icmp_error_bytes_max(asked.family));
    if (asked.key.protocol == Protocol::Tcp) {
        PENSTOCK_CHECK(answer.key == asked.key.reversed() && answer.tcp_flags.has(TcpFlags::kRst));
        PENSTOCK_CHECK(has_right_l4_checksum(frame, answer));
    } else if (asked.key.protocol == Protocol::Sctp && sctp == SctpRefusal::Abort) {
        PENSTOCK_CHECK(answer.key == asked.key.reversed() && answer.sctp_event == SctpEvent::Abort);
        PENSTOCK_CHECK(has_right_l4_checksum(frame, answer));
    } else if (asked.family == IpFamily::V4) {
        PENSTOCK_CHECK(answer.kind == PacketKind::Ip && answer.ip_protocol == kProtoIcmp);
        PENSTOCK_CHECK(reference_checksum(ByteView(frame).subspan(answer.l4_offset)) == 0);
    } else {
        PENSTOCK_CHECK(answer.kind == PacketKind::Ip && answer.ip_protocol == kProtoIcmpv6);
        const uint16_t sent = field_at(frame, answer.l4_offset + offsetof(IcmpHeader, checksum)).host();
        PENSTOCK_CHECK(sent == test::reference_l4_checksum(frame));
    }
    const size_t bytes = frame.size();
    // Two gateways must not answer each other's answers.
    PENSTOCK_CHECK(make_reject(frame, bytes, answer, sctp) == std::unexpected(DropReason::RejectNotAllowed));
}

void refuse(const Frame& before, const Parsed& parsed) {
    for (const size_t tailroom : kTailrooms) {
        const SctpRefusal sctp = tailroom % 2 == 0 ? SctpRefusal::Icmp : SctpRefusal::Abort;
        Frame buffer = before;
        buffer.resize(before.size() + tailroom, 0xee);
        const Frame untouched = buffer;
        const AnswerResult result = make_reject(buffer, before.size(), parsed, sctp);
        if (!result) {
            PENSTOCK_CHECK(buffer == untouched);
            continue;
        }
        PENSTOCK_CHECK(parsed.kind == PacketKind::Flow && *result <= buffer.size());
        const bool is_udp_without =
            parsed.key.protocol == Protocol::Udp && is_without_l4_checksum(before, parsed);
        PENSTOCK_CHECK(is_udp_without || has_right_l4_checksum(before, parsed));
        buffer.resize(*result);
        check_answer(buffer, parsed, sctp);
    }
}

// Mutation alone hardly ever produces a correct checksum, which answers require. So the same Flow is also
// tried with both checksums corrected.
Frame with_right_checksums(Frame frame, const Parsed& parsed) {
    if (parsed.family == IpFamily::V4) {
        const size_t ip_field = parsed.l3_offset + offsetof(Ipv4Header, checksum);
        store(frame.data() + ip_field, Be16());
        const ByteView header =
            ByteView(frame).subspan(parsed.l3_offset, size_t{parsed.l4_offset} - parsed.l3_offset);
        store(frame.data() + ip_field, Be16::from_host(reference_checksum(header)));
    }
    if (parsed.key.protocol == Protocol::Sctp) {
        store(frame.data() + parsed.l4_offset + offsetof(SctpHeader, checksum), right_crc(frame, parsed));
        return frame;
    }
    const size_t in_l4 =
        parsed.key.protocol == Protocol::Udp ? offsetof(UdpHeader, checksum) : offsetof(TcpHeader, checksum);
    store(frame.data() + parsed.l4_offset + in_l4, Be16::from_host(test::reference_l4_checksum(frame)));
    return frame;
}

// The checksum of a translated error is correct if, and only if, it was correct before.
void retell(Frame frame, const Parsed& parsed, const Quote& quote) {
    const bool was_valid = has_valid_icmp_checksum(frame, parsed);
    if (parsed.family == IpFamily::V4) {
        translate_error(
            frame.data(), parsed, quote,
            ErrorRewrite<Be32>{.source = Be32::from_host(0x0a500201),
                               .destination = Be32::from_host(0xc0000207),
                               .quoted = {Be32::from_host(0xc0000207), Be32::from_host(0x500b0c0a),
                                          Be16::from_host(40'000), Be16::from_host(80)},
                               .quoted_deltas = {}});
    } else {
        ErrorRewrite<std::array<uint8_t, 16>> rewrite{.quoted = {.source_port = Be16::from_host(40'000)}};
        rewrite.source.fill(0x21);
        rewrite.destination.fill(0x22);
        rewrite.quoted.source.fill(0x23);
        rewrite.quoted.destination.fill(0x24);
        translate_error(frame.data(), parsed, quote, rewrite);
    }
    Parsed after;
    if (parse(frame, after, IpChecksum::KnownGood)) {
        PENSTOCK_CHECK(after.l3_length == parsed.l3_length && after.ttl == parsed.ttl - 1);
        PENSTOCK_CHECK(has_valid_icmp_checksum(frame, after) == was_valid);
    }
}

// Addresses of the other family than `family`, and nonzero ports.
Rewrite in_other_family(IpFamily family) {
    return family == IpFamily::V4
               ? Rewrite{IpAddr::v6({0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
                         IpAddr::v6({0x20, 1, 0xff, 0xff, 0xff}), 1024, 65535}
               : Rewrite{IpAddr::v4(10, 1, 0, 1), IpAddr::v4(10, 255, 255, 255), 1024, 65535};
}

void convert(const Frame& before, const Parsed& parsed, uint16_t headroom, bool needs_cut) {
    const Rewrite rewrite = in_other_family(parsed.family);
    test::MovableBuffer buffer(before, headroom);
    if (const Converted result =
            to_other_family(buffer.frame, parsed, test::family_rewrite(parsed.key, rewrite), 7, needs_cut);
        !result) {
        const bool is_v4 = parsed.family == IpFamily::V4;
        PENSTOCK_CHECK(buffer.is_untouched());
        PENSTOCK_CHECK(result.error() == DropReason::BadExtensionHeader ? !is_v4 && parsed.is_fragment
                       : result.error() == DropReason::NoUdpChecksum    ? is_v4 && parsed.is_fragment
                       : result.error() == DropReason::NoBuffer
                           ? is_v4 && headroom < kFamilyHeaderDifference + 8
                           : result.error() == DropReason::PacketTooBig && is_v4);
        return;
    }
    PENSTOCK_CHECK(buffer.is_sound());
    const Frame frame = buffer.content();
    const Parsed after = test::parsed_of(frame);  // including the IP checksum
    const bool has_new_header = needs_cut && !parsed.is_fragment;
    PENSTOCK_CHECK(after.kind == parsed.kind && after.is_fragment == parsed.is_fragment &&
                   after.ttl == parsed.ttl - 1);
    PENSTOCK_CHECK(after.key.source == rewrite.source && after.key.destination == rewrite.destination);
    PENSTOCK_CHECK(after.l3_length ==
                   bytes_in_other_family(parsed) + (has_new_header ? sizeof(Ipv6ExtensionHeader) : 0));
    PENSTOCK_CHECK(frame.size() == size_t{after.l3_offset} + after.l3_length);
    PENSTOCK_CHECK(std::equal(frame.begin() + after.payload_offset, frame.end(),
                              before.begin() + parsed.payload_offset,
                              before.begin() + parsed.l3_offset + parsed.l3_length));
    if (parsed.kind != PacketKind::Flow) {
        return;
    }
    PENSTOCK_CHECK(after.key.source_port == rewrite.source_port &&
                   after.key.destination_port == rewrite.destination_port);
    if (!parsed.is_fragment) {
        const bool had_none = is_without_l4_checksum(before, parsed);
        const bool has_none = had_none && parsed.key.protocol == Protocol::Sctp;
        PENSTOCK_CHECK(is_without_l4_checksum(frame, after) == has_none);
        PENSTOCK_CHECK(has_none || has_right_l4_checksum(frame, after) ==
                                       (had_none || has_right_l4_checksum(before, parsed)));
    }
}

// Converts the packets and fragments that may be translated: a first fragment with its ports, and only
// fragments with a valid position in a datagram.
void convert(const Frame& frame, Parsed parsed) {
    if (parsed.kind == PacketKind::Fragment) {
        const auto place = fragment_range(frame, parsed);
        if (!place ||
            (place->is_first() && (!read_first_fragment(frame, parsed) || parsed.kind != PacketKind::Flow))) {
            return;
        }
    }
    for (const uint16_t headroom : {uint16_t{0}, uint16_t{27}, uint16_t{28}}) {
        convert(frame, parsed, headroom, false);
        if (may_be_cut(frame, parsed)) {
            convert(frame, parsed, headroom, true);
        }
    }
}

// For any quote and any truncation, the result is an error about the same flow, with a correct checksum.
void convert_error(const Frame& before, const Parsed& parsed, const Quote& quote) {
    const Rewrite back = in_other_family(parsed.family);
    const ErrorFamilyRewrite rewrite{.source = back.destination,
                                     .destination = back.source,
                                     .quoted_source = back.source,
                                     .quoted_destination = back.destination,
                                     .quoted_source_port = Be16::from_host(back.source_port),
                                     .quoted_destination_port = Be16::from_host(back.destination_port),
                                     .quoted_l4 = translation_deltas(quote.key, back).l4};
    for (const uint16_t headroom : {uint16_t{0}, uint16_t{48}}) {
        test::MovableBuffer buffer(before, headroom);
        if (const Converted result = error_to_other_family(buffer.frame, parsed, quote, rewrite, 7);
            !result) {
            PENSTOCK_CHECK(buffer.is_untouched());
            PENSTOCK_CHECK(result.error() == DropReason::IcmpNotTranslated ||
                           (result.error() == DropReason::NoBuffer && headroom == 0));
            continue;
        }
        PENSTOCK_CHECK(buffer.is_sound());
        const Frame frame = buffer.content();
        const Parsed after = test::parsed_of(frame);
        PENSTOCK_CHECK(icmp_role(frame, after) == IcmpRole::Error && has_valid_icmp_checksum(frame, after));
        PENSTOCK_CHECK(after.ttl == parsed.ttl - 1 && after.l3_length <= icmp_error_bytes_max(after.family));
        PENSTOCK_CHECK(frame.size() == size_t{after.l3_offset} + after.l3_length);
        const auto quoted = quoted_packet(frame, after);
        const FlowKey expected{back.source,           back.destination,   back.source_port,
                               back.destination_port, quote.key.protocol, {}};
        PENSTOCK_CHECK(quoted && quoted->key == expected);
        PENSTOCK_CHECK(quoted->end - quoted->l4_offset <= quote.end - quote.l4_offset);
    }
}

void answer_echo(Frame frame, const Parsed& parsed) {
    const bool was_valid = has_valid_icmp_checksum(frame, parsed);
    const uint16_t length = make_echo_reply(frame, parsed);
    PENSTOCK_CHECK(length <= frame.size());
    frame.resize(length);
    Parsed after;
    const ParseResult result = parse(frame, after);
    if (!result) {
        // A multicast source address, for example, which the caller has excluded.
        PENSTOCK_CHECK(result.error() == DropReason::MartianSource);
        return;
    }
    PENSTOCK_CHECK(after.key.source == parsed.key.destination && after.key.destination == parsed.key.source);
    PENSTOCK_CHECK(icmp_role(frame, after) == IcmpRole::Other &&
                   has_valid_icmp_checksum(frame, after) == was_valid);
}

// An answer is read as the claim of the address that was asked for, if a host can have that address.
void answer_on_link(const LinkMessage& message, size_t room) {
    const MacAddr mac{{2, 0, 0, 0, 0, 9}};
    Frame answer(room, 0xee);
    const AnswerResult result = make_link_answer(answer, message, mac);
    const uint16_t bytes = message.target.is_v4() ? kArpFrameBytes : kAdvertisementFrameBytes;
    if (room < bytes) {
        PENSTOCK_CHECK(result == std::unexpected(DropReason::NoBuffer));
        return;
    }
    PENSTOCK_CHECK(result == bytes);
    answer.resize(bytes);
    Parsed parsed;
    if (const ParseResult parsed_as = parse(answer, parsed); !parsed_as) {
        PENSTOCK_CHECK(parsed_as.error() == DropReason::MartianSource && !message.target.is_v4());
        return;
    }
    const LinkMessage claim = read_link_message(answer, parsed);
    const bool is_hosts =
        !message.target.is_multicast() && !message.target.is_reserved_v4() && !message.target.is_loopback();
    PENSTOCK_CHECK(claim.kind == (is_hosts ? LinkMessage::Kind::Claim : LinkMessage::Kind::Invalid));
    PENSTOCK_CHECK(claim.target == message.target && (!is_hosts || claim.sender_mac == mac));
}

// In a buffer of exactly the message, so that a sanitizer detects a read beyond it.
void read_link(const Frame& frame, const Parsed& parsed) {
    const size_t bytes =
        parsed.kind == PacketKind::Other ? frame.size() : size_t{parsed.l3_offset} + parsed.l3_length;
    const Frame exact(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes));
    const LinkMessage message = read_link_message(exact, parsed);
    PENSTOCK_CHECK(message == read_link_message(frame, parsed));
    using Kind = LinkMessage::Kind;
    if (message.kind == Kind::None) {
        return;
    }
    const bool is_arp = parsed.kind == PacketKind::Other;
    PENSTOCK_CHECK(message.target.is_v4() == is_arp);
    if (message.kind == Kind::Query || message.kind == Kind::Probe) {
        PENSTOCK_CHECK((message.kind == Kind::Probe) == message.sender.is_unspecified());
        PENSTOCK_CHECK(!message.sender_mac.is_multicast() && !message.sender_mac.is_zero());
        PENSTOCK_CHECK(is_arp || (parsed.ttl == 255 && has_valid_icmp_checksum(frame, parsed) &&
                                  exact.size() >= size_t{parsed.l4_offset} + sizeof(NeighbourMessage)));
        answer_on_link(message, frame.size());
        answer_on_link(message, 2048);
    }
}

// In a buffer of exactly the IP packet, so that a sanitizer detects a read beyond it.
void find_owner(const Frame& frame, const Parsed& parsed) {
    if (parsed.kind == PacketKind::Other) {
        return;
    }
    const Frame exact(frame.begin(), frame.begin() + parsed.l3_offset + parsed.l3_length);
    if (parsed.kind == PacketKind::Fragment) {
        PENSTOCK_CHECK(datagram_id(exact, parsed) == datagram_id(frame, parsed));
    } else if (parsed.kind == PacketKind::Ip) {
        const IcmpRole role = icmp_role(exact, parsed);
        PENSTOCK_CHECK(role == icmp_role(frame, parsed));
        if (role == IcmpRole::Error) {
            const auto quote = quoted_packet(exact, parsed);
            PENSTOCK_CHECK(quote == quoted_packet(frame, parsed));
            PENSTOCK_CHECK(!quote || (quote->key.source.family() == parsed.family &&
                                      quote->key.destination.family() == parsed.family));
            if (quote && parsed.ttl > 1) {
                retell(exact, parsed, *quote);
                convert_error(exact, parsed, *quote);
            }
        } else if (role == IcmpRole::EchoRequest) {
            answer_echo(exact, parsed);
        }
    }
}

void use(const Frame& frame, const Parsed& parsed) {
    find_owner(frame, parsed);
    read_link(frame, parsed);
    refuse(frame, parsed);
    if (parsed.kind != PacketKind::Other && parsed.ttl > 1) {
        if (parsed.kind == PacketKind::Flow || parsed.kind == PacketKind::Fragment) {
            convert(frame, parsed);
        }
        if (parsed.kind == PacketKind::Flow) {
            translate(frame, parsed);
        }
    }
}

// The parser's fast path gives the same result as all rules, whether or not the frame is a common packet. So
// does a later reading of a common packet without validation.
void check_agreement(ByteView bytes) {
    for (const IpChecksum trust : {IpChecksum::Verify, IpChecksum::KnownGood}) {
        Parsed straight, by_rules;
        const ParseResult result = parse(bytes, straight, trust);
        PENSTOCK_CHECK(result == parse_any(bytes, by_rules, trust));
        PENSTOCK_CHECK(!result || straight == by_rules);
        if (result && is_common(straight)) {
            Parsed again;
            std::memset(static_cast<void*>(&again), 0xee, sizeof again);
            read_common(bytes.data(), again);
            PENSTOCK_CHECK(again == straight);
        }
    }
}

// The remaining frame has no leading priority tag, and no byte behind the tags is lost.
void take_tags_off(ByteView bytes) {
    Frame frame(bytes.begin(), bytes.end());
    const auto length = without_priority_tags(frame);
    if (!length) {
        PENSTOCK_CHECK(length.error() == DropReason::FrameTooShort ||
                       length.error() == DropReason::TooManyTags);
        return;
    }
    PENSTOCK_CHECK(*length <= bytes.size() && bytes.size() - *length <= size_t{4} * kVlanTagsMax);
    frame.resize(*length);
    PENSTOCK_CHECK(without_priority_tags(frame) == length);
    if (*length >= sizeof(EthernetHeader)) {
        PENSTOCK_CHECK(std::ranges::equal(ByteView(frame).first(12), bytes.first(12)));
        PENSTOCK_CHECK(std::ranges::equal(ByteView(frame).subspan(12), bytes.last(frame.size() - 12)));
    }
    const BehindTags behind = look_behind_tags(frame);
    PENSTOCK_CHECK(!behind.are_too_many || !behind.source);
}

void try_frame(ByteView bytes) {
    if (bytes.size() > 0xffff) {
        return;  // exceeds the maximum frame length
    }
    take_tags_off(bytes);
    Parsed parsed, trusting;
    const ParseResult result = parse(bytes, parsed);
    const ParseResult trusted = parse(bytes, trusting, IpChecksum::KnownGood);
    check_agreement(bytes);
    if (result) {
        PENSTOCK_CHECK(trusted.has_value() && trusting.kind == parsed.kind && trusting.key == parsed.key);
    }
    if (!trusted) {
        return;
    }
    // From here on the IP checksum is not verified, so that frames with a wrong one are tried as well.
    check_offsets(bytes, trusting);
    const Frame frame(bytes.begin(), bytes.end());
    use(frame, trusting);
    if (trusting.kind == PacketKind::Flow) {
        use(with_right_checksums(frame, trusting), trusting);
    }
    const bool is_icmpv6 = trusting.kind == PacketKind::Ip && trusting.ip_protocol == kProtoIcmpv6;
    if (is_icmpv6 && trusting.l4_offset == sizeof(EthernetHeader) + sizeof(Ipv6Header) &&
        size_t{trusting.l4_offset} + sizeof(Be32) <= size_t{trusting.l3_offset} + trusting.l3_length) {
        Frame right = frame;
        store(right.data() + trusting.l4_offset + offsetof(IcmpHeader, checksum),
              Be16::from_host(test::reference_l4_checksum(frame)));
        read_link(right, trusting);
    }
}

}  // namespace
}  // namespace penstock::packet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    penstock::packet::try_frame(penstock::ByteView(data, size));
    return 0;
}
