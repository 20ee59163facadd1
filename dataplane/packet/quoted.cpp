// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet/quoted.hpp"

#include <optional>
#include <type_traits>

#include "dataplane/base/check.hpp"
#include "dataplane/base/protocol.hpp"
#include "dataplane/packet/parse.hpp"
#include "dataplane/packet/sctp.hpp"
#include "dataplane/packet/wire.hpp"

namespace penstock::packet {
namespace {

constexpr size_t kPortsBytes = 4;

// Offset of the MTU from the first byte of a too-big: 16 bits behind 16 unused bits (RFC 1191, 4), or 32 bits
// (RFC 4443, 3.2).
constexpr size_t kMtuAt = 6, kMtuAt6 = 4;

ByteView ip_packet(ByteView frame, const Parsed& parsed) noexcept {
    const size_t end = size_t{parsed.l3_offset} + parsed.l3_length;
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Ip && end <= frame.size() && parsed.l4_offset <= end);
    return frame.first(end);
}

IcmpRole role_of(uint8_t type) noexcept {
    switch (type) {
        case 3:   // destination unreachable, including packet too big
        case 11:  // time exceeded
        case 12:  // parameter problem
            return IcmpRole::Error;
        case kIcmpEchoRequest:
            return IcmpRole::EchoRequest;
        default:
            return IcmpRole::Other;
    }
}
// Destination unreachable, packet too big, time exceeded, parameter problem: 1 to 4.
IcmpRole role_of_v6(uint8_t type) noexcept {
    if (type >= 1 && type <= 4) {
        return IcmpRole::Error;
    }
    return type == kIcmpv6EchoRequest ? IcmpRole::EchoRequest : IcmpRole::Other;
}

using QuoteResult = std::expected<Quote, DropReason>;

// The header at `at`, or empty if `bytes` does not cover it. The caller has examined the bytes in front of
// `at`.
template <typename Header>
std::optional<Header> header_in(ByteView bytes, size_t at) noexcept {
    if (bytes.size() < at || bytes.size() - at < sizeof(Header)) {
        return std::nullopt;
    }
    return load<Header>(bytes.data() + at);
}

// The ports at `l4_at` of the packet that begins at `ip_at` in an IP packet of `bytes`.
QuoteResult with_ports(ByteView bytes, size_t ip_at, size_t l4_at, FlowKey key, uint8_t protocol) noexcept {
    const bool has_ports = protocol == static_cast<uint8_t>(Protocol::Tcp) ||
                           protocol == static_cast<uint8_t>(Protocol::Udp) ||
                           protocol == static_cast<uint8_t>(Protocol::Sctp);
    if (!has_ports) {
        return drop(DropReason::IcmpUnknownFlow);
    }
    if (bytes.size() < l4_at || bytes.size() - l4_at < kPortsBytes) {
        return drop(DropReason::BadIcmp);
    }
    key.protocol = static_cast<Protocol>(protocol);
    key.source_port = load<Be16>(bytes.data() + l4_at).host();
    key.destination_port = load<Be16>(bytes.data() + l4_at + 2).host();
    return Quote{key, static_cast<uint16_t>(ip_at), static_cast<uint16_t>(l4_at),
                 static_cast<uint16_t>(bytes.size())};
}

QuoteResult quoted_in_ipv4(ByteView bytes, size_t at) noexcept {
    const auto ip = header_in<Ipv4Header>(bytes, at);
    if (!ip || ip->version() != 4 || ip->header_bytes() < sizeof(Ipv4Header)) {
        return drop(DropReason::BadIcmp);
    }
    if ((ip->flags_and_offset.host() & Ipv4Header::kOffsetMask) != 0) {
        return drop(DropReason::BadIcmp);
    }
    return with_ports(bytes, at, at + ip->header_bytes(),
                      {.source = IpAddr::v4(ip->source), .destination = IpAddr::v4(ip->destination)},
                      ip->protocol);
}

QuoteResult quoted_in_ipv6(ByteView bytes, size_t ip_at) noexcept {
    const auto ip = header_in<Ipv6Header>(bytes, ip_at);
    if (!ip || ip->version() != 6) {
        return drop(DropReason::BadIcmp);
    }
    const FlowKey key{.source = IpAddr::v6(ip->source), .destination = IpAddr::v6(ip->destination)};
    if (key.source.is_v4() || key.destination.is_v4()) {
        return drop(DropReason::BadIcmp);  // in a key it would be equal to an IPv4 address
    }
    size_t at = ip_at + sizeof(Ipv6Header);
    uint8_t next = ip->next_header;
    for (unsigned walked = 0; walked < kExtensionHeadersMax; ++walked) {
        const bool is_fragment = next == Ipv6ExtensionHeader::kFragment;
        if (!is_fragment && next != Ipv6ExtensionHeader::kHopByHop && next != Ipv6ExtensionHeader::kRouting &&
            next != Ipv6ExtensionHeader::kDestinationOptions) {
            break;
        }
        const auto header = header_in<Ipv6ExtensionHeader>(bytes, at);
        if (!header) {
            return drop(DropReason::BadIcmp);
        }
        if (is_fragment && (header->rest.host() & Ipv6ExtensionHeader::kOffsetMask) != 0) {
            return drop(DropReason::BadIcmp);
        }
        at += is_fragment ? sizeof *header : header->bytes();
        next = header->next_header;
    }
    return with_ports(bytes, ip_at, at, key, next);
}

// Writes to bytes that a message's checksum covers, and accumulates the change of that checksum.
class MessageEditor {
 public:
    explicit MessageEditor(uint8_t* frame) noexcept : frame_(frame) {}
    template <typename Field>
    void replace(size_t at, const Field& after) noexcept {
        delta_.replace(load<Field>(frame_ + at), after);
        store(frame_ + at, after);
    }
    [[nodiscard]] Be16 field(size_t at) const noexcept { return get<Be16>(at); }
    template <typename Field>
    [[nodiscard]] Field get(size_t at) const noexcept {
        return load<Field>(frame_ + at);
    }
    [[nodiscard]] ChecksumDelta& delta() noexcept { return delta_; }

 private:
    uint8_t* frame_;
    ChecksumDelta delta_;
};

// Bytes behind the IP header of the quoted packet before it was truncated. 0 if they may be less than a whole
// packet's (a fragment), or if there are extension headers, which may include a fragment header.
template <typename Header>
size_t whole_l4_bytes(const Header& ip, size_t headers_bytes) noexcept {
    if constexpr (std::is_same_v<Header, Ipv4Header>) {
        return ip.is_fragment() || ip.total_length.host() < headers_bytes
                   ? 0
                   : ip.total_length.host() - headers_bytes;
    } else {
        return headers_bytes == sizeof(Ipv6Header) ? ip.payload_length.host() : 0;
    }
}

// SCTP's checksum covers the whole packet, and its update needs the packet's length from the quoted IP
// header. A fragment's checksum is left unchanged.
template <typename Header>
void translate_quoted_crc(MessageEditor& message, const Quote& quote, uint32_t ports_before) noexcept {
    const size_t sum_at = quote.l4_offset + offsetof(SctpHeader, checksum);
    const size_t bytes =
        whole_l4_bytes(message.get<Header>(quote.ip_offset), quote.l4_offset - quote.ip_offset);
    if (bytes < sizeof(SctpHeader) || sum_at + sizeof(uint32_t) > quote.end) {
        return;
    }
    const auto sent = message.get<uint32_t>(sum_at);
    const auto ports_after = message.get<uint32_t>(quote.l4_offset);
    message.replace(
        sum_at, Be32::from_raw(sent == 0 ? 0 : sctp_checksum_after(sent, ports_before, ports_after, bytes)));
}

template <WireAddress Address>
void translate_quote(MessageEditor& message, const Quote& quote,
                     const ErrorRewrite<Address>& rewrite) noexcept {
    using Header = std::conditional_t<std::is_same_v<Address, Be32>, Ipv4Header, Ipv6Header>;
    message.replace(quote.ip_offset + offsetof(Header, source), rewrite.quoted.source);
    message.replace(quote.ip_offset + offsetof(Header, destination), rewrite.quoted.destination);
    if constexpr (std::is_same_v<Address, Be32>) {
        const size_t sum_at = quote.ip_offset + offsetof(Ipv4Header, checksum);
        message.replace(sum_at, rewrite.quoted_deltas.ip.applied_to(message.field(sum_at)));
    }
    const auto ports_before = message.get<uint32_t>(quote.l4_offset);
    message.replace(quote.l4_offset, rewrite.quoted.source_port);
    message.replace(quote.l4_offset + sizeof(Be16), rewrite.quoted.destination_port);
    if (quote.key.protocol == Protocol::Sctp) {
        return translate_quoted_crc<Header>(message, quote, ports_before);
    }
    const bool is_udp = quote.key.protocol == Protocol::Udp;
    const size_t sum_at =
        quote.l4_offset + (is_udp ? offsetof(UdpHeader, checksum) : offsetof(TcpHeader, checksum));
    if (sum_at + sizeof(Be16) > quote.end) {
        return;
    }
    const Be16 sent = message.field(sum_at);
    message.replace(sum_at, is_udp ? udp_checksum_after(sent, rewrite.quoted_deltas.l4)
                                   : rewrite.quoted_deltas.l4.applied_to(sent));
}

}  // namespace

IcmpRole icmp_role(ByteView frame, const Parsed& parsed) noexcept {
    const ByteView packet = ip_packet(frame, parsed);
    const bool is_v4 = parsed.family == IpFamily::V4;
    if (parsed.ip_protocol != (is_v4 ? kProtoIcmp : kProtoIcmpv6)) {
        return IcmpRole::None;
    }
    if (packet.size() - parsed.l4_offset < sizeof(IcmpHeader)) {
        return IcmpRole::Cut;
    }
    return is_v4 ? role_of(packet[parsed.l4_offset]) : role_of_v6(packet[parsed.l4_offset]);
}

bool has_valid_icmp_checksum(ByteView frame, const Parsed& parsed) noexcept {
    const ByteView message = ip_packet(frame, parsed).subspan(parsed.l4_offset);
    ChecksumSum sum;
    if (parsed.family == IpFamily::V6) {
        sum.add_pseudo_header(parsed.key.source, parsed.key.destination, kProtoIcmpv6,
                              static_cast<uint16_t>(message.size()));
    }
    return sum.add(message).is_valid();
}

std::expected<Quote, DropReason> quoted_packet(ByteView frame, const Parsed& parsed) noexcept {
    const ByteView packet = ip_packet(frame, parsed);
    const size_t at = parsed.l4_offset + sizeof(IcmpHeader);
    return parsed.family == IpFamily::V4 ? quoted_in_ipv4(packet, at) : quoted_in_ipv6(packet, at);
}

std::optional<TooBig> too_big(ByteView frame, const Parsed& parsed, const Quote& quote) noexcept {
    const bool is_v4 = parsed.family == IpFamily::V4;
    const uint8_t* const message = frame.data() + parsed.l4_offset;
    const auto header = load<IcmpHeader>(message);
    if (header.type != (is_v4 ? 3 : 2) || (is_v4 && header.code != 4)) {
        return std::nullopt;
    }
    const uint8_t* const quoted = frame.data() + quote.ip_offset;
    if (is_v4) {
        return TooBig{load<Be16>(message + kMtuAt).host(), load<Ipv4Header>(quoted).total_length.host()};
    }
    const uint32_t payload_bytes = load<Ipv6Header>(quoted).payload_length.host();
    return TooBig{load<Be32>(message + kMtuAt6).host(),
                  payload_bytes == 0 ? 0 : payload_bytes + uint32_t{sizeof(Ipv6Header)}};
}

void set_told_mtu(uint8_t* frame, const Parsed& parsed, uint16_t mtu) noexcept {
    MessageEditor message(frame);
    message.replace(parsed.l4_offset + kMtuAt, Be16::from_host(mtu));
    const size_t sum_at = parsed.l4_offset + offsetof(IcmpHeader, checksum);
    store(frame + sum_at, message.delta().applied_to(message.field(sum_at)));
}

template <WireAddress Address>
void translate_error(uint8_t* frame, const Parsed& parsed, const Quote& quote,
                     const ErrorRewrite<Address>& rewrite) noexcept {
    constexpr bool kIsV4 = std::is_same_v<Address, Be32>;
    using Header = std::conditional_t<kIsV4, Ipv4Header, Ipv6Header>;
    PENSTOCK_ASSERT((parsed.family == IpFamily::V4) == kIsV4 && parsed.ttl > 1);

    MessageEditor message(frame);
    translate_quote(message, quote, rewrite);
    uint8_t* const ip_at = frame + parsed.l3_offset;
    ChecksumDelta addresses;
    addresses.replace(load<Address>(ip_at + offsetof(Header, source)), rewrite.source);
    addresses.replace(load<Address>(ip_at + offsetof(Header, destination)), rewrite.destination);
    if constexpr (kIsV4) {
        uint8_t* const sum_at = ip_at + offsetof(Ipv4Header, checksum);
        store(sum_at, (FoldedDelta(addresses) + kOneHopDelta).applied_to(load<Be16>(sum_at)));
        ip_at[offsetof(Ipv4Header, ttl)] = static_cast<uint8_t>(parsed.ttl - 1);
    } else {
        message.delta().add(addresses);  // the pseudo-header includes them (RFC 4443, 2.3)
        ip_at[offsetof(Ipv6Header, hop_limit)] = static_cast<uint8_t>(parsed.ttl - 1);
    }
    store(ip_at + offsetof(Header, source), rewrite.source);
    store(ip_at + offsetof(Header, destination), rewrite.destination);
    uint8_t* const sum_at = frame + parsed.l4_offset + offsetof(IcmpHeader, checksum);
    store(sum_at, message.delta().applied_to(load<Be16>(sum_at)));
}
template void translate_error(uint8_t*, const Parsed&, const Quote&, const ErrorRewrite<Be32>&) noexcept;
template void translate_error(uint8_t*, const Parsed&, const Quote&,
                              const ErrorRewrite<std::array<uint8_t, 16>>&) noexcept;

uint32_t datagram_id(ByteView frame, const Parsed& parsed) noexcept {
    PENSTOCK_ASSERT(parsed.kind == PacketKind::Fragment && parsed.l4_offset <= frame.size());
    if (parsed.family == IpFamily::V4) {
        return load<Be16>(frame.data() + parsed.l3_offset + offsetof(Ipv4Header, id)).host();
    }
    // The parser stopped behind the fragment header; its last four bytes are the identification.
    return load<Be32>(frame.data() + parsed.l4_offset - sizeof(Be32)).host();
}

}  // namespace penstock::packet
